//! What the machine is and how it is set up, as dotted names to text.
//!
//! Facts answer "what differed besides the commit", so they name settings and not measurements.
//! The few that change by themselves (load, uptime, frequency) stand under [`MOMENTARY`] for a
//! comparison to leave out. Nothing is executed and nothing is changed; what cannot be read is
//! absent, since an empty text would look like a value.

mod cpu;
mod kernel;
mod kernel_log;
mod memory;
mod system;
#[cfg(test)]
mod tests;

pub(crate) use cpu::throttle_events;
pub(crate) use kernel::config as kernel_config;
pub use kernel_log::KernelLog;

use crate::root::SysRoot;
use crate::settings::value_in;
use kdyno_model::{BootId, BoxFacts, TestboxError};
use std::collections::{BTreeMap, BTreeSet};

/// Prefix of the facts that differ from moment to moment on an unchanged machine.
pub const MOMENTARY: &str = "now.";

/// Reads all facts of the machine below `root`, under the given name or else its host name.
///
/// # Errors
/// When kernel release, memory size or usable CPUs cannot be read: without them no plan can be
/// derived, and `/proc` is likely not mounted.
pub fn read_facts(root: &SysRoot, testbox_name: Option<&str>) -> Result<BoxFacts, TestboxError> {
    let unusable = |path: &str| {
        TestboxError::at(root.path(path), "does not say what every plan needs")
            .hint("is /proc mounted, and readable for this user?")
    };
    let release_path = "/proc/sys/kernel/osrelease";
    let kernel_release = root
        .line(release_path)
        .ok_or_else(|| unusable(release_path))?;
    let hostname = || root.line("/proc/sys/kernel/hostname");
    let mut found = Found {
        root,
        entries: BTreeMap::new(),
    };
    cpu::read(&mut found);
    kernel::read(&mut found, &kernel_release);
    memory::read(&mut found);
    system::read(&mut found);
    Ok(BoxFacts {
        testbox: testbox_name
            .map(str::to_owned)
            .or_else(hostname)
            .unwrap_or_else(|| "localhost".to_owned()),
        kernel_release,
        boot_id: root.line("/proc/sys/kernel/random/boot_id").map(BootId),
        cpus: cpu::usable(root).ok_or_else(|| unusable("/proc/self/status"))?,
        memory_bytes: memory::total_bytes(root).ok_or_else(|| unusable("/proc/meminfo"))?,
        numa_nodes: memory::numa_nodes(root),
        entries: found.entries,
    })
}

/// The facts found so far.
struct Found<'a> {
    root: &'a SysRoot,
    entries: BTreeMap<String, String>,
}

impl Found<'_> {
    /// Notes a fact, unless there is none or its text is empty.
    fn put(&mut self, name: impl Into<String>, value: Option<impl Into<String>>) {
        let value = value
            .map(Into::into)
            .filter(|text: &String| !text.is_empty());
        if let Some(value) = value {
            self.entries.insert(name.into(), value);
        }
    }

    /// Notes the first line of a file.
    fn line(&mut self, name: impl Into<String>, path: &str) {
        self.put(name, self.root.line(path));
    }

    /// Notes the first line of each of the files.
    fn lines(&mut self, names_and_paths: &[(&str, &str)]) {
        for (name, path) in names_and_paths {
            self.line(*name, path);
        }
    }

    /// Notes what is chosen in a file such as `always [madvise] never`.
    fn chosen(&mut self, name: &str, path: &str) {
        let word = self.root.line(path).map(|line| value_in(&line));
        self.put(name, word);
    }
}

/// The distinct texts in their order, joined by commas; `None` without any.
fn joined(values: impl IntoIterator<Item = String>) -> Option<String> {
    let values: BTreeSet<String> = values.into_iter().collect();
    (!values.is_empty()).then(|| Vec::from_iter(values).join(","))
}

/// The value of `key` in lines of `key: value`, the first time it occurs.
pub(crate) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// How many there are in a list such as `0-3,8`; `None` when it is none.
fn list_length(list: &str) -> Option<u32> {
    list.trim().split(',').try_fold(0u32, |sum, part| {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (u32, u32) = (low.parse().ok()?, high.parse().ok()?);
        sum.checked_add(high.checked_sub(low)?.checked_add(1)?)
    })
}
