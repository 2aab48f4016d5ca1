//! HDR histograms: the V2 encoding, plain or compressed, and interval logs (`.hlog`).
//!
//! The encoding does not carry the exact extremes, so a histogram that is read has none. Decoding is
//! the hdrhistogram crate's; sizes that a damaged or hostile file announces are checked before.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, LogIteratorError, Tag,
};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use kdyno_model::{Bucket, Histogram};
use std::io::Read;
use std::time::Duration;

/// First four bytes of the plain and of the compressed encoding.
const PLAIN: u32 = 0x1c84_9303 | 0x10;
const COMPRESSED: u32 = 0x1c84_9304 | 0x10;
/// Bytes of the plain encoding before its counts; the length of these is in the second four.
const HEADER_BYTES: usize = 40;
/// Most bytes of one plain histogram: every count of the finest one there can be takes nine.
const MOST_BYTES: u64 = 64 << 20;
/// Significant digits of histograms that are written.
const DIGITS: u8 = 3;

/// Why bytes are no HDR histogram, or a histogram cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HdrError {
    /// A histogram by itself cannot be read.
    #[error("{0}")]
    Histogram(String),
    /// A line of a log cannot be read.
    #[error("line {line}: {reason}")]
    Line {
        /// Which, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The histogram has what the format lacks.
    #[error("it cannot be an HDR histogram: {0}")]
    Unfit(String),
}

impl HdrError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Histogram(_) => "give a histogram in the V2 encoding, or the base64 text of it",
            Self::Line { .. } => {
                "lines of an .hlog are `START,LENGTH,MAX,HISTOGRAM`, or comments that begin with #"
            }
            Self::Unfit(_) => "write it as CSV or JSON instead",
        }
    }
}

/// One line of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// What it is of, where the log tells several things apart.
    pub tag: Option<String>,
    /// Its start, since 1970 or since the log's base time.
    pub start: Duration,
    /// How long it is.
    pub length: Duration,
    /// What was counted in it.
    pub histogram: Histogram,
}

/// Reads one histogram: the encoding, or the base64 text of it.
///
/// # Errors
/// [`HdrError::Histogram`].
pub fn read(bytes: &[u8]) -> Result<Histogram, HdrError> {
    let decoded = match std::str::from_utf8(bytes).map(str::trim) {
        Ok(text) if !text.is_empty() => STANDARD.decode(text).ok(),
        _ => None,
    };
    decode(decoded.as_deref().unwrap_or(bytes)).map_err(HdrError::Histogram)
}

/// Reads an interval log.
///
/// # Errors
/// [`HdrError::Line`], at the first line that is wrong.
pub fn read_log(bytes: &[u8]) -> Result<Vec<Interval>, HdrError> {
    // The parser wants an end of the last line.
    let mut text = bytes.to_owned();
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    let line_at = |offset: usize| {
        let before = text.get(..offset).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    };
    let mut intervals = Vec::new();
    for entry in IntervalLogIterator::new(&text) {
        let entry = entry.map_err(|LogIteratorError::ParseError { offset }| HdrError::Line {
            line: line_at(offset),
            reason: "it is no interval and no comment".to_owned(),
        })?;
        let LogEntry::Interval(interval) = entry else {
            continue;
        };
        let encoded = interval.encoded_histogram();
        let histogram = STANDARD
            .decode(encoded)
            .map_err(|error| format!("its histogram is no base64 text: {error}"))
            .and_then(|bytes| decode(&bytes))
            .map_err(|reason| HdrError::Line {
                line: line_at((encoded.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)),
                reason,
            })?;
        intervals.push(Interval {
            tag: interval.tag().map(|tag| tag.as_str().to_owned()),
            start: interval.start_timestamp(),
            length: interval.duration(),
            histogram,
        });
    }
    Ok(intervals)
}

/// Writes one histogram in the compressed V2 encoding, with three significant digits.
///
/// # Errors
/// [`HdrError::Unfit`] when it has events outside of its buckets, or values that are no whole
/// numbers.
pub fn write(histogram: &Histogram) -> Result<Vec<u8>, HdrError> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(&encodable(histogram)?, &mut bytes)
        .map_err(|error| HdrError::Unfit(error.to_string()))?;
    Ok(bytes)
}

