//! From the key of a setting to what it is on this machine.

use super::value_in;
use crate::root::SysRoot;
use kdyno_job::value::{Whole, flag, size_bytes};
use kdyno_model::{Setting, TestboxError};
use std::path::PathBuf;

/// Holds the longest exit latency of an idle state, microseconds, while it is open.
pub(crate) const DMA_LATENCY: &str = "/dev/cpu_dma_latency";
/// Empties caches when it is written.
pub(crate) const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";
const CPUFREQ: &str = "/sys/devices/system/cpu/cpufreq";
const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";

/// What a setting is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Files of the kernel, at least one.
    Files(Vec<KernelFile>),
    /// The longest exit latency of an idle state, microseconds.
    DmaLatency(i32),
    /// Caches that are emptied before each trial.
    Drop(Dropped),
    /// A limit of the trial's own cgroup, by its name in version 2.
    Cgroup { file: String, value: String },
    /// A directory of the trial's own.
    Scratch(Scratch),
    /// Swap of the trial's own.
    Swap(Swap),
}

/// A file of the kernel and the value that it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelFile {
    pub path: PathBuf,
    pub value: String,
    /// One of many, some of which the kernel keeps for itself: interrupts that it steers.
    pub may_refuse: bool,
}

/// Caches to empty, by the bits of `drop_caches` (Documentation/admin-guide/sysctl/vm.rst).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    Pages = 1,
    Slab = 2,
    All = 3,
}

/// What a trial's directory is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scratch {
    /// The file system of [`crate::scratch::base`].
    Dir,
    /// A tmpfs of so many bytes.
    Tmpfs(u64),
    /// An ext4 of so many bytes on a loop device over a sparse file.
    Ext4(u64),
}

/// What a trial swaps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Swap {
    /// A file of so many bytes.
    File(u64),
    /// A zram device of so many bytes.
    Zram(u64),
}

/// What the setting is on the machine below `root`.
///
/// # Errors
/// A key that is no setting, a value that it cannot have, or a machine that lacks it.
pub(crate) fn target(root: &SysRoot, setting: &Setting) -> Result<Target, TestboxError> {
    let unknown = || TestboxError::new(format!("`{}` is no setting of this machine", setting.key));
    let (group, name) = setting.key.split_once('.').ok_or_else(unknown)?;
    let value = value_in(&setting.value);
    let file = |path: String| {
        Ok(Target::Files(vec![KernelFile {
            path: root.path(path),
            value: value.clone(),
            may_refuse: false,
        }]))
    };
    match (group, name) {
        ("thp", _) => file(format!("/sys/kernel/mm/transparent_hugepage/{name}")),
        ("hugepages", "default") => file("/proc/sys/vm/nr_hugepages".to_owned()),
        ("hugepages", _) => {
            let kib = bytes(name).map_err(|_| unknown())? >> 10;
            file(format!(
                "/sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_hugepages"
            ))
        }
        ("sysctl", _) => file(format!("/proc/sys/{}", sysctl_path(name))),
        ("sysfs", _) => file(name.to_owned()),
        ("numa", "balancing") => {
            let path = root.path("/proc/sys/kernel/numa_balancing");
            switch(setting, path, |on| on)
        }
        ("cpufreq", "boost") => boost(root, setting),
        ("cpufreq", _) => policies(root, name, &value),
        ("cpu", "smt") => file("/sys/devices/system/cpu/smt/control".to_owned()),
        ("cpu", "dma_latency") => number(setting).map(Target::DmaLatency),
        ("irq", "affinity") => interrupts(root, &value),
        ("irq", _) => file(format!("/proc/irq/{name}/smp_affinity_list")),
        ("block", _) => {
            let (disk, attribute) = name.split_once('.').ok_or_else(unknown)?;
            file(format!("/sys/block/{disk}/queue/{attribute}"))
        }
        ("cgroup", _) => Ok(Target::Cgroup {
            file: name.to_owned(),
            value,
        }),
        ("cache", "drop") => match value.as_str() {
            "pages" => Ok(Target::Drop(Dropped::Pages)),
            "slab" => Ok(Target::Drop(Dropped::Slab)),
            "all" => Ok(Target::Drop(Dropped::All)),
            _ => Err(not_a_value(setting)),
        },
        ("scratch", "dir") => Ok(Target::Scratch(Scratch::Dir)),
        ("scratch", "tmpfs") => size(setting).map(Scratch::Tmpfs).map(Target::Scratch),
        ("scratch", "ext4") => size(setting).map(Scratch::Ext4).map(Target::Scratch),
        ("swap", "file") => size(setting).map(Swap::File).map(Target::Swap),
        ("swap", "zram") => size(setting).map(Swap::Zram).map(Target::Swap),
        _ => Err(unknown()),
    }
}

