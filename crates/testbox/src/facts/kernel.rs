//! The kernel: build, command line, modules, scheduler, clock source, switches.

use super::{Found, MOMENTARY};
use crate::root::SysRoot;
use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};
use std::io::Read;

/// No kernel configuration is larger, packed or not.
const CONFIG_LIMIT: u64 = 16 << 20;

/// Scheduler tunables below debugfs, as far as this kernel has them and lets them be read.
const SCHED_DEBUG: [&str; 9] = [
    "base_slice_ns",
    "features",
    "latency_ns",
    "migration_cost_ns",
    "min_granularity_ns",
    "nr_migrate",
    "preempt",
    "tunable_scaling",
    "wakeup_granularity_ns",
];

pub(super) fn read(found: &mut Found<'_>, release: &str) {
    found.lines(&[
        ("kernel.version", "/proc/version"),
        ("kernel.cmdline", "/proc/cmdline"),
        ("kernel.tainted", "/proc/sys/kernel/tainted"),
        ("kernel.aslr", "/proc/sys/kernel/randomize_va_space"),
        (
            "kernel.perf_event_paranoid",
            "/proc/sys/kernel/perf_event_paranoid",
        ),
        ("kernel.nmi_watchdog", "/proc/sys/kernel/nmi_watchdog"),
        ("kernel.timer_slack_ns", "/proc/self/timerslack_ns"),
        (
            "clock.source",
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
        (
            "clock.sources",
            "/sys/devices/system/clocksource/clocksource0/available_clocksource",
        ),
        ("sched.ext.state", "/sys/kernel/sched_ext/state"),
        ("sched.ext.ops", "/sys/kernel/sched_ext/root/ops"),
    ]);
    found.put("kernel.config_sha256", config_hash(found.root, release));
    modules(found);
    for name in found.root.names("/proc/sys/kernel") {
        if let Some(tunable) = name.strip_prefix("sched_") {
            found.line(
                format!("sched.{tunable}"),
                &format!("/proc/sys/kernel/{name}"),
            );
        }
    }
    for name in SCHED_DEBUG {
        found.line(
            format!("sched.{name}"),
            &format!("/sys/kernel/debug/sched/{name}"),
        );
    }
    let first_word = |path: &str, words: usize| {
        let line = found.root.line(path)?;
        let words: Vec<&str> = line.split(' ').take(words).collect();
        Some(words.join(" "))
    };
    let load = first_word("/proc/loadavg", 3);
    let uptime = first_word("/proc/uptime", 1);
    found.put(format!("{MOMENTARY}load_average"), load);
    found.put(format!("{MOMENTARY}uptime_s"), uptime);
}

/// SHA-256, in hexadecimal, of the text of the kernel's configuration.
fn config_hash(root: &SysRoot, release: &str) -> Option<String> {
    let hash = Sha256::digest(&config(root, release)?);
    Some(hash.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The text of the kernel's configuration: its own copy or else the one that was installed with
/// it.
pub(crate) fn config(root: &SysRoot, release: &str) -> Option<Vec<u8>> {
    let own = || {
        let packed = root.bytes("/proc/config.gz", CONFIG_LIMIT).ok()?;
        let mut text = Vec::new();
        let mut unpacked = GzDecoder::new(packed.as_slice()).take(CONFIG_LIMIT);
        unpacked.read_to_end(&mut text).ok()?;
        Some(text)
    };
    let installed = || {
        root.bytes(format!("/boot/config-{release}"), CONFIG_LIMIT)
            .ok()
    };
    own().or_else(installed)
}

fn modules(found: &mut Found<'_>) {
    // A kernel without modules has no such file, and one with none loaded an empty one.
    let Ok(text) = found.root.read("/proc/modules") else {
        return;
    };
    let mut names: Vec<&str> = text.lines().filter_map(|l| l.split(' ').next()).collect();
    names.sort_unstable();
    found.put("kernel.modules.count", Some(names.len().to_string()));
    found.put("kernel.modules.names", Some(names.join(" ")));
}
