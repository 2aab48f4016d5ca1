//! `/proc/vmstat`: pages by state, and events of memory management.
//!
//! The file does not say which of its numbers are states and which are totals since boot, so
//! that is written down here, once. Values are as the file has them: pages are not bytes, and
//! an event is not a page.

use super::scan::Scan;
use super::source::Source;
use super::table::{Line, Spec, Table};

pub(super) struct VmStat;

/// Totals that are named like states.
const COUNTERS_NAMED_NR: [&str; 11] = [
    "nr_dirtied",
    "nr_foll_pin_acquired",
    "nr_foll_pin_released",
    "nr_throttled_written",
    "nr_tlb_local_flush_all",
    "nr_tlb_local_flush_one",
    "nr_tlb_remote_flush",
    "nr_tlb_remote_flush_received",
    "nr_vmscan_immediate_reclaim",
    "nr_vmscan_write",
    "nr_written",
];

/// States that are named like totals.
const GAUGES_NOT_NAMED_NR: [&str; 1] = ["workingset_nodes"];

/// Numbers that are kilobytes.
const KILOBYTES: [&str; 4] = [
    "nr_kernel_stack",
    "nr_shadow_call_stack",
    "pgpgin",
    "pgpgout",
];

fn is_gauge(key: &str) -> bool {
    GAUGES_NOT_NAMED_NR.contains(&key)
        || (key.starts_with("nr_") && !COUNTERS_NAMED_NR.contains(&key))
}

impl Source for VmStat {
    fn name(&self) -> &'static str {
        "proc-vmstat"
    }

    fn parse(&self, _file: usize, text: &[u8], table: &mut Table) {
        let mut scan = Scan::new(text);
        while !scan.is_empty() {
            if let Some(key) = scan.until(b' ')
                && let Some(value) = scan.number()
                && let Some(mut cells) = table.cells(key, b"", 1)
            {
                cells.push(Some(value));
            }
            scan.line();
        }
    }

    fn describe(&self, line: &Line, _active: bool) -> Vec<Spec> {
        let key = String::from_utf8_lossy(&line.key);
        let unit = if KILOBYTES.contains(&&*key) { "kB" } else { "" };
        vec![if is_gauge(&key) {
            Spec::gauge(key, unit)
        } else {
            Spec::counter(key, unit)
        }]
    }
}
