//! Settings of the machine as a job names them: a group, a key in it, and the values it can have.
//!
//! What they mean on a machine is the testbox's business; here only what cannot be right on any
//! machine is refused, with the place in the job.

use crate::value::{self, BadValue, Whole};
use kdyno_model::Setting;

/// The groups, each a map at the top of a job.
pub const GROUPS: [&str; 13] = [
    "thp",
    "hugepages",
    "sysctl",
    "sysfs",
    "cpufreq",
    "cpu",
    "irq",
    "block",
    "numa",
    "cgroup",
    "cache",
    "scratch",
    "swap",
];

/// Groups of which all keys are known; the keys of the others name things of the machine.
const CLOSED: [(&str, &[&str], &str); 8] = [
    (
        "thp",
        &["enabled", "defrag", "shmem_enabled"],
        "known: enabled, defrag, shmem_enabled; others by sysfs: {/sys/...: value}",
    ),
    (
        "cpufreq",
        &[
            "governor",
            "min_freq",
            "max_freq",
            "boost",
            "energy_performance_preference",
        ],
        "known: governor, min_freq, max_freq, boost, energy_performance_preference",
    ),
    ("cpu", &["smt", "dma_latency"], "known: smt, dma_latency"),
    ("numa", &["balancing"], "known: balancing"),
    ("cache", &["drop"], "known: drop"),
    (
        "scratch",
        &["dir", "tmpfs", "ext4"],
        "known: dir, tmpfs, ext4",
    ),
    ("swap", &["file", "zram"], "known: file, zram"),
    // Its other keys are numbers of interrupts.
    ("irq", &["affinity"], "write affinity, or the number of one"),
];

/// Any machine will do to see whether a size is well-formed.
const SOME_BOX: Whole = Whole {
    cpus: 1,
    memory_bytes: 1 << 30,
};

/// Refuses a setting that no machine can have.
///
/// # Errors
/// What is wrong with key or value, and what to write.
pub fn check(group: &str, key: &str, value: &str) -> Result<(), BadValue> {
    if value.contains(['\0', '\n']) {
        return bad(
            format!("the value of `{key}` holds a line end or NUL"),
            "give one line",
        );
    }
    check_key(group, key)?;
    check_value(group, key, value)
}

fn bad<T>(message: String, hint: &'static str) -> Result<T, BadValue> {
    Err(BadValue { message, hint })
}

fn check_key(group: &str, key: &str) -> Result<(), BadValue> {
    let clean = |text: &str| text.split('/').all(|part| part != "..") && !text.contains('\0');
    let is_name = |text: &str| !text.is_empty() && !text.contains('/') && clean(text);
    if let Some((_, known, hint)) = CLOSED.iter().find(|(name, ..)| *name == group) {
        let is_irq = group == "irq" && key.parse::<u32>().is_ok();
        return match known.contains(&key) || is_irq {
            true => Ok(()),
            false => bad(format!("`{key}` is no setting of `{group}`"), hint),
        };
    }
    match group {
        "hugepages" if key != "default" && value::size_bytes(key, SOME_BOX).is_err() => bad(
            format!("`{key}` is no huge-page size"),
            "write {2M: 512} or {1G: 4}; nr_hugepages sets the default size",
        ),
        "sysctl" if key.is_empty() || key.starts_with('/') || !clean(key) => bad(
            format!("`{key}` is no sysctl name"),
            "write it as sysctl does: vm.swappiness",
        ),
        "sysfs" if !key.starts_with("/sys/") || !clean(key) => bad(
            format!("`{key}` is no path below /sys"),
            "give the whole path: /sys/...",
        ),
        "block" if !is_name(key) || !key.contains('.') => bad(
            format!("`{key}` names no queue of a disk"),
            "write the disk and the name of the file in its queue: vda.scheduler",
        ),
        "cgroup" if !is_name(key) || !key.contains('.') || key.starts_with("cgroup.") => bad(
            format!("`{key}` is no limit of a cgroup"),
            "write the name as cgroup version 2 has it: memory.max, cpuset.cpus, cpu.max",
        ),
        _ => Ok(()),
    }
}

