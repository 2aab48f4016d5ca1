//! Pairs (blocks): differences within each, sign flips and signed ranks.
//!
//! A pair is one run of each side close in time, so that drift cancels. The paired t test is
//! [`crate::ttest::one_sample`] of the differences. Whether the plan really paired the runs is
//! not known here.

use crate::quantile::sorted;
use crate::rank::{HodgesLehmann, Ranks, walsh_interval};
use crate::summary::count;
use crate::warning::Warning;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use std::sync::Arc;

/// Pairs up to which all sign flips are tried.
const ALL_FLIPS: usize = 16;
/// Sign flips drawn beyond.
const DRAWS: u32 = 100_000;
/// Pairs up to which the exact distribution of signed ranks is computed.
const EXACT_RANKS: usize = 200;

/// `ln b - ln a` of each pair; `None` when the lengths differ or a value is not finite and above
/// 0.
#[must_use]
pub fn log_ratios(a: &[f64], b: &[f64]) -> Option<Vec<f64>> {
    let (a, b) = (crate::ttest::logs(a)?, crate::ttest::logs(b)?);
    (a.len() == b.len()).then(|| a.iter().zip(&b).map(|(x, y)| y - x).collect())
}

/// Outcome of the sign-flip test.
#[derive(Clone, Debug, PartialEq)]
pub struct SignFlip {
    /// Two-sided p-value, above 0.
    pub p: f64,
    /// Smallest p-value that this many pairs allow.
    pub smallest_p: f64,
    /// What to doubt.
    pub warnings: Vec<Warning>,
}

/// Share of sign assignments whose mean is at least as far from 0 as the one of `differences`
/// (Fisher 1935): all `2^n` up to 16 pairs; beyond, 100,000 draws seeded by `seed`, with
/// `(k + 1) / (draws + 1)` (Phipson, Smyth 2010). `None` when there is no pair or a value is not
/// finite.
#[must_use]
pub fn sign_flip(differences: &[f64], seed: u64) -> Option<SignFlip> {
    let largest = differences.iter().map(|d| d.abs()).fold(0.0, f64::max);
    if differences.is_empty() || differences.iter().any(|d| !d.is_finite()) {
        return None;
    }
    if largest == 0.0 {
        return Some(SignFlip {
            p: 1.0,
            smallest_p: 1.0,
            warnings: vec![Warning::NoSpread],
        });
    }
    let scaled: Vec<f64> = differences.iter().map(|d| d / largest).collect();
    let sizes: f64 = scaled.iter().map(|d| d.abs()).sum();
    // Sums of the same numbers in other order differ in their last digits.
    let own = scaled.iter().sum::<f64>().abs() - 1e-12 * sizes;
    let reaches = |flips: u64| {
        let signed = scaled
            .iter()
            .enumerate()
            .map(|(i, d)| if flips >> (i % 64) & 1 == 1 { -d } else { *d });
        signed.sum::<f64>().abs() >= own
    };
    if differences.len() <= ALL_FLIPS {
        // The first sign stays, since a sum and its mirror image are equally far from 0.
        let all = 1_u64 << (differences.len() - 1);
        let hits = (0..all).filter(|flips| reaches(flips << 1)).count();
        let all = crate::dist::whole(all);
        return Some(SignFlip {
            p: count(hits) / all,
            smallest_p: 1.0 / all,
            warnings: Vec::new(),
        });
    }
    let mut rng = Pcg64::seed_from_u64(seed);
    let hits = (0..DRAWS)
        .filter(|_| {
            let mut bits = 0;
            let signed = scaled.iter().enumerate().map(|(i, d)| {
                if i % 64 == 0 {
                    bits = rng.next_u64();
                }
                if bits >> (i % 64) & 1 == 1 { -d } else { *d }
            });
            signed.sum::<f64>().abs() >= own
        })
        .count();
    let draws = f64::from(DRAWS) + 1.0;
    Some(SignFlip {
        p: (count(hits) + 1.0) / draws,
        smallest_p: 1.0 / draws,
        warnings: vec![Warning::MonteCarlo { draws: DRAWS }],
    })
}

/// Outcome of the signed-rank test.
#[derive(Clone, Debug, PartialEq)]
pub struct SignedRank {
    /// Sum of the ranks of positive differences.
    pub v: f64,
    /// Two-sided p-value, twice the smaller tail.
    pub p: f64,
    /// What to doubt.
    pub warnings: Vec<Warning>,
}

/// Signed-rank test of `differences` (Wilcoxon 1945), exact up to 200 pairs also with ties (by
/// mid-ranks), normal beyond; pairs without a difference are left out. `None` when none is left
/// or a value is not finite.
#[must_use]
pub fn signed_rank(differences: &[f64]) -> Option<SignedRank> {
    let kept: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let sizes: Vec<f64> = kept.iter().map(|d| d.abs()).collect();
    let ranks = Ranks::of(sizes.iter())?;
    if kept.is_empty() {
        return None;
    }
    let mut warnings = Vec::new();
    if kept.len() < differences.len() {
        warnings.push(Warning::ZeroDifferences);
    }
    if ranks.tied() {
        warnings.push(Warning::Ties);
    }
    let positive = kept.iter().zip(&ranks.doubled).filter(|(d, _)| **d > 0.0);
    let twice_v: usize = positive.map(|(_, rank)| *rank).sum();
    let p = if let Some(null) = sign_sums(&ranks.doubled) {
        let lower: f64 = null.get(..=twice_v)?.iter().sum();
        let upper: f64 = null.get(twice_v..)?.iter().rev().sum();
        2.0 * lower.min(upper)
    } else {
        warnings.push(Warning::Approximate);
        let all: usize = ranks.doubled.iter().sum();
        let variance: f64 = ranks.doubled.iter().map(|r| count(*r).powi(2)).sum::<f64>() / 16.0;
        let off = (0.5 * count(twice_v) - 0.25 * count(all)).abs();
        2.0 * crate::dist::normal_sf((off - 0.5).max(0.0) / variance.sqrt())
    };
    Some(SignedRank {
        v: 0.5 * count(twice_v),
        p: p.min(1.0),
        warnings,
    })
}

