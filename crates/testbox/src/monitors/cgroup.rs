//! The trial's own cgroup, seen from outside: memory, CPU time, input and output, pressure.
//!
//! Names are those of version 2; of version 1 there is memory alone.

use super::scan::Scan;
use super::source::Source;
use super::table::{Line, Spec, Table};
use std::path::PathBuf;

/// A file of a cgroup and what it holds.
#[derive(Clone, Copy)]
enum Kind {
    /// One number, a state: the name and unit of its metric.
    State(&'static str, &'static str),
    /// Lines of a key and a number.
    MemoryStat,
    CpuStat,
    /// A device and `key=number` on each line, summed over devices.
    IoStat,
    Pressure(&'static str),
}

impl Kind {
    fn is_same_state(self, other: Self) -> bool {
        matches!((self, other), (Self::State(a, _), Self::State(b, _)) if a == b)
    }
}

const FILES: [(&str, Kind); 9] = [
    ("memory.current", Kind::State("memory.current", "B")),
    ("memory.usage_in_bytes", Kind::State("memory.current", "B")),
    (
        "memory.swap.current",
        Kind::State("memory.swap.current", "B"),
    ),
    ("pids.current", Kind::State("pids.current", "")),
    ("memory.stat", Kind::MemoryStat),
    ("cpu.stat", Kind::CpuStat),
    ("io.stat", Kind::IoStat),
    ("memory.pressure", Kind::Pressure("memory")),
    ("io.pressure", Kind::Pressure("io")),
];

/// Numbers of `memory.stat` that are totals; the others are bytes at the moment.
const COUNTERS: [&str; 12] = [
    "pgfault",
    "pgmajfault",
    "pgpgin",
    "pgpgout",
    "pgrefill",
    "pgscan",
    "pgsteal",
    "pgactivate",
    "pgdeactivate",
    "workingset_",
    "thp_",
    "pswp",
];

pub(super) struct TrialCgroup {
    files: Vec<(PathBuf, Kind)>,
}

impl TrialCgroup {
    /// What these directories have; a file of one is not looked for in the next.
    pub(super) fn of(dirs: &[PathBuf]) -> Self {
        let mut files: Vec<(PathBuf, Kind)> = Vec::new();
        for (name, kind) in FILES {
            let mut paths = dirs.iter().map(|dir| dir.join(name));
            // Both versions have it, under names of their own.
            if files.iter().any(|(_, known)| known.is_same_state(kind)) {
                continue;
            }
            if let Some(path) = paths.find(|path| path.is_file()) {
                files.push((path, kind));
            }
        }
        Self { files }
    }

    pub(super) fn files(&self) -> Vec<String> {
        let path = |(path, _): &(PathBuf, Kind)| path.display().to_string();
        self.files.iter().map(path).collect()
    }
}

impl Source for TrialCgroup {
    fn name(&self) -> &'static str {
        "cgroup"
    }

    fn parse(&self, file: usize, text: &[u8], table: &mut Table) {
        match self.files.get(file).map(|(_, kind)| *kind) {
            Some(Kind::State(name, unit)) => {
                if let Some(mut cells) = table.cells(name.as_bytes(), unit.as_bytes(), 1) {
                    cells.push(Scan::new(text).number());
                }
            }
            Some(Kind::MemoryStat) => keyed(text, b"memory.", table),
            Some(Kind::CpuStat) => keyed(text, b"cpu.", table),
            Some(Kind::IoStat) => io(text, table),
            Some(Kind::Pressure(of)) => pressure(text, of, table),
            None => {}
        }
    }

    fn describe(&self, line: &Line, active: bool) -> Vec<Spec> {
        let name = String::from_utf8_lossy(&line.key).into_owned();
        let is_state = FILES
            .iter()
            .any(|(_, kind)| matches!(kind, Kind::State(of, _) if *of == name));
        if is_state {
            let unit = if line.detail.is_empty() { "" } else { "B" };
            return vec![Spec::gauge(name, unit)];
        }
        // Most of memory.stat stays 0, and inherited totals of version 1 are twice the same.
        if !active || name.contains("hierarchical_") || name.starts_with("memory.total_") {
            return Vec::new();
        }
        if let Some(key) = name
            .strip_prefix("memory.")
            .filter(|key| !key.ends_with(".total"))
        {
            let is_total = COUNTERS.iter().any(|counter| key.starts_with(counter));
            return vec![match is_total {
                true => Spec::counter(name, ""),
                false => Spec::gauge(name, "B"),
            }];
        }
        let unit = match name.as_str() {
            name if name.ends_with("_usec") || name.ends_with(".total") => "us",
            name if name.ends_with("bytes") => "B",
            _ => "",
        };
        vec![Spec::counter(name, unit)]
    }
}

fn keyed(text: &[u8], prefix: &[u8], table: &mut Table) {
    let mut scan = Scan::new(text);
    while !scan.is_empty() {
        if let Some(key) = scan.word()
            && let Some(value) = scan.number()
            && let Some(mut cells) = table.cells(&[prefix, key].concat(), b"", 1)
        {
            cells.push(Some(value));
        }
        scan.line();
    }
}

/// The totals of a pressure file: `some avg10=... total=N` and `full`.
fn pressure(text: &[u8], of: &str, table: &mut Table) {
    let mut scan = Scan::new(text);
    while !scan.is_empty() {
        let mut line = Scan::new(scan.line());
        let Some(who) = line.word() else { continue };
        while let Some(pair) = line.word() {
            let mut pair = Scan::new(pair);
            if pair.until(b'=') == Some(b"total")
                && let Some(total) = pair.number()
                && let Some(mut cells) =
                    table.cells(&[of.as_bytes(), b".", who, b".total"].concat(), b"", 1)
            {
                cells.push(Some(total));
            }
        }
    }
}

fn io(text: &[u8], table: &mut Table) {
    let mut scan = Scan::new(text);
    while !scan.is_empty() {
        let mut line = Scan::new(scan.line());
        line.word();
        while let Some(pair) = line.word() {
            let mut pair = Scan::new(pair);
            if let Some(key) = pair.until(b'=')
                && let Some(value) = pair.number()
                && let Some(mut cells) = table.cells(&[b"io.", key].concat(), b"", 1)
            {
                cells.add(Some(value));
            }
        }
    }
}
