//! fio: histogram logs (`--write_hist_log`) and JSON.

use super::parts::{add, bucket, number, push};
use super::text::Line;
use super::{Found, HistError, Section, Span, json};
use kdyno_model::{Histogram, Unit};

/// Buckets of a power of two (`FIO_IO_U_PLAT_VAL`).
const PER_OCTAVE: u64 = 64;
/// Buckets of a line in fio 2, whose values are microseconds, and in fio 3: nanoseconds.
const LAYOUTS: [(usize, &str); 2] = [(19 * 64, "us"), (29 * 64, "ns")];
/// Fields in front of the buckets: milliseconds, direction, block size.
const FIELDS: usize = 3;
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// Whether a line is one of a histogram log.
pub(super) fn claims(line: &str) -> bool {
    let buckets = line.matches(',').count() + 1;
    LAYOUTS.iter().any(|(count, _)| count + FIELDS == buckets)
}

/// A section per line of a log, or per job, direction and latency of a JSON document.
pub(super) fn read(plain: &str, lines: &[Line<'_>]) -> Found {
    if let Some(sections) = json::of_fio(plain)? {
        return Ok((sections, Vec::new()));
    }
    let mut sections = Vec::new();
    let mut last: [f64; 3] = [0.0; 3];
    for line in lines.iter().filter(|line| !line.text.trim().is_empty()) {
        let fields: Option<Vec<u64>> = line.text.split(',').map(number).collect();
        let fields = fields.ok_or_else(|| HistError::row(line, "no line of whole numbers"))?;
        let layout = LAYOUTS
            .iter()
            .find(|(count, _)| count + FIELDS == fields.len());
        let (Some((_, unit)), [ms, direction, _, counts @ ..]) = (layout, fields.as_slice()) else {
            let reason = format!("{} fields; lines have 1219 (fio 2) or 1859", fields.len());
            return Err(HistError::row(line, reason));
        };
        let place = usize::try_from(*direction).unwrap_or(usize::MAX);
        let (Some(name), Some(before)) = (DIRECTIONS.get(place), last.get_mut(place)) else {
            return Err(HistError::row(line, format!("{direction} is no direction")));
        };
        let now = super::parts::float(*ms) / 1000.0;
        let span = Span {
            start_s: *before,
            length_s: now - *before,
        };
        *before = now;
        sections.push(Section {
            name: (*name).to_owned(),
            unit: Unit::new(unit),
            histogram: histogram(counts, line)?,
            span: (span.length_s > 0.0).then_some(span),
        });
    }
    Ok((sections, Vec::new()))
}

fn histogram(counts: &[u64], line: &Line<'_>) -> Result<Histogram, HistError> {
    let mut histogram = Histogram::default();
    for (index, count) in (0_u64..).zip(counts).filter(|(_, count)| **count > 0) {
        // The last bucket holds whatever is above.
        if usize::try_from(index + 1) == Ok(counts.len()) {
            histogram.overflow = add(histogram.overflow, *count, line)?;
            continue;
        }
        let (low, width) = plat(index);
        push(&mut histogram, bucket(low, low + width, *count), line)?;
    }
    Ok(histogram)
}

/// Where a bucket begins, and its width (fio's `plat_idx_to_val`).
fn plat(index: u64) -> (u64, u64) {
    match index / PER_OCTAVE {
        0 | 1 => (index, 1),
        group => {
            let shift = group - 1;
            let base = PER_OCTAVE << shift;
            (base + ((index % PER_OCTAVE) << shift), 1 << shift)
        }
    }
}

/// The bucket that holds a value of fio's `bins`, which are middles of buckets.
pub(super) fn bucket_of(value: u64) -> (u64, u64) {
    let octave = value.max(1).ilog2();
    let shift = octave.saturating_sub(PER_OCTAVE.ilog2());
    let low = value >> shift << shift;
    (low, 1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let mut end = 0;
        for index in 0..29 * 64 {
            let (low, width) = plat(index);
            assert_eq!(low, end, "bucket {index}");
            end = low + width;
            assert_eq!(bucket_of(low), (low, width));
            assert_eq!(bucket_of(end - 1), (low, width));
        }
    }
}
