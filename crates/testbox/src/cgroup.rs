//! A trial's own cgroup, in version 2 where it can be made, in version 1 beside it or instead.
//!
//! It catches processes that leave the process group and tells of out-of-memory kills. Where no
//! cgroup can be made (no root, nothing delegated) the trial runs without and says so.

use crate::root::SysRoot;
use crate::strays::PATIENCE;
use crate::sys;
use kdyno_model::TestboxError;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The controller of version 1 that a trial gets a group in: it tells of kills. Each further
/// hierarchy would cost every start some milliseconds.
const V1_CONTROLLER: &str = "memory";

/// The directories below which a trial's cgroup can be made: where this process is, in each
/// hierarchy that is mounted.
#[must_use]
pub(crate) fn parents(root: &SysRoot) -> Vec<PathBuf> {
    let mounts = root.read("/proc/self/mountinfo").unwrap_or_default();
    let memberships = root.read("/proc/self/cgroup").unwrap_or_default();
    let mut parents = Vec::new();
    for line in mounts.lines() {
        let Some((before, after)) = line.split_once(" - ") else {
            continue;
        };
        let fields: Vec<&str> = before.split(' ').collect();
        let (Some(mount_root), Some(mount_point)) = (fields.get(3), fields.get(4)) else {
            continue;
        };
        let mut kind = after.split(' ');
        let fs_type = kind.next().unwrap_or_default();
        let options = kind.nth(1).unwrap_or_default();
        let own = match fs_type {
            "cgroup2" => membership(&memberships, |controllers| controllers.is_empty()),
            "cgroup" if options.split(',').any(|option| option == V1_CONTROLLER) => {
                membership(&memberships, |of| of.split(',').any(|c| c == V1_CONTROLLER))
            }
            _ => None,
        };
        let Some(own) = own else { continue };
        // Inside a container the mount shows only a part of the hierarchy.
        let below = own
            .strip_prefix(mount_root)
            .unwrap_or(own)
            .trim_start_matches('/');
        parents.push(root.path(Path::new(mount_point).join(below)));
    }
    parents
}

fn membership(text: &str, wanted: impl Fn(&str) -> bool) -> Option<&str> {
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        wanted(controllers).then_some(path)
    })
}

/// The cgroups of one trial.
#[derive(Debug, Default)]
pub(crate) struct TrialCgroups {
    dirs: Vec<PathBuf>,
}

impl TrialCgroups {
    /// The directories that a trial of this name would get.
    pub(crate) fn planned(root: &SysRoot, name: &str) -> Vec<PathBuf> {
        parents(root)
            .into_iter()
            .map(|parent| parent.join(name))
            .collect()
    }

    /// Makes one directory and keeps it; whoever calls has entered it in the journal.
    pub(crate) fn make(&mut self, dir: PathBuf) -> Result<(), TestboxError> {
        std::fs::create_dir(&dir).map_err(|error| TestboxError::at(&dir, error))?;
        self.dirs.push(dir);
        Ok(())
    }

    /// Whether there is any.
    pub(crate) fn is_empty(&self) -> bool {
        self.dirs.is_empty()
    }

    /// The files through which a process joins.
    pub(crate) fn joiners(&self) -> Result<Vec<File>, TestboxError> {
        let open = |dir: &PathBuf| {
            let path = dir.join("cgroup.procs");
            OpenOptions::new()
                .write(true)
                .open(&path)
                .map_err(|error| TestboxError::at(&path, error))
        };
        self.dirs.iter().map(open).collect()
    }

    /// Processes that the out-of-memory killer ended in it; `None` where nothing tells.
    pub(crate) fn oom_kills(&self) -> Option<u64> {
        let counts = self.dirs.iter().flat_map(|dir| {
            ["memory.events", "memory.oom_control"]
                .into_iter()
                .filter_map(|file| {
                    let text = std::fs::read_to_string(dir.join(file)).ok()?;
                    let line = text
                        .lines()
                        .find_map(|line| line.strip_prefix("oom_kill "))?;
                    line.trim().parse::<u64>().ok()
                })
        });
        counts.max()
    }

    /// Ends what is left in them and removes them; returns how many processes were left.
    ///
    /// # Errors
    /// The first that cannot be removed.
    pub(crate) fn remove(&mut self) -> Result<usize, TestboxError> {
        let mut left = 0;
        while let Some(dir) = self.dirs.last() {
            left = left.max(members(dir).len());
            remove(dir)?;
            self.dirs.pop();
        }
        Ok(left)
    }
}

fn members(dir: &Path) -> Vec<i32> {
    let text = std::fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect()
}

/// Tells everything in a cgroup to end.
pub(crate) fn kill(dir: &Path) {
    // cgroup.kill (since Linux 5.14) reaches forks that a walk over the list would miss.
    if std::fs::write(dir.join("cgroup.kill"), "1").is_err() {
        members(dir).into_iter().for_each(sys::kill_process);
    }
}

/// Ends everything in a cgroup and below it, and removes it; `false` when it is not there.
///
/// # Errors
/// When it is still there after the kernel's patience.
pub(crate) fn remove(dir: &Path) -> Result<bool, TestboxError> {
    if !dir.is_dir() {
        return Ok(false);
    }
    let begun = Instant::now();
    loop {
        kill(dir);
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                remove(&entry.path())?;
            }
        }
        match std::fs::remove_dir(dir) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
            Err(error) if begun.elapsed() > PATIENCE => return Err(TestboxError::at(dir, error)),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(mountinfo: &str, cgroup: &str) -> (tempfile::TempDir, SysRoot) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        std::fs::write(dir.path().join("proc/self/mountinfo"), mountinfo).unwrap();
        std::fs::write(dir.path().join("proc/self/cgroup"), cgroup).unwrap();
        let root = SysRoot::at(dir.path());
        (dir, root)
    }

    #[test]
    fn version_2_alone() {
        let (dir, root) = tree(
            "30 20 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
            "0::/user.slice/a.scope\n",
        );
        assert_eq!(
            parents(&root),
            [dir.path().join("sys/fs/cgroup/user.slice/a.scope")]
        );
    }

    #[test]
    fn both_versions_and_a_container() {
        let (dir, root) = tree(
            "1 0 0:1 / /cg/memory rw - cgroup cgroup rw,memory\n\
             2 0 0:2 /docker/x /cg/pids rw - cgroup cgroup rw,pids\n\
             3 0 0:3 / /cg/cpu rw - cgroup cgroup rw,cpu\n\
             4 0 0:4 / /cg/unified rw - cgroup2 cgroup2 rw\n",
            "4:memory:/api/1\n8:pids:/docker/x\n2:cpu:/\n0::/\n",
        );
        let expected = ["cg/memory/api/1", "cg/unified"];
        assert_eq!(parents(&root), expected.map(|p| dir.path().join(p)));
    }

    #[test]
    fn nothing_mounted_and_nonsense() {
        let (_dir, root) = tree("nonsense\n - cgroup2\n", "x\n");
        assert!(parents(&root).is_empty());
    }
}
