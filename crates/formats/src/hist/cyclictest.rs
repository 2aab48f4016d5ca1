//! `cyclictest -h` and `-H`: a column per thread, microseconds.

use super::parts::{add, bucket, check_total, float, number, push};
use super::text::Line;
use super::{Found, HistError, Section, json};
use kdyno_model::{Histogram, Unit};

/// Whether a line heads the table.
pub(super) fn claims(line: &str) -> bool {
    line.trim() == "# Histogram"
}

/// A number per column of the lines below the table.
#[derive(Default)]
struct Below<'t> {
    lines: Vec<(&'t str, Vec<u64>, Line<'t>)>,
}

impl Below<'_> {
    fn column(&self, head: &str, place: usize) -> Option<(u64, &Line<'_>)> {
        let (_, numbers, line) = self.lines.iter().find(|(known, _, _)| *known == head)?;
        Some((*numbers.get(place)?, line))
    }

    fn columns(&self, head: &str) -> Option<usize> {
        let found = self.lines.iter().find(|(known, _, _)| *known == head);
        found.map(|(_, numbers, _)| numbers.len())
    }
}

const TOTAL: &str = "# Total:";
const MIN: &str = "# Min Latencies:";
const AVG: &str = "# Avg Latencies:";
const MAX: &str = "# Max Latencies:";
const ABOVE: &str = "# Histogram Overflows:";

/// A section per thread.
pub(super) fn read(plain: &str, lines: &[Line<'_>]) -> Found {
    if let Some(sections) = json::of_cyclictest(plain)? {
        return Ok((sections, Vec::new()));
    }
    let mut threads: Vec<Histogram> = Vec::new();
    let mut below = Below::default();
    let mut in_table = false;
    for line in lines {
        if claims(line.text) {
            if !threads.is_empty() {
                return Err(HistError::row(line, "a second table begins"));
            }
            in_table = true;
        } else if let Some(head) = [TOTAL, MIN, AVG, MAX, ABOVE]
            .into_iter()
            .find(|head| line.text.starts_with(head))
        {
            in_table = false;
            let numbers = line.text.get(head.len()..).unwrap_or_default();
            let numbers: Option<Vec<u64>> = numbers.split_whitespace().map(number).collect();
            let numbers = numbers.ok_or_else(|| HistError::row(line, "no row of numbers"))?;
            below.lines.push((head, numbers, *line));
        } else if in_table && !line.text.is_empty() {
            take_row(&mut threads, line)?;
        }
    }
    // With -H a last column is that of all threads; means have none.
    if let Some(real) = below.columns(AVG).filter(|real| real + 1 == threads.len()) {
        threads.truncate(real);
    }
    let mut sections = Vec::new();
    for (place, mut histogram) in threads.into_iter().enumerate() {
        if let Some((total, line)) = below.column(TOTAL, place) {
            check_total(&histogram, total, line)?;
        }
        if let Some((above, line)) = below.column(ABOVE, place) {
            histogram.overflow = add(histogram.overflow, above, line)?;
        }
        histogram.min = below.column(MIN, place).map(|(value, _)| float(value));
        histogram.max = below.column(MAX, place).map(|(value, _)| float(value));
        sections.push(Section {
            name: format!("thread {place}"),
            unit: Unit::new("us"),
            histogram,
            span: None,
        });
    }
    Ok((sections, Vec::new()))
}

fn take_row(threads: &mut Vec<Histogram>, line: &Line<'_>) -> Result<(), HistError> {
    let numbers: Option<Vec<u64>> = line.text.split_whitespace().map(number).collect();
    let numbers = numbers.ok_or_else(|| HistError::row(line, "no row of numbers"))?;
    let Some((index, counts)) = numbers.split_first() else {
        return Ok(());
    };
    if threads.is_empty() {
        threads.resize(counts.len(), Histogram::default());
    }
    if counts.len() != threads.len() {
        let reason = format!(
            "{} columns, the rows above have {}",
            counts.len(),
            threads.len()
        );
        return Err(HistError::row(line, reason));
    }
    let end = index
        .checked_add(1)
        .ok_or_else(|| HistError::row(line, "a number is beyond what can be counted"))?;
    for (histogram, count) in threads.iter_mut().zip(counts) {
        push(histogram, bucket(*index, end, *count), line)?;
    }
    Ok(())
}
