//! Taking in plans and runs that were measured elsewhere.

use crate::home::{PLANS, RUNS};
use crate::{Home, PlanDir, RunDir, RunReader, RundirError, State, disk};
use kdyno_model::{PlanId, RunId};
use std::fs;
use std::path::Path;

/// What was taken in of one plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Which.
    pub plan: PlanId,
    /// Runs that are new here.
    pub new: usize,
    /// Runs that were here already, with the same content.
    pub known: usize,
    /// Runs that were never sealed, which are left out.
    pub incomplete: Vec<RunId>,
}

impl Home {
    /// Copies a plan of another home with its sealed runs, or with `only` one of them. A plan that
    /// is new here comes entirely or not at all, and counts as finished: its other trials are not
    /// for this machine to run. One that is here already gets the runs that it lacks.
    ///
    /// # Errors
    /// [`RundirError::Damaged`] when a run is not what was sealed, [`RundirError::Differs`] when
    /// what has the same id here has another content, otherwise what the file system says; nothing
    /// half-copied is then listed.
    pub fn import(&self, source: &PlanDir, only: Option<RunId>) -> Result<Imported, RundirError> {
        let mut imported = Imported {
            plan: source.id,
            new: 0,
            known: 0,
            incomplete: Vec::new(),
        };
        let mut sealed = Vec::new();
        for run in source.runs()?.entries {
            if only.is_some_and(|only| only != run.id) {
                continue;
            }
            match checked(&run)? {
                true => sealed.push(run),
                false => imported.incomplete.push(run.id),
            }
        }
        match self.plan(source.id) {
            Err(RundirError::NotFound { .. }) => {
                imported.new = sealed.len();
                self.import_plan(source, &sealed)?;
            }
            plan => {
                let plan = plan?;
                if plan.plan_bytes()? != source.plan_bytes()? {
                    return Err(RundirError::Differs { path: plan.path });
                }
                for run in &sealed {
                    match self.import_run(&plan, run)? {
                        true => imported.new += 1,
                        false => imported.known += 1,
                    }
                }
            }
        }
        Ok(imported)
    }

    /// A whole plan, made aside and then renamed.
    fn import_plan(&self, source: &PlanDir, sealed: &[RunDir]) -> Result<(), RundirError> {
        let plans = self.path().join(PLANS);
        fs::create_dir_all(&plans).map_err(RundirError::io("create", &plans))?;
        let aside = plans.join(format!("{}.tmp", source.id));
        remove_if_there(&aside)?;
        disk::make_dir(&aside)?;
        disk::make_dir(&aside.join(RUNS))?;
        for file in fs::read_dir(&source.path).map_err(RundirError::io("list", &source.path))? {
            let file = file.map_err(RundirError::io("list", &source.path))?;
            let kind = file.file_type();
            if kind.is_ok_and(|kind| kind.is_file()) {
                copy(&file.path(), &aside.join(file.file_name()))?;
            }
        }
        for run in sealed {
            copy_run(run, &aside.join(RUNS).join(run.id.to_string()))?;
        }
        disk::sync(&aside.join(RUNS))?;
        PlanDir {
            id: source.id,
            path: aside.clone(),
        }
        .mark_finished()?;
        disk::rename(&aside, &plans.join(source.id.to_string()))?;
        disk::sync(&plans)
    }

    /// One run of a plan that is here; false when it was here already.
    fn import_run(&self, plan: &PlanDir, run: &RunDir) -> Result<bool, RundirError> {
        let runs = plan.path.join(RUNS);
        let path = runs.join(run.id.to_string());
        if path.exists() {
            let seal = |dir: &Path| disk::read(&dir.join(crate::name::MANIFEST), SEAL_CAP_BYTES);
            return match seal(&path)? == seal(&run.path)? {
                true => Ok(false),
                false => Err(RundirError::Differs { path }),
            };
        }
        let aside = runs.join(format!("{}.tmp", run.id));
        remove_if_there(&aside)?;
        copy_run(run, &aside)?;
        disk::rename(&aside, &path)?;
        disk::sync(&runs)?;
        Ok(true)
    }
}

/// A line of a hundred bytes for each of a run's files.
const SEAL_CAP_BYTES: u64 = 16 << 20;

/// Whether a run was sealed; a damaged one is an error.
fn checked(run: &RunDir) -> Result<bool, RundirError> {
    match RunReader::open(&run.path)?.state() {
        State::Complete => Ok(true),
        State::Incomplete(_) => Ok(false),
        State::Damaged(problems) => match problems.into_iter().next() {
            Some(problem) => Err(RundirError::Damaged {
                path: run.path.clone(),
                problem,
            }),
            None => Ok(false),
        },
    }
}

/// Copies a sealed run; the copy must verify as well.
fn copy_run(run: &RunDir, to: &Path) -> Result<(), RundirError> {
    let tree = disk::walk(&run.path)?;
    disk::make_dir(to)?;
    let mut made = vec![to.to_owned()];
    for (name, from) in &tree.files {
        let target = to.join(name);
        if let Some(dir) = target.parent().filter(|dir| !dir.exists()) {
            disk::make_dir(dir)?;
            made.push(dir.to_owned());
        }
        copy(from, &target)?;
    }
    for dir in made.iter().rev() {
        disk::sync(dir)?;
    }
    let copy = RunDir {
        id: run.id,
        path: to.to_owned(),
    };
    checked(&copy).map(drop)
}

fn copy(from: &Path, to: &Path) -> Result<(), RundirError> {
    disk::copy(from, to)?;
    disk::sync(to)
}

/// What an import that was cut has left.
fn remove_if_there(aside: &Path) -> Result<(), RundirError> {
    match aside.exists() {
        true => fs::remove_dir_all(aside).map_err(RundirError::io("remove", aside)),
        false => Ok(()),
    }
}
