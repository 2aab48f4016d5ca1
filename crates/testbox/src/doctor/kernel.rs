//! The kernel: debugging built in, its clock, randomness, and what we may see and set.

use super::{Finding, Level, Sight};
use crate::cgroup;
use crate::facts::{KernelLog, kernel_config};
use std::fs::File;

/// Options of a kernel's configuration that slow it down, and what people call them.
const DEBUG_OPTIONS: [(&str, &str); 13] = [
    ("CONFIG_KASAN=y", "KASAN"),
    ("CONFIG_KCSAN=y", "KCSAN"),
    ("CONFIG_KMSAN=y", "KMSAN"),
    ("CONFIG_PROVE_LOCKING=y", "lockdep"),
    ("CONFIG_LOCK_STAT=y", "lock statistics"),
    ("CONFIG_DEBUG_KMEMLEAK=y", "kmemleak"),
    ("CONFIG_DEBUG_OBJECTS=y", "debug objects"),
    ("CONFIG_DEBUG_PAGEALLOC_ENABLE_DEFAULT=y", "debug_pagealloc"),
    ("CONFIG_SLUB_DEBUG_ON=y", "slub_debug"),
    ("CONFIG_DEBUG_VM=y", "CONFIG_DEBUG_VM"),
    ("CONFIG_KCOV=y", "kcov"),
    ("CONFIG_GCOV_PROFILE_ALL=y", "gcov"),
    ("CONFIG_DEBUG_PREEMPT=y", "CONFIG_DEBUG_PREEMPT"),
];

/// Files that are there only with a debugging kernel; its configuration may not be readable.
const DEBUG_FILES: [(&str, &str); 3] = [
    ("/proc/lockdep", "lockdep"),
    ("/proc/lock_stat", "lock statistics"),
    ("/sys/kernel/debug/kmemleak", "kmemleak"),
];

/// Words of the kernel's command line that switch debugging on.
const DEBUG_WORDS: [(&str, &str); 4] = [
    ("slub_debug", "slub_debug"),
    ("slab_debug", "slub_debug"),
    ("debug_pagealloc=on", "debug_pagealloc"),
    ("page_poison=1", "page poisoning"),
];

/// Switches of a slab cache that slub_debug turns on.
const SLAB_SWITCHES: [&str; 4] = ["sanity_checks", "poison", "red_zone", "store_user"];

pub(super) fn debugging(sight: &Sight<'_>) -> Option<Finding> {
    let root = sight.places.root;
    let config = kernel_config(root, &sight.facts.kernel_release);
    let config = String::from_utf8_lossy(config.as_deref().unwrap_or_default()).into_owned();
    let command_line = sight.fact("kernel.cmdline").unwrap_or_default();
    let options = DEBUG_OPTIONS
        .iter()
        .filter(|(option, _)| config.lines().any(|line| line == *option));
    let files = DEBUG_FILES
        .iter()
        .filter(|(path, _)| root.path(path).exists());
    let words = DEBUG_WORDS.iter().filter(|(word, _)| {
        command_line.split(' ').any(|w| {
            w == *word
                || w.strip_prefix(word)
                    .is_some_and(|rest| rest.starts_with('='))
        })
    });
    let mut found: Vec<&str> = options
        .chain(files)
        .chain(words)
        .map(|(_, name)| *name)
        .collect();
    let is_on = |switch: &&str| {
        sight
            .line(&format!("/sys/kernel/slab/kmalloc-64/{switch}"))
            .as_deref()
            == Some("1")
    };
    if SLAB_SWITCHES.iter().any(is_on) {
        found.push("slub_debug");
    }
    found.sort_unstable();
    found.dedup();
    let why = "checks in the kernel's fast paths make it slow in places where it is not otherwise";
    if found.is_empty() {
        let what = "no debugging of the kernel is on that can be seen";
        return Some(Finding::new("debug-kernel", Level::Ok, what, why));
    }
    let what = format!("the kernel debugs itself: {}", found.join(", "));
    Some(Finding::new("debug-kernel", Level::Warning, what, why).hint("measure a kernel without"))
}

