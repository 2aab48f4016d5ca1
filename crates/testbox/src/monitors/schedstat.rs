//! `/proc/schedstat`: how long tasks ran and waited to run, summed over CPUs unless
//! each is asked for.
//!
//! Of a CPU's line the last three numbers: time running, time waiting, and times on the CPU
//! (Documentation/scheduler/sched-stats.rst). Domains are left out.

use super::scan::Scan;
use super::source::Source;
use super::table::{Line, Spec, Table};

pub(super) struct SchedStat {
    /// Columns for each CPU.
    pub each: bool,
}

/// The key of all CPUs together.
const ALL: &[u8] = b"all";

/// Numbers of a CPU's line in front of those that are kept.
const SKIPPED: usize = 6;

impl Source for SchedStat {
    fn name(&self) -> &'static str {
        "schedstat"
    }

    fn parse(&self, _file: usize, text: &[u8], table: &mut Table) {
        let mut scan = Scan::new(text);
        while !scan.is_empty() {
            if let Some(cpu) = scan.word().filter(|word| word.starts_with(b"cpu")) {
                for _ in 0..SKIPPED {
                    scan.number();
                }
                if let Some(mut cells) = table.cells(if self.each { cpu } else { ALL }, b"", 3) {
                    for _ in 0..3 {
                        cells.add(scan.number());
                    }
                }
            }
            scan.line();
        }
    }

    fn describe(&self, line: &Line, _active: bool) -> Vec<Spec> {
        let name = |name: &str| match &*line.key {
            ALL => name.to_owned(),
            cpu => format!("{}.{name}", String::from_utf8_lossy(cpu)),
        };
        vec![
            Spec::counter(name("run_time"), "ms").divided_by(1e6),
            Spec::counter(name("wait_time"), "ms").divided_by(1e6),
            Spec::counter(name("timeslices"), ""),
        ]
    }
}
