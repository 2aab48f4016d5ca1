//! Processes of a trial, wherever they went: every process that a trial starts carries the run
//! in its environment, so that one that left the process group is found too.

use crate::sys;
use std::time::{Duration, Instant};

/// The variable that all processes of a run carry.
pub(crate) const RUN_VARIABLE: &str = "KDYNO_RUN_ID";

/// How long ended processes are waited for.
const PATIENCE: Duration = Duration::from_millis(800);

/// Ends every process of the run and returns those that were there. `leader` is its process
/// group, which is asked first since that needs no walk.
pub(crate) fn end_all(run: &str, leader: i32) -> Vec<i32> {
    let begun = Instant::now();
    let mut ended = Vec::new();
    loop {
        let members = processes_of(run);
        if members.is_empty() || begun.elapsed() > PATIENCE {
            return ended;
        }
        if members.contains(&leader) {
            sys::signal_group(leader, libc::SIGKILL);
        }
        for pid in members {
            sys::kill_process(pid);
            if !ended.contains(&pid) {
                ended.push(pid);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The living processes that carry the run in their environment.
pub(crate) fn processes_of(run: &str) -> Vec<i32> {
    let wanted = format!("{RUN_VARIABLE}={run}").into_bytes();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            // A zombie has an empty environment and is nobody to end.
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == wanted)
        })
        .collect()
}
