//! `kdyno import`: runs that were measured on another machine.

use crate::cli::ImportArgs;
use crate::context::{Context, Status, UsageError};
use crate::index;
use kdyno_model::{PlanId, RunId};
use kdyno_rundir::{Home, PlanDir};
use std::path::{Path, PathBuf};

/// A plan and, where one is meant, its run.
type Source = (PlanDir, Option<RunId>);

/// Copies plans and runs into the home and its index.
pub fn command(args: &ImportArgs, context: &mut Context) -> anyhow::Result<Status> {
    let mut sources = Vec::new();
    for path in &args.paths {
        sources.extend(sources_at(path, context)?);
    }
    let home = context.home()?;
    let mut plans = Vec::new();
    for (plan, only) in sources {
        let imported = home.import(&plan, only)?;
        for run in &imported.incomplete {
            context.note(&format!("run {run} is left out: it was never sealed"));
        }
        let known = match imported.known {
            0 => String::new(),
            known => format!(", {known} were here already"),
        };
        writeln!(
            context.out,
            "plan {}: {} runs imported{known}",
            imported.plan, imported.new
        )?;
        plans.push(imported.plan);
    }
    index::take_in_plans(&plans, context)?;
    writeln!(
        context.out,
        "`kdyno compare PLAN...` compares them, `--across testbox` machines"
    )?;
    context.out.flush()?;
    Ok(Status::Done)
}

/// The plans and runs that a path names: a home, a plan's directory, or a run's.
fn sources_at(path: &Path, context: &mut Context) -> anyhow::Result<Vec<Source>> {
    // Links and `.` hide the names that are ids.
    let path = path
        .canonicalize()
        .map_err(|error| anyhow::Error::from(error).context(path.display().to_string()))?;
    if path.join("plans").is_dir() {
        let plans = Home::at(&path).plans()?;
        for note in plans.notes {
            context.note(&note);
        }
        return Ok(plans.entries.into_iter().map(|plan| (plan, None)).collect());
    }
    if path.join("plan.json").is_file() {
        return Ok(vec![(plan_at(&path)?, None)]);
    }
    let above = path.parent().and_then(Path::parent);
    let run = name_of(&path).and_then(|name| RunId::parse(&name));
    match (run, above) {
        (Some(run), Some(plan)) if plan.join("plan.json").is_file() => {
            Ok(vec![(plan_at(plan)?, Some(run))])
        }
        (Some(_), _) if path.join("format").is_file() => {
            let what = format!("{}: a run without its plan", path.display());
            let hint = "copy the plan's directory, with plan.json, and give that";
            Err(UsageError::new(what, hint).into())
        }
        _ => {
            let what = format!("{}: neither a home, nor a plan, nor a run", path.display());
            let hint = "give a copy of HOME, of HOME/plans/PLAN or of HOME/plans/PLAN/runs/RUN";
            Err(UsageError::new(what, hint).into())
        }
    }
}

fn plan_at(path: &Path) -> anyhow::Result<PlanDir> {
    let id = name_of(path).and_then(|name| PlanId::parse(&name));
    let Some(id) = id else {
        let what = format!("{}: its name is no plan's id", path.display());
        let hint = "keep the name that the directory has where it was measured";
        return Err(UsageError::new(what, hint).into());
    };
    Ok(PlanDir {
        id,
        path: PathBuf::from(path),
    })
}

fn name_of(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}
