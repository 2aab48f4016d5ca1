//! The comparison table of kernel test robot mails, to the column.
//!
//! People and scripts read this form, so it holds nothing of our own but notes behind the last
//! block and, where asked for, verdicts right of the metrics' names. Failures are set against each column's own number of runs. Counts of runs, boots and
//! medians are in the other forms.

#[cfg(test)]
mod corpus_tests;

use super::PERCENT_CHANGE;
use super::figure::{amount_text, cut, mean_and_spread, printable, spread_text, value_text};
use super::words::{interval_text, p_text, verdict_text};
use crate::comparison::{CaseTable, Cell, Column, Comparison, FailureCell, Row};
use kdyno_stats::Change;
use std::fmt::Write;

const FIRST_WIDTH: usize = 16;
const LATER_WIDTH: usize = 27;
const BLOCK_RULE: usize = 89;
const SEPARATOR: usize = 99;

/// What the caller knows better.
#[derive(Clone, Copy, Debug)]
pub struct LkpOptions<'a> {
    /// What the columns are: `variant`, or `commit` when they are commits.
    pub axis: &'a str,
    /// Whether verdict, interval, adjusted p and number of runs stand beside each metric.
    pub verdicts: bool,
}

impl Default for LkpOptions<'_> {
    fn default() -> Self {
        Self {
            axis: "variant",
            verdicts: false,
        }
    }
}

/// One block per case and testbox, separated as the mails do.
#[must_use]
pub fn render(comparison: &Comparison, options: &LkpOptions<'_>) -> String {
    let mut out = String::new();
    for (place, table) in comparison.tables.iter().enumerate() {
        if place > 0 {
            let stars = "*".repeat(SEPARATOR);
            let testbox = printable(&table.testbox);
            // Writing to a String cannot fail.
            let _ = write!(out, "\n\n{stars}\n{testbox}\n");
        }
        let (table, columns) = present(table, &comparison.columns);
        out.push_str(&parameters(&table));
        out.push_str(&axis(options, &columns));
        out.push_str(&block(&table, &columns, options));
    }
    out.push_str(&notes(comparison));
    out
}

/// The table without the columns that have no run of its case: they would only be blank.
fn present(table: &CaseTable, columns: &[Column]) -> (CaseTable, Vec<Column>) {
    fn kept<T: Clone>(items: &[T], places: &[usize]) -> Vec<T> {
        places
            .iter()
            .filter_map(|place| items.get(*place).cloned())
            .collect()
    }
    let failed = |place: usize| {
        table
            .failures
            .iter()
            .any(|row| row.cells.get(place).is_some_and(|c| c.runs > 0))
    };
    let counts = table.counts.iter().enumerate();
    let places: Vec<usize> = counts
        .filter(|(place, counts)| counts.runs > 0 || failed(*place))
        .map(|(place, _)| place)
        .collect();
    let mut narrow = table.clone();
    narrow.counts = kept(&table.counts, &places);
    for row in &mut narrow.failures {
        row.cells = kept(&row.cells, &places);
    }
    for row in narrow.groups.iter_mut().flat_map(|group| &mut group.rows) {
        row.cells = kept(&row.cells, &places);
    }
    (narrow, kept(columns, &places))
}

/// The rule and the two lines that name the case.
fn parameters(table: &CaseTable) -> String {
    format!(
        "{}\ntestcase/testparams/testbox:\n  {}\n\n",
        "=".repeat(BLOCK_RULE),
        printable(&table.name())
    )
}

/// The section that names the columns in full.
pub(super) fn axis(options: &LkpOptions<'_>, columns: &[Column]) -> String {
    let mut out = format!("{}: \n", options.axis);
    for column in columns {
        let name = printable(column.name.as_str());
        let _ = match column.description.as_deref().map(printable) {
            Some(description) => writeln!(out, "  {name} (\"{description}\")"),
            None => writeln!(out, "  {name}"),
        };
    }
    out.push('\n');
    out
}

fn block(table: &CaseTable, columns: &[Column], options: &LkpOptions<'_>) -> String {
    let mut out = titles(columns);
    let later = columns.len().saturating_sub(1);
    if !table.failures.is_empty() {
        out.push_str(&line(
            "       fail:runs",
            "  %reproduction    fail:runs",
            later,
        ));
        out.push_str(&line(
            "           |    ",
            "         |             |    ",
            later,
        ));
    }
    for row in &table.failures {
        let cells = row.cells.iter().map(failure_cell);
        let changes = row
            .cells
            .iter()
            .map(|cell| difference_cell(cell.difference));
        out.push_str(&data_row(cells, changes, &row.name));
    }
    if table.rows().next().is_some() {
        let change = format!("{PERCENT_CHANGE:>12}         %stddev");
        out.push_str(&line("         %stddev", &change, later));
        out.push_str(&line(
            "             \\  ",
            "        |                \\  ",
            later,
        ));
    }
    let names = table.rows().map(|row| row.metric.as_str().len());
    let width = names.max().unwrap_or(0);
    for row in table.rows() {
        let beside = if options.verdicts {
            beside(row, width)
        } else {
            String::new()
        };
        out.push_str(&metric_row(row, &beside));
    }
    out
}

