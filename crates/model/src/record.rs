//! What is kept of one run.

use crate::{ClockKind, Outcome, Reading, RunId, Trial};
use serde::{Deserialize, Serialize};

/// Where a run comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// kdyno measured it.
    #[default]
    Measured,
    /// It was read from somebody else's results.
    Import,
}

/// The core of a run directory: what the index, `list` and `compare` work from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Its identity.
    pub run_id: RunId,
    /// Measured or imported.
    #[serde(default)]
    pub origin: Origin,
    /// The plan's entry with boot and session filled in.
    pub trial: Trial,
    /// `uname -r` of the kernel that ran it.
    pub kernel_release: String,
    /// Start, nanoseconds since 1970.
    pub start_unix_ns: i64,
    /// Length of the measured window, nanoseconds.
    pub window_ns: u64,
    /// The clock of all its readings.
    pub clock: ClockKind,
    /// How it ended.
    pub outcome: Outcome,
    /// What it yielded; empty when it failed early.
    pub readings: Vec<Reading>,
    /// What did not go as planned without ending it.
    #[serde(default)]
    pub notes: Vec<String>,
}
