//! `rtla timerlat hist` and `rtla osnoise hist`: a column per CPU and place.

use super::parts::{add, bucket, check_total, float, number, push, unit_of};
use super::text::Line;
use super::{Found, HistError, Section};
use kdyno_model::{Histogram, Unit};

/// Whether a line heads the table.
pub(super) fn claims(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("# RTLA") || heads_columns(line)
}

/// `Index   IRQ-000   Thr-000`.
fn heads_columns(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_column = |word: &str| {
        let cpu = word.rsplit_once('-').map_or("", |(_, cpu)| cpu);
        cpu.len() >= 3 && cpu.bytes().all(|byte| byte.is_ascii_digit())
    };
    words.next() == Some("Index") && words.next().is_some_and(is_column)
}

/// A table while it is read.
struct Table<'t> {
    unit: Unit,
    names: Vec<&'t str>,
    rows: Vec<(u64, Vec<u64>, Line<'t>)>,
    /// The first line below the head that is no row: prose, unless the summary follows.
    odd: Option<Line<'t>>,
    /// Lines below it by their first word, `-` for what a column lacks.
    below: Vec<(&'t str, Vec<Option<u64>>, Line<'t>)>,
    /// Behind its last line, so that a summary of all CPUs is passed over.
    is_done: bool,
}

