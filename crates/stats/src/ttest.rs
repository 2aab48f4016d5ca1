//! Differences of means and their t statistics: Welch, pooled, one sample.
//!
//! A [`Difference`] is an estimate with its standard error and degrees of freedom; p-values,
//! intervals and equivalence follow from these three and are computed in one place, whatever the
//! standard error rests on. On logarithms ([`logs`]) a difference is a ratio of geometric means.
//! No verdicts and no multiplicity here.

use crate::dist::StudentT;
use crate::summary::{Summary, count};
use crate::warning::Warning;

/// An estimated difference (new minus base), its standard error and its degrees of freedom.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The estimate, in the unit of the values (or their logarithm).
    pub estimate: f64,
    /// Its standard error in the same unit; 0 when neither side varies.
    pub se: f64,
    /// Degrees of freedom of the standard error, above 0; may be infinite.
    pub df: f64,
    /// What to doubt.
    pub warnings: Vec<Warning>,
}

impl Difference {
    /// The difference of these three figures; `None` unless the estimate is finite, the standard
    /// error finite and not negative and `df > 0`.
    #[must_use]
    pub fn new(estimate: f64, se: f64, df: f64, warnings: Vec<Warning>) -> Option<Self> {
        let valid = estimate.is_finite() && se.is_finite() && se >= 0.0 && df > 0.0;
        valid.then_some(Self {
            estimate,
            se,
            df,
            warnings,
        })
    }

    /// The t statistic `estimate / se`; `None` without spread.
    #[must_use]
    pub fn t(&self) -> Option<f64> {
        self.t_from(0.0)
    }

    /// Two-sided p-value of no difference (Student 1908); without spread 1 where the sides are
    /// equal and `None` where they differ, since there is no noise to compare with.
    #[must_use]
    pub fn p(&self) -> Option<f64> {
        if self.se == 0.0 && self.estimate == 0.0 {
            return Some(1.0);
        }
        let t = self.t()?;
        Some(StudentT::new(self.df)?.two_sided(t).min(1.0))
    }

    /// One-sided p-value against "the difference is at most `bound`"; `None` without spread.
    #[must_use]
    pub fn p_above(&self, bound: f64) -> Option<f64> {
        let t = self.t_from(bound)?;
        Some(StudentT::new(self.df)?.sf(t))
    }

    /// One-sided p-value against "the difference is at least `bound`"; `None` without spread.
    #[must_use]
    pub fn p_below(&self, bound: f64) -> Option<f64> {
        let t = self.t_from(bound)?;
        Some(StudentT::new(self.df)?.cdf(t))
    }

    /// Half the width of the two-sided interval that covers with probability `level` (as 0.95);
    /// `None` unless `0 < level < 1`.
    #[must_use]
    pub fn half_width(&self, level: f64) -> Option<f64> {
        if !(level > 0.0 && level < 1.0) {
            return None;
        }
        let quantile = StudentT::new(self.df)?.upper_quantile(0.5 * (1.0 - level))?;
        Some(quantile * self.se).filter(|half| half.is_finite())
    }

    /// The two-sided interval of probability `level` (as 0.95), in the unit of the estimate.
    #[must_use]
    pub fn interval(&self, level: f64) -> Option<(f64, f64)> {
        let half = self.half_width(level)?;
        let (low, high) = (self.estimate - half, self.estimate + half);
        (low.is_finite() && high.is_finite()).then_some((low, high))
    }

    /// `exp(estimate)`: the ratio of geometric means when the values were logarithms; `None` when
    /// it exceeds the range of `f64`.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        Some(self.estimate.exp()).filter(|ratio| ratio.is_finite())
    }

    /// The interval of [`Difference::ratio`]; its upper end may be infinite.
    #[must_use]
    pub fn ratio_interval(&self, level: f64) -> Option<(f64, f64)> {
        let (low, high) = self.interval(level)?;
        Some((low.exp(), high.exp()))
    }

    fn t_from(&self, bound: f64) -> Option<f64> {
        let t = (self.estimate - bound) / self.se;
        (self.se > 0.0 && !t.is_nan()).then_some(t)
    }
}

