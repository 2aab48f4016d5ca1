//! Lines with a count for each CPU, below a header that names the CPUs.

use super::scan::Scan;
use super::table::Table;

/// How many CPUs a header names.
pub(super) fn cpus(header: &[u8]) -> usize {
    words(header).count()
}

fn words(header: &[u8]) -> impl Iterator<Item = &[u8]> {
    header.split(|b| *b == b' ').filter(|word| !word.is_empty())
}

/// The CPUs that a header names, as `cpu0`.
pub(super) fn cpu_names(header: &[u8]) -> impl Iterator<Item = String> {
    words(header).map(|word| String::from_utf8_lossy(word).to_lowercase())
}

/// Puts a line's counts into the open row under `key`: their sum, or each of them with the header
/// as the line's detail. A row with other CPUs than before is left out of the latter.
pub(super) fn take(scan: &mut Scan<'_>, header: &[u8], key: &[u8], each: bool, table: &mut Table) {
    let cpus = cpus(header);
    if !each {
        if let (Some(sum), Some(mut cells)) = (sum(scan, cpus), table.cells(key, b"", 1)) {
            cells.push(Some(sum));
        }
        return;
    }
    if let Some(mut cells) = table.cells(key, header, cpus)
        && cells.len() == cpus
    {
        for _ in 0..cpus {
            cells.push(scan.number());
        }
    }
}

/// The sum of the next counts, at most one for each CPU; `None` without any.
pub(super) fn sum(scan: &mut Scan<'_>, cpus: usize) -> Option<u64> {
    let mut sum = scan.number()?;
    for _ in 1..cpus {
        let Some(count) = scan.number() else { break };
        sum = sum.saturating_add(count);
    }
    Some(sum)
}
