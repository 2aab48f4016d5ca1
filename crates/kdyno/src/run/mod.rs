//! `kdyno run`: from a job to a plan, from a plan to runs, from runs to a table.

mod dry_run;
mod execute;
mod planning;
mod progress;

use crate::cli::{Format, RunArgs};
use crate::compare;
use crate::context::{Context, Status, UsageError};
use crate::index;
use execute::Finished;
use kdyno_analyze::Diagnostics;
use kdyno_job::catalog::Catalog;
use kdyno_job::plan::Plan;
use kdyno_model::{Preparation, RunRow, SessionId, Setting, Testbox, Trial};
use kdyno_rundir::PlanDir;
use kdyno_store::RunFilter;
use kdyno_testbox::{Interrupt, LocalOptions, LocalTestbox, root::SysRoot, state_dir};
use std::collections::HashSet;

/// Runs a new plan, or finishes the newest unfinished one.
pub fn command(args: &RunArgs, context: &mut Context) -> anyhow::Result<Status> {
    let catalog = Catalog::built_in()?;
    let interrupt = Interrupt::install()?;
    if args.resume {
        return resume(args, &catalog, interrupt, context);
    }
    let mut testbox = local(args.testbox.clone(), Some(interrupt.clone()))?;
    let facts = testbox.facts()?;
    let planned = planning::plan(args, &facts, &catalog)?;
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
    let session = SessionId::new();
    testbox.prepare(&preparation(&planned.plan, session, args.force))?;
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
        program: std::env::current_exe()?,
        name,
        interrupt,
    })?)
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

fn resume(
    args: &RunArgs,
    catalog: &Catalog,
    interrupt: Interrupt,
    context: &mut Context,
) -> anyhow::Result<Status> {
    let home = context.home()?;
    let unfinished = home
        .plans()?
        .entries
        .into_iter()
        .find(|plan| !plan.is_finished());
    let Some(dir) = unfinished else {
        context.note("nothing to resume: every plan is finished");
        return Ok(Status::Done);
    };
    let plan: Plan = serde_json::from_slice(&dir.plan_bytes()?).map_err(|error| {
        UsageError::new(
            format!("{}: {error}", dir.path.join("plan.json").display()),
            "remove this plan to give it up",
        )
    })?;
    let mut testbox = local(Some(plan.testbox.clone()), Some(interrupt.clone()))?;
    let kernel = testbox.facts()?.kernel_release;
    if kernel != plan.kernel_release {
        return Err(UsageError::new(
            format!(
                "plan {} was begun on kernel {}; this is {kernel}",
                plan.id.short(),
                plan.kernel_release
            ),
            "boot that kernel again, or begin anew with `kdyno run`",
        )
        .into());
    }
    let session = SessionId::new();
    // What is done is looked up behind the lock, so that no other run adds to it meanwhile.
    testbox.prepare(&preparation(&plan, session, args.force))?;
    let result = carry_out(&plan, &dir, &mut testbox, session, &interrupt, context);
    conclude(result, &mut testbox, &plan, catalog, context)
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
    let done = sealed_trials(dir)?;
    let todo: Vec<&Trial> = plan
        .trials
        .iter()
        .filter(|trial| !done.contains(&trial.index))
        .collect();
    let mut index = match index::open(context) {
        Ok(index) => Some(index),
        Err(error) => {
            context.note(&format!(
                "warning: no index for now, the runs are kept all the same: {error:#}"
            ));
            None
        }
    };
    let mut execution = execute::Execution {
        plan,
        dir,
        testbox,
        session,
        interrupt,
        index: index.as_mut(),
    };
    let finished = execution.all(&todo, context)?;
    if !finished.interrupted && finished.indexed {
        dir.mark_finished()?;
    }
    Ok(finished)
}

fn sealed_trials(dir: &PlanDir) -> anyhow::Result<HashSet<u32>> {
    let mut done = HashSet::new();
    for run in dir.runs()?.entries {
        let reader = run.open().ok().filter(kdyno_rundir::RunReader::is_sealed);
        // A sealed run whose trial cannot be read is damaged: its trial runs again.
        if let Some(trial) = reader.and_then(|reader| reader.trial().ok()) {
            done.insert(trial.index);
        }
    }
    Ok(done)
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
    print_table(plan, context)?;
    let failures = execute::describe_failures(&finished.failures, plan, catalog);
    for line in &failures {
        context.note(line);
    }
    Ok(if failures.is_empty() {
        Status::Done
    } else {
        Status::RunFailed
    })
}

fn print_table(plan: &Plan, context: &mut Context) -> anyhow::Result<()> {
    let mut index = index::open(context)?;
    let rows = index.runs_select(&RunFilter {
        plans: vec![plan.id],
        ..RunFilter::default()
    })?;
    let rows: Vec<&RunRow> = rows.iter().collect();
    let text = compare::table(
        &rows,
        Format::Text,
        None,
        Diagnostics::None,
        &context.home()?,
    );
    writeln!(
        context.out,
        "{text}\nplan {}: `kdyno compare --format lkp` prints it for a mail, `kdyno list` shows every run",
        plan.id.short()
    )?;
    context.out.flush()?;
    Ok(())
}
