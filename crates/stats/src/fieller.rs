//! Confidence sets of a ratio by Fieller's theorem.
//!
//! The set of a ratio need not be an interval: when the denominator could be 0 it has no end, and
//! that is reported, not hidden. Which variances and critical value go in is the caller's matter.

use crate::dist::StudentT;
use crate::summary::{Summary, count};
use crate::ttest::satterthwaite;

/// The ratios that data do not exclude.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FiellerSet {
    /// Between the two.
    Interval(f64, f64),
    /// At most the first or at least the second: the denominator may be 0.
    Outside(f64, f64),
    /// Any ratio at all.
    Everything,
}

impl FiellerSet {
    /// The ends when the set is an interval.
    #[must_use]
    pub fn interval(self) -> Option<(f64, f64)> {
        match self {
            Self::Interval(low, high) => Some((low, high)),
            Self::Outside(..) | Self::Everything => None,
        }
    }
}

/// Numerator and denominator of a ratio with their variances and covariance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fraction {
    /// Estimated numerator.
    pub top: f64,
    /// Estimated denominator.
    pub bottom: f64,
    /// Variance of the numerator.
    pub var_top: f64,
    /// Variance of the denominator.
    pub var_bottom: f64,
    /// Their covariance; 0 when independent.
    pub covariance: f64,
}

impl Fraction {
    /// All `r` with `(top - r bottom)^2 <= c^2 (v_top - 2 r cov + r^2 v_bottom)` at the critical
    /// value `c` (Fieller 1954); `None` when a figure is not finite or a variance negative.
    #[must_use]
    pub fn set(&self, critical: f64) -> Option<FiellerSet> {
        // Both scaled to about 1, so that squares neither overflow nor vanish.
        let size = |value: f64, variance: f64| value.abs().max(variance.sqrt());
        let top_size = size(self.top, self.var_top);
        let bottom_size = size(self.bottom, self.var_bottom);
        if !(bottom_size > 0.0 && bottom_size.is_finite() && top_size.is_finite()) {
            return None;
        }
        if top_size == 0.0 {
            return (critical.is_finite() && self.bottom != 0.0)
                .then_some(FiellerSet::Interval(0.0, 0.0));
        }
        let (top, bottom) = (self.top / top_size, self.bottom / bottom_size);
        let square = critical * critical;
        let var_top = square * (self.var_top / top_size / top_size);
        let var_bottom = square * (self.var_bottom / bottom_size / bottom_size);
        let covariance = square * (self.covariance / top_size / bottom_size);
        // Discriminant written so that no two squares of estimates cancel.
        let a = bottom * bottom - var_bottom;
        let b = top * bottom - covariance;
        let c = top * top - var_top;
        let discriminant = top * top * var_bottom + bottom * bottom * var_top
            - 2.0 * top * bottom * covariance
            - (var_top * var_bottom - covariance * covariance);
        if !(a.is_finite() && b.is_finite() && discriminant.is_finite() && c.is_finite()) {
            return None;
        }
        if a < 0.0 && discriminant < 0.0 || a == 0.0 {
            return Some(FiellerSet::Everything);
        }
        let root = discriminant.max(0.0).sqrt();
        let far = if b < 0.0 { b - root } else { b + root };
        let (one, other) = if far == 0.0 {
            (0.0, 0.0)
        } else {
            (far / a, c / far)
        };
        let unit = top_size / bottom_size;
        let (low, high) = (one.min(other) * unit, one.max(other) * unit);
        if !(low.is_finite() && high.is_finite()) {
            return None;
        }
        Some(if a > 0.0 {
            FiellerSet::Interval(low, high)
        } else {
            FiellerSet::Outside(low, high)
        })
    }
}

/// The ratio of two arithmetic means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanRatio {
    /// `mean(b) / mean(a)`.
    pub ratio: f64,
    /// Degrees of freedom of the set, Welch-Satterthwaite at the estimate.
    pub df: f64,
    /// The ratios that the data do not exclude.
    pub set: FiellerSet,
}

