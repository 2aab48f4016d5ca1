//! The guardian: a small process that outlives us by a moment.
//!
//! It is started before the first change and holds the reading end of a pipe and the machine's
//! lock. When the pipe closes without a word, we have died, however that happened: it ends the
//! trial and undoes the session's journal. Trials tell it their process group, the only thing
//! that it remembers.

use crate::journal::Journal;
use crate::lock::{self, MachineLock};
use crate::root::SysRoot;
use crate::sys;
use kdyno_model::TestboxError;
use std::io::{BufRead, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

/// The word that says that we have put everything back ourselves.
const GOODBYE: &str = "goodbye";

/// Our end of the guardian.
#[derive(Debug)]
pub(crate) struct Guardian {
    pipe: ChildStdin,
    process: Child,
}

impl Guardian {
    /// Starts it: `program guardian JOURNAL`; it inherits the locks of machine and journal.
    pub(crate) fn start(
        program: &Path,
        journal: &Journal,
        lock: &MachineLock,
    ) -> Result<Self, TestboxError> {
        let failed = |error: std::io::Error| {
            TestboxError::at(program, format!("cannot start the guardian: {error}"))
                .hint("nothing was changed")
        };
        let mut command = Command::new(program);
        command
            .arg0("kdyno")
            .arg("guardian")
            .arg(journal.path())
            .env_remove(crate::strays::RUN_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let kept = vec![
            lock.share().map_err(failed)?,
            journal.share().map_err(failed)?,
        ];
        sys::detach(&mut command, kept);
        let mut process = command.spawn().map_err(failed)?;
        let pipe = process.stdin.take();
        let pipe = pipe.ok_or_else(|| TestboxError::new("the guardian has no pipe"))?;
        Ok(Self { pipe, process })
    }

    /// Whether it still guards.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Its pid.
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.process.id()).unwrap_or(i32::MAX)
    }

    /// Where a trial's process tells its group.
    pub(crate) fn line(&self) -> std::io::Result<OwnedFd> {
        self.pipe.as_fd().try_clone_to_owned()
    }

    /// Lets it go after everything was put back.
    pub(crate) fn dismiss(mut self) {
        // A guardian that is gone has nothing left to guard.
        let _ = writeln!(self.pipe, "{GOODBYE}");
        drop(self.pipe);
        let _ = self.process.wait();
    }
}

/// The guardian's own program: listens until the end of `input`, then undoes the journal unless
/// it was told goodbye. What cannot be undone stays in the journal for the next start.
#[must_use]
pub fn main(journal: &Path, input: impl BufRead) -> ExitCode {
    let mut group = None;
    // Whatever breaks the pipe means the same as its end.
    for line in input.lines().map_while(Result::ok) {
        if line == GOODBYE {
            return ExitCode::SUCCESS;
        }
        group = line.parse().ok();
    }
    match crate::journal::undo(journal, lock::boot_id(&SysRoot::real()).as_ref(), group) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody listens any more; the next start reads it.
            let log = journal.with_file_name("guardian.log");
            let _ = std::fs::write(log, format!("{error}\n"));
            ExitCode::FAILURE
        }
    }
}
