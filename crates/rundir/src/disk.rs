//! The few file operations that everything else is made of.
//!
//! Each names its file when it fails. Writing creates and never overwrites; whether something is
//! on the disk is decided by [`sync`] alone, so that sealing can do it in one pass. Reading is
//! bounded: neither a huge file nor a small one that unpacks to a huge one is taken in.

use crate::RundirError;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// A file larger than this is stored compressed.
pub(crate) const PLAIN_BYTES: u64 = 64 * 1024;

/// The ending of a compressed file, readable by `zcat`.
pub(crate) const GZ: &str = ".gz";

/// A new file; every byte passes through here, so that tests can end the disk at any of them.
struct Sink(File);

impl Sink {
    fn create(path: &Path) -> io::Result<Self> {
        fault::spend(1)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        options.open(path).map(Self)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let allowed = fault::spend(bytes.len())?;
        self.0.write(bytes.get(..allowed).unwrap_or(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Creates `path` with `bytes`, written to completion but not yet synced.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> Result<(), RundirError> {
    let mut sink = Sink::create(path).map_err(RundirError::io("create", path))?;
    sink.write_all(bytes)
        .map_err(RundirError::io("write", path))
}

/// Creates `to` with the content of the regular file `from`, not yet synced.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), RundirError> {
    let mut source = File::open(from).map_err(RundirError::io("read", from))?;
    let mut sink = Sink::create(to).map_err(RundirError::io("create", to))?;
    io::copy(&mut source, &mut sink).map_err(RundirError::io("write", to))?;
    Ok(())
}

/// Creates `dir/name`, or `dir/name.gz` when there is much of it.
pub(crate) fn store(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), RundirError> {
    if bytes.len() as u64 <= PLAIN_BYTES {
        return create(&dir.join(name), bytes);
    }
    let path = dir.join(format!("{name}{GZ}"));
    let sink = Sink::create(&path).map_err(RundirError::io("create", &path))?;
    pack(&mut &*bytes, sink).map_err(RundirError::io("write", &path))
}

/// Writes `path.gz` beside the file `path`, which stays, and is not synced yet.
pub(crate) fn compress(path: &Path) -> Result<(), RundirError> {
    let mut packed = path.as_os_str().to_owned();
    packed.push(GZ);
    let packed = PathBuf::from(packed);
    let mut source = File::open(path).map_err(RundirError::io("read", path))?;
    let sink = Sink::create(&packed).map_err(RundirError::io("create", &packed))?;
    pack(&mut source, sink).map_err(RundirError::io("write", &packed))
}

fn pack(source: &mut impl Read, sink: impl Write) -> io::Result<()> {
    let mut encoder = GzEncoder::new(sink, Compression::default());
    io::copy(source, &mut encoder)?;
    encoder.finish().map(drop)
}

/// Waits until a file's content, or a directory's entries, are on the disk.
pub(crate) fn sync(path: &Path) -> Result<(), RundirError> {
    fault::spend(1)
        .and_then(|_| File::open(path)?.sync_all())
        .map_err(RundirError::io("sync", path))
}

/// Makes one directory that must be new.
pub(crate) fn make_dir(path: &Path) -> Result<(), RundirError> {
    fault::spend(1)
        .and_then(|_| fs::create_dir(path))
        .map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => RundirError::Exists {
                path: path.to_owned(),
            },
            _ => RundirError::io("create", path)(source),
        })
}

/// Renames within one directory; the directory is not synced yet.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), RundirError> {
    fault::spend(1)
        .and_then(|_| fs::rename(from, to))
        .map_err(RundirError::io("rename to", to))
}

/// Removes one file.
pub(crate) fn remove(path: &Path) -> Result<(), RundirError> {
    fault::spend(1)
        .and_then(|_| fs::remove_file(path))
        .map_err(RundirError::io("remove", path))
}

/// Reads a regular file of at most `cap_bytes` bytes.
///
/// # Errors
/// [`RundirError::NotFound`], [`RundirError::TooLarge`], or the system's reason; a link, pipe or
/// device in its place is never opened.
pub(crate) fn read(path: &Path, cap_bytes: u64) -> Result<Vec<u8>, RundirError> {
    let metadata = fs::symlink_metadata(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => RundirError::NotFound {
            path: path.to_owned(),
        },
        _ => RundirError::io("read", path)(source),
    })?;
    if !metadata.is_file() {
        return Err(RundirError::Unsealable {
            path: path.to_owned(),
        });
    }
    let file = File::open(path).map_err(RundirError::io("read", path))?;
    read_bounded(file, path, cap_bytes)
}

