//! `perf ftrace latency`: rows `lo - hi unit | count | ####`, whose unit changes within the table.

use super::parts::{add, float, number, push};
use super::text::Line;
use super::{Found, HistError, Section};
use kdyno_model::{Bucket, Histogram, Unit};
use regex::Regex;
use std::sync::LazyLock;

static HEAD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*#\s*DURATION\s*\|\s*COUNT\s*\|").ok());
static ROW: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^\s*(?<low>\d+(?:\.\d+)?)\s*-\s*(?<high>\d+(?:\.\d+)?|\.\.\.)\s*(?<unit>ns|us|ms|s)\s*\|\s*(?<count>\d+)\s*\|",
    )
    .ok()
});
static STATISTIC: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\s*(?<what>total time|avg time|max time|min time|count):\s*(?<value>\d+)\s*$")
        .ok()
});

/// Nanoseconds of a unit.
const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// Whether a line heads a table.
pub(super) fn claims(line: &str) -> bool {
    HEAD.as_ref().is_some_and(|head| head.is_match(line))
}

/// A table that is being read.
#[derive(Default)]
struct Table {
    /// The unit of its first row, in which all of it is told.
    unit: String,
    /// The unit of the last row and how many of `unit` it has.
    now: (String, f64),
    histogram: Histogram,
}

/// All tables.
pub(super) fn read(lines: &[Line<'_>]) -> Found {
    let (Some(row), Some(statistic)) = (&*ROW, &*STATISTIC) else {
        return Ok(Default::default());
    };
    let mut tables: Vec<Table> = Vec::new();
    let mut in_table = false;
    for line in lines {
        if claims(line.text) {
            tables.push(Table::default());
            in_table = true;
            continue;
        }
        let Some(table) = tables.last_mut() else {
            continue;
        };
        if let Some(found) = row.captures(line.text).filter(|_| in_table) {
            table.take_row(&found, line)?;
        } else if let Some(found) = statistic.captures(line.text) {
            table.take_statistic(&found, line)?;
        } else if in_table && line.text.matches('|').count() >= 2 {
            return Err(HistError::row(line, "no row of perf ftrace latency"));
        } else if !line.text.trim_matches(['#', '|', ' ']).is_empty() || line.text.is_empty() {
            in_table = false;
        }
    }
    let sections = tables.into_iter().map(|table| Section {
        name: String::new(),
        unit: Unit(table.unit),
        histogram: table.histogram,
        span: None,
    });
    Ok((sections.collect(), Vec::new()))
}

impl Table {
    fn take_row(&mut self, found: &regex::Captures<'_>, line: &Line<'_>) -> Result<(), HistError> {
        let of = |name: &str| found.name(name).map_or("", |text| text.as_str());
        let beyond = || HistError::row(line, "a number is beyond what can be counted");
        let count = number(of("count")).ok_or_else(beyond)?;
        let low: f64 = of("low").parse().map_err(|_| beyond())?;
        let factor = self.factor(of("unit"), low, of("low").contains('.'), line)?;
        let low = low * factor;
        let Ok(high) = of("high").parse::<f64>() else {
            self.histogram.overflow = add(self.histogram.overflow, count, line)?;
            return Ok(());
        };
        // Rounded ends of rows that follow each other are the same end.
        let previous = self.histogram.buckets.last().map(|bucket| bucket.high);
        let low = previous
            .filter(|end| (end - low).abs() <= 0.002 * end)
            .unwrap_or(low);
        let high = high * factor;
        push(&mut self.histogram, Bucket { low, high, count }, line)
    }

    /// How many of the table's unit the row's has. Units of octaves are 1024 of the one before;
    /// where rows have a width of the user's choice, 1000.
    fn factor(
        &mut self,
        unit: &str,
        low: f64,
        decimals: bool,
        line: &Line<'_>,
    ) -> Result<f64, HistError> {
        if self.unit.is_empty() {
            unit.clone_into(&mut self.unit);
            self.now = (unit.to_owned(), 1.0);
        }
        if self.now.0 != unit {
            let size = |name: &str| UNITS.iter().find(|(known, _)| *known == name);
            let steps = match (size(&self.unit), size(unit)) {
                (Some(own), Some(now)) if now.1 > own.1 => (now.1 / own.1).log10() / 3.0,
                _ => return Err(HistError::row(line, "units do not grow from row to row")),
            };
            let previous = self.histogram.buckets.last().map(|bucket| bucket.high);
            let thousand = decimals || previous.is_some_and(|end| (end - low * 1000.0).abs() < 0.5);
            let base: f64 = if thousand { 1000.0 } else { 1024.0 };
            self.now = (unit.to_owned(), base.powf(steps.round()));
        }
        Ok(self.now.1)
    }

    /// A line of the statistics that newer versions print below.
    fn take_statistic(
        &mut self,
        found: &regex::Captures<'_>,
        line: &Line<'_>,
    ) -> Result<(), HistError> {
        let of = |name: &str| found.name(name).map_or("", |text| text.as_str());
        let value = number(of("value"));
        let beyond = || HistError::row(line, "a number is beyond what can be counted");
        let value = value.ok_or_else(beyond)?;
        match of("what") {
            "total time" => self.histogram.sum = Some(float(value)),
            "min time" => self.histogram.min = Some(float(value)),
            "max time" => self.histogram.max = Some(float(value)),
            "count" => super::parts::check_total(&self.histogram, value, line)?,
            _ => {}
        }
        Ok(())
    }
}