/// Verdict, interval, adjusted p and runs of each later column, behind a name as wide as `width`.
fn beside(row: &Row, width: usize) -> String {
    let mut out = " ".repeat(width.saturating_sub(row.metric.as_str().len()));
    let base = row.base().map_or(0, Cell::n);
    for cell in row.cells.iter().skip(1) {
        let judged = cell.as_ref().and_then(|c| Some((c, c.judged.as_deref()?)));
        let _ = match judged {
            Some((cell, judged)) => write!(
                out,
                "  {:<24}{:>16}  q {:<6} n {base}/{:<4}",
                verdict_text(judged),
                interval_text(judged).trim_end(),
                p_text(judged.adjusted_p),
                cell.n()
            ),
            None => write!(out, "{:60}", ""),
        };
    }
    out.truncate(out.trim_end().len());
    out
}

fn titles(columns: &[Column]) -> String {
    let (mut names, mut rules) = (String::new(), String::new());
    for (place, column) in columns.iter().enumerate() {
        let width = if place == 0 { FIRST_WIDTH } else { LATER_WIDTH };
        let name = cut(column.name.as_str(), width);
        let _ = write!(names, "{name:<width$} ");
        let _ = write!(rules, "{} ", "-".repeat(width));
    }
    format!("{names}\n{rules}\n")
}

fn line(first: &str, later: &str, times: usize) -> String {
    format!("{first}{}\n", later.repeat(times))
}

fn metric_row(row: &Row, beside: &str) -> String {
    let cells = row
        .cells
        .iter()
        .map(|cell| value_cell(cell.as_ref().map(mean_and_spread)));
    let changes = row
        .cells
        .iter()
        .map(|cell| change_cell(change_of(cell.as_ref())));
    data_row(cells, changes, &format!("{}{beside}", row.metric))
}

fn change_of(cell: Option<&Cell>) -> Option<Change> {
    cell.and_then(|cell| cell.change)
}

/// Cells with a change before each but the first, then the name.
fn data_row(
    cells: impl Iterator<Item = String>,
    changes: impl Iterator<Item = String>,
    name: &str,
) -> String {
    let mut out = String::new();
    for (place, (cell, change)) in cells.zip(changes).enumerate() {
        if place > 0 {
            out.push_str(&change);
        }
        out.push_str(&cell);
    }
    let _ = writeln!(out, "  {name}");
    out
}

/// Mean and spread in percent, 16 wide; blanks for what is missing.
fn value_cell(figure: Option<(f64, Option<f64>)>) -> String {
    match figure {
        Some((mean, spread)) => format!("{:>10}{}", value_text(mean), spread_text(spread)),
        None => " ".repeat(16),
    }
}

/// A change, 12 wide: percent, or a difference followed by two blanks.
fn change_cell(change: Option<Change>) -> String {
    let unit = match change {
        Some(Change::Percent(_)) => "% ",
        _ => "  ",
    };
    let amount = change.map(amount_text).unwrap_or_default();
    format!("{amount:>10}{unit}")
}

/// Failed and attempted runs, 16 wide; no failure is blank.
fn failure_cell(cell: &FailureCell) -> String {
    let failed = match cell.failed {
        0 => String::new(),
        failed => failed.to_string(),
    };
    format!("{failed:>11}:{:<4}", cell.runs)
}

/// Difference of two shares of failures in percentage points, 12 wide.
fn difference_cell(difference: Option<f64>) -> String {
    match difference {
        // The sum turns a negative zero into zero.
        Some(points) => format!("{:>10.0}% ", points.round() + 0.0),
        None => " ".repeat(12),
    }
}

/// Every note of the comparison once, behind a blank line.
pub(super) fn notes(comparison: &Comparison) -> String {
    let mut out = String::new();
    let tables = comparison.tables.iter().flat_map(|table| {
        table
            .notes
            .iter()
            .map(|note| format!("{}: {note}", table.name()))
    });
    for note in comparison.notes.iter().cloned().chain(tables) {
        if out.is_empty() {
            out.push('\n');
        }
        let _ = writeln!(out, "note: {}", printable(&note));
    }
    out
}
