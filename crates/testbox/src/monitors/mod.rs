//! What the machine did while a trial was measured, sampled from `/proc` by one thread.
//!
//! The harness must not disturb: descriptors stay open, text is parsed by position, rows stay
//! raw until the window is over, and what watching cost is measured and handed over. Profilers
//! and tracers are not here; they run apart from measured runs.

mod cgroup;
pub mod clock;
mod diskstats;
mod interrupts;
mod meminfo;
mod per_cpu;
mod psi;
mod scan;
mod schedstat;
mod slabinfo;
mod softirqs;
mod source;
mod stat;
mod sysfs;
mod table;
mod thread;
mod vmstat;
mod zones;

pub use thread::MonitorThread;

use crate::root::SysRoot;
use kdyno_model::{Monitor, TestboxError, nearest};
use source::{ProcMonitor, Source};
use std::path::PathBuf;

/// The monitors that run unless a job says otherwise: those that every machine has and that cost
/// little.
pub const DEFAULT_MONITORS: &[&str] = &[
    "proc-vmstat",
    "meminfo",
    "proc-stat",
    "diskstats",
    "interrupts",
    "softirqs",
    "psi",
];

/// All there are.
pub const ALL_MONITORS: &[&str] = &[
    "proc-vmstat",
    "meminfo",
    "proc-stat",
    "diskstats",
    "interrupts",
    "softirqs",
    "psi",
    "cgroup",
    "schedstat",
    "buddyinfo",
    "zoneinfo",
    "numa",
    "cpufreq",
    "cpuidle",
    "thermal",
    "slabinfo",
];

/// Those that have columns for each CPU when they are named with this at their end.
const WITH_EACH: [&str; 4] = ["interrupts", "softirqs", "schedstat", "cpufreq"];
const EACH: &str = ":each";

/// Opened monitors, in the order in which they are sampled.
pub type Monitors = Vec<Box<dyn Monitor>>;

/// Where monitors look.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    /// The machine.
    pub root: &'a SysRoot,
    /// The trial's own cgroups.
    pub cgroups: &'a [PathBuf],
}

/// Opens the named monitors, each once, in the order given (`all` is every one); those that this
/// machine does not offer are left out with a note each.
///
/// # Errors
/// When a name is unknown; the hint has the nearest one.
pub fn available(
    names: &[String],
    watched: Watched<'_>,
) -> Result<(Monitors, Vec<String>), TestboxError> {
    let mut monitors = Vec::new();
    let mut notes = Vec::new();
    let mut seen = Vec::new();
    let names: Vec<&str> = names
        .iter()
        .flat_map(|name| match name.as_str() {
            "all" => ALL_MONITORS.to_vec(),
            name => vec![canonical(name)],
        })
        .collect();
    for name in names.iter().copied() {
        // Each CPU's counts say what their sum says.
        let in_detail = names
            .iter()
            .any(|other| other.strip_suffix(EACH) == Some(name));
        if seen.contains(&name) || in_detail {
            continue;
        }
        seen.push(name);
        match open(name, watched)? {
            Ok(monitor) => monitors.push(monitor),
            Err(error) => notes.push(format!("monitor {name} is not available: {error}")),
        }
    }
    Ok((monitors, notes))
}

type Opened = Result<Box<dyn Monitor>, TestboxError>;

/// Opens a monitor; the outer error is that there is none of this name.
fn open(name: &str, watched: Watched<'_>) -> Result<Opened, TestboxError> {
    fn boxed<S: Source + 'static>(source: S, root: &SysRoot, paths: &[String]) -> Opened {
        if paths.is_empty() {
            return Err(TestboxError::new("this machine has none of it"));
        }
        Ok(Box::new(ProcMonitor::open(source, root, paths)?))
    }
    let root = watched.root;
    let proc = |files: &[&str]| -> Vec<String> {
        files.iter().map(|file| format!("/proc/{file}")).collect()
    };
    let (base, each) = match name.strip_suffix(EACH) {
        Some(base) if WITH_EACH.contains(&base) => (base, true),
        Some(_) => return Err(unknown(name)),
        None => (name, false),
    };
    Ok(match base {
        "proc-vmstat" => boxed(vmstat::VmStat, root, &proc(&["vmstat"])),
        "meminfo" => boxed(meminfo::MemInfo, root, &proc(&["meminfo"])),
        "proc-stat" => {
            let user_hz = clock::user_hz();
            boxed(stat::Stat { user_hz }, root, &proc(&["stat"]))
        }
        "diskstats" => {
            let root_of_sys = root.clone();
            let source = diskstats::DiskStats { root: root_of_sys };
            boxed(source, root, &proc(&["diskstats"]))
        }
        "interrupts" => boxed(
            interrupts::Interrupts { each },
            root,
            &proc(&["interrupts"]),
        ),
        "softirqs" => boxed(softirqs::SoftIrqs { each }, root, &proc(&["softirqs"])),
        "psi" => {
            let files = ["pressure/cpu", "pressure/memory", "pressure/io"];
            boxed(psi::Pressure, root, &proc(&files))
        }
        "cgroup" => {
            let source = cgroup::TrialCgroup::of(watched.cgroups);
            let files = source.files();
            // They are whole paths already.
            boxed(source, &SysRoot::real(), &files)
        }
        "schedstat" => boxed(schedstat::SchedStat { each }, root, &proc(&["schedstat"])),
        "buddyinfo" => boxed(zones::BuddyInfo, root, &proc(&["buddyinfo"])),
        "zoneinfo" => boxed(zones::ZoneInfo, root, &proc(&["zoneinfo"])),
        "numa" => {
            let source = sysfs::NumaStat::of(root);
            let files = source.files();
            boxed(source, root, &files)
        }
        "cpufreq" => {
            let source = sysfs::CpuFreq::of(root, each);
            let files = source.files();
            boxed(source, root, &files)
        }
        "cpuidle" => {
            let source = sysfs::CpuIdle::of(root);
            let files = source.files();
            boxed(source, root, &files)
        }
        "thermal" => {
            let source = sysfs::Thermal::of(root);
            let files = source.files();
            boxed(source, root, &files)
        }
        "slabinfo" => boxed(slabinfo::SlabInfo, root, &proc(&["slabinfo"])),
        _ => return Err(unknown(name)),
    })
}

fn unknown(name: &str) -> TestboxError {
    let all = ALL_MONITORS.join(", ");
    TestboxError::new(format!("there is no monitor `{name}`")).hint(
        match nearest(name, ALL_MONITORS) {
            Some(near) => format!("did you mean `{near}`? There are: {all}"),
            None => format!("there are: {all}"),
        },
    )
}

/// A monitor's name for the name of its file: people write `vmstat` and mean `/proc/vmstat`.
fn canonical(name: &str) -> &str {
    match name {
        "vmstat" => "proc-vmstat",
        "stat" => "proc-stat",
        other => other,
    }
}

#[cfg(test)]
mod tests;
