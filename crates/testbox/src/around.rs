//! What runs before and beside the measured program: set-up commands, a server, commands that load
//! it. All of it is outside the measured window, in the cgroups of the trial and with its mark.

use crate::runner::{self, Environment};
use crate::sys::{self, Waited};
use kdyno_model::{Command, FailReason, Outcome, Ready, Server, Stage, TestboxError, Work};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Raw file of what set-up commands print.
const SETUP_OUTPUT: &str = "setup";
/// Raw file of what the server prints.
const SERVER_OUTPUT: &str = "server";

/// How long a server may take until it can be used.
const READY_PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take to end: databases write what they hold.
const END_PATIENCE: Duration = Duration::from_secs(20);
/// How often a server is asked whether it is ready.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// A line of output that stands in a reason is at most so long.
const LONGEST_LINE: usize = 200;
/// Output beyond this is not searched for the server's word.
const SEARCHED_BYTES: u64 = 1 << 20;

/// Runs what comes before the measured program; the outcome when it must not run.
///
/// # Errors
/// When a process can neither be watched nor ended.
pub(crate) fn begin(
    work: &Work,
    environment: &Environment<'_>,
    raw_dir: &Path,
) -> Result<Result<Option<Running>, Outcome>, TestboxError> {
    let deadline = Instant::now().checked_add(Duration::from_millis(work.timeout_ms));
    let stage = BeforeTest {
        environment,
        raw_dir,
        deadline,
        limit_ms: work.timeout_ms,
    };
    for words in &work.around.setup {
        if let Some(outcome) = stage.command(words)? {
            return Ok(Err(outcome));
        }
    }
    let Some(server) = &work.around.server else {
        return Ok(stage.load(work, None)?.map_or(Ok(None), Err));
    };
    let running = match stage.start(server)? {
        Ok(running) => running,
        Err(outcome) => return Ok(Err(outcome)),
    };
    match stage.load(work, Some(&running))? {
        None => Ok(Ok(Some(running))),
        Some(outcome) => {
            running.end()?;
            Ok(Err(outcome))
        }
    }
}

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Running {
    pid: i32,
    name: String,
}

impl Running {
    /// Whether it has ended by itself.
    fn has_ended(&self) -> Result<bool, TestboxError> {
        let waited = sys::wait_for_end(self.pid, None, Instant::now().checked_add(ASK_AGAIN));
        waited
            .map(|waited| waited == Waited::Ended)
            .map_err(|error| TestboxError::new(format!("cannot watch `{}`: {error}", self.name)))
    }

    /// Asks it to end, and ends it; a note when it had ended before it was asked.
    ///
    /// # Errors
    /// When it cannot be ended.
    pub(crate) fn end(self) -> Result<Option<String>, TestboxError> {
        let early = self.has_ended()?;
        if !early {
            runner::end_process(self.pid, END_PATIENCE)?;
        }
        let (status, _) = sys::reap(self.pid)
            .map_err(|error| TestboxError::new(format!("lost process {}: {error}", self.pid)))?;
        Ok(early.then(|| {
            let how = runner::outcome_of(status);
            format!("the server `{}` ended by itself: {how}", self.name)
        }))
    }
}

struct BeforeTest<'a> {
    environment: &'a Environment<'a>,
    raw_dir: &'a Path,
    deadline: Option<Instant>,
    limit_ms: u64,
}

