//! The JSON forms of bcc, bpftrace, cyclictest and fio.

use super::parts::{add, bucket, events, float, mark_end, unit_in, unit_of};
use super::text::{Line, Plain};
use super::{HistError, Section, Tool, fio};
use kdyno_model::{Bucket, Histogram, Unit};
use serde_json::{Map, Value};
use std::fmt::Write;

/// Sections with the numbers of the lines where their documents begin.
type Of = Result<Vec<(usize, Section)>, HistError>;

/// The JSON objects of an input that begin a line.
#[derive(Debug, Default)]
pub(super) struct Documents {
    /// Each with the number of its first line.
    found: Vec<(usize, Value)>,
    /// Where one begins that cannot be read to its end, and why not; nothing is read behind it.
    broken: Option<(usize, String)>,
}

impl Documents {
    /// Finds them between the lines of prose.
    pub(super) fn of(plain: &Plain) -> Self {
        let mut documents = Self::default();
        let text = plain.text.as_str();
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let line = rest.split_inclusive('\n').next().unwrap_or(rest);
            let indent = line.len() - line.trim_start().len();
            let begin = rest.get(indent..).unwrap_or("");
            if let Some(value) = of_python(line.trim()) {
                documents.found.push((plain.number_at(at), value));
            } else if begin.starts_with("{'") && line.contains("'val_type'") {
                let reason = "a dictionary that does not end on its line".to_owned();
                documents.broken = Some((plain.number_at(at), reason));
                break;
            } else if begins_object(begin) {
                match first_of(begin) {
                    Ok((value, length)) => {
                        documents.found.push((plain.number_at(at), value));
                        at += indent + length;
                        // The rest of its last line.
                        let rest = text.get(at..).unwrap_or("");
                        at += rest.find('\n').map_or(rest.len(), |end| end + 1);
                        continue;
                    }
                    Err(reason) => {
                        documents.broken = Some((plain.number_at(at), reason));
                        break;
                    }
                }
            }
            at += line.len();
        }
        documents
    }

    /// Where the first document of a tool begins.
    pub(super) fn line_of(&self, tool: Tool) -> Option<usize> {
        self.of_tool(tool).next().map(|(line, _)| *line)
    }

    /// Those of a tool.
    fn of_tool(&self, tool: Tool) -> impl Iterator<Item = &(usize, Value)> {
        self.found
            .iter()
            .filter(move |(_, document)| tool_of(document) == Some(tool))
    }

    /// An error for the document that cannot be read to its end.
    pub(super) fn broken(&self) -> Option<HistError> {
        let (line, reason) = self.broken.as_ref()?;
        Some(refused(*line, format!("this JSON is damaged: {reason}")))
    }
}

fn tool_of(document: &Value) -> Option<Tool> {
    let has = |key: &str| document.get(key).is_some();
    if has("jobs") || has("client_stats") {
        return Some(Tool::Fio);
    }
    if document.get("thread").is_some_and(Value::is_object) {
        return Some(Tool::Cyclictest);
    }
    if has("val_type") && has("data") {
        return Some(Tool::Bcc);
    }
    let kind = document.get("type").and_then(Value::as_str);
    (kind == Some("hist")).then_some(Tool::Bpftrace)
}

/// Whether a text is an object with a key, or an empty one: braces of programs are passed over.
fn begins_object(text: &str) -> bool {
    let Some(inside) = text.strip_prefix('{').map(str::trim_start) else {
        return false;
    };
    let key = inside.strip_prefix('"').and_then(|key| key.split_once('"'));
    key.is_some_and(|(key, rest)| {
        !key.contains('\n') && rest.trim_start().starts_with(':') && key.len() < 200
    })
}

/// The first object of a text and its length.
fn first_of(text: &str) -> Result<(Value, usize), String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) => Ok((value, values.byte_offset())),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("it is empty".to_owned()),
    }
}