fn check_value(group: &str, key: &str, value: &str) -> Result<(), BadValue> {
    match (group, key) {
        ("hugepages", _) => value::count(value).map(drop),
        ("cpu", "dma_latency") => value::count(value).map(drop),
        ("cpu", "smt") => one_of(key, value, &["on", "off"]),
        ("cpufreq", "boost") | ("numa", "balancing") => {
            value::flag(value).map(drop).or_else(|_| {
                bad(
                    format!("`{value}` is no value of `{key}`"),
                    "write 1 or 0, on or off",
                )
            })
        }
        ("irq", _) | ("cgroup", "cpuset.cpus") => value::cpu_list(value).map(drop),
        ("cache", _) => one_of(key, value, &["pages", "slab", "all"]),
        ("scratch", "dir") => value::flag(value).map(drop),
        _ if is_size(group, key, value) => match value::size_bytes(value, SOME_BOX)? {
            0 => bad(
                format!("`{value}` is no size"),
                "give a size such as 256M or a share of the memory",
            ),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn one_of(key: &str, value: &str, known: &'static [&'static str]) -> Result<(), BadValue> {
    if known.contains(&value) {
        return Ok(());
    }
    let hint = match known {
        ["on", "off"] => "write on or off",
        _ => "write pages, slab or all",
    };
    bad(format!("`{value}` is no value of `{key}`"), hint)
}

/// Whether the value is an amount of memory or disk.
fn is_size(group: &str, key: &str, value: &str) -> bool {
    match group {
        "scratch" => key != "dir",
        "swap" => true,
        "cgroup" => key.starts_with("memory.") && value != "max",
        _ => false,
    }
}

/// A setting as a machine takes it: sizes in bytes, shares taken of its memory.
///
/// # Errors
/// A size that is none.
pub fn resolved(setting: &Setting, whole: Whole) -> Result<Setting, BadValue> {
    let (group, key) = setting.key.split_once('.').unwrap_or_default();
    if !is_size(group, key, &setting.value) {
        return Ok(setting.clone());
    }
    Ok(Setting {
        key: setting.key.clone(),
        value: value::size_bytes(&setting.value, whole)?.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_refused() {
        for (group, key, value) in [
            ("thp", "colour", "red"),
            ("cpufreq", "colour", "red"),
            ("cpu", "smt", "maybe"),
            ("cpu", "dma_latency", "-1"),
            ("irq", "eth0", "0"),
            ("irq", "affinity", "many"),
            ("block", "vda", "none"),
            ("block", "../x.scheduler", "none"),
            ("numa", "balancing", "some"),
            ("cgroup", "max", "1G"),
            ("cgroup", "cgroup.procs", "1"),
            ("cgroup", "memory.max", "much"),
            ("cgroup", "../memory.max", "1G"),
            ("cache", "drop", "7"),
            ("scratch", "xfs", "1G"),
            ("scratch", "ext4", "0"),
            ("swap", "file", "big"),
            ("sysctl", "vm.swappiness", "1\n2"),
        ] {
            assert!(check(group, key, value).is_err(), "{group}.{key}={value}");
        }
    }

    #[test]
    fn what_a_machine_may_have_is_taken() {
        for (group, key, value) in [
            ("cpufreq", "governor", "performance"),
            ("cpufreq", "boost", "off"),
            ("cpu", "smt", "off"),
            ("cpu", "dma_latency", "0"),
            ("irq", "affinity", "0-3"),
            ("irq", "24", "1"),
            ("block", "nvme0n1.scheduler", "none"),
            ("numa", "balancing", "0"),
            ("cgroup", "memory.max", "25%"),
            ("cgroup", "memory.max", "max"),
            ("cgroup", "cpu.max", "50000 100000"),
            ("cache", "drop", "all"),
            ("scratch", "dir", "true"),
            ("scratch", "ext4", "8G"),
            ("swap", "zram", "10%"),
        ] {
            assert_eq!(check(group, key, value), Ok(()), "{group}.{key}={value}");
        }
    }

    #[test]
    fn shares_of_memory_become_bytes() {
        let whole = Whole {
            cpus: 2,
            memory_bytes: 8 << 30,
        };
        let of = |key: &str, value: &str| {
            let setting = Setting {
                key: key.to_owned(),
                value: value.to_owned(),
            };
            resolved(&setting, whole).unwrap().value
        };
        assert_eq!(of("cgroup.memory.max", "25%"), (2u64 << 30).to_string());
        assert_eq!(of("cgroup.memory.max", "max"), "max");
        assert_eq!(of("swap.file", "1G"), (1u64 << 30).to_string());
        assert_eq!(of("sysctl.vm.swappiness", "60"), "60");
    }
}
