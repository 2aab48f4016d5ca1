//! `rtla timerlat hist` and `rtla osnoise hist`: a column per CPU and place.

use super::parts::{add, bucket, check_total, float, number, push, unit_of};
use super::text::Line;
use super::{Found, HistError, Section};
use kdyno_model::{Histogram, Unit};

/// Whether a line heads the table.
pub(super) fn claims(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("# RTLA") || (line.starts_with("Index") && line.contains("-0"))
}

/// The table while it is read.
struct Table<'t> {
    names: Vec<&'t str>,
    rows: Vec<(u64, Vec<u64>, Line<'t>)>,
    /// Lines below it by their first word, `-` for what a column lacks.
    below: Vec<(&'t str, Vec<Option<u64>>, Line<'t>)>,
}

/// A section per column.
pub(super) fn read(lines: &[Line<'_>]) -> Found {
    let mut unit = Unit::new("us");
    let mut table: Option<Table<'_>> = None;
    for line in lines {
        let mut words = line.text.split_whitespace();
        let first = words.next().unwrap_or("");
        if let Some(told) = line.text.trim_start().strip_prefix("# Time unit is ") {
            unit = unit_of(told.split_whitespace().next().unwrap_or("us"));
        } else if first == "Index" {
            table = Some(Table {
                names: words.collect(),
                rows: Vec::new(),
                below: Vec::new(),
            });
        } else if let Some(table) = &mut table {
            if first == "ALL:" {
                break;
            }
            take(table, first, &words.collect::<Vec<_>>(), line)?;
        }
    }
    let Some(table) = table else {
        return Ok(Default::default());
    };
    let width = width_of(&table);
    let sections: Result<Vec<Section>, HistError> = (0..table.names.len())
        .map(|place| section(&table, place, width, &unit))
        .collect();
    Ok((sections?, Vec::new()))
}

fn take<'t>(
    table: &mut Table<'t>,
    first: &'t str,
    words: &[&'t str],
    line: &Line<'t>,
) -> Result<(), HistError> {
    if let Some(head) = first.strip_suffix(':') {
        if ["over", "count", "min", "avg", "max"].contains(&head) {
            let numbers = words.iter().map(|word| number(word)).collect();
            table.below.push((head, numbers, *line));
        }
        return Ok(());
    }
    let Some(index) = number(first).filter(|_| table.below.is_empty()) else {
        return Ok(());
    };
    let counts: Option<Vec<u64>> = words.iter().map(|word| number(word)).collect();
    match counts.filter(|counts| counts.len() == table.names.len()) {
        Some(counts) => table.rows.push((index, counts, *line)),
        None => {
            let reason = format!("no row of {} counts", table.names.len());
            return Err(HistError::row(line, reason));
        }
    }
    Ok(())
}

/// The width of buckets, which is not printed: indices are its multiples.
fn width_of(table: &Table<'_>) -> u64 {
    const ENOUGH_ROWS: usize = 4;
    let indices = table.rows.iter().map(|(index, _, _)| *index);
    let width = indices.reduce(divisor).unwrap_or(1);
    match table.rows.len() >= ENOUGH_ROWS {
        true => width.max(1),
        false => 1,
    }
}

/// Greatest common divisor.
pub(super) fn divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        b => divisor(b, a % b),
    }
}

fn section(table: &Table<'_>, place: usize, width: u64, unit: &Unit) -> Result<Section, HistError> {
    let mut histogram = Histogram::default();
    for (index, counts, line) in &table.rows {
        let count = counts.get(place).copied().unwrap_or(0);
        let end = index
            .checked_add(width)
            .ok_or_else(|| HistError::row(line, "a number is beyond what can be counted"))?;
        push(&mut histogram, bucket(*index, end, count), line)?;
    }
    let below = |head: &str| {
        let found = table.below.iter().find(|(known, _, _)| *known == head);
        found.and_then(|(_, numbers, line)| Some(((*numbers.get(place)?)?, line)))
    };
    if let Some((over, line)) = below("over") {
        histogram.overflow = add(histogram.overflow, over, line)?;
    }
    if let Some((count, line)) = below("count") {
        check_total(&histogram, count, line)?;
    }
    histogram.min = below("min").map(|(value, _)| float(value));
    histogram.max = below("max").map(|(value, _)| float(value));
    Ok(Section {
        name: table.names.get(place).map_or("", |name| name).to_owned(),
        unit: unit.clone(),
        histogram,
        span: None,
    })
}
