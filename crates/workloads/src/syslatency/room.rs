//! Whether a run is safe, and can show anything: no size beyond what the machine spares, and memory
//! pressure only under a limit of its own, never the whole machine's.

use super::{Mode, Options, RunError};
use std::fs;
use std::path::{Path, PathBuf};

/// Of the memory that is available a run takes at most this share.
const SHARE: u64 = 2;
/// The device of a graphics processor.
const RENDER_NODE: &str = "/dev/dri/renderD128";

/// Refuses what would harm the machine, or measure nothing.
pub(super) fn check(options: &Options) -> Result<(), RunError> {
    if options.gpu && !options.idle {
        return Err(gpu());
    }
    let available = available_bytes();
    let wanted = options.held_bytes();
    if wanted > available / SHARE {
        return Err(RunError::Refused {
            reason: format!(
                "the loads keep {} MiB, of {} MiB that are available at most half may be taken",
                wanted >> 20,
                available >> 20
            ),
            hint: "give smaller sizes",
        });
    }
    if options.mode == Mode::HugePages {
        under_a_limit(wanted, available)?;
    }
    Ok(())
}

/// Requests to a graphics processor are its driver's own language, which kdyno does not speak.
fn gpu() -> RunError {
    match Path::new(RENDER_NODE).exists() {
        false => RunError::Absent("--gpu: there is no render node in /dev/dri"),
        true => RunError::Absent(
            "--gpu: there is a render node, but no driver's requests are known yet; --pin and --churn \
             stand for what a driver does to memory",
        ),
    }
}

/// The limit of this process's cgroup must be one that it reaches before the machine does.
fn under_a_limit(wanted: u64, available: u64) -> Result<(), RunError> {
    let Some(limit) = limit_bytes().filter(|limit| *limit <= available) else {
        return Err(RunError::Refused {
            reason: "`-m` makes memory scarce, and this process has no memory limit of its own"
                .to_owned(),
            hint: "run it in a cgroup with a limit, as `kdyno run jobs/syslatency.yaml` does",
        });
    };
    if wanted >= limit {
        return Err(RunError::Refused {
            reason: format!(
                "the loads keep {} MiB, the memory limit is {} MiB",
                wanted >> 20,
                limit >> 20
            ),
            hint: "let the limit be 28 MiB larger than the loads",
        });
    }
    Ok(())
}

/// `MemAvailable`; nothing when it cannot be read.
fn available_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let mut lines = text.lines();
    let found = lines.find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = found.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}

/// The smallest memory limit of this process's cgroups and those above.
pub(super) fn limit_bytes() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let limits = own.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let (kind, file) = match controllers {
            "" => ("cgroup2", "memory.max"),
            names if names.split(',').any(|name| name == "memory") => {
                ("cgroup", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let mount = mount_point(&mounts, kind, controllers)?;
        let path = mount.join(path.trim_start_matches('/'));
        let above = path.ancestors().take_while(|dir| dir.starts_with(&mount));
        let read = |dir: &Path| fs::read_to_string(dir.join(file)).ok()?.trim().parse().ok();
        above.filter_map(read).min()
    });
    limits.min()
}

/// Where a hierarchy of cgroups is mounted (proc(5), mountinfo).
fn mount_point(mounts: &str, kind: &str, controllers: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let is_kind = after.next() == Some(kind);
        let options = after.next_back().unwrap_or("");
        let is_it = controllers
            .split(',')
            .all(|name| name.is_empty() || options.split(',').any(|option| option == name));
        (is_kind && is_it).then(|| PathBuf::from(before.split(' ').nth(4).unwrap_or("/")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_found_by_kind_and_controller() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      31 23 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let at = |kind, controllers| mount_point(mounts, kind, controllers);
        assert_eq!(at("cgroup", "memory"), Some("/sys/fs/cgroup/memory".into()));
        assert_eq!(at("cgroup2", ""), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(at("cgroup", "cpu"), None);
    }

    #[test]
    fn more_than_half_of_what_is_available_is_refused() {
        let options = Options {
            pin: u64::MAX / 4,
            ..Options::default()
        };
        assert!(matches!(check(&options), Err(RunError::Refused { .. })));
        assert!(available_bytes() > 0);
        let idle = Options {
            idle: true,
            gpu: true,
            ..options
        };
        assert!(check(&idle).is_ok());
    }

    #[test]
    fn a_graphics_load_is_skipped_with_a_reason() {
        let options = Options {
            gpu: true,
            ..Options::default()
        };
        assert!(matches!(check(&options), Err(RunError::Absent(_))));
    }
}
