//! Change points of a history of one metric: where its level moved, by how much and how surely.
//!
//! Prices of [`crate::segmentation`] that hold under correlated, heavy-tailed noise: the penalty
//! follows the long-run variance of a first-order autoregression, and an outlier costs a bounded
//! amount. Works on the values given; histories of positive metrics are given as logarithms.
//! There is no p-value here: a maximum over all places has none without a simulation.

use crate::quantile;
use crate::segmentation::{self, Pricing, cost, level, point_cost, segment};
use crate::summary::count;

/// Median absolute deviation of a normal distribution, in standard deviations.
const NORMAL_MAD: f64 = 0.674_489_750_196_081_7;
/// Largest autocorrelation believed.
const MOST_PHI: f64 = 0.95;
/// Penalty over long-run variance times the logarithm of the length.
const PENALTY: f64 = 3.0;
/// Deviations beyond which a point counts as an outlier (Fearnhead, Rigaill 2019).
const OUTLIER: f64 = 3.0;
/// Fewest points of a segment.
const SHORTEST: usize = 3;
/// Log-likelihood below the best at which a place is still possible.
const LIKELY: f64 = 2.0;

/// The noise of a series around its levels, robust against the changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Lag-1 autocorrelation, 0..=0.95.
    pub phi: f64,
    /// Deviation of one point.
    pub sd: f64,
    /// Long-run deviation, `sd sqrt((1 + phi) / (1 - phi))`.
    pub long_run_sd: f64,
}

/// A place where the level moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// First point of the new level.
    pub index: usize,
    /// First and last index that are within two units of log-likelihood of the best.
    pub possible: (usize, usize),
    /// Level before.
    pub before: f64,
    /// Level after.
    pub after: f64,
}

/// First-order autocorrelation by robust differences, not clipped:
/// `median |x_(t+2) - x_t|^2 / median |x_(t+1) - x_t|^2 - 1` (Chakar, Lebarbier, Levy-Leduc,
/// Robin 2017); `None` for fewer than three values, one that is not finite, or a median
/// difference of 0.
#[must_use]
pub fn robust_phi(values: &[f64]) -> Option<f64> {
    let (near, far) = (median_step(values, 1)?, median_step(values, 2)?);
    let phi = (far / near).powi(2) - 1.0;
    phi.is_finite().then_some(phi)
}

/// Noise of a series with few changes: `sd` is the median absolute difference of neighbours over
/// `0.6745 sqrt(2 (1 - phi))`; `None` for fewer than three values, one that is not finite, or
/// all equal.
///
/// Where more than half of the neighbours are equal the mean absolute difference stands in for
/// the median (`sd = mean sqrt(pi) / 2` for normal noise) and `phi` is 0.
#[must_use]
pub fn noise(values: &[f64]) -> Option<Noise> {
    let (phi, sd) = match robust_phi(values) {
        Some(phi) => {
            let phi = phi.clamp(0.0, MOST_PHI);
            let step = median_step(values, 1)?;
            (phi, step / NORMAL_MAD / (2.0 * (1.0 - phi)).sqrt())
        }
        None => {
            let mean = crate::summary::mean(&steps(values, 1)?)?;
            (0.0, mean * std::f64::consts::PI.sqrt() / 2.0)
        }
    };
    let long_run_sd = sd * ((1.0 + phi) / (1.0 - phi)).sqrt();
    let usable = values.len() > 2 && sd > 0.0 && long_run_sd.is_finite();
    usable.then_some(Noise {
        phi,
        sd,
        long_run_sd,
    })
}

/// Change points of `values` (in order of the history; logarithms for positive metrics), each
/// point weighted by the runs behind it (`weights`, empty for equal), changes of less than
/// `smallest` merged away; `None` where there is no series of at least three finite values.
///
/// Biweight cost with a bound of 3 `sd`, penalty `3 long_run_sd^2 ln n`, segments of three points
/// at least (Fearnhead, Rigaill 2019; Chakar et al. 2017). A constant series has none. Weights
/// count relative to their mean.
#[must_use]
pub fn change_points(values: &[f64], weights: &[f64], smallest: f64) -> Option<Vec<ChangePoint>> {
    if values.len() < SHORTEST || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let Some(noise) = noise(values) else {
        let first = values.first()?;
        return values.iter().all(|v| v == first).then(Vec::new);
    };
    let bound = OUTLIER * noise.sd;
    let pricing = Pricing {
        penalty: PENALTY * noise.long_run_sd.powi(2) * count(values.len()).ln(),
        bound: Some(bound),
        shortest: SHORTEST,
    };
    let relative = relative_weights(weights)?;
    let mut changes = segment(values, &relative, pricing)?.changes;
    merge(values, &mut changes, bound, smallest);
    locate(values, &changes, bound, noise.long_run_sd)
}

