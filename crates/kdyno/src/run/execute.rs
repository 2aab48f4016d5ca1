//! Carries out the trials of a plan: measure, extract, seal, take into the index, tell.

use super::decide::Decider;
use super::event::{self, Event, TrialEnded, TrialPlace};
use super::events::Events;
use anyhow::Context as _;
use kdyno_analyze::row_of;
use kdyno_formats::functions::calls;
use kdyno_formats::{RawOutput, extract};
use kdyno_job::catalog::Catalog;
use kdyno_job::plan::Plan;
use kdyno_model::{
    FailReason, Measurement, Origin, Outcome, Reading, RunId, RunRecord, RunRow, SessionId, Stage,
    Testbox, Trial,
};
use kdyno_rundir::{PlanDir, Results, RunWriter};
use kdyno_store::Index;
use kdyno_testbox::Interrupt;
use kdyno_testbox::functions::function_file;
use std::io::Read;
use std::path::{Path, PathBuf};

/// More output than this is kept but not searched for figures.
const SEARCHED_BYTES: u64 = 1 << 30;

/// What became of a session.
pub(super) struct Finished {
    /// Why it ended.
    pub ending: Ended,
    /// Trials that were run to their end.
    pub trials: usize,
    /// Every run is in the index.
    pub indexed: bool,
}

/// Why a session ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// Nothing is left to be run.
    Complete,
    /// The user ended it before the plan's end.
    Interrupted,
    /// The events that were asked for cannot be written any more.
    Unheard,
}

/// A run that failed, and where its output is.
pub(super) struct Failure {
    row: RunRow,
    path: PathBuf,
}

impl Failure {
    /// The run of `row` if it failed; runs of earlier sessions count as well.
    pub fn of(row: &RunRow, dir: &PlanDir) -> Option<Self> {
        let path = dir.path.join("runs").join(row.run_id.to_string());
        row.outcome.is_failure().then(|| Self {
            row: row.clone(),
            path,
        })
    }
}

/// Everything that trials are carried out with.
pub(super) struct Execution<'a> {
    pub plan: &'a Plan,
    pub dir: &'a PlanDir,
    /// Later runs sort behind it, whatever the clock says.
    pub newest_run: Option<RunId>,
    pub testbox: &'a mut dyn Testbox,
    pub session: SessionId,
    pub interrupt: &'a Interrupt,
    pub index: Option<&'a mut Index>,
    /// Looks at the runs between blocks, and may end the plan.
    pub decider: Option<&'a mut Decider>,
}

impl Execution<'_> {
    /// Runs the trials in order until the end, an interrupt, or the end of who listens.
    pub fn all(&mut self, todo: &[&Trial], events: &mut Events<'_>) -> anyhow::Result<Finished> {
        let mut finished = Finished {
            ending: Ended::Complete,
            trials: 0,
            indexed: self.index.is_some(),
        };
        let boot_id = self.testbox.facts()?.boot_id;
        for (number, planned) in (1..).zip(todo) {
            if self.interrupt.requested() {
                finished.ending = Ended::Interrupted;
                break;
            }
            let place = TrialPlace::of(planned, number, todo.len());
            events.emit(&Event::TrialBegun(place.clone()));
            if events.is_broken() {
                finished.ending = Ended::Unheard;
                break;
            }
            let trial = Trial {
                boot_id: boot_id.clone(),
                session: Some(self.session),
                ..(*planned).clone()
            };
            let Some(record) = self.one(&trial)? else {
                finished.ending = Ended::Interrupted;
                break;
            };
            finished.trials = number;
            let row = row_of(&record);
            finished.indexed &= self.take_in(&row, events);
            events.emit(&Event::TrialEnded(TrialEnded::of(&row, place)));
            if let Some(decider) = &mut self.decider {
                let looks = decider.looks_seen();
                let is_over = decider.after(row, events);
                if decider.looks_seen() > looks {
                    self.dir.write_decision(&decider.record()?)?;
                }
                if is_over {
                    break;
                }
            }
        }
        Ok(finished)
    }

    /// Runs one trial; nothing when the user ended it, whose run then stays incomplete and is
    /// run again on resume.
    fn one(&mut self, trial: &Trial) -> anyhow::Result<Option<RunRecord>> {
        let case = self
            .plan
            .cases
            .get(&trial.case.id)
            .context("the plan has lost a case")?;
        let id = RunId::new_after(self.newest_run);
        self.newest_run = Some(id);
        let writer = self.dir.create_run(id, Some(&case.canonical), trial)?;
        let measurement = self.testbox.run(trial, writer.raw_dir())?;
        if measurement.outcome == Outcome::Interrupted {
            return Ok(None);
        }
        let (mut readings, outcome, mut notes) = read_figures(&case.rules, &writer, &measurement)?;
        if outcome.is_done() {
            read_functions(trial, &writer, &measurement, &mut readings, &mut notes)?;
        }
        let results = Results {
            origin: Origin::Measured,
            measurement,
            readings,
            outcome,
            notes,
        };
        Ok(Some(writer.seal(results)?))
    }

    /// A run that is not taken in is not lost: the next start finds it by its plan's missing
    /// marker.
    fn take_in(&mut self, row: &RunRow, events: &mut Events<'_>) -> bool {
        let Some(index) = &mut self.index else {
            return false;
        };
        match index.ingest(std::slice::from_ref(row)) {
            Ok(_) => true,
            Err(error) => {
                events.warn(format!("the run is kept but not in the index: {error}"));
                false
            }
        }
    }
}

