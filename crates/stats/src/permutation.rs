//! Tests by relabelling runs: which side a run belongs to is all that the null leaves open.
//!
//! For distributions of events (latencies), which are dependent inside a run: the labels of whole
//! runs are exchanged, never events. Exact where the labellings are few.

use crate::special::ln_choose;
use crate::summary::count;
use crate::warning::Warning;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Labellings up to which all are tried.
const MOST_EXACT: f64 = 100_000.5;
/// Labellings drawn beyond.
const DRAWS: u32 = 20_000;

/// Outcome of a permutation test.
#[derive(Clone, Debug, PartialEq)]
pub struct Permutation {
    /// The statistic with the true labels.
    pub statistic: f64,
    /// Share of labellings with a statistic at least as large, above 0.
    pub p: f64,
    /// Smallest p-value that this many labellings allow.
    pub smallest_p: f64,
    /// What to doubt.
    pub warnings: Vec<Warning>,
}

/// Permutes the labels of `n + m` runs, the first `n` of which are side `a`; `statistic` gets for
/// each run whether it counts as `b`. All labellings where there are at most 100,000 (Fisher
/// 1935), else 20,000 draws seeded by `seed` with `(k + 1) / (draws + 1)` (Phipson, Smyth 2010).
/// Large values are evidence. `None` when a side is empty or the statistic with the true labels
/// does not exist; a labelling whose statistic does not exist counts as reaching it.
#[must_use]
pub fn permute(
    n: usize,
    m: usize,
    seed: u64,
    statistic: impl Fn(&[bool]) -> Option<f64>,
) -> Option<Permutation> {
    if n == 0 || m == 0 {
        return None;
    }
    let mut labels: Vec<bool> = (0..n + m).map(|i| i >= n).collect();
    let own = statistic(&labels).filter(|s| s.is_finite())?;
    let limit = own - 1e-12 * own.abs();
    let reaches = |labels: &[bool]| statistic(labels).is_none_or(|s| s.is_nan() || s >= limit);
    let all = ln_choose(count(n + m), count(m)).exp();
    let (mut hits, mut tried) = (0_usize, 0_usize);
    let mut warnings = Vec::new();
    if all <= MOST_EXACT {
        // In order from the first labelling, which is the true one.
        loop {
            tried += 1;
            hits += usize::from(reaches(&labels));
            if !next_labelling(&mut labels) {
                break;
            }
        }
    } else {
        // The true labelling is one of those tried.
        (hits, tried) = (1, 1);
        let mut rng = Pcg64::seed_from_u64(seed);
        for _ in 0..DRAWS {
            shuffle(&mut labels, &mut rng);
            tried += 1;
            hits += usize::from(reaches(&labels));
        }
        warnings.push(Warning::MonteCarlo { draws: DRAWS });
    }
    let tried = count(tried);
    Some(Permutation {
        statistic: own,
        p: count(hits) / tried,
        smallest_p: 1.0 / tried,
        warnings,
    })
}

/// The next labelling in lexical order of `a < b` from the last; false after the last one.
fn next_labelling(labels: &mut [bool]) -> bool {
    // The last `false, true` pair becomes `true, false`, and what follows starts afresh.
    let Some(at) = (1..labels.len())
        .rev()
        .find(|i| matches!(labels.get(i - 1..=*i), Some([false, true])))
    else {
        return false;
    };
    labels.swap(at - 1, at);
    if let Some(rest) = labels.get_mut(at + 1..) {
        rest.sort_unstable();
    }
    true
}

/// Fisher-Yates, with numbers drawn without bias.
fn shuffle(labels: &mut [bool], rng: &mut Pcg64) {
    for i in (1..labels.len()).rev() {
        let bound = u64::try_from(i).unwrap_or(u64::MAX) + 1;
        let fair = u64::MAX - u64::MAX % bound;
        let drawn = loop {
            let drawn = rng.next_u64();
            if drawn < fair {
                break drawn % bound;
            }
        };
        labels.swap(i, usize::try_from(drawn).unwrap_or(0));
    }
}

/// Distributions of events over common buckets, one list of counts per run.
#[derive(Clone, Debug, PartialEq)]
pub struct BucketedRuns {
    /// Positions of the buckets in ascending order, on the scale of the distance (logarithms for
    /// latencies).
    pub positions: Vec<f64>,
    /// For each run its counts per bucket, as shares; runs of `a` first.
    shares: Vec<Vec<f64>>,
    n: usize,
}

impl BucketedRuns {
    /// Runs of `a` and `b`, each with one count per bucket; every run weighs the same, however
    /// many events it has. `None` when a side is empty, a run has no event or another number of
    /// buckets, or the positions do not ascend.
    #[must_use]
    pub fn new(positions: Vec<f64>, a: &[Vec<u64>], b: &[Vec<u64>]) -> Option<Self> {
        let ascends =
            positions.is_sorted_by(|x, y| x < y) && positions.iter().all(|x| x.is_finite());
        let share = |run: &Vec<u64>| {
            let counts: Vec<f64> = run.iter().map(|c| crate::dist::whole(*c)).collect();
            let events: f64 = counts.iter().sum();
            (events > 0.0 && run.len() == positions.len())
                .then(|| counts.iter().map(|c| c / events).collect())
        };
        let shares: Option<Vec<Vec<f64>>> = a.iter().chain(b).map(share).collect();
        (ascends && !a.is_empty() && !b.is_empty()).then_some(Self {
            positions,
            shares: shares?,
            n: a.len(),
        })
    }

