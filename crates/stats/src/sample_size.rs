//! How many runs a question takes, and what the runs at hand could have shown.
//!
//! Power of the t test by the noncentral t distribution, both tails counted. The deviation that
//! enters is itself an estimate, so plans are ranges: at the estimate and at its upper limit.
//! Costs in minutes are the caller's arithmetic.

use crate::dist::{ChiSquared, NoncentralT, StudentT};
use crate::numeric::find_root;

/// Runs per side beyond which a plan is not worth stating.
const MOST_RUNS: f64 = 1e7;

/// Runs per side that a plan needs, as a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunsNeeded {
    /// If the deviation is what was estimated.
    pub expected: u64,
    /// If the deviation is at its upper limit; `None` beyond ten million.
    pub pessimistic: Option<u64>,
}

/// Probability that a two-sided t test at level `alpha` with `df >= 1` degrees of freedom rejects
/// when its statistic has noncentrality `delta` (effect over standard error); `None` outside the
/// range of the arguments (Johnson, Kotz, Balakrishnan 1995, chapter 31).
#[must_use]
pub fn power(df: f64, delta: f64, alpha: f64) -> Option<f64> {
    let critical = StudentT::new(df)?.upper_quantile(alpha / 2.0)?;
    let shifted = NoncentralT::new(df, delta)?;
    let power = shifted.sf(critical) + shifted.cdf(-critical);
    power.is_finite().then_some(power.min(1.0))
}

/// Power of the two-sample t test with `n` runs per side (need not be whole, above 1.5) for a
/// change of `d` standard deviations of one run; `None` as for [`power`].
#[must_use]
pub fn two_sample_power(n: f64, d: f64, alpha: f64) -> Option<f64> {
    power(2.0 * n - 2.0, d * (n / 2.0).sqrt(), alpha)
}

/// Runs per side, not rounded, at which the two-sample t test at `alpha` shows a change of `d`
/// standard deviations with probability `wanted`: the solution of
/// `n = 2 (t_(1-alpha/2) + t_(wanted))^2 / d^2` with the noncentral t in place of the sum.
/// `None` for `d` of 0, beyond ten million runs, or unless `0 < alpha < wanted < 1`; at least 2.
#[must_use]
pub fn runs_per_side(d: f64, alpha: f64, wanted: f64) -> Option<f64> {
    solve(alpha, wanted, |n| two_sample_power(n, d, alpha))
}

/// Blocks, not rounded, at which the paired t test shows a mean difference of `d` standard
/// deviations of one difference; `None` as for [`runs_per_side`].
#[must_use]
pub fn blocks(d: f64, alpha: f64, wanted: f64) -> Option<f64> {
    solve(alpha, wanted, |n| power(n - 1.0, d * n.sqrt(), alpha))
}

fn solve(alpha: f64, wanted: f64, power: impl Fn(f64) -> Option<f64>) -> Option<f64> {
    if !(alpha > 0.0 && alpha < wanted && wanted < 1.0) {
        return None;
    }
    let missing = |n: f64| power(n).map_or(f64::NAN, |p| p - wanted);
    if missing(2.0) >= 0.0 {
        return Some(2.0);
    }
    let mut high = 4.0;
    while missing(high) < 0.0 {
        high *= 2.0;
        if high > MOST_RUNS {
            return None;
        }
    }
    find_root(high / 2.0, high, missing)
}

/// Whole runs per side to show a change of `delta` when one run deviates by `sd` (same unit, log
/// units for ratios), estimated with `df` degrees of freedom; the range goes to the upper limit
/// of `sd` at one-sided confidence 80 %, `sd sqrt(df / chi2_(0.2, df))`. `None` unless all are
/// above 0, or beyond ten million runs.
///
/// For equivalence `delta` is the margin, for detection the larger of margin and estimate.
#[must_use]
pub fn runs_needed(sd: f64, df: f64, delta: f64, alpha: f64, wanted: f64) -> Option<RunsNeeded> {
    needed(sd, df, |sd| runs_per_side(delta / sd, alpha, wanted))
}