/// A dictionary on a line of its own, as bcc's `-j` prints it: quotes are single, bytes are `b'sda'`.
fn of_python(line: &str) -> Option<Value> {
    if !line.starts_with("{'") || !line.ends_with('}') {
        return None;
    }
    let mut json = String::with_capacity(line.len());
    let mut characters = line.chars().peekable();
    let mut quote = None;
    while let Some(c) = characters.next() {
        match (quote, c) {
            (None, '\'' | '"') => {
                quote = Some(c);
                json.push('"');
            }
            (None, 'b') if matches!(characters.peek(), Some('\'' | '"')) => {}
            (None, c) => json.push(c),
            (Some(open), c) if c == open => {
                quote = None;
                json.push('"');
            }
            (Some(_), '"') => json.push_str("\\\""),
            (Some(_), '\\') => match characters.next()? {
                '\'' => json.push('\''),
                'x' => {
                    let code: String = characters.by_ref().take(2).collect();
                    let _ = write!(json, "\\u00{code}");
                }
                other => {
                    json.push('\\');
                    json.push(other);
                }
            },
            (Some(_), c) => json.push(c),
        }
    }
    serde_json::from_str(&json).ok()
}

fn refused(line: usize, reason: impl Into<String>) -> HistError {
    HistError {
        line: Some(line),
        ..HistError::whole(reason, "give the tool's JSON as it printed it")
    }
}

/// bcc: `{"val_type": "usecs", "data": [{"interval-start", "interval-end", "count"}]}`; what else is in
/// it are keys, such as `flags`.
pub(super) fn of_bcc(documents: &Documents) -> Of {
    let mut sections = Vec::new();
    for (line, document) in documents.of_tool(Tool::Bcc) {
        let unit = document.get("val_type").and_then(Value::as_str);
        let data = document.get("data").and_then(Value::as_array);
        let data = data.ok_or_else(|| refused(*line, "`data` is no list"))?;
        let mut histogram = Histogram::default();
        for entry in data {
            let of = |key: &str| entry.get(key).and_then(Value::as_u64);
            let (Some(low), Some(high), Some(count)) =
                (of("interval-start"), of("interval-end"), of("count"))
            else {
                return Err(refused(*line, format!("no interval: {}", short(entry))));
            };
            let end = high
                .checked_add(1)
                .ok_or_else(|| refused(*line, short(entry)))?;
            put(&mut histogram, bucket(low, end, count), *line)?;
        }
        sections.push((
            *line,
            Section {
                name: keys_of(document),
                unit: unit_of(unit.unwrap_or("")),
                histogram,
                span: None,
            },
        ));
    }
    Ok(sections)
}

/// `flags = Sync-Write`, as the text form has it.
fn keys_of(document: &Value) -> String {
    let entries = document.as_object().into_iter().flatten();
    let keys = entries.filter(|(key, _)| !["ts", "val_type", "data"].contains(&key.as_str()));
    let keys = keys.map(|(key, value)| {
        let key = key.strip_prefix("Bucket ").unwrap_or(key);
        match value {
            Value::String(text) => format!("{key} = {text}"),
            other => format!("{key} = {}", short(other)),
        }
    });
    keys.collect::<Vec<String>>().join(", ")
}

/// bpftrace: `{"type": "hist", "data": {"@name": [{"min", "max", "count"}]}}`, by key where a map has
/// some. `max` is included; without one the bucket is open.
pub(super) fn of_bpftrace(documents: &Documents) -> Of {
    let mut sections = Vec::new();
    for (line, document) in documents.of_tool(Tool::Bpftrace) {
        let maps = document.get("data").and_then(Value::as_object);
        for (map, value) in maps.into_iter().flatten() {
            let map = map.trim_start_matches('@');
            match value {
                Value::Array(entries) => {
                    sections.push((*line, of_map(map, map, entries, *line)?));
                }
                Value::Object(keys) => {
                    for (key, entries) in keys {
                        let entries = entries.as_array();
                        let entries =
                            entries.ok_or_else(|| refused(*line, format!("@{map}[{key}]")))?;
                        let name = match map {
                            "" => key.clone(),
                            map => format!("{map}[{key}]"),
                        };
                        sections.push((*line, of_map(map, &name, entries, *line)?));
                    }
                }
                other => return Err(refused(*line, format!("@{map}: {}", short(other)))),
            }
        }
    }
    Ok(sections)
}

