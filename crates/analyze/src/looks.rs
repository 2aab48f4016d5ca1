//! Runs that are looked at while they grow: to which levels, and whether they decide.
//!
//! The looks were planned, so that their levels can be: O'Brien and Fleming's spending for
//! changes as well as for equivalence. A plan that ended early is judged at the level of the look
//! that ended it, also later, or its verdicts would be cheaper than those of others.

use crate::comparison::{CaseTable, Cell, Comparison, Row};
use crate::judge::Strictness;
use kdyno_model::{Role, RunRow};
use kdyno_stats::judge::{ALPHA, Reason, Verdict};
use kdyno_stats::spending::{Spending, boundaries};
use std::collections::HashMap;

/// The levels for `done` runs a side of a plan that is looked at after each of `looks` runs
/// (ascending): those of the last look that was reached, before the first look those of the
/// first. `None` when there is no look.
#[must_use]
pub fn strictness_at(looks: &[u32], done: u32, usual: Strictness) -> Option<Strictness> {
    let most = f64::from(*looks.last()?);
    let times: Vec<f64> = looks.iter().map(|runs| f64::from(*runs) / most).collect();
    let reached = looks.iter().filter(|runs| **runs <= done).count();
    let place = reached.saturating_sub(1);
    let nominal = |alpha: f64| {
        let levels = boundaries(&times, alpha, Spending::ObrienFleming)?;
        levels.get(place).map(|look| look.nominal_p)
    };
    Some(Strictness {
        alpha: nominal(ALPHA)?,
        // Two one-sided tests at the level each.
        equivalence_alpha: nominal(2.0 * usual.equivalence_alpha)? / 2.0,
        ..usual
    })
}

/// The fewest measured runs that a case and variant of a plan has, whatever became of them.
#[must_use]
pub fn runs_done<'a>(rows: impl IntoIterator<Item = &'a RunRow>) -> u32 {
    let mut counts: HashMap<(&str, &str), u32> = HashMap::new();
    for row in rows {
        let count = counts
            .entry((row.case.id.0.as_str(), row.variant.as_str()))
            .or_default();
        if !row.warm_up {
            *count += 1;
        }
    }
    counts.into_values().min().unwrap_or(0)
}

/// Where a headline metric stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// `testcase/params/testbox`.
    pub table: String,
    /// The metric.
    pub metric: String,
    /// The variant that is set against the first.
    pub variant: String,
    /// What is said of it.
    pub verdict: Verdict,
    /// Why.
    pub reasons: Vec<Reason>,
}

impl Standing {
    /// Whether more runs would not change what is said.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let barred = |reason: &Reason| {
            matches!(
                reason,
                Reason::OneBoot
                    | Reason::Alias
                    | Reason::Throttled
                    | Reason::EnvironmentDiffers
                    | Reason::Drift
            )
        };
        self.verdict != Verdict::Unclear || self.reasons.iter().any(barred)
    }
}

/// Where every headline metric of every column but controls stands.
#[must_use]
pub fn standings(comparison: &Comparison) -> Vec<Standing> {
    let of_cell = |table: &CaseTable, row: &Row, place: usize, cell: &Cell| {
        let judgement = &cell.judged.as_ref()?.judgement;
        let column = comparison.columns.get(place).filter(|c| !c.control)?;
        Some(Standing {
            table: table.name(),
            metric: row.metric.to_string(),
            variant: column.name.to_string(),
            verdict: judgement.verdict,
            reasons: judgement.reasons.clone(),
        })
    };
    let mut standings = Vec::new();
    for table in &comparison.tables {
        for row in table.rows().filter(|row| row.role == Role::Headline) {
            for (place, cell) in row.cells.iter().enumerate() {
                standings.extend(cell.as_ref().and_then(|c| of_cell(table, row, place, c)));
            }
        }
    }
    standings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_grow_with_the_looks() {
        let usual = Strictness::default();
        let looks = [5, 10, 15, 20];
        let alpha = |done| strictness_at(&looks, done, usual).expect("levels").alpha;
        assert!(alpha(5) < 0.001 && alpha(5) < alpha(10));
        assert_eq!(alpha(3), alpha(5));
        assert_eq!(alpha(12), alpha(10));
        assert!(alpha(20) > 0.04 && alpha(20) < ALPHA);
        assert_eq!(strictness_at(&[], 5, usual), None);
        let single = strictness_at(&[8], 8, usual).expect("levels");
        assert!((single.alpha - ALPHA).abs() < 1e-12);
        assert!((single.equivalence_alpha - ALPHA).abs() < 1e-12);
    }
}
