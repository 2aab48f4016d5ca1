//! Bisection with noisy measurements: who is the culprit, and which commit to measure next.
//!
//! Commits are numbered along one line, 0 the good anchor and `k` the bad one; the culprit `c`
//! in `1..=k` makes every commit from `c` on bad. One alternative more is that no commit did
//! anything. An observation is one run of one commit. Building, skipping groups and confirming
//! are the caller's; parameters that are not known are integrated in [`crate::bisect_levels`].

use crate::dist::normal_pdf;
use crate::special::binary_entropy;
use crate::summary::{Summary, count};
use std::f64::consts::LN_2;

/// Degrees of freedom of the robust noise.
const ROBUST_DF: f64 = 4.0;
/// Difference in bits (or bits per cost) below which the earlier commit is preferred.
const SAME: f64 = 1e-9;

/// One run: the commit it was made of and the value it gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Number of the commit, 0 to `k`.
    pub commit: usize,
    /// The value, in the metric's unit (or its logarithm).
    pub value: f64,
}

/// The two levels and the deviation of one run, all in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    /// Mean of a good commit.
    pub good: f64,
    /// Mean of a bad commit.
    pub bad: f64,
    /// Deviation (scale, for robust noise) of one run, above 0.
    pub sd: f64,
}

/// How runs scatter around their level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scatter {
    /// Normally.
    Normal,
    /// As Student's t with four degrees of freedom: outliers count little.
    Robust,
}

impl Scatter {
    /// Logarithm of the density of a residual over its scale, up to a constant.
    pub(crate) fn log_density(self, z: f64) -> f64 {
        match self {
            Self::Normal => -0.5 * z * z,
            Self::Robust => -0.5 * (ROBUST_DF + 1.0) * (z * z / ROBUST_DF).ln_1p(),
        }
    }
}

/// What is believed about the culprit before any run: weights above or at 0, need not sum to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Prior {
    /// Weight of commit `1..=k`, in order.
    pub culprits: Vec<f64>,
    /// Weight of "no commit did anything", in the same unit.
    pub none: f64,
}

impl Prior {
    /// The same weight for `k` commits, and probability `none` that there is no culprit.
    #[must_use]
    pub fn uniform(k: usize, none: f64) -> Self {
        let each = (1.0 - none) / count(k.max(1));
        Self {
            culprits: vec![each; k],
            none,
        }
    }
}

/// Probabilities that sum to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Posterior {
    /// Of commit `1..=k` being the culprit, in order.
    pub culprits: Vec<f64>,
    /// Of there being none.
    pub none: f64,
}

impl Posterior {
    /// Probability that `commit` is bad: the mass of the culprits at or before it.
    #[must_use]
    pub fn bad(&self, commit: usize) -> f64 {
        self.culprits.iter().take(commit).sum::<f64>().min(1.0)
    }

    /// Entropy in bits over the culprits and "none".
    #[must_use]
    pub fn entropy(&self) -> f64 {
        let part = |p: &f64| if *p > 0.0 { -p * p.ln() / LN_2 } else { 0.0 };
        self.culprits.iter().chain([&self.none]).map(part).sum()
    }

    /// The most likely culprit and its probability; `None` without commits.
    #[must_use]
    pub fn leader(&self) -> Option<(usize, f64)> {
        let ranked = self.culprits.iter().enumerate();
        let best = ranked.rev().max_by(|a, b| a.1.total_cmp(b.1));
        best.map(|(i, p)| (i + 1, *p))
    }

    /// Probabilities from logarithms of weights up to a constant; `None` when all are 0 or one is
    /// NaN or infinite.
    pub(crate) fn from_logs(culprits: &[f64], none: f64) -> Option<Self> {
        let all = || culprits.iter().copied().chain([none]);
        let largest = all().fold(f64::NEG_INFINITY, f64::max);
        if !largest.is_finite() || all().any(f64::is_nan) {
            return None;
        }
        let total: f64 = all().map(|l| (l - largest).exp()).sum();
        let share = |log: f64| (log - largest).exp() / total;
        Some(Self {
            culprits: culprits.iter().map(|l| share(*l)).collect(),
            none: share(none),
        })
    }
}

