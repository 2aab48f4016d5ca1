//! The moderated t: a metric's own variance stabilised by what is known about it.
//!
//! The prior comes from the metric's history or from the other metrics ([`crate::ebayes`]). A
//! variance between builds, where the sides are different builds, adds to the error. Values are
//! logarithms for ratio metrics; the caller takes them.

use crate::summary::{Summary, count};
use crate::ttest::{Difference, doubts, pooled_sd, satterthwaite};
use crate::warning::Warning;

/// Degrees of freedom that a prior is worth at most: variances of one metric move over time.
pub const MOST_PRIOR_DF: f64 = 30.0;

/// What is known of a metric's variance beforehand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// Degrees of freedom it is worth, at least 0; may be infinite.
    pub df: f64,
    /// The variance expected within a side, above 0, in the square of the values' unit.
    pub variance: f64,
}

impl Prior {
    /// The prior worth at most `most` degrees of freedom, and whether that cut anything.
    #[must_use]
    pub fn capped(self, most: f64) -> (Self, Option<Warning>) {
        if self.df <= most {
            return (self, None);
        }
        let capped = Self { df: most, ..self };
        (capped, Some(Warning::PriorCapped { df: most }))
    }

    /// Posterior variance `(d0 s0^2 + d s^2) / (d0 + d)` (Smyth 2004) of a variance estimated with
    /// `df` degrees of freedom; `None` when the figures give no variance.
    #[must_use]
    pub fn posterior(&self, variance: f64, df: f64) -> Option<f64> {
        if self.df.is_infinite() {
            return Some(self.variance);
        }
        let share = self.df / (self.df + df);
        let posterior = share * self.variance + (1.0 - share) * variance;
        (self.df >= 0.0 && df >= 0.0 && posterior.is_finite() && posterior >= 0.0)
            .then_some(posterior)
    }
}

/// How different builds of the same source differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BuildSpread {
    /// Variance between builds, at least 0, in the square of the values' unit.
    pub variance: f64,
    /// Variance of the means of builds that it was taken from, the share of their runs included.
    pub of_means: f64,
    /// Degrees of freedom with which that is known, above 0; infinite when it is taken as given.
    pub df: f64,
}

impl BuildSpread {
    /// The prior of a mean of `each` runs of one build (or boot): what builds differ by and the
    /// share of the spread within that so many runs leave; worth at most 30 degrees of freedom.
    ///
    /// Where earlier builds had fewer runs, that is less than their means varied by, but known no
    /// better: the degrees of freedom shrink with the square of the ratio (Satterthwaite 1946).
    #[must_use]
    pub fn prior_of_means(&self, within: Prior, each: usize) -> Prior {
        let variance = self.variance + within.variance / count(each.max(1));
        // Means that did not vary at all are known as well as they are.
        let known = (variance / self.of_means).powi(2).min(1.0);
        let prior = Prior {
            df: self.df * known,
            variance,
        };
        prior.capped(MOST_PRIOR_DF).0
    }
}

/// A difference of means with the variance that it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Moderated {
    /// Estimate `b - a`, error and degrees of freedom.
    pub difference: Difference,
    /// Posterior variance within a side, in the square of the values' unit.
    pub variance: f64,
}

/// The moderated difference of means `b - a`: `s~^2 (1/n + 1/m) + 2 s_b^2` with `d0 + n + m - 2`
/// degrees of freedom (Smyth 2004), by Satterthwaite (1946) where builds differ. `builds` is
/// `None` when both sides are the same build. A side may have one value as long as the prior has
/// any weight. `None` when a side is empty, a value is not finite or the prior is no variance.
#[must_use]
pub fn moderated(
    a: &[f64],
    b: &[f64],
    prior: Prior,
    builds: Option<BuildSpread>,
) -> Option<Moderated> {
    moderated_of(&Summary::of(a)?, &Summary::of(b)?, prior, builds)
}

/// As [`moderated`] from the summaries of the sides.
#[must_use]
pub fn moderated_of(
    a: &Summary,
    b: &Summary,
    prior: Prior,
    builds: Option<BuildSpread>,
) -> Option<Moderated> {
    let own_df = count(a.n + b.n) - 2.0;
    if !(prior.variance > 0.0 && prior.variance.is_finite() && prior.df >= 0.0) {
        return None;
    }
    let own = if own_df > 0.0 {
        pooled_sd(a, b)?.powi(2)
    } else {
        0.0
    };
    let variance = prior.posterior(own, own_df)?;
    let mut warnings = doubts(a, b);
    if own_df <= 0.0 {
        warnings.clear();
    }
    if a.n.min(b.n) < 2 {
        warnings.push(Warning::TooFewRuns { need: 2 });
    }
    let df = prior.df + own_df;
    let within = (variance * (1.0 / count(a.n) + 1.0 / count(b.n))).sqrt();
    let (se, df) = match builds {
        None => (within, df),
        Some(builds) => {
            let between = (2.0 * builds.variance).sqrt();
            let parts = [(within, df), (between, builds.df)];
            (within.hypot(between), satterthwaite(&parts).unwrap_or(df))
        }
    };
    Some(Moderated {
        difference: Difference::new(b.mean - a.mean, se, df, warnings)?,
        variance,
    })
}

/// The moderated mean of paired differences: as [`moderated`] with error `s~ / sqrt(n)` and
/// `d0 + n - 1` degrees of freedom (Smyth 2004); the prior is about the variance of a difference.
#[must_use]
pub fn moderated_paired(
    differences: &[f64],
    prior: Prior,
    builds: Option<BuildSpread>,
) -> Option<Moderated> {
    moderated_paired_of(&Summary::of(differences)?, prior, builds)
}

