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

/// The controller of version 1 that each trial gets a group in: it tells of kills. A further
/// hierarchy costs every start some milliseconds, so that it is joined only for a limit in it.
const V1_CONTROLLER: &str = "memory";

/// A hierarchy of cgroups that is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    mount_point: PathBuf,
    /// Where this process is in it.
    own: PathBuf,
    /// Its controllers in version 1; `None` for version 2.
    v1: Option<Vec<String>>,
}

impl Hierarchy {
    fn has(&self, controller: &str) -> bool {
        let of_v1 = self.v1.as_ref();
        of_v1.is_some_and(|controllers| controllers.iter().any(|name| name == controller))
    }

    /// The directory below which a trial's cgroup has all these controllers in version 2: where
    /// this process is, or else the nearest above it that hands them down.
    fn parent_with(&self, controllers: &[&str]) -> Option<PathBuf> {
        let hands_down = |dir: &&Path| {
            let text = std::fs::read_to_string(dir.join("cgroup.subtree_control"));
            let text = text.unwrap_or_default();
            controllers
                .iter()
                .all(|wanted| text.split_whitespace().any(|name| name == *wanted))
        };
        let mut above = self
            .own
            .ancestors()
            .take_while(|dir| dir.starts_with(&self.mount_point));
        above.find(hands_down).map(Path::to_owned)
    }
}

/// Where this process is, in each hierarchy that is mounted.
fn hierarchies(root: &SysRoot) -> Vec<Hierarchy> {
    let mounts = root.read("/proc/self/mountinfo").unwrap_or_default();
    let memberships = root.read("/proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
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
        let (own, v1) = match fs_type {
            "cgroup2" => (membership(&memberships, str::is_empty), None),
            "cgroup" => {
                let names: Vec<String> = options.split(',').map(str::to_owned).collect();
                let own = membership(&memberships, |of| {
                    of.split(',').any(|name| names.iter().any(|n| n == name))
                });
                (own, Some(names))
            }
            _ => continue,
        };
        let Some(own) = own else { continue };
        // Inside a container the mount shows only a part of the hierarchy.
        let below = own
            .strip_prefix(mount_root)
            .unwrap_or(own)
            .trim_start_matches('/');
        let mount_point = root.path(mount_point);
        found.push(Hierarchy {
            own: mount_point.join(below),
            mount_point,
            v1,
        });
    }
    found
}

/// The directories below which a trial's cgroups can be made: in version 2 and in version 1's
/// memory hierarchy, and in whichever more the limits need.
#[must_use]
pub(crate) fn parents(root: &SysRoot, limits: &[String]) -> Vec<PathBuf> {
    let controllers: Vec<&str> = limits.iter().map(|file| controller(file)).collect();
    let all = hierarchies(root);
    let unified: Vec<&str> = controllers
        .iter()
        .copied()
        .filter(|name| !all.iter().any(|h| h.has(name)))
        .collect();
    let wanted = all.iter().filter_map(|hierarchy| match hierarchy.v1 {
        None if unified.is_empty() => Some(hierarchy.own.clone()),
        None => Some(
            hierarchy
                .parent_with(&unified)
                .unwrap_or_else(|| hierarchy.own.clone()),
        ),
        Some(_) => {
            let joined =
                hierarchy.has(V1_CONTROLLER) || controllers.iter().any(|c| hierarchy.has(c));
            joined.then(|| hierarchy.own.clone())
        }
    });
    wanted.collect()
}

/// `memory` of `memory.max`.
fn controller(file: &str) -> &str {
    file.split('.').next().unwrap_or(file)
}

/// Why a trial cannot have this limit, as far as that can be told without trying.
pub(crate) fn unlimited(root: &SysRoot, file: &str) -> Option<TestboxError> {
    let name = controller(file);
    let all = hierarchies(root);
    let parent = match all.iter().find(|hierarchy| hierarchy.has(name)) {
        Some(hierarchy) => match in_version_1(file, "1") {
            Some(_) => hierarchy.own.clone(),
            None => {
                let error = TestboxError::new(format!("version 1 of cgroups has no `{file}`"));
                return Some(error.hint("memory.max, cpu.max, cpu.weight, cpuset.cpus, cpuset.mems and pids.max work there"));
            }
        },
        None => match all
            .iter()
            .filter(|hierarchy| hierarchy.v1.is_none())
            .find_map(|hierarchy| hierarchy.parent_with(&[name]))
        {
            Some(parent) => parent,
            None => {
                let error = TestboxError::new(format!(
                    "no cgroup above this one hands the controller `{name}` down"
                ));
                return Some(error.hint(format!(
                    "as root: echo +{name} > /sys/fs/cgroup/cgroup.subtree_control"
                )));
            }
        },
    };
    (!sys::is_writable(&parent)).then(|| {
        TestboxError::at(parent, "no cgroup can be made here")
            .hint("limits need root, or a cgroup that was delegated to this user")
    })
}

