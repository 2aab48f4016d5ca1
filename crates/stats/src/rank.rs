//! Two samples by ranks: exact Mann-Whitney with ties, Hodges-Lehmann, Brunner-Munzel.
//!
//! The exact null distribution counts the subsets of (mid-)ranks with each sum; no normal
//! approximation where runs are few, and none hidden where they are many. Mann-Whitney tests
//! whether one side tends to be larger, `P(A < B) + P(A = B)/2 = 1/2`, **not** medians.

use crate::dist::{normal_quantile, normal_sf};
use crate::quantile::{of_sorted, sorted};
use crate::summary::{Summary, count};
use crate::ttest::{Difference, satterthwaite};
use crate::warning::Warning;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Additions that an exact null distribution may take.
const EXACT_WORK: usize = 60_000_000;
/// Pairs of values that an estimate over all pairs may take.
const MOST_PAIRS: usize = 4_000_000;

/// Null distributions of untied samples, by their sizes; keep one for many comparisons.
#[derive(Clone, Debug, Default)]
pub struct NullCache {
    untied: BTreeMap<(usize, usize), Option<Arc<[f64]>>>,
}

impl NullCache {
    /// Probabilities of `U = 0..=n m` for untied samples of `n` and `m` values (Mann, Whitney
    /// 1947); `None` when they would take too long.
    pub fn untied(&mut self, n: usize, m: usize) -> Option<Arc<[f64]>> {
        let key = (n.min(m), n.max(m));
        let entry = self.untied.entry(key);
        entry
            .or_insert_with(|| {
                let ranks: Vec<usize> = (0..n + m).collect();
                // The smallest possible sum is 0 + 1 + ... and becomes U = 0.
                let sums = subset_sums(&ranks, key.0)?;
                let smallest = key.0 * key.0.saturating_sub(1) / 2;
                Some(sums.get(smallest..=smallest + n * m)?.into())
            })
            .clone()
    }
}

/// Outcome of the Mann-Whitney test.
#[derive(Clone, Debug, PartialEq)]
pub struct MannWhitney {
    /// Pairs with `b > a`, ties counting half.
    pub u: f64,
    /// `u / (n m)`: how often a run of `b` is larger than one of `a` (common-language effect).
    pub superiority: f64,
    /// Cliff's delta, `2 superiority - 1`.
    pub cliffs_delta: f64,
    /// Exact two-sided p-value, twice the smaller tail; `None` when it would take too long.
    pub p_exact: Option<f64>,
    /// Exact p-value of a deviation from `n m / 2` at least this large, which differs from
    /// `p_exact` only with ties.
    pub p_exact_deviation: Option<f64>,
    /// p-value of the normal approximation with ties and continuity corrected; `None` when all
    /// values are equal.
    pub p_normal: Option<f64>,
    /// Smallest two-sided exact p-value that these sizes and ties allow.
    pub smallest_p: Option<f64>,
    /// What to doubt.
    pub warnings: Vec<Warning>,
}

impl MannWhitney {
    /// The exact p-value, else the approximate one, else 1 (all values equal).
    #[must_use]
    pub fn p(&self) -> f64 {
        self.p_exact.or(self.p_normal).unwrap_or(1.0)
    }
}

/// Mann-Whitney test of `b` against `a`, exact also with ties (Mann, Whitney 1947; conditional
/// distribution of mid-ranks by the shift algorithm of Streitberg, Roehmel 1986). `None` when a
/// side is empty or a value is not finite.
#[must_use]
pub fn mann_whitney(a: &[f64], b: &[f64], cache: &mut NullCache) -> Option<MannWhitney> {
    let (n, m) = (a.len(), b.len());
    if n == 0 || m == 0 {
        return None;
    }
    let ranks = Ranks::of(a.iter().chain(b))?;
    let sum_b: usize = ranks.doubled.iter().skip(n).sum();
    // Twice U, so that ties stay whole numbers.
    let twice_u = sum_b - m * (m + 1);
    let superiority = count(twice_u) / (2.0 * count(n) * count(m));
    let mut warnings = Vec::new();
    let tails = if ranks.tied() {
        warnings.push(Warning::Ties);
        tied_tails(&ranks.doubled, n, m)
    } else {
        cache
            .untied(n, m)
            .and_then(|null| RankTails::of(&null, twice_u / 2, n * m))
    };
    if tails.is_none() {
        warnings.push(Warning::Approximate);
    }
    Some(MannWhitney {
        u: 0.5 * count(twice_u),
        superiority,
        cliffs_delta: 2.0 * superiority - 1.0,
        p_exact: tails.map(|t| (2.0 * t.lower.min(t.upper)).min(1.0)),
        p_exact_deviation: tails.map(|t| t.deviation.min(1.0)),
        p_normal: normal_p(&ranks, twice_u, n, m),
        smallest_p: tails.map(|t| (2.0 * t.smallest).min(1.0)),
        warnings,
    })
}

