//! The bucket table: a row per bucket, named by its lower limit, a column per configuration.

use super::parts::{add, check_total, mark_end, number, push};
use super::text::Line;
use super::{Found, HistError, Section};
use kdyno_model::{Bucket, Histogram, Unit};
use regex::Regex;
use std::sync::LazyLock;

static ROW: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\s*(?<open>[<>]?)(?<low>\d+(?:\.\d+)?)\s?(?<unit>ns|us|ms|s|):(?<cells>\s.*|)$")
        .ok()
});

/// Steps of the table that kernel people post, in microseconds: up to here the first, then the
/// second.
const POSTED: (f64, f64, f64) = (500.0, 10.0, 500.0);

/// Whether a line is a row: a limit with its unit, and cells.
pub(super) fn claims(line: &str) -> bool {
    let found = ROW.as_ref().and_then(|row| row.captures(line));
    let of = |name: &str| Some(found.as_ref()?.name(name)?.as_str());
    let has_unit = of("unit").is_some_and(|unit| !unit.is_empty());
    has_unit && of("cells").is_some_and(|text| cells(text).is_some_and(|cells| !cells.is_empty()))
}

/// Counts, a dot for none; `None` when something else stands between them.
fn cells(text: &str) -> Option<Vec<u64>> {
    let cell = |cell: &str| if cell == "." { Some(0) } else { number(cell) };
    text.split_whitespace().map(cell).collect()
}

/// Where the events of a row lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Below,
    Within,
    Above,
}

/// A row with its cells.
struct Row<'t> {
    kind: Kind,
    low: f64,
    counts: Vec<u64>,
    line: Line<'t>,
}

/// Columns that stand beside each other.
#[derive(Default)]
struct Block<'t> {
    /// The line that names the columns, without its first word.
    head: String,
    totals: Option<(Vec<u64>, Line<'t>)>,
    unit: Option<&'t str>,
    rows: Vec<Row<'t>>,
}

/// A section per column.
pub(super) fn read(lines: &[Line<'_>]) -> Found {
    let Some(pattern) = &*ROW else {
        return Ok(Default::default());
    };
    let mut blocks: Vec<Block<'_>> = vec![Block::default()];
    // What the last line was: a head, totals or a row may go on in the next one.
    let mut open = Open::Nothing;
    for line in lines {
        let text = line.text.trim();
        let is_head = text
            .strip_prefix("Time")
            .filter(|rest| rest.starts_with(' '));
        if is_head.is_some() && blocks.last().is_some_and(|block| !block.rows.is_empty()) {
            blocks.push(Block::default());
        }
        let Some(block) = blocks.last_mut() else {
            continue;
        };
        if let Some(rest) = is_head {
            rest.clone_into(&mut block.head);
            open = Open::Head;
        } else if let Some(rest) = text.strip_prefix("N:") {
            let numbers = cells(rest).ok_or_else(|| HistError::row(line, NO_CELLS))?;
            block.totals = Some((numbers, *line));
            open = Open::Totals;
        } else if let Some(found) = pattern.captures(line.text) {
            let is_prose = open == Open::Nothing
                && cells(found.name("cells").map_or("", |cells| cells.as_str())).is_none();
            if !is_prose {
                block.take_row(&found, line)?;
                open = Open::Row;
            }
        } else {
            open = block.take_rest(open, text);
        }
    }
    let mut sections = Vec::new();
    for block in blocks {
        block.into_sections(&mut sections)?;
    }
    Ok((sections, Vec::new()))
}

const NO_CELLS: &str = "a cell is no number and no dot";

/// What the next line may go on with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Head,
    Totals,
    Row,
}

impl<'t> Block<'t> {
    fn take_row(&mut self, found: &regex::Captures<'t>, line: &Line<'t>) -> Result<(), HistError> {
        let of = |name: &str| found.name(name).map_or("", |text| text.as_str());
        let unit = *self.unit.get_or_insert(of("unit"));
        if of("unit") != unit {
            return Err(HistError::row(line, format!("its unit is not {unit}")));
        }
        let low = of("low").parse().ok().filter(|low: &f64| *low < 1e15);
        self.rows.push(Row {
            kind: match of("open") {
                "<" => Kind::Below,
                ">" => Kind::Above,
                _ => Kind::Within,
            },
            low: low
                .ok_or_else(|| HistError::row(line, "a number is beyond what can be counted"))?,
            counts: cells(of("cells")).ok_or_else(|| HistError::row(line, NO_CELLS))?,
            line: *line,
        });
        Ok(())
    }

