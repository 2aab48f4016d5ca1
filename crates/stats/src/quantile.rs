//! Quantiles of a sample by linear interpolation between order statistics.
//!
//! Type 7 of Hyndman and Fan (1996), the default of R and NumPy, so that figures agree with what
//! readers compute themselves.

use crate::summary::count;

/// The `p`-quantile of `values`, type 7; `None` when there is no value, one is not finite, or
/// `p` lies outside 0..=1.
#[must_use]
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    of_sorted(&sorted(values)?, p)
}

/// A sorted copy; `None` when one of the values is not finite.
pub(crate) fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

/// The `p`-quantile of finite values in ascending order: `x[h] + (h - floor h)(x[h+1] - x[h])`
/// at `h = (n - 1) p` (Hyndman and Fan 1996, definition 7).
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 <= floor(h) <= n - 1"
)]
pub(crate) fn of_sorted(sorted: &[f64], p: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&p) {
        return None;
    }
    let h = count(sorted.len().checked_sub(1)?) * p;
    let below = *sorted.get(h.floor() as usize)?;
    let above = *sorted.get(h.ceil() as usize)?;
    let share = h - h.floor();
    let step = above - below;
    if step.is_finite() {
        Some(below + share * step)
    } else {
        Some(below * (1.0 - share) + above * share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_type_7() {
        let values = [4.0, 1.0, 3.0, 2.0];
        for (p, expected) in [(0.0, 1.0), (0.25, 1.75), (0.5, 2.5), (0.9, 3.7), (1.0, 4.0)] {
            let got = quantile(&values, p).expect("quantile");
            assert!((got - expected).abs() < 1e-12, "{p}: {got}");
        }
    }

    #[test]
    fn refuses_what_has_no_quantile() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[1.0], 1.1), None);
        assert_eq!(quantile(&[1.0], f64::NAN), None);
        assert_eq!(quantile(&[f64::INFINITY], 0.5), None);
    }

    #[test]
    fn the_whole_range_of_numbers() {
        assert_eq!(quantile(&[f64::MIN, f64::MAX], 0.5), Some(0.0));
    }
}
