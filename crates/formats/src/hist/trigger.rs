//! `hist` files of tracefs: `{ lat: ~ 2^6  } hitcount: 29`.

use super::parts::{add, bucket, check_total, float, number, push, unit_in};
use super::text::Line;
use super::{Found, HistError, Section};
use kdyno_model::{Bucket, Histogram};
use regex::Regex;
use std::collections::HashMap;
use std::sync::LazyLock;

static ROW: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\s*\{\s*(?<keys>.*?)\s*\}\s*hitcount:\s*(?<count>\d+)(?<values>\s.*|)$").ok()
});
static VALUE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?<name>[\w.]+):\s*(?<value>\d+)(?:\s|$)").ok());
static KEYS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"keys=(?<keys>[^: ]+)").ok());
static TOTAL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*(?<what>Hits|Entries|Dropped):\s*(?<value>\d+)\s*$").ok());

/// Names of keys that say who, not how long.
const WHO: [&str; 4] = ["pid", "cpu", "prio", "tgid"];

/// Whether a line is a row.
pub(super) fn claims(line: &str) -> bool {
    ROW.as_ref().is_some_and(|row| row.is_match(line))
}

/// A row whose keys are read.
struct Row<'t> {
    bucket: Bucket,
    /// What the values of its events sum up to, where the trigger has them as a value too.
    sum: Option<u64>,
    line: Line<'t>,
}

/// One table of a file.
#[derive(Default)]
struct Table<'t> {
    /// The keys as its trigger has them; empty when there is no such line.
    keys: String,
    /// Whether it went on counting while it was printed.
    is_active: bool,
    /// Rows by what their other keys are, in order of appearance.
    sections: Vec<(String, Vec<Row<'t>>)>,
    places: HashMap<String, usize>,
    /// The field that makes the buckets.
    field: Option<String>,
    /// How many rows there are, and the sum of their counts.
    entries: u64,
    hits: u64,
}

/// A section per table and per combination of its other keys.
pub(super) fn read(lines: &[Line<'_>]) -> Found {
    let (Some(row), Some(total)) = (&*ROW, &*TOTAL) else {
        return Ok(Default::default());
    };
    let mut tables: Vec<Table<'_>> = Vec::new();
    let mut notes = Vec::new();
    for line in lines {
        if line.text.contains("# trigger info:") {
            tables.push(Table::headed(line.text));
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
                ("Hits", Some(hits)) => notes.extend(table.check_hits(hits, line)?),
                ("Entries", Some(entries)) => table.check_entries(entries, line)?,
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
        table.into_sections(several, &mut sections)?;
    }
    Ok((sections, notes))
}

impl<'t> Table<'t> {
    fn headed(text: &str) -> Self {
        let keys = KEYS.as_ref().and_then(|keys| keys.captures(text));
        let keys = keys.and_then(|found| Some(found.name("keys")?.as_str().to_owned()));
        Self {
            keys: keys.unwrap_or_default(),
            is_active: text.contains("[active]"),
            ..Self::default()
        }
    }

    fn take_row(&mut self, found: &regex::Captures<'_>, line: &Line<'t>) -> Result<(), HistError> {
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
        let others = fields.iter().filter(|(name, _)| *name != field);
        let others: Vec<String> = others
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        let row = Row {
            bucket: bucket(low, high, count),
            sum: sum_of(of("values"), &field),
            line: *line,
        };
        self.field = Some(field);
        self.entries = add(self.entries, 1, line)?;
        self.hits = add(self.hits, count, line)?;
        let (name, next) = (others.join(", "), self.sections.len());
        let place = *self.places.entry(name.clone()).or_insert(next);
        match self.sections.get_mut(place) {
            Some((_, rows)) => rows.push(row),
            None => self.sections.push((name, vec![row])),
        }
        Ok(())
    }

    /// Hits are read after the rows: of a trigger that goes on counting there may be more.
    fn check_hits(&self, hits: u64, line: &Line<'_>) -> Result<Option<String>, HistError> {
        if self.is_active && hits > self.hits {
            let late = hits - self.hits;
            return Ok(Some(format!(
                "{late} events came while the kernel printed its table, or their rows are missing"
            )));
        }
        let all = Histogram {
            overflow: self.hits,
            ..Histogram::default()
        };
        check_total(&all, hits, line).map(|()| None)
    }

    fn check_entries(&self, entries: u64, line: &Line<'_>) -> Result<(), HistError> {
        match entries == self.entries {
            true => Ok(()),
            false => Err(HistError {
                hint: "a row is missing or damaged".to_owned(),
                ..HistError::row(
                    line,
                    format!("it tells {entries} rows, there are {}", self.entries),
                )
            }),
        }
    }

    /// Rows are in the order of their counts: they are put into that of their values.
    fn into_sections(self, several: bool, out: &mut Vec<Section>) -> Result<(), HistError> {
        let unit = unit_in(self.field.as_deref().unwrap_or(""));
        for (name, mut rows) in self.sections {
            rows.sort_by(|a, b| a.bucket.low.total_cmp(&b.bucket.low));
            let mut histogram = Histogram::default();
            let mut sums = rows.iter().map(|row| row.sum);
            let sum = sums.try_fold(0_u64, |all, sum| all.checked_add(sum?));
            histogram.sum = sum.map(float);
            for row in rows {
                push(&mut histogram, row.bucket, &row.line)?;
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

/// The key that was counted by range, or by value: one that the kernel has grouped, else one that is
/// a time by its name, else the last that is a number and does not say who.
fn counted_field(fields: &[(&str, &str)]) -> Option<String> {
    let grouped = fields.iter().find(|(_, value)| value.starts_with('~'));
    let numbers = || {
        fields
            .iter()
            .rev()
            .filter(|(_, value)| number(value).is_some())
    };
    let is_time = |name: &str| name.contains("lat") || !unit_in(name).as_str().is_empty();
    let says_who = |name: &str| WHO.iter().any(|who| name.ends_with(who));
    let chosen = grouped
        .or_else(|| numbers().find(|(name, _)| is_time(name)))
        .or_else(|| numbers().find(|(name, _)| !says_who(name)))
        .or_else(|| numbers().next());
    chosen.map(|(name, _)| (*name).to_owned())
}

/// What a trigger with `vals=lat` sums up beside its counts.
fn sum_of(values: &str, field: &str) -> Option<u64> {
    let found = VALUE.as_ref()?.captures_iter(values);
    let mut found = found.filter(|found| found.name("name").is_some_and(|n| n.as_str() == field));
    number(found.next()?.name("value")?.as_str())
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
