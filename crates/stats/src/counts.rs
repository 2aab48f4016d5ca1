//! Failures counted among runs: Fisher, Boschloo, Barnard, intervals of shares, runs needed.
//!
//! Exact tests of two shares. Whether a run failed is decided elsewhere; a run that was dropped
//! silently makes every figure here wrong.

use crate::dist::{Beta, Binomial, normal_upper_quantile, whole};
use crate::numeric::find_root;
use crate::special::ln_choose;

/// Cells of the table of all outcomes up to which the unconditional tests run.
const MOST_CELLS: u64 = 1_000_000;
/// Shares tried before the largest chance is refined.
const SHARES: u32 = 400;
/// Sums whose logarithms are equal to this many digits count as equal.
const EQUAL: f64 = 1e-7;

/// Failures among the runs of two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FailCounts {
    fail_a: u64,
    n_a: u64,
    fail_b: u64,
    n_b: u64,
}

impl FailCounts {
    /// `(failed, runs)` of base and new side; `None` when a side has no run, more failures than
    /// runs, or more than 10^9 runs.
    #[must_use]
    pub fn new((fail_a, n_a): (u64, u64), (fail_b, n_b): (u64, u64)) -> Option<Self> {
        let valid = |fails: u64, n: u64| fails <= n && n > 0 && n <= 1_000_000_000;
        (valid(fail_a, n_a) && valid(fail_b, n_b)).then_some(Self {
            fail_a,
            n_a,
            fail_b,
            n_b,
        })
    }

    /// Difference of the shares, new minus base, between -1 and 1.
    #[must_use]
    pub fn difference(&self) -> f64 {
        whole(self.fail_b) / whole(self.n_b) - whole(self.fail_a) / whole(self.n_a)
    }

    /// Two-sided p-value of Fisher's exact test: all tables with the same margins that are at
    /// most as likely (Fisher 1935). `None` when there are more than a million such tables.
    #[must_use]
    pub fn fisher_p(&self) -> Option<f64> {
        let table = Conditional::of(self)?;
        let own = table.weights.get(table.index(self.fail_b)?)?;
        let (mut all, mut as_far) = (0.0, 0.0);
        for weight in &table.weights {
            all += weight.exp();
            if *weight <= own + EQUAL {
                as_far += weight.exp();
            }
        }
        Some((as_far / all).min(1.0))
    }

    /// Odds ratio of failing (new over base), the conditional maximum-likelihood estimate given
    /// the margins; `None` when it is infinite, 0 at the other end (Cornfield 1956).
    #[must_use]
    pub fn odds_ratio(&self) -> Option<f64> {
        let table = Conditional::of(self)?;
        let own = table.index(self.fail_b)?;
        if own == 0 {
            return Some(0.0);
        }
        if own + 1 == table.weights.len() {
            return None;
        }
        let target = whole(self.fail_b);
        find_root(-700.0, 700.0, |log_odds| table.mean(log_odds) - target).map(f64::exp)
    }

    /// Two-sided p-value of Boschloo's test: twice the smaller one-sided chance of a table whose
    /// Fisher p-value is at most this one's, at the least favourable common share (Boschloo 1970).
    /// 1 when no run or every run failed; `None` above a million possible tables.
    #[must_use]
    pub fn boschloo_p(&self) -> Option<f64> {
        if self.uninformative() {
            return Some(1.0);
        }
        let more = self.boschloo_one_sided()?;
        let turned = Self {
            fail_a: self.n_a - self.fail_a,
            fail_b: self.n_b - self.fail_b,
            ..*self
        };
        let less = turned.boschloo_one_sided()?;
        Some((2.0 * more.min(less)).min(1.0))
    }

    /// Two-sided p-value of Barnard's test with the pooled score statistic, at the least
    /// favourable common share (Barnard 1947; Suissa, Shuster 1985). 1 and `None` as for
    /// [`FailCounts::boschloo_p`].
    #[must_use]
    pub fn barnard_p(&self) -> Option<f64> {
        if self.uninformative() {
            return Some(1.0);
        }
        self.cells()?;
        let own = self.pooled_score(self.fail_a, self.fail_b).abs() * (1.0 - 1e-12);
        let region = self.region(|a, b| self.pooled_score(a, b).abs() >= own);
        Some(self.largest_chance(&region))
    }

