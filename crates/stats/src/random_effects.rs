//! One number over several testboxes: a weighted mean of log ratios with the spread between the
//! boxes as part of its error.
//!
//! The boxes are a sample of the machines one cares about, so the interval that counts is the
//! random-effects one (REML with Hartung and Knapp). Where `I^2` is high the boxes disagree and
//! no single number should be shown; that decision belongs to the caller. Nothing here weighs
//! boxes by importance.

use crate::dist::{ChiSquared, StudentT, normal_upper_quantile};
use crate::summary::{Summary, count};

/// Change of `tau^2` at which [`reml`] has converged to the precision of `f64` use; metafor
/// stops at 1e-5.
pub const CONVERGED: f64 = 1e-13;
const STEPS: usize = 1000;

/// A mean over boxes with its interval, in the unit of the estimates (log ratios).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooled {
    /// Weighted mean.
    pub estimate: f64,
    /// Its standard error.
    pub error: f64,
    /// Lower and upper end of the interval.
    pub interval: (f64, f64),
    /// Variance between the boxes that the weights assume; 0 for fixed effects.
    pub tau2: f64,
}

/// How much the boxes disagree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heterogeneity {
    /// Cochran's Q.
    pub q: f64,
    /// Degrees of freedom of Q, one less than the boxes.
    pub df: usize,
    /// Upper tail of Q under one common effect; `None` for a single box.
    pub p: Option<f64>,
    /// Variance between boxes by DerSimonian and Laird, not below 0.
    pub tau2: f64,
    /// Percent of the variance that lies between boxes, 0..=100.
    pub i2: f64,
    /// Box farthest from the fixed mean in its own standard errors, the one that disagrees.
    pub farthest: usize,
}

/// Estimates with standard errors of the same length, all finite, errors above 0.
struct Boxes<'a> {
    estimates: &'a [f64],
    errors: &'a [f64],
}

/// Unweighted mean of the estimates with a t interval over the boxes at `1 - alpha`; the
/// geometric mean on the log scale. `None` for fewer than two or values that are not finite.
#[must_use]
pub fn plain(estimates: &[f64], alpha: f64) -> Option<Pooled> {
    let summary = Summary::of(estimates)?;
    let error = summary.standard_error()?;
    let t = StudentT::new(count(summary.n) - 1.0)?.upper_quantile(alpha / 2.0)?;
    pooled(summary.mean, error, t, 0.0)
}

/// Mean weighted by `1/error^2`, one common effect assumed, with a normal interval at
/// `1 - alpha`; `None` without estimates or unless all are finite and all errors above 0.
#[must_use]
pub fn fixed(estimates: &[f64], errors: &[f64], alpha: f64) -> Option<Pooled> {
    normal_at(&Boxes::of(estimates, errors)?, 0.0, alpha)
}

/// Q (Cochran 1954), `tau^2` by moments (DerSimonian, Laird 1986) and `I^2`
/// (Higgins, Thompson 2002); `None` as for [`fixed`].
#[must_use]
pub fn heterogeneity(estimates: &[f64], errors: &[f64]) -> Option<Heterogeneity> {
    let boxes = Boxes::of(estimates, errors)?;
    let moments = boxes.moments(0.0);
    let df = estimates.len() - 1;
    let typical = moments.w1 - moments.w2 / moments.w1;
    let tau2 = if df == 0 {
        0.0
    } else {
        ((moments.q - count(df)) / typical).max(0.0)
    };
    let within = count(df) / typical;
    let i2 = if tau2 > 0.0 {
        100.0 * tau2 / (within + tau2)
    } else {
        0.0
    };
    let standardised = |i: &usize| {
        let (y, s) = (estimates.get(*i), errors.get(*i));
        y.zip(s)
            .map_or(0.0, |(y, s)| ((y - moments.mean) / s).abs())
    };
    Some(Heterogeneity {
        q: finite(moments.q)?,
        df,
        p: if df == 0 {
            None
        } else {
            ChiSquared::new(count(df)).map(|chi| chi.sf(moments.q))
        },
        tau2: finite(tau2)?,
        i2: finite(i2)?,
        farthest: (0..estimates.len())
            .max_by(|a, b| standardised(a).total_cmp(&standardised(b)))?,
    })
}

/// Random-effects mean with `tau^2` by moments and a normal interval at `1 - alpha`
/// (DerSimonian, Laird 1986); `None` as for [`fixed`].
#[must_use]
pub fn der_simonian_laird(estimates: &[f64], errors: &[f64], alpha: f64) -> Option<Pooled> {
    let tau2 = heterogeneity(estimates, errors)?.tau2;
    normal_at(&Boxes::of(estimates, errors)?, tau2, alpha)
}

