//! The index between a baseline and a reference.

use crate::cases::check::{Case, Check};
use kdyno_stats::index::normalise;

pub fn run(case: &Case, check: &mut Check<'_>) {
    let [x, baseline, reference] = ["/x", "/baseline", "/reference"].map(|p| case.floats(p));
    let index = normalise(&x, &baseline, &reference, 0.05).ok();
    check.number("/index", index.map(|i| i.index));
    check.number("/se_delta", index.map(|i| i.error));
    check.interval("/ci_delta", index.map(|i| i.delta));
    check.interval("/ci_fieller_z", index.map(|i| i.fieller));
    check.number("/g", index.map(|i| i.g));
    // A simulation of 400,000 draws: the deviation is good to about 0.2 %, the ends of the
    // interval to about 1 % of a deviation.
    let error = index.map_or(0.0, |i| i.error);
    check.number_within("/monte_carlo_sd", index.map(|i| i.error), 0.02, 0.0);
    let fieller = index.map(|i| i.fieller);
    check.number_within("/monte_carlo_ci/0", fieller.map(|f| f.0), 0.0, 0.05 * error);
    check.number_within("/monte_carlo_ci/1", fieller.map(|f| f.1), 0.0, 0.05 * error);
}