    /// Interval of the difference of shares of probability `level`, from Wilson's intervals of
    /// each (Newcombe 1998, method 10); `None` unless `0 < level < 1`.
    #[must_use]
    pub fn newcombe(&self, level: f64) -> Option<(f64, f64)> {
        let (low_a, high_a) = wilson(self.fail_a, self.n_a, level)?;
        let (low_b, high_b) = wilson(self.fail_b, self.n_b, level)?;
        let share_a = whole(self.fail_a) / whole(self.n_a);
        let share_b = whole(self.fail_b) / whole(self.n_b);
        let difference = self.difference();
        let below = (share_b - low_b).hypot(high_a - share_a);
        let above = (high_b - share_b).hypot(share_a - low_a);
        Some((
            (difference - below).max(-1.0),
            (difference + above).min(1.0),
        ))
    }

    fn uninformative(&self) -> bool {
        let fails = self.fail_a + self.fail_b;
        fails == 0 || fails == self.n_a + self.n_b
    }

    fn cells(&self) -> Option<u64> {
        let cells = (self.n_a + 1).checked_mul(self.n_b + 1)?;
        (cells <= MOST_CELLS).then_some(cells)
    }

    /// `P(more failures in b)`, ordered by Fisher's one-sided p-value.
    fn boschloo_one_sided(&self) -> Option<f64> {
        self.cells()?;
        let upper = |fail_a: u64, fail_b: u64| {
            let at = Self {
                fail_a,
                fail_b,
                ..*self
            };
            Conditional::of(&at).and_then(|table| table.upper_tail(fail_b))
        };
        let own = upper(self.fail_a, self.fail_b)? * (1.0 + EQUAL);
        // For each number of failures in a, the first in b that is at least as extreme; it never
        // falls as failures in a rise.
        let mut region = Vec::new();
        let mut first = 0;
        for a in 0..=self.n_a {
            while first <= self.n_b && upper(a, first)? > own {
                first += 1;
            }
            region.push(
                (first <= self.n_b)
                    .then_some((first, self.n_b))
                    .into_iter()
                    .collect(),
            );
        }
        Some(self.largest_chance(&region))
    }

    fn pooled_score(&self, fail_a: u64, fail_b: u64) -> f64 {
        let (n, m) = (whole(self.n_a), whole(self.n_b));
        let share = whole(fail_a + fail_b) / (n + m);
        let variance = share * (1.0 - share) * (1.0 / n + 1.0 / m);
        if variance > 0.0 {
            (whole(fail_b) / m - whole(fail_a) / n) / variance.sqrt()
        } else {
            0.0
        }
    }

    /// For each number of failures in `a` the stretches of failures in `b` that `inside` holds.
    fn region(&self, inside: impl Fn(u64, u64) -> bool) -> Vec<Vec<(u64, u64)>> {
        let row = |a: u64| {
            let mut stretches: Vec<(u64, u64)> = Vec::new();
            for b in (0..=self.n_b).filter(|b| inside(a, *b)) {
                match stretches.last_mut() {
                    Some((_, end)) if *end + 1 == b => *end = b,
                    _ => stretches.push((b, b)),
                }
            }
            stretches
        };
        (0..=self.n_a).map(row).collect()
    }

    /// The largest chance of a region over all common shares.
    fn largest_chance(&self, region: &[Vec<(u64, u64)>]) -> f64 {
        let chance = |share: f64| self.chance(region, share).unwrap_or(0.0);
        let share = |i: u32| (f64::from(i) + 0.5) / f64::from(SHARES);
        let grid: Vec<f64> = (0..SHARES).map(|i| chance(share(i))).collect();
        let top = grid.iter().copied().fold(0.0, f64::max);
        // Refined around every peak that could be the highest.
        let mut best = top;
        for (i, value) in (0..SHARES).zip(&grid) {
            let beside = |step: i64| {
                let at = usize::try_from(i64::from(i) + step).ok();
                at.and_then(|at| grid.get(at)).copied().unwrap_or(0.0)
            };
            if *value >= 0.9 * top && *value >= beside(-1) && *value >= beside(1) {
                let half = 1.0 / f64::from(SHARES);
                best = best.max(peak(share(i) - half, share(i) + half, &chance));
            }
        }
        best.min(1.0)
    }

