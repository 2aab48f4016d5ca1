//! Random effects over testboxes.

use crate::cases::check::{Case, Check};
use kdyno_stats::random_effects::{
    CONVERGED, Pooled, der_simonian_laird, fixed, hartung_knapp, heterogeneity, plain, reml,
};

/// Where metafor's iteration stops by default. The reference is its unconverged value (in case
/// 14 `tau^2` is 0.8 % above the maximum of the likelihood), so the comparison stops there too.
const METAFOR: f64 = 1e-5;

pub fn run(case: &Case, check: &mut Check<'_>) {
    let (y, s) = (case.floats("/log_ratio"), case.floats("/se"));
    let flat = plain(&y, 0.05);
    check.number("/plain_geomean", flat.map(|p| p.estimate.exp()));
    check.interval("/plain_geomean_ci_t", flat.map(ratio_interval));
    let spread = heterogeneity(&y, &s);
    check.number("/Q", spread.map(|h| h.q));
    check.number("/Q_p", spread.and_then(|h| h.p));
    check.number("/tau2_DL", spread.map(|h| h.tau2));
    check.number("/I2_DL", spread.map(|h| h.i2));
    let models = [
        ("/fixed", fixed(&y, &s, 0.05)),
        ("/random_DL", der_simonian_laird(&y, &s, 0.05)),
        ("/random_REML_HKSJ", hartung_knapp(&y, &s, 0.05, METAFOR)),
    ];
    for (name, pooled) in models {
        check.number(&format!("{name}/ratio"), pooled.map(|p| p.estimate.exp()));
        check.interval(&format!("{name}/ci"), pooled.map(ratio_interval));
    }
    check.number("/random_REML_HKSJ/tau2", reml(&y, &s, METAFOR));
    let (early, converged) = (reml(&y, &s, METAFOR), reml(&y, &s, CONVERGED));
    let near = early
        .zip(converged)
        .is_some_and(|(e, c)| (e - c).abs() <= METAFOR);
    check.holds("convergence within the step at which metafor stops", near);
}

fn ratio_interval(pooled: Pooled) -> (f64, f64) {
    (pooled.interval.0.exp(), pooled.interval.1.exp())
}
