//! bcc's Python tools and libbpf-tools: `usecs : count distribution` and closed ranges.

use super::json::{Documents, of_bcc};
use super::parts::{bucket, events, is_rest_of_a_bar, number, push, unit_of};
use super::text::Line;
use super::{Found, HistError, Section, Span};
use kdyno_model::Histogram;
use regex::Regex;
use std::sync::LazyLock;

static HEAD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*(?<unit>\S.*?)?\s*:\s*count\s+distribution\s*$").ok());
static ROW: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\s*(?<low>\d+)(?:\s*->\s*(?<high>\d+))?\s*:\s*(?<count>\d+)\s*(?:\||$)").ok()
});
/// What funclatency and biolatency print below a table.
static TOTALS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\s*avg = \d+ (?<unit>\w+), total: (?<total>\d+) \w+, count: (?<count>\d+)").ok()
});
static STAMP: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*(?<h>\d\d):(?<m>\d\d):(?<s>\d\d)\s*$").ok());

/// What bars are made of.
const BAR: [char; 2] = ['*', '+'];

/// Whether a line heads a table.
pub(super) fn claims(line: &str) -> bool {
    HEAD.as_ref().is_some_and(|head| head.is_match(line))
}

/// A table, the line that heads it and the time of day above it.
struct Table {
    line: usize,
    stamp: Option<f64>,
    section: Section,
}

/// All tables and documents.
pub(super) fn read(documents: &Documents, lines: &[Line<'_>]) -> Found {
    let tables = tables(lines)?;
    let mut found = of_bcc(documents)?;
    found.extend(spanned(tables));
    found.sort_by_key(|(line, _)| *line);
    let sections = found.into_iter().map(|(_, section)| section).collect();
    Ok((sections, Vec::new()))
}

fn tables(lines: &[Line<'_>]) -> Result<Vec<Table>, HistError> {
    let (Some(head), Some(row), Some(totals)) = (&*HEAD, &*ROW, &*TOTALS) else {
        return Ok(Vec::new());
    };
    let mut tables: Vec<Table> = Vec::new();
    let mut in_table = false;
    let (mut before, mut stamp) = ("", None);
    for line in lines {
        if let Some(found) = head.captures(line.text) {
            let unit = found.name("unit").map_or("", |unit| unit.as_str());
            tables.push(Table {
                line: line.number,
                stamp,
                section: Section {
                    name: key_of(before),
                    unit: unit_of(unit),
                    histogram: Histogram::default(),
                    span: None,
                },
            });
            in_table = true;
        } else if let Some(table) = tables.last_mut() {
            let section = &mut table.section;
            match (row.captures(line.text), totals.captures(line.text)) {
                (Some(found), _) if in_table => take_row(&mut section.histogram, &found, line)?,
                (_, Some(found)) => take_totals(section, &found),
                _ if in_table && looks_like_a_row(line.text) => {
                    return Err(HistError::row(line, "no row of a bcc table"));
                }
                // A bar that mail has broken ends in a line of its own.
                _ if is_rest_of_a_bar(line.text, &BAR) => {}
                _ => in_table = false,
            }
        }
        if let Some(time) = time_of_day(line.text) {
            stamp = Some(time);
        } else if !line.text.trim().is_empty() {
            // Prose ends the run of a tool that prints stamps.
            let is_its = claims(line.text) || in_table || totals.is_match(line.text);
            stamp = stamp.filter(|_| is_its || !key_of(line.text).is_empty());
            // The totals above a table are not its key.
            before = if totals.is_match(line.text) {
                ""
            } else {
                line.text
            };
        }
    }
    Ok(tables)
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
        section.histogram.sum = number(of("total")).map(super::parts::float);
    }
}

/// The key of a table, from the line `disk = b'vda'` above it. Older tools wrote `Bucket disk`.
fn key_of(before: &str) -> String {
    let Some((key, value)) = before.trim().split_once(" = ") else {
        return String::new();
    };
    let key = key.strip_prefix("Bucket ").unwrap_or(key);
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

/// Seconds since midnight of a line that is nothing but `06:20:16`.
fn time_of_day(line: &str) -> Option<f64> {
    let found = STAMP.as_ref()?.captures(line)?;
    let of = |name: &str| found.name(name)?.as_str().parse::<u32>().ok();
    Some(f64::from(of("h")? * 3600 + of("m")? * 60 + of("s")?))
}

/// With the times between stamps, which are printed when an interval ends. The first interval has
/// the length of the second, since the tools wait as long each time; where a stamp is earlier than
/// the one before, another run of the tool begins.
fn spanned(tables: Vec<Table>) -> Vec<(usize, Section)> {
    let mut stamps: Vec<f64> = tables.iter().filter_map(|table| table.stamp).collect();
    stamps.dedup();
    let length = |at: usize| {
        let of = |from: Option<usize>, to: usize| Some(stamps.get(to)? - stamps.get(from?)?);
        let longer = |length: &f64| *length > 0.0;
        of(at.checked_sub(1), at)
            .filter(longer)
            .or_else(|| of(Some(at), at + 1).filter(longer))
    };
    let mut at = 0;
    let spans: Vec<Option<Span>> = tables
        .iter()
        .map(|table| {
            let end = table.stamp?;
            while stamps
                .get(at)
                .is_some_and(|stamp| stamp.total_cmp(&end).is_ne())
            {
                at += 1;
            }
            let length_s = length(at)?;
            Some(Span {
                start_s: end - length_s,
                length_s,
            })
        })
        .collect();
    let spanned = tables.into_iter().zip(spans);
    spanned
        .map(|(table, span)| {
            (
                table.line,
                Section {
                    span,
                    ..table.section
                },
            )
        })
        .collect()
}