type Figures = (Vec<Reading>, Outcome, Vec<String>);

fn read_figures(
    rules: &kdyno_model::ExtractRules,
    writer: &RunWriter,
    measurement: &Measurement,
) -> anyhow::Result<Figures> {
    let (stdout, stdout_cut) = read_output(&writer.raw_dir().join("stdout"))?;
    let (stderr, stderr_cut) = read_output(&writer.raw_dir().join("stderr"))?;
    let extracted = extract(
        rules,
        RawOutput {
            stdout: &stdout,
            stderr: &stderr,
        },
        measurement,
    )?;
    let outcome = match (&measurement.outcome, extracted.problem) {
        (Outcome::Done, Some(reason)) => Outcome::Failed {
            stage: Stage::Extract,
            reason,
        },
        (outcome, _) => outcome.clone(),
    };
    let mut notes = Vec::new();
    if stdout_cut || stderr_cut {
        notes.push(format!(
            "only the first {SEARCHED_BYTES} bytes of output were searched for figures"
        ));
    }
    Ok((extracted.readings, outcome, notes))
}

/// The counts of functions that were timed.
fn read_functions(
    trial: &Trial,
    writer: &RunWriter,
    measurement: &Measurement,
    readings: &mut Vec<Reading>,
    notes: &mut Vec<String>,
) -> anyhow::Result<()> {
    for (place, probe) in trial.work.functions.iter().enumerate() {
        let path = writer.raw_dir().join(function_file(place));
        let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let found = calls(probe, &String::from_utf8_lossy(&text), measurement.clock);
        readings.extend(found.readings);
        notes.extend(found.notes);
    }
    Ok(())
}

/// The output as far as it is searched, and whether there is more of it. Nothing was written when
/// setup failed.
fn read_output(path: &Path) -> anyhow::Result<(Vec<u8>, bool)> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((Vec::new(), false));
        }
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let length = file
        .metadata()
        .with_context(|| path.display().to_string())?
        .len();
    let mut bytes = Vec::new();
    file.take(SEARCHED_BYTES)
        .read_to_end(&mut bytes)
        .with_context(|| path.display().to_string())?;
    Ok((bytes, length > SEARCHED_BYTES))
}

/// What failed and why, equal failures together, with the end of what the first of them said.
pub(super) fn describe_failures(
    failures: &[Failure],
    plan: &Plan,
    catalog: &Catalog,
) -> Vec<event::Failure> {
    let mut told: Vec<event::Failure> = Vec::new();
    for failure in failures {
        let row = &failure.row;
        let (case, reason) = (row.case.name(), row.outcome.to_string());
        let known = told
            .iter_mut()
            .find(|t| (&t.case, &t.variant, &t.reason) == (&case, &row.variant, &reason));
        match known {
            Some(known) => known.runs += 1,
            None => told.push(event::Failure {
                case,
                variant: row.variant.clone(),
                runs: 1,
                outcome: row.outcome.word(),
                reason,
                hint: advice(row, plan, catalog),
                last_words: last_words(failure),
                run: row.run_id,
            }),
        }
    }
    told
}

fn advice(row: &RunRow, plan: &Plan, catalog: &Catalog) -> Option<String> {
    let Outcome::Failed { reason, .. } = &row.outcome else {
        return None;
    };
    let trial = plan.trials.iter().find(|trial| trial.index == row.index)?;
    match reason {
        FailReason::NotStarted(why) if why.contains("was not found") => {
            let tool = catalog.get(&trial.work.program)?.tool.as_ref()?;
            Some(tool.hint.clone())
        }
        FailReason::NoMetric if trial.work.program == "command" => Some(
            "a command prints its figures as `key: number` lines; `metrics: none` measures only time and memory"
                .to_owned(),
        ),
        _ => None,
    }
}

/// The last lines of standard error, or of standard output where that is silent.
fn last_words(failure: &Failure) -> Vec<String> {
    const LINES: usize = 5;
    const WIDEST: usize = 200;
    let reader = kdyno_rundir::RunReader::open(&failure.path).ok();
    let stderr = reader
        .as_ref()
        .and_then(|r| r.stderr().ok().flatten())
        .unwrap_or_default();
    let stdout = || {
        reader
            .as_ref()
            .and_then(|r| r.stdout().ok().flatten())
            .unwrap_or_default()
    };
    let bytes = if stderr.is_empty() { stdout() } else { stderr };
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let clean = |line: &&str| -> String {
        let shown = line
            .chars()
            .take(WIDEST)
            .map(|c| if c.is_control() { '\u{fffd}' } else { c });
        shown.collect::<String>()
    };
    lines[lines.len().saturating_sub(LINES)..]
        .iter()
        .map(clean)
        .collect()
}
