//! The index between run directories and everything that asks about runs.
//!
//! It is derived: missing, it is built; corrupt, it is moved aside and built anew; behind, it is
//! brought up to date. Only plans without their `finished` marker can be behind, since the
//! marker is set after the last run was taken in.

use crate::cli::{IndexArgs, IndexCommand};
use crate::context::{Context, Status};
use kdyno_analyze::noise::{NoiseMemory, run_sets};
use kdyno_analyze::row_of;
use kdyno_job::plan::Plan;
use kdyno_model::{CaseId, PlanId, RunRow};
use kdyno_rundir::{Home, PlanDir, RunDir, State};
use kdyno_store::{Index, Place, RunFilter, StoreError};
use std::collections::BTreeSet;

/// `kdyno index rebuild`: a new index, whatever the old one is.
pub fn command(args: &IndexArgs, context: &mut Context) -> anyhow::Result<Status> {
    let IndexCommand::Rebuild = args.command;
    let home = context.home()?;
    let place = context.index_place()?;
    let mut index = Index::replace(&place)?;
    let taken = fill(&mut index, &home, context)?;
    writeln!(context.out, "{taken} runs in {place}")?;
    context.out.flush()?;
    Ok(Status::Done)
}

/// How often a question is asked while other processes build the index anew.
const ATTEMPTS: usize = 5;

/// Asks the index. Should it turn out to be corrupt only now, it is built anew and asked again; it
/// is asked again also when another process has begun to build it anew: the answer may lack runs.
pub fn ask<T>(
    context: &mut Context,
    question: impl Fn(&mut Index) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    if let Some(answer) = ask_memory(context, &question)? {
        return Ok(answer);
    }
    let mut index = match open(context) {
        Err(error) if cannot_be_kept(&error) => {
            fill_memory(context, &error)?;
            return ask(context, question);
        }
        opened => opened?,
    };
    for _ in 0..ATTEMPTS {
        let answer = question(&mut index);
        if index.is_replaced()? {
            index = open(context)?;
            continue;
        }
        return match answer {
            Err(error) if is_corrupt(&error) => question(&mut build_anew(context)?),
            other => other,
        };
    }
    let place = context.index_place()?;
    Err(StoreError::Busy { place }.into())
}

/// Asks the index that this process has in its memory, if it has one.
fn ask_memory<T>(
    context: &mut Context,
    question: impl Fn(&mut Index) -> anyhow::Result<T>,
) -> anyhow::Result<Option<T>> {
    context.memory_index.as_mut().map(question).transpose()
}

/// Whether the index's file cannot be written: runs of somebody else, or on a disk that is read
/// only, can still be looked at.
fn cannot_be_kept(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<StoreError>(),
        Some(StoreError::Access {
            place: Place::File(_),
            ..
        })
    )
}

/// Fills an index in memory, for this process.
fn fill_memory(context: &mut Context, reason: &anyhow::Error) -> anyhow::Result<()> {
    let home = context.home()?;
    context.note(&format!("{reason:#}; it is made in memory for this time"));
    let mut index = Index::open(&Place::Memory)?;
    fill(&mut index, &home, context)?;
    context.memory_index = Some(index);
    Ok(())
}

/// The index, brought up to date with the run directories; a corrupt one is built anew.
pub fn open(context: &mut Context) -> anyhow::Result<Index> {
    let home = context.home()?;
    match open_current(&home, &context.index_place()?, context) {
        Err(error) if is_corrupt(&error) => build_anew(context),
        other => other,
    }
}

fn is_corrupt(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<StoreError>(),
        Some(StoreError::Corrupt { .. })
    )
}

fn open_current(home: &Home, place: &Place, context: &mut Context) -> anyhow::Result<Index> {
    let mut index = Index::open(place)?;
    if index.is_filled()? {
        take_in(&mut index, home, context, |plan| !plan.is_finished())?;
    } else {
        fill(&mut index, home, context)?;
    }
    Ok(index)
}

/// Takes in plans that have come from elsewhere, whether or not they are finished.
pub fn take_in_plans(plans: &[PlanId], context: &mut Context) -> anyhow::Result<()> {
    let home = context.home()?;
    let mut index = open(context)?;
    take_in(&mut index, &home, context, |plan| plans.contains(&plan.id))?;
    plans
        .iter()
        .try_for_each(|plan| remember_noise(&mut index, *plan))
}

/// Takes in everything; only then the index says that it is filled.
fn fill(index: &mut Index, home: &Home, context: &mut Context) -> anyhow::Result<usize> {
    let taken = take_in(index, home, context, |_| true)?;
    for plan in home.plans()?.entries.iter().filter(|p| p.is_finished()) {
        remember_noise(index, plan.id)?;
    }
    index.mark_filled()?;
    Ok(taken)
}

