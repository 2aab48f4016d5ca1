//! What can go wrong with the index, and what the user can do about it.

use crate::place::Place;
use crate::sql::engine::{Fault, fault, reason};
use std::io;

/// A failure of the index. None of them loses data: the run directories hold it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file is damaged, or is no index.
    #[error("{place}: not a usable index: {reason}")]
    Corrupt {
        /// Where the index is.
        place: Place,
        /// How it was found.
        reason: String,
    },
    /// A newer kdyno made it.
    #[error("{place}: index version {found}, and this kdyno knows up to {known}")]
    Newer {
        /// Where the index is.
        place: Place,
        /// Its version.
        found: i64,
        /// The newest that this version knows.
        known: i64,
    },
    /// It cannot be opened, created or written.
    #[error("{place}: cannot open or write the index: {reason}")]
    Access {
        /// Where the index is.
        place: Place,
        /// The system's or the database's reason.
        reason: String,
    },
    /// Another process has been writing to it for too long.
    #[error("{place}: another process is writing to the index")]
    Busy {
        /// Where the index is.
        place: Place,
    },
    /// The disk is full.
    #[error("{place}: the disk is full")]
    Full {
        /// Where the index is.
        place: Place,
    },
    /// An address leads to no PostgreSQL server.
    #[error("not an address of a PostgreSQL database: {reason}")]
    Address {
        /// What is wrong with it; the address may hold a password and is not shown.
        reason: String,
    },
    /// A run holds a text that PostgreSQL cannot store.
    #[error("run {run}: {field} holds a NUL character, which PostgreSQL cannot store")]
    Nul {
        /// The run.
        run: String,
        /// The field of the run.
        field: &'static str,
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
    #[error("{place}: {reason}")]
    Database {
        /// Where the index is.
        place: Place,
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
            Self::Newer { .. } => Some("use a newer kdyno, or `kdyno index rebuild` for this one"),
            Self::Access {
                place: Place::File(_) | Place::Memory,
                ..
            } => Some("choose a home directory that this user may write"),
            Self::Access {
                place: Place::Postgres(_),
                ..
            } => Some(
                "see that the server runs and lets this user in; no run is lost, the index is derived",
            ),
            Self::Address { .. } => {
                Some("write postgres://user@host/database, or postgres:///database?host=/directory")
            }
            Self::Nul { .. } => Some("keep the index of this home in a file"),
            Self::Busy { .. } => Some("wait for the other kdyno to end and repeat"),
            Self::Full { .. } => Some("free some space; no run is lost, the index is derived"),
            Self::Ambiguous { .. } => Some("give more digits of the run id"),
            Self::FilterTooLong { .. } => Some("select whole plans instead of single runs"),
            Self::InvalidRun { .. } | Self::Database { .. } => None,
        }
    }

    /// Sorts what the database says about the index at `place` by what can be done about it.
    pub(crate) fn from_database(place: &Place, error: &sqlx::Error) -> Self {
        let (fault, place, reason) = (fault(place, error), place.clone(), reason(place, error));
        match fault {
            Fault::Corrupt => Self::Corrupt { place, reason },
            Fault::Busy => Self::Busy { place },
            Fault::Access | Fault::Lost => Self::Access { place, reason },
            Fault::Full => Self::Full { place },
            Fault::Other => Self::Database { place, reason },
        }
    }
}

/// What the system says about the index at a place.
pub(crate) fn access(place: &Place) -> impl Fn(io::Error) -> StoreError {
    |error| StoreError::Access {
        place: place.clone(),
        reason: error.to_string(),
    }
}
