//! Checks on the order of runs.

use crate::cases::check::{Case, Check};
use kdyno_stats::drift::{autocorrelation, kendall, theil_sen};

pub fn run(case: &Case, check: &mut Check<'_>) {
    let x = case.floats("/x");
    let slope = theil_sen(&x, 0.05);
    check.number("/theil_sen_slope", slope.map(|s| s.slope));
    check.interval("/theil_sen_ci95", slope.and_then(|s| s.interval));
    let rank = kendall(&x);
    check.number("/kendall_tau", rank.map(|k| k.tau));
    check.number("/kendall_p", rank.map(|k| k.p));
    let neighbours = autocorrelation(&x);
    check.number("/ljung_box_Q1", neighbours.map(|a| a.ljung_box));
    check.number("/ljung_box_p", neighbours.map(|a| a.ljung_box_p));
    check.number("/acf1", neighbours.map(|a| a.lag1));
    check.number("/von_neumann_ratio", neighbours.map(|a| a.von_neumann));
}
