//! What can go wrong with a run directory, and what the user can do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A failure to write or read plans and runs.
#[derive(Debug, thiserror::Error)]
pub enum RundirError {
    /// The file system refused something.
    #[error("{}: cannot {action}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or directory it is about.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A plan or run of this id is already there.
    #[error("{}: it is already there", path.display())]
    Exists {
        /// Its directory.
        path: PathBuf,
    },
    /// A plan or run of this id is here, and is another one.
    #[error("{}: what is to be imported has the same id and another content", path.display())]
    Differs {
        /// What is here.
        path: PathBuf,
    },
    /// There is no such plan or run.
    #[error("{}: there is none", path.display())]
    NotFound {
        /// Where it would be.
        path: PathBuf,
    },
    /// A newer kdyno wrote it.
    #[error("{}: run format {found}, and this kdyno reads up to {known}", path.display())]
    NewerFormat {
        /// The run directory.
        path: PathBuf,
        /// Its format version.
        found: u64,
        /// The newest that this version knows.
        known: u64,
    },
    /// It was never sealed, and what was asked for is not in it.
    #[error("{}: the run is incomplete: {reason}", path.display())]
    Incomplete {
        /// The run directory.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// It was sealed and is no longer what was sealed.
    #[error("{}: damaged: {problem}", path.display())]
    Damaged {
        /// The run directory.
        path: PathBuf,
        /// The first thing found.
        problem: Problem,
    },
    /// A file is larger than anything that is read whole.
    #[error("{}: larger than {cap_bytes} bytes when unpacked", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        cap_bytes: u64,
    },
    /// A file does not hold what its name promises.
    #[error("{}: line {line}: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Line of the file, from 1; 0 when it has no lines.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A reading holds a number that must not be stored.
    #[error("{}: reading {metric} cannot be stored: {reason}", path.display())]
    InvalidReading {
        /// The run directory.
        path: PathBuf,
        /// Its metric.
        metric: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// Something lies in the directory that a seal cannot name.
    #[error("{}: neither a regular file nor a directory with a plain name", path.display())]
    Unsealable {
        /// What it is.
        path: PathBuf,
    },
}

impl RundirError {
    /// What the user can do, where there is something.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(
                    "free some space and repeat the trial; the unfinished run is left as it is",
                ),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some("choose a home directory that this user may write")
                }
                _ => None,
            },
            Self::NewerFormat { .. } => {
                Some("read it with the kdyno that wrote it, or a newer one")
            }
            Self::Damaged { .. } => Some(
                "`kdyno index rebuild` names every damaged run; restore it from a copy or run it again",
            ),
            Self::Incomplete { .. } => Some("run the trial again; its raw output is still there"),
            Self::TooLarge { .. } => {
                Some("look at the file itself, with zcat if its name ends in .gz")
            }
            Self::Exists { .. } => Some("plans and runs are written once; take a new id"),
            Self::Differs { .. } => Some("one of the two was changed; import it into another home"),
            Self::NotFound { .. } => Some("list the plans of this home"),
            Self::Unsealable { .. } => {
                Some("keep links, sockets and devices out of the raw directory")
            }
            Self::Content { .. } | Self::InvalidReading { .. } => None,
        }
    }

    /// The message with its cause, where it goes on as text and its chain is lost.
    pub(crate) fn with_cause(&self) -> String {
        match self {
            Self::Io { source, .. } => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }

    /// A failure of the file system at `path`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// One thing that is wrong with a run directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, relative to the run directory.
    pub file: String,
    /// What is wrong with it.
    pub kind: ProblemKind,
}

/// The ways in which a file of a run directory can be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// Sealed, but no longer there.
    Missing,
    /// There, but never sealed.
    Extra,
    /// Its size is another.
    Size {
        /// Bytes when it was sealed.
        sealed: u64,
        /// Bytes now.
        found: u64,
    },
    /// Its size is right and its content is not.
    Content,
    /// It cannot be read, for this reason.
    Unreadable(String),
    /// It does not say what it must say.
    Malformed(&'static str),
    /// The run was never sealed, for this reason.
    Unsealed(String),
    /// A newer kdyno wrote the directory, in this format version.
    Newer(u64),
}

impl Problem {
    pub(crate) fn new(file: impl Into<String>, kind: ProblemKind) -> Self {
        Self {
            file: file.into(),
            kind,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        match &self.kind {
            ProblemKind::Missing => f.write_str("missing"),
            ProblemKind::Extra => f.write_str("not part of the run"),
            ProblemKind::Size { sealed, found } => {
                write!(f, "{found} bytes, sealed with {sealed}")
            }
            ProblemKind::Content => f.write_str("its content was changed"),
            ProblemKind::Unreadable(why) => write!(f, "cannot be read: {why}"),
            ProblemKind::Malformed(why) => f.write_str(why),
            ProblemKind::Unsealed(why) => write!(f, "never sealed: {why}"),
            ProblemKind::Newer(version) => write!(f, "run format {version} is newer"),
        }
    }
}
