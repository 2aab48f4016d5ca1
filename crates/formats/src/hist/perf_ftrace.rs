//! `perf ftrace latency`: rows `lo - hi unit | count | ####`, whose unit changes within the table.

use super::parts::{add, check_total, float, is_rest_of_a_bar, mark_end, number, push};
use super::text::Line;
use super::{Found, HistError, Section};
use kdyno_model::{Bucket, Histogram, Unit};
use regex::Regex;
use std::sync::LazyLock;

static HEAD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*#\s*DURATION\s*\|\s*COUNT\s*\|").ok());
static ROW: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^\s*(?<low>\d+(?:\.\d+)?)\s*-\s*(?<high>\d+(?:\.\d+)?|\.\.\.)\s*(?<unit>ns|us|ms|s)\s*\|\s*(?<count>\d+)\s*(?:\||$)",
    )
    .ok()
});
static STATISTICS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*# statistics\s+\(in (?<unit>nsec|usec)\)").ok());
static STATISTIC: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\s*(?<what>total time|avg time|max time|min time|count):\s*(?<value>\d+)\s*$")
        .ok()
});

/// Units from the smallest, each a thousand (or 1024) of the one before.
const UNITS: [&str; 4] = ["ns", "us", "ms", "s"];

/// Without BPF perf takes the logarithm of the time for the place of its row, which is one too low.
const OCTAVE: &str =
    "without -b perf ftrace latency prints each octave one too low: its `2 - 4` holds 4 to 8";

/// Whether a line heads a table.
pub(super) fn claims(line: &str) -> bool {
    HEAD.as_ref().is_some_and(|head| head.is_match(line))
}

/// A row as it is printed.
struct Row<'t> {
    low: &'t str,
    /// `None` where it is open.
    high: Option<&'t str>,
    unit: &'t str,
    count: u64,
    line: Line<'t>,
}

/// A table with the statistics that newer versions print below.
#[derive(Default)]
struct Table<'t> {
    rows: Vec<Row<'t>>,
    /// The unit of the statistics.
    told: Option<&'static str>,
    figures: Vec<(&'t str, u64, Line<'t>)>,
}