/// As [`moderated_paired`] from the summary of the differences.
#[must_use]
pub fn moderated_paired_of(
    summary: &Summary,
    prior: Prior,
    builds: Option<BuildSpread>,
) -> Option<Moderated> {
    let own_df = count(summary.n) - 1.0;
    if !(prior.variance > 0.0 && prior.variance.is_finite() && prior.df >= 0.0) {
        return None;
    }
    let variance = prior.posterior(summary.sample_sd.unwrap_or(0.0).powi(2), own_df)?;
    let within = (variance / count(summary.n)).sqrt();
    let df = prior.df + own_df;
    let between = builds.map_or(0.0, |b| (2.0 * b.variance).sqrt());
    let between_df = builds.map_or(f64::INFINITY, |b| b.df);
    let df = satterthwaite(&[(within, df), (between, between_df)]).unwrap_or(df);
    let warnings = if summary.n > 1 && summary.min == summary.max {
        vec![Warning::NoSpread]
    } else {
        Vec::new()
    };
    Some(Moderated {
        difference: Difference::new(summary.mean, within.hypot(between), df, warnings)?,
        variance,
    })
}

/// The least margin of a claim about a change of builds: `2 sqrt(2) s_b`, two standard deviations
/// of what two builds of the same source differ by; `None` for a negative variance.
#[must_use]
pub fn least_margin(builds: BuildSpread) -> Option<f64> {
    let margin = 2.0 * std::f64::consts::SQRT_2 * builds.variance.sqrt();
    margin.is_finite().then_some(margin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PRIOR: Prior = Prior {
        df: 20.0,
        variance: 4.0,
    };

    #[test]
    fn a_weightless_prior_is_the_pooled_t() {
        let (a, b) = ([1.0, 2.0, 4.0], [5.0, 6.0, 9.0]);
        let none = Prior { df: 0.0, ..PRIOR };
        let m = moderated(&a, &b, none, None).expect("moderated");
        let p = crate::ttest::pooled(&a, &b).expect("pooled");
        assert!((m.difference.se - p.se).abs() < 1e-14);
        assert_eq!(m.difference.df, p.df);
    }

    #[test]
    fn an_infinite_prior_is_a_z_test() {
        let sure = Prior {
            df: f64::INFINITY,
            ..PRIOR
        };
        let m = moderated(&[1.0, 1.0], &[3.0, 3.0], sure, None).expect("moderated");
        assert_eq!((m.variance, m.difference.se), (4.0, 2.0));
        assert!((m.difference.p().expect("p") - 0.317_310_507_862_914_1).abs() < 1e-14);
    }

    #[test]
    fn single_runs_live_on_the_prior() {
        let m = moderated(&[1.0], &[3.0], PRIOR, None).expect("moderated");
        assert_eq!(m.difference.df, 20.0);
        assert_eq!(m.difference.warnings, [Warning::TooFewRuns { need: 2 }]);
        assert_eq!(
            moderated(&[1.0], &[3.0], Prior { df: 0.0, ..PRIOR }, None),
            None
        );
    }

    #[test]
    fn builds_add_to_the_error() {
        let builds = BuildSpread {
            variance: 1.0,
            of_means: 1.5,
            df: 5.0,
        };
        let values = [0.0, 4.0, 2.0];
        let without = moderated(&values, &values, PRIOR, None).expect("moderated");
        let with = moderated(&values, &values, PRIOR, Some(builds)).expect("moderated");
        assert!((with.difference.se.powi(2) - without.difference.se.powi(2) - 2.0).abs() < 1e-12);
        assert!(with.difference.df < without.difference.df);
        assert!((least_margin(builds).expect("margin") - 8.0_f64.sqrt()).abs() < 1e-15);
        let (capped, warning) = Prior { df: 90.0, ..PRIOR }.capped(30.0);
        assert_eq!(
            (capped.df, warning),
            (30.0, Some(Warning::PriorCapped { df: 30.0 }))
        );
    }

    /// Earlier means varied by 5, of which boots are 1 and the runs 4.
    #[test]
    fn a_prior_of_means_is_worth_no_more_than_the_means_that_it_is_from() {
        let builds = BuildSpread {
            variance: 1.0,
            of_means: 5.0,
            df: 18.0,
        };
        let of = |each| builds.prior_of_means(PRIOR, each);
        assert_eq!((of(1).variance, of(1).df), (5.0, 18.0));
        assert_eq!(of(4).variance, 2.0);
        assert!((of(4).df - 18.0 * 0.16).abs() < 1e-12);
        let fewer = BuildSpread {
            of_means: 3.0,
            ..builds
        };
        assert_eq!(fewer.prior_of_means(PRIOR, 1).df, 18.0);
        let known = BuildSpread { df: 90.0, ..fewer };
        assert_eq!(known.prior_of_means(PRIOR, 1).df, 30.0);
        let still = BuildSpread {
            variance: 0.0,
            of_means: 0.0,
            df: 3.0,
        };
        assert_eq!(still.prior_of_means(PRIOR, 2).df, 3.0);
    }

    proptest! {
        #[test]
        fn any_input(
            a in prop::collection::vec(any::<f64>(), 0..5), b in prop::collection::vec(any::<f64>(), 0..5),
            df in any::<f64>(), variance in any::<f64>(), between in any::<f64>(),
        ) {
            let prior = Prior { df, variance };
            let builds = Some(BuildSpread { variance: between, of_means: between, df });
            for m in [moderated(&a, &b, prior, builds), moderated_paired(&a, prior, builds)].into_iter().flatten() {
                if let Some(p) = m.difference.p() {
                    prop_assert!((0.0..=1.0).contains(&p));
                }
            }
        }
    }
}
