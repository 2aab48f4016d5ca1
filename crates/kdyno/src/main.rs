//! The `kdyno` binary: arguments in, exit status out.
//!
//! Two commands are handled before anything else: a workload, whose process must have touched
//! as little memory as possible when it forks, and the guardian, which must not depend on
//! anything that can fail.

mod cli;
mod compare;
mod context;
mod doctor;
mod generate;
mod hist;
mod import;
mod index;
mod list;
mod normalize;
mod program;
mod restore;
mod run;
mod show;
mod stat;

use clap::{CommandFactory, FromArgMatches};
use context::{Context, Status, report};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    match words.next() {
        Some(word) if word == "workload" => workload(words),
        Some(word) if word == "guardian" => guardian(words.next()),
        _ => command_line(),
    }
}

fn workload(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    match words.next() {
        Some(name) if name == "usemem" => {
            name_process("usemem");
            kdyno_workloads::usemem::run(words)
        }
        Some(name) if name == "syslatency" => {
            name_process("syslatency");
            kdyno_workloads::syslatency::run(words)
        }
        // Help and mistakes are clap's.
        _ => command_line(),
    }
}

fn guardian(journal: Option<OsString>) -> ExitCode {
    let Some(journal) = journal else {
        return command_line();
    };
    name_process("kdyno-guardian");
    kdyno_testbox::guardian_main(journal.as_ref(), std::io::stdin().lock())
}

/// What `ps` and `perf` show: started through `/proc/self/exe` the name would be `exe`.
fn name_process(name: &str) {
    // Only a name: without it everything works as well.
    let _ = std::fs::write("/proc/self/comm", name);
}

fn command_line() -> ExitCode {
    let matches = match cli::Cli::command().try_get_matches() {
        Ok(matches) => matches,
        // To a bisection 2 would mean a bad commit.
        Err(error) if error.use_stderr() && std::env::args().any(|w| w == "--bisect-exit") => {
            // A terminal that is gone is no reason for another status.
            let _ = error.print();
            return Status::BisectStop.into();
        }
        Err(error) => error.exit(),
    };
    let cli = match cli::Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let mut context = Context::from_environment();
    let result = match cli.command {
        cli::Command::Run(args) => run::command(&args, &mut context),
        cli::Command::Compare(args) => compare::command(&args, &mut context),
        cli::Command::List(args) => list::command(&args, &mut context),
        cli::Command::Show(args) => show::command(&args, &mut context),
        cli::Command::Stat(args) => stat::command(&args, &mut context),
        cli::Command::Normalize(args) => normalize::command(&args, &mut context),
        cli::Command::Hist(args) => hist::command(&args, &mut context),
        cli::Command::Program(args) => program::command(&args, &mut context),
        cli::Command::Doctor(args) => doctor::command(&args, &mut context),
        cli::Command::Import(args) => import::command(&args, &mut context),
        cli::Command::Index(args) => index::command(&args, &mut context),
        cli::Command::Restore => restore::command(&mut context),
        cli::Command::Completions { shell } => generate::completions(shell, &mut context),
        cli::Command::Man { directory } => generate::man_pages(&directory, &mut context),
        cli::Command::Workload { .. } => Ok(Status::BadUsage),
    };
    match result {
        Ok(status) => status.into(),
        Err(error) => report(&error, &mut context).into(),
    }
}