pub(super) fn clock(sight: &Sight<'_>) -> Option<Finding> {
    let source = sight.fact("clock.source")?;
    let level = match source {
        "tsc" | "arch_sys_counter" | "timebase" | "tod" | "riscv_clocksource" => Level::Ok,
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit" => Level::Warning,
        _ => Level::Note,
    };
    let available = sight.fact("clock.sources").unwrap_or("unknown");
    let what = format!("clock source {source} (there are: {})", available.trim());
    let why = "programs that ask for the time often wait for a slow clock";
    Some(
        Finding::new("clock", level, what, why)
            .hint("find out from the kernel log why tsc is not used")
            .setting("sysfs./sys/devices/system/clocksource/clocksource0/current_clocksource=tsc"),
    )
}

pub(super) fn aslr(sight: &Sight<'_>) -> Option<Finding> {
    let mode = sight.fact("kernel.aslr")?;
    let (level, what) = match mode {
        "0" => (Level::Ok, "addresses are the same in each run".to_owned()),
        _ => (
            Level::Note,
            format!("addresses are drawn anew for each process (ASLR {mode})"),
        ),
    };
    let why = "alignment differs from run to run: caches and branches with it, by a few percent";
    Some(
        Finding::new("aslr", level, what, why)
            .hint("more runs average it out; without it all runs share one chance alignment")
            .setting("sysctl.kernel.randomize_va_space=0"),
    )
}

/// Whether settings can be made; opening for writing changes nothing.
fn may_set(sight: &Sight<'_>) -> bool {
    let path = sight.places.root.path("/proc/sys/vm/swappiness");
    File::options().write(true).open(path).is_ok()
}

pub(super) fn privilege(sight: &Sight<'_>) -> Option<Finding> {
    let (level, what) = if may_set(sight) {
        (Level::Ok, "settings of the machine can be made")
    } else {
        let what = "settings (thp, hugepages, sysctl, sysfs) cannot be made";
        (Level::Note, what)
    };
    let why = "jobs with settings fail, and what is found here stays as it is";
    Some(Finding::new("privilege", level, what, why).hint("run kdyno as root"))
}

pub(super) fn cgroups(sight: &Sight<'_>) -> Option<Finding> {
    let usable = !cgroup::parents(sight.places.root, &[]).is_empty();
    let (level, what) = match sight.fact("cgroup.version") {
        Some(version) if usable => (Level::Ok, format!("cgroup version {version}")),
        _ => (Level::Note, "no cgroup that trials could have".to_owned()),
    };
    let why = "a cgroup finds processes that a program leaves behind, and out-of-memory kills";
    Some(Finding::new("cgroup", level, what, why).hint("mount cgroup2 on /sys/fs/cgroup"))
}

pub(super) fn log(sight: &Sight<'_>) -> Option<Finding> {
    let (level, what) = match KernelLog::open(sight.places.root) {
        Some(_) => (Level::Ok, "the kernel log can be read"),
        None => (Level::Note, "the kernel log cannot be read"),
    };
    let why = "warnings of the kernel during a run are not kept with it";
    Some(
        Finding::new("kernel-log", level, what, why)
            .hint("run as root, or sysctl -w kernel.dmesg_restrict=0"),
    )
}

pub(super) fn perf(sight: &Sight<'_>) -> Option<Finding> {
    let paranoid: i32 = sight.fact("kernel.perf_event_paranoid")?.parse().ok()?;
    let level = if paranoid > 1 && !may_set(sight) {
        Level::Note
    } else {
        Level::Ok
    };
    let what = format!("perf_event_paranoid is {paranoid}");
    let why = "above 1 programs without privilege count no events of the kernel";
    Some(
        Finding::new("perf", level, what, why)
            .hint("run as root, or sysctl -w kernel.perf_event_paranoid=1"),
    )
}

pub(super) fn watchdog(sight: &Sight<'_>) -> Option<Finding> {
    let on = sight.fact("kernel.nmi_watchdog")? != "0";
    let (level, what) = if on {
        (Level::Note, "the NMI watchdog is on")
    } else {
        (Level::Ok, "the NMI watchdog is off")
    };
    let why = "it holds a hardware counter on each CPU, and interrupts";
    Some(
        Finding::new("nmi-watchdog", level, what, why)
            .hint("switch it off for a run")
            .setting("sysctl.kernel.nmi_watchdog=0"),
    )
}
