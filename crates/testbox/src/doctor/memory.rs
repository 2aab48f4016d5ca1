//! Memory and disk: what is free, what waits to be written, swap, what moves pages around.

use super::{Finding, Level, Sight};
use crate::facts::field;
use crate::sys;
use std::path::Path;

/// A line of `/proc/meminfo`, in bytes.
fn meminfo(sight: &Sight<'_>, key: &str) -> Option<u64> {
    let text = sight.places.root.read("/proc/meminfo").ok()?;
    let kilobytes = field(&text, key)?.strip_suffix("kB")?;
    kilobytes.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// `512 MiB`, `7.8 GiB`.
fn size(bytes: u64) -> String {
    const GIB: u64 = 1 << 30;
    if bytes >= GIB {
        format!("{:.1} GiB", bytes as f64 / GIB as f64)
    } else {
        format!("{} MiB", bytes >> 20)
    }
}

pub(super) fn available(sight: &Sight<'_>) -> Option<Finding> {
    let available = meminfo(sight, "MemAvailable")?;
    let total = sight.facts.memory_bytes;
    let level = if available < total / 10 {
        Level::Warning
    } else if available < total / 2 {
        Level::Note
    } else {
        Level::Ok
    };
    let what = format!(
        "{} of {} memory are available",
        size(available),
        size(total)
    );
    let why = "what needs more makes the kernel reclaim and swap, in the middle of a run";
    Some(Finding::new("memory", level, what, why).hint("end what holds it: ps --sort=-rss axu"))
}

/// So much waiting to be written is told, and warned of.
const DIRTY_NOTE: u64 = 32 << 20;
const DIRTY_WARNING: u64 = 256 << 20;

pub(super) fn dirty(sight: &Sight<'_>) -> Option<Finding> {
    let waiting = meminfo(sight, "Dirty")? + meminfo(sight, "Writeback").unwrap_or(0);
    let level = if waiting >= DIRTY_WARNING {
        Level::Warning
    } else if waiting >= DIRTY_NOTE {
        Level::Note
    } else {
        Level::Ok
    };
    let what = format!("{} wait to be written to disks", size(waiting));
    let why = "the kernel writes them within half a minute, while something is measured";
    Some(Finding::new("dirty", level, what, why).hint("run sync first"))
}

pub(super) fn swap(sight: &Sight<'_>) -> Option<Finding> {
    let (total, free) = (meminfo(sight, "SwapTotal")?, meminfo(sight, "SwapFree")?);
    let used = total.saturating_sub(free);
    let why = "pages that come back from swap make single runs slow";
    let (level, what) = match (total, used) {
        (0, _) => (Level::Ok, "no swap".to_owned()),
        (_, 0) => (Level::Ok, format!("{} swap, none in use", size(total))),
        (_, used) if used < sight.facts.memory_bytes / 100 => {
            (Level::Note, format!("{} of swap are in use", size(used)))
        }
        (_, used) => (Level::Warning, format!("{} of swap are in use", size(used))),
    };
    Some(
        Finding::new("swap", level, what, why)
            .hint("swapoff -a where memory suffices, or swap less readily")
            .setting("sysctl.vm.swappiness=1"),
    )
}

/// Less free than this is warned of, or will not do for a plan.
const DISK_NOTE: u64 = 5 << 30;
const DISK_WARNING: u64 = 1 << 30;

pub(super) fn disk(sight: &Sight<'_>) -> Option<Finding> {
    let home = sight.places.home?;
    let there = home.ancestors().find(|path| path.exists());
    // A relative path ends with the empty one, which is the working directory.
    let there = there.unwrap_or_else(|| Path::new("."));
    let free = sys::free_bytes(there).ok()?;
    let level = if free < DISK_WARNING {
        Level::Warning
    } else if free < DISK_NOTE {
        Level::Note
    } else {
        Level::Ok
    };
    let what = format!("{} are free for runs in {}", size(free), home.display());
    let why = "a full disk ends a plan";
    Some(
        Finding::new("disk", level, what, why)
            .hint("make room, or set KDYNO_HOME to a directory on another disk"),
    )
}

pub(super) fn thp(sight: &Sight<'_>) -> Option<Finding> {
    let enabled = sight.fact("memory.thp.enabled")?;
    let defrag = sight.fact("memory.thp.defrag").unwrap_or("unknown");
    let level = if enabled == "always" {
        Level::Note
    } else {
        Level::Ok
    };
    let what = format!("transparent huge pages {enabled}, defrag {defrag}");
    let why = "whether memory is huge depends on how fragmented it is: runs differ by it";
    Some(
        Finding::new("thp", level, what, why)
            .hint("fix it for a run, and say which")
            .setting("thp.enabled=madvise"),
    )
}

pub(super) fn numa_balancing(sight: &Sight<'_>) -> Option<Finding> {
    let on = sight.fact("numa.balancing")? != "0";
    let nodes = sight.facts.numa_nodes;
    let level = if on && nodes > 1 {
        Level::Note
    } else {
        Level::Ok
    };
    let word = if on { "on" } else { "off" };
    let what = match nodes {
        1 => format!("NUMA balancing is {word}, 1 node"),
        _ => format!("NUMA balancing is {word}, {nodes} nodes"),
    };
    let why = "the kernel unmaps and moves pages while a run goes on, when it thinks fit";
    Some(
        Finding::new("numa-balancing", level, what, why)
            .hint("bind CPUs and memory, or switch it off")
            .setting("sysctl.kernel.numa_balancing=0"),
    )
}

pub(super) fn ksm(sight: &Sight<'_>) -> Option<Finding> {
    let on = sight.fact("memory.ksm")? == "1";
    let (level, what) = if on {
        (Level::Note, "KSM merges equal pages in the background")
    } else {
        (Level::Ok, "KSM is off")
    };
    let why = "it scans memory with a CPU, and writing to a merged page costs a copy";
    Some(
        Finding::new("ksm", level, what, why)
            .hint("switch it off for a run")
            .setting("sysfs./sys/kernel/mm/ksm/run=0"),
    )
}
