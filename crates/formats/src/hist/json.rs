//! The JSON forms of bcc, bpftrace, cyclictest and fio.

use super::parts::{bucket, events, float, unit_in};
use super::text::Line;
use super::{HistError, Section, Tool, bcc, fio};
use kdyno_model::{Bucket, Histogram, Unit};
use serde_json::{Map, Value};

/// Sections, or nothing where the text is no document of the tool.
type Of = Result<Option<Vec<Section>>, HistError>;

/// The tool whose document it is.
pub(super) fn tool_of(plain: &str) -> Option<Tool> {
    let documents = documents(plain);
    let first = documents.first()?;
    if first.get("jobs").is_some() {
        return Some(Tool::Fio);
    }
    if first.get("thread").is_some() && first.get("num_threads").is_some() {
        return Some(Tool::Cyclictest);
    }
    if documents.iter().any(|d| d.get("val_type").is_some()) {
        return Some(Tool::Bcc);
    }
    let is_hist = |d: &Value| d.get("type").and_then(Value::as_str) == Some("hist");
    documents.iter().any(is_hist).then_some(Tool::Bpftrace)
}

/// The objects of a text: one that is the whole of it behind some lines of prose, or one per line.
fn documents(plain: &str) -> Vec<Value> {
    let start = plain
        .match_indices('{')
        .map(|(place, _)| place)
        .find(|place| *place == 0 || plain.get(..*place).is_some_and(|p| p.ends_with('\n')));
    let Some(rest) = start.and_then(|start| plain.get(start..)) else {
        return Vec::new();
    };
    let values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    values.map_while(Result::ok).collect()
}

fn refused(reason: impl Into<String>) -> HistError {
    HistError::whole(reason, "give the tool's JSON as it printed it")
}

/// bcc: `{"val_type": "usecs", "data": [{"interval-start", "interval-end", "count"}]}`.
pub(super) fn of_bcc(plain: &str) -> Of {
    let documents = documents(plain);
    let mut sections = Vec::new();
    for document in documents.iter().filter(|d| d.get("val_type").is_some()) {
        let unit = document
            .get("val_type")
            .and_then(Value::as_str)
            .unwrap_or("");
        let data = document.get("data").and_then(Value::as_array);
        let data = data.ok_or_else(|| refused("`data` is no list"))?;
        let mut histogram = Histogram::default();
        for entry in data {
            let of = |key: &str| entry.get(key).and_then(Value::as_u64);
            let (Some(low), Some(high), Some(count)) =
                (of("interval-start"), of("interval-end"), of("count"))
            else {
                return Err(refused(format!("no interval: {}", short(entry))));
            };
            let end = high.checked_add(1).ok_or_else(|| refused(short(entry)))?;
            put(&mut histogram, bucket(low, end, count))?;
        }
        sections.push(Section {
            name: String::new(),
            unit: bcc::unit(unit),
            histogram,
            span: None,
        });
    }
    Ok((!sections.is_empty()).then_some(sections))
}

/// bpftrace: `{"type": "hist", "data": {"@name": [{"min", "max", "count"}]}}`, by key where a map has
/// some. `max` is included; without one the bucket is open.
pub(super) fn of_bpftrace(plain: &str) -> Of {
    let mut sections = Vec::new();
    for document in documents(plain) {
        if document.get("type").and_then(Value::as_str) != Some("hist") {
            continue;
        }
        let maps = document.get("data").and_then(Value::as_object);
        for (map, value) in maps.into_iter().flatten() {
            let map = map.trim_start_matches('@');
            match value {
                Value::Array(entries) => sections.push(of_map(map, map, entries)?),
                Value::Object(keys) => {
                    for (key, entries) in keys {
                        let entries = entries.as_array();
                        let entries = entries.ok_or_else(|| refused(format!("@{map}[{key}]")))?;
                        sections.push(of_map(map, &format!("{map}[{key}]"), entries)?);
                    }
                }
                other => return Err(refused(format!("@{map}: {}", short(other)))),
            }
        }
    }
    Ok((!sections.is_empty()).then_some(sections))
}

