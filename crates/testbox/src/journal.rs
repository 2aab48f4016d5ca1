//! The undo journal: what to put back, written and synced before anything is changed.
//!
//! One JSON line per change, appended. It lives in the machine's state directory, carries the
//! boot (a reboot puts kernel settings back by itself) and is removed once everything is undone.
//! A last line cut short belongs to a change that was never made.

use crate::cgroup;
use crate::functions::Traced;
use crate::root::SysRoot;
use crate::scratch;
use crate::settings::{is_pool, value_in, write_value};
use crate::strays::Trials;
use kdyno_model::{BootId, Recovery, SessionId, TestboxError};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// One change of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub(crate) enum Change {
    /// The boot to which all that follows belongs.
    Boot {
        /// `None` where the kernel does not tell.
        boot_id: Option<BootId>,
    },
    /// A file of `/proc` or `/sys` is about to hold `set` instead of `before`.
    File {
        /// Which.
        path: PathBuf,
        /// Its value as it was found.
        before: String,
        /// Its value as we set it.
        set: String,
    },
    /// A cgroup is about to be made.
    Cgroup {
        /// Its directory.
        path: PathBuf,
    },
    /// A directory of a trial is about to be made; swap and mounts below it belong to it.
    Scratch {
        /// Where.
        path: PathBuf,
    },
    /// A zram device is about to be added beside these.
    ZramAfter {
        /// Their numbers.
        known: Vec<u32>,
    },
    /// A zram device was added.
    Zram {
        /// Its number.
        number: u32,
    },
    /// A function of the kernel is about to be timed.
    Traced(Traced),
    /// A trial is about to start processes.
    Run {
        /// What all of them carry in their environment.
        run: String,
    },
}

/// The journal of this machine, open for writing.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Begins the journal of a session on this boot.
    pub(crate) fn begin(
        state_dir: &Path,
        session: SessionId,
        boot_id: Option<BootId>,
    ) -> Result<Self, TestboxError> {
        let path = state_dir.join(format!("{PREFIX}{}", session.short()));
        let file = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(&path)
            .map_err(|error| TestboxError::at(&path, error))?;
        file.lock()
            .map_err(|error| TestboxError::at(&path, error))?;
        let mut journal = Self { path, file };
        journal.note(&Change::Boot { boot_id })?;
        Ok(journal)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What a file held before the runs that share the machine with us (`--force`) changed it, when
    /// `now` is a value of theirs.
    pub(crate) fn elder_original(&self, path: &Path, now: &str) -> Option<String> {
        let journals = std::fs::read_dir(self.path.parent()?).ok()?.flatten();
        let others = journals.filter(|e| e.path() != self.path && is_journal(&e.path()));
        others.into_iter().find_map(|journal| {
            let text = std::fs::read_to_string(journal.path()).ok()?;
            let changes = changes_in(&text, &mut Vec::new());
            let values: Vec<(String, String)> = values_of(&changes, path);
            let theirs = values.iter().any(|(_, set)| set == now);
            theirs.then(|| values.first().map(|(before, _)| before.clone()))?
        })
    }

    /// A second handle, whose lock the guardian inherits: a journal that is locked belongs to a
    /// run that lives.
    pub(crate) fn share(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }

    /// Writes a change that is about to be made, and waits until it is on the disk.
    pub(crate) fn note(&mut self, change: &Change) -> Result<(), TestboxError> {
        let failed = |error: std::io::Error| {
            TestboxError::at(
                &self.path,
                format!("cannot write the undo journal: {error}"),
            )
            .hint("nothing was changed")
        };
        let mut line = serde_json::to_vec(change).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        let length = self.file.metadata().map_err(failed)?.len();
        let written = self
            .file
            .write_all(&line)
            .and_then(|()| self.file.sync_data());
        written.map_err(|error| {
            // Half a line would swallow the next one. Should this fail as well, the journal is
            // unreadable in its middle, which undoing reports.
            let _ = self.file.set_len(length);
            failed(error)
        })
    }
}

/// Journals of sessions that hold the machine together (`--force`) do not mix.
const PREFIX: &str = "journal.";

/// Undoes every journal in `state_dir`: those of runs that died.
///
/// # Errors
/// What could not be put back; that journal is then kept.
pub(crate) fn undo_all(
    state_dir: &Path,
    boot_id: Option<&BootId>,
) -> Result<Recovery, TestboxError> {
    let mut all = Recovery::default();
    let mut failure = None;
    let entries = match std::fs::read_dir(state_dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(all),
        Err(error) => return Err(TestboxError::at(state_dir, error)),
    };
    for entry in entries.flatten() {
        if !is_journal(&entry.path()) || is_alive(&entry.path()) {
            continue;
        }
        match undo(&entry.path(), boot_id, None) {
            Ok(recovery) => {
                all.restored.extend(recovery.restored);
                all.left_alone.extend(recovery.left_alone);
                all.removed.extend(recovery.removed);
            }
            Err(error) => failure = Some(error),
        }
    }
    failure.map_or(Ok(all), Err)
}

