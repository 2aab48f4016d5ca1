//! `/proc/softirqs`: deferred interrupt work by kind, summed over CPUs unless each is asked for.

use super::per_cpu::{self, cpu_names};
use super::scan::Scan;
use super::source::Source;
use super::table::{Line, Spec, Table};

pub(super) struct SoftIrqs {
    /// A column for each CPU.
    pub each: bool,
}

impl Source for SoftIrqs {
    fn name(&self) -> &'static str {
        "softirqs"
    }

    fn parse(&self, _file: usize, text: &[u8], table: &mut Table) {
        let mut scan = Scan::new(text);
        let header = scan.line();
        while !scan.is_empty() {
            if let Some(kind) = scan.until(b':') {
                per_cpu::take(&mut scan, header, kind, self.each, table);
            }
            scan.line();
        }
    }

    fn describe(&self, line: &Line, _active: bool) -> Vec<Spec> {
        let kind = String::from_utf8_lossy(&line.key);
        if !self.each {
            return vec![Spec::counter(kind, "")];
        }
        let cpus = cpu_names(&line.detail);
        cpus.map(|cpu| Spec::counter(format!("{kind}.{cpu}"), ""))
            .collect()
    }
}
