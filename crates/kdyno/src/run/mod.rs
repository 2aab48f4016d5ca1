//! `kdyno run`: from a job to a plan, from a plan to runs, from runs to a table.

mod decide;
mod dry_run;
mod execute;
mod planning;
mod progress;

use crate::cli::RunArgs;
use crate::compare;
use crate::context::{Context, Status, UsageError, reader_is_gone};
use crate::index;
use crate::program;
use anyhow::Context as _;
use execute::Finished;
use kdyno_analyze::noise::NoiseMemory;
use kdyno_analyze::render::text::{self, TextOptions};
use kdyno_job::catalog::Catalog;
use kdyno_job::plan::Plan;
use kdyno_model::{
    BoxFacts, PlanId, Preparation, RunId, RunRow, SessionId, Setting, Testbox, Trial,
};
use kdyno_rundir::{PlanDir, RunReader, State};
use kdyno_testbox::{
    Interrupt, LocalOptions, LocalTestbox, facts::read_facts, root::SysRoot, state_dir,
};
use std::collections::HashSet;
use std::path::PathBuf;

/// Runs a new plan, or finishes the newest unfinished one.
pub fn command(args: &RunArgs, context: &mut Context) -> anyhow::Result<Status> {
    let catalog = program::catalog()?;
    if args.resume {
        return resume(args, &catalog, context);
    }
    let (host, facts) = look_at_machine(args.testbox.as_deref())?;
    let id = PlanId::new_after(context.home()?.newest().0);
    let planned = planning::plan(id, args, &host, &facts, &catalog)?;
    for note in &planned.notes {
        context.note(&format!("note: {note}"));
    }
    for skipped in &planned.plan.skipped {
        context.note(&format!("skipped: {skipped}"));
    }
    if planned.plan.trials.is_empty() {
        context.note("every case is skipped: nothing to run");
        return Ok(Status::CannotTell);
    }
    if args.dry_run {
        return dry_run::print(&planned.plan, &catalog, context);
    }
    // Until here an interrupt just ends us.
    let interrupt = Interrupt::install()?;
    let mut testbox = local(args.testbox.clone(), Some(interrupt.clone()))?;
    let session = SessionId::new();
    testbox
        .prepare(&preparation(&planned.plan, session, args.force))
        .with_context(|| planned.plan.job.clone())?;
    let home = context.home()?;
    let result = serde_json::to_vec(&planned.plan)
        .map_err(anyhow::Error::from)
        .and_then(|bytes| {
            let dir = home.create_plan(planned.plan.id, &bytes, planned.job_source.as_deref())?;
            carry_out(
                &planned.plan,
                &dir,
                &mut testbox,
                session,
                &interrupt,
                context,
            )
        });
    conclude(result, &mut testbox, &planned.plan, &catalog, context)
}

fn local(name: Option<String>, interrupt: Option<Interrupt>) -> anyhow::Result<LocalTestbox> {
    Ok(LocalTestbox::new(LocalOptions {
        root: SysRoot::real(),
        state_dir: state_dir(),
        program: running_image(),
        name,
        interrupt,
    })?)
}

/// The machine's own name, and its facts under the name that tables give it.
fn look_at_machine(testbox: Option<&str>) -> anyhow::Result<(String, BoxFacts)> {
    let facts = read_facts(&SysRoot::real(), None)?;
    let host = facts.testbox.clone();
    let testbox = testbox.map_or_else(|| host.clone(), str::to_owned);
    Ok((host, BoxFacts { testbox, ..facts }))
}

/// kdyno as it runs, not what its path has become meanwhile: a build beside a running plan must
/// not change what is measured.
pub fn running_image() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

fn preparation(plan: &Plan, session: SessionId, force: bool) -> Preparation {
    Preparation {
        session: Some(session),
        settings: settings_of(plan),
        force,
    }
}

/// Every setting that some trial makes, each once, in order of first use.
fn settings_of(plan: &Plan) -> Vec<Setting> {
    let mut seen = HashSet::new();
    let all = plan.trials.iter().flat_map(|trial| &trial.work.settings);
    all.filter(|setting| seen.insert(*setting))
        .cloned()
        .collect()
}