fn is_journal(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
}

/// Whether a journal is held by a run or its guardian.
fn is_alive(path: &Path) -> bool {
    let file = File::open(path);
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Whether a run that lives has a journal in this directory.
pub(crate) fn is_living(state_dir: &Path) -> bool {
    let entries = std::fs::read_dir(state_dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .any(|path| is_journal(&path) && is_alive(&path))
}

/// Whether some journal waits to be undone in a directory, as far as we may look.
pub(crate) fn is_waiting(state_dir: &Path) -> bool {
    let entries = std::fs::read_dir(state_dir).into_iter().flatten().flatten();
    let mut journals = entries.filter(|entry| is_journal(&entry.path()));
    journals.any(|journal| !is_alive(&journal.path()))
}

/// Undoes whatever a journal says and removes it: ends what a trial left running, removes its
/// cgroups, puts settings back that still are what we set. `group` is the process group of the
/// last program where it is known for sure. Without a journal there is nothing to do.
///
/// Settings are put back before ended processes are waited for: those may take long.
///
/// # Errors
/// What could not be put back; the journal is then kept.
pub(crate) fn undo(
    path: &Path,
    boot_id: Option<&BootId>,
    group: Option<i32>,
) -> Result<Recovery, TestboxError> {
    let text = match std::fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Recovery::default()),
        Err(error) => return Err(TestboxError::at(path, error)),
    };
    let mut failures = Vec::new();
    let changes = changes_in(&text, &mut failures);
    let mut recovery = Recovery::default();
    if is_of_this_boot(&changes, boot_id) {
        let trials = trials_in(&changes, group);
        let cgroups = cgroups_in(&changes);
        trials.kill();
        cgroups.iter().for_each(|dir| cgroup::kill(dir));
        restore_files(&changes, &mut recovery, &mut failures);
        for dir in cgroups {
            match cgroup::remove(dir) {
                Ok(true) => recovery.removed.push(dir.display().to_string()),
                Ok(false) => {}
                Err(error) => failures.push(error.to_string()),
            }
        }
        for traced in traced_in(&changes) {
            match traced.remove() {
                Ok(true) => recovery
                    .removed
                    .push(format!("probes of {}", traced.probe.function)),
                Ok(false) => {}
                Err(error) => failures.push(error.to_string()),
            }
        }
        let ended = trials.end();
        recovery
            .removed
            .extend(ended.into_iter().map(|pid| format!("process {pid}")));
    }
    // After the processes that used them.
    remove_scratch(
        &changes,
        is_of_this_boot(&changes, boot_id),
        &mut recovery,
        &mut failures,
    );
    if !failures.is_empty() {
        let message = format!("not everything was put back: {}", failures.join("; "));
        return Err(TestboxError::at(path, message).hint(
            "put it back by hand as root and remove this journal, or run `kdyno restore` as root",
        ));
    }
    std::fs::remove_file(path).map_err(|error| TestboxError::at(path, error))?;
    Ok(recovery)
}

/// The lines of a journal. A last one cut short belongs to a change that was never made; any
/// other that cannot be read may have been a change.
fn changes_in(text: &str, failures: &mut Vec<String>) -> Vec<Change> {
    let lines: Vec<&str> = text.lines().collect();
    let mut changes = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        match serde_json::from_str(line) {
            Ok(change) => changes.push(change),
            Err(_) if place + 1 == lines.len() => {}
            Err(_) => failures.push(format!("line {} cannot be read: {line}", place + 1)),
        }
    }
    changes
}

fn trials_in(changes: &[Change], group: Option<i32>) -> Trials {
    let runs = changes.iter().filter_map(|change| match change {
        Change::Run { run } => Some(run.clone()),
        _ => None,
    });
    Trials {
        runs: runs.collect(),
        group,
    }
}

fn cgroups_in(changes: &[Change]) -> Vec<&Path> {
    let cgroups = changes.iter().filter_map(|change| match change {
        Change::Cgroup { path } => Some(path.as_path()),
        _ => None,
    });
    cgroups.filter(|path| path.is_dir()).collect()
}

fn traced_in(changes: &[Change]) -> impl Iterator<Item = &Traced> {
    changes.iter().filter_map(|change| match change {
        Change::Traced(traced) => Some(traced),
        _ => None,
    })
}

