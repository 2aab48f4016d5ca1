//! Runs a program once or in rounds, and says how it ended.
//!
//! While a program runs nothing is written anywhere by us: its output goes straight to the raw
//! files, and we sleep in one poll.

use crate::cgroup::TrialCgroups;
use crate::guardian::Guardian;
use crate::interrupt::Interrupt;
use crate::monitors::clock::raw_ns;
use crate::strays::{PATIENCE, RUN_VARIABLE};
use crate::sys::{self, ChildSetup, StartStamp, Waited};
use kdyno_job::value;
use kdyno_model::{Command as WorkCommand, FailReason, Outcome, Round, Stage, TestboxError, Work};
use std::fs::{File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(1);

/// Everything a program runs in.
pub(crate) struct Setting<'a> {
    pub work: &'a Work,
    /// The run, as its processes carry it.
    pub run: &'a str,
    /// kdyno itself, for its own workloads.
    pub program: &'a Path,
    pub cgroups: &'a TrialCgroups,
    pub guardian: &'a Guardian,
    pub interrupt: Option<&'a Interrupt>,
    /// Where raw output goes.
    pub raw_dir: &'a Path,
}

/// What the rounds gave.
#[derive(Debug)]
pub(crate) struct Ended {
    pub rounds: Vec<Round>,
    /// The process group of the last one.
    pub group: Option<i32>,
    pub outcome: Outcome,
}

/// Runs all rounds; stops at the first that does not end well.
pub(crate) fn run_rounds(setting: &Setting<'_>, start_raw_ns: u64) -> Result<Ended, TestboxError> {
    let begun = Instant::now();
    let work = setting.work;
    let deadline = begun.checked_add(Duration::from_millis(work.timeout_ms));
    let until = work.rounds.until_ms.map(Duration::from_millis);
    let mut output = Output::open(setting.raw_dir)?;
    let mut rounds = Vec::new();
    let mut group = None;
    loop {
        let (round, outcome) = run_round(setting, &mut output, start_raw_ns, deadline)?;
        if let Some((round, pid)) = round {
            rounds.push(round);
            group = Some(pid);
        }
        let done = rounds.len() as u64 >= work.rounds.at_most
            || until.is_some_and(|until| begun.elapsed() >= until);
        if !outcome.is_done() || done {
            return Ok(Ended {
                rounds,
                group,
                outcome,
            });
        }
    }
}

/// The raw files and how much is in them.
struct Output {
    stdout: File,
    stderr: File,
    seen: (u64, u64),
}

impl Output {
    fn open(raw_dir: &Path) -> Result<Self, TestboxError> {
        let open = |name: &str| -> Result<File, TestboxError> {
            let path = raw_dir.join(name);
            let opened = OpenOptions::new().create(true).append(true).open(&path);
            opened.map_err(|error| TestboxError::at(path, error))
        };
        Ok(Self {
            stdout: open("stdout")?,
            stderr: open("stderr")?,
            seen: (0, 0),
        })
    }

    fn lengths(&self) -> std::io::Result<(u64, u64)> {
        Ok((self.stdout.metadata()?.len(), self.stderr.metadata()?.len()))
    }
}

fn run_round(
    setting: &Setting<'_>,
    output: &mut Output,
    start_raw_ns: u64,
    deadline: Option<Instant>,
) -> Result<(Option<(Round, i32)>, Outcome), TestboxError> {
    let failed = |error: std::io::Error| TestboxError::at(setting.raw_dir, error);
    let started = StartStamp::new().map_err(failed)?;
    let mut command = command_of(setting, &started)?;
    command
        .stdin(Stdio::null())
        .stdout(output.stdout.try_clone().map_err(failed)?)
        .stderr(output.stderr.try_clone().map_err(failed)?);
    let before = output.seen;
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let reason = FailReason::NotStarted(not_started(setting.work, &error));
            return Ok((
                None,
                Outcome::Failed {
                    stage: Stage::Test,
                    reason,
                },
            ));
        }
    };
    let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
    let waited = wait(pid, setting.interrupt, deadline)?;
    let (status, usage) = sys::reap(pid)
        .map_err(|error| TestboxError::new(format!("lost process {pid}: {error}")))?;
    let end_ns = raw_ns().saturating_sub(start_raw_ns);
    let start_ns = started
        .raw_ns()
        .map_or(end_ns, |start| start.saturating_sub(start_raw_ns));
    output.seen = output.lengths().map_err(failed)?;
    let round = Round {
        start_ns,
        end_ns,
        stdout_from: before.0,
        stdout_to: output.seen.0,
        stderr_from: before.1,
        stderr_to: output.seen.1,
        usage,
    };
    let outcome = match waited {
        Waited::Interrupted => Outcome::Interrupted,
        Waited::TimedOut => Outcome::TimedOut {
            limit_ms: setting.work.timeout_ms,
        },
        Waited::Ended => outcome_of(status),
    };
    Ok((Some((round, pid)), outcome))
}

