//! Reading one run.
//!
//! Opening reads the seal only. Each file is compared with the seal as it is read, so a figure
//! from a changed file never gets out, and raw output that nobody asks for costs nothing;
//! [`RunReader::state`] looks at every byte.

use crate::verify::{Format, Seal, check_format, read_seal};
use crate::writer::Core;
use crate::{FORMAT_VERSION, Problem, ProblemKind, RundirError, disk, name, verify};
use kdyno_model::{ClockKind, Measurement, Origin, Outcome, RunId, RunRecord, SeriesSet, Trial};
use serde::de::DeserializeOwned;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// JSON larger than this, unpacked, is refused.
const JSON_CAP_BYTES: u64 = 256 << 20;

/// Raw output larger than this, unpacked, is not read whole.
const RAW_CAP_BYTES: u64 = 1 << 30;

/// A run directory opened for reading.
#[derive(Debug)]
pub struct RunReader {
    path: PathBuf,
    seal: Seal,
}

/// What a run directory is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Sealed, and every byte is what was sealed.
    Complete,
    /// Never sealed, for this reason: it goes on, or it was ended by a crash.
    Incomplete(String),
    /// Sealed, and changed since.
    Damaged(Vec<Problem>),
}

impl RunReader {
    /// Opens the run directory at `path`, complete or not.
    ///
    /// # Errors
    /// [`RundirError::NotFound`] when there is no such directory, [`RundirError::NewerFormat`]
    /// when a newer kdyno wrote it.
    pub fn open(path: &Path) -> Result<Self, RundirError> {
        if !path.is_dir() {
            return Err(RundirError::NotFound {
                path: path.to_owned(),
            });
        }
        let seal = match (check_format(path), read_seal(path)) {
            (Format::Newer(found), _) => {
                return Err(RundirError::NewerFormat {
                    path: path.to_owned(),
                    found,
                    known: FORMAT_VERSION,
                });
            }
            (Format::Unreadable(why), Seal::Sealed(_)) => {
                Seal::Broken(Problem::new(name::FORMAT, ProblemKind::Unreadable(why)))
            }
            (_, seal) => seal,
        };
        Ok(Self {
            path: path.to_owned(),
            seal,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it was sealed, without looking at the files; cheap.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        matches!(self.seal, Seal::Sealed(_))
    }

    /// Reads every byte and says what the directory is worth.
    #[must_use]
    pub fn state(&self) -> State {
        match &self.seal {
            Seal::Absent(reason) => State::Incomplete(reason.clone()),
            Seal::Broken(_) | Seal::Sealed(_) => match verify(&self.path) {
                Ok(_) => State::Complete,
                Err(problems) => State::Damaged(problems),
            },
        }
    }

    /// What the index, `list` and `compare` work from. A run that was never sealed has the
    /// outcome `Incomplete`, no reading, and as start the time at which it was begun.
    ///
    /// # Errors
    /// [`RundirError::Damaged`] when a file that it needs was changed,
    /// [`RundirError::Incomplete`] when the run ended before its trial was written.
    pub fn record(&self) -> Result<RunRecord, RundirError> {
        if let Seal::Absent(reason) = &self.seal {
            return self.unsealed_record(reason);
        }
        let core: Core = self.json(name::RECORD)?;
        let measurement: Measurement = self.json(name::MEASUREMENT)?;
        let readings = self.json(name::READINGS)?;
        Ok(core.into_record(self.trial()?, &measurement, readings))
    }

    /// The trial, with boot and session; also of a run that was never sealed.
    ///
    /// # Errors
    /// As [`RunReader::record`].
    pub fn trial(&self) -> Result<Trial, RundirError> {
        self.json(name::TRIAL)
    }

    /// What the testbox handed back, without the series.
    ///
    /// # Errors
    /// As [`RunReader::record`].
    pub fn measurement(&self) -> Result<Measurement, RundirError> {
        self.json(name::MEASUREMENT)
    }

    /// What the monitors saw.
    ///
    /// # Errors
    /// As [`RunReader::record`].
    pub fn series(&self) -> Result<Vec<SeriesSet>, RundirError> {
        self.json(name::SERIES)
    }

    /// The program's whole standard output, unpacked; `None` when there is no such file.
    ///
    /// # Errors
    /// [`RundirError::Damaged`] when it was changed, [`RundirError::TooLarge`] over one GiB.
    pub fn stdout(&self) -> Result<Option<Vec<u8>>, RundirError> {
        self.file(name::STDOUT, RAW_CAP_BYTES)
    }

    /// The program's whole standard error, as [`RunReader::stdout`].
    ///
    /// # Errors
    /// As [`RunReader::stdout`].
    pub fn stderr(&self) -> Result<Option<Vec<u8>>, RundirError> {
        self.file(name::STDERR, RAW_CAP_BYTES)
    }

    /// The canonical text of its case; `None` when it had none.
    ///
    /// # Errors
    /// As [`RunReader::record`], and [`RundirError::Content`] when it is no text.
    pub fn case_text(&self) -> Result<Option<String>, RundirError> {
        self.file(name::CASE, JSON_CAP_BYTES)?
            .map(|bytes| {
                String::from_utf8(bytes).map_err(|e| RundirError::Content {
                    path: self.path.join(name::CASE),
                    line: 0,
                    reason: e.to_string(),
                })
            })
            .transpose()
    }

    fn unsealed_record(&self, reason: &str) -> Result<RunRecord, RundirError> {
        let run_id = self
            .path
            .file_name()
            .and_then(|n| RunId::parse(n.to_str()?));
        let (Some(run_id), Ok(trial)) = (run_id, self.trial()) else {
            return Err(self.incomplete(reason));
        };
        let begun = fs::metadata(self.path.join(name::FORMAT))
            .and_then(|metadata| metadata.modified())
            .map_err(RundirError::io("look at", &self.path))?;
        let since_1970 = begun.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(RunRecord {
            run_id,
            origin: Origin::default(),
            trial,
            kernel_release: String::new(),
            start_unix_ns: i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX),
            window_ns: 0,
            clock: ClockKind::default(),
            outcome: Outcome::Incomplete,
            readings: Vec::new(),
            notes: vec![reason.to_owned()],
        })
    }

    fn json<T: DeserializeOwned>(&self, file: &str) -> Result<T, RundirError> {
        let path = self.path.join(file);
        let Some(bytes) = self.file(file, JSON_CAP_BYTES)? else {
            return Err(match &self.seal {
                Seal::Absent(reason) => self.incomplete(reason),
                _ => self.damaged(Problem::new(file, ProblemKind::Missing)),
            });
        };
        serde_json::from_slice(&bytes).map_err(|e| RundirError::Content {
            path,
            line: e.line(),
            reason: e.to_string(),
        })
    }

    /// The unpacked bytes of `file` or `file.gz`, compared with the seal where there is one.
    fn file(&self, file: &str, cap_bytes: u64) -> Result<Option<Vec<u8>>, RundirError> {
        let packed = format!("{file}{}", disk::GZ);
        let manifest = match &self.seal {
            Seal::Sealed(manifest) => manifest,
            Seal::Broken(problem) => return Err(self.damaged(problem.clone())),
            Seal::Absent(_) => return self.unsealed_file(file, &packed, cap_bytes),
        };
        let (stored, entry) = match (manifest.0.get(file), manifest.0.get(&packed)) {
            (Some(entry), _) => (file, entry),
            (None, Some(entry)) => (packed.as_str(), entry),
            (None, None) => return Ok(None),
        };
        let path = self.path.join(stored);
        let bytes = match disk::read(&path, cap_bytes) {
            Err(RundirError::NotFound { .. }) => {
                return Err(self.damaged(Problem::new(stored, ProblemKind::Missing)));
            }
            other => other?,
        };
        let found = bytes.len() as u64;
        if found != entry.size {
            let sealed = entry.size;
            return Err(self.damaged(Problem::new(stored, ProblemKind::Size { sealed, found })));
        }
        if disk::hash(&bytes) != entry.sha256 {
            return Err(self.damaged(Problem::new(stored, ProblemKind::Content)));
        }
        if stored == packed {
            return disk::unpack(&bytes, &path, cap_bytes).map(Some);
        }
        Ok(Some(bytes))
    }

    /// The plain file first: beside it, a compressed one may be half written.
    fn unsealed_file(
        &self,
        file: &str,
        packed: &str,
        cap_bytes: u64,
    ) -> Result<Option<Vec<u8>>, RundirError> {
        match disk::read(&self.path.join(file), cap_bytes) {
            Err(RundirError::NotFound { .. }) => {}
            other => return other.map(Some),
        }
        let path = self.path.join(packed);
        match disk::read(&path, cap_bytes) {
            Err(RundirError::NotFound { .. }) => Ok(None),
            other => disk::unpack(&other?, &path, cap_bytes).map(Some),
        }
    }

    fn incomplete(&self, reason: &str) -> RundirError {
        RundirError::Incomplete {
            path: self.path.clone(),
            reason: reason.to_owned(),
        }
    }

    fn damaged(&self, problem: Problem) -> RundirError {
        RundirError::Damaged {
            path: self.path.clone(),
            problem,
        }
    }
}
