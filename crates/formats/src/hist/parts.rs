//! What the readers share: rows that become buckets, units, numbers.

use super::HistError;
use super::text::Line;
use kdyno_model::{Bucket, Histogram, Unit};

/// A bucket of whole numbers from `low` up to but not including `high`.
pub(super) fn bucket(low: u64, high: u64, count: u64) -> Bucket {
    Bucket {
        low: float(low),
        high: float(high),
        count,
    }
}

/// Sums above 2^53 are not told exactly by any of the tools.
#[expect(
    clippy::cast_precision_loss,
    reason = "values stay below 2^53 or are rough"
)]
pub(super) fn float(value: u64) -> f64 {
    value as f64
}

/// Adds a row to a histogram that grows upwards.
pub(super) fn push(
    histogram: &mut Histogram,
    bucket: Bucket,
    line: &Line<'_>,
) -> Result<(), HistError> {
    let is_bucket = bucket.low < bucket.high;
    if !is_bucket {
        return Err(HistError::row(
            line,
            "a bucket ends where it begins, or before",
        ));
    }
    if histogram
        .buckets
        .last()
        .is_some_and(|last| bucket.low < last.high)
    {
        return Err(HistError::row(
            line,
            "its bucket begins within the one above",
        ));
    }
    histogram.buckets.push(bucket);
    Ok(())
}

/// A sum, or an error where no counter holds it.
pub(super) fn add(sum: u64, count: u64, line: &Line<'_>) -> Result<u64, HistError> {
    sum.checked_add(count)
        .ok_or_else(|| HistError::row(line, "more events than can be counted"))
}

/// How many events there are; `None` where no counter holds them.
pub(super) fn counted(histogram: &Histogram) -> Option<u64> {
    let outside = histogram.underflow.checked_add(histogram.overflow)?;
    let mut counts = histogram.buckets.iter().map(|bucket| bucket.count);
    counts.try_fold(outside, u64::checked_add)
}

/// How many events there are, at most as many as a counter holds: [`super::read`] refuses more.
pub(super) fn events(histogram: &Histogram) -> u64 {
    counted(histogram).unwrap_or(u64::MAX)
}

/// An empty bucket up to `end`, so that it is known where the events that lie outside begin.
pub(super) fn mark_end(histogram: &mut Histogram, end: f64) {
    let last = histogram.buckets.last().map(|bucket| bucket.high);
    let low = last.unwrap_or(if end > 0.0 { 0.0 } else { end - 1.0 });
    if low < end {
        histogram.buckets.push(Bucket {
            low,
            high: end,
            count: 0,
        });
    }
}

/// The words of a table that may be cut off before the bar that ends its rows.
pub(super) fn is_rest_of_a_bar(text: &str, bar: &[char]) -> bool {
    !text.trim().is_empty()
        && text
            .chars()
            .all(|c| bar.contains(&c) || c == '|' || c == ' ')
}

/// Checks a total that the tool has printed.
pub(super) fn check_total(
    histogram: &Histogram,
    total: u64,
    line: &Line<'_>,
) -> Result<(), HistError> {
    let counted = events(histogram);
    match counted == total {
        true => Ok(()),
        false => Err(HistError {
            line: Some(line.number),
            reason: format!("it tells {total} events, its rows have {counted}"),
            hint: "a row is missing or damaged".to_owned(),
        }),
    }
}

/// The unit that a word such as `usecs` means; other words are units of their own.
pub(super) fn unit_of(word: &str) -> Unit {
    Unit::new(match word {
        "nsecs" | "nsec" | "ns" | "nanoseconds" => "ns",
        "usecs" | "usec" | "us" | "microseconds" => "us",
        "msecs" | "msec" | "ms" | "milliseconds" => "ms",
        "secs" | "sec" | "s" | "seconds" => "s",
        other => other,
    })
}

/// The unit that stands at the end of a name such as `read_usecs`; none where it has none.
pub(super) fn unit_in(name: &str) -> Unit {
    let word = name
        .rsplit(|c: char| !c.is_ascii_alphanumeric())
        .find(|word| !word.is_empty())
        .unwrap_or("");
    match unit_of(word) {
        unit if ["ns", "us", "ms", "s"].contains(&unit.as_str()) && word.len() > 1 => unit,
        _ => Unit::default(),
    }
}

/// A whole number, with nothing else around it.
pub(super) fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}
