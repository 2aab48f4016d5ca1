//! What happens on the machine now: load, processes that compute, work of the system, other runs.

use super::{Finding, Level, Sight};
use crate::facts::throttle_events;
use crate::journal;
use crate::lock;
use crate::monitors::clock::{raw_ns, user_hz};
use crate::root::SysRoot;
use std::collections::BTreeMap;

/// What runs and has run at a moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    at_ns: u64,
    /// By number and start, since numbers are used again.
    processes: BTreeMap<(i32, u64), Process>,
    /// The machine's times since boot, in the order of `/proc/stat`, in ticks.
    cpu_ticks: Vec<u64>,
    /// How often CPUs have slowed down for heat since boot, where that is counted.
    pub(super) throttle_events: Option<u64>,
}

#[derive(Clone, Debug)]
struct Process {
    name: String,
    /// User and system time, in ticks.
    ticks: u64,
}

/// A process that has computed between two snapshots.
struct Busy {
    pid: i32,
    name: String,
    /// Share of one CPU.
    share: f64,
}

/// Place of the steal time among the times of `/proc/stat`.
const STEAL: usize = 7;
/// Times of `/proc/stat` that are no part of others: guest time is in user time.
const DISJOINT: usize = 8;

impl Snapshot {
    /// Reads the processes and times of the machine below `root`; what cannot be read is absent.
    #[must_use]
    pub fn take(root: &SysRoot) -> Self {
        Self::at(root, raw_ns())
    }

    pub(super) fn at(root: &SysRoot, at_ns: u64) -> Self {
        let pids = root.names("/proc").into_iter();
        let processes = pids.filter_map(|name| {
            let pid: i32 = name.parse().ok()?;
            let (start, process) = process(&root.line(format!("/proc/{pid}/stat"))?)?;
            Some(((pid, start), process))
        });
        let stat = root.line("/proc/stat").unwrap_or_default();
        let times = stat.split_whitespace().skip(1);
        Self {
            at_ns,
            processes: processes.collect(),
            cpu_ticks: times.map_while(|ticks| ticks.parse().ok()).collect(),
            throttle_events: throttle_events(root),
        }
    }

    /// Processes that computed since `before`, the busiest first, without this one.
    fn busy_since(&self, before: &Self) -> Vec<Busy> {
        let seconds = self.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let busy = self.processes.iter().filter_map(|(key, now)| {
            let ticks = now.ticks.checked_sub(before.processes.get(key)?.ticks)?;
            (ticks > 0 && key.0 != own).then(|| Busy {
                pid: key.0,
                name: now.name.clone(),
                share: ticks as f64 / user_hz() / seconds,
            })
        });
        let mut busy: Vec<Busy> = busy.filter(|busy| busy.share.is_finite()).collect();
        busy.sort_by(|a, b| b.share.total_cmp(&a.share));
        busy
    }

    /// Share of the CPUs' time since `before` that the hypervisor gave to others.
    fn steal_since(&self, before: &Self) -> Option<f64> {
        let spent = |place: usize| {
            let (now, then) = (self.cpu_ticks.get(place)?, before.cpu_ticks.get(place)?);
            now.checked_sub(*then)
        };
        let all: u64 = (0..DISJOINT).filter_map(spent).sum();
        let steal = spent(STEAL)?;
        (all > 0).then(|| steal as f64 / all as f64)
    }
}

/// Start and state of a line of `/proc/PID/stat`. The name, in brackets, may hold anything.
fn process(line: &str) -> Option<(u64, Process)> {
    let (before, behind) = line.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let fields: Vec<&str> = behind.split_whitespace().collect();
    // proc_pid_stat(5) counts from 1 and the first behind the name is the third.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let shown = name
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c });
    Some((
        field(22)?,
        Process {
            name: shown.collect(),
            ticks: field(14)?.checked_add(field(15)?)?,
        },
    ))
}

/// Below this share of a CPU a sample of 200 ms tells nothing: its ticks are 10 ms.
const BUSY_NOTE: f64 = 0.1;
const BUSY_WARNING: f64 = 0.25;
/// Processes that are named.
const NAMED: usize = 3;

pub(super) fn busy_process(sight: &Sight<'_>) -> Option<Finding> {
    let busy = sight.after.busy_since(sight.before);
    let busy: Vec<&Busy> = busy.iter().filter(|busy| busy.share >= BUSY_NOTE).collect();
    let level = match busy.first() {
        None => Level::Ok,
        Some(first) if first.share < BUSY_WARNING => Level::Note,
        Some(_) => Level::Warning,
    };
    let named = busy.iter().take(NAMED).map(|busy| {
        let percent = 100.0 * busy.share;
        format!("{} (pid {}) {percent:.0} %", busy.name, busy.pid)
    });
    let mut what = match busy.len() {
        0 => "no process computes".to_owned(),
        _ => format!(
            "computing now, of one CPU: {}",
            named.collect::<Vec<_>>().join(", ")
        ),
    };
    if let Some(more) = busy.len().checked_sub(NAMED).filter(|more| *more > 0) {
        what.push_str(&format!(" and {more} more"));
    }
    let why = "it takes CPU time, caches and memory bandwidth from what is measured";
    Some(Finding::new("process", level, what, why).hint("end it, or wait until it is done"))
}

