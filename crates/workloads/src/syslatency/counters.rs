//! What the kernel counts meanwhile: reclaim, compaction, huge pages, pressure.

use std::collections::BTreeMap;
use std::fs;

/// Lines of `/proc/vmstat` that tell of reclaim and huge pages.
const PREFIXES: [&str; 9] = [
    "pgscan_",
    "pgsteal_",
    "unevictable_pgs_",
    "compact_",
    "allocstall_",
    "thp_fault_",
    "workingset_refault_",
    "pswp",
    "nr_unevictable",
];

/// Totals at a moment, or what was added between two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters(pub(super) BTreeMap<String, i64>);

impl Counters {
    /// The totals now; what a kernel does not have is left out.
    pub(super) fn now() -> Self {
        let mut counters = Self(of_vmstat(
            &fs::read_to_string("/proc/vmstat").unwrap_or_default(),
        ));
        let pressure = fs::read_to_string("/proc/pressure/memory").unwrap_or_default();
        counters.0.extend(of_pressure(&pressure));
        counters
    }

    /// What was added since; the pages that are unevictable are those now.
    pub(super) fn since(&self, before: &Self) -> Self {
        let added = self.0.iter().map(|(name, now)| {
            let was = match name.starts_with("nr_") {
                true => 0,
                false => before.0.get(name).copied().unwrap_or(*now),
            };
            (name.clone(), now.saturating_sub(was))
        });
        Self(added.collect())
    }

    /// One of them.
    pub(super) fn get(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }
}

fn of_vmstat(text: &str) -> BTreeMap<String, i64> {
    let read = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        let wanted = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        Some((wanted.then(|| name.to_owned())?, value.trim().parse().ok()?))
    };
    text.lines().filter_map(read).collect()
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`, microseconds.
fn of_pressure(text: &str) -> BTreeMap<String, i64> {
    let read = |line: &str| {
        let (kind, rest) = line.split_once(' ')?;
        let (_, total) = rest.rsplit_once("total=")?;
        Some((format!("psi_memory_{kind}_us"), total.trim().parse().ok()?))
    };
    text.lines().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_told_and_states_are_those_at_the_end() {
        let text = |scan: u64, pages: u64| {
            format!("nr_free_pages 5\npgscan_anon {scan}\nnr_unevictable {pages}\nother 1\n")
        };
        let (before, now) = (of_vmstat(&text(10, 7)), of_vmstat(&text(25, 9)));
        let added = Counters(now).since(&Counters(before));
        assert_eq!(added.get("pgscan_anon"), Some(15));
        assert_eq!(added.get("nr_unevictable"), Some(9));
        assert_eq!(added.get("nr_free_pages"), None);
    }

    #[test]
    fn pressure_is_its_totals() {
        let read =
            of_pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0 total=3\n");
        assert_eq!(read.get("psi_memory_some_us"), Some(&12));
        assert_eq!(read.get("psi_memory_full_us"), Some(&3));
    }
}
