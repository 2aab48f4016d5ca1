//! Writing one run and sealing it.
//!
//! Nothing is synced while the run goes on: the one pass over the disk comes at sealing, after
//! the measured window. The order is what makes a cut visible: every file is on the disk before
//! the seal is, and the seal appears under its name in one step.

use crate::manifest::{Entry, Manifest};
use crate::{FORMAT_NAME, FORMAT_VERSION, RundirError, disk, name};
use kdyno_model::{Measurement, Origin, Outcome, Reading, RunId, RunRecord, Trial};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A run that is being written; dropped without sealing it stays recognisably incomplete.
#[derive(Debug)]
pub struct RunWriter {
    runs: PathBuf,
    path: PathBuf,
    raw: PathBuf,
    run_id: RunId,
    trial: Trial,
}

/// What became of the trial, as it is sealed.
#[derive(Clone, Debug)]
pub struct Results {
    /// Measured or imported.
    pub origin: Origin,
    /// What the testbox handed back.
    pub measurement: Measurement,
    /// What was extracted from the raw output.
    pub readings: Vec<Reading>,
    /// How it ended, extraction included.
    pub outcome: Outcome,
    /// What did not go as planned, beyond the measurement's own notes.
    pub notes: Vec<String>,
}

/// What `record.json` adds to the other files; nothing is stored twice.
#[derive(Serialize, Deserialize)]
pub(crate) struct Core {
    run_id: RunId,
    origin: Origin,
    outcome: Outcome,
    notes: Vec<String>,
}

impl Core {
    /// The whole record, put together from the files of the run.
    pub(crate) fn into_record(
        self,
        trial: Trial,
        measurement: &Measurement,
        readings: Vec<Reading>,
    ) -> RunRecord {
        let mut notes = measurement.notes.clone();
        notes.extend(self.notes);
        RunRecord {
            run_id: self.run_id,
            origin: self.origin,
            trial,
            kernel_release: measurement.facts_before.kernel_release.clone(),
            start_unix_ns: measurement.window.start_unix_ns,
            window_ns: measurement.window.length_ns(),
            clock: measurement.clock,
            outcome: self.outcome,
            readings,
            notes,
        }
    }
}

/// Begins the run `run_id` below `runs`; the format comes first, so that what follows has one.
pub(crate) fn begin(
    runs: &Path,
    run_id: RunId,
    case_text: Option<&str>,
    trial: &Trial,
) -> Result<RunWriter, RundirError> {
    let path = runs.join(run_id.to_string());
    let raw = path.join(name::RAW);
    disk::make_dir(&path)?;
    let format = format!("{FORMAT_NAME} {FORMAT_VERSION}\n");
    disk::create(&path.join(name::FORMAT), format.as_bytes())?;
    if let Some(text) = case_text {
        disk::store(&path, name::CASE, text.as_bytes())?;
    }
    store_json(&path, name::TRIAL, trial)?;
    disk::make_dir(&raw)?;
    Ok(RunWriter {
        runs: runs.to_owned(),
        path,
        raw,
        run_id,
        trial: trial.clone(),
    })
}

impl RunWriter {
    /// The run directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the testbox writes `stdout` and `stderr`.
    #[must_use]
    pub fn raw_dir(&self) -> &Path {
        &self.raw
    }

    /// Writes the results, compresses large output, brings everything to the disk and seals it.
    ///
    /// # Errors
    /// [`RundirError::InvalidReading`], [`RundirError::Unsealable`], or what the file system
    /// says; the run is then incomplete and stays so.
    pub fn seal(self, results: Results) -> Result<RunRecord, RundirError> {
        let Results {
            origin,
            mut measurement,
            readings,
            outcome,
            notes,
        } = results;
        self.check(&readings)?;
        let series = std::mem::take(&mut measurement.series);
        let core = Core {
            run_id: self.run_id,
            origin,
            outcome,
            notes,
        };
        store_json(&self.path, name::MEASUREMENT, &measurement)?;
        store_json(&self.path, name::SERIES, &series)?;
        store_json(&self.path, name::READINGS, &readings)?;
        store_json(&self.path, name::RECORD, &core)?;
        let packed = self.compress_raw()?;
        let manifest = self.sync_all(&packed)?;
        self.publish(&manifest)?;
        Ok(core.into_record(self.trial, &measurement, readings))
    }

    fn check(&self, readings: &[Reading]) -> Result<(), RundirError> {
        readings.iter().try_for_each(|reading| {
            let invalid = |e: kdyno_model::InvalidValue| RundirError::InvalidReading {
                path: self.path.clone(),
                metric: reading.metric.to_string(),
                reason: e.0,
            };
            reading.value.check().map_err(invalid)
        })
    }

    /// Compresses large raw output and returns the originals, which are still there.
    fn compress_raw(&self) -> Result<Vec<PathBuf>, RundirError> {
        let mut originals = Vec::new();
        for file in [name::STDOUT, name::STDERR] {
            let path = self.path.join(file);
            let large = fs::symlink_metadata(&path)
                .is_ok_and(|m| m.is_file() && m.len() > disk::PLAIN_BYTES);
            if large {
                disk::compress(&path)?;
                originals.push(path);
            }
        }
        Ok(originals)
    }

    /// Syncs and hashes every file but `packed`, removes those, and syncs the directories.
    fn sync_all(&self, packed: &[PathBuf]) -> Result<Manifest, RundirError> {
        let tree = disk::walk(&self.path)?;
        if let Some(path) = tree.others.into_iter().next() {
            return Err(RundirError::Unsealable { path });
        }
        let mut entries = BTreeMap::new();
        for (file, path) in tree.files {
            if packed.contains(&path) {
                continue;
            }
            disk::sync(&path)?;
            let (sha256, size) = disk::hash_file(&path).map_err(RundirError::io("read", &path))?;
            entries.insert(file, Entry { sha256, size });
        }
        packed.iter().try_for_each(|path| disk::remove(path))?;
        tree.dirs.iter().try_for_each(|dir| disk::sync(dir))?;
        disk::sync(&self.runs)?;
        Ok(Manifest(entries))
    }

    fn publish(&self, manifest: &Manifest) -> Result<(), RundirError> {
        let unfinished = self.path.join(name::MANIFEST_TMP);
        disk::create(&unfinished, manifest.render().as_bytes())?;
        disk::sync(&unfinished)?;
        disk::rename(&unfinished, &self.path.join(name::MANIFEST))?;
        disk::sync(&self.path)
    }
}

fn store_json(dir: &Path, file: &str, value: &impl Serialize) -> Result<(), RundirError> {
    let mut bytes = serde_json::to_vec(value).map_err(|e| RundirError::Content {
        path: dir.join(file),
        line: 0,
        reason: e.to_string(),
    })?;
    bytes.push(b'\n');
    disk::store(dir, file, &bytes)
}
