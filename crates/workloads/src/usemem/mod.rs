//! `usemem`: tasks that fault in, write or read memory, and say how fast.
//!
//! The surface (options, result lines, what is counted and when the clock starts) is that of the
//! vm-scalability suite's tool of this name, so that its cases and its parsers work unchanged.
//! Two things differ on purpose: a failed task fails the whole run, and the loop over the words
//! tests no option, so that memory is measured and not the loop; throughput is therefore never
//! compared with that of the other tool.
//!
//! Also other than there: moving a mapping that the parent made (`-E -P`) is refused; `--touch-alloc`
//! touches a word of each page; nothing is printed while a task waits for a signal, and
//! `--signal-fork` forks when it came.
//!
//! Options that the suite's tool lacks stand for other tools of the suite: `--read-file` and
//! `--direct-write` for `dd`, `--truncate` for `rm`, `--migrate`, `--mbind` and `--ksm` for the
//! programs of these names, `--pool-cycles` for a shell loop. Each prints a line of its own form.

mod files;
mod hugetlb;
mod ksm;
mod options;
mod random;
mod run;
mod sweep;
mod task;

pub use crate::arguments::{Invocation, UsageError};
pub use options::{AfterSignal, Options, help, parse};
pub use run::RunError;

use crate::arguments::{FAILED, options_or_end};
use crate::sys;
use std::ffi::OsString;
use std::process::ExitCode;

/// What errors begin with.
const NAME: &str = "usemem";

/// Runs the tool with the arguments that follow its name: exit status 0 when every task did its
/// work, 1 when one failed, 2 when the arguments are wrong.
///
/// It forks, so the calling process must not have started a thread yet; and what the caller
/// touched before is copied on write by each task, so call it early.
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let options = match options_or_end(NAME, parse(args), help) {
        Ok(options) => options,
        Err(end) => return end,
    };
    match run::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            sys::complain(NAME, &error);
            ExitCode::from(FAILED)
        }
    }
}