fn of_map(map: &str, name: &str, entries: &[Value], line: usize) -> Result<Section, HistError> {
    let mut histogram = Histogram::default();
    for entry in entries {
        let no_bucket = || refused(line, format!("no bucket: {}", short(entry)));
        let count = entry.get("count").and_then(Value::as_u64);
        let count = count.ok_or_else(no_bucket)?;
        let end = |key: &str| entry.get(key).and_then(Value::as_f64);
        let more = |sum: u64| sum.checked_add(count).ok_or_else(no_bucket);
        match (end("min"), end("max")) {
            (Some(low), Some(max)) => {
                let high = max + 1.0;
                put(&mut histogram, Bucket { low, high, count }, line)?;
            }
            (Some(low), None) => {
                histogram.overflow = more(histogram.overflow)?;
                mark_end(&mut histogram, low);
            }
            (None, Some(_)) => histogram.underflow = more(histogram.underflow)?,
            (None, None) => return Err(no_bucket()),
        }
    }
    Ok(Section {
        name: name.to_owned(),
        unit: unit_in(map),
        histogram,
        span: None,
    })
}

/// cyclictest: `thread.N.histogram` counts microseconds, or nanoseconds where the document says so;
/// cycles beyond those lie above.
pub(super) fn of_cyclictest(documents: &Documents) -> Of {
    let mut sections = Vec::new();
    for (line, document) in documents.of_tool(Tool::Cyclictest) {
        let resolution = document.get("resolution_in_ns").and_then(Value::as_u64);
        let unit = if resolution == Some(1) { "ns" } else { "us" };
        let threads = document.get("thread").and_then(Value::as_object);
        let mut numbered: Vec<(u64, &Value)> = Vec::new();
        for (number, thread) in threads.into_iter().flatten() {
            let number = number
                .parse()
                .map_err(|_| refused(*line, format!("thread {number}")))?;
            numbered.push((number, thread));
        }
        numbered.sort_by_key(|(number, _)| *number);
        for (number, thread) in numbered {
            sections.push((
                *line,
                Section {
                    name: format!("thread {number}"),
                    unit: Unit::new(unit),
                    histogram: of_thread(number, thread, *line)?,
                    span: None,
                },
            ));
        }
    }
    Ok(sections)
}

fn of_thread(number: u64, thread: &Value, line: usize) -> Result<Histogram, HistError> {
    let Some(counts) = thread.get("histogram").and_then(Value::as_object) else {
        return Err(HistError {
            hint: "run cyclictest with --histogram=US".to_owned(),
            ..refused(line, format!("thread {number} has no histogram"))
        });
    };
    let mut histogram = of_counts(counts, line, |value| Some((value, value.checked_add(1)?)))?;
    let of = |key: &str| thread.get(key).and_then(Value::as_u64);
    histogram.min = of("min").map(float);
    histogram.max = of("max").map(float);
    let Some(cycles) = of("cycles") else {
        return Ok(histogram);
    };
    let counted = events(&histogram);
    let lost = |reason: &str| {
        refused(
            line,
            format!("thread {number}: {cycles} cycles, {counted} are counted{reason}"),
        )
    };
    histogram.overflow = cycles.checked_sub(counted).ok_or_else(|| lost(""))?;
    let end = histogram.buckets.last().map_or(0.0, |bucket| bucket.high);
    // Nothing lies above the buckets when the largest value is in one.
    if histogram.overflow > 0 && histogram.max.is_some_and(|max| max < end) {
        return Err(lost(" and none lies above"));
    }
    Ok(histogram)
}