/// Unpacks gzip data to at most `cap_bytes` bytes; `path` is for the error.
pub(crate) fn unpack(packed: &[u8], path: &Path, cap_bytes: u64) -> Result<Vec<u8>, RundirError> {
    read_bounded(GzDecoder::new(packed), path, cap_bytes)
}

fn read_bounded(source: impl Read, path: &Path, cap_bytes: u64) -> Result<Vec<u8>, RundirError> {
    let mut bytes = Vec::new();
    source
        .take(cap_bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(RundirError::io("read", path))?;
    if bytes.len() as u64 > cap_bytes {
        return Err(RundirError::TooLarge {
            path: path.to_owned(),
            cap_bytes,
        });
    }
    Ok(bytes)
}

/// The SHA-256 of bytes, in hexadecimal.
pub(crate) fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The SHA-256 and the length of a file, read piece by piece.
pub(crate) fn hash_file(path: &Path) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 64 * 1024];
    let mut size = 0;
    loop {
        let n = match file.read(&mut piece) {
            Ok(0) => return Ok((hex(&hasher.finalize()), size)),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        hasher.update(piece.get(..n).unwrap_or_default());
        size += n as u64;
    }
}

fn hex(digest: &[u8]) -> String {
    use std::fmt::Write as _;
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What lies below a directory.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Regular files by path relative to the root, `/` between the parts.
    pub files: BTreeMap<String, PathBuf>,
    /// The root and every directory below it.
    pub dirs: Vec<PathBuf>,
    /// What a seal cannot name: links, devices, and names that are not one line of UTF-8.
    pub others: Vec<PathBuf>,
}

/// Lists everything below `root`; links are not followed.
pub(crate) fn walk(root: &Path) -> Result<Tree, RundirError> {
    let mut tree = Tree::default();
    let mut pending = vec![(root.to_owned(), String::new())];
    while let Some((dir, prefix)) = pending.pop() {
        for entry in fs::read_dir(&dir).map_err(RundirError::io("list", &dir))? {
            let entry = entry.map_err(RundirError::io("list", &dir))?;
            let path = entry.path();
            let kind = entry
                .file_type()
                .map_err(RundirError::io("look at", &path))?;
            match entry.file_name().to_str() {
                Some(name) if kind.is_file() && !name.contains('\n') => {
                    tree.files.insert(format!("{prefix}{name}"), path);
                }
                Some(name) if kind.is_dir() => pending.push((path, format!("{prefix}{name}/"))),
                _ => tree.others.push(path),
            }
        }
        tree.dirs.push(dir);
    }
    Ok(tree)
}

#[cfg(not(test))]
mod fault {
    /// Grants all that is wanted: outside this crate's own tests the disk is the only limit.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the test's counterpart can refuse"
    )]
    pub(super) fn spend(wanted: usize) -> std::io::Result<usize> {
        Ok(wanted)
    }
}

#[cfg(test)]
pub(crate) mod fault {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static BUDGET: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// Runs `work` with a disk that takes `budget` more bytes and operations.
    pub(crate) fn after<T>(budget: usize, work: impl FnOnce() -> T) -> T {
        BUDGET.set(Some(budget));
        let result = work();
        BUDGET.set(None);
        result
    }

    pub(super) fn spend(wanted: usize) -> io::Result<usize> {
        match BUDGET.get() {
            None => Ok(wanted),
            Some(0) => Err(io::ErrorKind::StorageFull.into()),
            Some(left) => {
                let granted = wanted.min(left);
                BUDGET.set(Some(left - granted));
                Ok(granted)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let full = Path::new("/dev/full");
        let file = OpenOptions::new().write(true).open(full).unwrap();
        let error = Sink(file)
            .write_all(b"x")
            .map_err(RundirError::io("write", full))
            .unwrap_err();
        assert_eq!(error.to_string(), "/dev/full: cannot write");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.starts_with("No space left on device"), "{cause}");
        assert_eq!(error.with_cause(), format!("{error}: {cause}"));
        assert!(error.hint().unwrap().contains("space"));
    }

    #[test]
    fn a_gzip_bomb_is_refused_at_the_cap() {
        let mut packed = Vec::new();
        pack(&mut io::repeat(0).take(8 << 20), &mut packed).unwrap();
        assert!(packed.len() < 64 << 10);
        let error = unpack(&packed, Path::new("bomb.gz"), 1 << 20).unwrap_err();
        assert!(matches!(error, RundirError::TooLarge { cap_bytes, .. } if cap_bytes == 1 << 20));
        assert_eq!(
            unpack(&packed, Path::new("x.gz"), 8 << 20).unwrap().len(),
            8 << 20
        );
    }

    #[test]
    fn a_link_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        assert!(matches!(
            read(&link, 10),
            Err(RundirError::Unsealable { .. })
        ));
        assert_eq!(walk(dir.path()).unwrap().others, [link]);
    }
}
