//! What the tests of several modules share.

use rand::RngExt;
use rand_pcg::Pcg64;

/// Fails unless `got` is `expected` up to a relative error.
#[track_caller]
pub(crate) fn close(got: f64, expected: f64, relative: f64) {
    assert!(
        (got - expected).abs() <= relative * expected.abs(),
        "got {got:e}, expected {expected:e}"
    );
}

/// A draw from the standard normal distribution.
pub(crate) fn normal(rng: &mut Pcg64) -> f64 {
    let p: f64 = rng.random();
    crate::dist::normal_quantile(p.clamp(1e-12, 1.0 - 1e-12)).expect("p is inside")
}
