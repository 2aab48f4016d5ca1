//! The run directory: the one owner of the truth on disk.
//!
//! A plan is a directory with the plan's text and one directory per executed trial. A run
//! directory is written once and sealed by a `MANIFEST` that names the size and SHA-256 of every
//! file; it is complete if and only if that seal is there and verifies, so a crash at any byte
//! leaves a directory that says by itself that it is incomplete. `docs/run-directory.md`
//! describes the layout for people and for other tools.
//!
//! The crate does not extract figures, does not index and does not decide what a run means; it
//! never reads the environment (the home's path is an argument) and takes no lock: who may write
//! a plan is decided by whoever holds the testbox.
#![warn(missing_docs)]

#[cfg(test)]
mod crash_tests;
mod disk;
mod error;
mod event_log;
mod home;
mod import;
mod manifest;
mod reader;
mod verify;
mod writer;

pub use error::{Problem, ProblemKind, RundirError};
pub use event_log::EventLog;
pub use home::{Home, Listing, PlanDir, RunDir};
pub use import::Imported;
pub use reader::{RunReader, State};
pub use verify::{Verified, verify};
pub use writer::{Results, RunWriter};

/// The first line of every run directory's `format` file, without its number.
const FORMAT_NAME: &str = "kdyno-run";

/// The layout that this version writes, and the newest that it reads.
const FORMAT_VERSION: u64 = 1;

/// File names inside a run directory; a large one is stored as `NAME.gz`.
mod name {
    pub(crate) const FORMAT: &str = "format";
    pub(crate) const CASE: &str = "case";
    pub(crate) const TRIAL: &str = "trial.json";
    pub(crate) const RAW: &str = "raw";
    pub(crate) const STDOUT: &str = "raw/stdout";
    pub(crate) const STDERR: &str = "raw/stderr";
    pub(crate) const MEASUREMENT: &str = "measurement.json";
    pub(crate) const SERIES: &str = "series.json";
    pub(crate) const READINGS: &str = "readings.json";
    pub(crate) const RECORD: &str = "record.json";
    pub(crate) const MANIFEST: &str = "MANIFEST";
    pub(crate) const MANIFEST_TMP: &str = "MANIFEST.tmp";
}
