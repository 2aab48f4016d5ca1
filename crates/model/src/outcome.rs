//! What became of a trial. A failed run is a result, not an error of ours.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The part of a trial in which something ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Settings, cgroup, needed files.
    Setup,
    /// The program itself.
    Test,
    /// Reading figures from its output.
    Extract,
}

/// Why a run counts as failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailReason {
    /// The program could not be started.
    NotStarted(String),
    /// It ended with this exit code.
    ExitCode(i32),
    /// This signal ended it.
    Signal(i32),
    /// It ended well but printed no figure that the rules know.
    NoMetric,
    /// A setting could not be made.
    Setting(String),
    /// A figure could not be read.
    BadFigure(String),
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Outcome {
    /// It ran and gave figures.
    Done,
    /// It failed in `stage`.
    Failed {
        /// Where.
        stage: Stage,
        /// Why.
        reason: FailReason,
    },
    /// It ran longer than allowed and was ended.
    TimedOut {
        /// The limit in milliseconds.
        limit_ms: u64,
    },
    /// The kernel's out-of-memory killer ended one of its processes.
    OutOfMemory,
    /// We were told to stop while it ran.
    Interrupted,
    /// The run directory was never completed: a crash of ours or of the machine.
    Incomplete,
    /// It ran, but its figures must not be used.
    Invalid {
        /// Why not.
        reason: String,
    },
    /// The testbox was lost, not the test.
    Infrastructure {
        /// What was lost.
        reason: String,
    },
    /// It was not run, since the machine does not meet a need.
    Skipped {
        /// Which.
        reason: String,
    },
}

impl Outcome {
    /// Whether its figures may be compared.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }

    /// Whether the variant is to blame: it counts in `fail:runs`.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        matches!(
            self,
            Self::Failed { .. } | Self::TimedOut { .. } | Self::OutOfMemory
        )
    }

    /// The one word of it, as `list` and the index have it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed { .. } => "failed",
            Self::TimedOut { .. } => "timed-out",
            Self::OutOfMemory => "out-of-memory",
            Self::Interrupted => "interrupted",
            Self::Incomplete => "incomplete",
            Self::Invalid { .. } => "invalid",
            Self::Infrastructure { .. } => "infrastructure",
            Self::Skipped { .. } => "skipped",
        }
    }
}

impl fmt::Display for FailReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(why) => write!(f, "could not be started: {why}"),
            Self::ExitCode(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "ended by signal {signal}"),
            Self::NoMetric => f.write_str("printed no figure that the rules know"),
            Self::Setting(why) | Self::BadFigure(why) => f.write_str(why),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { reason, .. } => write!(f, "failed: {reason}"),
            #[expect(
                clippy::cast_precision_loss,
                reason = "a time limit, shown to a tenth of a second"
            )]
            Self::TimedOut { limit_ms } => {
                write!(f, "timed out after {:.1} s", *limit_ms as f64 / 1e3)
            }
            Self::OutOfMemory => f.write_str("out of memory: the kernel killed a process of it"),
            Self::Invalid { reason } => write!(f, "invalid: {reason}"),
            Self::Infrastructure { reason } => write!(f, "testbox lost: {reason}"),
            Self::Skipped { reason } => write!(f, "skipped: {reason}"),
            other => f.write_str(other.word()),
        }
    }
}
