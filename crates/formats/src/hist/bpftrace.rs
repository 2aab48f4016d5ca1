//! bpftrace's maps: `@name[key]:` and half-open ranges, K and M for 1024 and its square.

use super::parts::{add, number, push, unit_in};
use super::text::Line;
use super::{Found, HistError, Section, json};
use kdyno_model::{Bucket, Histogram};
use regex::Regex;
use std::sync::LazyLock;

static MAP: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*@(?<name>\w*)(?:\[(?<key>.*)\])?:\s*$").ok());
static ROW: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let end = r"-?\d+[KMGTPE]?";
    let label = format!(
        r"\[(?<one>{end})\]|\(\.\.\., (?<below>{end})[)\]]|\[(?<low>{end}), (?<high>{end}|\.\.\.)\)"
    );
    Regex::new(&format!(r"^\s*(?:{label})\s+(?<count>\d+)\s*\|")).ok()
});

/// Whether a line is a row.
pub(super) fn claims(line: &str) -> bool {
    ROW.as_ref().is_some_and(|row| row.is_match(line))
}

/// All maps that are histograms.
pub(super) fn read(plain: &str, lines: &[Line<'_>]) -> Found {
    if let Some(sections) = json::of_bpftrace(plain)? {
        return Ok((sections, Vec::new()));
    }
    let (Some(map), Some(row)) = (&*MAP, &*ROW) else {
        return Ok(Default::default());
    };
    let mut sections: Vec<Section> = Vec::new();
    // The name of the next table, and whether one has begun.
    let (mut name, mut in_table) = (String::new(), false);
    for line in lines {
        if let Some(found) = map.captures(line.text) {
            name = map_name(&found);
            in_table = false;
        } else if let Some(found) = row.captures(line.text) {
            if !in_table {
                in_table = true;
                sections.push(Section {
                    unit: unit_in(name.split('[').next().unwrap_or("")),
                    name: std::mem::take(&mut name),
                    histogram: Histogram::default(),
                    span: None,
                });
            }
            if let Some(section) = sections.last_mut() {
                take_row(&mut section.histogram, &found, line)?;
            }
        } else if in_table && line.text.trim_start().starts_with(['[', '(']) {
            return Err(HistError::row(line, "no row of a bpftrace map"));
        } else if !is_rest_of_a_bar(line.text) {
            in_table = false;
        }
    }
    Ok((sections, Vec::new()))
}

/// `read[123]`, without the at sign.
fn map_name(found: &regex::Captures<'_>) -> String {
    let of = |name: &str| found.name(name).map(|text| text.as_str());
    match (of("name").unwrap_or(""), of("key")) {
        ("", Some(key)) => key.to_owned(),
        (name, Some(key)) => format!("{name}[{key}]"),
        (name, None) => name.to_owned(),
    }
}

/// The end of a bar that was broken.
fn is_rest_of_a_bar(text: &str) -> bool {
    !text.is_empty() && text.trim_matches(['@', '|', ' ']).is_empty()
}

fn take_row(
    histogram: &mut Histogram,
    found: &regex::Captures<'_>,
    line: &Line<'_>,
) -> Result<(), HistError> {
    let of = |name: &str| found.name(name).map(|text| text.as_str());
    let beyond = || HistError::row(line, "a number is beyond what can be counted");
    let count = of("count").and_then(number).ok_or_else(beyond)?;
    let end = |text: &str| value(text).ok_or_else(beyond);
    if of("below").is_some() {
        histogram.underflow = add(histogram.underflow, count, line)?;
        return Ok(());
    }
    if let Some(one) = of("one") {
        let low = end(one)?;
        let high = low + 1.0;
        return push(histogram, Bucket { low, high, count }, line);
    }
    let low = end(of("low").unwrap_or(""))?;
    if of("high") == Some("...") {
        histogram.overflow = add(histogram.overflow, count, line)?;
        // Where the buckets end must be known of a table that has nothing but this row.
        if histogram.buckets.is_empty() {
            let high = low;
            let from = if low > 0.0 { 0.0 } else { low - 1.0 };
            let count = 0;
            push(
                histogram,
                Bucket {
                    low: from,
                    high,
                    count,
                },
                line,
            )?;
        }
        return Ok(());
    }
    let high = end(of("high").unwrap_or(""))?;
    push(histogram, Bucket { low, high, count }, line)
}

/// A number with a suffix of powers of 1024.
fn value(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_uppercase());
    let suffix = text.get(digits.len()..)?;
    let power = match suffix {
        "" => 0,
        one => "KMGTPE".find(one)? + 1,
    };
    let factor = 1024_f64.powi(i32::try_from(power).ok()?);
    Some(digits.parse::<f64>().ok()? * factor)
}
