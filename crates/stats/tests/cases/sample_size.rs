//! Runs per side for a power.

use crate::cases::check::{Case, Check};
use kdyno_stats::sample_size::runs_per_side;

pub fn run(case: &Case, check: &mut Check<'_>) {
    let questions = case.input.as_array().map_or(0, Vec::len);
    for i in 0..questions {
        let [d, alpha, power] =
            ["cohens_d", "alpha", "power"].map(|name| case.float(&format!("/{i}/{name}")));
        check.number(&format!("/{i}/cohens_d"), Some(d));
        check.number(&format!("/{i}/alpha"), Some(alpha));
        check.number(&format!("/{i}/power"), Some(power));
        check.number(&format!("/{i}/n_per_group"), runs_per_side(d, alpha, power));
    }
}
