//! The home directory and its plans.

use crate::{RunReader, RunWriter, RundirError, disk, writer};
use kdyno_model::{HomeId, PlanId, RunId, Trial};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const ID: &str = "index-id";
pub(crate) const PLANS: &str = "plans";
const PLAN: &str = "plan.json";
const JOB: &str = "job.yaml";
const DECISION: &str = "decision.json";
const FINISHED: &str = "finished";
pub(crate) const RUNS: &str = "runs";

/// An id and its line end.
const ID_CAP_BYTES: u64 = 64;

/// More than this is neither a plan nor a job.
const PLAN_CAP_BYTES: u64 = 256 << 20;

/// The directory that holds every plan.
#[derive(Clone, Debug)]
pub struct Home(PathBuf);

/// What a directory holds, and what else was found in it.
#[derive(Debug)]
pub struct Listing<T> {
    /// The plans, newest first, or the runs, oldest first.
    pub entries: Vec<T>,
    /// One line per name that was skipped, since it is no id.
    pub notes: Vec<String>,
}

/// One plan's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanDir {
    /// Its id, from the directory's name.
    pub id: PlanId,
    /// The directory.
    pub path: PathBuf,
}

/// One run's directory, in whatever state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir {
    /// Its id, from the directory's name.
    pub id: RunId,
    /// The directory.
    pub path: PathBuf,
}

impl Home {
    /// The home at `path`, which need not exist yet.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The home's own id, which it is given the first time that somebody asks. It stays when the
    /// home is moved; a copy has it as well.
    ///
    /// # Errors
    /// [`RundirError::Content`] when the file holds something else, otherwise what the file system
    /// says.
    pub fn id(&self) -> Result<HomeId, RundirError> {
        let path = self.0.join(ID);
        match read_id(&path) {
            Err(RundirError::NotFound { .. }) => {
                self.create_id(&path)?;
                read_id(&path)
            }
            other => other,
        }
    }

    /// Of several processes that do this at once, the first one's id stays.
    fn create_id(&self, path: &Path) -> Result<(), RundirError> {
        fs::create_dir_all(&self.0).map_err(RundirError::io("create", &self.0))?;
        let new = HomeId::new();
        let unfinished = self.0.join(format!("{ID}.{new}.tmp"));
        disk::create(&unfinished, format!("{new}\n").as_bytes())?;
        disk::sync(&unfinished)?;
        // Unlike a renamed file, a linked one replaces nothing.
        let linked = fs::hard_link(&unfinished, path);
        disk::remove(&unfinished)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(RundirError::io("create", path)(error))
            }
            _ => disk::sync(&self.0),
        }
    }

    /// Writes a new plan with the bytes of its text and of the job file that it came from: it is
    /// there entirely, and on the disk, or not at all.
    ///
    /// # Errors
    /// [`RundirError::Exists`] when the plan is there, otherwise what the file system says.
    pub fn create_plan(
        &self,
        id: PlanId,
        plan_bytes: &[u8],
        job_source: Option<&[u8]>,
    ) -> Result<PlanDir, RundirError> {
        let plans = self.0.join(PLANS);
        fs::create_dir_all(&plans).map_err(RundirError::io("create", &plans))?;
        let path = plans.join(id.to_string());
        if path.exists() {
            return Err(RundirError::Exists { path });
        }
        let unfinished = plans.join(format!("{id}.tmp"));
        disk::make_dir(&unfinished)?;
        disk::make_dir(&unfinished.join(RUNS))?;
        disk::create(&unfinished.join(PLAN), plan_bytes)?;
        disk::sync(&unfinished.join(PLAN))?;
        if let Some(source) = job_source {
            disk::create(&unfinished.join(JOB), source)?;
            disk::sync(&unfinished.join(JOB))?;
        }
        disk::sync(&unfinished)?;
        disk::rename(&unfinished, &path)?;
        disk::sync(&plans)?;
        disk::sync(&self.0)?;
        Ok(PlanDir { id, path })
    }

    /// Its plans, newest first; none when the home does not exist.
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn plans(&self) -> Result<Listing<PlanDir>, RundirError> {
        let (found, notes) = list(&self.0.join(PLANS), PlanId::parse)?;
        let mut entries: Vec<_> = found
            .into_iter()
            .map(|(id, path)| PlanDir { id, path })
            .collect();
        entries.sort_by_key(|plan| std::cmp::Reverse(plan.id));
        Ok(Listing { entries, notes })
    }

    /// The newest plan and the newest run of all that are listed; what cannot be listed is not
    /// there.
    #[must_use]
    pub fn newest(&self) -> (Option<PlanId>, Option<RunId>) {
        let plans = self.plans().map(|listing| listing.entries);
        let Some(plan) = plans.unwrap_or_default().into_iter().next() else {
            return (None, None);
        };
        let runs = plan.runs().map(|listing| listing.entries);
        let newest = runs.unwrap_or_default().into_iter().map(|run| run.id).max();
        (Some(plan.id), newest)
    }

    /// The plan with this id.
    ///
    /// # Errors
    /// [`RundirError::NotFound`] when there is none.
    pub fn plan(&self, id: PlanId) -> Result<PlanDir, RundirError> {
        let path = self.0.join(PLANS).join(id.to_string());
        if path.is_dir() {
            Ok(PlanDir { id, path })
        } else {
            Err(RundirError::NotFound { path })
        }
    }
}