/// Exact tails of a rank sum.
#[derive(Clone, Copy)]
struct RankTails {
    lower: f64,
    upper: f64,
    deviation: f64,
    smallest: f64,
}

impl RankTails {
    /// Tails of probabilities `null` of the scores `0..` at `at`, whose middle is `twice_middle /
    /// 2`.
    fn of(null: &[f64], at: usize, twice_middle: usize) -> Option<Self> {
        let distance = |score: usize| (2 * score).abs_diff(twice_middle);
        let own = distance(at);
        let mut scored = null.iter().enumerate();
        let deviation = scored
            .by_ref()
            .filter(|(score, _)| distance(*score) >= own)
            .map(|(_, p)| p)
            .sum();
        let attainable = |p: &&f64| **p > 0.0;
        let first = null.iter().find(attainable)?;
        let last = null.iter().rev().find(attainable)?;
        Some(Self {
            lower: null.get(..=at)?.iter().sum(),
            upper: null.get(at..)?.iter().rev().sum(),
            deviation,
            smallest: first.min(*last),
        })
    }
}

/// Tails of the rank sum of the last `m` doubled mid-ranks given the ties.
fn tied_tails(doubled: &[usize], n: usize, m: usize) -> Option<RankTails> {
    let total: usize = doubled.iter().sum();
    let sum_b: usize = doubled.iter().skip(n).sum();
    // The smaller side makes the shorter table; its tails are those of the other one, swapped.
    let (size, sum) = if n < m {
        (n, total - sum_b)
    } else {
        (m, sum_b)
    };
    let null = subset_sums(doubled, size)?;
    // A sum of `size` doubled ranks has the mean size (N + 1).
    let tails = RankTails::of(&null, sum, 2 * size * (n + m + 1))?;
    Some(if n < m {
        RankTails {
            lower: tails.upper,
            upper: tails.lower,
            ..tails
        }
    } else {
        tails
    })
}

/// Probability of each sum of `size` of the `scores`, all subsets being equally likely (shift
/// algorithm of Streitberg, Roehmel 1986); `None` when it would take too long.
fn subset_sums(scores: &[usize], size: usize) -> Option<Vec<f64>> {
    let mut largest = scores.to_vec();
    largest.sort_unstable();
    let most: usize = largest.iter().rev().take(size).sum();
    let work = scores.len().checked_mul(size)?.checked_mul(most + 1)?;
    if work > EXACT_WORK || scores.len() > 1000 {
        return None;
    }
    let width = most + 1;
    let mut tables = vec![vec![0.0; width]; size + 1];
    *tables.first_mut()?.first_mut()? = 1.0;
    for (seen, score) in scores.iter().enumerate() {
        for taken in (1..=size.min(seen + 1)).rev() {
            let (before, from) = tables.split_at_mut(taken);
            let (before, here) = (before.last()?, from.first_mut()?);
            for (slot, add) in here.iter_mut().skip(*score).zip(before) {
                *slot += add;
            }
        }
    }
    let mut counts = tables.pop()?;
    let all: f64 = counts.iter().sum();
    for value in &mut counts {
        *value /= all;
    }
    Some(counts)
}

