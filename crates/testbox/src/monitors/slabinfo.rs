//! `/proc/slabinfo`: objects and memory of each kernel cache; needs root.
//!
//! The kernel walks every cache to print it, which costs more than all other monitors together:
//! it is read less often, and only when a job asks for it.

use super::scan::Scan;
use super::source::Source;
use super::table::{Line, Spec, Table};

pub(super) struct SlabInfo;

impl Source for SlabInfo {
    fn name(&self) -> &'static str {
        "slabinfo"
    }

    fn every(&self) -> u64 {
        10
    }

    fn parse(&self, _file: usize, text: &[u8], table: &mut Table) {
        let mut scan = Scan::new(text);
        while !scan.is_empty() {
            if let Some(name) = scan.word()
                && name != b"slabinfo"
                && name != b"#"
                && let (Some(active), Some(all), Some(bytes)) =
                    (scan.number(), scan.number(), scan.number())
                && let Some(mut cells) = table.cells(name, b"", 2)
            {
                cells.push(Some(active));
                cells.push(Some(all.saturating_mul(bytes)));
            }
            scan.line();
        }
    }

    fn describe(&self, line: &Line, active: bool) -> Vec<Spec> {
        if !active {
            return Vec::new();
        }
        let name = String::from_utf8_lossy(&line.key);
        vec![
            Spec::gauge(format!("{name}.active_objs"), ""),
            Spec::gauge(format!("{name}.size"), "kB").divided_by(1024.0),
        ]
    }
}
