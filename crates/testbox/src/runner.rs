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
use kdyno_job::resolve::SCRATCH;
use kdyno_job::value;
use kdyno_model::{Command as WorkCommand, FailReason, Outcome, Round, Stage, TestboxError, Work};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(1);

/// Everything that the programs of a trial run in.
pub(crate) struct Environment<'a> {
    pub work: &'a Work,
    /// The run, as its processes carry it.
    pub run: &'a str,
    /// kdyno itself, for its own workloads.
    pub program: &'a Path,
    /// The trial's own directory.
    pub scratch: Option<&'a Path>,
    pub cgroups: &'a TrialCgroups,
    pub guardian: &'a Guardian,
    pub interrupt: Option<&'a Interrupt>,
}

/// The variable that names the trial's own directory.
const SCRATCH_VARIABLE: &str = "KDYNO_SCRATCH";

/// What the rounds gave.
#[derive(Debug)]
pub(crate) struct Ended {
    pub rounds: Vec<Round>,
    /// The process group of the last one.
    pub group: Option<i32>,
    pub outcome: Outcome,
}

/// Runs all rounds; stops at the first that does not end well.
pub(crate) fn run_rounds(
    environment: &Environment<'_>,
    raw_dir: &Path,
    start_raw_ns: u64,
) -> Result<Ended, TestboxError> {
    let begun = Instant::now();
    let work = environment.work;
    let deadline = begun.checked_add(Duration::from_millis(work.timeout_ms));
    let until = work.rounds.until_ms.map(Duration::from_millis);
    let mut output = Output::open(raw_dir)?;
    let mut rounds = Vec::new();
    let mut group = None;
    loop {
        let (round, outcome) = run_round(environment, &mut output, start_raw_ns, deadline)?;
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
    raw_dir: PathBuf,
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
            raw_dir: raw_dir.to_owned(),
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
    environment: &Environment<'_>,
    output: &mut Output,
    start_raw_ns: u64,
    deadline: Option<Instant>,
) -> Result<(Option<(Round, i32)>, Outcome), TestboxError> {
    let raw_dir = output.raw_dir.clone();
    let failed = |error: std::io::Error| TestboxError::at(&raw_dir, error);
    let started = StartStamp::new().map_err(failed)?;
    let work = environment.work;
    let mut command = environment.command(&work.command, Some(&started))?;
    command
        .stdin(Stdio::null())
        .stdout(output.stdout.try_clone().map_err(failed)?)
        .stderr(output.stderr.try_clone().map_err(failed)?);
    let before = output.seen;
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let reason = FailReason::NotStarted(not_started(work, &error));
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
    let waited = wait(pid, environment.interrupt, deadline)?;
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
            limit_ms: work.timeout_ms,
        },
        Waited::Ended => outcome_of(status),
    };
    Ok((Some((round, pid)), outcome))
}

/// Waits for the program; ends it when we may not wait any longer. When this returns well, it
/// has ended and can be reaped.
pub(crate) fn wait(
    pid: i32,
    interrupt: Option<&Interrupt>,
    deadline: Option<Instant>,
) -> Result<Waited, TestboxError> {
    let failed =
        |error: std::io::Error| TestboxError::new(format!("cannot watch process {pid}: {error}"));
    let waited = sys::wait_for_end(pid, interrupt.map(Interrupt::descriptor), deadline);
    if !matches!(waited, Ok(Waited::Ended)) {
        end_process(pid, GRACE)?;
    }
    waited.map_err(failed)
}

/// Asks a process and its group to end, and ends them after a grace; afterwards it can be reaped.
pub(crate) fn end_process(pid: i32, grace: Duration) -> Result<(), TestboxError> {
    sys::signal_group(pid, libc::SIGTERM);
    // A failure changes nothing: the kill below ends it either way.
    let _ = sys::wait_for_end(pid, None, Instant::now().checked_add(grace));
    sys::signal_group(pid, libc::SIGKILL);
    sys::kill_process(pid);
    let patience = Instant::now().checked_add(PATIENCE);
    match sys::wait_for_end(pid, None, patience) {
        Ok(Waited::TimedOut) => Err(TestboxError::new(format!("process {pid} cannot be ended"))
            .hint("it waits for a device, or runs as another user: end it by hand")),
        _ => Ok(()),
    }
}

impl Environment<'_> {
    /// The command as a process of this trial. The measured one, which notes its start in
    /// `started`, is on the CPUs that the job gives it.
    pub(crate) fn command(
        &self,
        command: &WorkCommand,
        started: Option<&StartStamp>,
    ) -> Result<Command, TestboxError> {
        let work = self.work;
        let mut process = self.process_of(command)?;
        for (name, value) in &work.environment {
            process.env(name, self.with_scratch(value));
        }
        process.env(RUN_VARIABLE, self.run);
        if let Some(scratch) = self.scratch {
            process.env(SCRATCH_VARIABLE, scratch);
        }
        if let Some(directory) = &work.directory {
            process.current_dir(self.with_scratch(directory));
        }
        let guardian = self
            .guardian
            .line()
            .map_err(|error| TestboxError::new(format!("the guardian: {error}")))?;
        let affinity = work.affinity.as_deref().filter(|_| started.is_some());
        let setup = ChildSetup {
            cgroups: self.cgroups.joiners()?,
            cpus: affinity
                .and_then(|list| value::cpus(list).ok())
                .unwrap_or_default(),
            guardian: Some(guardian),
            started: started.cloned(),
        };
        sys::set_up_child(&mut process, setup);
        Ok(process)
    }

    fn process_of(&self, command: &WorkCommand) -> Result<Command, TestboxError> {
        Ok(match command {
            WorkCommand::Shell(line) => {
                let mut command = Command::new("/bin/sh");
                command.arg("-c").arg(line);
                command
            }
            WorkCommand::Argv(words) => {
                let (program, arguments) = words
                    .split_first()
                    .ok_or_else(|| TestboxError::new("the command is empty"))?;
                let mut command = Command::new(self.with_scratch(program));
                command.args(arguments.iter().map(|word| self.with_scratch(word)));
                command
            }
            WorkCommand::Workload(words) => {
                let mut command = Command::new(self.program);
                command.arg0("kdyno").arg("workload");
                command.args(words.iter().map(|word| self.with_scratch(word)));
                command
            }
        })
    }

    /// The word with the trial's directory in its place; as it is where the trial has none.
    fn with_scratch(&self, word: &str) -> OsString {
        let Some(scratch) = self.scratch.filter(|_| word.contains(SCRATCH)) else {
            return OsString::from(word);
        };
        let mut filled = OsString::new();
        for (place, part) in word.split(SCRATCH).enumerate() {
            if place > 0 {
                filled.push(scratch);
            }
            filled.push(part);
        }
        filled
    }
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
pub(crate) fn outcome_of(status: i32) -> Outcome {
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