/// Waits for the program; ends it when we may not wait any longer. When this returns well, it
/// has ended and can be reaped.
fn wait(
    pid: i32,
    interrupt: Option<&Interrupt>,
    deadline: Option<Instant>,
) -> Result<Waited, TestboxError> {
    let failed =
        |error: std::io::Error| TestboxError::new(format!("cannot watch process {pid}: {error}"));
    let waited = sys::wait_for_end(pid, interrupt.map(Interrupt::descriptor), deadline);
    if !matches!(waited, Ok(Waited::Ended)) {
        sys::signal_group(pid, libc::SIGTERM);
        let grace = Instant::now().checked_add(GRACE);
        // A second failure changes nothing: the kill below ends it either way.
        let _ = sys::wait_for_end(pid, None, grace);
        sys::signal_group(pid, libc::SIGKILL);
        sys::kill_process(pid);
        let patience = Instant::now().checked_add(PATIENCE);
        if let Ok(Waited::TimedOut) = sys::wait_for_end(pid, None, patience) {
            return Err(TestboxError::new(format!("process {pid} cannot be ended"))
                .hint("it waits for a device, or runs as another user: end it by hand"));
        }
    }
    waited.map_err(failed)
}

fn command_of(setting: &Setting<'_>, started: &StartStamp) -> Result<Command, TestboxError> {
    let work = setting.work;
    let mut command = match &work.command {
        WorkCommand::Shell(line) => {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(line);
            command
        }
        WorkCommand::Argv(words) => {
            let (program, arguments) = words
                .split_first()
                .ok_or_else(|| TestboxError::new("the command is empty"))?;
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
        WorkCommand::Workload(words) => {
            let mut command = Command::new(setting.program);
            command.arg0("kdyno").arg("workload").args(words);
            command
        }
    };
    command
        .envs(&work.environment)
        .env(RUN_VARIABLE, setting.run);
    if let Some(directory) = &work.directory {
        command.current_dir(directory);
    }
    let guardian = setting
        .guardian
        .line()
        .map_err(|error| TestboxError::new(format!("the guardian: {error}")))?;
    let setup = ChildSetup {
        cgroups: setting.cgroups.joiners()?,
        cpus: work
            .affinity
            .as_deref()
            .and_then(|list| value::cpus(list).ok())
            .unwrap_or_default(),
        guardian: Some(guardian),
        started: Some(started.clone()),
    };
    sys::set_up_child(&mut command, setup);
    Ok(command)
}

fn not_started(work: &Work, error: &std::io::Error) -> String {
    let program = match &work.command {
        WorkCommand::Argv(words) => words.first().cloned().unwrap_or_default(),
        WorkCommand::Shell(_) => "/bin/sh".to_owned(),
        WorkCommand::Workload(words) => format!("kdyno workload {}", words.join(" ")),
    };
    if let Some(directory) = work
        .directory
        .as_ref()
        .filter(|dir| !PathBuf::from(dir).is_dir())
    {
        return format!("`{directory}` is no directory");
    }
    match (error.kind(), &work.affinity) {
        (std::io::ErrorKind::NotFound, _) => format!("`{program}` was not found"),
        (std::io::ErrorKind::InvalidInput, Some(cpus)) => {
            format!(
                "`{program}` cannot run on CPUs {cpus}: this machine does not have them ({error})"
            )
        }
        _ => format!("`{program}`: {error}"),
    }
}

/// A raw wait status as an outcome (wait(2): the low seven bits hold the signal).
fn outcome_of(status: i32) -> Outcome {
    let signal = status & 0x7f;
    let code = (status >> 8) & 0xff;
    let reason = match (signal, code) {
        (0, 0) => return Outcome::Done,
        (0, code) => FailReason::ExitCode(code),
        (signal, _) => FailReason::Signal(signal),
    };
    Outcome::Failed {
        stage: Stage::Test,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_statuses_are_outcomes() {
        assert_eq!(outcome_of(0), Outcome::Done);
        let failed = |reason| Outcome::Failed {
            stage: Stage::Test,
            reason,
        };
        assert_eq!(outcome_of(3 << 8), failed(FailReason::ExitCode(3)));
        assert_eq!(outcome_of(9), failed(FailReason::Signal(9)));
        assert_eq!(outcome_of(11 | 0x80), failed(FailReason::Signal(11)));
    }
}
