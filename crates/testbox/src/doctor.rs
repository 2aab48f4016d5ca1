//! What makes noise on this machine: looked at before a run, never changed.
//!
//! Each check reads a few files below a [`SysRoot`] and says what it found, why that matters for
//! measurements, and how to change it. A check that does not apply to the machine (no battery, no
//! frequency control) says nothing. docs/doctor.md lists the checks.

mod activity;
mod cpu;
mod kernel;
mod memory;
#[cfg(test)]
mod tests;
mod timing;

pub use activity::Snapshot;
pub use timing::Timing;

use crate::facts::read_facts;
use crate::root::SysRoot;
use kdyno_model::{BoxFacts, TestboxError};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// How much a finding matters; the last is the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As measurements want it.
    Ok,
    /// Fine for most measurements, and good to know.
    Note,
    /// Likely to make figures vary or to shift them.
    Warning,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check's name, one word.
    pub check: &'static str,
    /// How much it matters.
    pub level: Level,
    /// What is so, with figures.
    pub what: String,
    /// Why it matters for measurements.
    pub why: &'static str,
    /// How to change it; none where nothing is to be changed or nothing can be.
    pub hint: Option<String>,
    /// The setting of a job that changes it for a run, as `-V NAME:` takes it.
    pub setting: Option<String>,
}

impl Finding {
    fn new(check: &'static str, level: Level, what: impl Into<String>, why: &'static str) -> Self {
        Self {
            check,
            level,
            what: what.into(),
            why,
            hint: None,
            setting: None,
        }
    }

    /// Advice is for what is not well.
    fn hint(mut self, hint: impl Into<String>) -> Self {
        if self.level > Level::Ok {
            self.hint = Some(hint.into());
        }
        self
    }

    fn setting(mut self, setting: impl Into<String>) -> Self {
        if self.level > Level::Ok {
            self.setting = Some(setting.into());
        }
        self
    }
}

/// Where to look.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// Where `/proc` and `/sys` are.
    pub root: &'a SysRoot,
    /// Where journal and lock of this machine are.
    pub state_dir: &'a Path,
    /// Where runs are kept, or will be; none where no place is known.
    pub home: Option<&'a Path>,
}

/// Over which time activity is sampled.
pub const SAMPLE: Duration = Duration::from_millis(200);

/// Looks at the machine for [`SAMPLE`]: all findings, the worst first.
///
/// # Errors
/// When the machine cannot be read at all.
pub fn examine(places: &Places<'_>) -> Result<Vec<Finding>, TestboxError> {
    let facts = read_facts(places.root, None)?;
    let before = Snapshot::take(places.root);
    std::thread::sleep(SAMPLE);
    let after = Snapshot::take(places.root);
    Ok(findings(places, &facts, &before, &after))
}

/// What two snapshots and the files between them say.
fn findings(
    places: &Places<'_>,
    facts: &BoxFacts,
    before: &Snapshot,
    after: &Snapshot,
) -> Vec<Finding> {
    let sight = Sight {
        places: *places,
        facts,
        before,
        after,
    };
    let mut findings: Vec<Finding> = CHECKS.iter().filter_map(|check| check(&sight)).collect();
    sort(&mut findings);
    findings
}

/// Measures for about two seconds how late timers wake and what interrupts a thread that computes.
#[must_use]
pub fn measure() -> (Timing, Vec<Finding>) {
    let timing = timing::measure();
    let findings = timing.findings();
    (timing, findings)
}

/// The worst first, otherwise in the order of the checks.
pub fn sort(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
}

/// What a check looks at.
struct Sight<'a> {
    places: Places<'a>,
    facts: &'a BoxFacts,
    before: &'a Snapshot,
    after: &'a Snapshot,
}

impl Sight<'_> {
    /// A fact by its name.
    fn fact(&self, name: &str) -> Option<&str> {
        self.facts.entries.get(name).map(String::as_str)
    }

    /// The first line of a file.
    fn line(&self, path: &str) -> Option<String> {
        self.places.root.line(path)
    }
}

type Check = fn(&Sight<'_>) -> Option<Finding>;

/// All checks, those first that most often explain a figure.
const CHECKS: [Check; 28] = [
    activity::other_run,
    activity::undo_waiting,
    activity::maintenance,
    activity::busy_process,
    activity::load,
    activity::steal,
    cpu::power,
    cpu::throttling,
    cpu::temperature,
    cpu::governor,
    memory::available,
    memory::dirty,
    memory::swap,
    kernel::debugging,
    kernel::clock,
    memory::disk,
    cpu::boost,
    cpu::smt,
    cpu::virtual_machine,
    memory::thp,
    memory::numa_balancing,
    kernel::aslr,
    kernel::privilege,
    kernel::cgroups,
    kernel::log,
    kernel::perf,
    kernel::watchdog,
    memory::ksm,
];
