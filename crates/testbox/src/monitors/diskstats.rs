//! `/proc/diskstats`: requests, bytes and time per block device.
//!
//! Whole devices only, since a partition's figures are in its device's, and only those that have
//! done any I/O since boot: a machine has many idle loop devices.

use super::scan::Scan;
use super::source::Source;
use super::table::{Line, Spec, Table};
use crate::root::SysRoot;

pub(super) struct DiskStats {
    /// Where `/sys` tells partitions from devices.
    pub(super) root: SysRoot,
}

/// A sector of this file, whatever the device's own sector size is.
const SECTOR_BYTES: f64 = 512.0;

/// Columns after the device's name, Documentation/admin-guide/iostats.rst; `sectors` are turned
/// into bytes.
const FIELDS: [(&str, &str); 17] = [
    ("reads", ""),
    ("reads_merged", ""),
    ("read_bytes", "B"),
    ("read_time", "ms"),
    ("writes", ""),
    ("writes_merged", ""),
    ("write_bytes", "B"),
    ("write_time", "ms"),
    ("in_flight", ""),
    ("io_time", "ms"),
    ("weighted_io_time", "ms"),
    ("discards", ""),
    ("discards_merged", ""),
    ("discard_bytes", "B"),
    ("discard_time", "ms"),
    ("flushes", ""),
    ("flush_time", "ms"),
];

impl Source for DiskStats {
    fn name(&self) -> &'static str {
        "diskstats"
    }

    fn parse(&self, _file: usize, text: &[u8], table: &mut Table) {
        let mut scan = Scan::new(text);
        while !scan.is_empty() {
            let numbered = scan.number().is_some() && scan.number().is_some();
            if numbered
                && let Some(device) = scan.until(b' ')
                && let Some(mut cells) = table.cells(device, b"", FIELDS.len())
            {
                for _ in FIELDS {
                    cells.push(scan.number());
                }
            }
            scan.line();
        }
    }

    fn describe(&self, line: &Line, active: bool) -> Vec<Spec> {
        let device = String::from_utf8_lossy(&line.key);
        // Where a name has a slash, sysfs has an exclamation mark.
        let directory = self
            .root
            .path("/sys/class/block")
            .join(device.replace('/', "!"));
        let partition = directory.join("partition");
        if !active || partition.exists() {
            return Vec::new();
        }
        let spec = |(field, unit): (&str, &'static str)| {
            let name = format!("{device}.{field}");
            match (field, unit) {
                ("in_flight", _) => Spec::gauge(name, unit),
                (_, "B") => Spec::counter(name, unit).divided_by(1.0 / SECTOR_BYTES),
                _ => Spec::counter(name, unit),
            }
        };
        FIELDS.into_iter().map(spec).collect()
    }
}
