//! The files that tasks map, read or write.

use super::options::Options;
use super::run::RunError;
use crate::sys::{self, Mapping, Region, Source};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file of all processes, if they have one.
///
/// # Errors
/// [`RunError::File`].
pub(super) fn of_all(options: &Options) -> Result<Option<File>, RunError> {
    if options.memfd {
        let hint = "the kernel is older than 3.17";
        let file = sys::memory_file().map_err(RunError::call("make a file in memory", hint))?;
        let long = file.set_len(options.offset.saturating_add(options.size));
        long.map_err(RunError::call("make the file long enough", "ask for less"))?;
        return Ok(Some(file));
    }
    match &options.file {
        Some(path) => open(Path::new(path), options, false).map(Some),
        None => Ok(None),
    }
}

/// The path of the file of the process with this index, if each has its own.
pub(super) fn path_of(options: &Options, process: u64) -> Option<PathBuf> {
    let prefix = options.each_file.as_ref()?;
    Some(PathBuf::from(format!("{prefix}-{process}")))
}

/// Cuts the files of all processes to nothing, so that no page of them is in memory and no block on
/// the disk.
///
/// # Errors
/// [`RunError::File`].
pub(super) fn cut_all(options: &Options) -> Result<(), RunError> {
    let of_all = options.file.as_ref().map(PathBuf::from);
    let own = (0..options.processes.max(1)).map_while(|process| path_of(options, process));
    for path in of_all.into_iter().chain(own) {
        if std::fs::metadata(&path).is_ok_and(|found| found.is_file()) {
            truncate(&path)?;
        }
    }
    Ok(())
}

/// How many bytes of a file are in memory.
///
/// # Errors
/// [`RunError::File`], or what mapping it says.
pub(super) fn bytes_in_memory(path: &Path, options: &Options) -> Result<u64, RunError> {
    let file = open(path, options, true)?;
    let mapping = Mapping::of(Source::Shared {
        file: &file,
        offset: options.offset,
        writable: false,
    });
    let hint = "ask for less";
    let region =
        Region::map(options.size, mapping).map_err(RunError::call("map the file", hint))?;
    let pages = region.resident_pages();
    let pages = pages.map_err(RunError::call("ask for pages in memory", hint))?;
    region.unmap().map_err(RunError::Unmap)?;
    Ok(pages as u64 * sys::page_bytes() as u64)
}

/// Opens a file that is long enough. One that is missing is made, of holes; one that is too short
/// is made longer when it is `ours`, or written anyway.
///
/// # Errors
/// [`RunError::File`].
pub(super) fn open(path: &Path, options: &Options, ours: bool) -> Result<File, RunError> {
    let failed = |source, hint| RunError::File {
        path: path.to_owned(),
        source,
        hint,
    };
    let needed = options.offset.saturating_add(options.size);
    let writes = options.open_rw || options.direct_write || !options.read_file && options.writes();
    let is_short = match std::fs::metadata(path) {
        Ok(found) if found.file_type().is_fifo() || found.file_type().is_socket() => {
            return Err(failed(
                ErrorKind::InvalidInput.into(),
                "a pipe or socket is no memory",
            ));
        }
        Ok(found) => found.is_file() && found.len() < needed,
        Err(error) if error.kind() == ErrorKind::NotFound => true,
        Err(error) => return Err(failed(error, "see that it can be read")),
    };
    if is_short {
        let may_grow = ours || writes || !options.read_file && !path.exists();
        if !may_grow {
            let (kind, hint) = match path.exists() {
                true => (
                    ErrorKind::UnexpectedEof,
                    "it is shorter than the size; -w lets it be made longer",
                ),
                false => (ErrorKind::NotFound, "only a file that is mapped is made"),
            };
            return Err(failed(kind.into(), hint));
        }
        let mut making = OpenOptions::new();
        making.write(true).create(true).truncate(false);
        let made = making.open(path).and_then(|file| file.set_len(needed));
        made.map_err(|e| failed(e, "see that its directory can be written"))?;
    }
    let mut opening = OpenOptions::new();
    opening.read(true).write(writes);
    if options.direct_write {
        opening.custom_flags(libc::O_DIRECT);
    }
    let hint = match options.direct_write {
        true => "the file system may have no writes past the page cache (O_DIRECT)",
        false => "see that it can be read, and written unless -o is given",
    };
    opening.open(path).map_err(|e| failed(e, hint))
}

/// Cuts a file to nothing and gives how long that took.
///
/// # Errors
/// [`RunError::File`].
pub(super) fn truncate(path: &Path) -> Result<Duration, RunError> {
    let failed = |source| RunError::File {
        path: path.to_owned(),
        source,
        hint: "see that it can be written",
    };
    let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
    let began = sys::now();
    file.set_len(0).map_err(failed)?;
    Ok(sys::now().saturating_sub(began))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(size: u64) -> Options {
        Options {
            readonly: true,
            size,
            ..Options::default()
        }
    }

    #[test]
    fn a_missing_file_is_made_of_holes_and_a_short_one_of_somebody_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        let length = || std::fs::metadata(&path).expect("a file").len();
        open(&path, &reading(1 << 20), false).expect("made");
        assert_eq!(length(), 1 << 20);
        let error = open(&path, &reading(2 << 20), false).expect_err("too short");
        assert!(error.to_string().contains("-w lets it be made longer"));
        assert_eq!(length(), 1 << 20);
        let growing = Options {
            open_rw: true,
            ..reading(2 << 20)
        };
        open(&path, &growing, false).expect("longer");
        assert_eq!(length(), 2 << 20);
        open(&path, &reading(1 << 20), false).expect("long enough");
        assert_eq!(length(), 2 << 20);
        truncate(&path).expect("cut");
        assert_eq!(length(), 0);
    }

    #[test]
    fn each_process_has_its_own() {
        let options = Options {
            each_file: Some("/mnt/f".to_owned()),
            ..reading(1)
        };
        assert_eq!(path_of(&options, 3), Some(PathBuf::from("/mnt/f-3")));
        assert_eq!(path_of(&reading(1), 3), None);
    }
}