fn not_a_value(setting: &Setting) -> TestboxError {
    TestboxError::new(format!(
        "`{}` is no value of `{}`",
        setting.value, setting.key
    ))
}

fn number(setting: &Setting) -> Result<i32, TestboxError> {
    let number = setting.value.parse().ok().filter(|number| *number >= 0);
    number.ok_or_else(|| not_a_value(setting))
}

fn size(setting: &Setting) -> Result<u64, TestboxError> {
    let bytes = bytes(&setting.value).ok().filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| not_a_value(setting))
}

/// Bytes; shares were taken when the plan was made.
fn bytes(text: &str) -> Result<u64, kdyno_job::value::BadValue> {
    let nowhere = Whole {
        cpus: 1,
        memory_bytes: 0,
    };
    size_bytes(text, nowhere)
}

/// A file that holds 1 or 0, set to what `of` makes of the value.
fn switch(
    setting: &Setting,
    path: PathBuf,
    of: impl Fn(bool) -> bool,
) -> Result<Target, TestboxError> {
    let on = flag(&setting.value).map_err(|_| not_a_value(setting))?;
    Ok(Target::Files(vec![KernelFile {
        path,
        value: u8::from(of(on)).to_string(),
        may_refuse: false,
    }]))
}

/// Frequencies above the nominal one: acpi-cpufreq's and amd-pstate's switch, or the inverse one
/// of intel_pstate.
fn boost(root: &SysRoot, setting: &Setting) -> Result<Target, TestboxError> {
    let no_turbo = root.path(NO_TURBO);
    if no_turbo.exists() {
        return switch(setting, no_turbo, |on| !on);
    }
    switch(setting, root.path(format!("{CPUFREQ}/boost")), |on| on)
}

/// The same value for the frequency policy of each CPU.
fn policies(root: &SysRoot, name: &str, value: &str) -> Result<Target, TestboxError> {
    let attribute = match name {
        "energy_performance_preference" => name.to_owned(),
        _ => format!("scaling_{name}"),
    };
    let names = root.names(CPUFREQ);
    let policies = names.iter().filter(|name| name.starts_with("policy"));
    let files: Vec<KernelFile> = policies
        .map(|policy| KernelFile {
            path: root.path(format!("{CPUFREQ}/{policy}/{attribute}")),
            value: value.to_owned(),
            may_refuse: false,
        })
        .collect();
    if files.is_empty() {
        return Err(
            TestboxError::at(root.path(CPUFREQ), "no CPU of this machine has a policy")
                .hint("no driver sets its frequency; in a virtual machine the host does"),
        );
    }
    Ok(Target::Files(files))
}

/// Every interrupt, so far as the kernel lets it be moved, and those that come later.
fn interrupts(root: &SysRoot, cpus: &str) -> Result<Target, TestboxError> {
    let names = root.names("/proc/irq");
    let numbers = names.iter().filter(|name| name.parse::<u32>().is_ok());
    let files: Vec<KernelFile> = numbers
        .map(|number| KernelFile {
            path: root.path(format!("/proc/irq/{number}/smp_affinity_list")),
            value: cpus.to_owned(),
            may_refuse: true,
        })
        .collect();
    if files.is_empty() {
        return Err(TestboxError::at(
            root.path("/proc/irq"),
            "no interrupt of this machine can be moved",
        ));
    }
    Ok(Target::Files(files))
}

