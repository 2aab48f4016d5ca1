//! Empirical Bayes: the prior of a variance learnt from many metrics at once.
//!
//! The variances of the metrics of one job and unit are taken as draws from a scaled F
//! distribution; its parameters are the prior of [`crate::moderated`]. Metrics that never vary
//! are no evidence of a small variance, and a few wild ones must not spoil the rest: the robust
//! variant moves the extremes in.

use crate::moderated::Prior;
use crate::quantile::{of_sorted, sorted};
use crate::special::{digamma, trigamma, trigamma_inverse};
use crate::summary::{Summary, count};
use crate::warning::Warning;

/// A prior with what to doubt of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The prior; its `df` is infinite when the variances differ by no more than chance.
    pub prior: Prior,
    /// What to doubt.
    pub warnings: Vec<Warning>,
}

/// Fits the prior to variances, each `(variance, degrees of freedom)`, by the moments of
/// `log s^2` (Smyth 2004, as limma's fitFDist has it); variances below 1e-5 of the median count
/// as that much. `None` with fewer than three usable variances or when half of them are 0.
#[must_use]
pub fn fit(variances: &[(f64, f64)]) -> Option<Fitted> {
    let usable = usable(variances);
    let centred = centred_logs(&usable)?;
    let summary = Summary::of(&centred)?;
    let chance = mean_trigamma(&usable);
    from_moments(&usable, summary.mean, summary.sample_sd?.powi(2) - chance)
}

/// As [`fit`], with the lowest 5 % and the highest 10 % of the logarithms moved in before their
/// moments are taken, both in the data and in the distribution fitted (the first step of Phipson
/// et al. 2016). Needs the same degrees of freedom throughout, else it is [`fit`].
#[must_use]
pub fn fit_robust(variances: &[(f64, f64)]) -> Option<Fitted> {
    let usable = usable(variances);
    let (_, df) = *usable.first()?;
    if usable.iter().any(|(_, other)| *other != df) {
        return fit(variances);
    }
    let centred = sorted(&centred_logs(&usable)?)?;
    let (low, high) = (of_sorted(&centred, LOW)?, of_sorted(&centred, 1.0 - HIGH)?);
    let moved: Vec<f64> = centred.iter().map(|e| e.clamp(low, high)).collect();
    let summary = Summary::of(&moved)?;
    let spread = summary.sample_sd?.powi(2);
    // The spread falls as d0 rises; find the d0 whose moved-in distribution has this one.
    let excess = |log_df: f64| {
        moved_in_moments(df, log_df.exp()).map_or(f64::NAN, |(_, variance)| variance - spread)
    };
    let (least, most) = (0.05_f64.ln(), 1e6_f64.ln());
    let found = crate::numeric::find_root(least, most, excess);
    let d0 = match found {
        Some(log_df) => log_df.exp(),
        None if excess(most) >= 0.0 => f64::INFINITY,
        None => return fit(variances),
    };
    let (mean, _) = moved_in_moments(df, d0.min(1e6))?;
    // The data are centred by digamma(d/2) - ln(d/2) already.
    let shift = digamma(0.5 * df) - (0.5 * df).ln();
    let prior = Prior {
        df: d0,
        variance: (summary.mean + shift - mean).exp(),
    };
    finish(prior)
}

/// Shares of the logarithms that the robust fit moves in.
const LOW: f64 = 0.05;
const HIGH: f64 = 0.1;

/// Degrees of freedom of a moderated t within a family: `d0 + d`, but never more than all metrics
/// have together, as limma has it.
#[must_use]
pub fn total_df(prior: Prior, own_df: f64, family_df: f64) -> f64 {
    (prior.df + own_df).min(family_df)
}

