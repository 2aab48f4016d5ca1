//! Quantiles of series, each as the bounds of the bucket that it lies in.

use super::{Series, fitting, unit};
use crate::distribution::is_told;
use kdyno_stats::hist::{Bounds, Buckets};
use std::fmt::Write;

/// Quantiles that are told.
pub const QUANTILES: [(&str, f64); 6] = [
    ("min", 0.0),
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("max", 1.0),
];

/// A row per quantile, a column per series. A quantile beyond which there would be no event is not
/// told.
#[must_use]
pub fn quantiles(series: &[Series], in_unit: &str) -> String {
    let columns: Vec<Vec<String>> = series
        .iter()
        .map(|series| column(series, in_unit))
        .collect();
    let mut labels = vec![String::new(), "N".to_owned(), "runs".to_owned()];
    labels.extend(QUANTILES.map(|(name, _)| name.to_owned()));
    labels.push("outside".to_owned());
    let first = labels.iter().map(|label| label.len()).max().unwrap_or(0);
    let width_of = |cells: &Vec<String>| cells.iter().map(|c| c.chars().count()).max();
    let widths: Vec<usize> = columns
        .iter()
        .map(|cells| width_of(cells).unwrap_or(0) + 2)
        .collect();
    let mut text = String::new();
    for part in fitting(first, &widths) {
        if part.start > 0 {
            text.push('\n');
        }
        for (row, label) in labels.iter().enumerate() {
            let cells = columns.iter().zip(&widths).take(part.end).skip(part.start);
            let cells: Vec<(&str, &usize)> = cells
                .filter_map(|(column, width)| Some((column.get(row)?.as_str(), width)))
                .collect();
            if cells.iter().all(|(cell, _)| cell.is_empty()) {
                continue;
            }
            let _ = write!(text, "{label:<first$}");
            for (cell, width) in cells {
                let cell = if cell.is_empty() { "." } else { cell };
                let _ = write!(text, "{cell:>width$}");
            }
            text.push('\n');
        }
    }
    text
}

/// Name, number of events, of runs, the quantiles, what is outside of all buckets.
fn column(series: &Series, in_unit: &str) -> Vec<String> {
    let pooled = series.pooled();
    let mut cells = vec![
        series.name.clone(),
        pooled.count().to_string(),
        series.runs.len().to_string(),
    ];
    cells.extend(QUANTILES.map(|(_, p)| cell(&pooled, p, in_unit)));
    cells.push(match (pooled.below, pooled.above) {
        (0, 0) => String::new(),
        (0, above) => format!("{above} above"),
        (below, 0) => format!("{below} below"),
        (below, above) => format!("{below} below, {above} above"),
    });
    cells
}

/// Where a quantile lies; empty where it cannot be told.
#[must_use]
pub fn cell(buckets: &Buckets, p: f64, in_unit: &str) -> String {
    if p < 1.0 && !is_told(buckets, p) {
        return String::new();
    }
    let exact = match p {
        0.0 => buckets.min,
        1.0 => buckets.max,
        _ => None,
    };
    if let Some(value) = exact {
        return unit::label(value, in_unit);
    }
    match buckets.quantile(p) {
        Some(Bounds {
            low: Some(low),
            high: Some(high),
        }) => unit::range(low, high, in_unit),
        Some(Bounds {
            low: Some(low),
            high: None,
        }) => format!("above {}", unit::label(low, in_unit)),
        Some(Bounds {
            low: None,
            high: Some(high),
        }) => format!("below {}", unit::label(high, in_unit)),
        _ => String::new(),
    }
}
