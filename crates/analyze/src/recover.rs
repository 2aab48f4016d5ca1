//! How much of a regression a fix takes back.
//!
//! The share `(fixed - bad) / (good - bad)` of the means, with Fieller's interval: both ends of
//! the scale are measured too. Where good and bad do not clearly differ there is no share.

use crate::comparison::{Cell, Comparison, Row};
use kdyno_model::Role;
use kdyno_stats::index::{Index, NoIndex, normalise};
use kdyno_stats::judge::{ALPHA, Reason};

/// What a fix takes back of one metric's regression.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovery {
    /// `testcase/params/testbox`.
    pub table: String,
    /// The metric.
    pub metric: String,
    /// The share, 1 for all of it; or why there is none.
    pub share: Result<Index, NoIndex>,
    /// [`Reason::PartialFix`] where the interval lies between nothing and everything.
    pub reason: Option<Reason>,
}

/// The recovery of every headline metric whose first three columns are good, bad and fixed.
#[must_use]
pub fn recoveries(comparison: &Comparison) -> Vec<Recovery> {
    let mut found = Vec::new();
    for table in &comparison.tables {
        for row in table.rows().filter(|row| row.role == Role::Headline) {
            found.extend(recovery(table.name(), row));
        }
    }
    found
}

fn recovery(table: String, row: &Row) -> Option<Recovery> {
    let values = |column: usize| row.cell(column).map(Cell::values);
    let comparable = [1, 2]
        .iter()
        .all(|column| row.cell(*column).is_some_and(|cell| cell.change.is_some()));
    let (good, bad, fixed) = (values(0)?, values(1)?, values(2)?);
    let share = comparable.then(|| normalise(&fixed, &bad, &good, ALPHA))?;
    let partial = share
        .as_ref()
        .is_ok_and(|index| index.fieller.0 > 0.0 && index.fieller.1 < 1.0);
    Some(Recovery {
        table,
        metric: row.metric.to_string(),
        share,
        reason: partial.then_some(Reason::PartialFix),
    })
}

/// A line in words per recovery: the fix is the third column's name.
#[must_use]
pub fn sentences(comparison: &Comparison) -> String {
    let name = |column: usize| {
        let column = comparison.columns.get(column);
        column.map_or_else(String::new, |column| column.name.to_string())
    };
    let (good, bad, fixed) = (name(0), name(1), name(2));
    let mut out = String::from("\n");
    for recovery in recoveries(comparison) {
        let said = match recovery.share {
            Ok(index) => {
                let percent = |share: f64| 100.0 * share;
                let (low, high) = index.fieller;
                let verdict = match recovery.reason {
                    Some(reason) => format!(": {reason}"),
                    None if low > 0.0 => ": all of it, as far as these runs tell".to_owned(),
                    None if high < 1.0 => ": nothing, as far as these runs tell".to_owned(),
                    None => ": unclear".to_owned(),
                };
                format!(
                    "{fixed} recovers {:.0} % ({:.0}..{:.0} %) of the way from {bad} to {good}{verdict}",
                    percent(index.index),
                    percent(low),
                    percent(high)
                )
            }
            Err(NoIndex::AnchorsDoNotDiffer { .. }) => {
                format!("no share: {good} and {bad} do not clearly differ")
            }
            Err(NoIndex::NotEnoughData) => "no share: too few runs".to_owned(),
        };
        out.push_str(&format!("{} {}: {said}\n", recovery.table, recovery.metric));
    }
    out
}
