//! The stream of events: each goes to the terminal or log, to `--json`, and to the record.
//!
//! Events are emitted between trials only; what a sink writes is no part of what is measured.

use super::event::{Event, SCHEMA};
use super::progress::Progress;
use crate::context::{Context, reader_is_gone};
use kdyno_rundir::{EventLog, PlanDir, RundirError};
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};

/// An event with its moment, as it is written.
#[derive(Serialize)]
struct Stamped<'a> {
    #[serde(flatten)]
    event: &'a Event,
    /// Milliseconds since 1970: programs that keep numbers as doubles read them exactly.
    at_unix_ms: u64,
}

/// Where events go.
pub(super) struct Events<'a> {
    /// Where results and remarks go.
    pub context: &'a mut Context,
    progress: Progress,
    json: Json,
    record: Record,
}

/// The JSON lines on standard output.
enum Json {
    /// Not asked for.
    Off,
    On,
    /// A line could not be written, and none will be any more.
    Broken(anyhow::Error),
}

/// The record in the plan's directory.
enum Record {
    /// There is no plan yet: what happened is kept for it.
    Waiting(Vec<String>),
    Open(EventLog),
    /// It could not be written.
    Lost,
}

impl<'a> Events<'a> {
    /// Begins the stream; `json` for lines on standard output.
    pub fn begin(json: bool, context: &'a mut Context) -> Self {
        let mut events = Self {
            context,
            progress: Progress::default(),
            json: if json { Json::On } else { Json::Off },
            record: Record::Waiting(Vec::new()),
        };
        events.emit(&Event::StreamBegun {
            schema: SCHEMA,
            kdyno: env!("CARGO_PKG_VERSION"),
        });
        events
    }

    /// Tells what happened to everybody. A reader that cannot be written to is remembered
    /// ([`Events::is_broken`]); a record that cannot be written to is a warning.
    pub fn emit(&mut self, event: &Event) {
        self.progress.take(event, self.context);
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let stamped = Stamped {
            event,
            at_unix_ms: u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX),
        };
        match serde_json::to_string(&stamped) {
            Ok(line) => {
                self.print(&line);
                let kept = self.keep(&line, settles(event));
                self.warn_if_lost(kept);
            }
            Err(error) => self.json = Json::Broken(error.into()),
        }
    }

    /// A remark.
    pub fn note(&mut self, text: impl Into<String>) {
        self.emit(&Event::Note { text: text.into() });
    }

    /// A mishap that loses no run.
    pub fn warn(&mut self, text: impl Into<String>) {
        self.emit(&Event::Warning { text: text.into() });
    }

    /// Does something whose remarks become notes of this stream.
    pub fn hearing<T>(&mut self, act: impl FnOnce(&mut Context) -> T) -> T {
        let (result, remarks) = self.context.hearing(act);
        for remark in remarks {
            self.note(remark);
        }
        result
    }

    /// Keeps the record in a plan's directory from now on, with everything since the begin. The
    /// caller holds the plan.
    pub fn keep_in(&mut self, dir: &PlanDir) {
        let Record::Waiting(lines) = std::mem::replace(&mut self.record, Record::Lost) else {
            return;
        };
        let begun = dir.event_log().and_then(|mut log| {
            lines.iter().try_for_each(|line| log.append(line))?;
            Ok(log)
        });
        let kept = begun.map(|log| self.record = Record::Open(log));
        self.warn_if_lost(kept);
    }

    /// Whether lines are printed on standard output.
    pub fn is_json(&self) -> bool {
        !matches!(self.json, Json::Off)
    }

    /// Whether somebody wanted JSON lines and they cannot be written any more.
    pub fn is_broken(&self) -> bool {
        matches!(self.json, Json::Broken(_))
    }

    /// Why they cannot be written, unless it is only that the reader has gone.
    pub fn failure(self) -> Option<anyhow::Error> {
        match self.json {
            Json::Broken(error) if !reader_is_gone(&error) => {
                Some(error.context("standard output"))
            }
            _ => None,
        }
    }

    fn print(&mut self, line: &str) {
        if !matches!(self.json, Json::On) {
            return;
        }
        let out = &mut self.context.out;
        if let Err(error) = writeln!(out, "{line}").and_then(|()| out.flush()) {
            self.json = Json::Broken(error.into());
        }
    }

    fn keep(&mut self, line: &str, sync: bool) -> Result<(), RundirError> {
        match &mut self.record {
            Record::Waiting(lines) => lines.push(line.to_owned()),
            Record::Open(log) => {
                log.append(line)?;
                if sync {
                    log.sync()?;
                }
            }
            Record::Lost => {}
        }
        Ok(())
    }

    fn warn_if_lost(&mut self, kept: Result<(), RundirError>) {
        if let Err(error) = kept {
            self.record = Record::Lost;
            let error = anyhow::Error::from(error);
            self.warn(format!(
                "events are not recorded any more, the runs are kept all the same: {error:#}"
            ));
        }
    }
}

/// Whether the record goes to the disk with this event: before a trial, so that nothing of it is
/// left to be written while it is measured, and at the end.
fn settles(event: &Event) -> bool {
    matches!(event, Event::TrialBegun(_) | Event::StreamEnded { .. })
}
