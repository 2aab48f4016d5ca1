//! `kdyno run`: from a job to a plan, from a plan to runs, from runs to a table.

mod decide;
mod dry_run;
mod event;
mod events;
mod execute;
mod planning;
mod progress;
mod session;

use crate::cli::RunArgs;
use crate::compare;
use crate::context::{Context, Status, UsageError, hint_of, reader_is_gone};
use crate::doctor;
use crate::index;
use crate::program;
use anyhow::Context as _;
use event::Event;
use events::Events;
use kdyno_analyze::noise::NoiseMemory;
use kdyno_analyze::render::text::{self, TextOptions};
use kdyno_job::catalog::Catalog;
use kdyno_job::plan::Plan;
use kdyno_model::{
    BoxFacts, FunctionProbe, PlanId, Preparation, RunId, RunRow, SessionId, Setting, Testbox,
};
use kdyno_rundir::{PlanDir, RunReader, State};
use kdyno_testbox::doctor::Level;
use kdyno_testbox::functions::check;
use kdyno_testbox::{
    Interrupt, LocalOptions, LocalTestbox, facts::read_facts, root::SysRoot, state_dir,
};
use session::Session;
use std::collections::HashSet;
use std::path::PathBuf;

/// Runs a new plan, or finishes the newest unfinished one.
pub fn command(args: &RunArgs, context: &mut Context) -> anyhow::Result<Status> {
    let mut events = Events::begin(args.json, context);
    let result = run(args, &mut events);
    if let Err(error) = &result
        && !reader_is_gone(error)
    {
        events.emit(&Event::Error {
            message: format!("{error:#}"),
            hint: hint_of(error),
        });
    }
    let status = result.as_ref().copied().unwrap_or(Status::BadUsage);
    events.emit(&Event::StreamEnded {
        exit_status: status.code(),
    });
    match events.failure() {
        Some(unwritten) if result.is_ok() => Err(unwritten),
        _ => result,
    }
}

fn run(args: &RunArgs, events: &mut Events<'_>) -> anyhow::Result<Status> {
    let catalog = program::catalog(events.context)?;
    if args.resume {
        return resume(args, &catalog, events);
    }
    let (host, facts) = look_at_machine(args.testbox.as_deref())?;
    let functions = functions(args)?;
    let id = PlanId::new_after(events.context.home()?.newest().0);
    let mut planned = planning::plan(id, args, &host, &facts, &catalog)?;
    for trial in &mut planned.plan.trials {
        trial.work.functions.clone_from(&functions);
    }
    for note in &planned.notes {
        events.note(note);
    }
    for (case, reason) in &planned.skipped {
        events.emit(&Event::Skipped {
            case: case.clone(),
            reason: reason.clone(),
        });
    }
    if planned.plan.trials.is_empty() {
        events.note("every case is skipped: nothing to run");
        return Ok(Status::CannotTell);
    }
    if args.dry_run {
        return dry_run::print(&planned.plan, &catalog, events.context);
    }
    look_around(args, events)?;
    // Until here an interrupt just ends us.
    let interrupt = Interrupt::install()?;
    let mut testbox = local(args.testbox.clone(), Some(interrupt.clone()))?;
    let id = SessionId::new();
    testbox
        .prepare(&preparation(&planned.plan, id, args.force))
        .with_context(|| planned.plan.job.clone())?;
    let home = events.context.home()?;
    let dir = serde_json::to_vec(&planned.plan)
        .map_err(anyhow::Error::from)
        .and_then(|bytes| {
            let source = planned.job_source.as_deref();
            Ok(home.create_plan(planned.plan.id, &bytes, source)?)
        });
    let session = Session {
        plan: &planned.plan,
        catalog: &catalog,
        id,
        interrupt: &interrupt,
        resumed: false,
    };
    session.carry_out(dir, &mut testbox, events)
}