/// The runs of a plan with all their figures.
pub fn rows_of_plan(plan: PlanId, context: &mut Context) -> anyhow::Result<Vec<RunRow>> {
    let filter = RunFilter {
        plans: vec![plan],
        ..RunFilter::default()
    };
    ask(context, |index| Ok(index.runs_select(&filter)?))
}

/// Run sets of a case and machine that a comparison borrows from, the newest ones.
const MOST_RUN_SETS: u32 = 80;

/// What is remembered of how much the metrics of these runs vary, without the runs' own plans.
pub fn noise_memory(context: &mut Context, rows: &[RunRow]) -> anyhow::Result<NoiseMemory> {
    let places = rows.iter().map(|row| (row.testbox.as_str(), &row.case.id));
    let plans: BTreeSet<PlanId> = rows.iter().map(|row| row.plan).collect();
    noise_of(places.collect(), plans.into_iter().collect(), context)
}

/// The same for the cases of a plan that may have no run yet.
pub fn noise_of_plan(plan: &Plan, context: &mut Context) -> anyhow::Result<NoiseMemory> {
    let cases = plan.cases.keys().map(|case| (plan.testbox.as_str(), case));
    noise_of(cases.collect(), vec![plan.id], context)
}

fn noise_of(
    places: BTreeSet<(&str, &CaseId)>,
    not_of: Vec<PlanId>,
    context: &mut Context,
) -> anyhow::Result<NoiseMemory> {
    ask(context, |index| {
        let mut sets = Vec::new();
        for (testbox, case) in &places {
            sets.extend(index.run_sets_select(testbox, case, &not_of, MOST_RUN_SETS)?);
        }
        Ok(NoiseMemory::new(sets))
    })
}

/// Remembers how much the metrics of a finished plan varied. Plans that never finished are not
/// remembered: their blocks may be cut.
pub fn remember_noise(index: &mut Index, plan: PlanId) -> anyhow::Result<()> {
    let filter = RunFilter {
        plans: vec![plan],
        ..RunFilter::default()
    };
    let sets = run_sets(&index.runs_select(&filter)?);
    Ok(index.run_sets_replace(plan, &sets)?)
}

/// The same from the run directories, for when there is no index.
pub fn rows_on_disk(plan: PlanId, context: &mut Context) -> anyhow::Result<Vec<RunRow>> {
    let runs = context.home()?.plan(plan)?.runs()?.entries;
    Ok(runs
        .iter()
        .filter_map(|run| row_or_note(run, context))
        .collect())
}

/// Moves the corrupt index aside and fills a new one.
fn build_anew(context: &mut Context) -> anyhow::Result<Index> {
    let home = context.home()?;
    let place = context.index_place()?;
    let aside = Index::set_aside(&place)?;
    context.note(&format!(
        "the index is corrupt: kept as {aside}, built anew from the runs"
    ));
    let mut index = Index::open(&place)?;
    fill(&mut index, &home, context)?;
    Ok(index)
}

/// Takes in the sealed runs of the plans that `wanted` says, forgets those that are gone, and
/// returns how many were new. A plan that cannot be read hides no other.
fn take_in(
    index: &mut Index,
    home: &Home,
    context: &mut Context,
    wanted: impl Fn(&PlanDir) -> bool,
) -> anyhow::Result<usize> {
    let mut taken = 0;
    for plan in home.plans()?.entries.iter().filter(|plan| wanted(plan)) {
        let runs = match plan.runs() {
            Ok(runs) => runs.entries,
            Err(error) => {
                let error = anyhow::Error::from(error);
                context.note(&format!("plan {} is left out: {error:#}", plan.id));
                continue;
            }
        };
        let mut gone = index.run_ids(plan.id)?;
        let new = runs.iter().filter(|run| !gone.remove(&run.id));
        let rows: Vec<RunRow> = new.filter_map(|run| row_or_note(run, context)).collect();
        index.runs_delete(&gone.into_iter().collect::<Vec<_>>())?;
        index.ingest(&rows)?;
        taken += rows.len();
    }
    Ok(taken)
}

/// A sealed run as a row; one that is damaged is told and left out.
fn row_or_note(run: &RunDir, context: &mut Context) -> Option<RunRow> {
    sealed_row(run).unwrap_or_else(|error| {
        context.note(&format!("run {} is left out: {error:#}", run.id));
        None
    })
}

/// A sealed run as a row; nothing for one that is not sealed: it may still be running.
fn sealed_row(run: &RunDir) -> anyhow::Result<Option<RunRow>> {
    let reader = run.open()?;
    if !reader.is_sealed() {
        return Ok(None);
    }
    if let State::Damaged(problems) = reader.state() {
        let first = problems
            .first()
            .map(ToString::to_string)
            .unwrap_or_default();
        anyhow::bail!("damaged: {first}");
    }
    Ok(Some(row_of(&reader.record()?)))
}