/// Removes directories, swap and zram devices of trials. A reboot ends mounts and swap but leaves
/// files, so that directories are removed on any boot.
fn remove_scratch(
    changes: &[Change],
    same_boot: bool,
    recovery: &mut Recovery,
    failures: &mut Vec<String>,
) {
    let root = SysRoot::real();
    for change in changes.iter().rev() {
        let removed = match change {
            Change::Scratch { path } => {
                scratch::remove_tree(path).map(|there| there.then(|| path.display().to_string()))
            }
            Change::Zram { number } if same_boot => scratch::remove_zram(&root, *number)
                .map(|there| there.then(|| format!("/dev/zram{number}"))),
            _ => continue,
        };
        match removed {
            Ok(what) => recovery.removed.extend(what),
            Err(error) => failures.push(error.to_string()),
        }
    }
    // A last device that was added without our having learnt its number.
    let mut last = changes.iter().rev();
    if let Some(Change::ZramAfter { known }) = last.next().filter(|_| same_boot) {
        for number in scratch::zram_added_since(&root, known) {
            match scratch::remove_zram(&root, number) {
                Ok(_) => recovery.removed.push(format!("/dev/zram{number}")),
                Err(error) => failures.push(error.to_string()),
            }
        }
    }
}

fn is_of_this_boot(changes: &[Change], now: Option<&BootId>) -> bool {
    let written = changes.iter().find_map(|change| match change {
        Change::Boot { boot_id } => boot_id.as_ref(),
        _ => None,
    });
    match (written, now) {
        (Some(written), Some(now)) => written == now,
        // Where the kernel does not tell, undoing what is still ours is the safer guess.
        _ => true,
    }
}

/// Puts files back, the last changed first. What a file should hold is what it held before our
/// first change of it. What fails is tried once more: of a pair the kernel takes a value only
/// after the other one is back.
fn restore_files(changes: &[Change], recovery: &mut Recovery, failures: &mut Vec<String>) {
    let mut paths: Vec<&Path> = Vec::new();
    for change in changes.iter().rev() {
        if let Change::File { path, .. } = change
            && !paths.contains(&path.as_path())
        {
            paths.push(path);
        }
    }
    for last in [false, true] {
        let mut failed = Vec::new();
        for path in paths {
            let all = values_of(changes, path);
            let Some((original, _)) = all.first() else {
                continue;
            };
            match restore_file(path, original, &all) {
                Ok(Restored::Back) => recovery
                    .restored
                    .push(format!("{}: {original}", path.display())),
                Ok(Restored::Already) => {}
                Ok(Restored::NotOurs(now)) => recovery
                    .left_alone
                    .push(format!("{}: {now}", path.display())),
                Err(error) if last => failures.push(format!(
                    "{} should be `{original}`: {error}",
                    path.display()
                )),
                Err(_) => failed.push(path),
            }
        }
        paths = failed;
    }
}

/// What a file held before and after each of its changes, in order.
fn values_of(changes: &[Change], wanted: &Path) -> Vec<(String, String)> {
    let of_path = |change: &Change| match change {
        Change::File { path, before, set } if path == wanted => Some((before.clone(), set.clone())),
        _ => None,
    };
    changes.iter().filter_map(of_path).collect()
}

enum Restored {
    Back,
    Already,
    NotOurs(String),
}

fn restore_file(
    path: &Path,
    original: &str,
    all: &[(String, String)],
) -> std::io::Result<Restored> {
    let now = value_in(&std::fs::read_to_string(path)?);
    if now == original {
        return Ok(Restored::Already);
    }
    let ours = all
        .iter()
        .any(|(before, set)| now == *set || is_half_made_pool(path, before, set, &now));
    if !ours {
        return Ok(Restored::NotOurs(now));
    }
    write_value(path, original)?;
    let back = value_in(&std::fs::read_to_string(path)?);
    if back == original {
        Ok(Restored::Back)
    } else {
        Err(std::io::Error::other(format!(
            "it is `{back}` after writing"
        )))
    }
}

