//! fio: histogram logs (`--write_hist_log`) and JSON.

use super::json::{Documents, of_fio};
use super::parts::{add, bucket, float, mark_end, number, push};
use super::text::Line;
use super::{Found, HistError, Section, Span};
use kdyno_model::{Histogram, Unit};

/// Buckets of a power of two (`FIO_IO_U_PLAT_VAL`).
const PER_OCTAVE: u64 = 64;
/// Octaves of a line in fio 2, whose values are microseconds, and in fio 3: nanoseconds.
const LAYOUTS: [(u64, &str); 2] = [(19, "us"), (29, "ns")];
/// With `log_hist_coarseness` a count is that of two buckets, or four, up to 64.
const MOST_COARSE: u32 = 6;
/// Shorter lines of numbers may be anybody's.
const SURE: usize = 300;
/// Fields in front of the buckets: milliseconds, direction, block size.
const FIELDS: usize = 3;
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// How many counts a line has and what they are of: buckets per count, and the unit.
fn layout(counts: usize) -> Option<(u64, &'static str)> {
    let strides = (0..=MOST_COARSE).map(|coarse| 1_u64 << coarse);
    strides
        .flat_map(|stride| {
            LAYOUTS.map(|(octaves, unit)| (octaves * PER_OCTAVE / stride, stride, unit))
        })
        .find(|(length, _, _)| usize::try_from(*length) == Ok(counts))
        .map(|(_, stride, unit)| (stride, unit))
}

/// Whether a line is one of a histogram log.
pub(super) fn claims(line: &str) -> bool {
    let fields = line.matches(',').count() + 1;
    let counts = fields.checked_sub(FIELDS).filter(|counts| *counts >= SURE);
    counts.and_then(layout).is_some() && is_numbers(line)
}

fn is_numbers(line: &str) -> bool {
    let is_number = |c: char| c.is_ascii_digit() || c == ',' || c == ' ';
    line.contains(',') && line.chars().all(is_number)
}

/// A line of a log.
struct Record<'t> {
    ms: u64,
    direction: usize,
    block: u64,
    counts: Vec<u64>,
    line: Line<'t>,
}

/// A section per line of a log, or per job, direction and latency of a JSON document.
pub(super) fn read(documents: &Documents, lines: &[Line<'_>]) -> Found {
    let (mut sections, notes) = of_fio(documents)?;
    if !sections.is_empty() {
        return Ok((sections, notes));
    }
    let records = lines
        .iter()
        .filter(|line| is_numbers(line.text))
        .map(record);
    let records: Result<Vec<Record<'_>>, HistError> = records.collect();
    let records = records?;
    // Only where there are several sizes does one belong to the name.
    let first = records.first().map(|record| record.block);
    let mixed = records.iter().any(|record| Some(record.block) != first);
    let mut last = [(0_u64, 0_u64); DIRECTIONS.len()];
    for record in &records {
        let name = DIRECTIONS.get(record.direction).copied().unwrap_or("");
        let Some((before, now)) = last.get_mut(record.direction) else {
            continue;
        };
        // Lines of one time, of several sizes or files, are of the same stretch.
        if record.ms != *now {
            (*before, *now) = (*now, record.ms);
        }
        let start_s = float(*before) / 1000.0;
        let length_s = float(now.saturating_sub(*before)) / 1000.0;
        let (stride, unit) = layout(record.counts.len()).unwrap_or((1, ""));
        sections.push(Section {
            name: match mixed {
                true => format!("{name}.{}", record.block),
                false => name.to_owned(),
            },
            unit: Unit::new(unit),
            histogram: histogram(&record.counts, stride, &record.line)?,
            span: (length_s > 0.0).then_some(Span { start_s, length_s }),
        });
    }
    Ok((sections, notes))
}

fn record<'t>(line: &Line<'t>) -> Result<Record<'t>, HistError> {
    let fields: Option<Vec<u64>> = line.text.split(',').map(number).collect();
    let fields = fields.ok_or_else(|| HistError::row(line, "no line of whole numbers"))?;
    let [ms, direction, block, counts @ ..] = fields.as_slice() else {
        return Err(HistError::row(line, "no line of a histogram log"));
    };
    if layout(counts.len()).is_none() {
        let reason = format!("{} fields; lines have 1219 (fio 2) or 1859", fields.len());
        return Err(HistError::row(line, reason));
    }
    let place = usize::try_from(*direction)
        .ok()
        .filter(|place| *place < DIRECTIONS.len());
    Ok(Record {
        ms: *ms,
        direction: place
            .ok_or_else(|| HistError::row(line, format!("{direction} is no direction")))?,
        block: *block,
        counts: counts.to_vec(),
        line: *line,
    })
}

fn histogram(counts: &[u64], stride: u64, line: &Line<'_>) -> Result<Histogram, HistError> {
    let mut histogram = Histogram::default();
    for (place, count) in (0_u64..).zip(counts).filter(|(_, count)| **count > 0) {
        let (low, _) = plat(place * stride);
        // The last bucket holds whatever is above.
        if usize::try_from(place + 1) == Ok(counts.len()) {
            histogram.overflow = add(histogram.overflow, *count, line)?;
            mark_end(&mut histogram, float(low));
            continue;
        }
        let (last, width) = plat(place * stride + stride - 1);
        push(&mut histogram, bucket(low, last + width, *count), line)?;
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

    #[test]
    fn the_length_of_a_line_tells_its_version_and_coarseness() {
        assert_eq!(layout(1216), Some((1, "us")));
        assert_eq!(layout(1856), Some((1, "ns")));
        assert_eq!(layout(608), Some((2, "us")));
        assert_eq!(layout(29), Some((64, "ns")));
        assert_eq!(layout(30), None);
    }
}
