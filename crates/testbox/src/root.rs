//! Where `/proc`, `/sys`, `/dev` and `/boot` are read from.
//!
//! Every reader takes a [`SysRoot`], so that it is tested on a made-up tree and used on the real
//! one. It only reads, and reads no more than a bounded amount: a path that turns out to be an
//! endless device costs memory for nobody. It does not confine: symbolic links are followed.

use kdyno_model::TestboxError;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// No text file of `/proc` or `/sys` that is of interest is larger.
const TEXT_LIMIT: u64 = 4 << 20;

/// The directory below which system files are looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SysRoot(PathBuf);

impl SysRoot {
    /// The machine itself: `/`.
    #[must_use]
    pub fn real() -> Self {
        Self(PathBuf::from("/"))
    }

    /// A tree that looks like one.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The place of an absolute path such as `/proc/meminfo` below this root.
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The first `limit` bytes of a file.
    ///
    /// # Errors
    /// When it cannot be opened or read.
    pub fn bytes(&self, path: impl AsRef<Path>, limit: u64) -> Result<Vec<u8>, TestboxError> {
        let path = self.path(path);
        let mut bytes = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(limit).read_to_end(&mut bytes))
            .map_err(|error| TestboxError::at(&path, error))?;
        Ok(bytes)
    }

    /// A text file, at most 4 MiB of it; bytes that are no UTF-8 are replaced.
    ///
    /// # Errors
    /// When it cannot be opened or read.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<String, TestboxError> {
        let bytes = self.bytes(path, TEXT_LIMIT)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The first line without its blanks; `None` when it is empty or cannot be read.
    #[must_use]
    pub fn line(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.read(path).ok()?;
        let line = text.lines().next()?.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// The names in a directory, sorted; none when it cannot be read.
    #[must_use]
    pub fn names(&self, dir: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(dir)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_below_the_root() {
        let root = SysRoot::at("/made/up");
        assert_eq!(root.path("/proc/stat"), Path::new("/made/up/proc/stat"));
        assert_eq!(root.path("proc/stat"), Path::new("/made/up/proc/stat"));
        assert_eq!(SysRoot::real().path("/proc/stat"), Path::new("/proc/stat"));
    }

    #[test]
    fn reads_lossily_and_bounded() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), b"  caf\xe9 \nsecond\n").unwrap();
        std::fs::write(dir.path().join("empty"), b"\n").unwrap();
        let root = SysRoot::at(dir.path());
        assert_eq!(root.line("/f").as_deref(), Some("caf\u{fffd}"));
        assert_eq!(root.line("/empty"), None);
        assert_eq!(root.line("/absent"), None);
        assert_eq!(root.bytes("/f", 4).unwrap(), b"  ca");
        assert_eq!(root.names("/"), ["empty", "f"]);
        let error = root.read("/absent").unwrap_err();
        assert_eq!(error.path, Some(dir.path().join("absent")));
    }
}
