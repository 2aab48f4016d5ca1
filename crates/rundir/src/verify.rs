//! Checking a run directory against its seal.

use crate::manifest::Manifest;
use crate::{FORMAT_NAME, FORMAT_VERSION, Problem, ProblemKind, RundirError, disk, name};
use std::path::Path;

/// The seal of a small run is a kilobyte; no real one comes near this.
const MANIFEST_CAP_BYTES: u64 = 16 << 20;

/// A run directory that is exactly what was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Sealed files.
    pub files: usize,
    /// Their bytes on the disk.
    pub bytes: u64,
}

/// Reads every byte of the run directory at `path` and compares it with the seal.
///
/// # Errors
/// Every damaged, missing and extra file, in order of their names. A run that was never sealed
/// has one problem, [`ProblemKind::Unsealed`].
pub fn verify(path: &Path) -> Result<Verified, Vec<Problem>> {
    let one = |file, kind| Err(vec![Problem::new(file, kind)]);
    match (check_format(path), read_seal(path)) {
        (Format::Newer(version), _) => one(name::FORMAT, ProblemKind::Newer(version)),
        (_, Seal::Absent(reason)) => one(name::MANIFEST, ProblemKind::Unsealed(reason)),
        (_, Seal::Broken(problem)) => Err(vec![problem]),
        (Format::Known, Seal::Sealed(manifest)) => check_files(path, &manifest),
        (Format::Unreadable(why), Seal::Sealed(manifest)) => check_files(path, &manifest)
            .and_then(|_| one(name::FORMAT, ProblemKind::Unreadable(why))),
    }
}

/// What the `format` file says.
pub(crate) enum Format {
    /// A version that this crate reads.
    Known,
    /// A version of the future.
    Newer(u64),
    /// Nothing usable, for this reason.
    Unreadable(String),
}

/// Reads the `format` file of the run directory at `path`.
pub(crate) fn check_format(path: &Path) -> Format {
    let bytes = match disk::read(&path.join(name::FORMAT), 100) {
        Ok(bytes) => bytes,
        Err(error) => return Format::Unreadable(error.with_cause()),
    };
    let version = std::str::from_utf8(&bytes)
        .ok()
        .and_then(|text| text.strip_prefix(FORMAT_NAME)?.strip_prefix(' '))
        .and_then(|text| text.strip_suffix('\n')?.parse::<u64>().ok());
    match version {
        Some(version) if version > FORMAT_VERSION => Format::Newer(version),
        Some(1..) => Format::Known,
        _ => Format::Unreadable("the format file is cut or is none".to_owned()),
    }
}

/// What there is of a seal, its files not yet looked at.
#[derive(Debug)]
pub(crate) enum Seal {
    /// A whole seal.
    Sealed(Manifest),
    /// None: the run was never completed.
    Absent(String),
    /// One that is no longer what was written.
    Broken(Problem),
}

/// Reads the seal of the run directory at `path`.
pub(crate) fn read_seal(path: &Path) -> Seal {
    let broken = |kind| Seal::Broken(Problem::new(name::MANIFEST, kind));
    match disk::read(&path.join(name::MANIFEST), MANIFEST_CAP_BYTES) {
        Ok(bytes) => match Manifest::parse(&bytes) {
            Ok(manifest) => Seal::Sealed(manifest),
            Err(reason) => broken(ProblemKind::Malformed(reason)),
        },
        Err(RundirError::NotFound { .. }) => Seal::Absent(missing_step(path)),
        Err(error) => broken(ProblemKind::Unreadable(error.with_cause())),
    }
}

/// How far an unsealed run got, as a reason for people.
fn missing_step(path: &Path) -> String {
    if let Format::Unreadable(_) = check_format(path) {
        "it ended while its directory was being made"
    } else if path.join(name::MANIFEST_TMP).exists() || path.join(name::MEASUREMENT).exists() {
        "it ended while it was being sealed"
    } else {
        "it ended before its results were written"
    }
    .to_owned()
}

fn check_files(root: &Path, manifest: &Manifest) -> Result<Verified, Vec<Problem>> {
    let tree = disk::walk(root)
        .map_err(|e| vec![Problem::new(".", ProblemKind::Unreadable(e.with_cause()))])?;
    let mut problems = Vec::new();
    let mut bytes = 0;
    for (file, entry) in &manifest.0 {
        let kind = match tree.files.get(file) {
            None => Some(ProblemKind::Missing),
            Some(path) => match disk::hash_file(path) {
                Err(e) => Some(ProblemKind::Unreadable(e.to_string())),
                Ok((_, found)) if found != entry.size => Some(ProblemKind::Size {
                    sealed: entry.size,
                    found,
                }),
                Ok((sha256, _)) if sha256 != entry.sha256 => Some(ProblemKind::Content),
                Ok((_, size)) => {
                    bytes += size;
                    None
                }
            },
        };
        problems.extend(kind.map(|kind| Problem::new(file, kind)));
    }
    let extra = tree
        .files
        .keys()
        .filter(|file| *file != name::MANIFEST && !manifest.0.contains_key(*file));
    problems.extend(extra.map(|file| Problem::new(file, ProblemKind::Extra)));
    let others = tree.others.iter().map(|path| {
        let file = path.strip_prefix(root).unwrap_or(path);
        Problem::new(file.to_string_lossy(), ProblemKind::Extra)
    });
    problems.extend(others);
    if problems.is_empty() {
        Ok(Verified {
            files: manifest.0.len(),
            bytes,
        })
    } else {
        problems.sort_by(|a, b| a.file.cmp(&b.file));
        Err(problems)
    }
}