fn resume(args: &RunArgs, catalog: &Catalog, context: &mut Context) -> anyhow::Result<Status> {
    let Some((dir, plan)) = newest_unfinished(context)? else {
        context.note("nothing to resume: every plan is finished");
        return Ok(Status::Done);
    };
    let interrupt = Interrupt::install()?;
    let (host, facts) = look_at_machine(Some(&plan.testbox))?;
    refuse_other_machine(&plan, &host, &facts)?;
    let mut testbox = local(Some(plan.testbox.clone()), Some(interrupt.clone()))?;
    let session = SessionId::new();
    // What is done is looked up behind the lock, so that no other run adds to it meanwhile.
    testbox.prepare(&preparation(&plan, session, args.force))?;
    let result = carry_out(&plan, &dir, &mut testbox, session, &interrupt, context);
    conclude(result, &mut testbox, &plan, catalog, context)
}

/// The newest plan that can be read and has trials left. One that cannot be read is told and
/// hides no older one.
fn newest_unfinished(context: &mut Context) -> anyhow::Result<Option<(PlanDir, Plan)>> {
    for dir in context.home()?.plans()?.entries {
        if dir.is_finished() {
            continue;
        }
        let plan = dir
            .plan_bytes()
            .map_err(anyhow::Error::from)
            .and_then(|bytes| {
                let plan: Plan = serde_json::from_slice(&bytes)?;
                anyhow::ensure!(plan.id == dir.id, "it is the plan of another directory");
                let done = look_at_runs(&dir)?.done;
                Ok((plan, done))
            });
        match plan {
            // Only the mark is missing.
            Ok((plan, done)) if plan.trials.iter().all(|trial| done.contains(&trial.index)) => {}
            Ok((plan, _)) => return Ok(Some((dir, plan))),
            Err(error) => context.note(&format!(
                "{} cannot be resumed: {error:#}",
                dir.path.display()
            )),
        }
    }
    Ok(None)
}

/// Runs of two machines or kernels are no runs of one plan; shares were taken of its CPUs.
fn refuse_other_machine(plan: &Plan, host: &str, facts: &BoxFacts) -> Result<(), UsageError> {
    let begun = (plan.host.as_str(), plan.kernel_release.as_str(), plan.cpus);
    let here = (host, facts.kernel_release.as_str(), facts.cpus);
    if begun == here {
        return Ok(());
    }
    let told = |(host, kernel, cpus): (&str, &str, u32)| {
        format!("{host} with kernel {kernel} and {cpus} CPUs")
    };
    Err(UsageError::new(
        format!(
            "plan {} was begun on {}; this is {}",
            plan.id.short(),
            told(begun),
            told(here)
        ),
        "finish it there, or begin anew with `kdyno run`",
    ))
}

/// Runs what is not done yet of a plan.
fn carry_out(
    plan: &Plan,
    dir: &PlanDir,
    testbox: &mut LocalTestbox,
    session: SessionId,
    interrupt: &Interrupt,
    context: &mut Context,
) -> anyhow::Result<Finished> {
    let _turn = lock_plan(dir)?;
    let runs = look_at_runs(dir)?;
    for run in &runs.damaged {
        context.note(&format!("run {run} is damaged; its trial runs again"));
    }
    let todo: Vec<&Trial> = plan
        .trials
        .iter()
        .filter(|trial| !runs.done.contains(&trial.index))
        .collect();
    let forgotten = [runs.cut, runs.damaged].concat();
    let index = index::open(context).and_then(|mut index| {
        index.runs_delete(&forgotten)?;
        Ok(index)
    });
    let mut index = match index {
        Ok(index) => Some(index),
        Err(error) => {
            context.note(&format!(
                "warning: no index for now, the runs are kept all the same: {error:#}"
            ));
            None
        }
    };
    let mut decider = match plan.looks {
        Some(looks) => Some(decide::Decider::begin(plan, looks, context)?),
        None => None,
    };
    let mut execution = execute::Execution {
        plan,
        dir,
        newest_run: context.home()?.newest().1,
        testbox,
        session,
        interrupt,
        index: index.as_mut(),
        decider: decider.as_mut(),
    };
    let finished = execution.all(&todo, context)?;
    if let Some(decider) = &decider {
        dir.write_decision(&decider.record()?)?;
    }
    if !finished.interrupted && finished.indexed {
        if let Some(Err(error)) = index.as_mut().map(|i| index::remember_noise(i, plan.id)) {
            context.note(&format!("warning: the noise is not remembered: {error:#}"));
        }
        dir.mark_finished()?;
    }
    if let Some(decider) = decider.filter(|_| !finished.interrupted) {
        context.note(&decider.conclusion());
    }
    Ok(finished)
}

