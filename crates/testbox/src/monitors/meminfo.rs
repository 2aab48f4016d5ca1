//! `/proc/meminfo`: memory by use, all of it states, in kB where the file says so.

use super::scan::Scan;
use super::source::Source;
use super::table::{Line, Spec, Table};

pub(super) struct MemInfo;

impl Source for MemInfo {
    fn name(&self) -> &'static str {
        "meminfo"
    }

    fn parse(&self, _file: usize, text: &[u8], table: &mut Table) {
        let mut scan = Scan::new(text);
        while !scan.is_empty() {
            let key = scan.until(b':');
            let value = scan.number();
            let unit = scan.line();
            if let (Some(key), Some(value)) = (key, value)
                && let Some(mut cells) = table.cells(key, unit, 1)
            {
                cells.push(Some(value));
            }
        }
    }

    fn describe(&self, line: &Line, _active: bool) -> Vec<Spec> {
        let key = String::from_utf8_lossy(&line.key);
        let is_size = line.detail.ends_with(b"kB");
        vec![Spec::gauge(key, if is_size { "kB" } else { "" })]
    }
}
