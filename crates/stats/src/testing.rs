//! What the tests of several modules share.

/// Fails unless `got` is `expected` up to a relative error.
#[track_caller]
pub(crate) fn close(got: f64, expected: f64, relative: f64) {
    assert!(
        (got - expected).abs() <= relative * expected.abs(),
        "got {got:e}, expected {expected:e}"
    );
}
