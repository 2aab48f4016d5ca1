//! Whether the runs of one variant drift with the order in which they were made, and whether
//! that order lets drift or a period pass for a difference between variants.
//!
//! Values are in run order. The checks are independent of each other and uncorrected: they
//! invalidate a comparison, they never support one. Change points have their own module.

use crate::dist::{ChiSquared, normal_sf, normal_upper_quantile};
use crate::quantile;
use crate::rank::Ranks;
use crate::summary::{Summary, count};

/// Runs below which Kendall's test without ties enumerates its null distribution.
const EXACT_BELOW: usize = 50;

/// Kendall's rank correlation of the values with their order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kendall {
    /// Tau-b, -1..=1.
    pub tau: f64,
    /// Two-sided p.
    pub p: f64,
    /// Whether `p` enumerates the null distribution.
    pub exact: bool,
}

/// Slope per run with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// Median of all pairwise slopes, in the metric's unit per run.
    pub slope: f64,
    /// Interval at the level asked for; `None` for two runs or all values equal.
    pub interval: Option<(f64, f64)>,
}

/// Correlation of neighbouring runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Autocorrelation {
    /// Autocorrelation at lag 1, divisor the full sum of squares.
    pub lag1: f64,
    /// Ljung and Box's Q at lag 1, `n (n+2) r^2 / (n-1)`.
    pub ljung_box: f64,
    /// Its upper tail with one degree of freedom.
    pub ljung_box_p: f64,
    /// Von Neumann's ratio, 2 for independent runs, lower for drift, higher for alternation.
    pub von_neumann: f64,
    /// Two-sided p of the ratio by its normal approximation; `None` below four runs.
    pub von_neumann_p: Option<f64>,
}

/// Kendall's tau of `values` against their order (Kendall 1938); p is twice the smaller exact
/// tail for fewer than 50 values without ties, else by the normal approximation with the
/// variance for ties, both as R's `cor.test`. `None` for fewer than two values, one that is not
/// finite, or all equal.
#[must_use]
pub fn kendall(values: &[f64]) -> Option<Kendall> {
    let ties = tie_sizes(values)?;
    let n = values.len();
    let pairs = count(n) * (count(n) - 1.0) / 2.0;
    let (mut concordant, mut discordant) = (0_usize, 0_usize);
    for (i, first) in values.iter().enumerate() {
        for later in values.iter().skip(i + 1) {
            concordant += usize::from(later > first);
            discordant += usize::from(later < first);
        }
    }
    let score = count(concordant) - count(discordant);
    let tied: f64 = ties.iter().map(|t| t * (t - 1.0) / 2.0).sum();
    let tau = score / (pairs * (pairs - tied)).sqrt();
    if !tau.is_finite() {
        return None;
    }
    let exact = n < EXACT_BELOW && tied == 0.0;
    let p = if exact {
        let smaller = inversion_tail(n, concordant.min(discordant));
        (2.0 * smaller).min(1.0)
    } else {
        2.0 * normal_sf(score.abs() / score_variance(n, &ties).sqrt())
    };
    Some(Kendall { tau, p, exact })
}

/// Share of the permutations of `n` with at most `most` inversions (Kendall 1938).
fn inversion_tail(n: usize, most: usize) -> f64 {
    let mut shares = vec![1.0];
    for size in 2..=n {
        let len = (shares.len() + size - 1).min(most + 1);
        let mut window = 0.0;
        let mut next = Vec::with_capacity(len);
        for i in 0..len {
            window += shares.get(i).copied().unwrap_or(0.0);
            if let Some(gone) = i.checked_sub(size).and_then(|i| shares.get(i)) {
                window -= gone;
            }
            next.push(window / count(size));
        }
        shares = next;
    }
    shares.iter().take(most + 1).sum()
}

/// Variance of Kendall's score, and of the number of positive slopes up to a factor, with ties
/// (Sen 1968, equation 2.6): `(n(n-1)(2n+5) - sum t(t-1)(2t+5)) / 18`.
fn score_variance(n: usize, ties: &[f64]) -> f64 {
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    (term(count(n)) - ties.iter().map(|t| term(*t)).sum::<f64>()) / 18.0
}

/// Sizes of the groups of equal values; `None` when a value is not finite.
fn tie_sizes(values: &[f64]) -> Option<Vec<f64>> {
    let ranks = Ranks::of(values.iter())?;
    Some(ranks.groups.into_iter().map(count).collect())
}