/// Weights over their mean, so that noise and penalty keep their meaning.
fn relative_weights(weights: &[f64]) -> Option<Vec<f64>> {
    if weights.is_empty() {
        return Some(Vec::new());
    }
    let mean = crate::summary::mean(weights)?;
    Some(weights.iter().map(|w| w / mean).collect())
}

/// Removes the smallest change below `smallest`, one after the other.
fn merge(values: &[f64], changes: &mut Vec<usize>, bound: f64, smallest: f64) {
    loop {
        let levels = levels(values, changes, bound);
        let steps = levels.windows(2).map(|pair| match pair {
            [before, after] => (after - before).abs(),
            _ => f64::INFINITY,
        });
        match steps.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((index, step)) if step < smallest && index < changes.len() => {
                changes.remove(index);
            }
            _ => return,
        }
    }
}

/// The level of each segment.
fn levels(values: &[f64], changes: &[usize], bound: f64) -> Vec<f64> {
    segments(values, changes)
        .filter_map(|part| level(part, Some(bound)))
        .collect()
}

fn segments<'a>(values: &'a [f64], changes: &'a [usize]) -> impl Iterator<Item = &'a [f64]> {
    let starts = [0].into_iter().chain(changes.iter().copied());
    let ends = changes.iter().copied().chain([values.len()]);
    starts
        .zip(ends)
        .map(|(from, to)| values.get(from..to).unwrap_or(&[]))
}

/// Adds levels and possible places: those whose cost, the two levels held, exceeds the least by
/// at most two units of log-likelihood, `4 long_run_sd^2`.
fn locate(values: &[f64], changes: &[usize], bound: f64, sd: f64) -> Option<Vec<ChangePoint>> {
    let levels = levels(values, changes, bound);
    let mut found = Vec::with_capacity(changes.len());
    for (i, index) in changes.iter().enumerate() {
        let start = i
            .checked_sub(1)
            .and_then(|i| changes.get(i))
            .copied()
            .unwrap_or(0);
        let end = changes.get(i + 1).copied().unwrap_or(values.len());
        let (before, after) = (*levels.get(i)?, *levels.get(i + 1)?);
        let part = values.get(start..end)?;
        let mut running = cost(part, after, Some(bound));
        let mut profile = Vec::with_capacity(part.len());
        for value in part {
            running += point_cost(*value, before, Some(bound));
            running -= point_cost(*value, after, Some(bound));
            profile.push(running);
        }
        // Entry k is the cost of a change before point start + k + 1; the last would be none.
        profile.pop();
        let least = profile.iter().copied().fold(f64::INFINITY, f64::min);
        let near = |cost: &f64| *cost <= least + 2.0 * LIKELY * sd * sd;
        let first = profile
            .iter()
            .position(near)
            .map_or(*index, |k| start + k + 1);
        let last = profile
            .iter()
            .rposition(near)
            .map_or(*index, |k| start + k + 1);
        found.push(ChangePoint {
            index: *index,
            possible: (first.min(*index), last.max(*index)),
            before,
            after,
        });
    }
    Some(found)
}

/// The first division that E-divisive would make: the index of the first point of the right part
/// and the statistic of [`segmentation::energy_profile`], largest, the earliest where several
/// are; `None` for fewer than two values or one that is not finite.
///
/// A detector of changes of shape for short windows; its p-value takes permutations of blocks.
#[must_use]
pub fn energy_division(values: &[f64]) -> Option<(usize, f64)> {
    let profile = segmentation::energy_profile(values)?;
    let mut best: Option<(usize, f64)> = None;
    for (i, statistic) in profile.into_iter().enumerate() {
        if best.is_none_or(|(_, b)| statistic > b) {
            best = Some((i + 1, statistic));
        }
    }
    best
}

fn steps(values: &[f64], lag: usize) -> Option<Vec<f64>> {
    let pairs = values.iter().zip(values.iter().skip(lag));
    let steps: Vec<f64> = pairs.map(|(a, b)| (b - a).abs()).collect();
    steps.iter().all(|s| s.is_finite()).then_some(steps)
}

