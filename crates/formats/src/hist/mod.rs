//! Histograms that other tools print: bytes in, buckets out.
//!
//! Where a tool has printed a table, every row of it must be readable: a row that is not is an
//! error with its line, since a histogram without one of its rows is wrong. Prose around tables is
//! passed over, and mails may quote them. docs/histograms.md has each format and its traps.

mod bcc;
mod bpftrace;
mod cyclictest;
mod fio;
mod iolatency;
mod json;
mod parts;
mod perf_ftrace;
mod rtla;
mod table;
mod text;
mod trigger;

use crate::hdr;
use json::Documents;
use kdyno_model::{Histogram, Unit};
use std::fmt;
use std::str::FromStr;
use text::{Line, Plain};

/// Which tool printed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tool {
    /// bcc and libbpf-tools, `usecs : count distribution`.
    Bcc,
    /// bpftrace's maps, as text or JSON.
    Bpftrace,
    /// `perf ftrace latency`.
    PerfFtrace,
    /// `cyclictest -h`, or its JSON.
    Cyclictest,
    /// `rtla timerlat hist` and `rtla osnoise hist`.
    Rtla,
    /// A `hist` file of tracefs.
    HistTrigger,
    /// perf-tools' iolatency.
    Iolatency,
    /// fio's JSON and its histogram logs.
    Fio,
    /// HDR histograms (V2) and interval logs.
    Hdr,
    /// A row per bucket, a column per configuration.
    BucketTable,
}

impl Tool {
    /// All of them with their names on the command line.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::Bcc, "bcc"),
        (Self::Bpftrace, "bpftrace"),
        (Self::PerfFtrace, "perf-ftrace"),
        (Self::Cyclictest, "cyclictest"),
        (Self::Rtla, "rtla"),
        (Self::HistTrigger, "hist-trigger"),
        (Self::Iolatency, "iolatency"),
        (Self::Fio, "fio"),
        (Self::Hdr, "hdr"),
        (Self::BucketTable, "table"),
    ];

    fn names() -> String {
        Self::ALL.map(|(_, name)| name).join(", ")
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::ALL.iter().find(|(tool, _)| tool == self);
        f.write_str(named.map_or("", |(_, name)| name))
    }
}

/// A word that names no tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of {names}", names = Tool::names())]
pub struct UnknownTool(String);

impl FromStr for Tool {
    type Err = UnknownTool;

    fn from_str(text: &str) -> Result<Self, UnknownTool> {
        let named = Self::ALL.iter().find(|(_, name)| *name == text);
        named
            .map(|(tool, _)| *tool)
            .ok_or_else(|| UnknownTool(text.to_owned()))
    }
}

/// A stretch of time, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Its start, from whatever the source counts from.
    pub start_s: f64,
    /// How long it is.
    pub length_s: f64,
}

/// One histogram of an input.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Key, map, thread or column; empty when it has none.
    pub name: String,
    /// The unit of the values; empty when the text tells none.
    pub unit: Unit,
    /// The counts.
    pub histogram: Histogram,
    /// When it was counted, where the source tells.
    pub span: Option<Span>,
}

/// Everything an input holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What printed it.
    pub tool: Tool,
    /// In the order in which they stand there; at least one.
    pub sections: Vec<Section>,
    /// What a reader must know of it, such as events that a tool has dropped.
    pub notes: Vec<String>,
}

/// Why an input cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}{reason}", place = line.map(|n| format!("line {n}: ")).unwrap_or_default())]
pub struct HistError {
    /// Which line, from 1.
    pub line: Option<usize>,
    /// What is wrong.
    pub reason: String,
    /// What to do.
    pub hint: String,
}

impl HistError {
    /// A row of a table that cannot be read.
    fn row(line: &Line<'_>, reason: impl Into<String>) -> Self {
        Self {
            line: Some(line.number),
            reason: reason.into(),
            hint: "mend or remove the row: what it counted cannot be guessed".to_owned(),
        }
    }

    fn whole(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            line: None,
            reason: reason.into(),
            hint: hint.into(),
        }
    }

    fn nothing() -> Self {
        let known = format!(
            "known are bcc, bpftrace, perf ftrace latency, cyclictest, rtla, hist triggers, iolatency, \
             fio, HDR and bucket tables; --from TOOL says which ({})",
            Tool::names()
        );
        Self::whole("there is no histogram in it", known)
    }
}

/// Whether a line is one of a tool's.
type Claims = fn(&str) -> bool;

/// Sections with notes.
type Found = Result<(Vec<Section>, Vec<String>), HistError>;

