//! One run at a time on a machine.

use crate::root::SysRoot;
use crate::sys;
use kdyno_model::TestboxError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the guardian of a run that died may take to put things back.
const GUARDIAN_PATIENCE: Duration = Duration::from_secs(5);

/// Where journal and lock of this machine are: `/run/kdyno` for root, else the user's runtime
/// directory, else one in `/tmp` that only the user can use. `KDYNO_RUNTIME_DIR` names another
/// (for tests: two runs that do not see each other disturb each other).
#[must_use]
pub fn state_dir() -> PathBuf {
    if let Some(dir) = std::env::var_os("KDYNO_RUNTIME_DIR").filter(|dir| !dir.is_empty()) {
        return PathBuf::from(dir);
    }
    user_state_dir()
}

fn user_state_dir() -> PathBuf {
    let user = sys::effective_user();
    if user == 0 {
        return PathBuf::from(SYSTEM_DIR);
    }
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir).join("kdyno"),
        None => std::env::temp_dir().join(format!("kdyno-{user}")),
    }
}

/// Where root's state is.
pub(crate) const SYSTEM_DIR: &str = "/run/kdyno";

/// Whether a dead run of root left a journal that we, not being root, cannot undo.
#[must_use]
pub fn root_has_something_to_restore() -> bool {
    sys::effective_user() != 0 && crate::journal::is_waiting(Path::new(SYSTEM_DIR))
}

/// The process that holds the machine below `state_dir` or, for a user, root's. The lock is not
/// tried, since that alone could make a run that begins just now give up: the kernel's list of
/// locks is read.
#[must_use]
pub(crate) fn holder_of_machine(root: &SysRoot, state_dir: &Path) -> Option<i32> {
    let locks = root.read("/proc/locks").ok()?;
    [state_dir, Path::new(SYSTEM_DIR)]
        .iter()
        .find_map(|dir| holder_in(&locks, &dir.join("lock")))
}

/// Who holds the lock on a file, by the lines `1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE ...`
/// and by what the file says: one inode's number is that of files on other disks too.
fn holder_in(locks: &str, path: &Path) -> Option<i32> {
    use std::os::unix::fs::MetadataExt;
    let file = File::open(path).ok()?;
    let inode = file.metadata().ok()?.ino().to_string();
    let named = holder(&file)?;
    let holds = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, file, ..] = words.as_slice() else {
            return false;
        };
        pid.parse() == Ok(named) && file.rsplit(':').next() == Some(inode.as_str())
    };
    locks.lines().any(holds).then_some(named)
}

/// The machine is ours as long as this lives, and as long as the guardian that inherited it.
#[derive(Debug)]
pub(crate) struct MachineLock {
    file: File,
    /// Whether nobody else holds it: false only where `force` overrode a holder.
    pub exclusive: bool,
}

impl MachineLock {
    /// Takes the machine. A run that died may still be cleaned up by its guardian: that is
    /// waited for.
    ///
    /// # Errors
    /// When another run holds it and `force` is not given.
    pub(crate) fn take(state_dir: &Path, force: bool) -> Result<Self, TestboxError> {
        make_state_dir(state_dir)?;
        let path = state_dir.join("lock");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| TestboxError::at(&path, error))?;
        let exclusive = acquire(&file, &path, force)?;
        look_at_system_lock(state_dir, force)?;
        let lock = Self { file, exclusive };
        if exclusive {
            lock.write_pid()
                .map_err(|error| TestboxError::at(&path, error))?;
        }
        Ok(lock)
    }

    fn write_pid(&self) -> std::io::Result<()> {
        let mut file = &self.file;
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())
    }

    /// A second handle of the same lock, for the guardian to inherit.
    pub(crate) fn share(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }
}

fn make_state_dir(dir: &Path) -> Result<(), TestboxError> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    let mode = if sys::effective_user() == 0 {
        0o755
    } else {
        0o700
    };
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(dir)
        .map_err(|error| TestboxError::at(dir, error))?;
    let owner = std::fs::metadata(dir)
        .map_err(|error| TestboxError::at(dir, error))?
        .uid();
    if owner != sys::effective_user() {
        return Err(TestboxError::at(dir, "it belongs to somebody else")
            .hint("set KDYNO_RUNTIME_DIR to a directory of your own"));
    }
    Ok(())
}

/// A user's run and root's run disturb each other as well. It is only looked at and not held: a
/// user must not keep root from the machine.
fn look_at_system_lock(state_dir: &Path, force: bool) -> Result<(), TestboxError> {
    if state_dir.starts_with(SYSTEM_DIR) || state_dir != user_state_dir() {
        return Ok(());
    }
    let path = Path::new(SYSTEM_DIR).join("lock");
    match File::open(&path) {
        Ok(file) => acquire(&file, &path, force).map(drop),
        Err(_) => Ok(()),
    }
}

/// Takes a lock; `false` when somebody holds it and `force` says to go on.
fn acquire(file: &File, path: &Path, force: bool) -> Result<bool, TestboxError> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(TestboxError::at(path, error)),
        }
        let holder = holder(file);
        let dead = holder.is_some_and(|pid| !sys::process_exists(pid));
        if !dead || begun.elapsed() > GUARDIAN_PATIENCE {
            if force {
                return Ok(false);
            }
            let who = holder.map_or_else(
                || "another run".to_owned(),
                |pid| format!("the run of pid {pid}"),
            );
            return Err(TestboxError::new(format!("{who} holds this machine"))
                .hint("two runs disturb each other: wait for it, end it, or use --force"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn holder(mut file: &File) -> Option<i32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// The current boot of the machine below `root`.
#[must_use]
pub(crate) fn boot_id(root: &SysRoot) -> Option<kdyno_model::BootId> {
    root.line("/proc/sys/kernel/random/boot_id")
        .map(kdyno_model::BootId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_is_refused_with_the_pid_of_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let first = MachineLock::take(dir.path(), false).unwrap();
        let error = MachineLock::take(dir.path(), false).unwrap_err();
        assert!(
            error.message.contains(&std::process::id().to_string()),
            "{error}"
        );
        assert!(!MachineLock::take(dir.path(), true).unwrap().exclusive);
        drop(first);
        assert!(MachineLock::take(dir.path(), false).unwrap().exclusive);
    }

    #[test]
    fn the_holder_is_seen_without_trying_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let holder = || holder_of_machine(&SysRoot::real(), dir.path());
        assert_eq!(holder(), None);
        let lock = MachineLock::take(dir.path(), false).unwrap();
        let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
        let own = std::process::id().to_string();
        if !locks.split_whitespace().any(|word| word == own) {
            println!(
                "skipped the_holder_is_seen_without_trying_the_lock: /proc/locks shows no lock of ours"
            );
            return;
        }
        assert_eq!(holder(), i32::try_from(std::process::id()).ok());
        drop(lock);
        assert_eq!(holder(), None);
    }

    #[test]
    fn a_dead_holder_is_waited_for_while_its_guardian_holds_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let first = MachineLock::take(dir.path(), false).unwrap();
        let guardian = first.share().unwrap();
        // No process has this number: it is beyond the kernel's largest.
        std::fs::write(dir.path().join("lock"), "2147483647\n").unwrap();
        drop(first);
        let releaser = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(guardian);
        });
        MachineLock::take(dir.path(), false).unwrap();
        releaser.join().unwrap();
    }
}