/// fio: per job, direction and latency the counts of `bins`, else what percentiles tell. With notes.
pub(super) fn of_fio(documents: &Documents) -> Result<(Vec<Section>, Vec<String>), HistError> {
    let (mut sections, mut rough) = (Vec::new(), None);
    for (line, document) in documents.of_tool(Tool::Fio) {
        let lists = ["jobs", "client_stats"].map(|key| document.get(key).and_then(Value::as_array));
        for job in lists.into_iter().flatten().flatten() {
            of_job(job, *line, &mut sections, &mut rough)?;
        }
    }
    let first = documents.of_tool(Tool::Fio).next();
    if let Some((line, _)) = first.filter(|_| sections.is_empty()) {
        return Err(HistError {
            hint: "run fio with --output-format=json+".to_owned(),
            ..refused(*line, "fio's document has no bins and no percentiles")
        });
    }
    Ok((sections, rough.into_iter().collect()))
}

/// What fio calls its latencies: version 3 has nanoseconds, version 2 microseconds.
const LATENCIES: [(&str, &str, &str); 6] = [
    ("clat_ns", "clat", "ns"),
    ("lat_ns", "lat", "ns"),
    ("slat_ns", "slat", "ns"),
    ("clat", "clat", "us"),
    ("lat", "lat", "us"),
    ("slat", "slat", "us"),
];

/// The sections of a job; `rough` becomes a note when counts had to be made up.
fn of_job(
    job: &Value,
    line: usize,
    sections: &mut Vec<Section>,
    rough: &mut Option<String>,
) -> Result<(), HistError> {
    let job_name = job.get("jobname").and_then(Value::as_str).unwrap_or("job");
    for direction in ["read", "write", "trim", "sync"] {
        for (key, latency, unit) in LATENCIES {
            let name = format!("{job_name}.{direction}.{latency}");
            let Some(of_direction) = job.get(direction) else {
                continue;
            };
            let Some(told) = of_direction.get(key) else {
                continue;
            };
            let total = || of_direction.get("total_ios").and_then(Value::as_u64);
            let n = told.get("N").and_then(Value::as_u64).or_else(total);
            let Some(histogram) = of_latency(told, n, &name, line)? else {
                continue;
            };
            if n.is_none() {
                rough.get_or_insert_with(|| {
                    format!("{name}: fio does not tell how many there were: its shares are told as {UNKNOWN} events")
                });
            }
            sections.push(Section {
                name,
                unit: Unit::new(unit),
                histogram,
                span: None,
            });
        }
    }
    Ok(())
}

/// Events where fio tells shares only, so that shares keep six digits.
const UNKNOWN: u64 = 1_000_000;

/// Up to here floats tell a number from the next.
const LARGEST: f64 = 9_007_199_254_740_992.0;

/// The distribution of one latency; nothing where it has neither events nor a distribution.
fn of_latency(
    told: &Value,
    n: Option<u64>,
    name: &str,
    line: usize,
) -> Result<Option<Histogram>, HistError> {
    let figure = |key: &str| told.get(key).and_then(Value::as_f64);
    let (Some(min), Some(max)) = (figure("min"), figure("max")) else {
        return Ok(None);
    };
    let mut histogram = if let Some(bins) = told.get("bins").and_then(Value::as_object) {
        let histogram = of_counts(bins, line, |value| {
            let (low, width) = fio::bucket_of(value);
            Some((low, low.checked_add(width)?))
        })?;
        let counted = events(&histogram);
        match told.get("N").and_then(Value::as_u64) {
            Some(n) if n != counted => {
                let reason = format!("{name}: N is {n}, its bins have {counted}");
                return Err(refused(line, reason));
            }
            _ if counted == 0 => return Ok(None),
            _ => histogram,
        }
    } else {
        let percentiles = told.get("percentile").and_then(Value::as_object);
        let points = percentiles.map(points).unwrap_or_default();
        let is_empty = n == Some(0) || (n.is_none() && max <= 0.0);
        if points.is_empty() || is_empty || min > max {
            return Ok(None);
        }
        if max >= LARGEST {
            return Err(refused(line, format!("{name}: {max} is no time")));
        }
        between(&points, n.unwrap_or(UNKNOWN), min, max)
    };
    histogram.min = Some(min);
    histogram.max = Some(max);
    // As exact as the mean is printed.
    histogram.sum = figure("mean").map(|mean| mean * float(n.unwrap_or(UNKNOWN)));
    Ok(Some(histogram))
}

