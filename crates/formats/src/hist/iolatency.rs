//! iolatency of perf-tools: `>=(ms) .. <(ms) : I/O |Distribution|`.

use super::parts::{bucket, is_rest_of_a_bar, number, push, unit_of};
use super::text::Line;
use super::{Found, HistError, Section};
use kdyno_model::Histogram;
use regex::Regex;
use std::sync::LazyLock;

static HEAD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*>=\((?<unit>\w+)\) \.\. <\(\w+\)\s*:").ok());
static ROW: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\s*(?<low>\d+)\s*->\s*(?<high>\d+)\s*:\s*(?<count>\d+)\s*(?:\||$)").ok()
});

/// Whether a line heads a table.
pub(super) fn claims(line: &str) -> bool {
    HEAD.as_ref().is_some_and(|head| head.is_match(line))
}

/// All tables.
pub(super) fn read(lines: &[Line<'_>]) -> Found {
    let (Some(head), Some(row)) = (&*HEAD, &*ROW) else {
        return Ok(Default::default());
    };
    let mut sections: Vec<Section> = Vec::new();
    let mut in_table = false;
    for line in lines {
        if let Some(found) = head.captures(line.text) {
            let unit = found.name("unit").map_or("", |unit| unit.as_str());
            sections.push(Section {
                name: String::new(),
                unit: unit_of(unit),
                histogram: Histogram::default(),
                span: None,
            });
            in_table = true;
        } else if in_table && let Some(section) = sections.last_mut() {
            if let Some(found) = row.captures(line.text) {
                let of = |name: &str| found.name(name).and_then(|text| number(text.as_str()));
                let (Some(low), Some(high), Some(count)) = (of("low"), of("high"), of("count"))
                else {
                    return Err(HistError::row(
                        line,
                        "a number is beyond what can be counted",
                    ));
                };
                push(&mut section.histogram, bucket(low, high, count), line)?;
            } else if line.text.contains("->") || line.text.contains('|') && line.text.contains(':')
            {
                return Err(HistError::row(line, "no row of iolatency"));
            } else if !is_rest_of_a_bar(line.text, &['#']) {
                in_table = false;
            }
        }
    }
    Ok((sections, Vec::new()))
}
