//! Bisection when levels and noise are only known from runs of the two anchors.
//!
//! Plugging estimates in makes a posterior too sure of itself; here both levels and the scale are
//! integrated on a grid around what the anchors show, with the robust noise of
//! [`crate::bisect`]. Pairing probes with anchors against drift is the caller's.

use crate::bisect::{Levels, Observation, Posterior, Prior, Scatter, log_prior, usable};
use crate::quantile;
use crate::summary::{Summary, count};

/// Grid points per level and for the logarithm of the scale.
const LEVEL_POINTS: u32 = 45;
const SCALE_POINTS: u32 = 9;
/// Half-width of the grid of a level, in standard errors of an anchor's mean.
const REACH: f64 = 6.0;
/// Scale of t with four degrees of freedom over its standard deviation, `sqrt(2)/2`.
const ROBUST_SCALE: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// The grid over which levels and scale are integrated, flat within it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelGrid {
    /// Centre of each level and the scale of robust noise.
    pub centre: Levels,
    /// Half-width for the good level.
    pub good_reach: f64,
    /// Half-width for the bad level.
    pub bad_reach: f64,
    /// Half-width for the natural logarithm of the scale.
    pub log_scale_reach: f64,
}

/// A grid around the anchors' runs (two at least of each): medians, six standard errors to both
/// sides, the scale from the pooled deviation within three of its own errors (at most a factor
/// of `e`). `None` for fewer runs, values that are not finite, or no scatter.
///
/// A level or scale known from the history of the metric is the better centre where there is one.
#[must_use]
pub fn grid_from_anchors(good: &[f64], bad: &[f64]) -> Option<LevelGrid> {
    let (a, b) = (Summary::of(good)?, Summary::of(bad)?);
    let df = count(a.n) + count(b.n) - 2.0;
    let (va, vb) = (a.sample_sd?.powi(2), b.sample_sd?.powi(2));
    let pooled = ((count(a.n) - 1.0) * va + (count(b.n) - 1.0) * vb) / df;
    let sd = pooled.sqrt();
    let reach = |n: usize| REACH * sd / count(n).sqrt();
    let grid = LevelGrid {
        centre: Levels {
            good: quantile::quantile(good, 0.5)?,
            bad: quantile::quantile(bad, 0.5)?,
            sd: sd * ROBUST_SCALE,
        },
        good_reach: reach(a.n),
        bad_reach: reach(b.n),
        log_scale_reach: (3.0 / (2.0 * df).sqrt()).min(1.0),
    };
    (sd > 0.0 && sd.is_finite() && reach(1).is_finite()).then_some(grid)
}

/// How far the anchors lie apart, in standard errors of their difference (Welch); a bisection
/// should not start below 4. `None` for fewer than two runs on a side, values that are not
/// finite, or no scatter.
#[must_use]
pub fn anchor_distance(good: &[f64], bad: &[f64]) -> Option<f64> {
    let (a, b) = (Summary::of(good)?, Summary::of(bad)?);
    let error = a.standard_error()?.hypot(b.standard_error()?);
    Some((b.mean - a.mean).abs() / error).filter(|z| z.is_finite())
}