/// Random-effects mean with `tau^2` by restricted maximum likelihood and the t interval with the
/// weighted residual variance (Hartung, Knapp 2001; Sidik, Jonkman 2002), `k - 1` degrees of
/// freedom; `None` for fewer than two boxes or as for [`fixed`].
///
/// `tolerance` is the absolute change of `tau^2` at which [`reml`] stops: [`CONVERGED`], or 1e-5
/// to reproduce what metafor prints by default.
#[must_use]
pub fn hartung_knapp(
    estimates: &[f64],
    errors: &[f64],
    alpha: f64,
    tolerance: f64,
) -> Option<Pooled> {
    let boxes = Boxes::of(estimates, errors)?;
    let df = count(estimates.len()) - 1.0;
    if df < 1.0 {
        return None;
    }
    let tau2 = reml(estimates, errors, tolerance)?;
    let moments = boxes.moments(tau2);
    let error = (moments.q / (df * moments.w1)).sqrt();
    pooled(
        moments.mean,
        error,
        StudentT::new(df)?.upper_quantile(alpha / 2.0)?,
        tau2,
    )
}

/// Restricted-maximum-likelihood variance between boxes by Fisher scoring from the Hedges
/// estimate, steps halved at 0 (Viechtbauer 2005), until it changes by at most `tolerance`
/// (absolute); 0 where the likelihood is larger there; `None` for fewer than two boxes or as for
/// [`fixed`].
#[must_use]
pub fn reml(estimates: &[f64], errors: &[f64], tolerance: f64) -> Option<f64> {
    let boxes = Boxes::of(estimates, errors)?;
    let k = count(estimates.len());
    let sampling = errors.iter().map(|s| s * s).sum::<f64>() / k;
    let between = Summary::of(estimates)?.sample_sd?.powi(2);
    let mut tau2 = finite((between - sampling).max(0.0))?;
    for _ in 0..STEPS {
        let m = boxes.moments(tau2);
        let trace = m.w1 - m.w2 / m.w1;
        let information = m.w2 - 2.0 * m.w3 / m.w1 + (m.w2 / m.w1).powi(2);
        let mut step = finite((m.score - trace) / information)?;
        // Rounding can leave a step of -tau2 a hair below 0, hence the bound on halvings.
        for _ in 0..STEPS {
            if tau2 + step >= 0.0 {
                break;
            }
            step /= 2.0;
        }
        // Scoring can overshoot where the likelihood has two hills: a step must not lead down.
        for _ in 0..STEPS {
            let next = boxes.restricted_log_likelihood((tau2 + step).max(0.0));
            if next >= boxes.restricted_log_likelihood(tau2) {
                break;
            }
            step /= 2.0;
        }
        let next = (tau2 + step).max(0.0);
        let change = (next - tau2).abs();
        tau2 = next;
        if change <= tolerance.max(f64::EPSILON * tau2) {
            break;
        }
    }
    let likelihood = |t: f64| boxes.restricted_log_likelihood(t);
    Some(if likelihood(0.0) > likelihood(tau2) {
        0.0
    } else {
        tau2
    })
}

/// Sums over the boxes at weights `w = 1/(s^2 + tau^2)`.
struct Moments {
    w1: f64,
    w2: f64,
    w3: f64,
    mean: f64,
    /// `sum w (y - mean)^2`.
    q: f64,
    /// `sum w^2 (y - mean)^2`.
    score: f64,
}

impl<'a> Boxes<'a> {
    fn of(estimates: &'a [f64], errors: &'a [f64]) -> Option<Self> {
        let usable = !estimates.is_empty()
            && estimates.len() == errors.len()
            && estimates.iter().all(|y| y.is_finite())
            && errors.iter().all(|s| s.is_finite() && *s > 0.0);
        usable.then_some(Self { estimates, errors })
    }

    fn weighted(&self, tau2: f64) -> impl Iterator<Item = (f64, f64)> {
        let pairs = self.estimates.iter().zip(self.errors);
        pairs.map(move |(y, s)| (*y, 1.0 / (s * s + tau2)))
    }

    fn moments(&self, tau2: f64) -> Moments {
        let sum = |power: i32| self.weighted(tau2).map(|(_, w)| w.powi(power)).sum::<f64>();
        let w1 = sum(1);
        let mean = self.weighted(tau2).map(|(y, w)| y * (w / w1)).sum::<f64>();
        Moments {
            w1,
            w2: sum(2),
            w3: sum(3),
            mean,
            q: self
                .weighted(tau2)
                .map(|(y, w)| w * (y - mean).powi(2))
                .sum(),
            score: self
                .weighted(tau2)
                .map(|(y, w)| (w * (y - mean)).powi(2))
                .sum(),
        }
    }

    /// Up to a constant (Viechtbauer 2005, equation 9).
    fn restricted_log_likelihood(&self, tau2: f64) -> f64 {
        let m = self.moments(tau2);
        let logs: f64 = self.weighted(tau2).map(|(_, w)| w.ln()).sum();
        0.5 * (logs - m.w1.ln() - m.q)
    }
}