/// Shares and values in ascending order. fio 2 fills unused places of its list with zeros.
fn points(percentiles: &Map<String, Value>) -> Vec<(f64, f64)> {
    let point = |(percent, value): (&String, &Value)| {
        let percent = percent.parse::<f64>().ok()?;
        let told = percent > 0.0 && percent <= 100.0;
        told.then_some((percent / 100.0, value.as_f64()?))
    };
    let mut points: Vec<(f64, f64)> = percentiles.iter().filter_map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    points
}

/// Buckets from one percentile to the next, from the smallest value to the largest. Counts are
/// differences of rounded counts up to each percentile, so that they sum to `n`.
fn between(points: &[(f64, f64)], n: u64, min: f64, max: f64) -> Histogram {
    let mut buckets: Vec<Bucket> = Vec::new();
    let (mut low, mut seen) = (min, 0_u64);
    for (share, value) in points.iter().copied().chain([(1.0, max)]) {
        // Events up to here.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count that floats hold"
        )]
        let upto = match share < 1.0 {
            true => ((share * float(n)).round() as u64).min(n),
            false => n,
        };
        let count = upto.saturating_sub(seen);
        seen = seen.max(upto);
        // The value belongs to its percentile: the bucket ends behind it. fio tells middles of its
        // own buckets, which may lie outside of the extremes.
        let high = value.clamp(min, max) + 1.0;
        match buckets.last_mut() {
            Some(last) if high <= low => last.count = last.count.saturating_add(count),
            _ => {
                buckets.push(Bucket { low, high, count });
                low = high;
            }
        }
    }
    buckets.retain(|bucket| bucket.count > 0 && bucket.low < bucket.high);
    Histogram {
        buckets,
        ..Histogram::default()
    }
}

/// Counts by value, in the order of the values; values of one bucket are put together.
fn of_counts(
    counts: &Map<String, Value>,
    line: usize,
    ends: impl Fn(u64) -> Option<(u64, u64)>,
) -> Result<Histogram, HistError> {
    let mut rows: Vec<(u64, u64, u64)> = Vec::new();
    for (value, count) in counts {
        let row = value.parse().ok().and_then(&ends).zip(count.as_u64());
        let ((low, high), count) =
            row.ok_or_else(|| refused(line, format!("no count: `{value}`: {}", short(count))))?;
        rows.push((low, high, count));
    }
    rows.sort_unstable();
    let mut histogram = Histogram::default();
    for (low, high, count) in rows {
        match histogram.buckets.last_mut() {
            Some(last) if last.low.total_cmp(&float(low)).is_eq() => {
                last.count = add(last.count, count, &nowhere(line))?;
            }
            _ => put(&mut histogram, bucket(low, high, count), line)?,
        }
    }
    Ok(histogram)
}

/// The line that an error of a document names.
fn nowhere(number: usize) -> Line<'static> {
    Line { number, text: "" }
}

fn put(histogram: &mut Histogram, bucket: Bucket, line: usize) -> Result<(), HistError> {
    super::parts::push(histogram, bucket, &nowhere(line))
        .map_err(|error| refused(line, error.reason))
}

/// A value as it may stand in a message.
fn short(value: &Value) -> String {
    const SHOWN: usize = 80;
    value.to_string().chars().take(SHOWN).collect()
}