/// Two-sided p-value of the normal approximation, corrected for ties and continuity (Lehmann
/// 1975).
fn normal_p(ranks: &Ranks, twice_u: usize, n: usize, m: usize) -> Option<f64> {
    let (pairs, all) = (count(n) * count(m), count(n + m));
    let ties: f64 = ranks
        .groups
        .iter()
        .map(|t| count(*t).powi(3) - count(*t))
        .sum();
    let variance = pairs / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    let off = (0.5 * count(twice_u) - 0.5 * pairs).abs();
    let z = (off - 0.5).max(0.0) / variance.sqrt();
    (variance > 0.0).then(|| (2.0 * normal_sf(z)).min(1.0))
}

/// Ranks of a pooled sample.
pub(crate) struct Ranks {
    /// Twice the mid-rank of each value, in the order of the input; the smallest rank is 1.
    pub(crate) doubled: Vec<usize>,
    /// Sizes of the groups of equal values, in ascending order of the values.
    pub(crate) groups: Vec<usize>,
}

impl Ranks {
    /// Ranks of `values`; `None` when one is not finite.
    pub(crate) fn of<'a>(values: impl Iterator<Item = &'a f64>) -> Option<Self> {
        let mut keyed: Vec<(f64, usize)> = values.copied().zip(0..).collect();
        if keyed.iter().any(|(v, _)| !v.is_finite()) {
            return None;
        }
        keyed.sort_by(|x, y| x.0.total_cmp(&y.0));
        let mut doubled = vec![0; keyed.len()];
        let mut groups = Vec::new();
        let mut before = 0;
        for group in keyed.chunk_by(|x, y| x.0 == y.0) {
            for (_, i) in group {
                *doubled.get_mut(*i)? = 2 * before + group.len() + 1;
            }
            before += group.len();
            groups.push(group.len());
        }
        Some(Self { doubled, groups })
    }

    pub(crate) fn tied(&self) -> bool {
        self.groups.iter().any(|size| *size > 1)
    }

    fn midranks(&self) -> Vec<f64> {
        self.doubled.iter().map(|r| 0.5 * count(*r)).collect()
    }
}

/// A location by the median of pairs, and its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct HodgesLehmann {
    /// The estimate, in the unit of the values.
    pub estimate: f64,
    /// Between order statistics of the pairs, in the same unit.
    pub interval: (f64, f64),
    /// Probability with which the interval covers, for untied samples.
    pub attained_level: f64,
    /// What to doubt.
    pub warnings: Vec<Warning>,
}

/// The shift from `a` to `b`, the median of all `n m` differences, with the interval that inverts
/// the Mann-Whitney test (Hodges, Lehmann 1963). Exact where [`NullCache::untied`] is, and then
/// for continuous values; with ties it is conservative and says so. `None` when a side is empty,
/// a value or difference is not finite, or there are more than 4 million pairs.
#[must_use]
pub fn hodges_lehmann(
    a: &[f64],
    b: &[f64],
    level: f64,
    cache: &mut NullCache,
) -> Option<HodgesLehmann> {
    let pairs = a.len().checked_mul(b.len())?;
    if pairs == 0 || pairs > MOST_PAIRS || !(level > 0.0 && level < 1.0) {
        return None;
    }
    let differences: Vec<f64> = a
        .iter()
        .flat_map(|x| b.iter().map(move |y| y - x))
        .collect();
    let ordered = sorted(&differences)?;
    let tied = Ranks::of(a.iter().chain(b))?.tied();
    let spread = count(pairs) * count(a.len() + b.len() + 1) / 12.0;
    walsh_interval(
        &ordered,
        level,
        cache.untied(a.len(), b.len()),
        spread,
        tied,
    )
}

/// Median and rank interval of ordered pairs whose null distribution of counts is `null`, else
/// normal with variance `variance`.
pub(crate) fn walsh_interval(
    ordered: &[f64],
    level: f64,
    null: Option<Arc<[f64]>>,
    variance: f64,
    tied: bool,
) -> Option<HodgesLehmann> {
    let tail = 0.5 * (1.0 - level);
    let mut warnings = Vec::new();
    if tied {
        warnings.push(Warning::Ties);
    }
    let (cut, outside) = match null {
        Some(null) => exact_cut(&null, tail),
        None => {
            warnings.push(Warning::Approximate);
            approximate_cut(count(ordered.len()), variance, tail)?
        }
    };
    let cut = if cut == 0 {
        warnings.push(Warning::LevelNotReached);
        1
    } else {
        cut
    };
    let (low, high) = (ordered.get(cut - 1)?, ordered.get(ordered.len() - cut)?);
    Some(HodgesLehmann {
        estimate: of_sorted(ordered, 0.5)?,
        interval: (*low, *high),
        attained_level: 1.0 - 2.0 * outside,
        warnings,
    })
}

