//! `/proc/stat`: CPU time by kind, context switches, forks, interrupts.
//!
//! Machine totals only: CPUs one by one would multiply the columns by the size of the machine,
//! and interrupts by number are the `interrupts` monitor's. As the kernel counts it, `user`
//! includes `guest`, and `nice` includes `guest_nice`.

use super::scan::Scan;
use super::source::Source;
use super::table::{Line, Spec, Table};

pub(super) struct Stat {
    /// Ticks per second of the CPU times.
    pub(super) user_hz: f64,
}

/// Columns of the line `cpu`, proc(5).
const CPU_TIMES: [&str; 10] = [
    "user",
    "nice",
    "system",
    "idle",
    "iowait",
    "irq",
    "softirq",
    "steal",
    "guest",
    "guest_nice",
];

impl Source for Stat {
    fn name(&self) -> &'static str {
        "proc-stat"
    }

    fn parse(&self, _file: usize, text: &[u8], table: &mut Table) {
        let mut scan = Scan::new(text);
        while !scan.is_empty() {
            if let Some(key) = scan.until(b' ') {
                let width = match key {
                    b"cpu" => CPU_TIMES.len(),
                    b"intr" | b"ctxt" | b"processes" | b"softirq" => 1,
                    b"procs_running" | b"procs_blocked" => 1,
                    _ => 0,
                };
                if width > 0
                    && let Some(mut cells) = table.cells(key, b"", width)
                {
                    (0..width).for_each(|_| cells.push(scan.number()));
                }
            }
            scan.line();
        }
    }

    fn describe(&self, line: &Line, _active: bool) -> Vec<Spec> {
        let time = |kind| Spec::counter(format!("cpu.{kind}"), "s").divided_by(self.user_hz);
        match &*line.key {
            b"cpu" => CPU_TIMES.into_iter().map(time).collect(),
            key => {
                let name = String::from_utf8_lossy(key);
                vec![if key.starts_with(b"procs_") {
                    Spec::gauge(name, "")
                } else {
                    Spec::counter(name, "")
                }]
            }
        }
    }
}