/// Two processes that run one plan would run its trials twice.
fn lock_plan(dir: &PlanDir) -> anyhow::Result<std::fs::File> {
    let path = dir.path.join("plan.json");
    let file = std::fs::File::open(&path).with_context(|| path.display().to_string())?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(UsageError::new(
            format!("plan {} is being run by another process", dir.id.short()),
            "wait for it, or end it",
        )
        .into()),
        Err(std::fs::TryLockError::Error(error)) => {
            Err(error).with_context(|| path.display().to_string())
        }
    }
}

/// What is there of a plan.
#[derive(Default)]
struct Runs {
    /// The trials whose runs are complete.
    done: HashSet<u32>,
    /// Runs that were never sealed.
    cut: Vec<RunId>,
    /// Runs that were sealed and have been damaged since.
    damaged: Vec<RunId>,
}

fn look_at_runs(dir: &PlanDir) -> anyhow::Result<Runs> {
    let mut runs = Runs::default();
    for run in dir.runs()?.entries {
        let reader = run.open().ok();
        let state = reader.as_ref().map(RunReader::state);
        match (state, reader.and_then(|reader| reader.trial().ok())) {
            (Some(State::Complete), Some(trial)) => {
                runs.done.insert(trial.index);
            }
            (Some(State::Incomplete(_)), _) => runs.cut.push(run.id),
            _ => runs.damaged.push(run.id),
        }
    }
    Ok(runs)
}

/// Puts the machine back whatever happened, then shows what came of the plan.
fn conclude(
    result: anyhow::Result<Finished>,
    testbox: &mut LocalTestbox,
    plan: &Plan,
    catalog: &Catalog,
    context: &mut Context,
) -> anyhow::Result<Status> {
    let recovered = testbox.recover();
    let finished = match (result, recovered) {
        (Err(error), Err(unrestored)) => return Err(error.context(unrestored)),
        (Err(error), Ok(_)) => return Err(error),
        (Ok(_), Err(unrestored)) => return Err(unrestored.into()),
        (Ok(finished), Ok(recovery)) => {
            for left in recovery.left_alone {
                context.note(&format!(
                    "left alone {left}: somebody else changed it meanwhile"
                ));
            }
            finished
        }
    };
    if finished.interrupted {
        context
            .note("interrupted; everything is put back. `kdyno run --resume` finishes the plan.");
        return Ok(Status::Interrupted);
    }
    let rows = rows_of(plan, context)?;
    let table = print_table(&rows, plan, context);
    let dir = context.home()?.plan(plan.id)?;
    let failures: Vec<_> = rows
        .iter()
        .filter_map(|row| execute::Failure::of(row, &dir))
        .collect();
    for line in execute::describe_failures(&failures, plan, catalog) {
        context.note(&line);
    }
    match table {
        Err(error) if !reader_is_gone(&error) => Err(error),
        _ if failures.is_empty() => Ok(Status::Done),
        _ => Ok(Status::RunFailed),
    }
}

/// The plan's runs, of all its sessions.
fn rows_of(plan: &Plan, context: &mut Context) -> anyhow::Result<Vec<RunRow>> {
    index::rows_of_plan(plan.id, context).or_else(|error| {
        context.note(&format!(
            "warning: no index, the table is made of the run directories: {error:#}"
        ));
        index::rows_on_disk(plan.id, context)
    })
}

fn print_table(rows: &[RunRow], plan: &Plan, context: &mut Context) -> anyhow::Result<()> {
    let history = index::noise_memory(context, rows).unwrap_or_else(|error| {
        context.note(&format!("warning: no noise memory: {error:#}"));
        NoiseMemory::default()
    });
    let comparison = compare::comparison_of_plan(rows, plan, history);
    let text = text::render(&comparison, &TextOptions::default());
    let id = plan.id.short();
    writeln!(context.out, "{text}")?;
    if rows.iter().any(|row| row.outcome.is_done() && !row.warm_up) {
        writeln!(
            context.out,
            "plan {id}: `kdyno compare --format lkp` prints it for a mail, `kdyno list` shows every run"
        )?;
    }
    context.out.flush()?;
    Ok(())
}
