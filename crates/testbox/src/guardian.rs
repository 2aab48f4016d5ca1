//! The guardian: a small process that outlives us by a moment.
//!
//! It is started before the first change and holds the reading end of a pipe and the machine's
//! lock. When the pipe closes without a word, we have died, however that happened: it ends the
//! trial and undoes the session's journal. It does nothing else and holds no state of its own.

use crate::{lock, root::SysRoot, sys};
use kdyno_model::TestboxError;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

/// The word that says that we have put everything back ourselves.
const GOODBYE: &[u8] = b"goodbye\n";

/// Our end of the guardian.
#[derive(Debug)]
pub(crate) struct Guardian {
    pipe: ChildStdin,
    process: Child,
}

impl Guardian {
    /// Starts it: `program guardian JOURNAL`, the lock handed on as its standard output.
    pub(crate) fn start(
        program: &Path,
        journal: &Path,
        lock: &lock::MachineLock,
    ) -> Result<Self, TestboxError> {
        let failed = |error: std::io::Error| {
            TestboxError::at(program, format!("cannot start the guardian: {error}"))
                .hint("nothing was changed")
        };
        let mut command = Command::new(program);
        command
            .arg("guardian")
            .arg(journal)
            .env_remove(crate::strays::RUN_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(lock.share().map_err(failed)?)
            .stderr(Stdio::null());
        sys::detach(&mut command);
        let mut process = command.spawn().map_err(failed)?;
        let pipe = process.stdin.take();
        let pipe = pipe.ok_or_else(|| TestboxError::new("the guardian has no pipe"))?;
        Ok(Self { pipe, process })
    }

    /// Lets it go after everything was put back.
    pub(crate) fn dismiss(mut self) {
        // A guardian that is gone has nothing left to guard.
        let _ = self.pipe.write_all(GOODBYE);
        drop(self.pipe);
        let _ = self.process.wait();
    }
}

/// The guardian's own program: waits for the end of `input`, then undoes the journal unless it
/// was told goodbye. What cannot be undone stays in the journal for the next start.
#[must_use]
pub fn main(journal: &Path, mut input: impl Read) -> ExitCode {
    let mut heard = Vec::new();
    // Whatever breaks the pipe means the same as its end.
    let _ = input
        .by_ref()
        .take(GOODBYE.len() as u64)
        .read_to_end(&mut heard);
    if heard == GOODBYE {
        return ExitCode::SUCCESS;
    }
    match crate::journal::undo(journal, lock::boot_id(&SysRoot::real()).as_ref()) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody listens any more; the next start reads it.
            let log = journal.with_file_name("guardian.log");
            let _ = std::fs::write(log, format!("{error}\n"));
            ExitCode::FAILURE
        }
    }
}
