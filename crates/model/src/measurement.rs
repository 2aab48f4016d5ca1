//! What a testbox hands back after a trial; raw output is in files beside it.

use crate::{BoxFacts, ClockKind, Outcome, SeriesSet};
use serde::{Deserialize, Serialize};

/// The measured window, from the start of the first round to the end of the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Start on `CLOCK_MONOTONIC_RAW`, nanoseconds.
    pub start_raw_ns: u64,
    /// End on the same clock.
    pub end_raw_ns: u64,
    /// Start as wall-clock time, nanoseconds since 1970, for people and for logs.
    pub start_unix_ns: i64,
    /// Start on `CLOCK_MONOTONIC`, the clock of programs that print times, nanoseconds; `None` in
    /// runs of older versions.
    #[serde(default)]
    pub start_monotonic_ns: Option<u64>,
}

impl Window {
    /// Its length in nanoseconds; 0 when it never opened.
    #[must_use]
    pub fn length_ns(&self) -> u64 {
        self.end_raw_ns.saturating_sub(self.start_raw_ns)
    }
}

/// Resource usage of a process tree as `wait4` reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in user mode, nanoseconds.
    pub user_ns: u64,
    /// CPU time in the kernel, nanoseconds.
    pub system_ns: u64,
    /// Largest resident set, bytes.
    pub max_rss_bytes: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Switches because the program waited.
    pub voluntary_switches: u64,
    /// Switches because its time was up.
    pub involuntary_switches: u64,
}

/// One execution of the program inside a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// Start, nanoseconds after the window's start.
    pub start_ns: u64,
    /// End, nanoseconds after the window's start.
    pub end_ns: u64,
    /// Where its standard output begins in `raw/stdout`, bytes.
    pub stdout_from: u64,
    /// Where it ends.
    pub stdout_to: u64,
    /// Where its standard error begins in `raw/stderr`, bytes.
    pub stderr_from: u64,
    /// Where it ends.
    pub stderr_to: u64,
    /// What it used.
    pub usage: Usage,
}

/// What watching cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonitorOverhead {
    /// CPU time of the monitor thread in the window, nanoseconds.
    pub cpu_ns: u64,
    /// Its wake-ups in the window.
    pub wakeups: u64,
    /// Samples taken, over all monitors.
    pub samples: u64,
    /// CPU time of the thread that starts the rounds and waits for them, nanoseconds.
    #[serde(default)]
    pub runner_cpu_ns: u64,
}

/// Everything a testbox knows of one executed trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// How it ended, as far as the testbox can tell.
    pub outcome: Outcome,
    /// The measured window.
    pub window: Window,
    /// On which clock it was measured.
    pub clock: ClockKind,
    /// The executions of the program, in order.
    pub rounds: Vec<Round>,
    /// The machine before the trial, settings made.
    pub facts_before: BoxFacts,
    /// The machine after it, settings still made.
    pub facts_after: BoxFacts,
    /// Kernel-log lines of warning level or worse that appeared meanwhile.
    pub kernel_log: Vec<String>,
    /// What the monitors saw.
    pub series: Vec<SeriesSet>,
    /// What watching cost.
    pub overhead: MonitorOverhead,
    /// What could not be done as planned but did not end the trial: no cgroup, a monitor lost.
    pub notes: Vec<String>,
}
