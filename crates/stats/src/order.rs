//! Intervals of a quantile between order statistics.
//!
//! Ranks only; no distribution is assumed. For events inside one run, which are not independent,
//! such an interval is a bar of plausibility and never a test.

use crate::dist::{Binomial, whole};

/// An interval from the value of one rank to that of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankInterval {
    /// Rank of the lower end, from 1; 0 when there is none (minus infinity).
    pub low: u64,
    /// Rank of the upper end; `n + 1` when there is none (infinity).
    pub high: u64,
    /// Probability that the quantile lies from the lower to below the upper value.
    pub coverage: f64,
}

impl RankInterval {
    /// The ends of the interval in ascending `values`, `None` where an end is infinite.
    #[must_use]
    pub fn of(&self, ascending: &[f64]) -> (Option<f64>, Option<f64>) {
        let at = |rank: u64| {
            let index = usize::try_from(rank.checked_sub(1)?).ok()?;
            ascending.get(index).copied()
        };
        (at(self.low), at(self.high))
    }
}

/// The interval of the `q`-quantile of `n` values that leaves at most half of `1 - level` on each
/// side (Hahn, Meeker 1991, 5.2); `None` unless `0 < q < 1`, `0 < level < 1` and `n > 0`.
#[must_use]
pub fn equal_tailed(n: u64, q: f64, level: f64) -> Option<RankInterval> {
    let below = values_below(n, q, level)?;
    let tail = 0.5 * (1.0 - level);
    let low = below.quantile(tail)?;
    let high = below.quantile(1.0 - tail)? + 1;
    Some(RankInterval {
        low,
        high,
        coverage: coverage(&below, n, low, high),
    })
}

/// The interval of the `q`-quantile of `n` values with the fewest ranks between its ends, of
/// equals the one that covers more, of those the lowest (Hahn, Meeker 1991, 5.2); `None` as for
/// [`equal_tailed`].
#[must_use]
pub fn shortest(n: u64, q: f64, level: f64) -> Option<RankInterval> {
    let below = values_below(n, q, level)?;
    // From a rank this low on, an end leaves next to nothing outside; only no end at all is lower.
    let first = below.quantile(1e-3 * (1.0 - level))?.saturating_sub(2);
    let starts = (first > 0).then_some(0).into_iter().chain(first..=n);
    let mut best: Option<RankInterval> = None;
    for low in starts {
        // The lowest upper end: K < high with at least `level` more than what lies below `low`.
        let left = if low == 0 { 0.0 } else { below.cdf(low - 1) };
        let mut high = match left + level {
            reached if reached < 1.0 => below.quantile(reached)?.max(low) + 1,
            _ => n + 1,
        };
        // The quantile may be off by one where its mass is met to the last digit.
        while high > low + 1 && coverage(&below, n, low, high - 1) >= level {
            high -= 1;
        }
        while high <= n && coverage(&below, n, low, high) < level {
            high += 1;
        }
        let covered = coverage(&below, n, low, high);
        if covered < level {
            break;
        }
        let better = best.is_none_or(|b| {
            let (own, other) = (high - low, b.high - b.low);
            own < other || own == other && covered > b.coverage * (1.0 + 1e-12)
        });
        if better {
            best = Some(RankInterval {
                low,
                high,
                coverage: covered,
            });
        }
    }
    best
}

/// Values needed so that the `q`-quantile has a finite upper (and, for `q` below one half, lower)
/// end with `1 - level` split in two halves: the smallest `n` with `max(q, 1-q)^n <= (1-level)/2`
/// (0.99 and 0.95: 368). `None` as for [`equal_tailed`].
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and a cast saturates"
)]
pub fn values_needed(q: f64, level: f64) -> Option<u64> {
    values_below(1, q, level)?;
    let needed = (0.5 * (1.0 - level)).ln() / q.max(1.0 - q).ln();
    Some((needed * (1.0 - 1e-12)).ceil().max(1.0) as u64)
}

/// Distribution of the number of values below the quantile.
fn values_below(n: u64, q: f64, level: f64) -> Option<Binomial> {
    let valid = q > 0.0 && q < 1.0 && level > 0.0 && level < 1.0 && n > 0 && whole(n) < 1e9;
    valid.then(|| Binomial::new(n, q)).flatten()
}