pub(super) fn load(sight: &Sight<'_>) -> Option<Finding> {
    let averages = sight.fact("now.load_average")?;
    let load: f64 = averages.split(' ').next()?.parse().ok()?;
    let each = load / f64::from(sight.facts.cpus.max(1));
    let level = if each >= 1.0 {
        Level::Warning
    } else if each >= 0.25 {
        Level::Note
    } else {
        Level::Ok
    };
    let cpus = match sight.facts.cpus {
        1 => "1 CPU".to_owned(),
        cpus => format!("{cpus} CPUs"),
    };
    let what = format!("load average {load} over the last minute, {cpus}");
    let why = "programs wait for CPUs, or have until now: the machine may still settle";
    Some(Finding::new("load", level, what, why).hint("wait until the machine is idle"))
}

/// Programs of the system that work for minutes when their timer says so, and words of their
/// arguments that mean that they only wait.
const MAINTENANCE: [(&str, Option<&str>); 17] = [
    ("apt", None),
    ("apt-get", None),
    ("apt.systemd.dai", None),
    ("dpkg", None),
    ("unattended-upgr", Some("unattended-upgrade-shutdown")),
    ("dnf", None),
    ("dnf-automatic", None),
    ("yum", None),
    ("zypper", None),
    ("updatedb", None),
    ("updatedb.mlocat", None),
    ("updatedb.plocat", None),
    ("mandb", None),
    ("fstrim", None),
    ("e2scrub", None),
    ("logrotate", None),
    ("mdcheck", None),
];

pub(super) fn maintenance(sight: &Sight<'_>) -> Option<Finding> {
    let root = sight.places.root;
    let only_waits = |pid: i32, word: Option<&str>| {
        let arguments = root.read(format!("/proc/{pid}/cmdline"));
        word.is_some_and(|word| arguments.is_ok_and(|arguments| arguments.contains(word)))
    };
    let running = sight.after.processes.iter().filter_map(|(key, process)| {
        let (name, waits) = MAINTENANCE.iter().find(|(name, _)| *name == process.name)?;
        (!only_waits(key.0, *waits)).then(|| format!("{name} (pid {})", key.0))
    });
    let running: Vec<String> = running.collect();
    let why = "packages, indices and scrubs work in bursts, on CPUs and on the disk";
    if running.is_empty() {
        let what = "no package manager or other timer of the system is at work";
        return Some(Finding::new("maintenance", Level::Ok, what, why));
    }
    let what = format!("at work now: {}", running.join(", "));
    Some(
        Finding::new("maintenance", Level::Warning, what, why)
            .hint("wait for it; `systemctl list-timers` shows when such work comes"),
    )
}

/// Steal above this share is told, and warned of.
const STEAL_NOTE: f64 = 0.001;
const STEAL_WARNING: f64 = 0.01;

pub(super) fn steal(sight: &Sight<'_>) -> Option<Finding> {
    let share = sight.after.steal_since(sight.before)?;
    let since_boot = sight.after.steal_since(&Snapshot {
        cpu_ticks: vec![0; DISJOINT],
        ..Snapshot::default()
    })?;
    if since_boot == 0.0 {
        return None;
    }
    let level = if share >= STEAL_WARNING {
        Level::Warning
    } else if share >= STEAL_NOTE || since_boot >= STEAL_NOTE {
        Level::Note
    } else {
        Level::Ok
    };
    let (now, all) = (100.0 * share, 100.0 * since_boot);
    let what =
        format!("the hypervisor gives {now:.1} % of the CPUs to others ({all:.2} % since boot)");
    let why = "programs stand still without knowing, and times grow by what others do";
    Some(Finding::new("steal", level, what, why).hint("use a host of its own, or pinned CPUs"))
}

pub(super) fn other_run(sight: &Sight<'_>) -> Option<Finding> {
    let why = "two runs disturb each other";
    let holder = lock::holder_of_machine(sight.places.root, sight.places.state_dir);
    Some(match holder {
        None => Finding::new(
            "other-run",
            Level::Ok,
            "no other run holds the machine",
            why,
        ),
        Some(pid) => {
            let what = format!("the run of pid {pid} holds the machine");
            Finding::new("other-run", Level::Warning, what, why).hint("wait for it, or end it")
        }
    })
}

pub(super) fn undo_waiting(sight: &Sight<'_>) -> Option<Finding> {
    let why = "settings of a run that died are still changed";
    let (whose, hint) = if journal::is_waiting(sight.places.state_dir) {
        ("a run that died", "run `kdyno restore`, or any other run")
    } else if lock::root_has_something_to_restore() {
        ("a run of root that died", "run `kdyno restore` as root")
    } else {
        let what = "no run that died left settings changed";
        return Some(Finding::new("undo-journal", Level::Ok, what, why));
    };
    let what = format!("{whose} left an undo journal");
    Some(Finding::new("undo-journal", Level::Warning, what, why).hint(hint))
}