/// Blocks to show a mean difference of `delta` when one difference within a block deviates by
/// `sd`; the rest is as for [`runs_needed`].
#[must_use]
pub fn blocks_needed(sd: f64, df: f64, delta: f64, alpha: f64, wanted: f64) -> Option<RunsNeeded> {
    needed(sd, df, |sd| blocks(delta / sd, alpha, wanted))
}

fn needed(sd: f64, df: f64, runs: impl Fn(f64) -> Option<f64>) -> Option<RunsNeeded> {
    let upper = upper_deviation(sd, df, 0.8)?;
    Some(RunsNeeded {
        expected: runs(sd).and_then(whole)?,
        pessimistic: runs(upper).and_then(whole),
    })
}

/// Upper confidence limit of a deviation `sd` with `df` degrees of freedom; `None` unless `sd` is
/// finite and above 0 and `0 < confidence < 1`.
#[must_use]
pub fn upper_deviation(sd: f64, df: f64, confidence: f64) -> Option<f64> {
    let low = ChiSquared::new(df)?.quantile(1.0 - confidence)?;
    let limit = sd * (df / low).sqrt();
    (sd > 0.0 && limit.is_finite()).then_some(limit)
}

/// The smallest change, in the unit of `se`, that a two-sided t test with standard error `se` and
/// `df` degrees of freedom would have shown with probability `wanted`; `None` unless `se > 0`,
/// `df >= 1` and `0 < alpha < wanted < 1`.
#[must_use]
pub fn smallest_detectable(se: f64, df: f64, alpha: f64, wanted: f64) -> Option<f64> {
    if !(se > 0.0 && alpha > 0.0 && alpha < wanted && wanted < 1.0) {
        return None;
    }
    let missing = |delta: f64| power(df, delta, alpha).map_or(f64::NAN, |p| p - wanted);
    let mut high = 2.0;
    while missing(high) < 0.0 && high < MOST_RUNS {
        high *= 2.0;
    }
    let delta = se * find_root(0.0, high, missing)?;
    delta.is_finite().then_some(delta)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 2 and ten million"
)]
fn whole(n: f64) -> Option<u64> {
    (n.is_finite() && n > 0.0).then_some(n.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn figures_of_cohen() {
        // Cohen (1988), table 2.4.1: d = 0.5, alpha 0.05, power 0.80 takes 64 per side.
        assert_eq!(runs_per_side(0.5, 0.05, 0.8).and_then(whole), Some(64));
        assert_eq!(runs_per_side(0.8, 0.05, 0.8).and_then(whole), Some(26));
        assert_eq!(blocks(0.5, 0.05, 0.8).and_then(whole), Some(34));
    }

    #[test]
    fn a_change_of_nothing_takes_forever() {
        assert_eq!(runs_per_side(0.0, 0.05, 0.8), None);
        assert_eq!(runs_per_side(1e-9, 0.05, 0.8), None);
        assert_eq!(runs_per_side(f64::NAN, 0.05, 0.8), None);
        assert_eq!(runs_per_side(1.0, 0.05, 0.01), None);
        assert_eq!(runs_needed(0.0, 4.0, 1.0, 0.05, 0.8), None);
        assert_eq!(smallest_detectable(f64::NAN, 4.0, 0.05, 0.8), None);
        assert_eq!(runs_per_side(1e200, 0.05, 0.8), Some(2.0));
    }

    #[test]
    fn the_range_goes_up() {
        let runs = runs_needed(0.02, 8.0, 0.02, 0.05, 0.8).expect("runs");
        assert_eq!(runs.expected, 17);
        assert!(runs.pessimistic.is_some_and(|n| n > 25 && n < 40));
    }

    #[test]
    fn detectable_change_and_power_agree() {
        let delta = smallest_detectable(1.0, 18.0, 0.05, 0.8).expect("delta");
        assert!((power(18.0, delta, 0.05).expect("power") - 0.8).abs() < 1e-9);
        let n = runs_per_side(delta / 5.0_f64.sqrt(), 0.05, 0.8).expect("n");
        assert!((n - 10.0).abs() < 1e-6);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn larger_changes_need_fewer(d in 0.2..3.0_f64) {
            let few = runs_per_side(d * 1.1, 0.05, 0.8).expect("runs");
            let many = runs_per_side(d, 0.05, 0.8).expect("runs");
            prop_assert!(few <= many);
        }
    }
}
