//! Distances between the distributions of two samples.

use super::check::{Case, Check};
use kdyno_stats::distance::TwoSamples;
use kdyno_stats::quantile::quantile;

pub fn run(case: &Case, check: &mut Check<'_>) {
    let (a, b) = (case.floats("/a"), case.floats("/b"));
    let samples = TwoSamples::new(&a, &b).expect("samples");
    check.number("/ks_D", Some(samples.ks()));
    check.number("/ks_p_exact", samples.ks_p());
    check.number("/cvm_T", Some(samples.cramer_von_mises()));
    check.number("/cvm_p", Some(samples.cramer_von_mises_p()));
    check.number("/ad_A2_standardised", samples.anderson_darling());
    check.number("/wasserstein1", Some(samples.wasserstein()));
    check.number("/energy_distance", Some(samples.energy()));
    let quantiles = case.expected.get("quantile7").and_then(|v| v.as_object());
    for level in quantiles.into_iter().flat_map(|map| map.keys()) {
        let p: f64 = level.parse().expect("a level");
        check.number(&format!("/quantile7/{level}/0"), quantile(&a, p));
        check.number(&format!("/quantile7/{level}/1"), quantile(&b, p));
    }
}
