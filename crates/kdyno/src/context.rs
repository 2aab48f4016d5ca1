//! What every subcommand works with: where runs are kept, where output goes, how it ends.

use anyhow::Context as _;
use kdyno_job::error::JobError;
use kdyno_model::TestboxError;
use kdyno_rundir::{Home, RundirError};
use kdyno_store::{Index, Place, StoreError};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// How a subcommand ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It did what it should.
    Done,
    /// A regression was found, and the caller wants to know by the exit status.
    Regression,
    /// The command line or an input is wrong.
    BadUsage,
    /// A run failed.
    RunFailed,
    /// Nothing can be told: everything was skipped, or is unclear and the caller wants to know.
    CannotTell,
    /// `git bisect run` is to skip the commit.
    BisectSkip,
    /// `git bisect run` is to stop: from 1 to 127 it would take the commit for bad.
    BisectStop,
    /// The user ended it.
    Interrupted,
}

impl Status {
    /// The exit status of the process.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Regression => 1,
            Self::BadUsage => 2,
            Self::RunFailed => 3,
            Self::CannotTell => 4,
            Self::BisectSkip => 125,
            Self::BisectStop => 128,
            Self::Interrupted => 130,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status.code())
    }
}

/// The surroundings of a subcommand.
pub struct Context {
    home: Option<PathBuf>,
    /// The address of the server that keeps the index.
    index: Option<String>,
    /// An index that is made for this process where the home can only be read.
    pub memory_index: Option<Index>,
    /// Results.
    pub out: Box<dyn Write>,
    /// Progress, notes, errors.
    pub err: Box<dyn Write>,
    /// Whether progress may be redrawn in place.
    pub redraw: bool,
    /// Whether results may have colours.
    pub colours: bool,
    /// Whether a line is drawn that the next one replaces.
    drawn: bool,
    /// Remarks that are kept for somebody who passes them on.
    heard: Option<Vec<String>>,
}

impl Context {
    /// The process's own surroundings. Colours are taken away where they are not wanted
    /// (`NO_COLOR`, a pipe, a dumb terminal).
    pub fn from_environment() -> Self {
        use std::io::IsTerminal;
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            home: home_path(),
            index: std::env::var_os("KDYNO_INDEX")
                .filter(|value| !value.is_empty())
                .map(|value| value.to_string_lossy().into_owned()),
            memory_index: None,
            out: Box::new(std::io::BufWriter::new(std::io::stdout())),
            err: Box::new(anstream::stderr()),
            redraw: std::io::stderr().is_terminal() && !dumb,
            colours: anstream::AutoStream::choice(&std::io::stdout())
                != anstream::ColorChoice::Never,
            drawn: false,
            heard: None,
        }
    }

    /// Where runs are kept.
    pub fn home(&self) -> anyhow::Result<Home> {
        let path = self
            .home
            .as_ref()
            .context("no place to keep runs: KDYNO_HOME, XDG_DATA_HOME and HOME are not set")?;
        Ok(Home::at(path))
    }

    /// Where the index of the runs is kept: in the home, or on the server that `KDYNO_INDEX` names.
    /// There each home has a schema of its own, named by the home's id.
    pub fn index_place(&self) -> anyhow::Result<Place> {
        let home = self.home()?;
        let Some(url) = &self.index else {
            return Ok(Place::File(home.path().join("index.sqlite")));
        };
        let id = home.id()?.to_string().replace('-', "");
        Place::postgres(url, &format!("kdyno_{id}")).context("KDYNO_INDEX")
    }

    /// A remark for people. A terminal that is gone is no reason to stop.
    pub fn note(&mut self, text: &str) {
        if let Some(heard) = &mut self.heard {
            heard.push(text.to_owned());
            return;
        }
        self.erase();
        let _ = writeln!(self.err, "{text}");
    }

    /// Does something, and gives its remarks instead of printing them.
    pub fn hearing<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> (T, Vec<String>) {
        let outer = self.heard.replace(Vec::new());
        let result = act(self);
        let heard = std::mem::replace(&mut self.heard, outer).unwrap_or_default();
        (result, heard)
    }

    /// Draws a line that the next one replaces; cut to the terminal's width, since a wrapped line
    /// could not be taken back.
    pub fn draw(&mut self, line: &str) {
        let width =
            terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| width.0);
        let line: String = line
            .chars()
            .take(usize::from(width).saturating_sub(1))
            .collect();
        self.erase();
        let _ = write!(self.err, "{line}");
        let _ = self.err.flush();
        self.drawn = true;
    }

    /// Takes back a line that was drawn.
    pub fn erase(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(self.err, "\r\x1b[2K");
            let _ = self.err.flush();
        }
    }
}

fn home_path() -> Option<PathBuf> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    variable("KDYNO_HOME")
        .or_else(|| variable("XDG_DATA_HOME").map(|dir| dir.join("kdyno")))
        .or_else(|| variable("HOME").map(|dir| dir.join(".local/share/kdyno")))
}

/// A mistake in what the user gave us, with advice.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct UsageError {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl UsageError {
    /// A mistake with advice.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: Some(hint.into()),
        }
    }
}

/// Prints an error with its causes and its hint, and says how to end. A reader that has gone
/// (`kdyno list | head -1`) is no error.
pub fn report(error: &anyhow::Error, context: &mut Context) -> Status {
    if reader_is_gone(error) {
        return Status::Done;
    }
    let style = anstyle::Style::new()
        .bold()
        .fg_color(Some(anstyle::AnsiColor::Red.into()));
    context.note(&format!("{style}error:{style:#} {error:#}"));
    if let Some(hint) = hint_of(error) {
        let style = anstyle::Style::new().bold();
        context.note(&format!("{style}hint:{style:#} {hint}"));
    }
    Status::BadUsage
}

/// Whether it only means that nobody reads our output any more.
pub fn reader_is_gone(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|io| io.kind() == ErrorKind::BrokenPipe)
    })
}

/// What the user can do about an error, where that is known.
pub fn hint_of(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        let job = cause
            .downcast_ref::<JobError>()
            .and_then(|e| e.hint.clone());
        let testbox = cause
            .downcast_ref::<TestboxError>()
            .and_then(|e| e.hint.clone());
        let usage = cause
            .downcast_ref::<UsageError>()
            .and_then(|e| e.hint.clone());
        let rundir = cause
            .downcast_ref::<RundirError>()
            .and_then(RundirError::hint)
            .map(str::to_owned);
        let store = cause
            .downcast_ref::<StoreError>()
            .and_then(StoreError::hint)
            .map(str::to_owned);
        job.or(testbox).or(usage).or(rundir).or(store)
    })
}
