//! From the variances of earlier run sets to a prior: how much a metric varies within a side,
//! between the partners of a block, and from boot to boot.
//!
//! Old runs are worth less than their number: variances of one metric move between sessions. So
//! the prior's degrees of freedom come from how much the variances themselves scatter: those of
//! many metrics ([`crate::agreement`]), else the metric's own where there are enough of them to
//! tell, and are halved where not.

use crate::agreement::Agreement;
use crate::ebayes;
use crate::moderated::{BuildSpread, MOST_PRIOR_DF, Prior};
use crate::summary::{Summary, count};

/// Run sets from which the scatter of their variances is estimated.
const FEWEST_SETS: usize = 3;

/// The prior that earlier variances `(variance, degrees of freedom)` of a metric give, worth at
/// most 30 degrees of freedom and never more than they have together.
///
/// Where the metrics of the case tell how much variances move, by that. Else with three or more
/// sets by empirical Bayes over the sets (Smyth 2004), else the pooled variance with half its
/// degrees of freedom. Sets without any variance are left out: they show a resolution, not a
/// noise. `None` when nothing is left.
#[must_use]
pub fn prior_of_sets(variances: &[(f64, f64)], of_case: Option<&Agreement>) -> Option<Prior> {
    let usable = usable(variances);
    let prior = match of_case {
        Some(of_case) => by_agreement(&usable, of_case.df(&usable)),
        None => alone(&usable),
    }?;
    let valid = prior.variance > 0.0 && prior.variance.is_finite() && prior.df > 0.0;
    valid.then(|| prior.capped(MOST_PRIOR_DF).0)
}

/// The variances that show a noise.
pub(crate) fn usable(variances: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let shows_noise = |(variance, df): &&(f64, f64)| {
        *variance > 0.0 && variance.is_finite() && *df > 0.0 && df.is_finite()
    };
    variances.iter().filter(shows_noise).copied().collect()
}

/// The prior where the variance of one set is worth `d0` degrees of freedom for another.
///
/// The relative variance of a new variance about the metric's level is `2 / d0`; the level is off
/// by a share of that and by chance, `2 / d0 / sets + 2 / all`. Degrees of freedom are 2 by the
/// relative variance (Satterthwaite 1946).
fn by_agreement(usable: &[(f64, f64)], d0: f64) -> Option<Prior> {
    let all: f64 = usable.iter().map(|(_, df)| df).sum();
    let moves = (1.0 + 1.0 / count(usable.len())) / d0;
    Some(Prior {
        df: 1.0 / (moves + 1.0 / all),
        variance: ebayes::scale(usable, d0)?,
    })
}

/// The prior that a metric's own variances give.
fn alone(usable: &[(f64, f64)]) -> Option<Prior> {
    let all: f64 = usable.iter().map(|(_, df)| df).sum();
    let fitted = (usable.len() >= FEWEST_SETS)
        .then(|| ebayes::fit(usable))
        .flatten();
    if let Some(fitted) = fitted {
        return Some(Prior {
            df: fitted.prior.df.min(all),
            ..fitted.prior
        });
    }
    Some(Prior {
        df: all / 2.0,
        variance: ebayes::scale(usable, f64::INFINITY)?,
    })
}

/// Mean of one boot's values and how many there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BootMean {
    /// Mean on the scale of the comparison.
    pub mean: f64,
    /// Values behind it.
    pub runs: f64,
}

