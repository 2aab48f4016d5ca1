//! Intervals of quantiles between order statistics.

use super::check::{Case, Check};
use kdyno_stats::order::{equal_tailed, shortest};

pub fn run(case: &Case, check: &mut Check<'_>) {
    let (n, level) = (case.float("/n") as u64, case.float("/conf"));
    let quantiles = case.expected.as_array().cloned().unwrap_or_default();
    for (i, expected) in quantiles.iter().enumerate() {
        let q = expected.get("q").and_then(|q| q.as_f64()).expect("q");
        check.number(&format!("/{i}/q"), Some(q));
        for (name, interval) in [
            ("shortest", shortest(n, q, level)),
            ("equal_tail", equal_tailed(n, q, level)),
        ] {
            let at = |field: &str| format!("/{i}/{name}/{field}");
            check.number(&at("lo_rank"), interval.map(|r| r.low as f64));
            check.number(&at("hi_rank"), interval.map(|r| r.high as f64));
            check.number(&at("coverage"), interval.map(|r| r.coverage));
        }
    }
}