/// The functions to time, once this kernel can.
fn functions(args: &RunArgs) -> anyhow::Result<Vec<FunctionProbe>> {
    let probe = |function: &String| FunctionProbe {
        function: function.clone(),
        filter: args.function_filter.clone(),
    };
    let probes: Vec<FunctionProbe> = args.functions.iter().map(probe).collect();
    check(&SysRoot::real(), &probes)?;
    Ok(probes)
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

/// Checks of the doctor that are left out: preparing refuses the machine to a second run, and puts
/// back what one that died has left changed.
const PREPARING_SEES: [&str; 2] = ["other-run", "undo-journal"];

/// Tells what makes noise on the machine.
fn look_around(args: &RunArgs, events: &mut Events<'_>) -> anyhow::Result<()> {
    if args.no_doctor {
        return Ok(());
    }
    let mut findings = doctor::look(events.context)?;
    findings.retain(|found| found.level > Level::Ok && !PREPARING_SEES.contains(&found.check));
    events.emit(&Event::Doctor { findings });
    Ok(())
}

fn resume(args: &RunArgs, catalog: &Catalog, events: &mut Events<'_>) -> anyhow::Result<Status> {
    let Some((dir, plan)) = newest_unfinished(events)? else {
        events.note("nothing to resume: every plan is finished");
        return Ok(Status::Done);
    };
    let (host, facts) = look_at_machine(Some(&plan.testbox))?;
    refuse_other_machine(&plan, &host, &facts)?;
    look_around(args, events)?;
    let interrupt = Interrupt::install()?;
    let mut testbox = local(Some(plan.testbox.clone()), Some(interrupt.clone()))?;
    let id = SessionId::new();
    // What is done is looked up behind the lock, so that no other run adds to it meanwhile.
    testbox.prepare(&preparation(&plan, id, args.force))?;
    let session = Session {
        plan: &plan,
        catalog,
        id,
        interrupt: &interrupt,
        resumed: true,
    };
    session.carry_out(Ok(dir), &mut testbox, events)
}

/// The newest plan that can be read and has trials left. One that cannot be read is told and
/// hides no older one.
fn newest_unfinished(events: &mut Events<'_>) -> anyhow::Result<Option<(PlanDir, Plan)>> {
    let mut unreadable = Vec::new();
    for dir in events.context.home()?.plans()?.entries {
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
            Err(error) => {
                let plan = dir.path.join("plan.json");
                events.note(format!("{} cannot be resumed: {error:#}", plan.display()));
                unreadable.push(plan);
            }
        }
    }
    if let Some(plan) = unreadable.first() {
        let told = format!(
            "nothing else is to be resumed, and {} cannot be read",
            plan.display()
        );
        let hint = "put it back from a copy, or begin anew with `kdyno run`";
        return Err(UsageError::new(told, hint).into());
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

/// The plan's runs, of all its sessions.
fn rows_of(plan: &Plan, events: &mut Events<'_>) -> anyhow::Result<Vec<RunRow>> {
    let indexed = events.hearing(|context| index::rows_of_plan(plan.id, context));
    indexed.or_else(|error| {
        events.warn(format!(
            "no index, the table is made of the run directories: {error:#}"
        ));
        events.hearing(|context| index::rows_on_disk(plan.id, context))
    })
}

/// The table is the result on standard output, unless that is for events.
fn print_table(rows: &[RunRow], plan: &Plan, events: &mut Events<'_>) -> anyhow::Result<()> {
    let history = events
        .hearing(|context| index::noise_memory(context, rows))
        .unwrap_or_else(|error| {
            events.warn(format!("no noise memory: {error:#}"));
            NoiseMemory::default()
        });
    let comparison = compare::comparison_of_plan(rows, plan, history);
    let text = text::render(&comparison, &TextOptions::default());
    let id = plan.id.short();
    let json = events.is_json();
    let context = &mut *events.context;
    context.erase();
    let out = if json {
        &mut context.err
    } else {
        &mut context.out
    };
    writeln!(out, "{text}")?;
    if rows.iter().any(|row| row.outcome.is_done() && !row.warm_up) {
        writeln!(
            out,
            "plan {id}: `kdyno compare --format lkp` prints it for a mail, `kdyno list` shows every run"
        )?;
    }
    out.flush()?;
    Ok(())
}
