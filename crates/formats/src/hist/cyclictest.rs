//! `cyclictest -h` and `-H`: a column per thread.

use super::json::{Documents, of_cyclictest};
use super::parts::{add, bucket, check_total, float, number, push};
use super::text::Line;
use super::{Found, HistError, Section};
use kdyno_model::{Histogram, Unit};

/// Whether a line heads the table.
pub(super) fn claims(line: &str) -> bool {
    line.trim() == "# Histogram"
}

/// What begins the lines below a table.
const TOTAL: &str = "# Total:";
const MIN: &str = "# Min Latencies:";
const AVG: &str = "# Avg Latencies:";
const MAX: &str = "# Max Latencies:";
const ABOVE: &str = "# Histogram Overflows:";

/// A table with the lines below it.
#[derive(Default)]
struct Table<'t> {
    threads: Vec<Histogram>,
    below: Vec<(&'static str, Vec<u64>, Line<'t>)>,
}

/// A section per table and thread.
pub(super) fn read(documents: &Documents, lines: &[Line<'_>]) -> Found {
    let mut tables: Vec<Table<'_>> = Vec::new();
    let mut in_table = false;
    let mut unit = "us";
    for line in lines {
        let text = line.text.trim_start();
        if claims(text) {
            tables.push(Table::default());
            in_table = true;
        } else if is_command_in_ns(text) {
            unit = "ns";
        } else if let Some(table) = tables.last_mut() {
            let head = [TOTAL, MIN, AVG, MAX, ABOVE]
                .into_iter()
                .find(|head| text.starts_with(head));
            if let Some(head) = head {
                in_table = false;
                table.take_below(head, text, line)?;
            } else if in_table && !text.is_empty() {
                table.take_row(line)?;
            }
        }
    }
    let mut sections: Vec<Section> = of_cyclictest(documents)?
        .into_iter()
        .map(|(_, section)| section)
        .collect();
    let mut notes = Vec::new();
    let several = tables.len() > 1;
    for (place, table) in tables.into_iter().enumerate() {
        if !table.threads.is_empty() && table.line_of(TOTAL).is_none() {
            notes.push("there is no `# Total:`: whether rows are missing is not known".to_owned());
        }
        let run = if several {
            format!("run {} ", place + 1)
        } else {
            String::new()
        };
        for (thread, histogram) in table.histograms()?.into_iter().enumerate() {
            sections.push(Section {
                name: format!("{run}thread {thread}"),
                unit: Unit::new(unit),
                histogram,
                span: None,
            });
        }
    }
    Ok((sections, notes))
}

/// Only the command tells that values are nanoseconds.
fn is_command_in_ns(text: &str) -> bool {
    let mut words = text.split_whitespace();
    text.contains("cyclictest ") && words.any(|word| ["-N", "--nsecs"].contains(&word))
}

impl<'t> Table<'t> {
    fn take_row(&mut self, line: &Line<'_>) -> Result<(), HistError> {
        let numbers: Option<Vec<u64>> = line.text.split_whitespace().map(number).collect();
        let numbers = numbers.ok_or_else(|| HistError::row(line, "no row of numbers"))?;
        let Some((index, counts)) = numbers.split_first() else {
            return Ok(());
        };
        if self.threads.is_empty() {
            self.threads.resize(counts.len(), Histogram::default());
        }
        if counts.is_empty() || counts.len() != self.threads.len() {
            let (own, above) = (counts.len(), self.threads.len());
            let reason = format!("{own} columns, the rows above have {above}");
            return Err(HistError::row(line, reason));
        }
        let end = index
            .checked_add(1)
            .ok_or_else(|| HistError::row(line, "a number is beyond what can be counted"))?;
        for (histogram, count) in self.threads.iter_mut().zip(counts) {
            push(histogram, bucket(*index, end, *count), line)?;
        }
        Ok(())
    }

    fn take_below(
        &mut self,
        head: &'static str,
        text: &str,
        line: &Line<'t>,
    ) -> Result<(), HistError> {
        let numbers = text.get(head.len()..).unwrap_or_default();
        let numbers: Option<Vec<u64>> = numbers.split_whitespace().map(number).collect();
        let numbers = numbers.ok_or_else(|| HistError::row(line, "no row of numbers"))?;
        // With -H rows and totals have a last column for all threads, others have none.
        let columns = self.threads.len();
        if numbers.len() != columns && (numbers.len() + 1 != columns || head == TOTAL) {
            let reason = format!("{} columns, the table has {columns}", numbers.len());
            return Err(HistError::row(line, reason));
        }
        self.below.push((head, numbers, *line));
        Ok(())
    }

    fn line_of(&self, head: &str) -> Option<&(&'static str, Vec<u64>, Line<'t>)> {
        self.below.iter().find(|(known, _, _)| *known == head)
    }

    fn column(&self, head: &str, place: usize) -> Option<(u64, &Line<'t>)> {
        let (_, numbers, line) = self.line_of(head)?;
        Some((*numbers.get(place)?, line))
    }

    fn histograms(mut self) -> Result<Vec<Histogram>, HistError> {
        let mut threads = std::mem::take(&mut self.threads);
        for (place, histogram) in threads.iter_mut().enumerate() {
            if let Some((total, line)) = self.column(TOTAL, place) {
                check_total(histogram, total, line)?;
            }
            if let Some((above, line)) = self.column(ABOVE, place) {
                histogram.overflow = add(histogram.overflow, above, line)?;
            }
            histogram.min = self.column(MIN, place).map(|(value, _)| float(value));
            histogram.max = self.column(MAX, place).map(|(value, _)| float(value));
        }
        // The column of all threads is none; means have no such column.
        let real = self
            .line_of(AVG)
            .map_or(threads.len(), |(_, numbers, _)| numbers.len());
        threads.truncate(real);
        Ok(threads)
    }
}