/// Natural logarithms; `None` unless every value is finite and above 0.
#[must_use]
pub fn logs(values: &[f64]) -> Option<Vec<f64>> {
    let usable = |v: &f64| v.is_finite() && *v > 0.0;
    values
        .iter()
        .all(usable)
        .then(|| values.iter().map(|v| v.ln()).collect())
}

/// Difference of means `b - a` without assuming equal variances (Welch 1938, degrees of freedom
/// by Welch 1947 and Satterthwaite 1946). With two constant sides `df` is `n + m - 2`; `None` with
/// fewer than two values on a side or one that is not finite.
#[must_use]
pub fn welch(a: &[f64], b: &[f64]) -> Option<Difference> {
    welch_of(&Summary::of(a)?, &Summary::of(b)?)
}

/// As [`welch`] from the summaries of the sides.
#[must_use]
pub fn welch_of(a: &Summary, b: &Summary) -> Option<Difference> {
    let (error_a, error_b) = (a.standard_error()?, b.standard_error()?);
    let (free_a, free_b) = (count(a.n) - 1.0, count(b.n) - 1.0);
    let df = satterthwaite(&[(error_a, free_a), (error_b, free_b)]).unwrap_or(free_a + free_b);
    Difference::new(b.mean - a.mean, error_a.hypot(error_b), df, doubts(a, b))
}

/// Difference of means `b - a` with one pooled variance (Student 1908), as ministat has it; `None`
/// as for [`welch`].
#[must_use]
pub fn pooled(a: &[f64], b: &[f64]) -> Option<Difference> {
    let (a, b) = (Summary::of(a)?, Summary::of(b)?);
    let sd = pooled_sd(&a, &b)?;
    let spread = (1.0 / count(a.n) + 1.0 / count(b.n)).sqrt();
    let df = count(a.n + b.n) - 2.0;
    Difference::new(b.mean - a.mean, sd * spread, df, doubts(&a, &b))
}

/// Mean of `values` against 0, with `n - 1` degrees of freedom (Student 1908); `None` with fewer
/// than two values or one that is not finite.
#[must_use]
pub fn one_sample(values: &[f64]) -> Option<Difference> {
    one_sample_of(&Summary::of(values)?)
}

/// As [`one_sample`] from the summary of the values.
#[must_use]
pub fn one_sample_of(summary: &Summary) -> Option<Difference> {
    let se = summary.standard_error()?;
    let warnings = if se > 0.0 {
        Vec::new()
    } else {
        vec![Warning::NoSpread]
    };
    Difference::new(summary.mean, se, count(summary.n) - 1.0, warnings)
}

/// Pooled standard deviation `sqrt(((n-1) s_a^2 + (m-1) s_b^2) / (n+m-2))`. A side with one value
/// adds nothing; `None` when both have one.
#[must_use]
pub fn pooled_sd(a: &Summary, b: &Summary) -> Option<f64> {
    let (free_a, free_b) = (count(a.n) - 1.0, count(b.n) - 1.0);
    let free = free_a + free_b;
    let part = |side: &Summary, own: f64| side.sample_sd.unwrap_or(0.0) * (own / free).sqrt();
    let sd = part(a, free_a).hypot(part(b, free_b));
    let known = (a.n == 1 || a.sample_sd.is_some()) && (b.n == 1 || b.sample_sd.is_some());
    (free > 0.0 && known && sd.is_finite()).then_some(sd)
}

/// Degrees of freedom of a sum of independent variances, `(sum v)^2 / sum(v^2 / df)`, from the
/// pairs of standard error and degrees of freedom (Satterthwaite 1946); a part with infinite
/// degrees of freedom is known. `None` when every standard error is 0.
#[must_use]
pub fn satterthwaite(parts: &[(f64, f64)]) -> Option<f64> {
    let largest = parts.iter().map(|(se, _)| *se).fold(0.0, f64::max);
    if !(largest > 0.0 && largest.is_finite()) {
        return None;
    }
    let (mut sum, mut squares) = (0.0, 0.0);
    for (se, df) in parts {
        let variance = (se / largest).powi(2);
        sum += variance;
        squares += variance * variance / df;
    }
    let df = sum * sum / squares;
    (df > 0.0).then_some(df)
}