/// The location of `differences`, the median of all means of two (Walsh averages), with the
/// interval that inverts the signed-rank test (Hodges, Lehmann 1963). `None` when there is no
/// value, one is not finite, or there are more than 2,000.
#[must_use]
pub fn walsh_location(differences: &[f64], level: f64) -> Option<HodgesLehmann> {
    let n = differences.len();
    if n > 2000 || !(level > 0.0 && level < 1.0) {
        return None;
    }
    let averages: Vec<f64> = differences
        .iter()
        .enumerate()
        .flat_map(|(i, x)| {
            differences
                .iter()
                .take(i + 1)
                .map(move |y| x / 2.0 + y / 2.0)
        })
        .collect();
    let ordered = sorted(&averages)?;
    let sizes: Vec<f64> = differences.iter().map(|d| d.abs()).collect();
    let tied = Ranks::of(sizes.iter())?.tied();
    let ranks: Vec<usize> = (1..=n).collect();
    let null: Option<Arc<[f64]>> = sign_sums(&ranks).map(Into::into);
    let size = count(n);
    let variance = size * (size + 1.0) * (2.0 * size + 1.0) / 24.0;
    walsh_interval(&ordered, level, null, variance, tied)
}

/// Probability of each sum of scores that are taken or left with equal chance; `None` when there
/// are too many.
fn sign_sums(scores: &[usize]) -> Option<Vec<f64>> {
    if scores.len() > EXACT_RANKS {
        return None;
    }
    let mut chances = vec![0.0; scores.iter().sum::<usize>() + 1];
    *chances.first_mut()? = 1.0;
    let mut reached = 0;
    for score in scores {
        for sum in (0..=reached).rev() {
            let half = chances.get(sum)? / 2.0;
            *chances.get_mut(sum)? = half;
            *chances.get_mut(sum + score)? += half;
        }
        reached += score;
    }
    Some(chances)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_in_one_direction() {
        let d = [1.0, 2.0, 3.0, 4.0, 5.0];
        let flips = sign_flip(&d, 0).expect("flips");
        assert_eq!((flips.p, flips.smallest_p), (2.0 / 32.0, 2.0 / 32.0));
        let ranks = signed_rank(&d).expect("ranks");
        assert_eq!((ranks.v, ranks.p), (15.0, 2.0 / 32.0));
        let location = walsh_location(&d, 0.9).expect("location");
        assert_eq!(location.estimate, 3.0);
    }

    #[test]
    fn many_pairs_are_drawn() {
        let d: Vec<f64> = (0..40)
            .map(|i| if i % 2 == 0 { 1.0 } else { -0.9 })
            .collect();
        let one = sign_flip(&d, 7).expect("flips");
        assert_eq!(one, sign_flip(&d, 7).expect("flips"));
        assert!(one.p > 0.5 && one.warnings == [Warning::MonteCarlo { draws: DRAWS }]);
        let sure: Vec<f64> = vec![1.0; 100];
        assert!(sign_flip(&sure, 7).expect("flips").p > 0.0);
    }

    #[test]
    fn zeros_and_nothing() {
        assert_eq!(sign_flip(&[0.0, 0.0], 1).expect("flips").p, 1.0);
        assert_eq!(sign_flip(&[], 1), None);
        assert_eq!(signed_rank(&[0.0]), None);
        assert_eq!(signed_rank(&[f64::NAN]), None);
        assert_eq!(walsh_location(&[], 0.95), None);
        assert_eq!(log_ratios(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(log_ratios(&[1.0], &[0.0]), None);
        let r = signed_rank(&[0.0, 1.0, -1.0]).expect("ranks");
        assert_eq!(r.warnings, [Warning::ZeroDifferences, Warning::Ties]);
        assert_eq!(r.p, 1.0);
    }

    proptest! {
        #[test]
        fn any_input(d in prop::collection::vec(any::<f64>(), 0..9)) {
            if let Some(f) = sign_flip(&d, 3) {
                prop_assert!(f.p >= f.smallest_p && f.p <= 1.0);
            }
            if let Some(r) = signed_rank(&d) {
                prop_assert!(r.p > 0.0 && r.p <= 1.0);
            }
            if let Some(w) = walsh_location(&d, 0.95) {
                prop_assert!(w.interval.0 <= w.estimate && w.estimate <= w.interval.1);
            }
        }

        #[test]
        fn signs_of_untied_ranks_sum_to_one(n in 1_usize..60) {
            let sums = sign_sums(&(1..=n).collect::<Vec<_>>()).expect("sums");
            prop_assert!((sums.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }
}
