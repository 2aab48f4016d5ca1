//! `kdyno hist`: distributions of runs, or of what tracing tools printed.

mod print;
mod source;

use crate::cli::{HistArgs, RunArgs};
use crate::context::{Context, Status};
use crate::run;
use anyhow::Context as _;
use std::path::Path;

/// Prints the distributions.
pub fn command(args: &HistArgs, context: &mut Context) -> anyhow::Result<Status> {
    if !args.functions.is_empty() {
        // The run's table is of no interest here.
        let out = std::mem::replace(&mut context.out, Box::new(std::io::sink()));
        let status = run::command(&timed(args), context);
        context.out = out;
        match status? {
            Status::Done => {}
            other => return Ok(other),
        }
    }
    let found = source::find(args, context)?;
    let printed = print::print(&found, args)?;
    for note in &printed.notes {
        context.note(note);
    }
    match &args.output {
        None => {
            context.out.write_all(&printed.bytes)?;
            context.out.flush()?;
        }
        Some(path) => write(path, &printed.bytes).with_context(|| path.display().to_string())?,
    }
    Ok(Status::Done)
}

/// The run of `--func`.
fn timed(args: &HistArgs) -> RunArgs {
    RunArgs {
        exec: args.exec.clone(),
        runs: Some(args.rounds),
        warm_up: Some(0),
        functions: args.functions.clone(),
        function_filter: args.function_filter.clone(),
        no_doctor: true,
        ..RunArgs::default()
    }
}

/// Writes a file under another name first, so that nobody finds half of it; what is no file, such as
/// a pipe, is written to as it is.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if path.exists() && !path.is_file() {
        return std::fs::write(path, bytes);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        // What is left of it helps nobody; the first error is the one to tell.
        let _ = std::fs::remove_file(&part);
    }
    written
}