/// How boots of the same variant differ beyond what their runs explain: variance of boot means
/// less its share of `within`, pooled over groups of boots (method of moments; Searle, Casella,
/// McCulloch 1992, section 3.2), not below 0. `None` when no group has two boots or `within` is no
/// variance.
#[must_use]
pub fn between_boots(groups: &[Vec<BootMean>], within: f64) -> Option<BuildSpread> {
    let (mut squares, mut by_runs, mut df) = (0.0, 0.0, 0.0);
    for group in groups {
        let means: Vec<f64> = group.iter().map(|boot| boot.mean).collect();
        let Some(variance) = Summary::of(&means)
            .and_then(|summary| summary.sample_sd)
            .map(|sd| sd * sd)
        else {
            continue;
        };
        let share: f64 = group.iter().map(|boot| 1.0 / boot.runs).sum::<f64>();
        let own = count(group.len()) - 1.0;
        squares += own * variance;
        by_runs += own * within * share / count(group.len());
        df += own;
    }
    let (of_means, variance) = (squares / df, (squares - by_runs) / df);
    (df > 0.0 && within >= 0.0 && variance.is_finite()).then_some(BuildSpread {
        variance: variance.max(0.0),
        of_means,
        df,
    })
}

/// Residual mean square of a table of `blocks` rows by variants, and its degrees of freedom
/// `(v - 1)(b - 1)` (two-way layout without interaction; Scheffe 1959, chapter 4). `None` with
/// fewer than two variants or three blocks, rows of different lengths, or values that are not
/// finite.
#[must_use]
pub fn residual_of_blocks(blocks: &[Vec<f64>]) -> Option<(f64, f64)> {
    let variants = blocks.first()?.len();
    let fits = blocks.iter().all(|row| row.len() == variants);
    if !fits || variants < 2 || blocks.len() < 3 {
        return None;
    }
    let row_means = blocks
        .iter()
        .map(|row| Some(Summary::of(row)?.mean))
        .collect::<Option<Vec<f64>>>()?;
    let centred: Vec<Vec<f64>> = blocks
        .iter()
        .zip(&row_means)
        .map(|(row, mean)| row.iter().map(|v| v - mean).collect())
        .collect();
    let mut squares = 0.0;
    for variant in 0..variants {
        let column: Vec<f64> = centred
            .iter()
            .filter_map(|row| row.get(variant).copied())
            .collect();
        let variance = Summary::of(&column)?.sample_sd?.powi(2);
        squares += variance * (count(column.len()) - 1.0);
    }
    let df = (count(variants) - 1.0) * (count(blocks.len()) - 1.0);
    let variance = squares / df;
    variance.is_finite().then_some((variance, df))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_sets_are_worth_half_and_never_more_than_thirty() {
        let alone = |sets: &[(f64, f64)]| prior_of_sets(sets, None);
        let one = alone(&[(4.0, 10.0)]).expect("prior");
        assert_eq!((one.variance, one.df), (4.0, 5.0));
        let two = alone(&[(4.0, 10.0), (1.0, 20.0)]).expect("prior");
        assert!((two.variance - 2.0).abs() < 1e-12);
        assert_eq!(two.df, 15.0);
        let many = alone(&[(1.0, 50.0); 6]).expect("prior");
        assert_eq!(many.df, 30.0);
        assert!((many.variance - 1.0).abs() < 1e-9);
    }

    #[test]
    fn variances_that_move_are_worth_less() {
        let steady = [(1.0, 4.0), (1.1, 4.0), (0.9, 4.0), (1.0, 4.0)];
        let steady = prior_of_sets(&steady, None);
        let moving = [(1.0, 4.0), (100.0, 4.0), (0.01, 4.0), (5.0, 4.0)];
        let moving = prior_of_sets(&moving, None);
        assert_eq!(steady.expect("prior").df, 16.0);
        assert!(moving.expect("prior").df < 3.0);
    }

    /// A metric whose variances seem to move is believed when the others move, too.
    #[test]
    fn the_metrics_of_a_case_say_what_a_variance_is_worth() {
        let seems_to_move = [(1.0, 4.0), (0.3, 4.0), (2.5, 4.0), (1.6, 4.0)];
        let same = vec![vec![(2.0, 4.0), (1.0, 4.0), (3.0, 4.0)]; 20];
        let steady = Agreement::of(same.iter().map(Vec::as_slice)).expect("enough");
        let alone = prior_of_sets(&seems_to_move, None).expect("prior");
        let shared = prior_of_sets(&seems_to_move, Some(&steady)).expect("prior");
        assert!(alone.df < 12.0, "{alone:?}");
        assert!((shared.df - 16.0).abs() < 1e-12 && (shared.variance - 1.35).abs() < 1e-12);
        let apart = vec![vec![(2.0, 4.0), (0.2, 4.0), (20.0, 4.0)]; 20];
        let moving = Agreement::of(apart.iter().map(Vec::as_slice)).expect("enough");
        let d0 = moving.df(&seems_to_move);
        let shared = prior_of_sets(&seems_to_move, Some(&moving)).expect("prior");
        assert!(
            (1.0 / shared.df - 1.25 / d0 - 1.0 / 16.0).abs() < 1e-12,
            "{shared:?}"
        );
        assert!(shared.df < 2.0, "{shared:?}");
    }

    #[test]
    fn without_variance_there_is_no_prior() {
        assert_eq!(prior_of_sets(&[(0.0, 4.0), (f64::NAN, 4.0)], None), None);
        let same = vec![vec![(2.0, 4.0), (1.0, 4.0), (3.0, 4.0)]; 20];
        let of_case = Agreement::of(same.iter().map(Vec::as_slice));
        for of_case in [None, of_case] {
            assert_eq!(prior_of_sets(&[], of_case.as_ref()), None);
        }
    }

    #[test]
    fn boots_differ_beyond_their_runs() {
        let boot = |mean| BootMean { mean, runs: 4.0 };
        let groups = [vec![boot(10.0), boot(12.0)], vec![boot(1.0)]];
        // Variance of means 2, of which runs of variance 4 explain 1.
        let spread = between_boots(&groups, 4.0).expect("spread");
        assert!((spread.variance - 1.0).abs() < 1e-12 && spread.df == 1.0);
        assert!((spread.of_means - 2.0).abs() < 1e-12);
        let explained = between_boots(&groups, 40.0).expect("spread");
        assert_eq!(explained.variance, 0.0);
        assert_eq!(between_boots(&groups[1..], 1.0), None);
        for no_variance in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(between_boots(&groups, no_variance), None);
        }
    }

    #[test]
    fn blocks_and_variants_are_taken_out() {
        // Rows 0, 10, 20 and columns 0, 3 add up exactly.
        let exact = [vec![0.0, 3.0], vec![10.0, 13.0], vec![20.0, 23.0]];
        assert_eq!(residual_of_blocks(&exact), Some((0.0, 2.0)));
        // Differences 3, 4, 5: variance 1, half of it per run.
        let rest = [vec![0.0, 3.0], vec![10.0, 14.0], vec![20.0, 25.0]];
        let (variance, df) = residual_of_blocks(&rest).expect("residual");
        assert!((variance - 0.5).abs() < 1e-12 && df == 2.0);
        assert_eq!(residual_of_blocks(&rest[..2]), None);
        assert_eq!(residual_of_blocks(&[vec![1.0], vec![2.0], vec![3.0]]), None);
    }

    proptest! {
        #[test]
        fn any_input(
            sets in prop::collection::vec((any::<f64>(), any::<f64>()), 0..8),
            table in prop::collection::vec(prop::collection::vec(any::<f64>(), 0..4), 0..5),
            means in prop::collection::vec((any::<f64>(), 1.0..9.0_f64), 0..5), within in any::<f64>(),
        ) {
            let of_case = Agreement::of(std::iter::repeat_n(sets.as_slice(), 20));
            for prior in [None, of_case.as_ref()].into_iter().filter_map(|case| prior_of_sets(&sets, case)) {
                prop_assert!(prior.variance > 0.0 && prior.variance.is_finite());
                prop_assert!(prior.df > 0.0 && prior.df <= 30.0);
            }
            if let Some((variance, _)) = residual_of_blocks(&table) {
                prop_assert!(variance >= 0.0);
            }
            let group = means.into_iter().map(|(mean, runs)| BootMean { mean, runs }).collect();
            if let Some(spread) = between_boots(&[group], within) {
                prop_assert!(spread.variance >= 0.0 && spread.variance.is_finite());
            }
        }
    }
}