/// Posterior of the culprit when the levels are known (Bayes's rule over `k + 1` hypotheses);
/// `None` for a prior that is negative, not finite or all 0, levels that are not finite or a
/// deviation not above 0, or an observation that is not finite or beyond commit `k`.
#[must_use]
pub fn posterior(
    prior: &Prior,
    observations: &[Observation],
    levels: Levels,
    scatter: Scatter,
) -> Option<Posterior> {
    let k = prior.culprits.len();
    let logs = log_prior(prior)?;
    usable(observations, k)?;
    if !(levels.sd > 0.0 && levels.good.is_finite() && levels.bad.is_finite()) {
        return None;
    }
    let at = |value: f64, level: f64| scatter.log_density((value - level) / levels.sd);
    // Support for "good" over "bad" at each commit; a culprit after it takes it as good.
    let mut support = vec![0.0; k + 1];
    for seen in observations {
        *support.get_mut(seen.commit)? += at(seen.value, levels.good) - at(seen.value, levels.bad);
    }
    let mut running = 0.0;
    let mut culprits = Vec::with_capacity(k);
    for (before, log) in support.iter().zip(&logs.culprits) {
        running += before;
        culprits.push(running + log);
    }
    let none = running + support.last().copied().unwrap_or(0.0) + logs.none;
    Posterior::from_logs(&culprits, none)
}

/// Posterior of the culprit with flat levels and a scale prior `1/sd`, integrated: weight
/// `prior (n_l n_r)^(-1/2) rss^(-(n-2)/2)` for normal runs, with `n_l` before the culprit and
/// `n_r` from it on, 0 where a side has none (Zellner 1971, chapter 3). "None" is not weighed,
/// since flat levels make the number of levels incomparable.
///
/// `None` as for [`posterior`], for fewer than three observations, or when the values of every
/// division, or of one, scatter not at all.
#[must_use]
pub fn posterior_unknown_levels(prior: &Prior, observations: &[Observation]) -> Option<Posterior> {
    let k = prior.culprits.len();
    let logs = log_prior(prior)?;
    usable(observations, k)?;
    if observations.len() < 3 {
        return None;
    }
    let mut sorted = observations.to_vec();
    sorted.sort_by_key(|seen| seen.commit);
    let values: Vec<f64> = sorted.iter().map(|seen| seen.value).collect();
    let exponent = (count(values.len()) - 2.0) / 2.0;
    let mut culprits = Vec::with_capacity(k);
    let mut last: Option<(usize, f64)> = None;
    for (i, log) in logs.culprits.iter().enumerate() {
        let left = sorted.partition_point(|seen| seen.commit <= i);
        let weight = match last {
            Some((same, weight)) if same == left => weight,
            _ => {
                let (before, after) = values.split_at(left);
                if before.is_empty() || after.is_empty() {
                    f64::NEG_INFINITY
                } else {
                    let rss = squares(before)? + squares(after)?;
                    let sizes = count(before.len()) * count(after.len());
                    -0.5 * sizes.ln() - exponent * Some(rss.ln()).filter(|l| l.is_finite())?
                }
            }
        };
        last = Some((left, weight));
        culprits.push(log + weight);
    }
    Posterior::from_logs(&culprits, f64::NEG_INFINITY)
}

fn squares(values: &[f64]) -> Option<f64> {
    let summary = Summary::of(values)?;
    Some(count(summary.n) * summary.population_sd?.powi(2))
}

/// Logarithms of a usable prior.
pub(crate) fn log_prior(prior: &Prior) -> Option<Prior> {
    let fine = |w: &f64| w.is_finite() && *w >= 0.0;
    let weights = || prior.culprits.iter().chain([&prior.none]);
    let usable = weights().all(fine) && weights().any(|w| *w > 0.0);
    usable.then(|| Prior {
        culprits: prior.culprits.iter().map(|w| w.ln()).collect(),
        none: prior.none.ln(),
    })
}

