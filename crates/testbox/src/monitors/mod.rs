//! What the machine did while a trial was measured, sampled from `/proc` by one thread.
//!
//! The harness must not disturb: descriptors stay open, text is parsed by position, rows stay
//! raw until the window is over, and what watching cost is measured and handed over. Profilers
//! and tracers are not here; they run apart from measured runs.

pub mod clock;
mod diskstats;
mod interrupts;
mod meminfo;
mod psi;
mod scan;
mod source;
mod stat;
mod table;
mod thread;
mod vmstat;

pub use thread::MonitorThread;

use crate::root::SysRoot;
use kdyno_model::{Monitor, TestboxError, nearest};
use source::{ProcMonitor, Source};

/// The monitors that run unless a job says otherwise: all there are.
pub const DEFAULT_MONITORS: &[&str] = &[
    "proc-vmstat",
    "meminfo",
    "proc-stat",
    "diskstats",
    "interrupts",
    "psi",
];

/// Opened monitors, in the order in which they are sampled.
pub type Monitors = Vec<Box<dyn Monitor>>;

/// The files that a monitor reads; `None` when there is no such monitor.
#[must_use]
pub fn files(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "proc-vmstat" => &["/proc/vmstat"],
        "meminfo" => &["/proc/meminfo"],
        "proc-stat" => &["/proc/stat"],
        "diskstats" => &["/proc/diskstats"],
        "interrupts" => &["/proc/interrupts"],
        "psi" => &[
            "/proc/pressure/cpu",
            "/proc/pressure/memory",
            "/proc/pressure/io",
        ],
        _ => return None,
    })
}

/// Opens the named monitors, each once, in the order given; those that this kernel does not
/// offer are left out with a note each.
///
/// # Errors
/// When a name is unknown; the hint has the nearest one.
pub fn available(
    names: &[String],
    root: &SysRoot,
) -> Result<(Monitors, Vec<String>), TestboxError> {
    let mut monitors = Vec::new();
    let mut notes = Vec::new();
    let names: Vec<&str> = names.iter().map(|name| canonical(name)).collect();
    for (index, name) in names.iter().copied().enumerate() {
        if names[..index].contains(&name) {
            continue;
        }
        let paths = files(name).ok_or_else(|| unknown(name))?;
        match open(name, root, paths) {
            Ok(monitor) => monitors.push(monitor),
            Err(error) => notes.push(format!("monitor {name} is not available: {error}")),
        }
    }
    Ok((monitors, notes))
}

fn open(name: &str, root: &SysRoot, paths: &[&str]) -> Result<Box<dyn Monitor>, TestboxError> {
    fn boxed<S: Source + 'static>(
        source: S,
        root: &SysRoot,
        paths: &[&str],
    ) -> Result<Box<dyn Monitor>, TestboxError> {
        Ok(Box::new(ProcMonitor::open(source, root, paths)?))
    }
    match name {
        "proc-vmstat" => boxed(vmstat::VmStat, root, paths),
        "meminfo" => boxed(meminfo::MemInfo, root, paths),
        "proc-stat" => {
            let user_hz = clock::user_hz();
            boxed(stat::Stat { user_hz }, root, paths)
        }
        "diskstats" => {
            let root_of_sys = root.clone();
            boxed(diskstats::DiskStats { root: root_of_sys }, root, paths)
        }
        "interrupts" => boxed(interrupts::Interrupts, root, paths),
        "psi" => boxed(psi::Pressure, root, paths),
        _ => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> TestboxError {
    let all = DEFAULT_MONITORS.join(", ");
    TestboxError::new(format!("there is no monitor `{name}`")).hint(
        match nearest(name, DEFAULT_MONITORS) {
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
