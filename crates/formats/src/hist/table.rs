//! The bucket table: a row per bucket, named by its lower limit, a column per configuration.

use super::parts::{add, bucket, check_total, number, push};
use super::rtla::divisor;
use super::text::Line;
use super::{Found, HistError, Section};
use kdyno_model::{Histogram, Unit};
use regex::Regex;
use std::sync::LazyLock;

static ROW: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\s*(?<open>[<>]?)(?<low>\d+)\s?(?<unit>ns|us|ms|s):\s*(?<cells>[\d.\s]*)$").ok()
});

/// Whether a line is a row.
pub(super) fn claims(line: &str) -> bool {
    ROW.as_ref().is_some_and(|row| row.is_match(line))
}

/// A row with its cells.
struct Row<'t> {
    open: &'t str,
    low: u64,
    counts: Vec<u64>,
    line: Line<'t>,
}

/// A section per column.
pub(super) fn read(lines: &[Line<'_>]) -> Found {
    let Some(pattern) = &*ROW else {
        return Ok(Default::default());
    };
    let (mut names, mut totals, mut unit) = (Vec::new(), None, "");
    let mut rows: Vec<Row<'_>> = Vec::new();
    for line in lines {
        let text = line.text.trim();
        if let Some(found) = pattern.captures(line.text) {
            let of = |name: &str| found.name(name).map_or("", |text| text.as_str());
            if unit.is_empty() {
                unit = of("unit");
            }
            if of("unit") != unit {
                return Err(HistError::row(line, format!("its unit is not {unit}")));
            }
            rows.push(row(&of, line, rows.first())?);
        } else if let Some(rest) = text.strip_prefix("Time") {
            if rows.is_empty() {
                names = rest.split_whitespace().collect();
            }
        } else if let Some(rest) = text.strip_prefix("N:") {
            let numbers: Option<Vec<u64>> = rest.split_whitespace().map(number).collect();
            totals = numbers.map(|numbers| (numbers, *line));
        } else if !rows.is_empty() && is_cells(text) {
            return Err(HistError::row(
                line,
                "cells without a row: the line above was broken",
            ));
        }
    }
    let columns = rows.first().map_or(0, |row| row.counts.len());
    let sections: Result<Vec<Section>, HistError> = (0..columns)
        .map(|place| {
            let histogram = column(&rows, place)?;
            if let Some((totals, line)) = &totals
                && let Some(total) = totals.get(place).filter(|_| totals.len() == columns)
            {
                check_total(&histogram, *total, line)?;
            }
            let named = names.get(place).filter(|_| names.len() == columns);
            Ok(Section {
                name: named.map_or_else(|| format!("column {}", place + 1), |n| (*n).to_owned()),
                unit: Unit::new(unit),
                histogram,
                span: None,
            })
        })
        .collect();
    Ok((sections?, Vec::new()))
}

fn is_cells(text: &str) -> bool {
    let mut words = text.split_whitespace().peekable();
    words.peek().is_some() && words.all(|word| word == "." || number(word).is_some())
}

/// Reads a row. Cells that mail has lost cannot be told from those that are left: then there are
/// fewer than the first row has.
fn row<'t>(
    of: &impl Fn(&str) -> &'t str,
    line: &Line<'t>,
    first: Option<&Row<'_>>,
) -> Result<Row<'t>, HistError> {
    let beyond = || HistError::row(line, "a cell is no number and no dot");
    let counts: Option<Vec<u64>> = of("cells")
        .split_whitespace()
        .map(|cell| match cell {
            "." => Some(0),
            cell => number(cell),
        })
        .collect();
    let counts = counts.ok_or_else(beyond)?;
    let wanted = first.map_or(counts.len(), |first| first.counts.len());
    if counts.is_empty() || counts.len() != wanted {
        return Err(HistError {
            line: Some(line.number),
            reason: format!("{} cells, the first row has {wanted}", counts.len()),
            hint: "empty cells are lost, which nobody can put back: write a dot for each"
                .to_owned(),
        });
    }
    Ok(Row {
        open: of("open"),
        low: number(of("low")).ok_or_else(beyond)?,
        counts,
        line: *line,
    })
}

/// The histogram of one column. The width of a row is not printed: it is the greatest of which its
/// limit and all above are multiples.
fn column(rows: &[Row<'_>], place: usize) -> Result<Histogram, HistError> {
    let mut histogram = Histogram::default();
    for (position, row) in rows.iter().enumerate() {
        let count = row.counts.get(place).copied().unwrap_or(0);
        match row.open {
            ">" => histogram.overflow = add(histogram.overflow, count, &row.line)?,
            "<" => histogram.underflow = add(histogram.underflow, count, &row.line)?,
            _ => {
                let above = rows.iter().skip(position).map(|row| row.low);
                let width = above.fold(0, divisor).max(1);
                let end = row.low.checked_add(width);
                let end = end.ok_or_else(|| {
                    HistError::row(&row.line, "a number is beyond what can be counted")
                })?;
                push(&mut histogram, bucket(row.low, end, count), &row.line)?;
            }
        }
    }
    Ok(histogram)
}