pub(crate) fn usable(observations: &[Observation], k: usize) -> Option<()> {
    let fine = |seen: &Observation| seen.commit <= k && seen.value.is_finite();
    observations.iter().all(fine).then_some(())
}

/// Bits that one normal run of a commit which is bad with probability `bad` tells about the
/// culprit, the levels `distance` deviations apart: the mutual information of the run and the
/// commit's state (Cover, Thomas 2006, section 2.3); 0 where nothing can be told or for an
/// argument out of range.
#[must_use]
pub fn information(bad: f64, distance: f64) -> f64 {
    let distance = distance.abs();
    if !(bad > 0.0 && bad < 1.0 && distance > 0.0) {
        return 0.0;
    }
    let most = binary_entropy(bad);
    if distance > 60.0 {
        return most;
    }
    // The trapezoid rule, which converges beyond any power on such integrands; the step keeps
    // clear of the poles of the logarithm.
    let step = (0.5 / distance).min(0.125);
    let points = ((distance + 18.0) / step).ceil();
    let mut told = 0.0;
    let mut i = 0.0;
    while i <= points {
        let x = -9.0 + i * step;
        // Likelihood ratio of bad over good; its logarithm is linear in x.
        let log_ratio = distance * (x - 0.5 * distance);
        let good_share = (1.0 - bad) * normal_pdf(x);
        let bad_share = bad * normal_pdf(x - distance);
        // ln(f0/m) and ln(f1/m), m = (1-bad) f0 + bad f1, without a ratio of vanishing numbers.
        let log_mixture_over_good = log_sum((1.0 - bad).ln(), bad.ln() + log_ratio);
        told -= good_share * log_mixture_over_good;
        told += bad_share * (log_ratio - log_mixture_over_good);
        i += 1.0;
    }
    (told * step / LN_2).clamp(0.0, most)
}

fn log_sum(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    large + (small - large).exp().ln_1p()
}

/// Expected entropy in bits of the posterior after one more normal run of each commit `0..=k`:
/// the present entropy less [`information`].
#[must_use]
pub fn expected_entropies(posterior: &Posterior, levels: Levels) -> Vec<f64> {
    let entropy = posterior.entropy();
    let distance = (levels.bad - levels.good) / levels.sd;
    let after = |bad: f64| entropy - information(bad, distance);
    bad_probabilities(posterior)
        .into_iter()
        .map(after)
        .collect()
}

/// Probability of being bad of each commit `0..=k`.
fn bad_probabilities(posterior: &Posterior) -> Vec<f64> {
    let mut bad = 0.0_f64;
    let mut all = vec![0.0];
    for p in &posterior.culprits {
        bad += p;
        all.push(bad.min(1.0));
    }
    all
}

/// The commit whose next run tells most per cost: `cost` of a run of each commit `0..=k` with
/// what it takes to build it, `None` for a commit that cannot be run. The earliest of equals;
/// `None` when no commit can be run or nothing tells anything.
///
/// All costs equal, this is the query of least expected entropy (MacKay 1992).
#[must_use]
pub fn best_query(
    posterior: &Posterior,
    levels: Levels,
    cost: impl Fn(usize) -> Option<f64>,
) -> Option<usize> {
    let distance = (levels.bad - levels.good) / levels.sd;
    let mut best: Option<(usize, f64)> = None;
    for (commit, bad) in bad_probabilities(posterior).into_iter().enumerate() {
        let Some(cost) = cost(commit).filter(|c| *c > 0.0) else {
            continue;
        };
        let gain = information(bad, distance) / cost;
        if best.is_none_or(|(_, most)| gain > most + SAME) {
            best = Some((commit, gain));
        }
    }
    best.filter(|(_, gain)| *gain > 0.0)
        .map(|(commit, _)| commit)
}

