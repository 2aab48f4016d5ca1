//! bcc's Python tools and libbpf-tools: `usecs : count distribution` and closed ranges.

use super::parts::{bucket, events, number, push, unit_of};
use super::text::Line;
use super::{Found, HistError, Section, json};
use kdyno_model::{Histogram, Unit};
use regex::Regex;
use std::sync::LazyLock;

static HEAD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*(?<unit>\S.*?)?\s*:\s*count\s+distribution\s*$").ok());
static ROW: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\s*(?<low>\d+)(?:\s*->\s*(?<high>\d+))?\s*:\s*(?<count>\d+)\s*\|").ok()
});
/// What funclatency prints below its table.
static TOTALS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^avg = \d+ (?<unit>\w+), total: (?<total>\d+) \w+, count: (?<count>\d+)").ok()
});

/// Whether a line heads a table.
pub(super) fn claims(line: &str) -> bool {
    HEAD.as_ref().is_some_and(|head| head.is_match(line))
}

/// All tables.
pub(super) fn read(plain: &str, lines: &[Line<'_>]) -> Found {
    if let Some(sections) = json::of_bcc(plain)? {
        return Ok((sections, Vec::new()));
    }
    let (Some(head), Some(row), Some(totals)) = (&*HEAD, &*ROW, &*TOTALS) else {
        return Ok(Default::default());
    };
    let mut sections: Vec<Section> = Vec::new();
    let mut in_table = false;
    let mut before = "";
    for line in lines {
        if let Some(found) = head.captures(line.text) {
            let unit = found.name("unit").map_or("", |unit| unit.as_str());
            sections.push(Section {
                name: key_of(before),
                unit: unit_of(unit),
                histogram: Histogram::default(),
                span: None,
            });
            in_table = true;
        } else if let Some(section) = sections.last_mut() {
            match (row.captures(line.text), totals.captures(line.text)) {
                (Some(found), _) if in_table => take_row(&mut section.histogram, &found, line)?,
                (_, Some(found)) => take_totals(section, &found),
                _ if in_table && looks_like_a_row(line.text) => {
                    return Err(HistError::row(line, "no row of a bcc table"));
                }
                // A bar that mail has broken ends in a line of its own.
                _ if line.text.trim_matches(['*', '|', ' ', '+']).is_empty()
                    && !line.text.is_empty() => {}
                _ => in_table = false,
            }
        }
        if !line.text.trim().is_empty() {
            before = line.text;
        }
    }
    Ok((sections, Vec::new()))
}

fn looks_like_a_row(text: &str) -> bool {
    text.contains("->") || (text.contains('|') && text.contains(':'))
}

fn take_row(
    histogram: &mut Histogram,
    found: &regex::Captures<'_>,
    line: &Line<'_>,
) -> Result<(), HistError> {
    let of = |name: &str| found.name(name).map(|text| number(text.as_str()));
    let beyond = || HistError::row(line, "a number is beyond what can be counted");
    let low = of("low").flatten().ok_or_else(beyond)?;
    let count = of("count").flatten().ok_or_else(beyond)?;
    // Ranges are closed; a single value is a bucket of one.
    let high = match of("high") {
        Some(high) => high.ok_or_else(beyond)?,
        None => low,
    };
    let end = high.checked_add(1).ok_or_else(beyond)?;
    push(histogram, bucket(low, end, count), line)
}

/// The exact sum, where the count beside it is that of the rows: the tool reads its maps one after
/// the other while events go on.
fn take_totals(section: &mut Section, found: &regex::Captures<'_>) {
    let of = |name: &str| found.name(name).map_or("", |text| text.as_str());
    let same_unit = unit_of(of("unit")) == section.unit;
    let same_count = number(of("count")) == Some(events(&section.histogram));
    if same_unit && same_count {
        section.histogram.sum = of("total").parse().ok();
    }
}

/// The key of a table, from the line `disk = b'vda'` above it.
fn key_of(before: &str) -> String {
    let Some((key, value)) = before.trim().split_once(" = ") else {
        return String::new();
    };
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let value = value
        .trim()
        .trim_start_matches("b'")
        .trim_matches(['\'', '"']);
    match is_key && !value.is_empty() {
        true => format!("{key} = {value}"),
        false => String::new(),
    }
}

/// The unit of a JSON document's `val_type`.
pub(super) fn unit(word: &str) -> Unit {
    unit_of(word)
}
