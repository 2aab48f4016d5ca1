//! Which rows a table shows first. **Not a verdict**: it has no error rate, no correction for
//! the number of metrics and no notion of boots or drift; it only keeps a thousand diagnostics
//! that barely differ off the screen. From one run on a side nothing can be told; such a row is
//! shown only so that nobody misses it.

use crate::change::percent_change;
use crate::summary::Summary;

/// Standard errors that a difference must exceed to be shown.
const ERRORS: f64 = 2.0;
/// Percent by which single runs must differ to be shown.
const SINGLE_RUN_PERCENT: f64 = 5.0;

/// Whether the means of `a` and `b` differ by more than two standard errors of the difference,
/// `sqrt(sa^2/na + sb^2/nb)` (Welch 1938); with fewer than two values on a side, by more than
/// 5 %. False when a side is empty or not finite.
#[must_use]
pub fn moved(a: &[f64], b: &[f64]) -> bool {
    let (Some(a), Some(b)) = (Summary::of(a), Summary::of(b)) else {
        return false;
    };
    match (a.standard_error(), b.standard_error()) {
        (Some(error_a), Some(error_b)) => (b.mean - a.mean).abs() > ERRORS * error_a.hypot(error_b),
        _ => percent_change(a.mean, b.mean).map_or(a.mean != b.mean, |percent| {
            percent.abs() > SINGLE_RUN_PERCENT
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_standard_errors() {
        // Both sides: sd 1, n 4, so the error of the difference is sqrt(2/4) = 0.707.
        let base = [-1.5_f64.sqrt(), 0.0, 0.0, 1.5_f64.sqrt()];
        let above = base.map(|v| v + 1.5);
        let below = base.map(|v| v + 1.3);
        assert!(moved(&base, &above));
        assert!(!moved(&base, &below));
    }

    #[test]
    fn single_runs_need_five_percent() {
        assert!(moved(&[100.0], &[106.0, 106.0]));
        assert!(!moved(&[100.0], &[104.0]));
        assert!(moved(&[0.0], &[1.0]));
        assert!(!moved(&[0.0], &[0.0]));
    }

    #[test]
    fn constants_that_differ_have_moved() {
        assert!(moved(&[1.0, 1.0], &[2.0, 2.0]));
    }

    #[test]
    fn the_whole_range_of_numbers() {
        assert!(moved(&[1.0e300, 1.1e300], &[9.0e300, 9.1e300]));
    }

    #[test]
    fn nothing_cannot_move() {
        assert!(!moved(&[], &[1.0]));
        assert!(!moved(&[1.0], &[f64::NAN]));
    }

    proptest! {
        #[test]
        fn a_constant_never_moves_against_itself(v in -1e9..1e9_f64, n in 1_usize..9, m in 1_usize..9) {
            prop_assert!(!moved(&vec![v; n], &vec![v; m]));
        }
    }
}
