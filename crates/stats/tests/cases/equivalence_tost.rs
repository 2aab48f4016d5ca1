//! Equivalence within a margin, Welch on logarithms.

use super::check::{Case, Check};
use kdyno_stats::equivalence::{equivalence, log_margin};
use kdyno_stats::ttest::{logs, welch};

pub fn run(case: &Case, check: &mut Check<'_>) {
    let log = |pointer| logs(&case.floats(pointer)).expect("logs");
    let difference = welch(&log("/a"), &log("/b")).expect("difference");
    let margin = log_margin(case.float("/margin")).expect("margin");
    let result = equivalence(&difference, margin);
    check.number("/p_tost", result.map(|r| r.p()));
    check.number("/p_lower", result.map(|r| r.p_lower));
    check.number("/p_upper", result.map(|r| r.p_upper));
    check.interval("/ratio_ci90", difference.ratio_interval(0.9));
    check.flag("/equivalent", result.is_some_and(|r| r.p() < 0.05));
}