/// The files of version 1 that mean the same; `None` where none does.
fn in_version_1(file: &str, value: &str) -> Option<Vec<(&'static str, String)>> {
    let unlimited = |text: &str| match text {
        "max" => "-1".to_owned(),
        other => other.to_owned(),
    };
    Some(match file {
        "memory.max" => vec![("memory.limit_in_bytes", unlimited(value))],
        "cpuset.cpus" => vec![("cpuset.cpus", value.to_owned())],
        "cpuset.mems" => vec![("cpuset.mems", value.to_owned())],
        "pids.max" => vec![("pids.max", value.to_owned())],
        "cpu.max" => {
            let mut words = value.split_whitespace();
            let quota = ("cpu.cfs_quota_us", unlimited(words.next()?));
            let period = words.next().unwrap_or("100000");
            vec![("cpu.cfs_period_us", period.to_owned()), quota]
        }
        // Both are relative: 100 in version 2 is 1024 in version 1.
        "cpu.weight" => {
            let weight: u64 = value.parse().ok()?;
            let shares = weight.checked_mul(1024)? / 100;
            vec![("cpu.shares", shares.max(2).to_string())]
        }
        _ => return None,
    })
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
    /// The directories that a trial of this name and with these limits would get.
    pub(crate) fn planned(root: &SysRoot, name: &str, limits: &[String]) -> Vec<PathBuf> {
        parents(root, limits)
            .into_iter()
            .map(|parent| parent.join(name))
            .collect()
    }

    /// Makes one directory and keeps it; whoever calls has entered it in the journal.
    pub(crate) fn make(&mut self, dir: PathBuf) -> Result<(), TestboxError> {
        std::fs::create_dir(&dir).map_err(|error| TestboxError::at(&dir, error))?;
        self.dirs.push(dir.clone());
        // A new cpuset of version 1 holds nothing, and nobody can join it.
        for file in ["cpuset.mems", "cpuset.cpus"] {
            let above = dir.with_file_name(file);
            let own = dir.join(file);
            let is_empty = std::fs::read_to_string(&own).is_ok_and(|text| text.trim().is_empty());
            if is_empty && !dir.join("cgroup.controllers").exists() {
                std::fs::read(&above)
                    .and_then(|all| std::fs::write(&own, all))
                    .map_err(|error| TestboxError::at(&own, error))?;
            }
        }
        Ok(())
    }

    /// Sets a limit, by its name in version 2.
    ///
    /// # Errors
    /// When no cgroup of the trial has it, or the kernel does not take the value.
    pub(crate) fn limit(&self, file: &str, value: &str) -> Result<(), TestboxError> {
        let write = |path: PathBuf, value: &str| {
            std::fs::write(&path, value)
                .map_err(|error| TestboxError::at(path, format!("cannot set `{value}`: {error}")))
        };
        let having = |file: &str| {
            self.dirs
                .iter()
                .map(|dir| dir.join(file))
                .find(|path| path.is_file())
        };
        if let Some(path) = having(file) {
            return write(path, value);
        }
        let missing = || TestboxError::new(format!("no cgroup of the trial has `{file}`"));
        for (file, value) in in_version_1(file, value).ok_or_else(missing)? {
            write(having(file).ok_or_else(missing)?, &value)?;
        }
        Ok(())
    }

    /// Where they are.
    pub(crate) fn dirs(&self) -> &[PathBuf] {
        &self.dirs
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
            parents(&root, &[]),
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
        assert_eq!(parents(&root, &[]), expected.map(|p| dir.path().join(p)));
    }

    #[test]
    fn a_limit_is_where_its_controller_is() {
        let (dir, root) = tree(
            "1 0 0:1 / /cg/memory rw - cgroup cgroup rw,memory\n\
             2 0 0:2 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n",
            "4:memory:/\n3:cpuset:/a\n",
        );
        let limits = ["cpuset.cpus".to_owned()];
        let expected = ["cg/memory", "cg/cpuset/a"];
        assert_eq!(
            parents(&root, &limits),
            expected.map(|p| dir.path().join(p))
        );
        let error = unlimited(&root, "memory.high").unwrap();
        assert!(error.message.contains("version 1"), "{error}");
        let error = unlimited(&root, "io.max").unwrap();
        assert!(error.hint.unwrap().contains("+io"));
    }

    #[test]
    fn a_controller_is_taken_from_the_nearest_that_hands_it_down() {
        let (dir, root) = tree(
            "30 20 0:26 / /cg rw - cgroup2 cgroup2 rw\n",
            "0::/user.slice/a.scope\n",
        );
        let slice = dir.path().join("cg/user.slice");
        std::fs::create_dir_all(slice.join("a.scope")).unwrap();
        std::fs::write(slice.join("cgroup.subtree_control"), "memory pids\n").unwrap();
        let of = |file: &str| parents(&root, &[file.to_owned()]);
        assert_eq!(of("memory.max"), std::slice::from_ref(&slice));
        assert_eq!(of("io.max"), [slice.join("a.scope")]);
        assert!(unlimited(&root, "memory.max").is_none());
        assert!(unlimited(&root, "io.max").is_some());
    }

    #[test]
    fn limits_in_version_1() {
        let of = |file, value| in_version_1(file, value).unwrap();
        let pair = |file, value: &str| (file, value.to_owned());
        assert_eq!(
            of("memory.max", "max"),
            [pair("memory.limit_in_bytes", "-1")]
        );
        assert_eq!(
            of("cpu.max", "50000 100000"),
            [
                pair("cpu.cfs_period_us", "100000"),
                pair("cpu.cfs_quota_us", "50000")
            ]
        );
        assert_eq!(of("cpu.weight", "200"), [pair("cpu.shares", "2048")]);
        assert!(in_version_1("io.max", "1").is_none());
    }

    #[test]
    fn nothing_mounted_and_nonsense() {
        let (_dir, root) = tree("nonsense\n - cgroup2\n", "x\n");
        assert!(parents(&root, &[]).is_empty());
    }
}