    fn chance(&self, region: &[Vec<(u64, u64)>], share: f64) -> Option<f64> {
        if !(0.0..=1.0).contains(&share) {
            return None;
        }
        let (side_a, side_b) = (
            Binomial::new(self.n_a, share)?,
            Binomial::new(self.n_b, share)?,
        );
        let masses: Vec<f64> = (0..=self.n_b).map(|k| side_b.pmf(k)).collect();
        let mut from_top = vec![0.0; masses.len() + 1];
        let mut to_here = vec![0.0; masses.len() + 1];
        for (k, mass) in masses.iter().enumerate() {
            *to_here.get_mut(k + 1)? = to_here.get(k)? + mass;
        }
        for (k, mass) in masses.iter().enumerate().rev() {
            *from_top.get_mut(k)? = from_top.get(k + 1)? + mass;
        }
        let mut sum = 0.0;
        for (a, stretches) in (0..).zip(region) {
            let mut row = 0.0;
            for (start, end) in stretches {
                let (start, end) = (usize::try_from(*start).ok()?, usize::try_from(*end).ok()?);
                row += if end + 1 == masses.len() {
                    *from_top.get(start)?
                } else {
                    to_here.get(end + 1)? - to_here.get(start)?
                };
            }
            if row > 0.0 {
                sum += row * side_a.pmf(a);
            }
        }
        Some(sum)
    }
}

