//! What can go wrong with the index, and what the user can do about it.

use std::path::{Path, PathBuf};

/// A failure of the index. None of them loses data: the run directories hold it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file is damaged, or is no index.
    #[error("{}: not a usable index: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// How it was found.
        reason: String,
    },
    /// A newer kdyno made it.
    #[error("{}: index version {found}, and this kdyno knows up to {known}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest that this version knows.
        known: i64,
    },
    /// It cannot be opened, created or written.
    #[error("{}: cannot open or write the index: {reason}", path.display())]
    Access {
        /// The file.
        path: PathBuf,
        /// The system's or the database's reason.
        reason: String,
    },
    /// Another process has been writing to it for too long.
    #[error("{}: another process is writing to the index", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("{}: the disk is full", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// A run holds a number that must not be stored.
    #[error("run {run}: metric {metric} cannot be stored: {reason}")]
    InvalidRun {
        /// The run.
        run: String,
        /// The metric.
        metric: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// Several runs end like this.
    #[error("several runs end in `{suffix}`")]
    Ambiguous {
        /// What was given.
        suffix: String,
    },
    /// A selection names more things than one query can.
    #[error("a selection of {given} names; at most {limit} are possible")]
    FilterTooLong {
        /// How many were given.
        given: usize,
        /// How many are possible.
        limit: usize,
    },
    /// Anything else that the database says.
    #[error("{}: {reason}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// Its words.
        reason: String,
    },
}

impl StoreError {
    /// What the user can do, where there is something.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Corrupt { .. } => Some("move it aside and rebuild it from the run directories"),
            Self::Newer { .. } => Some("use a newer kdyno, or move the index aside and rebuild it"),
            Self::Access { .. } => Some("choose a home directory that this user may write"),
            Self::Busy { .. } => Some("wait for the other kdyno to end and repeat"),
            Self::Full { .. } => Some("free some space; no run is lost, the index is derived"),
            Self::Ambiguous { .. } => Some("give more digits of the run id"),
            Self::FilterTooLong { .. } => Some("select whole plans instead of single runs"),
            Self::InvalidRun { .. } | Self::Database { .. } => None,
        }
    }

    /// Sorts what the database says about the index at `path` by what can be done about it.
    pub(crate) fn from_database(path: &Path, error: &sqlx::Error) -> Self {
        let (path, reason) = (path.to_owned(), error.to_string());
        match error {
            // The queries are fixed, so values and columns that do not fit are the file's fault.
            sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::ColumnIndexOutOfBounds { .. }
            | sqlx::Error::Decode(_) => Self::Corrupt { path, reason },
            sqlx::Error::Database(said) => {
                let code: Option<i32> = said.code().and_then(|code| code.parse().ok());
                // Primary result codes, https://www.sqlite.org/rescode.html: the low byte.
                match code.map(|code| code & 0xff) {
                    Some(1 | 11 | 26) => Self::Corrupt { path, reason },
                    Some(5 | 6) => Self::Busy { path },
                    Some(3 | 8 | 14 | 23) => Self::Access { path, reason },
                    Some(13) => Self::Full { path },
                    _ => Self::Database { path, reason },
                }
            }
            _ => Self::Database { path, reason },
        }
    }
}