/// Theil and Sen's slope of `values` over their order with the interval of Sen (1968) at
/// `1 - alpha`, ranks rounded to even; `None` for fewer than two values, one that is not finite,
/// or a slope out of range.
#[must_use]
pub fn theil_sen(values: &[f64], alpha: f64) -> Option<Slope> {
    let ties = tie_sizes(values)?;
    let mut slopes = Vec::with_capacity(values.len() * values.len().saturating_sub(1) / 2);
    for (i, first) in values.iter().enumerate() {
        for (distance, later) in values.iter().skip(i + 1).enumerate() {
            slopes.push((later - first) / count(distance + 1));
        }
    }
    let slopes = quantile::sorted(&slopes)?;
    let slope = quantile::of_sorted(&slopes, 0.5)?;
    let spread = normal_upper_quantile(alpha / 2.0)? * score_variance(values.len(), &ties).sqrt();
    let (lower, upper) = (
        ((count(slopes.len()) - spread) / 2.0).round_ties_even() - 1.0,
        ((count(slopes.len()) + spread) / 2.0).round_ties_even(),
    );
    let interval = (slopes.len() > 1 && spread > 0.0).then_some(());
    let interval = interval.and_then(|()| Some((at(&slopes, lower)?, at(&slopes, upper)?)));
    Some(Slope { slope, interval })
}

/// The order statistic at a rank from 0, clamped to those that exist.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to the ranks of a slice"
)]
fn at(sorted: &[f64], rank: f64) -> Option<f64> {
    let last = count(sorted.len().checked_sub(1)?);
    sorted.get(rank.clamp(0.0, last) as usize).copied()
}

/// Lag-1 autocorrelation, Ljung and Box's Q (1978) and von Neumann's ratio (1941) of successive
/// differences, `sum (x_(t+1) - x_t)^2 / sum (x_t - mean)^2`, whose variance for independent
/// normal runs is `4 (n-2) / (n^2-1)`; `None` for fewer than two values, one that is not finite,
/// or all equal.
#[must_use]
pub fn autocorrelation(values: &[f64]) -> Option<Autocorrelation> {
    let summary = Summary::of(values)?;
    let n = count(summary.n);
    let scale = (summary.max - summary.mean).max(summary.mean - summary.min);
    if values.len() < 2 || !(scale > 0.0 && scale.is_finite()) {
        return None;
    }
    let parts: Vec<f64> = values.iter().map(|v| (v - summary.mean) / scale).collect();
    let squares: f64 = parts.iter().map(|d| d * d).sum();
    let neighbours = || parts.iter().zip(parts.iter().skip(1));
    let lag1 = neighbours().map(|(a, b)| a * b).sum::<f64>() / squares;
    let von_neumann = neighbours().map(|(a, b)| (b - a).powi(2)).sum::<f64>() / squares;
    let ljung_box = n * (n + 2.0) * lag1 * lag1 / (n - 1.0);
    let deviation = (4.0 * (n - 2.0) / (n * n - 1.0)).sqrt();
    let von_neumann_p = 2.0 * normal_sf((von_neumann - 2.0).abs() / deviation);
    Some(Autocorrelation {
        lag1,
        ljung_box,
        ljung_box_p: ChiSquared::new(1.0)?.sf(ljung_box),
        von_neumann,
        von_neumann_p: (values.len() >= 4).then_some(von_neumann_p),
    })
}

/// What an order of runs confounds with the variants; shares of the variants' sum of squares,
/// 0..=1, where 1 means that the two cannot be told apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrderCheck {
    /// Share explained by a straight drift over the session.
    pub drift: f64,
    /// Share explained by odd and even positions, a period of two runs.
    pub alternation: f64,
    /// Smallest period, at most half the runs, with which the order of variants repeats exactly:
    /// any disturbance of that period is an alias of the variants. `None` when there is none.
    pub period: Option<usize>,
}

/// Checks the order in which variants were run (one label per run, any numbers) against drift
/// and periods; `None` with fewer than four runs or fewer than two variants.
///
/// The shares are the squared correlation ratio of position, or its parity, on the variant.
#[must_use]
pub fn order_check(variants: &[usize]) -> Option<OrderCheck> {
    let n = variants.len();
    let first = variants.first()?;
    if n < 4 || variants.iter().all(|v| v == first) {
        return None;
    }
    let positions: Vec<f64> = (0..n).map(count).collect();
    let parity: Vec<f64> = (0..n).map(|i| count(i % 2)).collect();
    let repeats = |p: &usize| {
        variants
            .iter()
            .zip(variants.iter().skip(*p))
            .all(|(a, b)| a == b)
    };
    Some(OrderCheck {
        drift: explained(variants, &positions)?,
        alternation: explained(variants, &parity)?,
        period: (2..=n / 2).find(repeats),
    })
}