/// Writes an interval log whose times count from 1970.
///
/// # Errors
/// [`HdrError::Unfit`], as for [`write()`], or for a tag with a comma or a blank.
pub fn write_log(intervals: &[Interval]) -> Result<Vec<u8>, HdrError> {
    let unfit = |reason: String| HdrError::Unfit(reason);
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .begin_log_with(&mut bytes, &mut serializer)
        .map_err(|error| unfit(error.to_string()))?;
    for interval in intervals {
        let tag =
            match &interval.tag {
                Some(tag) => Some(Tag::new(tag).ok_or_else(|| {
                    unfit(format!("`{tag}` is no tag: it has a comma or a blank"))
                })?),
                None => None,
            };
        let histogram = encodable(&interval.histogram)?;
        log.write_histogram(&histogram, interval.start, interval.length, tag)
            .map_err(|error| unfit(format!("{error:?}")))?;
    }
    Ok(bytes)
}

/// The histogram as the crate has it, every event in the middle of its bucket.
fn encodable(histogram: &Histogram) -> Result<Hdr<u64>, HdrError> {
    let unfit = |reason: &str| HdrError::Unfit(reason.to_owned());
    if histogram.underflow > 0 || histogram.overflow > 0 {
        return Err(unfit("it has events outside of its buckets"));
    }
    let mut hdr = Hdr::new(DIGITS).map_err(|error| HdrError::Unfit(error.to_string()))?;
    for bucket in &histogram.buckets {
        let middle = bucket.low + (bucket.high - bucket.low - 1.0).max(0.0) / 2.0;
        let value =
            whole(middle.floor()).ok_or_else(|| unfit("its values are no whole numbers"))?;
        hdr.record_n(value, bucket.count)
            .map_err(|error| HdrError::Unfit(error.to_string()))?;
    }
    Ok(hdr)
}

/// A number that floats hold exactly.
fn whole(number: f64) -> Option<u64> {
    let exact = (0.0..9_007_199_254_740_992.0).contains(&number) && number.fract() == 0.0;
    exact.then_some(number as u64)
}

/// Decodes a plain or compressed histogram.
fn decode(bytes: &[u8]) -> Result<Histogram, String> {
    let cut = || "it is cut".to_owned();
    let plain = match word(bytes, 0).ok_or_else(cut)? {
        PLAIN => bytes.to_owned(),
        COMPRESSED => inflated(bytes.get(8..).ok_or_else(cut)?)?,
        _ => return Err("it is no HDR histogram in the V2 encoding".to_owned()),
    };
    let announced = word(&plain, 4).ok_or_else(cut)?;
    let there = plain.len().checked_sub(HEADER_BYTES).ok_or_else(cut)?;
    if usize::try_from(announced).map_or(true, |announced| announced > there) {
        return Err(cut());
    }
    let hdr: Hdr<u64> = Deserializer::new()
        .deserialize(&mut plain.as_slice())
        .map_err(|error| error.to_string())?;
    Ok(buckets_of(&hdr))
}

/// Four bytes of a big-endian number.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

fn inflated(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut plain = Vec::new();
    let read = ZlibDecoder::new(bytes)
        .take(MOST_BYTES)
        .read_to_end(&mut plain);
    read.map_err(|error| format!("its compression is broken: {error}"))?;
    match plain.len() as u64 {
        MOST_BYTES => Err(format!("it is longer than {MOST_BYTES} bytes")),
        _ => Ok(plain),
    }
}

