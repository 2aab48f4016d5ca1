//! bpftrace's maps: `@name[key]:` and half-open ranges, K and M for 1024 and its square.

use super::json::{Documents, of_bpftrace};
use super::parts::{add, is_rest_of_a_bar, mark_end, number, push, unit_in};
use super::text::Line;
use super::{Found, HistError, Section};
use kdyno_model::{Bucket, Histogram};
use regex::Regex;
use std::collections::HashSet;
use std::sync::LazyLock;

static MAP: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*@(?<name>\w*)(?:\[(?<key>.*)\])?:\s*$").ok());
static ROW: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let end = r"-?\d+[KMGTPE]?";
    let label = format!(
        r"\[(?<one>{end})\]|\(\.\.\., (?<below>{end})[)\]]|\[(?<low>{end}), (?<high>{end}|\.\.\.)\)"
    );
    Regex::new(&format!(r"^\s*(?:{label})\s+(?<count>\d+)\s*(?<bar>\||$)")).ok()
});

/// Whether a line is a row, with its bar.
pub(super) fn claims(line: &str) -> bool {
    let found = ROW.as_ref().and_then(|row| row.captures(line));
    found.is_some_and(|found| found.name("bar").is_some_and(|bar| !bar.is_empty()))
}

/// What stands below a map's name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Prose.
    Outside,
    /// Behind `@name:`, before its first row.
    Named,
    /// Behind a row.
    Rows,
}

/// A map while it is read.
struct Table {
    section: Section,
    /// Where the next row must begin: rows are printed from the first to the last that is not empty,
    /// without a gap. `None` behind an open end.
    next: Option<f64>,
}

/// All maps that are histograms.
pub(super) fn read(documents: &Documents, lines: &[Line<'_>]) -> Found {
    let mut found = of_bpftrace(documents)?;
    found.extend(maps(lines)?);
    found.sort_by_key(|(line, _)| *line);
    let sections: Vec<Section> = found.into_iter().map(|(_, section)| section).collect();
    let notes = printed_again(&sections).into_iter().collect();
    Ok((sections, notes))
}

/// A map that is printed several times goes on counting unless the script clears it.
fn printed_again(sections: &[Section]) -> Option<String> {
    let mut seen = HashSet::new();
    let again = sections
        .iter()
        .find(|section| !seen.insert(section.name.as_str()))?;
    Some(format!(
        "map @{} was printed several times: each time holds all before it, unless the script clears it",
        again.name
    ))
}

fn maps(lines: &[Line<'_>]) -> Result<Vec<(usize, Section)>, HistError> {
    let (Some(map), Some(row)) = (&*MAP, &*ROW) else {
        return Ok(Vec::new());
    };
    let mut tables: Vec<(usize, Table)> = Vec::new();
    let (mut name, mut place) = (String::new(), Place::Outside);
    for line in lines {
        if let Some(found) = map.captures(line.text) {
            name = map_name(&found);
            place = Place::Named;
        } else if let Some(found) = row.captures(line.text) {
            let has_bar = found.name("bar").is_some_and(|bar| !bar.is_empty());
            if place == Place::Outside && !has_bar {
                continue;
            }
            // Mails may have blank lines between rows: only a name begins another map.
            if place == Place::Named || tables.is_empty() {
                tables.push((line.number, Table::new(std::mem::take(&mut name))));
            }
            place = Place::Rows;
            if let Some((_, table)) = tables.last_mut() {
                table.take_row(&found, line)?;
            }
        } else if place != Place::Outside && looks_like_a_row(line.text) {
            return Err(HistError::row(line, "no row of a bpftrace map"));
        } else if !is_rest_of_a_bar(line.text, &['@']) {
            place = Place::Outside;
        }
    }
    let found = tables.into_iter();
    Ok(found.map(|(line, table)| (line, table.done())).collect())
}

fn looks_like_a_row(text: &str) -> bool {
    let text = text.trim();
    // What people put in the place of maps that they leave out.
    if ["[...]", "[snip]"].contains(&text) {
        return false;
    }
    let is_bar = text.ends_with('|') && text.contains('@');
    text.starts_with(['[', '(']) || (is_bar && text.chars().any(|c| c.is_ascii_digit()))
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

impl Table {
    fn new(name: String) -> Self {
        Self {
            section: Section {
                unit: unit_in(name.split('[').next().unwrap_or("")),
                name,
                histogram: Histogram::default(),
                span: None,
            },
            next: None,
        }
    }

    fn take_row(&mut self, found: &regex::Captures<'_>, line: &Line<'_>) -> Result<(), HistError> {
        let of = |name: &str| found.name(name).map(|text| text.as_str());
        let beyond = || HistError::row(line, "a number is beyond what can be counted");
        let count = of("count").and_then(number).ok_or_else(beyond)?;
        let end = |text: &str| value(text).ok_or_else(beyond);
        let histogram = &mut self.section.histogram;
        if let Some(below) = of("below") {
            if !histogram.buckets.is_empty() || histogram.underflow > 0 {
                return Err(HistError::row(line, "it does not follow the row above"));
            }
            histogram.underflow = add(histogram.underflow, count, line)?;
            self.next = Some(end(below)?);
            return Ok(());
        }
        let low = end(of("one").or(of("low")).unwrap_or(""))?;
        let follows = self.next.map(|next| next.total_cmp(&low).is_eq());
        if follows == Some(false) || (follows.is_none() && histogram.overflow > 0) {
            return Err(HistError::row(line, "it does not follow the row above"));
        }
        if of("high") == Some("...") {
            histogram.overflow = add(histogram.overflow, count, line)?;
            mark_end(histogram, low);
            self.next = None;
            return Ok(());
        }
        let high = match of("high") {
            Some(high) => end(high)?,
            None => low + 1.0,
        };
        self.next = Some(high);
        push(histogram, Bucket { low, high, count }, line)
    }

    /// With an empty bucket where all events lie below the first one, so that its limit is known.
    fn done(mut self) -> Section {
        if let Some(low) = self
            .next
            .filter(|_| self.section.histogram.buckets.is_empty())
        {
            let high = low + 1.0;
            let count = 0;
            let empty = Bucket { low, high, count };
            self.section.histogram.buckets.push(empty);
        }
        self.section
    }
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
    let value = digits.parse::<f64>().ok()? * factor;
    value.is_finite().then_some(value)
}
