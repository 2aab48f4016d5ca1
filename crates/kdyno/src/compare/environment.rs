//! What differs between the machines of two sides beside the variant.
//!
//! Only sides of different plans are looked at: runs of one plan take turns on one machine. What
//! a variant's own settings or another kernel bring along is no difference. A fact that only one
//! side knows is none either.

use crate::context::Context;
use kdyno_analyze::Doubt;
use kdyno_model::{BoxFacts, PlanId, RunId, RunRow, Setting, VariantName};
use kdyno_rundir::RundirError;
use kdyno_stats::judge::Reason;
use std::collections::BTreeSet;

/// Facts that change how fast a machine is, by the beginning of their names.
const INFLUENTIAL: [&str; 8] = [
    "clock.source",
    "cpu.",
    "kernel.aslr",
    "kernel.nmi_watchdog",
    "memory.",
    "numa.",
    "sched.",
    "virt.",
];
/// Of these what another kernel may bring along by itself.
const OF_THE_KERNEL: [&str; 6] = [
    "clock.sources",
    "cpu.idle",
    "cpu.microcode",
    "cpu.vulnerability",
    "memory.min_free_kbytes",
    "sched.",
];
/// Shares of memory by which two kernels on one machine may differ.
const SAME_MEMORY: f64 = 0.01;
/// Differences named in a note before the rest is only counted.
const NAMED: usize = 4;

/// Doubts about every variant whose machine was set up otherwise than the base's.
pub(super) fn doubts(
    rows: &[RunRow],
    variants: &[VariantName],
    context: &Context,
) -> anyhow::Result<Vec<Doubt>> {
    let mut doubts = Vec::new();
    let Some(base_name) = variants.first() else {
        return Ok(doubts);
    };
    let testboxes: BTreeSet<&str> = rows.iter().map(|row| row.testbox.as_str()).collect();
    for testbox in testboxes {
        let Some(base) = Side::of(rows, testbox, base_name) else {
            continue;
        };
        for variant in variants.iter().skip(1) {
            let Some(side) = Side::of(rows, testbox, variant) else {
                continue;
            };
            if side.plan == base.plan {
                continue;
            }
            let (Ok(a), Ok(b)) = (base.setup(context)?, side.setup(context)?) else {
                // A damaged run is told where it is read for its figures.
                continue;
            };
            let differing = differences(&a, &b);
            if !differing.is_empty() {
                doubts.push(Doubt {
                    testbox: testbox.to_owned(),
                    variant: variant.clone(),
                    reason: Reason::EnvironmentDiffers,
                    note: note(base_name, variant, &differing),
                });
            }
        }
    }
    Ok(doubts)
}

/// The first run of a variant on a testbox.
struct Side {
    plan: PlanId,
    run: RunId,
}

/// How a machine was set up for a run.
struct Setup {
    facts: BoxFacts,
    settings: Vec<Setting>,
}

impl Side {
    fn of(rows: &[RunRow], testbox: &str, variant: &VariantName) -> Option<Self> {
        let compared = |row: &&RunRow| {
            row.testbox == testbox
                && row.variant == *variant
                && row.outcome.is_done()
                && !row.warm_up
        };
        let row = rows.iter().find(compared)?;
        Some(Self {
            plan: row.plan,
            run: row.run_id,
        })
    }

    fn setup(&self, context: &Context) -> anyhow::Result<Result<Setup, RundirError>> {
        let home = context.home()?;
        let read = || {
            let plan = home.plan(self.plan)?;
            let run = plan.run(self.run)?;
            Ok(Setup {
                facts: run.measurement()?.facts_before,
                settings: run.trial()?.work.settings,
            })
        };
        Ok(read())
    }
}

/// `name: base's value, new value` of each influential fact that differs.
fn differences(a: &Setup, b: &Setup) -> Vec<String> {
    let other_kernel = a.facts.kernel_release != b.facts.kernel_release;
    let implied = |name: &str| {
        let settings = a.settings.iter().chain(&b.settings);
        settings.clone().any(|setting| sets(setting, name))
            || other_kernel && OF_THE_KERNEL.iter().any(|begin| name.starts_with(begin))
    };
    let mut found = Vec::new();
    if a.facts.cpus != b.facts.cpus {
        found.push(format!("cpus: {}, {}", a.facts.cpus, b.facts.cpus));
    }
    let (of_a, of_b) = (a.facts.memory_bytes, b.facts.memory_bytes);
    if of_a.abs_diff(of_b) as f64 > SAME_MEMORY * of_a.max(of_b) as f64 {
        found.push(format!("memory_bytes: {of_a}, {of_b}"));
    }
    for (name, value) in &a.facts.entries {
        let influential = INFLUENTIAL.iter().any(|begin| name.starts_with(begin));
        if let Some(other) = b.facts.entries.get(name)
            && influential
            && other != value
            && !implied(name)
        {
            found.push(format!("{name}: {value}, {other}"));
        }
    }
    found
}

/// Whether a setting is what a fact tells: `thp.enabled` makes `memory.thp.enabled`,
/// `sysctl.vm.swappiness` makes `memory.swappiness`.
fn sets(setting: &Setting, fact: &str) -> bool {
    let last = |name: &str| name.rsplit(['.', '/']).next().unwrap_or("").to_owned();
    fact.ends_with(&setting.key)
        || last(fact) == last(&setting.key)
        || setting.key.starts_with("hugepages") && fact.starts_with("memory.hugepages")
}

fn note(base: &VariantName, variant: &VariantName, differing: &[String]) -> String {
    let named: Vec<&str> = differing.iter().take(NAMED).map(String::as_str).collect();
    let rest = match differing.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{base} and {variant} ran on machines that differ in more than the variant: {}{rest}",
        named.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(kernel: &str, entries: &[(&str, &str)], settings: &[(&str, &str)]) -> Setup {
        let entry = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Setup {
            facts: BoxFacts {
                kernel_release: kernel.to_owned(),
                cpus: 2,
                memory_bytes: 1 << 30,
                entries: entries.iter().map(entry).collect(),
                ..BoxFacts::default()
            },
            settings: settings
                .iter()
                .map(|(key, value)| Setting {
                    key: (*key).to_owned(),
                    value: (*value).to_owned(),
                })
                .collect(),
        }
    }

    #[test]
    fn what_the_variant_brings_along_is_exempt() {
        let never = setup("6.1", &[("memory.thp.enabled", "never")], &[]);
        let always = |settings| setup("6.1", &[("memory.thp.enabled", "always")], settings);
        assert_eq!(
            differences(&never, &always(&[])),
            ["memory.thp.enabled: never, always"]
        );
        assert!(differences(&never, &always(&[("thp.enabled", "always")])).is_empty());
        let kernel = |release, value| setup(release, &[("cpu.vulnerability.mds", value)], &[]);
        assert!(differences(&kernel("6.1", "a"), &kernel("6.2", "b")).is_empty());
        assert_eq!(
            differences(&kernel("6.1", "a"), &kernel("6.1", "b")).len(),
            1
        );
    }

    #[test]
    fn load_and_uptime_are_no_environment() {
        let with = |load| setup("6.1", &[("now.load_average", load)], &[]);
        assert!(differences(&with("0.1"), &with("3.0")).is_empty());
    }

    #[test]
    fn another_amount_of_memory_is() {
        let a = setup("6.1", &[], &[]);
        let mut b = setup("6.2", &[], &[]);
        b.facts.memory_bytes -= 1 << 20;
        assert!(differences(&a, &b).is_empty());
        b.facts.memory_bytes = 1 << 29;
        assert_eq!(differences(&a, &b).len(), 1);
    }
}