/// Reads all histograms of an input that one tool has printed; without a tool that of the first one.
///
/// # Errors
/// [`HistError`] at the first row that cannot be read, when a total that is told is not that of the
/// rows, or when there is no histogram.
pub fn read(bytes: &[u8], tool: Option<Tool>) -> Result<Report, HistError> {
    if tool.or_else(|| recognised_bytes(bytes)) == Some(Tool::Hdr) {
        return read_hdr(bytes);
    }
    let plain = Plain::of(bytes);
    let lines = plain.lines();
    let documents = Documents::of(&plain);
    let mut seen = Vec::new();
    if tool.is_none() {
        seen = recognised(&documents, &lines);
    }
    let nothing = || documents.broken().unwrap_or_else(HistError::nothing);
    let first = seen.first().map(|(_, tool)| *tool);
    let tool = tool.or(first).ok_or_else(nothing)?;
    let (sections, mut notes) = match tool {
        Tool::Bcc => bcc::read(&documents, &lines),
        Tool::Bpftrace => bpftrace::read(&documents, &lines),
        Tool::PerfFtrace => perf_ftrace::read(&lines),
        Tool::Cyclictest => cyclictest::read(&documents, &lines),
        Tool::Rtla => rtla::read(&lines),
        Tool::HistTrigger => trigger::read(&lines),
        Tool::Iolatency => iolatency::read(&lines),
        Tool::Fio => fio::read(&documents, &lines),
        Tool::BucketTable => table::read(&lines),
        Tool::Hdr => return read_hdr(bytes),
    }?;
    if sections.is_empty() {
        return Err(nothing());
    }
    let is_document = documents.line_of(tool).is_some();
    if let Some(error) = documents.broken().filter(|_| is_document) {
        return Err(error);
    }
    let too_many = |section: &&Section| parts::counted(&section.histogram).is_none();
    if let Some(section) = sections.iter().find(too_many) {
        let reason = format!("{} has more events than can be counted", section.name);
        return Err(HistError::whole(reason, "check its counts"));
    }
    notes.extend(seen.iter().skip(1).map(|(line, other)| {
        format!("line {line} looks like {other}, which is not read: --from {other} reads it")
    }));
    Ok(Report {
        tool,
        sections,
        notes,
    })
}

/// HDR files are recognised by their first bytes.
fn recognised_bytes(bytes: &[u8]) -> Option<Tool> {
    let encoded = hdr::read(bytes).is_ok();
    let head = bytes.get(..bytes.len().min(4096)).unwrap_or_default();
    let head = String::from_utf8_lossy(head);
    let is_log = head.contains("\"StartTimestamp\"") || head.contains("HISTFAAA");
    (encoded || is_log).then_some(Tool::Hdr)
}

/// The tools of which the input has something, and the first line of each, in their order.
fn recognised(documents: &Documents, lines: &[Line<'_>]) -> Vec<(usize, Tool)> {
    let claims: [(Tool, Claims); 9] = [
        (Tool::Bcc, bcc::claims),
        (Tool::Bpftrace, bpftrace::claims),
        (Tool::PerfFtrace, perf_ftrace::claims),
        (Tool::Cyclictest, cyclictest::claims),
        (Tool::Rtla, rtla::claims),
        (Tool::HistTrigger, trigger::claims),
        (Tool::Iolatency, iolatency::claims),
        (Tool::Fio, fio::claims),
        (Tool::BucketTable, table::claims),
    ];
    let first = |(tool, claims): (Tool, Claims)| {
        let line = lines.iter().find(|line| claims(line.text));
        let line = line.map(|line| line.number);
        let place = line.into_iter().chain(documents.line_of(tool)).min()?;
        Some((place, tool))
    };
    let mut seen: Vec<(usize, Tool)> = claims.into_iter().filter_map(first).collect();
    seen.sort_by_key(|(line, _)| *line);
    seen
}

/// An HDR histogram by itself, or the intervals of a log. Values are taken for nanoseconds, as
/// recorders of latencies have them; the format does not tell.
fn read_hdr(bytes: &[u8]) -> Result<Report, HistError> {
    let refused = |error: hdr::HdrError| HistError {
        line: match &error {
            hdr::HdrError::Line { line, .. } => Some(*line),
            _ => None,
        },
        reason: match &error {
            hdr::HdrError::Line { reason, .. } => reason.clone(),
            other => other.to_string(),
        },
        hint: error.hint().to_owned(),
    };
    let section = |name: String, histogram, span| Section {
        name,
        unit: Unit::new("ns"),
        histogram,
        span,
    };
    let sections = match hdr::read(bytes) {
        Ok(histogram) => vec![section(String::new(), histogram, None)],
        Err(_) => {
            let intervals = hdr::read_log(bytes).map_err(refused)?;
            let of = |interval: hdr::Interval| {
                let span = Span {
                    start_s: interval.start.as_secs_f64(),
                    length_s: interval.length.as_secs_f64(),
                };
                let span = (span.length_s > 0.0).then_some(span);
                section(interval.tag.unwrap_or_default(), interval.histogram, span)
            };
            intervals.into_iter().map(of).collect()
        }
    };
    match sections.is_empty() {
        true => Err(HistError::nothing()),
        false => Ok(Report {
            tool: Tool::Hdr,
            sections,
            notes: Vec::new(),
        }),
    }
}