/// `P(low <= K < high)` of the number `K` of values below the quantile.
fn coverage(below: &Binomial, n: u64, low: u64, high: u64) -> f64 {
    let left = if low == 0 { 0.0 } else { below.cdf(low - 1) };
    let right = if high > n { 0.0 } else { below.sf(high - 1) };
    (1.0 - left - right).max(0.0)
}

/// Standard error of a median from the order statistics about it,
/// `(x_(n-k+1) - x_(k)) / (2 z)` with `z` the normal quantile of 0.995 and
/// `k = round((n+1)/2 - z sqrt(n/4))`, at least 1 (McKean, Schrader 1984). `None` with fewer than
/// five values or one that is not finite.
#[must_use]
pub fn median_error(values: &[f64]) -> Option<f64> {
    let ascending = crate::quantile::sorted(values)?;
    let n = ascending.len();
    if n < 5 {
        return None;
    }
    let z = crate::dist::normal_upper_quantile(0.005)?;
    let centre = (crate::summary::count(n) + 1.0) / 2.0;
    let reach = z * crate::summary::count(n).sqrt() / 2.0;
    // Ranks from the smallest; the mirror image counts from the largest.
    let below = (1..=n.div_ceil(2)).rev();
    let k = below
        .into_iter()
        .find(|k| crate::summary::count(*k) < centre - reach + 0.5)
        .unwrap_or(1);
    let spread = ascending.get(n - k)? - ascending.get(k - 1)?;
    let error = spread / (2.0 * z);
    error.is_finite().then_some(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_a_median() {
        // n = 25: k = round(13 - 2.5758 * 2.5) = round(6.56) = 7, ranks 7 and 19.
        let values: Vec<f64> = (1..=25).map(f64::from).collect();
        let error = median_error(&values).expect("error");
        assert!(
            (error - 12.0 / (2.0 * 2.575_829_303_548_901)).abs() < 1e-12,
            "{error}"
        );
        // Five values: the whole range.
        let error = median_error(&[3.0, 1.0, 2.0, 5.0, 4.0]).expect("error");
        assert!((error - 4.0 / (2.0 * 2.575_829_303_548_901)).abs() < 1e-12);
        assert_eq!(median_error(&[1.0; 4]), None);
        assert_eq!(median_error(&[1.0, 2.0, 3.0, 4.0, f64::NAN]), None);
        assert_eq!(median_error(&[1.0; 9]), Some(0.0));
    }

    /// 1.2533 sd / sqrt(n) for the normal distribution (Kendall, Stuart).
    #[test]
    fn error_of_a_normal_median() {
        let n = 2001;
        let quantiles: Vec<f64> = (1..=n)
            .filter_map(|i| crate::dist::normal_quantile((f64::from(i) - 0.5) / f64::from(n)))
            .collect();
        let error = median_error(&quantiles).expect("error");
        let expected = 1.2533 / f64::from(n).sqrt();
        assert!((error / expected - 1.0).abs() < 0.02, "{error} {expected}");
    }

    use proptest::prelude::*;

    #[test]
    fn the_least_sizes() {
        assert_eq!(values_needed(0.5, 0.95), Some(6));
        assert_eq!(values_needed(0.99, 0.95), Some(368));
        let five = equal_tailed(5, 0.5, 0.95).expect("interval");
        assert_eq!((five.low, five.high), (0, 6));
        let six = shortest(6, 0.5, 0.95).expect("interval");
        assert_eq!((six.low, six.high), (1, 6));
        assert_eq!(six.of(&[1., 2., 3., 4., 5., 6.]), (Some(1.0), Some(6.0)));
        assert_eq!(five.of(&[1., 2., 3., 4., 5.]), (None, None));
        assert_eq!(shortest(0, 0.5, 0.95), None);
        assert_eq!(shortest(5, f64::NAN, 0.95), None);
    }

    proptest! {
        #[test]
        fn agrees_with_trying_all(n in 1_u64..60, q in 0.01..0.99_f64, level in 0.5..0.99_f64) {
            let below = Binomial::new(n, q).expect("binomial");
            let all = (0..=n).flat_map(|i| (i + 1..=n + 1).map(move |j| (i, j)));
            let fewest = all.filter(|(i, j)| coverage(&below, n, *i, *j) >= level).map(|(i, j)| j - i).min();
            let found = shortest(n, q, level).expect("interval");
            prop_assert_eq!(Some(found.high - found.low), fewest);
            prop_assert!(found.coverage >= level);
            prop_assert!(equal_tailed(n, q, level).expect("interval").coverage >= level - 1e-9);
        }
    }
}