/// Squared correlation ratio of `values` on the groups named by `labels`.
fn explained(labels: &[usize], values: &[f64]) -> Option<f64> {
    let all = Summary::of(values)?;
    let mut groups: Vec<(usize, f64)> =
        labels.iter().copied().zip(values.iter().copied()).collect();
    groups.sort_by_key(|group| group.0);
    let mut between = 0.0;
    for group in groups.chunk_by(|a, b| a.0 == b.0) {
        let of_group: Vec<f64> = group.iter().map(|(_, v)| *v).collect();
        between += count(group.len()) * (Summary::of(&of_group)?.mean - all.mean).powi(2);
    }
    let total = count(all.n) * all.population_sd?.powi(2);
    Some((between / total).clamp(0.0, 1.0)).filter(|share| share.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rise_without_exception() {
        let values: Vec<f64> = (0..6).map(f64::from).collect();
        let k = kendall(&values).expect("kendall");
        assert_eq!(k.tau, 1.0);
        assert!((k.p - 2.0 / 720.0).abs() < 1e-15);
        let slope = theil_sen(&values, 0.05).expect("slope");
        assert_eq!((slope.slope, slope.interval), (1.0, Some((1.0, 1.0))));
    }

    #[test]
    fn the_null_distribution_is_a_distribution() {
        for n in [2, 5, 9, 49] {
            assert!((inversion_tail(n, n * (n - 1) / 2) - 1.0).abs() < 1e-12);
        }
        // 1, 3, 5, 6, 5, 3, 1 permutations of four with 0..=6 inversions.
        assert!((inversion_tail(4, 2) - 9.0 / 24.0).abs() < 1e-15);
    }

    #[test]
    fn ties_use_the_normal_approximation() {
        // Score 8 of pairs 10, two tied pairs: tau-b = 8 / sqrt(10 * 8).
        let k = kendall(&[1.0, 1.0, 2.0, 2.0, 3.0]).expect("kendall");
        assert!((k.tau - 8.0 / 80.0_f64.sqrt()).abs() < 1e-15);
        assert!(!k.exact);
        let variance: f64 = (5.0 * 4.0 * 15.0 - 2.0 * 2.0 * 9.0) / 18.0;
        assert!((k.p - 2.0 * normal_sf(8.0 / variance.sqrt())).abs() < 1e-15);
    }

    #[test]
    fn alternation_is_above_two() {
        let a = autocorrelation(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0]).expect("autocorrelation");
        assert!(a.von_neumann > 3.0 && a.lag1 < -0.8);
        assert!(a.von_neumann_p.is_some_and(|p| p < 0.05));
    }

    #[test]
    fn constants_and_too_few() {
        assert_eq!(kendall(&[3.0; 5]), None);
        assert_eq!(kendall(&[3.0]), None);
        assert_eq!(kendall(&[3.0, f64::NAN]), None);
        assert_eq!(autocorrelation(&[0.0; 4]), None);
        assert_eq!(autocorrelation(&[1.0]), None);
        let flat = theil_sen(&[3.0; 5], 0.05).expect("slope");
        assert_eq!((flat.slope, flat.interval), (0.0, None));
        assert_eq!(theil_sen(&[1.0, f64::INFINITY], 0.05), None);
    }

    #[test]
    fn orders_that_confound() {
        let split = order_check(&[0, 0, 0, 1, 1, 1]).expect("check");
        assert!(split.drift > 0.7 && split.period.is_none());
        let strict = order_check(&[0, 1, 0, 1, 0, 1]).expect("check");
        assert_eq!((strict.alternation, strict.period), (1.0, Some(2)));
        let random = order_check(&[0, 1, 1, 0, 1, 0, 0, 1]).expect("check");
        assert_eq!((random.drift, random.period), (0.0, None));
        assert_eq!(order_check(&[0, 0, 0, 0]), None);
        assert_eq!(order_check(&[0, 1]), None);
    }

    proptest! {
        #[test]
        fn finite_or_nothing(values in prop::collection::vec(any::<f64>(), 0..12), alpha in any::<f64>()) {
            if let Some(k) = kendall(&values) {
                prop_assert!(k.tau.abs() <= 1.0 + 1e-12 && (0.0..=1.0).contains(&k.p));
            }
            if let Some(s) = theil_sen(&values, alpha) {
                prop_assert!(s.slope.is_finite());
            }
            if let Some(a) = autocorrelation(&values) {
                prop_assert!(a.lag1.is_finite() && a.von_neumann.is_finite());
            }
        }

        #[test]
        fn the_interval_holds_the_slope(values in prop::collection::vec(-1e3..1e3_f64, 4..30)) {
            let s = theil_sen(&values, 0.05).expect("slope");
            if let Some((low, high)) = s.interval {
                prop_assert!(low <= s.slope && s.slope <= high);
            }
        }
    }
}
