//! `/proc/pressure`: how long tasks waited for CPU, memory and I/O.
//!
//! Per resource the running total in microseconds, which is exact for any window, and the
//! kernel's own mean over ten seconds. `full` of the CPU is left out: for a whole machine it is
//! not defined and always zero (Documentation/accounting/psi.rst).

use super::scan::Scan;
use super::source::Source;
use super::table::{Line, Spec, Table};

pub(super) struct Pressure;

/// Per file: its lines' keys in the table, `some` and `full`.
const KEYS: [(&[u8], Option<&[u8]>); 3] = [
    (b"cpu.some", None),
    (b"memory.some", Some(b"memory.full")),
    (b"io.some", Some(b"io.full")),
];

impl Source for Pressure {
    fn name(&self) -> &'static str {
        "psi"
    }

    fn parse(&self, file: usize, text: &[u8], table: &mut Table) {
        let Some((some, full)) = KEYS.get(file) else {
            return;
        };
        let mut scan = Scan::new(text);
        while !scan.is_empty() {
            let key = match scan.until(b' ') {
                Some(b"some") => Some(*some),
                Some(b"full") => *full,
                _ => None,
            };
            let mut mean = None;
            let mut total = None;
            while let Some(name) = scan.until(b'=') {
                match name {
                    b"avg10" => mean = hundredths(&mut scan),
                    b"avg60" | b"avg300" => _ = hundredths(&mut scan),
                    _ => total = scan.number(),
                }
            }
            scan.line();
            if let Some(key) = key
                && let Some(mut cells) = table.cells(key, b"", 2)
            {
                cells.push(total);
                cells.push(mean);
            }
        }
    }

    fn describe(&self, line: &Line, _active: bool) -> Vec<Spec> {
        let key = String::from_utf8_lossy(&line.key);
        vec![
            Spec::counter(format!("{key}.total"), "us"),
            Spec::gauge(format!("{key}.avg10"), "%").divided_by(100.0),
        ]
    }
}

/// A number with two decimals, times a hundred.
fn hundredths(scan: &mut Scan<'_>) -> Option<u64> {
    let whole = scan.number()?;
    let part = if scan.eat(b'.') { scan.number()? } else { 0 };
    whole.checked_mul(100)?.checked_add(part)
}
