//! The other table of kernel test robot mails: one row per case, one block per metric.
//!
//! The metric stands on the GEO-MEAN row behind the cases. Shares and names that end in `%` get
//! no such row: percentages are not averaged over cases.

use super::CHANGE;
use super::figure::{amount_text, cut, mean_and_spread, printable, spread_text, value_text};
use super::lkp::{LkpOptions, axis, notes};
use crate::comparison::{CaseTable, Cell, Column, Comparison, Row};
use kdyno_model::MetricName;
use kdyno_stats::{Change, summary::geometric_mean};
use std::collections::HashMap;
use std::fmt::Write;

const FIRST_WIDTH: usize = 16;
const LATER_WIDTH: usize = 26;
const CELL_WIDTH: usize = 17;
const CHANGE_WIDTH: usize = 11;
const LAST_TITLE: &str = "testcase/testparams/testbox";

/// The rows of one metric with the tables that they are from.
type CaseRows<'a> = Vec<(&'a CaseTable, &'a Row)>;

/// One block per metric, in order of first appearance.
#[must_use]
pub fn render(comparison: &Comparison, options: &LkpOptions<'_>) -> String {
    let mut out = axis(options, &comparison.columns);
    for (place, (metric, rows)) in by_metric(comparison).into_iter().enumerate() {
        if place > 0 {
            out.push('\n');
        }
        out.push_str(&block(comparison, metric, rows));
    }
    out.push_str(&notes(comparison));
    out
}

fn by_metric(comparison: &Comparison) -> Vec<(&MetricName, CaseRows<'_>)> {
    let mut position: HashMap<&MetricName, usize> = HashMap::new();
    let mut metrics: Vec<(&MetricName, CaseRows<'_>)> = Vec::new();
    for table in &comparison.tables {
        for row in table.rows() {
            let place = *position.entry(&row.metric).or_insert_with(|| {
                metrics.push((&row.metric, Vec::new()));
                metrics.len() - 1
            });
            if let Some((_, rows)) = metrics.get_mut(place) {
                rows.push((table, row));
            }
        }
    }
    metrics
}

fn block(comparison: &Comparison, metric: &MetricName, rows: CaseRows<'_>) -> String {
    let mut out = titles(&comparison.columns);
    for (table, row) in &rows {
        for (place, cell) in row.cells.iter().enumerate() {
            if place > 0 {
                out.push_str(&change_cell(cell.as_ref().and_then(shown_change)));
            }
            out.push_str(&value_cell(cell.as_ref().map(mean_and_spread)));
        }
        let _ = writeln!(out, "  {}", printable(&table.name()));
    }
    let rows: Vec<&Row> = rows.into_iter().map(|(_, row)| row).collect();
    let columns = comparison.columns.len();
    // Writing to a String cannot fail.
    let _ = match geo_mean(&rows, columns) {
        Some((cells, n)) if n < rows.len() => {
            writeln!(
                out,
                "{cells}  GEO-MEAN {metric} ({n} of {} cases)",
                rows.len()
            )
        }
        Some((cells, _)) => writeln!(out, "{cells}  GEO-MEAN {metric}"),
        None => {
            let width = CELL_WIDTH + (CHANGE_WIDTH + CELL_WIDTH) * columns.saturating_sub(1);
            writeln!(out, "{:width$}  {metric}", "")
        }
    };
    out
}

fn titles(columns: &[Column]) -> String {
    let later = columns.len().saturating_sub(1);
    let (mut names, mut rules) = (String::new(), String::new());
    for (place, column) in columns.iter().enumerate() {
        let (width, gap) = if place == 0 {
            (FIRST_WIDTH, "  ")
        } else {
            (LATER_WIDTH, " ")
        };
        let name = cut(column.name.as_str(), width);
        let _ = write!(names, "{name:<width$}{gap}");
        let _ = write!(rules, "{}{gap}", "-".repeat(width));
    }
    let headings = format!("{CHANGE:>12}         %stddev").repeat(later);
    let pointers = format!(
        "             \\  {}",
        "        |                \\  ".repeat(later)
    );
    format!(
        "{names}{LAST_TITLE}\n{rules}{}\n         %stddev{headings}\n{}\n",
        "-".repeat(LAST_TITLE.len()),
        pointers.trim_end()
    )
}

/// The change, unless it is too small to be shown.
fn shown_change(cell: &Cell) -> Option<Change> {
    cell.change.filter(|_| cell.moved)
}

/// Mean and spread, 17 wide.
fn value_cell(figure: Option<(f64, Option<f64>)>) -> String {
    match figure {
        Some((mean, spread)) => format!("{:>11}{}", value_text(mean), spread_text(spread)),
        None => " ".repeat(CELL_WIDTH),
    }
}

/// A change in whole percent, or a difference, 11 wide; blank when it rounds to nothing.
fn change_cell(change: Option<Change>) -> String {
    match change {
        Some(Change::Percent(percent)) if percent.abs() < 0.5 => " ".repeat(CHANGE_WIDTH),
        Some(Change::Percent(percent)) if percent.abs() < 100_000.0 => format!("{percent:>+10.0}%"),
        Some(change @ Change::Percent(_)) => format!("{:>10}%", amount_text(change)),
        Some(change @ Change::Absolute(_)) => format!("{:>10} ", amount_text(change)),
        None => " ".repeat(CHANGE_WIDTH),
    }
}

/// Geometric means per column over the cases that every column has, and how many cases those
/// are; `None` when there is no such case, a mean is not above 0, or the metric is a percentage.
fn geo_mean(rows: &[&Row], columns: usize) -> Option<(String, usize)> {
    if rows.first()?.metric.changes_absolutely() {
        return None;
    }
    let complete: Vec<&&Row> = rows
        .iter()
        .filter(|row| row.cells.iter().all(Option::is_some))
        .collect();
    let mut out = String::new();
    let mut base = None;
    for column in 0..columns {
        let cells = || {
            let of_column = complete.iter().filter_map(|row| row.cells.get(column));
            of_column.filter_map(Option::as_ref)
        };
        let means: Vec<f64> = cells().map(|cell| cell.summary.mean).collect();
        // The logarithm and back would cost a single case its last digit.
        let mean = match means[..] {
            [one] if one > 0.0 => one,
            _ => geometric_mean(&means)?,
        };
        let base = *base.get_or_insert(mean);
        if column > 0 {
            let comparable = cells().all(|cell| cell.change.is_some());
            let moved = cells().any(|cell| cell.moved);
            let change = Change::between(base, mean, false).filter(|_| comparable && moved);
            out.push_str(&change_cell(change));
        }
        out.push_str(&value_cell(Some((mean, None))));
    }
    Some((out, complete.len()))
}