/// The scale of a scaled F whose degrees of freedom at the bottom, `d0`, are known: the maximum of
/// the likelihood of `(variance, degrees of freedom)`, each above 0, where
/// `sum (d + d0) d v / (d v + d0 s^2) = sum d`. The pooled variance when `d0` is infinite. `None`
/// without variances.
#[must_use]
pub fn scale(variances: &[(f64, f64)], d0: f64) -> Option<f64> {
    let all: f64 = variances.iter().map(|(_, df)| df).sum();
    if d0.is_infinite() {
        let pooled = variances.iter().map(|(v, df)| v * (df / all)).sum::<f64>();
        return (pooled > 0.0 && pooled.is_finite()).then_some(pooled);
    }
    let logs: Vec<f64> = variances.iter().map(|(v, _)| v.ln()).collect();
    let bounds = Summary::of(&logs)?;
    let score = |log: f64| {
        let parts = logs
            .iter()
            .zip(variances)
            .map(|(own, (_, df))| (df + d0) * df / (df + d0 * (log - own).exp()));
        parts.sum::<f64>() - all
    };
    // The score is 0 between the smallest and the largest one; beyond, its sign is safe.
    crate::numeric::find_root(bounds.min - 1.0, bounds.max + 1.0, score).map(f64::exp)
}

fn usable(variances: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let valid = |(v, df): &&(f64, f64)| v.is_finite() && *v >= 0.0 && *df > 0.0 && df.is_finite();
    variances.iter().filter(valid).copied().collect()
}

/// `ln s^2 - digamma(d/2) + ln(d/2)`, whose mean is that of `ln` of the scale.
pub(crate) fn centred_logs(usable: &[(f64, f64)]) -> Option<Vec<f64>> {
    let values: Vec<f64> = usable.iter().map(|(v, _)| *v).collect();
    let median = of_sorted(&sorted(&values)?, 0.5)?;
    if usable.len() < 3 || median <= 0.0 {
        return None;
    }
    let log =
        |(v, df): &(f64, f64)| v.max(1e-5 * median).ln() - digamma(0.5 * df) + (0.5 * df).ln();
    Some(usable.iter().map(log).collect())
}

pub(crate) fn mean_trigamma(usable: &[(f64, f64)]) -> f64 {
    let sum: f64 = usable.iter().map(|(_, df)| trigamma(0.5 * df)).sum();
    sum / count(usable.len())
}

fn from_moments(usable: &[(f64, f64)], mean: f64, excess: f64) -> Option<Fitted> {
    let prior = if excess > 0.0 {
        let half = trigamma_inverse(excess);
        Prior {
            df: 2.0 * half,
            variance: (mean + digamma(half) - half.ln()).exp(),
        }
    } else {
        let values: Vec<f64> = usable.iter().map(|(v, _)| *v).collect();
        Prior {
            df: f64::INFINITY,
            variance: Summary::of(&values)?.mean,
        }
    };
    finish(prior)
}

fn finish(prior: Prior) -> Option<Fitted> {
    let valid = prior.variance > 0.0 && prior.variance.is_finite() && prior.df > 0.0;
    let warnings = if prior.df.is_infinite() {
        vec![Warning::PriorInfinite]
    } else {
        Vec::new()
    };
    valid.then_some(Fitted { prior, warnings })
}

