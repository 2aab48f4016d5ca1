//! Monitors of many small files below `/sys`: NUMA allocation, frequency, idle states, heat.
//!
//! Which files there are is found when a monitor is opened. What each CPU has of its own is put
//! together, so that the number of metrics does not grow with the machine.

use super::scan::Scan;
use super::source::Source;
use super::table::{Line, Spec, Table};
use crate::root::SysRoot;

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";
const ZONES: &str = "/sys/class/thermal";

/// Names below `dir` that are `prefix` and a number.
fn numbered(root: &SysRoot, dir: &str, prefix: &str) -> Vec<String> {
    let mut names: Vec<(u64, String)> = root
        .names(dir)
        .into_iter()
        .filter_map(|name| Some((name.strip_prefix(prefix)?.parse().ok()?, name)))
        .collect();
    names.sort();
    names.into_iter().map(|(_, name)| name).collect()
}

/// Pages by where they were wanted and where they came from, per node.
pub(super) struct NumaStat {
    nodes: Vec<String>,
}

impl NumaStat {
    pub(super) fn of(root: &SysRoot) -> Self {
        Self {
            nodes: numbered(root, NODES, "node"),
        }
    }

    pub(super) fn files(&self) -> Vec<String> {
        let file = |node: &String| format!("{NODES}/{node}/numastat");
        self.nodes.iter().map(file).collect()
    }
}

impl Source for NumaStat {
    fn name(&self) -> &'static str {
        "numa"
    }

    fn parse(&self, file: usize, text: &[u8], table: &mut Table) {
        let Some(node) = self.nodes.get(file) else {
            return;
        };
        let mut scan = Scan::new(text);
        while !scan.is_empty() {
            if let Some(kind) = scan.word()
                && let Some(pages) = scan.number()
                && let Some(mut cells) =
                    table.cells(&[node.as_bytes(), b".", kind].concat(), b"", 1)
            {
                cells.push(Some(pages));
            }
            scan.line();
        }
    }

    fn describe(&self, line: &Line, _active: bool) -> Vec<Spec> {
        vec![Spec::counter(String::from_utf8_lossy(&line.key), "pages")]
    }
}

/// Current frequency over all policies: mean, lowest, highest.
pub(super) struct CpuFreq {
    policies: Vec<String>,
    /// A column for each policy instead.
    each: bool,
}

impl CpuFreq {
    pub(super) fn of(root: &SysRoot, each: bool) -> Self {
        Self {
            policies: numbered(root, &format!("{CPUS}/cpufreq"), "policy"),
            each,
        }
    }

    pub(super) fn files(&self) -> Vec<String> {
        let file = |policy: &String| format!("{CPUS}/cpufreq/{policy}/scaling_cur_freq");
        self.policies.iter().map(file).collect()
    }
}

impl Source for CpuFreq {
    fn name(&self) -> &'static str {
        "cpufreq"
    }

    fn parse(&self, file: usize, text: &[u8], table: &mut Table) {
        let khz = Scan::new(text).number();
        if self.each {
            let policy = self.policies.get(file).map_or(&b""[..], |p| p.as_bytes());
            if let Some(mut cells) = table.cells(policy, b"", 1) {
                cells.push(khz);
            }
        } else if let Some(mut cells) = table.cells(b"all", b"", 3) {
            cells.add(khz);
            cells.lower(khz);
            cells.raise(khz);
        }
    }

    fn describe(&self, line: &Line, _active: bool) -> Vec<Spec> {
        if self.each {
            let policy = String::from_utf8_lossy(&line.key);
            return vec![Spec::gauge(policy, "MHz").divided_by(1e3)];
        }
        let policies = f64::from(u32::try_from(self.policies.len()).unwrap_or(u32::MAX));
        let mhz = |name: &str| Spec::gauge(name, "MHz").divided_by(1e3);
        vec![
            Spec::gauge("mean", "MHz").divided_by(1e3 * policies),
            mhz("min"),
            mhz("max"),
        ]
    }
}

/// Time in and entries into each idle state, summed over CPUs.
pub(super) struct CpuIdle {
    /// File and state's name; times and entries in turn.
    states: Vec<(String, String)>,
}

impl CpuIdle {
    pub(super) fn of(root: &SysRoot) -> Self {
        let mut states = Vec::new();
        for cpu in numbered(root, CPUS, "cpu") {
            let dir = format!("{CPUS}/{cpu}/cpuidle");
            for state in numbered(root, &dir, "state") {
                let name = root.line(format!("{dir}/{state}/name"));
                let name = name.unwrap_or(state.clone()).replace([' ', '\t'], "_");
                for what in ["time", "usage"] {
                    states.push((format!("{dir}/{state}/{what}"), name.clone()));
                }
            }
        }
        Self { states }
    }

    pub(super) fn files(&self) -> Vec<String> {
        self.states.iter().map(|(file, _)| file.clone()).collect()
    }
}

impl Source for CpuIdle {
    fn name(&self) -> &'static str {
        "cpuidle"
    }

    fn parse(&self, file: usize, text: &[u8], table: &mut Table) {
        let Some((_, state)) = self.states.get(file) else {
            return;
        };
        let value = Scan::new(text).number();
        if let Some(mut cells) = table.cells(state.as_bytes(), b"", 2) {
            // Files of times and of entries come in turn.
            if file % 2 == 1 {
                cells.skip();
            }
            cells.add(value);
        }
    }

    fn describe(&self, line: &Line, _active: bool) -> Vec<Spec> {
        let state = String::from_utf8_lossy(&line.key);
        vec![
            Spec::counter(format!("{state}.time"), "ms").divided_by(1e3),
            Spec::counter(format!("{state}.usage"), ""),
        ]
    }
}

/// Temperatures by the kind of sensor, the hottest of each kind.
pub(super) struct Thermal {
    zones: Vec<(String, String)>,
}

impl Thermal {
    pub(super) fn of(root: &SysRoot) -> Self {
        let zones = numbered(root, ZONES, "thermal_zone");
        let kind = |zone: &String| {
            let kind = root.line(format!("{ZONES}/{zone}/type"));
            kind.unwrap_or_else(|| zone.clone())
                .replace([' ', '\t'], "_")
        };
        Self {
            zones: zones
                .iter()
                .map(|zone| (format!("{ZONES}/{zone}/temp"), kind(zone)))
                .collect(),
        }
    }

    pub(super) fn files(&self) -> Vec<String> {
        self.zones.iter().map(|(file, _)| file.clone()).collect()
    }
}

impl Source for Thermal {
    fn name(&self) -> &'static str {
        "thermal"
    }

    fn parse(&self, file: usize, text: &[u8], table: &mut Table) {
        // Below zero there is no number to be read: no machine of ours is that cold.
        if let Some((_, kind)) = self.zones.get(file)
            && let Some(mut cells) = table.cells(kind.as_bytes(), b"", 1)
        {
            cells.raise(Scan::new(text).number());
        }
    }

    fn describe(&self, line: &Line, _active: bool) -> Vec<Spec> {
        let kind = String::from_utf8_lossy(&line.key);
        vec![Spec::gauge(kind, "C").divided_by(1e3)]
    }
}
