//! One plain sentence per headline metric and column.
//!
//! A sentence says what the means are and how many runs and boots stand behind them. It claims
//! no verdict, and that nothing stood out is never said to mean that nothing changed. Two runs on
//! a side hardly show a spread that a difference could be held against (two and two are apart by
//! chance once in three times), so that with fewer than three only the figures are stated.

use super::figure::{printable, shortened};
use crate::compare::runs;
use crate::comparison::{Cell, Column, Row};
use crate::number::{general, plain};
use kdyno_model::Better;
use kdyno_stats::Change;

/// With fewer runs on a side no difference is claimed.
const FEWEST_RUNS: usize = 3;

/// The sentence for the column at `place` against the first; `None` when there is no such column.
pub(super) fn sentence(row: &Row, columns: &[Column], place: usize) -> Option<String> {
    let base_name = shortened(columns.first()?.name.as_str());
    let name = shortened(columns.get(place)?.name.as_str());
    let metric = &row.metric;
    let cell = row.cells.get(place).and_then(Option::as_ref);
    let Some(base) = row.base() else {
        return Some(format!(
            "{metric} of {name}: not compared, {base_name} has no figure of it"
        ));
    };
    let Some(cell) = cell else {
        return Some(format!(
            "{metric} of {base_name}: not compared, {name} has no figure of it"
        ));
    };
    let Some(change) = cell.change else {
        return Some(format!(
            "{metric} of {name} and {base_name}: not compared, see the notes"
        ));
    };
    if cell.n() < FEWEST_RUNS || base.n() < FEWEST_RUNS {
        let figures = few_runs(cell, base, row);
        return Some(format!("{metric} of {name} and {base_name}: {figures}"));
    }
    let grounds = grounds(cell, base);
    if !cell.moved {
        return Some(format!(
            "{metric} of {name} and {base_name}: no difference can be told from these runs ({grounds})"
        ));
    }
    let higher = cell.summary.mean > base.summary.mean;
    let direction = if higher { "higher" } else { "lower" };
    let judgement = match (row.better, higher) {
        (Better::Neither, _) => "",
        (Better::Higher, true) | (Better::Lower, false) => ", which is better",
        (Better::Higher, false) | (Better::Lower, true) => ", which is worse",
    };
    let amount = amount(change, row);
    Some(format!(
        "{metric} of {name} is {amount} {direction} than {base_name}{judgement} ({grounds})"
    ))
}

/// The figures of two sides, one of which has too few runs.
fn few_runs(cell: &Cell, base: &Cell, row: &Row) -> String {
    let unit = printable(row.unit.as_str());
    let figure = |cell: &Cell| {
        let figure = format!("{} {unit}", plain(cell.summary.mean));
        figure.trim_end().to_owned()
    };
    let source = |cell: &Cell| match cell.n() {
        1 => "one run".to_owned(),
        n => format!("mean of {}", runs(n)),
    };
    let (own, of_base) = (figure(cell), figure(base));
    let figures = match (cell.n(), base.n()) {
        (1, 1) => format!("measured once each: {own} against {of_base}"),
        _ => format!(
            "{own} ({}) against {of_base} ({})",
            source(cell),
            source(base)
        ),
    };
    format!("{figures}; too few runs to tell a difference")
}

/// How large a change is, without its sign.
fn amount(change: Change, row: &Row) -> String {
    let size = match change.amount().abs() {
        size if (10.0..100_000.0).contains(&size) => format!("{size:.0}"),
        size => general(size, 2),
    };
    match change {
        Change::Percent(_) => format!("{size} %"),
        Change::Absolute(_) if row.metric.changes_absolutely() => {
            format!("{size} percentage points")
        }
        Change::Absolute(_) => format!("{size} {}", printable(row.unit.as_str()))
            .trim_end()
            .to_owned(),
    }
}

/// Runs and boots behind two cells of several runs, and what the display filter found.
fn grounds(cell: &Cell, base: &Cell) -> String {
    let (n, base_n) = (cell.n(), base.n());
    let means = if n == base_n {
        format!("means of {} each", runs(n))
    } else {
        format!("means of {} against {}", runs(n), runs(base_n))
    };
    let boots = boots(cell.boots().union(&base.boots()).count());
    let filter = if cell.moved {
        "more than two standard errors apart"
    } else {
        "within two standard errors of each other"
    };
    format!("{means}, {boots}; {filter}")
}

/// `1 boot`, `3 boots`; a number of 0 means that nobody recorded them.
pub(super) fn boots(n: usize) -> String {
    match n {
        0 => "boots unknown".to_owned(),
        1 => "1 boot".to_owned(),
        n => format!("{n} boots"),
    }
}