/// Ratio of arithmetic means `mean(b) / mean(a)` of independent samples with its Fieller set of
/// probability `level`, variances unequal (Fieller 1954; degrees of freedom of Satterthwaite 1946
/// evaluated at the estimated ratio). `None` with fewer than two values on a side, a value that
/// is not finite or a mean of 0 in `a`.
#[must_use]
pub fn mean_ratio(a: &[f64], b: &[f64], level: f64) -> Option<MeanRatio> {
    let (a, b) = (Summary::of(a)?, Summary::of(b)?);
    let (error_a, error_b) = (a.standard_error()?, b.standard_error()?);
    let ratio = b.mean / a.mean;
    if !(ratio.is_finite() && level > 0.0 && level < 1.0) {
        return None;
    }
    let (free_a, free_b) = (count(a.n) - 1.0, count(b.n) - 1.0);
    let df = satterthwaite(&[(error_b, free_b), (ratio.abs() * error_a, free_a)])
        .unwrap_or(free_a + free_b);
    let critical = StudentT::new(df)?.upper_quantile(0.5 * (1.0 - level))?;
    let (unit_a, unit_b) = (a.mean.abs().max(error_a), b.mean.abs().max(error_b));
    // Variances of values near the ends of the range of f64 exist only in units of the means.
    let relative = |v: f64, unit: f64| if unit > 0.0 { v / unit } else { 0.0 };
    let set = Fraction {
        top: relative(b.mean, unit_b),
        bottom: relative(a.mean, unit_a),
        var_top: relative(error_b, unit_b).powi(2),
        var_bottom: relative(error_a, unit_a).powi(2),
        covariance: 0.0,
    }
    .set(critical)?;
    let unit = unit_b / unit_a;
    let scaled = |low: f64, high: f64| {
        let ends = (low * unit, high * unit);
        (ends.0.is_finite() && ends.1.is_finite()).then_some(ends)
    };
    let set = match set {
        FiellerSet::Interval(low, high) => {
            scaled(low, high).map(|(low, high)| FiellerSet::Interval(low, high))?
        }
        FiellerSet::Outside(low, high) => {
            scaled(low, high).map(|(low, high)| FiellerSet::Outside(low, high))?
        }
        FiellerSet::Everything => FiellerSet::Everything,
    };
    Some(MeanRatio { ratio, df, set })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_denominator_that_may_be_zero_has_no_interval() {
        let far = mean_ratio(&[-1.0, 1.1], &[5.0, 5.1], 0.95).expect("ratio");
        assert!(matches!(far.set, FiellerSet::Outside(..)), "{far:?}");
        let lost = mean_ratio(&[-1.0, 1.1], &[-5.0, 5.1], 0.95).expect("ratio");
        assert_eq!(lost.set, FiellerSet::Everything);
        assert_eq!(lost.set.interval(), None);
    }

    #[test]
    fn constants_have_an_exact_ratio() {
        let exact = mean_ratio(&[2.0; 3], &[3.0; 3], 0.95).expect("ratio");
        assert_eq!(exact.set, FiellerSet::Interval(1.5, 1.5));
        assert_eq!(mean_ratio(&[0.0; 3], &[3.0; 3], 0.95), None);
        assert_eq!(mean_ratio(&[1.0, 2.0], &[3.0, f64::NAN], 0.95), None);
    }

    proptest! {
        #[test]
        fn the_ends_solve_the_equation(
            top in -10.0..10.0_f64, bottom in -10.0..10.0_f64,
            var_top in 0.01..4.0_f64, var_bottom in 0.01..4.0_f64, rho in -0.9..0.9_f64,
        ) {
            let covariance = rho * (var_top * var_bottom).sqrt();
            let f = Fraction { top, bottom, var_top, var_bottom, covariance };
            let z = 1.96;
            let ends = match f.set(z) {
                Some(FiellerSet::Interval(low, high) | FiellerSet::Outside(low, high)) => vec![low, high],
                _ => vec![],
            };
            for r in ends {
                let left = (top - r * bottom).powi(2);
                let right = z * z * (var_top - 2.0 * r * covariance + r * r * var_bottom);
                prop_assert!((left - right).abs() <= 1e-6 * (left + right + 1e-9), "{left} {right}");
            }
        }

        #[test]
        fn any_input(a in prop::collection::vec(any::<f64>(), 0..6), b in prop::collection::vec(any::<f64>(), 0..6)) {
            if let Some(r) = mean_ratio(&a, &b, 0.95) {
                prop_assert!(r.ratio.is_finite() && r.df > 0.0);
            }
        }
    }
}