/// A section per table and column.
pub(super) fn read(lines: &[Line<'_>]) -> Found {
    let mut unit = Unit::new("us");
    let mut tables: Vec<Table<'_>> = Vec::new();
    for line in lines {
        let text = line.text.trim_start();
        if let Some(told) = text.strip_prefix("# Time unit is ") {
            unit = unit_of(told.split_whitespace().next().unwrap_or("us"));
        } else if heads_columns(text) {
            tables.push(Table {
                unit: unit.clone(),
                names: text.split_whitespace().skip(1).collect(),
                rows: Vec::new(),
                odd: None,
                below: Vec::new(),
                is_done: false,
            });
        } else if let Some(table) = tables.last_mut() {
            table.take(line)?;
        }
    }
    let several = tables.len() > 1;
    let mut sections = Vec::new();
    for (place, table) in tables.iter().enumerate() {
        let run = if several {
            format!("run {} ", place + 1)
        } else {
            String::new()
        };
        let width = table.width()?;
        for (column, name) in table.names.iter().enumerate() {
            sections.push(Section {
                name: format!("{run}{name}"),
                unit: table.unit.clone(),
                histogram: table.column(column, width)?,
                span: None,
            });
        }
    }
    Ok((sections, Vec::new()))
}

impl<'t> Table<'t> {
    fn take(&mut self, line: &Line<'t>) -> Result<(), HistError> {
        let mut words = line.text.split_whitespace();
        let Some(first) = words.next().filter(|_| !self.is_done) else {
            return Ok(());
        };
        if first == "ALL:" {
            self.is_done = true;
            return Ok(());
        }
        let head = first.strip_suffix(':').unwrap_or("");
        if ["over", "count", "min", "avg", "max"].contains(&head) {
            if let Some(odd) = self.odd.filter(|_| self.below.is_empty()) {
                return Err(HistError::row(&odd, "no row of this table"));
            }
            let numbers: Vec<Option<u64>> = words.map(number).collect();
            if numbers.len() != self.names.len() {
                return Err(self.wrong_columns(line));
            }
            self.below.push((head, numbers, *line));
            self.is_done = head == "max";
        } else if self.below.is_empty() && self.odd.is_none() {
            match number(first) {
                Some(index) => self.take_row(index, words, line)?,
                None => self.odd = Some(*line),
            }
        }
        Ok(())
    }

    fn take_row(
        &mut self,
        index: u64,
        words: std::str::SplitWhitespace<'_>,
        line: &Line<'t>,
    ) -> Result<(), HistError> {
        let counts: Option<Vec<u64>> = words.map(number).collect();
        let counts = counts.filter(|counts| counts.len() == self.names.len());
        let counts = counts.ok_or_else(|| self.wrong_columns(line))?;
        self.rows.push((index, counts, *line));
        Ok(())
    }

    fn wrong_columns(&self, line: &Line<'_>) -> HistError {
        HistError::row(line, format!("no row of {} numbers", self.names.len()))
    }

    fn below(&self, head: &str, place: usize) -> Option<(u64, &Line<'t>)> {
        let (_, numbers, line) = self.below.iter().find(|(known, _, _)| *known == head)?;
        Some(((*numbers.get(place)?)?, line))
    }

    /// The width of buckets (`--bucket-size`), which is not printed: indices are its multiples, and
    /// the smallest and the largest value of each column lie in its first and last bucket. The
    /// smallest width of which this is true.
    fn width(&self) -> Result<u64, HistError> {
        const ENOUGH_ROWS: usize = 4;
        let common = self.rows.iter().fold(0, |all, row| divisor(all, row.0));
        if self.below.is_empty() {
            // Few rows may have a common divisor by chance.
            return Ok(if self.rows.len() < ENOUGH_ROWS {
                1
            } else {
                common.max(1)
            });
        }
        let fits = |width: &u64| (0..self.names.len()).all(|place| self.fits(place, *width));
        let largest = (0..self.names.len()).filter_map(|place| Some(self.below("max", place)?.0));
        let widths = match common {
            0 => vec![1, largest.max().unwrap_or(0).saturating_add(1)],
            common => divisors(common),
        };
        widths.into_iter().find(fits).ok_or_else(|| {
            let line = self.below.last().map(|(_, _, line)| line.number);
            let reason = "the smallest and largest values are not in the first and last rows";
            HistError {
                line,
                ..HistError::whole(reason, "a row is missing or damaged")
            }
        })
    }

    /// Whether the extremes of a column lie in buckets of this width.
    fn fits(&self, place: usize, width: u64) -> bool {
        let filled = || {
            let filled =
                |row: &&(u64, Vec<u64>, Line<'t>)| row.1.get(place).is_some_and(|n| *n > 0);
            self.rows.iter().filter(filled).map(|row| row.0)
        };
        let within = |index: Option<u64>, value: Option<(u64, &Line<'t>)>| match (index, value) {
            (Some(index), Some((value, _))) => value
                .checked_sub(index)
                .is_some_and(|beyond| beyond < width),
            _ => true,
        };
        let is_over = self.below("over", place).is_some_and(|(over, _)| over > 0);
        within(filled().next(), self.below("min", place))
            && (is_over || within(filled().next_back(), self.below("max", place)))
    }

    fn column(&self, place: usize, width: u64) -> Result<Histogram, HistError> {
        let mut histogram = Histogram::default();
        for (index, counts, line) in &self.rows {
            let count = counts.get(place).copied().unwrap_or(0);
            let end = index
                .checked_add(width)
                .ok_or_else(|| HistError::row(line, "a number is beyond what can be counted"))?;
            push(&mut histogram, bucket(*index, end, count), line)?;
        }
        if let Some((over, line)) = self.below("over", place) {
            histogram.overflow = add(histogram.overflow, over, line)?;
        }
        if let Some((count, line)) = self.below("count", place) {
            check_total(&histogram, count, line)?;
        }
        histogram.min = self.below("min", place).map(|(value, _)| float(value));
        histogram.max = self.below("max", place).map(|(value, _)| float(value));
        Ok(histogram)
    }
}

/// Those of a number up to a thousand, and what they leave, in ascending order.
fn divisors(number: u64) -> Vec<u64> {
    let small = (1..=1000.min(number)).filter(|small| number.is_multiple_of(*small));
    let mut all: Vec<u64> = small.flat_map(|small| [small, number / small]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Greatest common divisor.
pub(super) fn divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        b => divisor(b, a % b),
    }
}
