//! `hist` files of tracefs: `{ lat: ~ 2^6  } hitcount: 29`.

use super::parts::{bucket, check_total, number, unit_in};
use super::text::Line;
use super::{Found, HistError, Section};
use kdyno_model::{Bucket, Histogram};
use regex::Regex;
use std::sync::LazyLock;

static ROW: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*\{\s*(?<keys>.*?)\s*\}\s*hitcount:\s*(?<count>\d+)").ok());
static KEYS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"keys=(?<keys>[^: ]+)").ok());
static TOTAL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*(?<what>Hits|Dropped):\s*(?<value>\d+)\s*$").ok());

/// Whether a line is a row.
pub(super) fn claims(line: &str) -> bool {
    ROW.as_ref().is_some_and(|row| row.is_match(line))
}

/// One table of a file.
#[derive(Default)]
struct Table {
    /// The keys as its trigger has them; empty when there is no such line.
    keys: String,
    /// Rows by what their other keys are, in order of appearance.
    sections: Vec<(String, Vec<(Bucket, usize)>)>,
    /// The field that makes the buckets.
    field: Option<String>,
    /// The sum of all rows.
    hits: u64,
}

/// A section per table and per combination of its other keys.
pub(super) fn read(lines: &[Line<'_>]) -> Found {
    let (Some(row), Some(total)) = (&*ROW, &*TOTAL) else {
        return Ok(Default::default());
    };
    let mut tables: Vec<Table> = Vec::new();
    let mut notes = Vec::new();
    for line in lines {
        if line.text.contains("# trigger info:") {
            let keys = KEYS.as_ref().and_then(|keys| keys.captures(line.text));
            let keys = keys.and_then(|found| Some(found.name("keys")?.as_str().to_owned()));
            tables.push(Table {
                keys: keys.unwrap_or_default(),
                ..Table::default()
            });
        } else if let Some(found) = row.captures(line.text) {
            if tables.is_empty() {
                tables.push(Table::default());
            }
            if let Some(table) = tables.last_mut() {
                table.take_row(&found, line)?;
            }
        } else if line.text.contains("hitcount:") {
            return Err(HistError::row(line, "no row of a hist trigger"));
        } else if let (Some(found), Some(table)) = (total.captures(line.text), tables.last_mut()) {
            let of = |name: &str| found.name(name).map_or("", |text| text.as_str());
            match (of("what"), number(of("value"))) {
                ("Hits", Some(hits)) => table.check_hits(hits, line)?,
                ("Dropped", Some(dropped)) if dropped > 0 => notes.push(format!(
                    "{dropped} events found no place in the kernel's table"
                )),
                _ => {}
            }
        }
    }
    tables.retain(|table| !table.sections.is_empty());
    let several = tables.len() > 1;
    let mut sections = Vec::new();
    for table in tables {
        table.into_sections(several, lines, &mut sections)?;
    }
    Ok((sections, notes))
}

impl Table {
    fn take_row(&mut self, found: &regex::Captures<'_>, line: &Line<'_>) -> Result<(), HistError> {
        let of = |name: &str| found.name(name).map_or("", |text| text.as_str());
        let beyond = || HistError::row(line, "a number is beyond what can be counted");
        let count = number(of("count")).ok_or_else(beyond)?;
        let fields: Vec<(&str, &str)> = of("keys")
            .split(", ")
            .filter_map(|field| field.split_once(':'))
            .map(|(name, value)| (name.trim(), value.trim()))
            .collect();
        let field = match &self.field {
            Some(field) => field.clone(),
            None => counted_field(&fields)
                .ok_or_else(|| HistError::row(line, "none of its keys is a number"))?,
        };
        let value = fields.iter().find(|(name, _)| *name == field);
        let ends = value.and_then(|(_, value)| ends_of(value));
        let (low, high) = ends.ok_or_else(|| {
            HistError::row(line, format!("key `{field}` is no number and no range"))
        })?;
        let others: Vec<String> = fields
            .iter()
            .filter(|(name, _)| *name != field)
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        let name = others.join(", ");
        self.field = Some(field);
        self.hits = super::parts::add(self.hits, count, line)?;
        let row = (bucket(low, high, count), line.number);
        match self.sections.iter_mut().find(|(known, _)| *known == name) {
            Some((_, rows)) => rows.push(row),
            None => self.sections.push((name, vec![row])),
        }
        Ok(())
    }

    fn check_hits(&self, hits: u64, line: &Line<'_>) -> Result<(), HistError> {
        let all = Histogram {
            overflow: self.hits,
            ..Histogram::default()
        };
        check_total(&all, hits, line)
    }

    /// Rows are in the order of their counts: they are put into that of their values.
    fn into_sections(
        self,
        several: bool,
        lines: &[Line<'_>],
        out: &mut Vec<Section>,
    ) -> Result<(), HistError> {
        let unit = unit_in(self.field.as_deref().unwrap_or(""));
        for (name, mut rows) in self.sections {
            rows.sort_by(|a, b| a.0.low.total_cmp(&b.0.low));
            let mut histogram = Histogram::default();
            for (bucket, number) in rows {
                let line = lines.iter().find(|line| line.number == number);
                let text = line.map_or("", |line| line.text);
                super::parts::push(&mut histogram, bucket, &Line { number, text })?;
            }
            out.push(Section {
                name: match (several, name.is_empty()) {
                    (false, _) => name,
                    (true, true) => self.keys.clone(),
                    (true, false) => format!("{} {name}", self.keys),
                },
                unit: unit.clone(),
                histogram,
                span: None,
            });
        }
        Ok(())
    }
}

/// The key that was counted by range, or by value: one that the kernel has grouped, or the last
/// that is a number.
fn counted_field(fields: &[(&str, &str)]) -> Option<String> {
    let grouped = fields.iter().find(|(_, value)| value.starts_with('~'));
    let plain = || {
        fields
            .iter()
            .rev()
            .find(|(_, value)| number(value).is_some())
    };
    grouped.or_else(plain).map(|(name, _)| (*name).to_owned())
}

/// `~ 2^6` holds what rounds up to it, 33 to 64; `~ 10-19` and `5` are what they say.
fn ends_of(value: &str) -> Option<(u64, u64)> {
    let Some(range) = value.strip_prefix('~') else {
        let value = number(value)?;
        return Some((value, value.checked_add(1)?));
    };
    let range = range.trim();
    if let Some(power) = range.strip_prefix("2^") {
        return match number(power)? {
            0 => Some((0, 2)),
            power @ 1..=62 => Some(((1 << (power - 1)) + 1, (1 << power) + 1)),
            _ => None,
        };
    }
    let (low, high) = range.split_once('-')?;
    Some((number(low)?, number(high)?.checked_add(1)?))
}
