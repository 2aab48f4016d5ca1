//! Processes of a trial, wherever they went: every process that a trial starts carries the run
//! in its environment, so that one that left the process group is found too.

use crate::sys;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// The variable that all processes of a run carry.
pub(crate) const RUN_VARIABLE: &str = "KDYNO_RUN_ID";

/// How long the kernel may take to let go of ended processes: freeing hundreds of gigabytes does.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Whose processes are meant.
#[derive(Debug, Default)]
pub(crate) struct Trials {
    /// Runs, as their processes carry them.
    pub runs: HashSet<String>,
    /// The process group of the last program, when it was started so recently that its number
    /// cannot be somebody else's by now: it holds processes that cleared their environment.
    pub group: Option<i32>,
}

impl Trials {
    /// Those of one run.
    pub(crate) fn of_run(run: &str) -> Self {
        Self {
            runs: HashSet::from([run.to_owned()]),
            group: None,
        }
    }

    /// Tells every process of these trials to end, in one walk; returns who was there.
    pub(crate) fn kill(&self) -> Vec<i32> {
        if let Some(group) = self.group {
            sys::signal_group(group, libc::SIGKILL);
        }
        let members = if self.runs.is_empty() {
            Vec::new()
        } else {
            self.processes()
        };
        members.iter().copied().for_each(sys::kill_process);
        members
    }

    /// Ends them and waits until they are gone, within the kernel's patience; returns who was
    /// there. Again and again, since a process may fork while it is killed, and once more when
    /// nobody is seen: the environment of one that is just being executed is empty.
    pub(crate) fn end(&self) -> Vec<i32> {
        const QUIET_WALKS: usize = 3;
        let begun = Instant::now();
        let mut ended: Vec<i32> = Vec::new();
        let mut quiet = 0;
        while quiet < QUIET_WALKS && begun.elapsed() < PATIENCE {
            let members = self.kill();
            quiet = if members.is_empty() { quiet + 1 } else { 0 };
            for pid in members {
                if !ended.contains(&pid) {
                    ended.push(pid);
                }
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        ended
    }

    /// The living processes that carry one of the runs in their environment. A zombie's is empty:
    /// it is nobody to end.
    fn processes(&self) -> Vec<i32> {
        let wanted: HashSet<Vec<u8>> = self
            .runs
            .iter()
            .map(|run| format!("{RUN_VARIABLE}={run}").into_bytes())
            .collect();
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
            .filter(|pid| {
                let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment
                    .split(|byte| *byte == 0)
                    .any(|variable| wanted.contains(variable))
            })
            .collect()
    }
}

/// Ends and reaps the processes that were left to us: whoever loses its parent during a trial
/// becomes our child, however it hides. Those `but` are spared: the guardian, and children that
/// we had before (a shell that executes us leaves us its own). Returns who was there; one that
/// we may not end is left after a while.
pub(crate) fn end_orphans(but: &HashSet<i32>) -> Vec<i32> {
    const NOT_OURS_TO_END: Duration = Duration::from_millis(500);
    let begun = Instant::now();
    let mut ended = Vec::new();
    loop {
        let orphans: Vec<i32> = children()
            .into_iter()
            .filter(|pid| !but.contains(pid))
            .collect();
        if orphans.is_empty() || begun.elapsed() > NOT_OURS_TO_END {
            return ended;
        }
        for pid in orphans {
            sys::kill_process(pid);
            if sys::try_reap(pid) {
                ended.push(pid);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Our children: the processes whose parent is this process.
pub(crate) fn children() -> HashSet<i32> {
    let us = std::process::id().to_string();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return HashSet::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // The command in brackets may hold anything; behind it come the state and the parent.
            let behind = stat
                .rsplit_once(')')
                .map(|(_, behind)| behind)
                .unwrap_or_default();
            behind.split_whitespace().nth(1) == Some(us.as_str())
        })
        .collect()
}