/// The commit whose probability of being bad is nearest to one half among those that can be run;
/// the earliest of equals, `None` when none can (probabilistic bisection: Horstein 1963).
#[must_use]
pub fn median_query(posterior: &Posterior, runnable: impl Fn(usize) -> bool) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (commit, bad) in bad_probabilities(posterior).into_iter().enumerate() {
        let gap = (bad - 0.5).abs();
        if runnable(commit) && best.is_none_or(|(_, least)| gap < least - SAME) {
            best = Some((commit, gap));
        }
    }
    best.map(|(commit, _)| commit)
}

/// The anchor, 0 or `k`, that should be run next because the evidence is lopsided: fewer than a
/// third of the runs so far are expected to be good, or to be bad; `None` when both sides have
/// their third, or there is no run.
#[must_use]
pub fn starved_anchor(posterior: &Posterior, observations: &[Observation]) -> Option<usize> {
    let runs = count(observations.len());
    let probabilities = bad_probabilities(posterior);
    let bad: f64 = observations
        .iter()
        .filter_map(|seen| probabilities.get(seen.commit))
        .sum();
    if runs == 0.0 {
        None
    } else if bad < runs / 3.0 {
        Some(posterior.culprits.len())
    } else if bad > runs * 2.0 / 3.0 {
        Some(0)
    } else {
        None
    }
}