fn of_map(map: &str, name: &str, entries: &[Value]) -> Result<Section, HistError> {
    let mut histogram = Histogram::default();
    for entry in entries {
        let count = entry.get("count").and_then(Value::as_u64);
        let count = count.ok_or_else(|| refused(format!("no bucket: {}", short(entry))))?;
        let end = |key: &str| entry.get(key).and_then(Value::as_f64);
        match (end("min"), end("max")) {
            (Some(low), Some(max)) => {
                let high = max + 1.0;
                put(&mut histogram, Bucket { low, high, count })?;
            }
            (Some(_), None) => histogram.overflow = histogram.overflow.saturating_add(count),
            (None, Some(_)) => histogram.underflow = histogram.underflow.saturating_add(count),
            (None, None) => return Err(refused(format!("no bucket: {}", short(entry)))),
        }
    }
    Ok(Section {
        name: name.to_owned(),
        unit: unit_in(map),
        histogram,
        span: None,
    })
}

/// cyclictest: `thread.N.histogram` counts microseconds; cycles beyond those lie above.
pub(super) fn of_cyclictest(plain: &str) -> Of {
    let documents = documents(plain);
    let Some(threads) = documents.iter().find_map(|d| d.get("thread")?.as_object()) else {
        return Ok(None);
    };
    let mut numbered: Vec<(u64, &Value)> = Vec::new();
    for (number, thread) in threads {
        let number = number
            .parse()
            .map_err(|_| refused(format!("thread {number}")))?;
        numbered.push((number, thread));
    }
    numbered.sort_by_key(|(number, _)| *number);
    let mut sections = Vec::new();
    for (number, thread) in numbered {
        let counts = thread.get("histogram").and_then(Value::as_object);
        let Some(counts) = counts else {
            let hint = "run cyclictest with --histogram=US";
            return Err(HistError::whole(
                format!("thread {number} has no histogram"),
                hint,
            ));
        };
        let mut histogram = of_counts(counts, |value| Some((value, value.checked_add(1)?)))?;
        let of = |key: &str| thread.get(key).and_then(Value::as_u64);
        if let Some(cycles) = of("cycles") {
            let counted = events(&histogram);
            let above = cycles.checked_sub(counted);
            histogram.overflow = above.ok_or_else(|| {
                refused(format!(
                    "thread {number}: {cycles} cycles, {counted} are counted"
                ))
            })?;
        }
        histogram.min = of("min").map(float);
        histogram.max = of("max").map(float);
        sections.push(Section {
            name: format!("thread {number}"),
            unit: Unit::new("us"),
            histogram,
            span: None,
        });
    }
    Ok(Some(sections))
}

/// fio: per job, direction and latency the counts of `bins`, else what percentiles tell.
pub(super) fn of_fio(plain: &str) -> Of {
    let documents = documents(plain);
    let Some(jobs) = documents.iter().find_map(|d| d.get("jobs")?.as_array()) else {
        return Ok(None);
    };
    let mut sections = Vec::new();
    for job in jobs {
        let name = job.get("jobname").and_then(Value::as_str).unwrap_or("job");
        for direction in ["read", "write", "trim"] {
            for (key, unit) in [
                ("clat_ns", "ns"),
                ("lat_ns", "ns"),
                ("slat_ns", "ns"),
                ("clat", "us"),
                ("lat", "us"),
                ("slat", "us"),
            ] {
                let told = job.get(direction).and_then(|d| d.get(key));
                let Some(histogram) = told.map(of_latency).transpose()?.flatten() else {
                    continue;
                };
                let kind = key.trim_end_matches("_ns");
                sections.push(Section {
                    name: format!("{name}.{direction}.{kind}"),
                    unit: Unit::new(unit),
                    histogram,
                    span: None,
                });
            }
        }
    }
    if sections.is_empty() {
        return Err(HistError::whole(
            "fio's document has no bins and no percentiles",
            "run fio with --output-format=json+",
        ));
    }
    Ok(Some(sections))
}