fn read_id(path: &Path) -> Result<HomeId, RundirError> {
    let bytes = disk::read(path, ID_CAP_BYTES)?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    HomeId::parse(text.trim_end()).ok_or_else(|| RundirError::Content {
        path: path.to_owned(),
        line: 1,
        reason: "no id of a home; without this file the home gets a new one".to_owned(),
    })
}

impl PlanDir {
    /// The plan's text as it was written.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn plan_bytes(&self) -> Result<Vec<u8>, RundirError> {
        disk::read(&self.path.join(PLAN), PLAN_CAP_BYTES)
    }

    /// The job file's bytes; `None` when the plan was not made from one.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn job_source(&self) -> Result<Option<Vec<u8>>, RundirError> {
        match disk::read(&self.path.join(JOB), PLAN_CAP_BYTES) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(RundirError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether all its trials are sealed.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.path.join(FINISHED).exists()
    }

    /// Notes, durably, that all its trials are sealed; saying it twice is fine.
    ///
    /// # Errors
    /// When the marker cannot be written.
    pub fn mark_finished(&self) -> Result<(), RundirError> {
        if !self.is_finished() {
            disk::create(&self.path.join(FINISHED), b"")?;
        }
        disk::sync(&self.path)
    }

    /// Its runs in the order in which they were begun, complete or not.
    ///
    /// # Errors
    /// When the directory cannot be listed; a damaged run is in the list like any other.
    pub fn runs(&self) -> Result<Listing<RunDir>, RundirError> {
        let (found, notes) = list(&self.path.join(RUNS), RunId::parse)?;
        let mut entries: Vec<_> = found
            .into_iter()
            .map(|(id, path)| RunDir { id, path })
            .collect();
        entries.sort_by_key(|run| run.id);
        Ok(Listing { entries, notes })
    }

    /// Opens one of its runs.
    ///
    /// # Errors
    /// As [`RunReader::open`].
    pub fn run(&self, id: RunId) -> Result<RunReader, RundirError> {
        RunReader::open(&self.path.join(RUNS).join(id.to_string()))
    }

    /// How the plan was decided, as far as it was looked at.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn decision(&self) -> Result<Option<Vec<u8>>, RundirError> {
        match disk::read(&self.path.join(DECISION), PLAN_CAP_BYTES) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(RundirError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Keeps how the plan was decided (JSON), in place of what was kept before.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_decision(&self, bytes: &[u8]) -> Result<(), RundirError> {
        let path = self.path.join(DECISION);
        let unfinished = self.path.join(format!("{DECISION}.tmp"));
        fs::remove_file(&unfinished)
            .or_else(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })
            .map_err(RundirError::io("remove", &unfinished))?;
        disk::create(&unfinished, bytes)?;
        disk::sync(&unfinished)?;
        disk::rename(&unfinished, &path)?;
        disk::sync(&self.path)
    }

    /// Begins a run: its directory is there, incomplete, until the writer seals it. `trial` has
    /// boot and session filled in, `case_text` is the canonical case.
    ///
    /// # Errors
    /// [`RundirError::Exists`] when the run is there, otherwise what the file system says.
    pub fn create_run(
        &self,
        id: RunId,
        case_text: Option<&str>,
        trial: &Trial,
    ) -> Result<RunWriter, RundirError> {
        writer::begin(&self.path.join(RUNS), id, case_text, trial)
    }
}

impl RunDir {
    /// Opens it for reading.
    ///
    /// # Errors
    /// As [`RunReader::open`].
    pub fn open(&self) -> Result<RunReader, RundirError> {
        RunReader::open(&self.path)
    }
}

type Found<T> = (Vec<(T, PathBuf)>, Vec<String>);

/// The directories below `dir` whose whole name is an id, and a note for everything else.
fn list<T: ToString>(dir: &Path, parse: fn(&str) -> Option<T>) -> Result<Found<T>, RundirError> {
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((found, notes)),
        Err(e) => return Err(RundirError::io("list", dir)(e)),
    };
    for entry in entries {
        let entry = entry.map_err(RundirError::io("list", dir))?;
        let (file_name, path) = (entry.file_name(), entry.path());
        // One id has several spellings; only the one that we write is its directory.
        let id = file_name
            .to_str()
            .and_then(|name| parse(name).filter(|id| id.to_string() == name));
        match id {
            Some(id) if path.is_dir() => found.push((id, path)),
            _ => notes.push(format!(
                "{}: skipped, it is not named by an id",
                path.display()
            )),
        }
    }
    notes.sort();
    Ok((found, notes))
}