/// Mean and variance of `ln F(d, d0)` with its lowest 5 % and highest 10 % moved in.
fn moved_in_moments(df: f64, d0: f64) -> Option<(f64, f64)> {
    let f = crate::dist::FisherF::new(df, d0)?;
    let log = |p: f64| f.quantile(p).map_or(f64::NAN, f64::ln);
    let (low, high) = (log(LOW), log(1.0 - HIGH));
    let rule = crate::numeric::GaussLegendre::new(24);
    let nodes: Vec<(f64, f64)> = rule
        .nodes(LOW, 1.0 - HIGH)
        .into_iter()
        .map(|(p, w)| (log(p), w))
        .chain([(low, LOW), (high, HIGH)])
        .collect();
    let mean: f64 = nodes.iter().map(|(x, w)| w * x).sum();
    let variance: f64 = nodes.iter().map(|(x, w)| w * (x - mean).powi(2)).sum();
    (mean.is_finite() && variance.is_finite()).then_some((mean, variance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::FisherF;
    use proptest::prelude::*;

    /// Quantiles of the distribution that the fit assumes.
    fn ideal(n: u32, df: f64, prior: Prior) -> Vec<(f64, f64)> {
        let f = FisherF::new(df, prior.df).expect("df");
        (0..n)
            .map(|i| {
                let p = (f64::from(i) + 0.5) / f64::from(n);
                (prior.variance * f.quantile(p).expect("quantile"), df)
            })
            .collect()
    }

    #[test]
    fn recovers_the_prior() {
        let truth = Prior {
            df: 8.0,
            variance: 3.0,
        };
        for fitted in [
            fit(&ideal(4000, 4.0, truth)),
            fit_robust(&ideal(4000, 4.0, truth)),
        ] {
            let prior = fitted.expect("fit").prior;
            assert!((prior.df / 8.0 - 1.0).abs() < 0.05, "{prior:?}");
            assert!((prior.variance / 3.0 - 1.0).abs() < 0.02, "{prior:?}");
        }
    }

    #[test]
    fn wild_metrics_spoil_only_the_plain_fit() {
        let truth = Prior {
            df: 20.0,
            variance: 1.0,
        };
        let mut variances = ideal(400, 4.0, truth);
        for (v, _) in variances.iter_mut().rev().take(12) {
            *v *= 1e4;
        }
        let plain = fit(&variances).expect("fit").prior.df;
        let robust = fit_robust(&variances).expect("fit").prior.df;
        assert!(plain < 4.0 && robust > 12.0, "{plain} {robust}");
    }

    #[test]
    fn equal_variances_make_an_infinite_prior() {
        let fitted = fit(&[(2.0, 4.0); 10]).expect("fit");
        assert_eq!(fitted.warnings, [Warning::PriorInfinite]);
        assert!((fitted.prior.variance - 2.0).abs() < 1e-12);
        assert_eq!(total_df(fitted.prior, 4.0, 40.0), 40.0);
    }

    #[test]
    fn the_scale_lies_where_the_likelihood_is_highest() {
        let variances = [(1.0, 4.0), (2.0, 6.0), (9.0, 3.0)];
        let log_likelihood = |d0: f64, scale: f64| {
            let f = |(v, df): &(f64, f64)| {
                let ratio = v / scale;
                0.5 * df * ratio.ln() - 0.5 * (df + d0) * (df * ratio / d0).ln_1p()
            };
            variances.iter().map(f).sum::<f64>()
        };
        for d0 in [0.5, 4.0, 100.0] {
            let found = scale(&variances, d0).expect("scale");
            for beside in [0.99, 1.01] {
                assert!(log_likelihood(d0, found) > log_likelihood(d0, beside * found));
            }
        }
        // Means 4 + 12 + 27 of 13 degrees of freedom.
        let pooled = scale(&variances, f64::INFINITY).expect("scale");
        assert!((pooled - 43.0 / 13.0).abs() < 1e-12);
        assert!((scale(&variances, 1e9).expect("scale") - pooled).abs() < 1e-6);
        assert!((scale(&[(3.0, 4.0); 5], 7.0).expect("scale") - 3.0).abs() < 1e-12);
        assert_eq!(scale(&[], 7.0), None);
        assert_eq!(scale(&[], f64::INFINITY), None);
    }

    #[test]
    fn what_has_no_prior() {
        assert_eq!(fit(&[]), None);
        assert_eq!(fit(&[(0.0, 4.0); 9]), None);
        assert_eq!(fit(&[(1.0, 4.0), (f64::NAN, 4.0), (2.0, 0.0)]), None);
        assert_eq!(fit_robust(&[]), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn any_input(v in prop::collection::vec((any::<f64>(), prop::sample::select(vec![0.5, 4.0, -1.0, 1e9])), 0..12)) {
            for fitted in [fit(&v), fit_robust(&v)].into_iter().flatten() {
                prop_assert!(fitted.prior.df > 0.0 && fitted.prior.variance > 0.0);
            }
        }
    }
}
