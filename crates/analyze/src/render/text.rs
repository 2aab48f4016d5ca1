//! The table for people at a terminal: sentences first, then figures with their number of runs.
//!
//! More than two columns are shown as pairs with the first, so that lines stay short whatever
//! the number of variants. Names of metrics are never cut; long names of variants are, and stand
//! whole in CSV and JSON. No verdict is claimed.

use super::PERCENT_CHANGE;
use super::figure::{cut, mean_and_spread, printable, shortened, spread_text, value_text};
use super::sentence::{boots, sentence};
use crate::compare::runs;
use crate::comparison::{
    CaseTable, Cell, Column, Comparison, Counts, FailureRow, Group, GroupKind, Row,
};
use crate::number::{general, general_signed};
use kdyno_model::Better;
use kdyno_stats::Change;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Prose is wrapped here; lines of figures are as long as their names need.
const PROSE_WIDTH: usize = 90;
const CELL_WIDTH: usize = 20;
const CHANGE_WIDTH: usize = 9;
/// Metrics named in a note before the rest is only counted.
const NAMED: usize = 3;

/// All tables, each with heading, sentences, figures and notes.
#[must_use]
pub fn render(comparison: &Comparison) -> String {
    let mut out = String::new();
    for (place, table) in comparison.tables.iter().enumerate() {
        if place > 0 {
            out.push('\n');
        }
        out.push_str(&section(table, &comparison.columns));
    }
    if comparison.tables.is_empty() {
        out.push_str("no run to compare\n");
    }
    let notes = comparison.notes.iter();
    let notes: String = notes
        .map(|note| wrapped(&format!("note: {}", with_titles(note, &comparison.columns))))
        .collect();
    out.push_str(&after_blank_line(&notes));
    out
}

/// A paragraph with a blank line before it, or nothing when it is empty.
fn after_blank_line(paragraph: &str) -> String {
    if paragraph.is_empty() {
        String::new()
    } else {
        format!("\n{paragraph}")
    }
}

/// Later columns that have figures here; the others are told by the heading.
fn later_columns(table: &CaseTable) -> Vec<usize> {
    let counts = table.counts.iter().enumerate().skip(1);
    counts
        .filter(|(_, counts)| counts.runs > 0)
        .map(|(place, _)| place)
        .collect()
}

fn section(table: &CaseTable, columns: &[Column]) -> String {
    let mut out = heading(table, columns);
    out.push_str(&after_blank_line(&prose(table, columns)));
    if table.rows().next().is_some() {
        let mut pairs: Vec<Vec<usize>> = later_columns(table)
            .into_iter()
            .map(|later| vec![0, later])
            .collect();
        if pairs.is_empty() {
            pairs.push(vec![0]);
        }
        for pair in pairs {
            out.push('\n');
            out.push_str(&figures(table, columns, &pair));
        }
    }
    out.push_str(&hidden(table.hidden));
    out.push_str(&notes(table, columns));
    out
}

/// What the headline metrics say, then what failed.
fn prose(table: &CaseTable, columns: &[Column]) -> String {
    let is_headline = |group: &&Group| group.kind == GroupKind::Headline;
    let headline = table
        .groups
        .iter()
        .filter(is_headline)
        .flat_map(|group| &group.rows);
    let mut out = String::new();
    for row in headline {
        for place in later_columns(table) {
            if let Some(sentence) = sentence(row, columns, place) {
                out.push_str(&wrapped(&sentence));
            }
        }
    }
    for row in &table.failures {
        out.push_str(&wrapped(&failure(row, columns)));
    }
    out
}

/// How many diagnostics were left out: by choice, or since they did not stand out, which is a
/// display filter and no verdict.
fn hidden(metrics: usize) -> String {
    let plural = if metrics == 1 { "" } else { "s" };
    match metrics {
        0 => String::new(),
        n => format!("\n{n} diagnostic{plural} not shown; `kdyno compare --all` shows them\n"),
    }
}

/// The case, then each column with its runs and boots.
fn heading(table: &CaseTable, columns: &[Column]) -> String {
    let mut out = format!("{}\n", printable(&table.name()));
    let names: Vec<String> = columns.iter().map(|c| shortened(c.name.as_str())).collect();
    let widths = names.iter().map(|name| name.chars().count());
    let width = widths.max().unwrap_or(0);
    for ((column, name), counts) in columns.iter().zip(&names).zip(&table.counts) {
        let _ = write!(out, "  {name:<width$}  {}", counted(counts));
        if let Some(description) = &column.description {
            let _ = write!(out, "  {}", printable(description));
        }
        out.push('\n');
    }
    out
}

fn counted(counts: &Counts) -> String {
    let mut text = runs(counts.runs);
    if counts.runs > 0 {
        let _ = write!(text, ", {}", boots(counts.boots.len()));
    }
    match counts.warm_ups {
        0 => {}
        1 => text.push_str(", 1 warm-up dropped"),
        n => {
            let _ = write!(text, ", {n} warm-ups dropped");
        }
    }
    text
}

