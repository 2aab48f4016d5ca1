//! One session of a plan: what is left of it is run, the machine is put back, the result is shown.

use super::decide::Decider;
use super::event::{Ending, Event, PlanBegun, PlanEnded};
use super::events::Events;
use super::execute::{Ended, Execution, Failure, Finished, describe_failures};
use super::progress::expected;
use super::{Runs, lock_plan, look_at_runs, print_table, rows_of};
use crate::context::{Status, reader_is_gone};
use crate::index;
use kdyno_job::catalog::Catalog;
use kdyno_job::plan::Plan;
use kdyno_model::{RunId, RunRow, SessionId, Testbox, Trial};
use kdyno_rundir::PlanDir;
use kdyno_store::Index;
use kdyno_testbox::{Interrupt, LocalTestbox};
use std::fs::File;
use std::time::Instant;

/// What a session works with.
pub(super) struct Session<'a> {
    pub plan: &'a Plan,
    pub catalog: &'a Catalog,
    pub id: SessionId,
    pub interrupt: &'a Interrupt,
    /// Whether an earlier session began the plan.
    pub resumed: bool,
}

impl Session<'_> {
    /// Runs what is left of the plan in `dir`, if that could be made, on a prepared testbox, which
    /// is put back whatever happens.
    pub fn carry_out(
        &self,
        dir: anyhow::Result<PlanDir>,
        testbox: &mut LocalTestbox,
        events: &mut Events<'_>,
    ) -> anyhow::Result<Status> {
        let begun = Instant::now();
        // The plan is held until everything about it is told.
        let held = dir.and_then(|dir| Ok((lock_plan(&dir)?, dir)));
        let result = held.and_then(|(turn, dir)| {
            events.keep_in(&dir);
            let finished = self.trials(&dir, testbox, events)?;
            Ok((turn, dir, finished))
        });
        let recovered = testbox.recover();
        let (turn, dir, finished) = match (result, recovered) {
            (Err(error), Err(unrestored)) => return Err(error.context(unrestored)),
            (Err(error), Ok(_)) => return Err(error),
            (Ok(_), Err(unrestored)) => return Err(unrestored.into()),
            (Ok(result), Ok(recovery)) => {
                for left in recovery.left_alone {
                    events.warn(format!(
                        "left alone {left}: somebody else changed it meanwhile"
                    ));
                }
                result
            }
        };
        self.conclude((turn, &dir), &finished, begun, events)
    }

    fn trials(
        &self,
        dir: &PlanDir,
        testbox: &mut LocalTestbox,
        events: &mut Events<'_>,
    ) -> anyhow::Result<Finished> {
        let runs = look_at_runs(dir)?;
        for run in &runs.damaged {
            events.note(format!("run {run} is damaged; its trial runs again"));
        }
        let todo = self.todo(&runs);
        events.emit(&Event::PlanBegun(self.plan_begun(dir, &todo)));
        let mut index = open_index(&[runs.cut, runs.damaged].concat(), events);
        let mut decider = match self.plan.looks {
            Some(looks) => Some(Decider::begin(self.plan, looks, dir, events)?),
            None => None,
        };
        let mut execution = Execution {
            plan: self.plan,
            dir,
            newest_run: events.context.home()?.newest().1,
            testbox,
            session: self.id,
            interrupt: self.interrupt,
            index: index.as_mut(),
            decider: decider.as_mut(),
        };
        let finished = execution.all(&todo, events)?;
        let complete = finished.ending == Ended::Complete;
        if let Some(decider) = &decider {
            dir.write_decision(&decider.record()?)?;
        }
        if complete && finished.indexed {
            let remembered = index
                .as_mut()
                .map(|i| index::remember_noise(i, self.plan.id));
            if let Some(Err(error)) = remembered {
                events.warn(format!("the noise is not remembered: {error:#}"));
            }
            dir.mark_finished()?;
        }
        if let Some(decider) = decider.filter(|_| complete) {
            events.emit(&decider.conclusion());
        }
        Ok(finished)
    }

    fn todo(&self, runs: &Runs) -> Vec<&Trial> {
        let trials = self.plan.trials.iter();
        trials
            .filter(|trial| !runs.done.contains(&trial.index))
            .collect()
    }

    fn plan_begun(&self, dir: &PlanDir, todo: &[&Trial]) -> PlanBegun {
        let plan = self.plan;
        PlanBegun {
            plan: plan.id,
            job: plan.job.clone(),
            testbox: plan.testbox.clone(),
            kernel: plan.kernel_release.clone(),
            cpus: plan.cpus,
            variants: plan.variants.clone(),
            cases: plan.cases.len(),
            runs: plan.runs,
            warm_up: plan.warm_up,
            seed: plan.seed,
            trials: plan.trials.len(),
            todo: todo.len(),
            expected_seconds: expected(todo.iter().copied()).map(|time| time.as_secs_f64()),
            until_decided: plan.looks.is_some(),
            resumed: self.resumed,
            directory: dir.path.display().to_string(),
        }
    }

    /// Shows what came of the plan.
    fn conclude(
        &self,
        (_turn, dir): (File, &PlanDir),
        finished: &Finished,
        begun: Instant,
        events: &mut Events<'_>,
    ) -> anyhow::Result<Status> {
        let rows = rows_of(self.plan, events)?;
        let failures: Vec<Failure> = rows
            .iter()
            .filter_map(|row| Failure::of(row, dir))
            .collect();
        let table = match finished.ending {
            Ended::Complete => self.show(&rows, &failures, events),
            Ended::Interrupted | Ended::Unheard => Ok(()),
        };
        let (ending, status) = match finished.ending {
            Ended::Interrupted => (Ending::Interrupted, Status::Interrupted),
            Ended::Unheard if failures.is_empty() => (Ending::ReaderGone, Status::Done),
            Ended::Unheard => (Ending::ReaderGone, Status::RunFailed),
            Ended::Complete if failures.is_empty() => (Ending::Finished, Status::Done),
            Ended::Complete => (Ending::Failures, Status::RunFailed),
        };
        events.emit(&Event::PlanEnded(PlanEnded {
            plan: self.plan.id,
            ending,
            trials: finished.trials,
            failed: failures.len(),
            seconds: begun.elapsed().as_secs_f64(),
            directory: dir.path.display().to_string(),
            result: format!("kdyno compare {}", self.plan.id.short()),
        }));
        match table {
            Err(error) if !reader_is_gone(&error) => Err(error),
            _ => Ok(status),
        }
    }

    /// The table, then what failed.
    fn show(
        &self,
        rows: &[RunRow],
        failures: &[Failure],
        events: &mut Events<'_>,
    ) -> anyhow::Result<()> {
        let table = print_table(rows, self.plan, events);
        for failure in describe_failures(failures, self.plan, self.catalog) {
            events.emit(&Event::Failure(failure));
        }
        table
    }
}

/// The index without the runs that are run again. Without one the runs are kept all the same.
fn open_index(forgotten: &[RunId], events: &mut Events<'_>) -> Option<Index> {
    let index = events.hearing(|context| {
        let mut index = index::open(context)?;
        index.runs_delete(forgotten)?;
        anyhow::Ok(index)
    });
    match index {
        Ok(index) => Some(index),
        Err(error) => {
            events.warn(format!(
                "no index for now, the runs are kept all the same: {error:#}"
            ));
            None
        }
    }
}