fn normal_at(boxes: &Boxes<'_>, tau2: f64, alpha: f64) -> Option<Pooled> {
    let moments = boxes.moments(tau2);
    let z = normal_upper_quantile(alpha / 2.0)?;
    pooled(moments.mean, moments.w1.sqrt().recip(), z, tau2)
}

fn pooled(estimate: f64, error: f64, quantile: f64, tau2: f64) -> Option<Pooled> {
    let half = quantile * error;
    Some(Pooled {
        estimate: finite(estimate)?,
        error: finite(error)?,
        interval: (finite(estimate - half)?, finite(estimate + half)?),
        tau2: finite(tau2)?,
    })
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn boxes_that_agree_have_no_variance_between_them() {
        let (y, s) = ([0.03, 0.031, 0.029], [0.01, 0.01, 0.01]);
        assert_eq!(
            heterogeneity(&y, &s).map(|h| (h.tau2, h.i2)),
            Some((0.0, 0.0))
        );
        assert_eq!(reml(&y, &s, CONVERGED), Some(0.0));
    }

    #[test]
    fn equal_errors_have_a_closed_form() {
        // With equal sampling variance REML is the variance of the estimates less that variance.
        let (y, s) = ([0.0, 0.1, 0.2, 0.5], [0.02; 4]);
        let expected = Summary::of(&y)
            .and_then(|s| s.sample_sd)
            .expect("sd")
            .powi(2)
            - 0.0004;
        let got = reml(&y, &s, CONVERGED).expect("tau2");
        assert!((got - expected).abs() < 1e-12, "{got} {expected}");
        let pooled = hartung_knapp(&y, &s, 0.05, CONVERGED).expect("pooled");
        let flat = plain(&y, 0.05).expect("plain");
        assert!((pooled.interval.0 - flat.interval.0).abs() < 1e-12);
    }

    #[test]
    fn the_box_that_disagrees_is_named() {
        let h = heterogeneity(&[0.1, 0.1, -0.4, 0.1], &[0.01; 4]).expect("heterogeneity");
        assert_eq!(h.farthest, 2);
        assert!(h.i2 > 99.0);
    }

    #[test]
    fn what_cannot_be_pooled() {
        assert_eq!(fixed(&[], &[], 0.05), None);
        assert_eq!(fixed(&[1.0], &[0.0], 0.05), None);
        assert_eq!(fixed(&[1.0, f64::NAN], &[1.0, 1.0], 0.05), None);
        assert_eq!(fixed(&[1.0], &[1.0, 1.0], 0.05), None);
        assert_eq!(hartung_knapp(&[1.0], &[1.0], 0.05, CONVERGED), None);
        assert_eq!(plain(&[1.0], 0.05), None);
        let single = heterogeneity(&[1.0], &[1.0]).expect("one box");
        assert_eq!((single.q, single.p, single.tau2), (0.0, None, 0.0));
    }

    /// Found by the property below: scoring alone overshot the hill.
    #[test]
    fn reml_does_not_step_down_from_a_hill() {
        let y = [
            0.853818154248865,
            0.8405230014864525,
            0.7202611873595457,
            0.7095741287815693,
            0.2889935616974182,
            0.6770816398514025,
        ];
        let s = [
            0.43081781327512647,
            0.4644855281480363,
            0.33873014359573983,
            0.43486082898902756,
            0.01,
            0.39981226442417533,
        ];
        let tau2 = reml(&y, &s, CONVERGED).expect("tau2");
        let boxes = Boxes::of(&y, &s).expect("boxes");
        let best = boxes.restricted_log_likelihood(tau2);
        for factor in [0.97, 1.03] {
            assert!(boxes.restricted_log_likelihood(tau2 * factor) <= best + 1e-9);
        }
    }

    proptest! {
        #[test]
        fn finite_or_nothing(
            rows in prop::collection::vec((any::<f64>(), any::<f64>()), 0..8), alpha in any::<f64>()
        ) {
            let (y, s): (Vec<f64>, Vec<f64>) = rows.into_iter().unzip();
            let all = [
                plain(&y, alpha), fixed(&y, &s, alpha), der_simonian_laird(&y, &s, alpha),
                hartung_knapp(&y, &s, alpha, CONVERGED),
            ];
            for pooled in all.into_iter().flatten() {
                prop_assert!(pooled.estimate.is_finite() && pooled.interval.0.is_finite());
            }
        }

        #[test]
        fn reml_is_a_maximum(
            rows in prop::collection::vec((-1.0..1.0_f64, 0.01..0.5_f64), 3..8)
        ) {
            let (y, s): (Vec<f64>, Vec<f64>) = rows.into_iter().unzip();
            let tau2 = reml(&y, &s, CONVERGED).expect("tau2");
            let boxes = Boxes::of(&y, &s).expect("boxes");
            let best = boxes.restricted_log_likelihood(tau2);
            for factor in [0.97, 1.03] {
                prop_assert!(boxes.restricted_log_likelihood(tau2 * factor) <= best + 1e-9);
            }
        }
    }
}
