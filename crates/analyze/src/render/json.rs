//! The comparison as JSON, for programs.
//!
//! The shape is written out here and not derived from the data types, so that an inner change
//! cannot silently alter what others read. A number that is missing is `null`.

use super::csv::{better_word, role_word, scale_word};
use crate::comparison::{
    CaseTable, Cell, Column, Comparison, Counts, FailureRow, Judged, Replicate, Row,
};
use crate::distribution::DistributionRow;
use crate::noise::History;
use kdyno_stats::Change;
use kdyno_stats::judge::{Known, Opinion, Reason};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// Raised when a reader of an older form would misread a newer one.
const VERSION: u32 = 1;

/// One JSON object, indented, with a final line feed.
#[must_use]
pub fn render(comparison: &Comparison) -> String {
    let columns = &comparison.columns;
    let whole = Whole {
        columns: columns.iter().map(column).collect(),
        notes: &comparison.notes,
        tables: comparison
            .tables
            .iter()
            .map(|t| table(t, columns))
            .collect(),
        version: VERSION,
    };
    // Strings, numbers and lists of them are always JSON.
    let mut text = serde_json::to_string_pretty(&whole).unwrap_or_default();
    text.push('\n');
    text
}

/// Keys in the order of the alphabet, as in the objects below.
#[derive(Serialize)]
struct Whole<'a> {
    columns: Vec<Value>,
    notes: &'a [String],
    tables: Vec<Table<'a>>,
    version: u32,
}

#[derive(Serialize)]
struct Table<'a> {
    case: Value,
    counts: Vec<Value>,
    distributions: Vec<Value>,
    failures: Vec<Value>,
    hidden: Value,
    metrics: Metrics<'a>,
    notes: &'a [String],
    testbox: &'a str,
}

/// The rows of a table. Each becomes an object only when it is written: a hundred thousand of them
/// at a time would take gigabytes.
struct Metrics<'a>(&'a CaseTable, &'a [Column]);

impl Serialize for Metrics<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.rows().map(|row| metric(row, self.1)))
    }
}

fn column(column: &Column) -> Value {
    json!({
        "variant": column.name,
        "description": column.description,
        "counts": counts(&column.counts),
    })
}

fn counts(counts: &Counts) -> Value {
    json!({
        "runs": counts.runs,
        "warm_ups": counts.warm_ups,
        "boots": known(counts.boots.len()),
    })
}

fn known(boots: usize) -> Option<usize> {
    (boots > 0).then_some(boots)
}

fn table<'a>(table: &'a CaseTable, columns: &'a [Column]) -> Table<'a> {
    Table {
        case: json!(table.case),
        counts: table.counts.iter().map(counts).collect(),
        distributions: table
            .distributions
            .iter()
            .map(|row| distribution(row, columns))
            .collect(),
        failures: table
            .failures
            .iter()
            .map(|row| failure(row, columns))
            .collect(),
        hidden: json!(table.hidden),
        metrics: Metrics(table, columns),
        notes: &table.notes,
        testbox: &table.testbox,
    }
}

fn failure(row: &FailureRow, columns: &[Column]) -> Value {
    let cells = row.cells.iter().zip(columns).map(|(cell, column)| {
        json!({
            "variant": column.name,
            "failed": cell.failed,
            "runs": cell.runs,
            "difference": cell.difference,
            "judged": cell.judged.as_ref().map(|judged| json!({
                "p": judged.p,
                "interval": judged.interval.map(|(low, high)| [low, high]),
                "verdict": judged.judgement.verdict.word(),
                "reasons": reasons(&judged.judgement.reasons),
            })),
        })
    });
    json!({ "outcome": row.name, "cells": cells.collect::<Vec<_>>() })
}

fn distribution(row: &DistributionRow, columns: &[Column]) -> Value {
    let cells = row.cells.iter().zip(columns).filter_map(|(cell, column)| {
        let cell = cell.as_ref()?;
        Some(json!({
            "variant": column.name,
            "runs": [cell.runs.0, cell.runs.1],
            "shift_octaves": finite(cell.shift_octaves),
            "distance_octaves": finite(cell.distance_octaves),
            "ks": finite(cell.ks),
            "p": cell.p,
            "smallest_p": cell.smallest_p,
        }))
    });
    json!({ "metric": row.metric, "unit": row.unit, "cells": cells.collect::<Vec<_>>() })
}

fn metric(row: &Row, columns: &[Column]) -> Value {
    let cells = row
        .cells
        .iter()
        .zip(columns)
        .filter_map(|(cell, column)| Some(figures(cell.as_ref()?, column)));
    json!({
        "metric": row.metric,
        "unit": row.unit,
        "better": better_word(row.better),
        "role": role_word(row.role),
        "cells": cells.collect::<Vec<_>>(),
        "notes": row.notes,
    })
}

fn figures(cell: &Cell, column: &Column) -> Value {
    let change = cell.change.map(|change| match change {
        Change::Percent(amount) => json!({ "kind": "percent", "amount": amount }),
        Change::Absolute(amount) => json!({ "kind": "absolute", "amount": amount }),
    });
    json!({
        "variant": column.name,
        "n": cell.n(),
        "boots": known(cell.boots),
        "mean": cell.summary.mean,
        "median": cell.summary.median,
        "min": cell.summary.min,
        "max": cell.summary.max,
        "stddev": cell.summary.sample_sd,
        "change": change,
        "moved": cell.moved,
        "judged": cell.judged.as_deref().map(judged),
        "values": cell.values(),
    })
}

fn judged(judged: &Judged) -> Value {
    let effect = judged.effect.as_ref().map(|effect| {
        json!({
            "estimate": finite(effect.shown()),
            "scale": scale_word(effect.scale),
            "method": effect.method.word(),
            "n": [effect.n.0, effect.n.1],
            "log_or_difference": effect.difference.estimate,
            "standard_error": effect.difference.se,
            "df": finite(effect.difference.df),
            "p": effect.p,
            "prior": effect.known.map(prior),
        })
    });
    json!({
        "verdict": judged.judgement.verdict.word(),
        "reasons": reasons(&judged.judgement.reasons),
        "effect": effect,
        "interval": judged.interval.map(|(low, high)| [low, high]),
        "level": judged.level,
        "adjusted_p": judged.adjusted_p,
        "replicate": match judged.replicate {
            Replicate::Run => "run",
            Replicate::Boot => "boot",
        },
        "smallest_visible": judged.smallest_visible,
        "ranks": judged.opinion.as_ref().map(ranks),
        "history": judged.history.as_ref().map(history),
        "lkp_rule": judged.lkp_rule,
    })
}

fn reasons(reasons: &[Reason]) -> Vec<String> {
    reasons.iter().map(ToString::to_string).collect()
}

fn prior(known: Known) -> Value {
    let source = match known {
        Known::History(_) => "history",
        Known::Family(_) => "family",
    };
    let prior = known.prior();
    json!({ "source": source, "df": finite(prior.df), "variance": prior.variance })
}

fn ranks(opinion: &Opinion) -> Value {
    json!({
        "p": opinion.p,
        "smallest_p": opinion.smallest_p,
        "shift": opinion.shift,
        "shift_interval": [opinion.shift_interval.0, opinion.shift_interval.1],
        "spread_p": opinion.spread.as_ref().map(|spread| spread.p),
    })
}

fn history(history: &History) -> Value {
    json!({ "run_sets": history.sets, "runs": history.runs, "boots": history.boots })
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