/// As sysctl(8) has it: whichever of `.` and `/` comes first separates, the other one swaps.
fn sysctl_path(name: &str) -> String {
    let swapped = name
        .find(['.', '/'])
        .is_some_and(|at| name[at..].starts_with('.'));
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    if swapped {
        name.chars().map(swap).collect()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn at(root: &SysRoot, key: &str, value: &str) -> Result<Target, TestboxError> {
        let setting = Setting {
            key: key.to_owned(),
            value: value.to_owned(),
        };
        target(root, &setting)
    }

    fn files(root: &SysRoot, key: &str, value: &str) -> Vec<(PathBuf, String)> {
        match at(root, key, value).unwrap() {
            Target::Files(files) => files.into_iter().map(|f| (f.path, f.value)).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn keys_are_files_of_the_kernel() {
        let root = SysRoot::real();
        for (key, path) in [
            ("thp.enabled", "/sys/kernel/mm/transparent_hugepage/enabled"),
            ("hugepages.default", "/proc/sys/vm/nr_hugepages"),
            (
                "hugepages.2M",
                "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
            ),
            (
                "hugepages.1G",
                "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages",
            ),
            ("sysctl.vm.swappiness", "/proc/sys/vm/swappiness"),
            (
                "sysctl.net.ipv4.conf.eth0/1.forwarding",
                "/proc/sys/net/ipv4/conf/eth0.1/forwarding",
            ),
            (
                "sysctl.net/ipv4/conf/eth0.1/forwarding",
                "/proc/sys/net/ipv4/conf/eth0.1/forwarding",
            ),
            (
                "sysfs./sys/block/vda/queue/scheduler",
                "/sys/block/vda/queue/scheduler",
            ),
            ("block.vda.scheduler", "/sys/block/vda/queue/scheduler"),
            ("cpu.smt", "/sys/devices/system/cpu/smt/control"),
            ("irq.24", "/proc/irq/24/smp_affinity_list"),
        ] {
            let found = files(&root, key, "1");
            assert_eq!(found, [(Path::new(path).to_owned(), "1".to_owned())]);
        }
        assert!(at(&root, "colour.red", "1").is_err());
        assert!(at(&root, "hugepages.big", "1").is_err());
    }

    fn machine(paths: &[&str]) -> (tempfile::TempDir, SysRoot) {
        let dir = tempfile::tempdir().unwrap();
        for path in paths {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "0\n").unwrap();
        }
        let root = SysRoot::at(dir.path());
        (dir, root)
    }

    #[test]
    fn a_governor_is_that_of_every_policy() {
        let (dir, root) = machine(&[
            "sys/devices/system/cpu/cpufreq/boost",
            "sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
            "sys/devices/system/cpu/cpufreq/policy4/scaling_governor",
        ]);
        let cpufreq = dir.path().join("sys/devices/system/cpu/cpufreq");
        let expected = ["policy0", "policy4"].map(|policy| {
            let path = cpufreq.join(policy).join("scaling_governor");
            (path, "performance".to_owned())
        });
        assert_eq!(files(&root, "cpufreq.governor", "performance"), expected);
        let boost = files(&root, "cpufreq.boost", "off");
        assert_eq!(boost, [(cpufreq.join("boost"), "0".to_owned())]);
    }

    #[test]
    fn turbo_of_intel_is_the_inverse() {
        let (dir, root) = machine(&["sys/devices/system/cpu/intel_pstate/no_turbo"]);
        let path = dir
            .path()
            .join("sys/devices/system/cpu/intel_pstate/no_turbo");
        let off = files(&root, "cpufreq.boost", "off");
        assert_eq!(off, [(path, "1".to_owned())]);
        let error = at(&root, "cpufreq.governor", "performance").unwrap_err();
        assert!(error.hint.unwrap().contains("virtual machine"));
    }

    #[test]
    fn interrupts_that_the_kernel_keeps_may_refuse() {
        let (_dir, root) = machine(&[
            "proc/irq/default_smp_affinity",
            "proc/irq/1/smp_affinity_list",
            "proc/irq/24/smp_affinity_list",
        ]);
        match at(&root, "irq.affinity", "0-1").unwrap() {
            Target::Files(files) => {
                assert_eq!(files.len(), 2);
                assert!(files.iter().all(|file| file.may_refuse));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_made_for_each_trial() {
        let root = SysRoot::real();
        let cases = [
            ("cache.drop", "slab", Target::Drop(Dropped::Slab)),
            (
                "scratch.tmpfs",
                "4096",
                Target::Scratch(Scratch::Tmpfs(4096)),
            ),
            ("swap.zram", "1M", Target::Swap(Swap::Zram(1 << 20))),
            ("cpu.dma_latency", "0", Target::DmaLatency(0)),
            (
                "cgroup.memory.max",
                "max",
                Target::Cgroup {
                    file: "memory.max".to_owned(),
                    value: "max".to_owned(),
                },
            ),
        ];
        for (key, value, expected) in cases {
            assert_eq!(at(&root, key, value).unwrap(), expected, "{key}");
        }
        for (key, value) in [
            ("cache.drop", "some"),
            ("scratch.ext4", "0"),
            ("cpu.dma_latency", "-1"),
            ("numa.balancing", "some"),
        ] {
            assert!(at(&root, key, value).is_err(), "{key}");
        }
    }
}