fn failure(row: &FailureRow, columns: &[Column]) -> String {
    let parts: Vec<String> = row
        .cells
        .iter()
        .zip(columns)
        .map(|(cell, column)| {
            let name = shortened(column.name.as_str());
            let share = format!("{name} {} of {}", cell.failed, runs_of(cell.runs));
            match cell.difference {
                Some(points) => format!("{share} ({points:+.0} percentage points)"),
                None => share,
            }
        })
        .collect();
    format!("{}: {}", row.name, parts.join(", "))
}

fn runs_of(n: u64) -> String {
    usize::try_from(n).map_or_else(|_| format!("{n} runs"), runs)
}

/// The lines of figures for the columns at `places`.
fn figures(table: &CaseTable, columns: &[Column], places: &[usize]) -> String {
    let (mut names, mut titles) = (String::new(), String::new());
    for (position, place) in places.iter().enumerate() {
        if position > 0 {
            let _ = write!(names, " {:CHANGE_WIDTH$}", "");
            let _ = write!(titles, " {PERCENT_CHANGE:>CHANGE_WIDTH$}");
        }
        let name = columns
            .get(*place)
            .map_or("", |column| column.name.as_str());
        let _ = write!(names, "{:>CELL_WIDTH$}", cut(name, CELL_WIDTH - 1));
        let _ = write!(titles, "{:>10}{:>6}{:>4}", "mean", "%sd", "n");
    }
    let mut out = format!("{names}\n{titles}  metric\n");
    let mut in_diagnostics = false;
    for group in &table.groups {
        if matches!(group.kind, GroupKind::Diagnostic(_)) && !in_diagnostics {
            in_diagnostics = true;
            out.push('\n');
        }
        for row in &group.rows {
            out.push_str(&figure_line(row, places));
        }
    }
    out
}

fn figure_line(row: &Row, places: &[usize]) -> String {
    let mut out = String::new();
    for (position, place) in places.iter().enumerate() {
        let cell = row.cells.get(*place).and_then(Option::as_ref);
        if position > 0 {
            let change = cell
                .and_then(|cell| cell.change)
                .map(change_text)
                .unwrap_or_default();
            let _ = write!(out, " {change:>CHANGE_WIDTH$}");
        }
        out.push_str(&cell.map_or_else(|| format!("{:>10}{:10}", "-", ""), figure));
    }
    let direction = match row.better {
        Better::Higher => "higher is better",
        Better::Lower => "lower is better",
        Better::Neither => "",
    };
    let meaning: Vec<&str> = [row.unit.as_str(), direction]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    let _ = write!(out, "  {}  {}", row.metric, printable(&meaning.join(", ")));
    format!("{}\n", out.trim_end())
}

fn figure(cell: &Cell) -> String {
    let (mean, spread) = mean_and_spread(cell);
    let value = if mean != 0.0 && mean.abs() < 1.0 {
        general(mean, 4)
    } else {
        value_text(mean)
    };
    let spread = spread_text(spread.map(f64::abs));
    format!("{value:>10}{spread}{:>4}", cell.n())
}

/// A change with its percent sign; a difference has a blank in its place.
fn change_text(change: Change) -> String {
    let amount = change.amount();
    let small = matches!(change, Change::Absolute(_)) && amount != 0.0 && amount.abs() < 1.0;
    let text = if small || amount.abs() >= 100_000.0 {
        general_signed(amount, 2)
    } else {
        format!("{amount:+.1}")
    };
    match change {
        Change::Percent(_) => format!("{text}%"),
        Change::Absolute(_) => format!("{text} "),
    }
}

/// Notes of the table, then those of its rows by what they say.
fn notes(table: &CaseTable, columns: &[Column]) -> String {
    let mut out = String::new();
    for note in &table.notes {
        out.push_str(&wrapped(&format!("note: {}", with_titles(note, columns))));
    }
    let mut by_text: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in table.rows() {
        for note in row.notes.iter().filter(|note| !table.notes.contains(note)) {
            by_text.entry(note).or_default().push(row.metric.as_str());
        }
    }
    for (note, metrics) in by_text {
        let named = metrics
            .iter()
            .take(NAMED)
            .copied()
            .collect::<Vec<_>>()
            .join(", ");
        let rest = match metrics.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let note = with_titles(note, columns);
        out.push_str(&wrapped(&format!("note: {named}{rest}: {note}")));
    }
    after_blank_line(&out)
}

/// A note with the variants' names as the heading has them.
fn with_titles(note: &str, columns: &[Column]) -> String {
    let mut names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
    // A name may be the beginning of a longer one.
    names.sort_by_key(|name| Reverse(name.len()));
    names.into_iter().fold(note.to_owned(), |note, name| {
        note.replace(name, &shortened(name))
    })
}

/// Prose broken at blanks, further lines indented by two; a long word stands whole.
fn wrapped(text: &str) -> String {
    let text = printable(text);
    let (mut out, mut used) = (String::new(), 0);
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > PROSE_WIDTH {
            out.push_str("\n  ");
            used = 2;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out.push('\n');
    out
}