/// Posterior of the culprit with levels and scale integrated over `grid`; runs of the anchors are
/// observations of commits 0 and `k`. "None" means one common level, flat over both levels'
/// ranges.
///
/// The likelihood is a product over the two sides, so that for each scale the levels integrate
/// separately: `sum_s [mean_g prod_(j<c) f(x_j|g,s)] [mean_b prod_(j>=c) f(x_j|b,s)]`. `None` as
/// for [`crate::bisect::posterior`] or for a grid that is not finite.
#[must_use]
pub fn posterior_on_grid(
    prior: &Prior,
    observations: &[Observation],
    grid: LevelGrid,
) -> Option<Posterior> {
    let k = prior.culprits.len();
    let logs = log_prior(prior)?;
    usable(observations, k)?;
    let reaches = [grid.good_reach, grid.bad_reach, grid.log_scale_reach];
    let sound = reaches.iter().all(|r| r.is_finite() && *r >= 0.0) && grid.centre.sd > 0.0;
    if !(sound && grid.centre.good.is_finite() && grid.centre.bad.is_finite()) {
        return None;
    }
    let mut sorted = observations.to_vec();
    sorted.sort_by_key(|seen| seen.commit);
    let values: Vec<f64> = sorted.iter().map(|seen| seen.value).collect();
    let good = around(grid.centre.good, grid.good_reach, LEVEL_POINTS);
    let bad = around(grid.centre.bad, grid.bad_reach, LEVEL_POINTS);
    let both: Vec<f64> = spanning(&good, &bad);
    let scales = around(grid.centre.sd.ln(), grid.log_scale_reach, SCALE_POINTS);
    // Per scale: evidence of every prefix as good, of every suffix as bad, of all as one.
    let mut divided = vec![Vec::new(); values.len() + 1];
    let mut one = Vec::new();
    for scale in scales.iter().map(|log| log.exp()) {
        let normaliser = -count(values.len()) * scale.ln();
        let prefixes = evidence(values.iter().copied(), &good, scale);
        let suffixes = evidence(values.iter().rev().copied(), &bad, scale);
        for ((slot, before), after) in divided.iter_mut().zip(&prefixes).zip(suffixes.iter().rev())
        {
            slot.push(normaliser + before + after);
        }
        let all = evidence(values.iter().copied(), &both, scale);
        one.push(normaliser + all.last()?);
    }
    let divided: Vec<f64> = divided.iter().map(|logs| log_mean(logs)).collect();
    let weigh = |(i, log): (usize, &f64)| {
        let left = sorted.partition_point(|seen| seen.commit <= i);
        divided.get(left).map(|evidence| log + evidence)
    };
    let culprits: Option<Vec<f64>> = logs.culprits.iter().enumerate().map(weigh).collect();
    Posterior::from_logs(&culprits?, logs.none + log_mean(&one))
}

/// Log of the mean likelihood over `levels`, of the first 0, 1, 2, ... values.
fn evidence(values: impl Iterator<Item = f64>, levels: &[f64], scale: f64) -> Vec<f64> {
    let mut at_level = vec![0.0; levels.len()];
    let mut all = vec![0.0];
    for value in values {
        for (sum, level) in at_level.iter_mut().zip(levels) {
            *sum += Scatter::Robust.log_density((value - level) / scale);
        }
        all.push(log_mean(&at_level));
    }
    all
}

fn log_mean(logs: &[f64]) -> f64 {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !largest.is_finite() {
        return largest;
    }
    let total: f64 = logs.iter().map(|l| (l - largest).exp()).sum();
    largest + (total / count(logs.len())).ln()
}

fn around(centre: f64, reach: f64, points: u32) -> Vec<f64> {
    let middle = f64::from(points - 1) / 2.0;
    (0..points)
        .map(|i| centre + reach * (f64::from(i) - middle) / middle)
        .collect()
}