/// The distribution of one latency; nothing where it has neither events nor a distribution.
fn of_latency(told: &Value) -> Result<Option<Histogram>, HistError> {
    let extreme = |key: &str| told.get(key).and_then(Value::as_f64);
    let bins = told.get("bins").and_then(Value::as_object);
    if let Some(bins) = bins.filter(|bins| !bins.is_empty()) {
        let mut histogram = of_counts(bins, |value| {
            let (low, width) = fio::bucket_of(value);
            Some((low, low.checked_add(width)?))
        })?;
        histogram.min = extreme("min");
        histogram.max = extreme("max");
        return Ok(Some(histogram));
    }
    let n = told.get("N").and_then(Value::as_u64);
    let percentiles = told.get("percentile").and_then(Value::as_object);
    let (Some(percentiles), Some(min), Some(max)) = (percentiles, extreme("min"), extreme("max"))
    else {
        return Ok(None);
    };
    between(percentiles, n, min, max)
}

/// Buckets from one percentile to the next, from the smallest value to the largest. Without the number
/// of events there are a million, so that shares keep six digits.
fn between(
    percentiles: &Map<String, Value>,
    n: Option<u64>,
    min: f64,
    max: f64,
) -> Result<Option<Histogram>, HistError> {
    const UNKNOWN: u64 = 1_000_000;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (percent, value) in percentiles {
        let (Ok(percent), Some(value)) = (percent.parse::<f64>(), value.as_f64()) else {
            continue;
        };
        // fio 2 fills unused places of its list with zeros.
        if percent > 0.0 && percent <= 100.0 {
            points.push((percent / 100.0, value));
        }
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let n = n.unwrap_or(UNKNOWN);
    if points.is_empty() || n == 0 || max <= 0.0 {
        return Ok(None);
    }
    points.push((1.0, max));
    let mut histogram = Histogram {
        min: Some(min),
        max: Some(max),
        ..Histogram::default()
    };
    let (mut low, mut seen) = (min, 0_u64);
    for (share, value) in points {
        // Events up to here, so that no rounding adds up.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count that floats hold"
        )]
        let upto = (share * float(n)).round() as u64;
        let count = upto.saturating_sub(seen);
        seen = seen.max(upto);
        // The value belongs to its percentile: the bucket ends behind it.
        let high = value.max(low) + 1.0;
        match histogram.buckets.last_mut() {
            Some(last) if high <= last.high => last.count = last.count.saturating_add(count),
            _ => histogram.buckets.push(Bucket { low, high, count }),
        }
        low = high;
    }
    histogram.buckets.retain(|bucket| bucket.count > 0);
    Ok(Some(histogram))
}

/// Counts by value, in the order of the values; values of one bucket are put together.
fn of_counts(
    counts: &Map<String, Value>,
    ends: impl Fn(u64) -> Option<(u64, u64)>,
) -> Result<Histogram, HistError> {
    let mut rows: Vec<(u64, u64, u64)> = Vec::new();
    for (value, count) in counts {
        let row = value.parse().ok().and_then(&ends).zip(count.as_u64());
        let ((low, high), count) =
            row.ok_or_else(|| refused(format!("no count: `{value}`: {}", short(count))))?;
        rows.push((low, high, count));
    }
    rows.sort_unstable();
    let mut histogram = Histogram::default();
    for (low, high, count) in rows {
        match histogram.buckets.last_mut() {
            Some(last) if last.low.total_cmp(&float(low)).is_eq() => {
                last.count = last.count.saturating_add(count);
            }
            _ => put(&mut histogram, bucket(low, high, count))?,
        }
    }
    Ok(histogram)
}

fn put(histogram: &mut Histogram, bucket: Bucket) -> Result<(), HistError> {
    let nowhere = Line {
        number: 0,
        text: "",
    };
    super::parts::push(histogram, bucket, &nowhere).map_err(|error| refused(error.reason))
}

/// A value as it may stand in a message.
fn short(value: &Value) -> String {
    const SHOWN: usize = 80;
    value.to_string().chars().take(SHOWN).collect()
}