fn median_step(values: &[f64], lag: usize) -> Option<f64> {
    quantile::quantile(&steps(values, lag)?, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::normal;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64;

    fn noise_series(rng: &mut Pcg64, n: usize, phi: f64) -> Vec<f64> {
        let mut state = normal(rng);
        let innovation = (1.0 - phi * phi).sqrt();
        let mut next = || {
            let value = state;
            state = phi * state + innovation * normal(rng);
            value
        };
        (0..n).map(|_| next()).collect()
    }

    fn flagged(phi: f64, series: usize) -> f64 {
        let mut rng = Pcg64::seed_from_u64(7);
        let any = (0..series).filter(|_| {
            let x = noise_series(&mut rng, 200, phi);
            change_points(&x, &[], 0.0).is_some_and(|c| !c.is_empty())
        });
        count(any.count()) / count(series)
    }

    /// The targets: 1 % of independent, 5 % of AR(0.3) null series of 200 points.
    #[test]
    fn null_series_are_left_alone() {
        let (independent, correlated) = (flagged(0.0, 1000), flagged(0.3, 1000));
        assert!(independent <= 0.01, "{independent}");
        assert!(correlated <= 0.05, "{correlated}");
    }

    /// The target: 98 % of changes of two deviations found.
    #[test]
    fn two_deviations_are_found() {
        let mut rng = Pcg64::seed_from_u64(11);
        let hits = (0..400).filter(|_| {
            let mut x = noise_series(&mut rng, 200, 0.0);
            x.iter_mut().skip(100).for_each(|v| *v += 2.0);
            let found = change_points(&x, &[], 0.0).expect("series");
            found.iter().any(|c| c.index.abs_diff(100) <= 5)
        });
        let share = count(hits.count()) / 400.0;
        assert!(share >= 0.98, "{share}");
    }

    #[test]
    fn the_place_is_within_the_possible() {
        let mut rng = Pcg64::seed_from_u64(3);
        let (mut inside, mut all) = (0, 0);
        for _ in 0..200 {
            let mut x = noise_series(&mut rng, 100, 0.0);
            x.iter_mut().skip(50).for_each(|v| *v += 3.0);
            // Short series whose noise looks correlated show nothing: no place to be right about.
            for change in change_points(&x, &[], 0.0).expect("series") {
                all += 1;
                inside += usize::from(change.possible.0 <= 50 && 50 <= change.possible.1);
            }
        }
        assert!(all > 150 && inside * 100 >= all * 93, "{inside} of {all}");
    }

    #[test]
    fn small_changes_are_merged() {
        let wiggle = |i: u32| if i.is_multiple_of(2) { 0.001 } else { -0.001 };
        let x: Vec<f64> = (0..60)
            .map(|i| wiggle(i) + f64::from(u8::from(i >= 20)) * 0.05 + f64::from(u8::from(i >= 40)))
            .collect();
        let all = change_points(&x, &[], 0.0).expect("series");
        assert_eq!(all.iter().map(|c| c.index).collect::<Vec<_>>(), [20, 40]);
        let large = change_points(&x, &[], 0.2).expect("series");
        assert_eq!(large.iter().map(|c| c.index).collect::<Vec<_>>(), [40]);
        assert!((large[0].after - large[0].before - 1.0).abs() < 0.05);
    }

    #[test]
    fn constants_and_exact_steps() {
        assert_eq!(change_points(&[5.0; 20], &[], 0.0), Some(vec![]));
        assert_eq!(change_points(&[5.0; 2], &[], 0.0), None);
        assert_eq!(change_points(&[5.0, f64::NAN, 5.0], &[], 0.0), None);
        let step: Vec<f64> = (0..40).map(|i| f64::from(u8::from(i >= 17))).collect();
        let found = change_points(&step, &[], 0.0).expect("series");
        assert_eq!(found.iter().map(|c| c.index).collect::<Vec<_>>(), [17]);
        assert_eq!(robust_phi(&step), None);
    }

    proptest! {
        #[test]
        fn anything_in_no_panic(values in prop::collection::vec(any::<f64>(), 0..30), smallest in any::<f64>()) {
            let finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
            for values in [&values, &finite] {
                for change in change_points(values, &[], smallest).into_iter().flatten() {
                    prop_assert!(change.possible.0 <= change.index && change.index <= change.possible.1);
                }
                let _ = energy_division(values);
            }
        }
    }
}