/// All tables.
pub(super) fn read(lines: &[Line<'_>]) -> Found {
    let (Some(row), Some(statistics), Some(statistic)) = (&*ROW, &*STATISTICS, &*STATISTIC) else {
        return Ok(Default::default());
    };
    let mut tables: Vec<Table<'_>> = Vec::new();
    let mut notes = Vec::new();
    let mut in_table = false;
    for line in lines {
        if claims(line.text) {
            tables.push(Table::default());
            in_table = true;
            continue;
        }
        if is_command_without_bpf(line.text) {
            notes.push(OCTAVE.to_owned());
        }
        let Some(table) = tables.last_mut() else {
            continue;
        };
        if let Some(found) = row.captures(line.text).filter(|_| in_table) {
            table.rows.push(row_of(&found, line)?);
        } else if let Some(found) = statistics.captures(line.text) {
            let is_ns = found
                .name("unit")
                .is_some_and(|unit| unit.as_str() == "nsec");
            table.told = Some(if is_ns { "ns" } else { "us" });
        } else if let Some(found) = statistic.captures(line.text) {
            let of = |name: &str| found.name(name).map_or("", |text| text.as_str());
            let value = number(of("value")).ok_or_else(|| beyond(line))?;
            table.figures.push((of("what"), value, *line));
        } else if in_table && line.text.matches('|').count() >= 2 {
            return Err(HistError::row(line, "no row of perf ftrace latency"));
        } else if !is_rest_of_a_bar(line.text, &['#']) {
            in_table = false;
        }
    }
    tables.retain(|table| !table.rows.is_empty());
    let mut sections = Vec::new();
    for table in tables {
        sections.push(table.section(&mut notes)?);
    }
    notes.dedup();
    Ok((sections, notes))
}

fn beyond(line: &Line<'_>) -> HistError {
    HistError::row(line, "a number is beyond what can be counted")
}

fn is_command_without_bpf(text: &str) -> bool {
    let is_command = text.contains("perf ftrace latency") && text.contains(" -");
    let mut words = text.split_whitespace();
    is_command && !words.any(|word| ["-b", "--use-bpf"].contains(&word))
}

fn row_of<'t>(found: &regex::Captures<'t>, line: &Line<'t>) -> Result<Row<'t>, HistError> {
    let of = |name: &str| found.name(name).map_or("", |text| text.as_str());
    Ok(Row {
        low: of("low"),
        high: Some(of("high")).filter(|high| *high != "..."),
        unit: of("unit"),
        count: number(of("count")).ok_or_else(|| beyond(line))?,
        line: *line,
    })
}

impl Table<'_> {
    /// The unit in which perf counted: that of the statistics, else nanoseconds where a row has them.
    fn unit(&self) -> &'static str {
        let has_ns = self.rows.iter().any(|row| row.unit == "ns");
        self.told.unwrap_or(if has_ns { "ns" } else { "us" })
    }

    fn section(self, notes: &mut Vec<String>) -> Result<Section, HistError> {
        let unit = self.unit();
        // Units of octaves are 1024 of the one before; where rows have a width of the user's choice
        // they have decimals, and units are 1000.
        let decimals = self.rows.iter().any(|row| row.low.contains('.'));
        let base: f64 = if decimals { 1000.0 } else { 1024.0 };
        // Versions that leave empty rows out tell how many events there are.
        let total = self.figures.iter().find(|(what, _, _)| *what == "count");
        let mut histogram = Histogram::default();
        let mut next = Some(0.0);
        for row in &self.rows {
            let factor = base.powi(steps(unit, row)?);
            let end = |text: &str| -> Result<f64, HistError> {
                let number: f64 = text.parse().map_err(|_| beyond(&row.line))?;
                Some(number * factor)
                    .filter(|end| end.is_finite())
                    .ok_or_else(|| beyond(&row.line))
            };
            let mut low = end(row.low)?;
            // Rounded ends of rows that follow each other are the same end.
            let rounding = if decimals { 0.01 * factor } else { 0.0 };
            let follows = next.is_some_and(|next| (next - low).abs() <= rounding);
            if let Some(next) = next.filter(|_| follows) {
                low = next;
            } else if total.is_none() || next.is_none() {
                return Err(HistError::row(
                    &row.line,
                    "it does not follow the row above",
                ));
            }
            let Some(high) = row.high.map(end).transpose()? else {
                histogram.overflow = add(histogram.overflow, row.count, &row.line)?;
                mark_end(&mut histogram, low);
                next = None;
                continue;
            };
            let count = row.count;
            push(&mut histogram, Bucket { low, high, count }, &row.line)?;
            next = Some(high);
        }
        if let Some((_, total, line)) = total {
            check_total(&histogram, *total, line)?;
        } else if let Some(row) = self.rows.last().filter(|row| row.high.is_some()) {
            return Err(HistError::row(
                &row.line,
                "the table is cut behind this row",
            ));
        }
        self.take_figures(&mut histogram);
        if is_an_octave_low(&histogram) {
            notes.push(OCTAVE.to_owned());
        }
        Ok(Section {
            name: String::new(),
            unit: Unit::new(unit),
            histogram,
            span: None,
        })
    }

    fn take_figures(&self, histogram: &mut Histogram) {
        let of = |what: &str| {
            let found = self.figures.iter().find(|(known, _, _)| *known == what);
            found.map(|(_, value, _)| float(*value))
        };
        histogram.sum = of("total time");
        histogram.min = of("min time");
        histogram.max = of("max time");
    }
}

/// How many units a row's is above the table's.
fn steps(unit: &str, row: &Row<'_>) -> Result<i32, HistError> {
    let place = |unit: &str| UNITS.iter().position(|known| *known == unit);
    let above = place(row.unit)
        .zip(place(unit))
        .and_then(|(own, table)| own.checked_sub(table));
    above
        .and_then(|steps| i32::try_from(steps).ok())
        .ok_or_else(|| {
            HistError::row(
                &row.line,
                format!("its unit is below that of the table, {unit}"),
            )
        })
}

/// Whether the largest value lies above the last bucket that has an event.
fn is_an_octave_low(histogram: &Histogram) -> bool {
    let last = histogram.buckets.iter().rfind(|bucket| bucket.count > 0);
    let above = |max: f64| last.is_some_and(|last| max > last.high);
    histogram.overflow == 0 && histogram.max.is_some_and(above)
}
