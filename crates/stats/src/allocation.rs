//! Where repetitions are best spent: iterations within a run or more runs (boots, builds).
//!
//! Plans only; the analysis averages inner repetitions first and treats the outermost as the
//! replicate.

use crate::summary::{Summary, count};

/// Variance at two levels of repetition, in the square of the metric's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VarianceComponents {
    /// Between iterations of one run.
    pub within: f64,
    /// Between runs, beyond what the iterations explain; not below 0.
    pub between: f64,
}

/// Variance components of `runs`, each a list of iterations (lengths may differ): the pooled
/// variance within runs, and the variance of run means less its share of that
/// (Kalibera, Jones 2013, section 6); `None` for fewer than two runs or no run with two
/// iterations, or a value that is not finite.
#[must_use]
pub fn variance_components(runs: &[Vec<f64>]) -> Option<VarianceComponents> {
    let summaries: Vec<Summary> = runs.iter().map(|r| Summary::of(r)).collect::<Option<_>>()?;
    let degrees: usize = summaries.iter().map(|s| s.n - 1).sum();
    let squares: Option<f64> = summaries
        .iter()
        .map(|s| Some(count(s.n) * s.population_sd?.powi(2)))
        .sum();
    let means: Vec<f64> = summaries.iter().map(|s| s.mean).collect();
    let of_means = Summary::of(&means)?.sample_sd?.powi(2);
    let share: f64 = summaries.iter().map(|s| 1.0 / count(s.n)).sum();
    let within = squares? / count(degrees);
    let between = (of_means - within * share / count(means.len())).max(0.0);
    let components = VarianceComponents { within, between };
    (within.is_finite() && between.is_finite()).then_some(components)
}

/// Repetitions at each inner level per unit of the next outer one that give the smallest error
/// for the cost: `r_i = sqrt(c_(i+1)/c_i * T_i^2/T_(i+1)^2)` (Kalibera, Jones 2013, equation 3),
/// not rounded, at least 1.
///
/// `costs` and `variances` run from the innermost to the outermost level and are of one length,
/// the result is one shorter. A level above without variance of its own gives `None` there: all
/// repetition belongs inside. The whole is `None` for lengths that differ or are 0, costs not
/// above 0, or negative variances.
#[must_use]
pub fn best_repetitions(costs: &[f64], variances: &[f64]) -> Option<Vec<Option<f64>>> {
    let usable = !costs.is_empty()
        && costs.len() == variances.len()
        && costs.iter().all(|c| c.is_finite() && *c > 0.0)
        && variances.iter().all(|v| v.is_finite() && *v >= 0.0);
    if !usable {
        return None;
    }
    let steps = costs.windows(2).zip(variances.windows(2));
    let best = |(cost, variance): (&[f64], &[f64])| match (cost, variance) {
        ([inner_cost, outer_cost], [inner, outer]) => {
            let r = (outer_cost / inner_cost).sqrt() * (inner / outer).sqrt();
            Some(r.max(1.0)).filter(|_| r.is_finite())
        }
        _ => None,
    };
    Some(steps.map(best).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dear_runs_get_more_iterations() {
        assert_eq!(
            best_repetitions(&[1.0, 100.0], &[4.0, 1.0]),
            Some(vec![Some(20.0)])
        );
        assert_eq!(
            best_repetitions(&[1.0, 1.0, 16.0], &[1.0, 4.0, 1.0]),
            Some(vec![Some(1.0), Some(8.0)])
        );
        assert_eq!(best_repetitions(&[1.0, 1.0], &[1.0, 0.0]), Some(vec![None]));
        assert_eq!(best_repetitions(&[0.0, 1.0], &[1.0, 1.0]), None);
        assert_eq!(best_repetitions(&[], &[]), None);
    }

    #[test]
    fn components_of_two_levels() {
        // Within: 2 each; means 1, 5: variance 8, less 2/2.
        let runs = [vec![0.0, 2.0], vec![4.0, 6.0]];
        let c = variance_components(&runs).expect("components");
        assert!((c.within - 2.0).abs() < 1e-12 && (c.between - 7.0).abs() < 1e-12);
        assert_eq!(variance_components(&[vec![1.0], vec![2.0]]), None);
        assert_eq!(variance_components(&[vec![1.0, 2.0]]), None);
        assert_eq!(variance_components(&[vec![1.0, 2.0], vec![]]), None);
    }

    proptest! {
        #[test]
        fn finite_or_nothing(runs in prop::collection::vec(prop::collection::vec(any::<f64>(), 0..4), 0..5)) {
            if let Some(c) = variance_components(&runs) {
                prop_assert!(c.within.is_finite() && c.between >= 0.0);
            }
        }
    }
}
