//! The machine under test, whatever it is.

use crate::{BoxFacts, Measurement, SessionId, Setting, Trial};
use std::path::{Path, PathBuf};

/// A machine on which trials run: this one, a virtual one, later a remote one.
///
/// The machine is put back as it was found: by `recover` at the end, by the implementation's own
/// safety net when this process dies.
pub trait Testbox {
    /// Its name in tables.
    fn name(&self) -> &str;

    /// What it is and how it is set up at this moment.
    ///
    /// # Errors
    /// When the machine cannot be read at all; a single unreadable fact is absent instead.
    fn facts(&mut self) -> Result<BoxFacts, TestboxError>;

    /// Reserves the machine for a plan and checks that each setting can be made.
    ///
    /// # Errors
    /// When another run holds it, or a setting is unknown or not allowed.
    fn prepare(&mut self, preparation: &Preparation) -> Result<(), TestboxError>;

    /// Executes one trial; raw output goes to `stdout` and `stderr` below `raw_dir`.
    ///
    /// # Errors
    /// Only when *we* could not do our work: a failed program is an outcome.
    fn run(&mut self, trial: &Trial, raw_dir: &Path) -> Result<Measurement, TestboxError>;

    /// Ends what still runs, puts every setting back and gives the machine free.
    ///
    /// # Errors
    /// When something could not be put back; it names what.
    fn recover(&mut self) -> Result<Recovery, TestboxError>;
}

/// What a plan wants of a machine.
#[derive(Clone, Debug, Default)]
pub struct Preparation {
    /// For whom the machine is reserved.
    pub session: Option<SessionId>,
    /// Every setting that some trial makes.
    pub settings: Vec<Setting>,
    /// Take the machine although another run holds it.
    pub force: bool,
}

/// What `recover` did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Settings put back, as `path: value`.
    pub restored: Vec<String>,
    /// Settings left alone since somebody else changed them meanwhile.
    pub left_alone: Vec<String>,
    /// cgroups and processes ended and removed.
    pub removed: Vec<String>,
}

/// A failure of ours on a testbox, with what it was about and what the user can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", path.as_ref().map(|p| format!("{}: ", p.display())).unwrap_or_default())]
pub struct TestboxError {
    /// The file or device it is about.
    pub path: Option<PathBuf>,
    /// What went wrong.
    pub message: String,
    /// What the user can do.
    pub hint: Option<String>,
}

impl TestboxError {
    /// A failure about no file in particular.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            path: None,
            message: message.into(),
            hint: None,
        }
    }

    /// A failure about a file.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>, message: impl ToString) -> Self {
        Self {
            path: Some(path.into()),
            message: message.to_string(),
            hint: None,
        }
    }

    /// With advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
