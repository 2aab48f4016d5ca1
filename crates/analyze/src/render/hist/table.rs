//! The bucket table: a row per bucket, a column per series, as people post it to compare settings of
//! a wait loop. The value of a row is its lower limit; an empty cell is a dot, since blanks do not
//! survive a mail.

use super::{Printed, Series, fitting};
use crate::number::general;
use kdyno_stats::hist::Regrouped;
use std::fmt::Write;

/// Rows between `edges`, in `unit`, of all series; rows without an event are left out. Series that
/// do not fit beside each other follow in a block of their own.
#[must_use]
pub fn table(series: &[Series], edges: &[f64], unit: &str) -> Printed {
    let columns: Vec<Regrouped> = series
        .iter()
        .map(|series| series.pooled().regrouped(edges))
        .collect();
    let last = edges.last().copied().unwrap_or(0.0);
    let first = edges.first().copied().unwrap_or(0.0);
    let mut rows = vec![Row::of(
        format!("<{}{unit}:", number(first)),
        &columns,
        |c| c.below,
    )];
    rows.extend(edges.iter().enumerate().map(|(place, low)| {
        let count = |column: &Regrouped| column.counts.get(place).copied().unwrap_or(0);
        Row::of(format!("{}{unit}:", number(*low)), &columns, count)
    }));
    rows.push(Row::of(
        format!(">{}{unit}:", number(last)),
        &columns,
        |c| c.above,
    ));
    rows.retain(|row| row.counts.iter().any(|count| *count > 0));
    let total = Row::of("N:".to_owned(), &columns, Regrouped::total);
    Printed {
        text: blocks(series, &total, &rows),
        across: columns.iter().map(|column| column.across).sum(),
        outside: 0,
    }
}

/// A line of the table.
struct Row {
    label: String,
    counts: Vec<u64>,
}

impl Row {
    fn of(label: String, columns: &[Regrouped], count: impl Fn(&Regrouped) -> u64) -> Self {
        Self {
            label,
            counts: columns.iter().map(count).collect(),
        }
    }
}

fn blocks(series: &[Series], total: &Row, rows: &[Row]) -> String {
    let labels = rows.iter().map(|row| row.label.chars().count());
    let first = labels.max().unwrap_or(0).max("Time".len());
    let widths: Vec<usize> = series
        .iter()
        .zip(&total.counts)
        .map(|(series, total)| {
            let name = series.name.chars().count();
            name.max(total.to_string().len()) + 2
        })
        .collect();
    let mut text = String::new();
    for part in fitting(first, &widths) {
        if part.start > 0 {
            text.push('\n');
        }
        let _ = write!(text, "{:>first$}", "Time");
        for (series, width) in series.iter().zip(&widths).take(part.end).skip(part.start) {
            let _ = write!(text, "{:>width$}", series.name);
        }
        text.push('\n');
        for row in std::iter::once(total).chain(rows) {
            let _ = write!(text, "{:>first$}", row.label);
            let cells = row.counts.iter().zip(&widths);
            for (count, width) in cells.take(part.end).skip(part.start) {
                match count {
                    0 => _ = write!(text, "{:>width$}", "."),
                    count => _ = write!(text, "{count:>width$}"),
                }
            }
            text.push('\n');
        }
    }
    text
}

fn number(value: f64) -> String {
    general(value, 12)
}
