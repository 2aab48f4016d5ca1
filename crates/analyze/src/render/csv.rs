//! The comparison as comma-separated values in long form: one line per metric and variant.
//!
//! Quoted as RFC 4180 has it, but lines end in a line feed alone, since awk and diff take a
//! carriage return for a part of the last field. Numbers read back exactly. What is missing is
//! empty. A failure is a line too, without a role: its mean is the share of failed runs in
//! percent.

use super::words::reasons_text;
use crate::comparison::{CaseTable, Cell, Column, Comparison, FailureCell, FailureRow, Row};
use crate::number::exact;
use kdyno_model::{Better, Role};
use kdyno_stats::judge::{Effect, Scale};
use kdyno_stats::{Change, change::failure_percent};

const FIELDS: usize = 25;
const HEADER: [&str; FIELDS] = [
    "case",
    "case_id",
    "testbox",
    "metric",
    "unit",
    "better",
    "role",
    "variant",
    "n",
    "boots",
    "mean",
    "median",
    "stddev",
    "change",
    "change_kind",
    "estimate",
    "low",
    "high",
    "scale",
    "p",
    "adjusted_p",
    "verdict",
    "reasons",
    "method",
    "values",
];

/// A header line, then one line per table, row and column that has figures.
#[must_use]
pub fn render(comparison: &Comparison) -> String {
    let mut out = record(&HEADER.map(str::to_owned));
    for table in &comparison.tables {
        for row in table.rows() {
            for (cell, column) in row.cells.iter().zip(&comparison.columns) {
                if let Some(cell) = cell {
                    out.push_str(&record(&metric_fields(table, row, column, cell)));
                }
            }
        }
        for row in &table.failures {
            for (cell, column) in row.cells.iter().zip(&comparison.columns) {
                out.push_str(&record(&failure_fields(table, row, column, cell)));
            }
        }
    }
    out
}

fn metric_fields(table: &CaseTable, row: &Row, column: &Column, cell: &Cell) -> [String; FIELDS] {
    let (change, kind) = match cell.change {
        Some(Change::Percent(percent)) => (exact(percent), "percent"),
        Some(Change::Absolute(difference)) => (exact(difference), "absolute"),
        None => (String::new(), ""),
    };
    let [
        estimate,
        low,
        high,
        scale,
        p,
        adjusted,
        verdict,
        reasons,
        method,
    ] = judged_fields(cell);
    let values: Vec<String> = cell.values().into_iter().map(exact).collect();
    [
        table.case.name(),
        table.case.id.to_string(),
        table.testbox.clone(),
        row.metric.to_string(),
        row.unit.as_str().to_owned(),
        better_word(row.better).to_owned(),
        role_word(row.role).to_owned(),
        column.name.to_string(),
        cell.n().to_string(),
        known(cell.boots),
        exact(cell.summary.mean),
        exact(cell.summary.median),
        cell.summary.sample_sd.map(exact).unwrap_or_default(),
        change,
        kind.to_owned(),
        estimate,
        low,
        high,
        scale,
        p,
        adjusted,
        verdict,
        reasons,
        method,
        values.join(" "),
    ]
}

/// Estimate and interval as they are shown, p-values, verdict, reasons, method.
fn judged_fields(cell: &Cell) -> [String; 9] {
    let Some(judged) = &cell.judged else {
        return Default::default();
    };
    let effect = judged.effect.as_ref();
    let number = |value: Option<f64>| value.map(exact).unwrap_or_default();
    [
        number(effect.map(Effect::shown)),
        number(judged.interval.map(|(low, _)| low)),
        number(judged.interval.map(|(_, high)| high)),
        effect.map_or("", |e| scale_word(e.scale)).to_owned(),
        number(effect.and_then(|effect| effect.p)),
        number(judged.adjusted_p),
        judged.judgement.verdict.word().to_owned(),
        reasons_text(&judged.judgement.reasons),
        effect.map_or("", |e| e.method.word()).to_owned(),
    ]
}

pub(super) fn scale_word(scale: Scale) -> &'static str {
    match scale {
        Scale::Ratio => "percent",
        Scale::Points => "points",
        Scale::Difference => "difference",
    }
}

fn failure_fields(
    table: &CaseTable,
    row: &FailureRow,
    column: &Column,
    cell: &FailureCell,
) -> [String; FIELDS] {
    let difference = cell.difference.map(exact).unwrap_or_default();
    let judged = cell.judged.as_ref();
    let kind = if difference.is_empty() {
        ""
    } else {
        "absolute"
    };
    [
        table.case.name(),
        table.case.id.to_string(),
        table.testbox.clone(),
        row.name.clone(),
        "%".to_owned(),
        better_word(Better::Lower).to_owned(),
        String::new(),
        column.name.to_string(),
        cell.runs.to_string(),
        String::new(),
        failure_percent((cell.failed, cell.runs))
            .map(exact)
            .unwrap_or_default(),
        String::new(),
        String::new(),
        difference,
        kind.to_owned(),
        String::new(),
        judged
            .and_then(|j| j.interval)
            .map(|(low, _)| exact(low))
            .unwrap_or_default(),
        judged
            .and_then(|j| j.interval)
            .map(|(_, high)| exact(high))
            .unwrap_or_default(),
        judged.map_or("", |_| scale_word(Scale::Points)).to_owned(),
        String::new(),
        judged.and_then(|j| j.p).map(exact).unwrap_or_default(),
        judged.map_or("", |j| j.judgement.verdict.word()).to_owned(),
        judged
            .map(|j| reasons_text(&j.judgement.reasons))
            .unwrap_or_default(),
        judged.map_or("", |_| "boschloo").to_owned(),
        String::new(),
    ]
}

pub(super) fn better_word(better: Better) -> &'static str {
    match better {
        Better::Higher => "higher",
        Better::Lower => "lower",
        Better::Neither => "neither",
    }
}

pub(super) fn role_word(role: Role) -> &'static str {
    match role {
        Role::Headline => "headline",
        Role::Program => "program",
        Role::Diagnostic => "diagnostic",
    }
}

/// A number of boots; empty when they are not known.
fn known(boots: usize) -> String {
    if boots == 0 {
        String::new()
    } else {
        boots.to_string()
    }
}

fn record(fields: &[String; FIELDS]) -> String {
    let quoted: Vec<String> = fields.iter().map(|field| quote(field)).collect();
    format!("{}\n", quoted.join(","))
}

/// A field, in quotes where it needs them (RFC 4180).
pub(crate) fn quote(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