    /// The rest of a line that mail has broken, and what may go on behind it; prose is passed over.
    fn take_rest(&mut self, open: Open, text: &str) -> Open {
        if open == Open::Head && !text.is_empty() {
            // A blank more would make two names of one.
            self.head.push_str("  ");
            self.head.push_str(text);
            return open;
        }
        let rest = cells(text).filter(|cells| !cells.is_empty());
        match (open, rest, self.rows.last_mut(), &mut self.totals) {
            (Open::Row, Some(rest), Some(row), _) => row.counts.extend(rest),
            (Open::Totals, Some(rest), _, Some((totals, _))) => totals.extend(rest),
            _ => return Open::Nothing,
        }
        open
    }

    /// How many columns there are, from what stands above the rows, else from the first row.
    fn columns(&self) -> usize {
        let totals = self.totals.as_ref().map(|(totals, _)| totals.len());
        let words = self.head.split_whitespace().count();
        let first = self.rows.first().map_or(0, |row| row.counts.len());
        match totals {
            Some(totals) => totals,
            // Names may have blanks in them, but none is without a word.
            None if first > 0 && self.names(first).is_some() => first,
            None if words > 0 => words,
            None => first,
        }
    }

    /// The names of so many columns: parted by two blanks where names have blanks, else by one.
    fn names(&self, columns: usize) -> Option<Vec<&str>> {
        let wide = self.head.split("  ").map(str::trim);
        let wide: Vec<&str> = wide.filter(|name| !name.is_empty()).collect();
        let words: Vec<&str> = self.head.split_whitespace().collect();
        [words, wide]
            .into_iter()
            .find(|names| names.len() == columns)
    }

    fn into_sections(self, out: &mut Vec<Section>) -> Result<(), HistError> {
        let columns = self.columns();
        for row in &self.rows {
            if row.counts.len() != columns || columns == 0 {
                return Err(HistError {
                    line: Some(row.line.number),
                    reason: format!(
                        "{} cells, the table has {columns} columns",
                        row.counts.len()
                    ),
                    hint: "empty cells are lost, which nobody can put back: write a dot for each"
                        .to_owned(),
                });
            }
        }
        let ends = self.ends();
        let names = self.names(columns);
        for place in (0..columns).filter(|_| !self.rows.is_empty()) {
            let histogram = self.column(place, &ends)?;
            if let Some((totals, line)) = &self.totals
                && let Some(total) = totals.get(place)
            {
                check_total(&histogram, *total, line)?;
            }
            let named = names.as_ref().and_then(|names| names.get(place));
            out.push(Section {
                name: named.map_or_else(|| format!("column {}", place + 1), |n| (*n).to_owned()),
                unit: Unit::new(self.unit.unwrap_or("")),
                histogram,
                span: None,
            });
        }
        Ok(())
    }

    /// Where each row ends. Widths are not printed, and rows without an event may be left out: a row
    /// of the posted table is as wide as it is there; else its width is the greatest of which its
    /// limit and all behind it are multiples, so that no event lies outside.
    fn ends(&self) -> Vec<f64> {
        let (knee, fine, coarse) = POSTED;
        let limits = || self.rows.iter().map(|row| row.low);
        let below = || limits().filter(|low| *low < knee);
        let is_posted = self.unit == Some("us")
            && common(below()) <= fine
            && below().next().is_some()
            && limits().all(|low| low % if low < knee { fine } else { coarse } == 0.0);
        let mut behind = Vec::new();
        let mut divisor = 0.0;
        for low in limits().rev() {
            divisor = common([divisor, low].into_iter());
            behind.push(divisor);
        }
        let widths = behind.into_iter().rev().zip(limits());
        let ends = widths.map(|(common, low)| match is_posted {
            true if low < knee => low + fine,
            true => low + coarse,
            // A table of nothing but the row 0.
            false if common == 0.0 => low + 1.0,
            false => low + common,
        });
        // Decimals do not end exactly where the next row begins.
        let next = limits().skip(1).chain([f64::INFINITY]);
        ends.zip(next).map(|(end, next)| end.min(next)).collect()
    }

    fn column(&self, place: usize, ends: &[f64]) -> Result<Histogram, HistError> {
        let mut histogram = Histogram::default();
        for (row, high) in self.rows.iter().zip(ends) {
            let count = row.counts.get(place).copied().unwrap_or(0);
            let (low, high) = (row.low, *high);
            match row.kind {
                Kind::Above => {
                    histogram.overflow = add(histogram.overflow, count, &row.line)?;
                    mark_end(&mut histogram, low);
                }
                Kind::Below => histogram.underflow = add(histogram.underflow, count, &row.line)?,
                Kind::Within => push(&mut histogram, Bucket { low, high, count }, &row.line)?,
            }
        }
        Ok(histogram)
    }
}

/// The greatest width of which all limits are multiples; 0 of nothing but 0.
fn common(limits: impl Iterator<Item = f64>) -> f64 {
    /// What is left of decimals is no width.
    const NOTHING: f64 = 1e-9;
    limits.fold(0.0_f64, |all, limit| {
        let (mut a, mut b) = (all, limit);
        while b > NOTHING {
            (a, b) = (b, a % b);
        }
        a
    })
}