/// The group of commits that runs cannot separate because those between them cannot be run: the
/// candidates from after the last runnable commit before `culprit` to the first runnable at or
/// after it, with its probability.
#[must_use]
pub fn group(
    posterior: &Posterior,
    culprit: usize,
    runnable: impl Fn(usize) -> bool,
) -> (std::ops::RangeInclusive<usize>, f64) {
    let k = posterior.culprits.len();
    let first = (1..culprit)
        .rev()
        .find(|c| runnable(*c))
        .map_or(1, |c| c + 1);
    let last = (culprit..k).find(|c| runnable(*c)).unwrap_or(k);
    let mass = posterior.bad(last) - posterior.bad(first - 1);
    (first..=last, mass.max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LEVELS: Levels = Levels {
        good: 0.0,
        bad: 1.0,
        sd: 0.5,
    };

    fn seen(commit: usize, value: f64) -> Observation {
        Observation { commit, value }
    }

    #[test]
    fn by_hand() {
        // Two candidates; a run of commit 1 at the bad level favours 1 by exp(2).
        let p = posterior(
            &Prior::uniform(2, 0.0),
            &[seen(1, 1.0)],
            LEVELS,
            Scatter::Normal,
        )
        .expect("posterior");
        let expected = 1.0 / (1.0 + (-2.0_f64).exp());
        assert!((p.culprits[0] - expected).abs() < 1e-14);
        assert_eq!(p.leader().map(|l| l.0), Some(1));
        assert!((p.bad(2) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn no_change_is_a_hypothesis() {
        let runs = [seen(0, 0.0), seen(4, 0.1), seen(4, -0.1), seen(2, 0.0)];
        let p = posterior(&Prior::uniform(4, 0.1), &runs, LEVELS, Scatter::Robust).expect("p");
        assert!(p.none > 0.7, "{}", p.none);
        let blames = posterior(&Prior::uniform(4, 0.0), &runs, LEVELS, Scatter::Robust).expect("p");
        assert_eq!(blames.none, 0.0);
    }

    /// Capacity of the binary-input Gaussian channel in the table of the specification.
    #[test]
    fn information_of_a_fair_question() {
        for (d, bits) in [
            (0.5, 0.0437),
            (1.0, 0.1607),
            (1.5, 0.3191),
            (2.0, 0.4859),
            (3.0, 0.76),
        ] {
            assert!((information(0.5, d) - bits).abs() < 1e-4, "{d}");
        }
        assert!((information(0.3, 30.0) - binary_entropy(0.3)).abs() < 1e-9);
        assert_eq!(information(0.0, 1.0), 0.0);
        assert_eq!(information(0.5, f64::NAN), 0.0);
    }

    #[test]
    fn builds_cost() {
        let p = Posterior {
            culprits: vec![0.125; 8],
            none: 0.0,
        };
        assert_eq!(best_query(&p, LEVELS, |_| Some(1.0)), Some(4));
        assert_eq!(median_query(&p, |c| c != 4), Some(3));
        let built = |c: usize| Some(if c == 2 { 1.0 } else { 3.0 });
        assert_eq!(best_query(&p, LEVELS, built), Some(2));
        assert_eq!(best_query(&p, LEVELS, |_| None), None);
    }

    #[test]
    fn skipped_commits_form_groups() {
        let p = Posterior {
            culprits: vec![0.1, 0.2, 0.3, 0.4],
            none: 0.0,
        };
        let (range, mass) = group(&p, 3, |c| c != 2 && c != 3);
        assert_eq!(range, 2..=4);
        assert!((mass - 0.9).abs() < 1e-12);
        let (range, mass) = group(&p, 1, |_| true);
        assert_eq!(range, 1..=1);
        assert!((mass - 0.1).abs() < 1e-12);
    }

    #[test]
    fn anchors_are_fed() {
        let p = Posterior {
            culprits: vec![0.25; 4],
            none: 0.0,
        };
        assert_eq!(
            starved_anchor(&p, &[seen(0, 0.0), seen(0, 0.0), seen(1, 0.0)]),
            Some(4)
        );
        assert_eq!(starved_anchor(&p, &[seen(4, 0.0), seen(4, 0.0)]), Some(0));
        assert_eq!(starved_anchor(&p, &[seen(4, 0.0), seen(0, 0.0)]), None);
        assert_eq!(starved_anchor(&p, &[]), None);
    }

    #[test]
    fn what_has_no_posterior() {
        let prior = Prior::uniform(3, 0.0);
        let at = |o: &[Observation], l| posterior(&prior, o, l, Scatter::Normal);
        assert_eq!(at(&[seen(4, 0.0)], LEVELS), None);
        assert_eq!(at(&[seen(1, f64::NAN)], LEVELS), None);
        assert_eq!(at(&[], Levels { sd: 0.0, ..LEVELS }), None);
        let empty = Prior {
            culprits: vec![0.0; 3],
            none: 0.0,
        };
        assert_eq!(posterior(&empty, &[], LEVELS, Scatter::Normal), None);
        assert_eq!(
            posterior_unknown_levels(&prior, &[seen(0, 1.0), seen(3, 2.0)]),
            None
        );
        let exact = [seen(0, 1.0), seen(0, 1.0), seen(3, 2.0), seen(3, 2.0)];
        assert_eq!(posterior_unknown_levels(&prior, &exact), None);
        let far = [seen(0, 1e300), seen(1, -1e300)];
        assert!(at(&far, LEVELS).is_none_or(|p| p.culprits.iter().all(|p| p.is_finite())));
    }

    proptest! {
        #[test]
        fn a_distribution_or_nothing(
            runs in prop::collection::vec((0_usize..7, any::<f64>()), 0..9),
            good in any::<f64>(), bad in any::<f64>(), sd in any::<f64>(), none in 0.0..1.0_f64,
        ) {
            let runs: Vec<Observation> = runs.into_iter().map(|(c, v)| seen(c, v)).collect();
            let prior = Prior::uniform(6, none);
            let levels = Levels { good, bad, sd };
            let all = [
                posterior(&prior, &runs, levels, Scatter::Normal),
                posterior(&prior, &runs, levels, Scatter::Robust),
                posterior_unknown_levels(&prior, &runs),
            ];
            for p in all.into_iter().flatten() {
                let total = p.culprits.iter().sum::<f64>() + p.none;
                prop_assert!((total - 1.0).abs() < 1e-9);
                prop_assert!(p.entropy() >= 0.0);
            }
        }

        #[test]
        fn information_is_symmetric(bad in 0.001..0.999_f64, d in 0.01..40.0_f64) {
            prop_assert!((information(bad, d) - information(1.0 - bad, d)).abs() < 1e-9);
        }
    }
}