/// What the spreads of the sides give to doubt.
pub(crate) fn doubts(a: &Summary, b: &Summary) -> Vec<Warning> {
    match (a.min == a.max, b.min == b.max) {
        (true, true) => vec![Warning::NoSpread],
        (false, false) => Vec::new(),
        _ => vec![Warning::OneSideConstant],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_sizes_and_spreads_make_welch_and_pooled_agree() {
        let (a, b) = ([1.0, 2.0, 3.0], [5.0, 6.0, 7.0]);
        let (w, p) = (
            welch(&a, &b).expect("welch"),
            pooled(&a, &b).expect("pooled"),
        );
        assert!((w.df - 4.0).abs() < 1e-12 && (p.df - 4.0).abs() < 1e-12);
        // t = 4 / sqrt(2/3).
        assert!((w.t().expect("t") - 4.0 / (2.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((w.se - p.se).abs() < 1e-15);
    }

    #[test]
    fn without_spread() {
        let same = welch(&[5.0; 4], &[5.0; 4]).expect("welch");
        assert_eq!((same.p(), same.t()), (Some(1.0), None));
        let other = welch(&[5.0; 4], &[6.0; 4]).expect("welch");
        assert_eq!((other.p(), other.interval(0.95)), (None, Some((1.0, 1.0))));
        assert_eq!(other.warnings, [Warning::NoSpread]);
        let half = welch(&[5.0; 4], &[6.0, 7.0]).expect("welch");
        assert_eq!(half.warnings, [Warning::OneSideConstant]);
    }

    #[test]
    fn what_has_no_difference() {
        assert_eq!(welch(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(pooled(&[1.0], &[1.0]), None);
        assert_eq!(welch(&[1.0, f64::NAN], &[1.0, 2.0]), None);
        assert_eq!(one_sample(&[f64::INFINITY, 1.0]), None);
        assert_eq!(logs(&[1.0, 0.0]), None);
        assert_eq!(logs(&[f64::INFINITY]), None);
        let one = welch(&[1.0, 2.0], &[1.0, 2.0]).expect("welch");
        assert_eq!(one.interval(1.0), None);
        assert_eq!(one.interval(f64::NAN), None);
    }

    #[test]
    fn a_side_with_one_value_is_pooled() {
        let d = pooled(&[10.0], &[1.0, 2.0, 3.0]).expect("pooled");
        assert!((d.se - (4.0_f64 / 3.0).sqrt()).abs() < 1e-15 && (d.df - 2.0).abs() < 1e-15);
    }

    fn values() -> impl Strategy<Value = Vec<f64>> {
        let value = prop_oneof![
            any::<f64>(),
            -1e3..1e3_f64,
            prop::sample::select(vec![0.0, 1e300, -1e300, 5e-324, f64::MAX, 1.0])
        ];
        prop::collection::vec(value, 0..8)
    }

    proptest! {
        #[test]
        fn nothing_is_nan(a in values(), b in values(), bound in any::<f64>()) {
            let all = [welch(&a, &b), pooled(&a, &b), one_sample(&a)];
            for d in all.into_iter().flatten() {
                prop_assert!(d.df > 0.0 && d.se >= 0.0);
                for p in [d.p(), d.p_above(bound), d.p_below(bound)].into_iter().flatten() {
                    prop_assert!((0.0..=1.0).contains(&p), "{p}");
                }
                if let Some((low, high)) = d.interval(0.95) {
                    prop_assert!(low <= d.estimate && d.estimate <= high);
                }
            }
        }

        #[test]
        fn swapping_the_sides_turns_the_sign(
            a in prop::collection::vec(-1e3..1e3_f64, 2..8),
            b in prop::collection::vec(-1e3..1e3_f64, 2..8),
        ) {
            let (one, other) = (welch(&a, &b).expect("welch"), welch(&b, &a).expect("welch"));
            prop_assert_eq!(one.estimate, -other.estimate);
            prop_assert_eq!(one.se, other.se);
        }
    }
}