    /// Kolmogorov-Smirnov distance of the mean distributions, by permutation of runs.
    #[must_use]
    pub fn ks(&self, seed: u64) -> Option<Permutation> {
        self.test(seed, |gaps| {
            gaps.iter().map(|(gap, _)| gap.abs()).fold(0.0, f64::max)
        })
    }

    /// First Wasserstein distance of the mean distributions in the unit of the positions, by
    /// permutation of runs.
    #[must_use]
    pub fn wasserstein(&self, seed: u64) -> Option<Permutation> {
        self.test(seed, |gaps| {
            gaps.iter().map(|(gap, width)| gap.abs() * width).sum()
        })
    }

    fn test(&self, seed: u64, of: impl Fn(&[(f64, f64)]) -> f64) -> Option<Permutation> {
        let m = self.shares.len().checked_sub(self.n)?;
        permute(self.n, m, seed, |labels| Some(of(&self.gaps(labels))))
    }

    /// `F_a - F_b` after each bucket, with the distance to the next position.
    fn gaps(&self, labels: &[bool]) -> Vec<(f64, f64)> {
        let of_b = count(labels.iter().filter(|b| **b).count());
        let of_a = count(labels.len()) - of_b;
        let mut difference = vec![0.0; self.positions.len()];
        for (run, is_b) in self.shares.iter().zip(labels) {
            let weight = if *is_b { -1.0 / of_b } else { 1.0 / of_a };
            for (slot, share) in difference.iter_mut().zip(run) {
                *slot += weight * share;
            }
        }
        let widths = self.positions.windows(2).map(|pair| match pair {
            [low, high] => high - low,
            _ => 0.0,
        });
        let mut gap = 0.0;
        difference
            .iter()
            .zip(widths.chain([0.0]))
            .map(|(step, width)| {
                gap += step;
                (gap, width)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mean_difference(values: &[f64], labels: &[bool]) -> Option<f64> {
        let side = |b: bool| {
            let of: Vec<f64> = values
                .iter()
                .zip(labels)
                .filter(|(_, l)| **l == b)
                .map(|(v, _)| *v)
                .collect();
            crate::summary::mean(&of)
        };
        Some((side(true)? - side(false)?).abs())
    }

    #[test]
    fn all_labellings_of_four_and_four() {
        let values = [1.0, 2.0, 3.0, 4.0, 11.0, 12.0, 13.0, 14.0];
        let r = permute(4, 4, 0, |labels| mean_difference(&values, labels)).expect("test");
        assert_eq!(
            (r.statistic, r.p, r.smallest_p),
            (10.0, 2.0 / 70.0, 1.0 / 70.0)
        );
    }

    #[test]
    fn many_runs_are_drawn() {
        let values: Vec<f64> = (0..40).map(f64::from).collect();
        let test =
            |seed| permute(20, 20, seed, |labels| mean_difference(&values, labels)).expect("test");
        assert_eq!(test(1), test(1));
        assert!((test(1).p - 1.0 / 20_001.0).abs() < 1e-12);
    }

    #[test]
    fn runs_are_exchanged_not_events() {
        // A million events per run, but three runs per side: the p-value cannot be below 2/20.
        let near = vec![1_000_000, 0, 0];
        let far = vec![0, 0, 1_000_000];
        let runs =
            BucketedRuns::new(vec![0.0, 1.0, 2.0], &vec![near; 3], &vec![far; 3]).expect("runs");
        let (ks, w1) = (runs.ks(0).expect("ks"), runs.wasserstein(0).expect("w1"));
        assert!((ks.statistic - 1.0).abs() < 1e-12 && (w1.statistic - 2.0).abs() < 1e-12);
        assert_eq!((ks.p, w1.p), (0.1, 0.1));
    }

    #[test]
    fn what_cannot_be_permuted() {
        assert_eq!(permute(0, 3, 0, |_| Some(1.0)), None);
        assert_eq!(permute(3, 3, 0, |_| None), None);
        assert_eq!(permute(3, 3, 0, |_| Some(f64::NAN)), None);
        assert_eq!(BucketedRuns::new(vec![0.0], &[vec![0]], &[vec![1]]), None);
        assert_eq!(
            BucketedRuns::new(vec![0.0, 0.0], &[vec![1, 1]], &[vec![1, 1]]),
            None
        );
        assert_eq!(
            BucketedRuns::new(vec![0.0], &[vec![1, 2]], &[vec![1]]),
            None
        );
    }

    proptest! {
        #[test]
        fn every_labelling_once(n in 1_usize..6, m in 1_usize..6) {
            let mut labels: Vec<bool> = (0..n + m).map(|i| i >= n).collect();
            let mut seen = std::collections::BTreeSet::new();
            loop {
                prop_assert!(seen.insert(labels.clone()));
                if !next_labelling(&mut labels) { break; }
            }
            let all = ln_choose((n + m) as f64, m as f64).exp().round();
            prop_assert_eq!(seen.len() as f64, all);
        }
    }
}