/// The buckets that hold an event.
fn buckets_of(hdr: &Hdr<u64>) -> Histogram {
    let bucket = |value: u64, count| {
        #[expect(clippy::cast_precision_loss, reason = "times up to 104 days are exact")]
        let ends = (
            hdr.lowest_equivalent(value) as f64,
            hdr.next_non_equivalent(value) as f64,
        );
        Bucket {
            low: ends.0,
            high: ends.1,
            count,
        }
    };
    let recorded = hdr.iter_recorded();
    Histogram {
        buckets: recorded
            .map(|step| bucket(step.value_iterated_to(), step.count_at_value()))
            .collect(),
        ..Histogram::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[(f64, f64, u64)]) -> Histogram {
        let bucket = |(low, high, count): &(f64, f64, u64)| Bucket {
            low: *low,
            high: *high,
            count: *count,
        };
        Histogram {
            buckets: values.iter().map(bucket).collect(),
            ..Histogram::default()
        }
    }

    fn some() -> Histogram {
        histogram(&[(0.0, 1.0, 2), (7.0, 8.0, 5), (2000.0, 2001.0, 1)])
    }

    #[test]
    fn what_is_written_is_read_again() {
        let bytes = write(&some()).expect("written");
        assert_eq!(read(&bytes).expect("read"), some());
        let text = STANDARD.encode(&bytes);
        assert_eq!(read(text.as_bytes()).expect("read"), some());
        assert_eq!(read(format!("{text}\n").as_bytes()).expect("read"), some());
    }

    #[test]
    fn wide_buckets_keep_their_counts() {
        let wide = histogram(&[(1024.0, 2048.0, 9), (1_000_000.0, 2_000_000.0, 4)]);
        let back = read(&write(&wide).expect("written")).expect("read");
        let counts: Vec<u64> = back.buckets.iter().map(|b| b.count).collect();
        assert_eq!(counts, [9, 4]);
        for (bucket, wide) in back.buckets.iter().zip(&wide.buckets) {
            assert!(wide.low <= bucket.low && bucket.high <= wide.high);
        }
    }

    #[test]
    fn logs_keep_times_and_tags_and_name_the_line_that_is_wrong() {
        let interval = |tag: Option<&str>, start| Interval {
            tag: tag.map(str::to_owned),
            start: Duration::from_secs(start),
            length: Duration::from_millis(500),
            histogram: some(),
        };
        let intervals = [interval(None, 3), interval(Some("reads"), 4)];
        let bytes = write_log(&intervals).expect("written");
        assert_eq!(read_log(&bytes).expect("read"), intervals);
        let mut text = String::from_utf8(bytes).expect("text");
        let good = text.clone();
        text.push_str("1.0,2.0,nonsense\n");
        let wrong_line = good.lines().count() + 1;
        let error = read_log(text.as_bytes()).expect_err("nonsense");
        assert!(
            matches!(error, HdrError::Line { line, .. } if line == wrong_line),
            "{error}"
        );
        let broken = format!("{good}5.0,1.0,3.0,HISTFAAAAAAA\n");
        let error = read_log(broken.as_bytes()).expect_err("a broken histogram");
        assert!(
            matches!(error, HdrError::Line { line, .. } if line == wrong_line),
            "{error}"
        );
        let tagged = [interval(Some("a,b"), 1)];
        assert!(matches!(write_log(&tagged), Err(HdrError::Unfit(_))));
    }

    #[test]
    fn what_has_no_place_in_the_format_is_refused() {
        let outside = Histogram {
            overflow: 1,
            ..some()
        };
        assert!(matches!(write(&outside), Err(HdrError::Unfit(_))));
        assert!(matches!(
            write(&histogram(&[(-4.0, -3.0, 1)])),
            Err(HdrError::Unfit(_))
        ));
    }

    #[test]
    fn damage_is_an_error_and_announced_sizes_take_no_memory() {
        let bytes = write(&some()).expect("written");
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_err(), "cut at {length}");
        }
        let mut huge = PLAIN.to_be_bytes().to_vec();
        huge.extend(u32::MAX.to_be_bytes());
        huge.extend([0; 60]);
        assert_eq!(
            read(&huge),
            Err(HdrError::Histogram("it is cut".to_owned()))
        );
        assert!(read(b"").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), at in 0..200_usize) {
            let _any = read(&bytes);
            let _any = read_log(&bytes);
            let mut damaged = write(&some()).expect("written");
            let place = at % damaged.len();
            damaged[place] ^= bytes.first().copied().unwrap_or(1);
            let _any = read(&damaged);
            // Damage behind the compression.
            let mut plain = PLAIN.to_be_bytes().to_vec();
            plain.extend(&bytes);
            let _any = read(&plain);
        }
    }
}