/// Points over both ranges, as dense as each.
fn spanning(good: &[f64], bad: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = good.iter().chain(bad).copied().collect();
    all.sort_by(f64::total_cmp);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bisect::{best_query, median_query, posterior};
    use crate::testing::normal;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64;

    /// One bisection of `k` commits at `distance` deviations; runs taken and what was blamed.
    fn bisect(
        rng: &mut Pcg64,
        k: usize,
        culprit: Option<usize>,
        distance: f64,
    ) -> (usize, Option<usize>) {
        let truth = |c: usize| {
            if culprit.is_some_and(|b| c >= b) {
                distance
            } else {
                0.0
            }
        };
        let anchor = (32.0 / distance / distance).ceil() as usize;
        let good: Vec<f64> = (0..anchor).map(|_| normal(rng)).collect();
        let bad: Vec<f64> = (0..anchor).map(|_| truth(k) + normal(rng)).collect();
        let grid = grid_from_anchors(&good, &bad).expect("grid");
        let seen = |commit: usize| {
            move |value: &f64| Observation {
                commit,
                value: *value,
            }
        };
        let mut runs: Vec<Observation> = good
            .iter()
            .map(seen(0))
            .chain(bad.iter().map(seen(k)))
            .collect();
        let prior = Prior::uniform(k, 0.05);
        for taken in 0..400 {
            let p = posterior_on_grid(&prior, &runs, grid).expect("posterior");
            if p.none >= 0.95 {
                return (taken, None);
            }
            match p.leader() {
                Some((commit, mass)) if mass >= 0.95 => return (taken, Some(commit)),
                _ => {}
            }
            let commit = median_query(&p, |_| true).expect("query");
            runs.push(Observation {
                commit,
                value: truth(commit) + normal(rng),
            });
        }
        (400, None)
    }

    /// The table of the specification: 18 runs with anchors at K = 64, d = 2; target times 1.1.
    #[test]
    fn the_anchored_column() {
        let mut rng = Pcg64::seed_from_u64(5);
        let (mut right, mut runs) = (0, 0);
        for trial in 0..60 {
            let culprit = 1 + (trial * 37) % 64;
            let (taken, blamed) = bisect(&mut rng, 64, Some(culprit), 2.0);
            right += usize::from(blamed == Some(culprit));
            runs += taken;
        }
        assert!(right >= 54, "{right} of 60 right");
        assert!(runs <= 60 * 22, "{runs} runs");
    }

    #[test]
    fn a_tight_grid_is_the_known_posterior() {
        let levels = Levels {
            good: 0.0,
            bad: 1.0,
            sd: 0.7,
        };
        let grid = LevelGrid {
            centre: levels,
            good_reach: 0.0,
            bad_reach: 0.0,
            log_scale_reach: 0.0,
        };
        let runs =
            [(0, -0.3), (4, 0.9), (2, 0.4)].map(|(commit, value)| Observation { commit, value });
        let prior = Prior::uniform(4, 0.0);
        let integrated = posterior_on_grid(&prior, &runs, grid).expect("grid");
        let known = posterior(&prior, &runs, levels, Scatter::Robust).expect("known");
        for (a, b) in integrated.culprits.iter().zip(&known.culprits) {
            assert!((a - b).abs() < 1e-12);
        }
        assert!(best_query(&integrated, levels, |_| Some(1.0)).is_some());
    }

    #[test]
    fn anchors_that_do_not_differ() {
        let flat = [1.0, 1.1, 0.9];
        assert!(anchor_distance(&flat, &flat).is_some_and(|z| z < 1e-12));
        assert!(anchor_distance(&flat, &[2.0, 2.1, 1.9]).is_some_and(|z| z > 4.0));
        assert_eq!(anchor_distance(&[1.0], &flat), None);
        assert_eq!(grid_from_anchors(&[1.0, 1.0], &[2.0, 2.0]), None);
        assert_eq!(grid_from_anchors(&[1.0], &[2.0, 2.1]), None);
        assert_eq!(grid_from_anchors(&[1.0, f64::NAN], &[2.0, 2.1]), None);
    }

    proptest! {
        #[test]
        fn a_distribution_or_nothing(
            runs in prop::collection::vec((0_usize..5, any::<f64>()), 0..6),
            good in any::<f64>(), bad in any::<f64>(), sd in any::<f64>(), reach in any::<f64>(),
        ) {
            let runs: Vec<Observation> = runs.into_iter().map(|(commit, value)| Observation { commit, value }).collect();
            let centre = Levels { good, bad, sd };
            let grid = LevelGrid { centre, good_reach: reach, bad_reach: reach, log_scale_reach: 0.5 };
            if let Some(p) = posterior_on_grid(&Prior::uniform(4, 0.1), &runs, grid) {
                let total = p.culprits.iter().sum::<f64>() + p.none;
                prop_assert!((total - 1.0).abs() < 1e-9);
            }
        }
    }
}