/// A pool of huge pages grows page by page: killed meanwhile, it stands between the two values.
fn is_half_made_pool(path: &Path, before: &str, set: &str, now: &str) -> bool {
    let numbers = (
        before.parse::<u64>(),
        set.parse::<u64>(),
        now.parse::<u64>(),
    );
    match numbers {
        (Ok(before), Ok(set), Ok(now)) => {
            is_pool(path) && (before.min(set)..=before.max(set)).contains(&now)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(id: &str) -> BootId {
        BootId::from(id)
    }

    struct Machine {
        dir: tempfile::TempDir,
    }

    impl Machine {
        fn new() -> Self {
            Self {
                dir: tempfile::tempdir().unwrap(),
            }
        }

        fn file(&self, name: &str, value: &str) -> PathBuf {
            let path = self.dir.path().join(name);
            std::fs::write(&path, value).unwrap();
            path
        }

        fn note(&self, journal: &mut Journal, path: &Path, before: &str, set: &str) {
            let (before, set) = (before.to_owned(), set.to_owned());
            journal
                .note(&Change::File {
                    path: path.to_owned(),
                    before,
                    set,
                })
                .unwrap();
        }
    }

    #[test]
    fn puts_back_only_what_is_still_ours() {
        let m = Machine::new();
        let mut journal = Journal::begin(m.dir.path(), SessionId::new(), Some(boot("b"))).unwrap();
        let (mine, theirs, untouched) = (m.file("a", "1"), m.file("b", "1"), m.file("c", "1"));
        for path in [&mine, &theirs, &untouched] {
            m.note(&mut journal, path, "1", "2");
        }
        m.note(&mut journal, &mine, "1", "3");
        std::fs::write(&mine, "3\n").unwrap();
        std::fs::write(&theirs, "77\n").unwrap();
        let recovery = undo(journal.path(), Some(&boot("b")), None).unwrap();
        assert_eq!(std::fs::read_to_string(&mine).unwrap(), "1");
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "77\n");
        assert_eq!((recovery.restored.len(), recovery.left_alone.len()), (1, 1));
        assert!(!journal.path().exists());
        assert_eq!(
            undo(journal.path(), Some(&boot("b")), None).unwrap(),
            Recovery::default()
        );
    }

    #[test]
    fn a_journal_of_an_earlier_boot_changes_nothing() {
        let m = Machine::new();
        let mut journal =
            Journal::begin(m.dir.path(), SessionId::new(), Some(boot("old"))).unwrap();
        let path = m.file("a", "2");
        m.note(&mut journal, &path, "1", "2");
        undo(journal.path(), Some(&boot("new")), None).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "2");
    }

    #[test]
    fn a_journal_cut_at_any_byte_never_restores_a_wrong_value() {
        let m = Machine::new();
        let mut journal = Journal::begin(m.dir.path(), SessionId::new(), Some(boot("b"))).unwrap();
        let path = m.file("a", "before");
        m.note(&mut journal, &path, "before", "first");
        m.note(&mut journal, &path, "before", "second");
        let whole = std::fs::read(journal.path()).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(journal.path(), &whole[..cut]).unwrap();
            std::fs::write(&path, "second").unwrap();
            undo(journal.path(), Some(&boot("b")), None).unwrap();
            let now = std::fs::read_to_string(&path).unwrap();
            assert!(now == "before" || now == "second", "cut at {cut}: {now}");
            // The whole last line, with or without its end, is enough.
            assert_eq!(now == "before", cut + 1 >= whole.len(), "cut at {cut}");
        }
    }

    #[test]
    fn what_cannot_be_put_back_keeps_the_journal_and_is_named() {
        let m = Machine::new();
        let mut journal = Journal::begin(m.dir.path(), SessionId::new(), None).unwrap();
        m.note(&mut journal, &m.dir.path().join("gone"), "1", "2");
        let error = undo(journal.path(), None, None).unwrap_err();
        assert!(error.to_string().contains("gone should be `1`"), "{error}");
        assert!(journal.path().exists());
    }

    #[test]
    fn an_unreadable_line_in_the_middle_keeps_the_journal() {
        let m = Machine::new();
        let mut journal = Journal::begin(m.dir.path(), SessionId::new(), None).unwrap();
        let path = m.file("a", "2");
        m.note(&mut journal, &path, "1", "2");
        let text = std::fs::read_to_string(journal.path()).unwrap();
        std::fs::write(
            journal.path(),
            text.replace("\n{\"kind\":\"file\"", "\n{\"kind\n{\"kind\":\"file\""),
        )
        .unwrap();
        let error = undo(journal.path(), None, None).unwrap_err();
        assert!(
            error.to_string().contains("line 2 cannot be read"),
            "{error}"
        );
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "1",
            "what can be put back is"
        );
        assert!(journal.path().exists());
    }

    #[test]
    fn the_journal_of_a_living_run_is_left_to_it() {
        let m = Machine::new();
        let mut journal = Journal::begin(m.dir.path(), SessionId::new(), None).unwrap();
        let path = m.file("a", "2");
        m.note(&mut journal, &path, "1", "2");
        let guardian = journal.share().unwrap();
        assert_eq!(undo_all(m.dir.path(), None).unwrap(), Recovery::default());
        drop(journal);
        assert_eq!(undo_all(m.dir.path(), None).unwrap(), Recovery::default());
        assert!(!is_waiting(m.dir.path()));
        drop(guardian);
        assert!(is_waiting(m.dir.path()));
        assert_eq!(undo_all(m.dir.path(), None).unwrap().restored.len(), 1);
    }

    #[test]
    fn a_half_made_pool_is_ours() {
        let m = Machine::new();
        let mut journal = Journal::begin(m.dir.path(), SessionId::new(), None).unwrap();
        let path = m.file("nr_hugepages", "300");
        m.note(&mut journal, &path, "0", "512");
        undo(journal.path(), None, None).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "0");
    }
}
