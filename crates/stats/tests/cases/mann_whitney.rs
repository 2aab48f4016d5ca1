//! Mann-Whitney, exact with ties, and the Hodges-Lehmann shift.

use super::check::{Case, Check};
use kdyno_stats::rank::{NullCache, hodges_lehmann, mann_whitney};

pub fn run(case: &Case, check: &mut Check<'_>) {
    let (a, b) = (case.floats("/a"), case.floats("/b"));
    let mut cache = NullCache::default();
    let test = mann_whitney(&a, &b, &mut cache);
    check.number("/U_b", test.as_ref().map(|t| t.u));
    check.number("/p_exact_double", test.as_ref().and_then(|t| t.p_exact));
    let deviation = test.as_ref().and_then(|t| t.p_exact_deviation);
    check.number("/p_exact_absdev", deviation);
    check.number("/p_normal_tie_cc", test.as_ref().and_then(|t| t.p_normal));
    check.number("/cles", test.as_ref().map(|t| t.superiority));
    check.number("/cliffs_delta", test.as_ref().map(|t| t.cliffs_delta));
    let shift = hodges_lehmann(&a, &b, 0.95, &mut cache);
    check.number("/hodges_lehmann", shift.as_ref().map(|s| s.estimate));
    if case.expected.get("hl_ci95").is_some() {
        check.interval("/hl_ci95", shift.as_ref().map(|s| s.interval));
        let attained = shift.as_ref().map(|s| s.attained_level);
        check.number("/hl_ci_actual_conf", attained);
    }
}