/// How many pairs to leave out at each end, and the mass that is left outside on one side: the
/// smallest count whose lower tail reaches `tail`, of which at least one is kept.
fn exact_cut(null: &[f64], tail: f64) -> (usize, f64) {
    let mut below = 0.0;
    for (score, p) in null.iter().enumerate() {
        let reached = below + p;
        // A tail that is met exactly must not depend on the last digit of the sum.
        if reached >= tail * (1.0 - 1e-13) {
            let first = null.first().copied().unwrap_or(0.0);
            return (score, if score == 0 { first } else { below });
        }
        below = reached;
    }
    (0, 0.0)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and half the number of pairs"
)]
fn approximate_cut(pairs: f64, variance: f64, tail: f64) -> Option<(usize, f64)> {
    let off = normal_quantile(tail)?.abs() * variance.sqrt();
    let cut = (0.5 * pairs - off).round().clamp(0.0, 0.5 * pairs);
    Some((cut as usize, tail))
}

/// The Brunner-Munzel test: `estimate` is `P(A < B) + P(A = B)/2 - 1/2` with its standard error
/// and Satterthwaite degrees of freedom, whatever the variances (Brunner, Munzel 2000). Where the
/// sides do not overlap the standard error is 0 and a warning says so; believe it from 10 runs
/// per side. `None` with fewer than two values on a side or one that is not finite.
#[must_use]
pub fn brunner_munzel(a: &[f64], b: &[f64]) -> Option<Difference> {
    let (n, m) = (count(a.len()), count(b.len()));
    let all = Ranks::of(a.iter().chain(b))?.midranks();
    let (all_a, all_b) = all.split_at_checked(a.len())?;
    let within_a = Ranks::of(a.iter())?.midranks();
    let within_b = Ranks::of(b.iter())?.midranks();
    // Placements: how many of the other side lie below each value.
    let placements = |all: &[f64], own: &[f64]| {
        let below: Vec<f64> = all.iter().zip(own).map(|(x, y)| x - y).collect();
        Summary::of(&below)
    };
    let (of_a, of_b) = (placements(all_a, &within_a)?, placements(all_b, &within_b)?);
    let (error_a, error_b) = (of_a.standard_error()? / m, of_b.standard_error()? / n);
    let mut warnings = Vec::new();
    if a.len().min(b.len()) < 10 {
        warnings.push(Warning::TooFewRuns { need: 10 });
    }
    let df = satterthwaite(&[(error_a, n - 1.0), (error_b, m - 1.0)]).unwrap_or_else(|| {
        warnings.push(Warning::Separated);
        n + m - 2.0
    });
    let estimate = of_b.mean / n - 0.5;
    Difference::new(estimate, error_a.hypot(error_b), df, warnings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mwu(a: &[f64], b: &[f64]) -> MannWhitney {
        mann_whitney(a, b, &mut NullCache::default()).expect("test")
    }

    #[test]
    fn separated_five_by_five() {
        let r = mwu(&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0, 8.0, 9.0, 10.0]);
        assert!((r.p() - 2.0 / 252.0).abs() < 1e-15);
        assert_eq!((r.u, r.superiority, r.cliffs_delta), (25.0, 1.0, 1.0));
        assert_eq!(r.smallest_p, r.p_exact);
    }

    #[test]
    fn all_equal_is_no_evidence() {
        let r = mwu(&[5.0; 5], &[5.0; 5]);
        assert_eq!((r.p_exact, r.p_normal, r.p()), (Some(1.0), None, 1.0));
        assert_eq!(r.warnings, [Warning::Ties]);
        let zeros = mwu(&[0.0, -0.0], &[0.0, -0.0]);
        assert_eq!(zeros.u, 2.0);
    }

    #[test]
    fn many_runs_are_approximated_aloud() {
        let a: Vec<f64> = (0..400).map(|i| f64::from(i) * 1.7).collect();
        let b: Vec<f64> = (0..400).map(|i| f64::from(i) * 1.7 + 0.3).collect();
        let r = mwu(&a, &b);
        assert_eq!(
            (r.p_exact, r.warnings.as_slice()),
            (None, [Warning::Approximate].as_slice())
        );
        assert!(r.p() > 0.9);
    }

    #[test]
    fn too_few_runs_for_the_level() {
        let hl =
            hodges_lehmann(&[1.0, 2.0], &[4.0, 8.0], 0.95, &mut NullCache::default()).expect("hl");
        assert_eq!((hl.estimate, hl.interval), (4.5, (2.0, 7.0)));
        assert!(hl.warnings.contains(&Warning::LevelNotReached));
        // 1 - 2/6: one of the six orders at each end.
        assert!((hl.attained_level - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn brunner_munzel_without_overlap() {
        let d = brunner_munzel(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).expect("bm");
        assert_eq!((d.estimate, d.se, d.p()), (0.5, 0.0, None));
        assert!(d.warnings.contains(&Warning::Separated));
        assert_eq!(brunner_munzel(&[1.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn brunner_munzel_of_the_paper() {
        // Pain scores of Brunner and Munzel (2000): W = 3.1375, p = 0.005786.
        let a = [1., 2., 1., 1., 1., 1., 1., 1., 1., 1., 2., 4., 1., 1.];
        let b = [3., 3., 4., 3., 1., 2., 3., 1., 1., 5., 4.];
        let d = brunner_munzel(&a, &b).expect("bm");
        assert!((d.t().expect("t") - 3.137_467_482_302_950_5).abs() < 1e-9);
        assert!((d.p().expect("p") - 0.005_786_208_666_151_5).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn exact_p_agrees_with_enumeration(
            a in prop::collection::vec(0..6_i32, 1..6), b in prop::collection::vec(0..6_i32, 1..6)
        ) {
            let a: Vec<f64> = a.into_iter().map(f64::from).collect();
            let b: Vec<f64> = b.into_iter().map(f64::from).collect();
            let (n, m) = (a.len(), b.len());
            let pooled: Vec<f64> = a.iter().chain(&b).copied().collect();
            let u = |mask: u32| -> f64 {
                let side = |i: usize| mask >> i & 1 == 1;
                let mut u = 0.0;
                for i in (0..n + m).filter(|i| side(*i)) {
                    for j in (0..n + m).filter(|j| !side(*j)) {
                        u += if pooled[i] > pooled[j] { 1.0 } else if pooled[i] == pooled[j] { 0.5 } else { 0.0 };
                    }
                }
                u
            };
            let own = u(((1_u32 << m) - 1) << n);
            let all: Vec<f64> = (0..1_u32 << (n + m)).filter(|mask| mask.count_ones() as usize == m).map(u).collect();
            let share = |test: &dyn Fn(f64) -> bool| all.iter().filter(|v| test(**v)).count() as f64 / all.len() as f64;
            let r = mwu(&a, &b);
            prop_assert_eq!(r.u, own);
            let double = (2.0 * share(&|v| v <= own).min(share(&|v| v >= own))).min(1.0);
            prop_assert!((r.p_exact.expect("p") - double).abs() < 1e-12);
            let middle = (n * m) as f64 / 2.0;
            let deviation = share(&|v| (v - middle).abs() >= (own - middle).abs());
            prop_assert!((r.p_exact_deviation.expect("p") - deviation).abs() < 1e-12);
        }

        #[test]
        fn any_input(a in prop::collection::vec(any::<f64>(), 0..6), b in prop::collection::vec(any::<f64>(), 0..6)) {
            let mut cache = NullCache::default();
            if let Some(r) = mann_whitney(&a, &b, &mut cache) {
                prop_assert!(r.p() > 0.0 && r.p() <= 1.0);
            }
            if let Some(hl) = hodges_lehmann(&a, &b, 0.95, &mut cache) {
                prop_assert!(hl.interval.0 <= hl.estimate && hl.estimate <= hl.interval.1);
            }
            if let Some(p) = brunner_munzel(&a, &b).and_then(|d| d.p()) {
                prop_assert!((0.0..=1.0).contains(&p));
            }
        }
    }
}
