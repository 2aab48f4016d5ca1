//! Memory: size, huge pages, swap, NUMA.

use super::{Found, MOMENTARY, field, list_length};
use crate::root::SysRoot;

/// `MemTotal` in bytes.
pub(super) fn total_bytes(root: &SysRoot) -> Option<u64> {
    let text = root.read("/proc/meminfo").ok()?;
    let kilobytes = field(&text, "MemTotal")?.strip_suffix("kB")?;
    kilobytes.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// NUMA nodes that are online; 1 on a kernel that does not know of any.
pub(super) fn numa_nodes(root: &SysRoot) -> u32 {
    let online = root.line("/sys/devices/system/node/online");
    online.and_then(|list| list_length(&list)).unwrap_or(1)
}

pub(super) fn read(found: &mut Found<'_>) {
    found.chosen(
        "memory.thp.enabled",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    );
    found.chosen(
        "memory.thp.defrag",
        "/sys/kernel/mm/transparent_hugepage/defrag",
    );
    found.chosen(
        "memory.thp.shmem",
        "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
    );
    found.lines(&[
        ("memory.swappiness", "/proc/sys/vm/swappiness"),
        ("memory.overcommit", "/proc/sys/vm/overcommit_memory"),
        ("memory.min_free_kbytes", "/proc/sys/vm/min_free_kbytes"),
        ("memory.zone_reclaim_mode", "/proc/sys/vm/zone_reclaim_mode"),
        ("memory.ksm", "/sys/kernel/mm/ksm/run"),
        (
            "memory.zswap.enabled",
            "/sys/module/zswap/parameters/enabled",
        ),
        (
            "memory.zswap.compressor",
            "/sys/module/zswap/parameters/compressor",
        ),
        ("numa.balancing", "/proc/sys/kernel/numa_balancing"),
        ("numa.online", "/sys/devices/system/node/online"),
    ]);
    huge_pages(found);
    found.put("memory.swaps", swaps(found.root));
    for device in found.root.names("/sys/block") {
        if device.starts_with("zram") {
            let size = found.root.line(format!("/sys/block/{device}/disksize"));
            let used = size.filter(|bytes| bytes != "0");
            found.put(format!("memory.zram.{device}_bytes"), used);
        }
    }
}

fn huge_pages(found: &mut Found<'_>) {
    let pools = "/sys/kernel/mm/hugepages";
    for pool in found.root.names(pools) {
        let Some(size) = pool.strip_prefix("hugepages-") else {
            continue;
        };
        let name = format!("memory.hugepages.{size}");
        found.line(
            format!("{name}.total"),
            &format!("{pools}/{pool}/nr_hugepages"),
        );
        found.line(
            format!("{name}.overcommit"),
            &format!("{pools}/{pool}/nr_overcommit_hugepages"),
        );
        found.line(
            format!("{MOMENTARY}{name}.free"),
            &format!("{pools}/{pool}/free_hugepages"),
        );
    }
}

/// The swap areas as `name type size`, `none` when the kernel lists none.
fn swaps(root: &SysRoot) -> Option<String> {
    let text = root.read("/proc/swaps").ok()?;
    let area = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, kind, size) = (words.next()?, words.next()?, words.next()?);
        Some(format!("{name} {kind} {size} kB"))
    };
    let areas: Vec<String> = text.lines().skip(1).filter_map(area).collect();
    Some(if areas.is_empty() {
        "none".to_owned()
    } else {
        areas.join(", ")
    })
}
