//! `syslatency`: what one more load does to the latency of everybody else.
//!
//! After the system-latency benchmark of a graphics driver's tests, without its hardware: threads
//! sleep until a moment and say how late they woke, or one thread allocates huge pages under memory
//! pressure and says how long each took. Beside them stand loads: pinned, locked, shared-locked,
//! churned or touched memory, file-system traffic, busy CPUs. docs/syslatency.md tells what each
//! stands for and what must be there for an effect.

mod counters;
mod load;
mod options;
mod report;
mod room;
mod thp;
mod timer;

pub use crate::arguments::{Invocation, UsageError};
pub use options::{Mode, Options, help, parse};

use crate::arguments::{FAILED, USAGE, options_or_end};
use crate::sys;
use counters::Counters;
use load::Loads;
use report::Measured;
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use thp::Pressure;

/// What errors begin with.
const NAME: &str = "syslatency";
/// Exit status where what a load needs is not there.
const SKIPPED: u8 = 4;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// What the options ask for would harm the machine, or measure nothing.
    #[error("{reason}\nhint: {hint}")]
    Refused {
        /// Why.
        reason: String,
        /// What to do.
        hint: &'static str,
    },
    /// What an option needs is not there.
    #[error("skipped: {0}")]
    Absent(&'static str),
    /// A call failed.
    #[error("{what}: {error}")]
    Failed {
        /// At what.
        what: &'static str,
        /// What the system says.
        error: io::Error,
    },
}

impl RunError {
    fn at(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Failed { what, error }
    }
}

/// Runs the tool with the arguments that follow its name: exit status 0 when it measured, 1 when it
/// could not, 2 when the arguments are wrong, 4 when what a load needs is not there.
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let options = match options_or_end(NAME, parse(args), help) {
        Ok(options) => options,
        Err(end) => return end,
    };
    let measured = measure(&options).and_then(|text| {
        let written = std::io::Write::write_all(&mut io::stdout().lock(), text.as_bytes());
        written.map_err(RunError::at("standard output"))
    });
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            sys::complain(NAME, &error);
            ExitCode::from(match error {
                RunError::Refused { .. } => USAGE,
                RunError::Absent(_) => SKIPPED,
                RunError::Failed { .. } => FAILED,
            })
        }
    }
}

/// Sets the loads up, measures, and tells.
fn measure(options: &Options) -> Result<String, RunError> {
    room::check(options)?;
    // Should memory run out all the same, this process is the one that goes.
    let _refused = std::fs::write("/proc/self/oom_score_adj", "1000");
    let mut notes = Vec::new();
    let loads = Loads::begin(options, &mut notes)?;
    let (measured, counted) = match options.mode {
        Mode::Timer => counting(|| timer::measure(options, &mut notes))?,
        Mode::HugePages => {
            let mut pressure = Pressure::new(options)?;
            pressure.rounds(options.warm_up_ns)?;
            counting(|| pressure.rounds(options.time_ns).map(Measured::HugePages))?
        }
    };
    loads.end();
    Ok(report::report(options, &measured, &counted, &notes))
}

/// Does something, and says what the kernel counted meanwhile.
fn counting<T>(act: impl FnOnce() -> Result<T, RunError>) -> Result<(T, Counters), RunError> {
    let before = Counters::now();
    let done = act()?;
    Ok((done, Counters::now().since(&before)))
}