/// The highest value of `f` between `low` and `high`, by golden sections.
fn peak(low: f64, high: f64, f: &impl Fn(f64) -> f64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let (mut low, mut high) = (low.max(0.0), high.min(1.0));
    let mut best = f64::max(f(low), f(high));
    for _ in 0..40 {
        let (left, right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        let (at_left, at_right) = (f(left), f(right));
        best = best.max(at_left).max(at_right);
        if at_left > at_right {
            high = right;
        } else {
            low = left;
        }
    }
    best
}

/// Failures of `b` given the margins: logarithms of the hypergeometric weights, the largest 0.
struct Conditional {
    fewest: u64,
    weights: Vec<f64>,
}

impl Conditional {
    fn of(counts: &FailCounts) -> Option<Self> {
        let fails = counts.fail_a + counts.fail_b;
        let fewest = fails.saturating_sub(counts.n_a);
        let most = fails.min(counts.n_b);
        if most - fewest > 1_000_000 {
            return None;
        }
        let weight = |b: u64| {
            ln_choose(whole(counts.n_b), whole(b)) + ln_choose(whole(counts.n_a), whole(fails - b))
        };
        let mut weights: Vec<f64> = (fewest..=most).map(weight).collect();
        let top = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        weights.iter_mut().for_each(|w| *w -= top);
        Some(Self { fewest, weights })
    }

    fn index(&self, fails: u64) -> Option<usize> {
        usize::try_from(fails.checked_sub(self.fewest)?).ok()
    }

    /// Chance of `fails` or more in `b`.
    fn upper_tail(&self, fails: u64) -> Option<f64> {
        let index = self.index(fails)?;
        let upper: f64 = self.weights.get(index..)?.iter().map(|w| w.exp()).sum();
        let lower: f64 = self.weights.get(..index)?.iter().map(|w| w.exp()).sum();
        Some(upper / (lower + upper))
    }

    /// Mean failures of `b` at these odds.
    fn mean(&self, log_odds: f64) -> f64 {
        let tilted = || {
            (self.fewest..)
                .zip(&self.weights)
                .map(|(b, w)| (b, w + whole(b) * log_odds))
        };
        let top = tilted().map(|(_, w)| w).fold(f64::NEG_INFINITY, f64::max);
        let (mut all, mut sum) = (0.0, 0.0);
        for (b, weight) in tilted() {
            let weight = (weight - top).exp();
            all += weight;
            sum += weight * whole(b);
        }
        sum / all
    }
}

/// Wilson's interval of a share of probability `level` (Wilson 1927); `None` without a run, with
/// more failures than runs, or unless `0 < level < 1`.
#[must_use]
pub fn wilson(fails: u64, n: u64, level: f64) -> Option<(f64, f64)> {
    let z = critical(fails, n, level).and_then(normal_upper_quantile)?;
    let (n, share, square) = (whole(n), whole(fails) / whole(n), z * z);
    let middle = (share + square / (2.0 * n)) / (1.0 + square / n);
    let half = z / (1.0 + square / n) * (share * (1.0 - share) / n + square / (4.0 * n * n)).sqrt();
    let low = if fails == 0 { 0.0 } else { middle - half };
    let high = if share >= 1.0 { 1.0 } else { middle + half };
    Some((low.max(0.0), high.min(1.0)))
}

/// Exact interval of a share of probability at least `level` (Clopper, Pearson 1934); `None` as
/// for [`wilson`].
#[must_use]
pub fn clopper_pearson(fails: u64, n: u64, level: f64) -> Option<(f64, f64)> {
    let tail = critical(fails, n, level)?;
    let (x, rest) = (whole(fails), whole(n - fails));
    let low = if fails == 0 {
        0.0
    } else {
        Beta::new(x, rest + 1.0)?.quantile(tail)?
    };
    let high = if fails == n {
        1.0
    } else {
        Beta::new(x + 1.0, rest)?.upper_quantile(tail)?
    };
    Some((low, high))
}

/// Mass on one side of an interval, when the arguments make sense.
fn critical(fails: u64, n: u64, level: f64) -> Option<f64> {
    (n > 0 && fails <= n && level > 0.0 && level < 1.0).then_some(0.5 * (1.0 - level))
}

/// Runs needed to see at least one failure with probability `chance` when each run fails with
/// probability `share`: `ln(1 - chance) / ln(1 - share)`, rounded up (5 % and 95 %: 59). `None`
/// unless both lie between 0 and 1, exclusive.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and a cast saturates"
)]
pub fn runs_to_see(share: f64, chance: f64) -> Option<u64> {
    let inside = |p: f64| p > 0.0 && p < 1.0;
    if !inside(share) || !inside(chance) {
        return None;
    }
    let runs = (-chance).ln_1p() / (-share).ln_1p();
    // A whole number must not be rounded up for its last digit.
    Some((runs * (1.0 - 1e-12)).ceil().max(1.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(a: (u64, u64), b: (u64, u64)) -> FailCounts {
        FailCounts::new(a, b).expect("counts")
    }

    #[test]
    fn three_of_three_is_not_yet_significant() {
        let t = table((0, 3), (3, 3));
        assert!((t.fisher_p().expect("p") - 0.1).abs() < 1e-12);
        // 2 (1/2)^6: only this table is as extreme.
        assert!((t.boschloo_p().expect("p") - 0.031_25).abs() < 1e-9);
        assert_eq!(t.odds_ratio(), None);
    }

    #[test]
    fn runs_for_a_flake() {
        assert_eq!(runs_to_see(0.05, 0.95), Some(59));
        assert_eq!(runs_to_see(0.5, 0.75), Some(2));
        assert_eq!(runs_to_see(0.0, 0.95), None);
        assert_eq!(runs_to_see(f64::NAN, 0.95), None);
        assert!(runs_to_see(1e-300, 0.95).is_some());
    }

    #[test]
    fn nothing_failed() {
        let t = table((0, 20), (0, 20));
        assert_eq!(
            (t.fisher_p(), t.boschloo_p(), t.barnard_p()),
            (Some(1.0), Some(1.0), Some(1.0))
        );
        let all = table((4, 4), (5, 5));
        assert_eq!(all.boschloo_p(), Some(1.0));
    }

    #[test]
    fn what_is_no_count() {
        assert_eq!(FailCounts::new((0, 0), (1, 2)), None);
        assert_eq!(FailCounts::new((3, 2), (1, 2)), None);
        assert_eq!(FailCounts::new((3, u64::MAX), (1, 2)), None);
        assert_eq!(clopper_pearson(1, 0, 0.95), None);
        assert_eq!(wilson(1, 3, 1.0), None);
        assert_eq!(table((1, 100_000), (2, 100_000)).boschloo_p(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_table(n in 1_u64..15, m in 1_u64..15, a in 0_u64..15, b in 0_u64..15) {
            let t = table((a.min(n), n), (b.min(m), m));
            let (fisher, boschloo) = (t.fisher_p().expect("p"), t.boschloo_p().expect("p"));
            for p in [fisher, boschloo, t.barnard_p().expect("p")] {
                prop_assert!(p > 0.0 && p <= 1.0);
            }
            let swapped = table((b.min(m), m), (a.min(n), n));
            prop_assert!((swapped.boschloo_p().expect("p") - boschloo).abs() < 1e-6 * boschloo);
            let (low, high) = t.newcombe(0.95).expect("interval");
            prop_assert!(low <= t.difference() + 1e-12 && t.difference() <= high + 1e-12);
            let (low, high) = clopper_pearson(a.min(n), n, 0.95).expect("interval");
            let share = a.min(n) as f64 / n as f64;
            prop_assert!(low <= share && share <= high);
        }
    }
}
