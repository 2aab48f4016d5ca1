//! Figures that summarise a handful of observations.
//!
//! Two passes throughout: the one-pass variance loses all digits when the mean is large against
//! the spread, which is what run times look like. Deviations are scaled before they are squared,
//! so that any finite input gives a finite result or `None`.

use crate::quantile;

/// Location and spread of a set of finite observations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of observations, at least 1.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Middle value; the mean of the two middle values when `n` is even.
    pub median: f64,
    /// Middle value; the larger of the two middle values when `n` is even, as ministat has it.
    pub upper_median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Standard deviation with `n - 1` in the denominator; `None` for one observation.
    pub sample_sd: Option<f64>,
    /// Standard deviation with `n` in the denominator; 0 for one observation, `None` only where
    /// it exceeds the range of `f64`.
    pub population_sd: Option<f64>,
}

impl Summary {
    /// Summarises `values`; `None` when there is none or one of them is not finite.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let sorted = quantile::sorted(values)?;
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let mean = mean_within(values, min, max);
        let squares = ScaledSquares::about(values, mean);
        Some(Self {
            n: values.len(),
            mean,
            median: quantile::of_sorted(&sorted, 0.5)?,
            upper_median: *sorted.get(sorted.len() / 2)?,
            min,
            max,
            sample_sd: squares.deviation(count(values.len()) - 1.0),
            population_sd: squares.deviation(count(values.len())),
        })
    }

    /// Population standard deviation over the mean, in percent, with the sign of the mean: the
    /// `%stddev` of kernel reports. `None` when the mean is 0.
    #[must_use]
    pub fn relative_spread(&self) -> Option<f64> {
        let percent = 100.0 * (self.population_sd? / self.mean);
        percent.is_finite().then_some(percent)
    }

    /// Standard error of the mean, `s / sqrt(n)`; `None` for one observation.
    #[must_use]
    pub fn standard_error(&self) -> Option<f64> {
        Some(self.sample_sd? / count(self.n).sqrt())
    }
}

/// Arithmetic mean; `None` when there is no value or one of them is not finite.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    Summary::of(values).map(|summary| summary.mean)
}

/// Geometric mean, the exponential of the mean logarithm; `None` unless all values are finite
/// and above 0.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.iter().any(|v| *v <= 0.0) {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    mean(&logs).map(f64::exp).filter(|v| v.is_finite())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a count of observations stays far below 2^53"
)]
pub(crate) fn count(n: usize) -> f64 {
    n as f64
}

/// Mean of finite values between `min` and `max`, corrected by the mean residual (Chan, Golub,
/// LeVeque 1983).
fn mean_within(values: &[f64], min: f64, max: f64) -> f64 {
    let n = count(values.len());
    let sum: f64 = values.iter().sum();
    let first = if sum.is_finite() {
        sum / n
    } else {
        values.iter().map(|v| v / n).sum()
    };
    let residual = values.iter().map(|v| (v - first) / n).sum::<f64>();
    let corrected = if residual.is_finite() {
        first + residual
    } else {
        first
    };
    // Equal values must have exactly that value as their mean, or equal sets would differ; and
    // rounding must not push a mean out of the range of numbers.
    corrected.clamp(min, max)
}

/// A sum of squared deviations as `scale^2 * sum`, so that squaring cannot overflow.
struct ScaledSquares {
    scale: f64,
    sum: f64,
}

impl ScaledSquares {
    fn about(values: &[f64], mean: f64) -> Self {
        let scale = values.iter().map(|v| (v - mean).abs()).fold(0.0, f64::max);
        let ratio = |v: &f64| if scale > 0.0 { (v - mean) / scale } else { 0.0 };
        let sum = values.iter().map(|v| ratio(v).powi(2)).sum();
        Self { scale, sum }
    }

    fn deviation(&self, degrees: f64) -> Option<f64> {
        let sd = self.scale * (self.sum / degrees).sqrt();
        (degrees > 0.0 && sd.is_finite()).then_some(sd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn five_runs() {
        let s = Summary::of(&[2.0, 4.0, 4.0, 5.0, 10.0]).expect("summary");
        assert_eq!(
            (s.n, s.mean, s.median, s.min, s.max),
            (5, 5.0, 4.0, 2.0, 10.0)
        );
        // Squared deviations 9, 1, 1, 0, 25.
        assert_eq!(s.sample_sd, Some(9.0_f64.sqrt()));
        assert!((s.population_sd.expect("sd") - 7.2_f64.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn an_even_number_has_two_middles() {
        let s = Summary::of(&[4.0, 1.0, 2.0, 3.0]).expect("summary");
        assert_eq!((s.median, s.upper_median), (2.5, 3.0));
    }

    #[test]
    fn one_run_has_no_sample_deviation() {
        let s = Summary::of(&[7.0]).expect("summary");
        assert_eq!((s.sample_sd, s.population_sd), (None, Some(0.0)));
        assert_eq!(s.standard_error(), None);
    }

    #[test]
    fn a_large_mean_keeps_its_spread() {
        let s = Summary::of(&[1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0]).expect("summary");
        assert_eq!(s.sample_sd, Some(1.0));
    }

    #[test]
    fn what_is_not_there_is_not_zero() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
        assert_eq!(
            Summary::of(&[0.0, 0.0]).expect("zeros").relative_spread(),
            None
        );
    }

    #[test]
    fn geometric_means() {
        assert!((geometric_mean(&[2.0, 8.0]).expect("mean") - 4.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[2.0, 0.0]), None);
        assert_eq!(geometric_mean(&[2.0, -1.0]), None);
        assert_eq!(geometric_mean(&[]), None);
    }

    proptest! {
        #[test]
        fn finite_in_finite_out(values in prop::collection::vec(any_finite(), 1..20)) {
            let s = Summary::of(&values).expect("finite values have a summary");
            prop_assert!(s.min <= s.mean && s.mean <= s.max);
            prop_assert!(s.min <= s.median && s.median <= s.upper_median);
            for sd in [s.sample_sd, s.population_sd, s.relative_spread()].into_iter().flatten() {
                prop_assert!(sd.is_finite());
            }
        }

        #[test]
        fn equal_values_have_no_spread(value in any_finite(), n in 1_usize..30) {
            let s = Summary::of(&vec![value; n]).expect("summary");
            prop_assert_eq!(s.mean, value);
            prop_assert_eq!(s.population_sd, Some(0.0));
        }
    }

    fn any_finite() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<f64>().prop_filter("finite", |v| v.is_finite()),
            prop::sample::select(vec![0.0, -0.0, 1e300, -1e300, f64::MAX, f64::MIN, 5e-324]),
            -1e6..1e6_f64,
        ]
    }
}
