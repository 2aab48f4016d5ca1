//! Failures among runs.

use super::check::{Case, Check};
use kdyno_stats::counts::{FailCounts, clopper_pearson};

pub fn run(case: &Case, check: &mut Check<'_>) {
    for (i, row) in case.rows("/tables").iter().enumerate() {
        let whole: Vec<u64> = row.iter().map(|v| *v as u64).collect();
        let [fail_a, n_a, fail_b, n_b] = whole.as_slice() else {
            panic!("{}: a table has four counts", case.id);
        };
        let counts = FailCounts::new((*fail_a, *n_a), (*fail_b, *n_b)).expect("counts");
        let at = |name: &str| format!("/{i}/{name}");
        for (name, value) in ["fail_a", "n_a", "fail_b", "n_b"].iter().zip(row) {
            check.number(&at(name), Some(*value));
        }
        check.number(&at("fisher_p"), counts.fisher_p());
        // R's root finder stops at a step of 1.2e-4; ours agrees with scipy and with 30 digits.
        check.number_within(&at("or_cmle"), counts.odds_ratio(), 1.3e-4, 1e-9);
        check.number(&at("boschloo_p"), counts.boschloo_p());
        check.number(&at("barnard_p"), counts.barnard_p());
        check.number(&at("diff"), Some(counts.difference()));
        check.interval(&at("newcombe_ci"), counts.newcombe(0.95));
        let own = clopper_pearson(*fail_a, *n_a, 0.95);
        check.interval(&at("clopper_pearson_a"), own);
        let own = clopper_pearson(*fail_b, *n_b, 0.95);
        check.interval(&at("clopper_pearson_b"), own);
    }
}
