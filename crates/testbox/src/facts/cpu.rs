//! Processors: model, topology, frequency control, idle states, vulnerabilities.

use super::{Found, MOMENTARY, field, joined, list_length};
use crate::root::SysRoot;
use std::collections::BTreeSet;

const CPUS: &str = "/sys/devices/system/cpu";

/// Room for the first processors of `/proc/cpuinfo`. To produce the rest of it the kernel may
/// interrupt every processor, and it would say the same.
const CPUINFO_HEAD: u64 = 8 << 10;

/// CPUs that this process may use, or else those that are online.
pub(super) fn usable(root: &SysRoot) -> Option<u32> {
    let status = root.read("/proc/self/status").unwrap_or_default();
    field(&status, "Cpus_allowed_list")
        .and_then(list_length)
        .or_else(|| list_length(&root.line(format!("{CPUS}/online"))?))
}

pub(super) fn read(found: &mut Found<'_>) {
    model(found);
    topology(found);
    frequency(found);
    throttling(found);
    idle(found);
    let vulnerabilities = format!("{CPUS}/vulnerabilities");
    for name in found.root.names(&vulnerabilities) {
        let path = format!("{vulnerabilities}/{name}");
        found.line(format!("cpu.vulnerability.{name}"), &path);
    }
}

fn model(found: &mut Found<'_>) {
    let Ok(head) = found.root.bytes("/proc/cpuinfo", CPUINFO_HEAD) else {
        return;
    };
    let head = String::from_utf8_lossy(&head);
    // An Arm kernel gives no name but the numbers of designer and part.
    let arm = || {
        let designer = field(&head, "CPU implementer")?;
        Some(format!(
            "implementer {designer} part {}",
            field(&head, "CPU part")?
        ))
    };
    let name = field(&head, "model name").map(str::to_owned).or_else(arm);
    found.put("cpu.model", name);
    found.put("cpu.microcode", field(&head, "microcode"));
    let has_flag = |flags: &str| flags.split(' ').any(|flag| flag == "hypervisor");
    let virtual_machine = field(&head, "flags").map(|f| if has_flag(f) { "yes" } else { "no" });
    found.put("virt.hypervisor_flag", virtual_machine);
}

fn topology(found: &mut Found<'_>) {
    let root = found.root;
    let mut sockets = BTreeSet::new();
    let mut cores = BTreeSet::new();
    let mut threads = 0u32;
    for name in root.names(CPUS) {
        let is_cpu = name
            .strip_prefix("cpu")
            .is_some_and(|n| n.parse::<u32>().is_ok());
        let topology = format!("{CPUS}/{name}/topology");
        if is_cpu && let Some(siblings) = root.line(format!("{topology}/thread_siblings_list")) {
            threads += 1;
            cores.insert(siblings);
            sockets.extend(root.line(format!("{topology}/physical_package_id")));
        }
    }
    let count = |n: usize| (n > 0).then(|| n.to_string());
    found.put("cpu.sockets", count(sockets.len()));
    found.put("cpu.cores", count(cores.len()));
    found.put("cpu.threads", count(threads as usize));
    let status = root.read("/proc/self/status").unwrap_or_default();
    found.put("cpu.allowed", field(&status, "Cpus_allowed_list"));
    found.lines(&[
        ("cpu.online", "/sys/devices/system/cpu/online"),
        ("cpu.isolated", "/sys/devices/system/cpu/isolated"),
        ("cpu.nohz_full", "/sys/devices/system/cpu/nohz_full"),
        ("cpu.smt.control", "/sys/devices/system/cpu/smt/control"),
        ("cpu.smt.active", "/sys/devices/system/cpu/smt/active"),
    ]);
}

fn frequency(found: &mut Found<'_>) {
    let root = found.root;
    let policies: Vec<String> = root
        .names(format!("{CPUS}/cpufreq"))
        .into_iter()
        .filter(|name| name.starts_with("policy"))
        .collect();
    let lines = |file: &str| -> Vec<String> {
        let path = |policy: &String| format!("{CPUS}/cpufreq/{policy}/{file}");
        policies.iter().filter_map(|p| root.line(path(p))).collect()
    };
    for (name, file) in [
        ("cpu.governor", "scaling_governor"),
        ("cpu.frequency.driver", "scaling_driver"),
        ("cpu.frequency.min_khz", "scaling_min_freq"),
        ("cpu.frequency.max_khz", "scaling_max_freq"),
        ("cpu.frequency.hardware_max_khz", "cpuinfo_max_freq"),
        ("cpu.energy_preference", "energy_performance_preference"),
    ] {
        found.put(name, joined(lines(file)));
    }
    let current = lines("scaling_cur_freq");
    let current: Vec<u64> = current.iter().filter_map(|khz| khz.parse().ok()).collect();
    let range = current.iter().min().zip(current.iter().max());
    let range = range.map(|(low, high)| format!("{low}-{high}"));
    found.put(format!("{MOMENTARY}cpu.frequency_khz"), range);
    found.lines(&[
        ("cpu.boost", "/sys/devices/system/cpu/cpufreq/boost"),
        (
            "cpu.no_turbo",
            "/sys/devices/system/cpu/intel_pstate/no_turbo",
        ),
        (
            "cpu.intel_pstate",
            "/sys/devices/system/cpu/intel_pstate/status",
        ),
        (
            "cpu.amd_pstate",
            "/sys/devices/system/cpu/amd_pstate/status",
        ),
    ]);
}

fn throttling(found: &mut Found<'_>) {
    let events = throttle_events(found.root).map(|events| events.to_string());
    found.put(format!("{MOMENTARY}{THROTTLE_FACT}"), events);
}

/// How often cores and packages have slowed themselves down to keep cool since boot.
pub(crate) fn throttle_events(root: &SysRoot) -> Option<u64> {
    let counts = root.names(CPUS).into_iter().flat_map(|cpu| {
        let count = |of: &str| root.line(format!("{CPUS}/{cpu}/thermal_throttle/{of}"));
        [
            count("core_throttle_count"),
            count("package_throttle_count"),
        ]
    });
    let counts: Vec<u64> = counts.flatten().filter_map(|n| n.parse().ok()).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

const THROTTLE_FACT: &str = "cpu.throttle_events";

fn idle(found: &mut Found<'_>) {
    let root = found.root;
    found.lines(&[
        (
            "cpu.idle.driver",
            "/sys/devices/system/cpu/cpuidle/current_driver",
        ),
        (
            "cpu.idle.governor",
            "/sys/devices/system/cpu/cpuidle/current_governor",
        ),
    ]);
    let states = format!("{CPUS}/cpu0/cpuidle");
    let state = |name: &String| {
        let disabled = root.line(format!("{states}/{name}/disable"));
        let off = disabled.is_some_and(|flag| flag != "0");
        let label = root.line(format!("{states}/{name}/name"))?;
        Some(if off { format!("{label}(off)") } else { label })
    };
    let all: Vec<String> = root.names(&states).iter().filter_map(state).collect();
    found.put("cpu.idle.states", (!all.is_empty()).then(|| all.join(",")));
}