impl BeforeTest<'_> {
    fn load(&self, work: &Work, server: Option<&Running>) -> Result<Option<Outcome>, TestboxError> {
        for words in &work.around.load {
            if let Some(outcome) = self.command(words)? {
                return Ok(Some(outcome));
            }
            if let Some(server) = server.filter(|server| server.has_ended().unwrap_or(true)) {
                let reason = format!(
                    "the server `{}` ended{}",
                    server.name,
                    self.last_line(SERVER_OUTPUT)
                );
                return Ok(Some(failed(reason)));
            }
        }
        Ok(None)
    }

    /// Runs one command to its end; `None` when it ended well.
    fn command(&self, words: &[String]) -> Result<Option<Outcome>, TestboxError> {
        let name = words.first().cloned().unwrap_or_default();
        let pid = match self.spawn(words, SETUP_OUTPUT)? {
            Ok(pid) => pid,
            Err(outcome) => return Ok(Some(outcome)),
        };
        let waited = runner::wait(pid, self.environment.interrupt, self.deadline)?;
        let (status, _) = sys::reap(pid)
            .map_err(|error| TestboxError::new(format!("lost process {pid}: {error}")))?;
        Ok(match waited {
            Waited::Interrupted => Some(Outcome::Interrupted),
            Waited::TimedOut => Some(failed(format!(
                "set-up: `{name}` ran longer than {} s",
                self.limit_ms / 1000
            ))),
            Waited::Ended => match runner::outcome_of(status) {
                Outcome::Failed { reason, .. } => Some(failed(format!(
                    "set-up: `{name}`: {reason}{}",
                    self.last_line(SETUP_OUTPUT)
                ))),
                _ => None,
            },
        })
    }

    fn start(&self, server: &Server) -> Result<Result<Running, Outcome>, TestboxError> {
        let name = server.words.first().cloned().unwrap_or_default();
        if let Ready::Port(port) = server.ready
            && listens(port)
        {
            let reason = format!("something listens on port {port} already");
            return Ok(Err(failed(reason)));
        }
        let pid = match self.spawn(&server.words, SERVER_OUTPUT)? {
            Ok(pid) => pid,
            Err(outcome) => return Ok(Err(outcome)),
        };
        let running = Running { pid, name };
        match self.until_ready(&running, &server.ready)? {
            None => Ok(Ok(running)),
            Some(outcome) => {
                running.end()?;
                Ok(Err(outcome))
            }
        }
    }

    fn until_ready(
        &self,
        running: &Running,
        ready: &Ready,
    ) -> Result<Option<Outcome>, TestboxError> {
        let begun = Instant::now();
        let name = &running.name;
        loop {
            let is_ready = match ready {
                Ready::Line(text) => self.output_has(text),
                Ready::Port(port) => listens(*port),
            };
            if is_ready {
                return Ok(None);
            }
            if self.environment.interrupt.is_some_and(|i| i.requested()) {
                return Ok(Some(Outcome::Interrupted));
            }
            let why = if running.has_ended()? {
                "ended before it was ready"
            } else if begun.elapsed() > READY_PATIENCE {
                "is not ready after a minute"
            } else {
                continue;
            };
            let last = self.last_line(SERVER_OUTPUT);
            return Ok(Some(failed(format!("the server `{name}` {why}{last}"))));
        }
    }

    /// Starts a command with its output in a raw file.
    fn spawn(&self, words: &[String], output: &str) -> Result<Result<i32, Outcome>, TestboxError> {
        let path = self.raw_dir.join(output);
        let at = |error: std::io::Error| TestboxError::at(&path, error);
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(at)?;
        let command = Command::Argv(words.to_vec());
        let mut process = self.environment.command(&command, None)?;
        process
            .stdin(Stdio::null())
            .stderr(file.try_clone().map_err(at)?)
            .stdout(file);
        Ok(match process.spawn() {
            Ok(child) => Ok(i32::try_from(child.id()).unwrap_or(i32::MAX)),
            Err(error) => {
                let name = words.first().map(String::as_str).unwrap_or_default();
                Err(failed(format!("set-up: `{name}`: {error}")))
            }
        })
    }

    fn output_has(&self, text: &str) -> bool {
        let mut output = Vec::new();
        let read = File::open(self.raw_dir.join(SERVER_OUTPUT))
            .and_then(|file| file.take(SEARCHED_BYTES).read_to_end(&mut output));
        // What cannot be read yet is not there yet.
        read.is_ok() && String::from_utf8_lossy(&output).contains(text)
    }

    /// The last line that says something, behind a colon.
    fn last_line(&self, output: &str) -> String {
        let tail = File::open(self.raw_dir.join(output)).and_then(|mut file| {
            let length = file.seek(SeekFrom::End(0))?;
            file.seek(SeekFrom::Start(length.saturating_sub(4096)))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        });
        let tail = tail.unwrap_or_default();
        let line = tail.lines().rfind(|line| !line.trim().is_empty());
        line.map_or_else(String::new, |line| {
            let line: String = line.trim().chars().take(LONGEST_LINE).collect();
            format!(": {line}")
        })
    }
}

fn listens(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, ASK_AGAIN * 10).is_ok()
}

fn failed(reason: String) -> Outcome {
    Outcome::Failed {
        stage: Stage::Setup,
        reason: FailReason::Setting(reason),
    }
}
