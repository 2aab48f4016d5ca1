//! The keys of a job and what each is for.

use crate::catalog::{Catalog, Program};
use crate::error::{JobError, Source};
use crate::node::{Key, Kind, Node};
use crate::setting::GROUPS;

/// Keys that shape the plan; no part of a case.
pub const PLAN_KEYS: [&str; 4] = ["runs", "warm_up", "seed", "variants"];

/// Keys that say what a case is, beside the groups of settings.
const CASE_KEYS: [&str; 10] = [
    "testcase",
    "command",
    "metrics",
    "environment",
    "affinity",
    "directory",
    "timeout",
    "monitors",
    "need_memory",
    "need_cpu",
];

/// Whether a dotted `-V` path does not split further inside this map: its keys are free text.
pub fn is_free_map(key: &str) -> bool {
    key == "environment" || GROUPS.contains(&key)
}

fn is_case_key(key: &str) -> bool {
    CASE_KEYS.contains(&key) || GROUPS.contains(&key)
}

/// Other tools' spelling of our keys: `(theirs, ours)`.
const SYNONYMS: [(&str, &str); 3] = [
    ("nr_hugepages", "hugepages"),
    ("transparent_hugepage", "thp"),
    ("need_cpus", "need_cpu"),
];

/// Other tools' keys that are one of our settings: `(theirs, our group, our key)`.
const SCALAR_SYNONYMS: [(&str, &str, &str); 2] = [
    ("nr_hugepages", "hugepages", "default"),
    ("cpufreq_governor", "cpufreq", "governor"),
];

/// Keys of lkp-tests that say how its own infrastructure handles a job, or ask for profilers,
/// which belong in runs of their own: listed once, otherwise without effect.
const IGNORED: [&str; 40] = [
    "suite",
    "category",
    "queue",
    "rootfs",
    "initrds",
    "mail_to",
    "mail_cc",
    "job_origin",
    "job_file",
    "user",
    "submit_id",
    "id",
    "tbox_group",
    "testbox",
    "arch",
    "compiler",
    "kconfig",
    "commit",
    "branch",
    "result_root",
    "lkp_initrd",
    "bm_initrd",
    "kernel_cmdline",
    "enqueue_time",
    "head_commit",
    "base_commit",
    "perf-profile",
    "perf-stat",
    "perf-node",
    "perf-sched",
    "ftrace",
    "turbostat",
    "mpstat",
    "iostat",
    "heartbeat",
    "kmsg",
    "max_uptime",
    "ssh_base_port",
    "description",
    "maintainer",
];

/// Brings a document to one form: synonyms replaced, infrastructure keys removed (their names
/// are returned), the program's options collected below its name.
pub fn normalise(node: &Node, program: Option<&Program>) -> (Node, Vec<String>) {
    let mut out = Node::empty_map(node.place);
    let mut ignored = Vec::new();
    let mut options = Vec::new();
    for (key, value) in node.entries().unwrap_or_default() {
        let text = key.text.as_str();
        if IGNORED.contains(&text) {
            ignored.push(key.text.clone());
        } else if let Some((_, group, name)) = SCALAR_SYNONYMS
            .iter()
            .find(|(theirs, ..)| *theirs == text && value.entries().is_none())
        {
            let ours = |text: &str| Key {
                text: text.to_owned(),
                place: key.place,
            };
            let mut settings = Node::empty_map(value.place);
            settings.set(ours(name), value.clone());
            merge_entry(&mut out, &ours(group), &settings);
        } else if let Some((_, ours)) = SYNONYMS.iter().find(|(theirs, _)| *theirs == text) {
            let ours = Key {
                text: (*ours).to_owned(),
                place: key.place,
            };
            merge_entry(&mut out, &ours, &strip_thp_prefix(value));
        } else if program.is_some_and(|p| is_loose_option(p, text)) {
            options.push((key.clone(), value.clone()));
        } else {
            merge_entry(&mut out, key, value);
        }
    }
    if let (Some(program), false) = (program, options.is_empty()) {
        let mut nested = Node {
            kind: Kind::Map(options),
            place: node.place,
        };
        let name = Key {
            text: program.name.clone(),
            place: node.place,
        };
        if let Some(own) = out.get(&program.name).filter(|own| !own.is_null()) {
            nested.merge_deep(own);
        }
        out.set(name, nested);
    }
    (out, ignored)
}

/// Whether a key at the top of a document is an option of its program.
fn is_loose_option(program: &Program, key: &str) -> bool {
    key != program.name && !is_case_key(key) && program.option(key).is_some()
}

fn merge_entry(out: &mut Node, key: &Key, value: &Node) {
    let mut merged = value.clone();
    if let Some(old) = out.get(&key.text) {
        let mut both = old.clone();
        both.merge_deep(value);
        merged = both;
    }
    out.set(key.clone(), merged);
}

/// `thp_enabled` below `transparent_hugepage` is `enabled` below `thp`.
fn strip_thp_prefix(value: &Node) -> Node {
    let mut value = value.clone();
    if let Kind::Map(entries) = &mut value.kind {
        for (key, _) in entries {
            if let Some(short) = key.text.strip_prefix("thp_") {
                key.text = short.to_owned();
            }
        }
    }
    value
}

/// The program that a document runs: the catalog program that is one of its keys, `command`
/// where a command is given, else the program that `testcase` names; `None` for a document that
/// runs nothing.
///
/// # Errors
/// More than one program.
pub fn program_of<'c>(
    source: Source<'_>,
    node: &Node,
    catalog: &'c Catalog,
) -> Result<Option<&'c Program>, JobError> {
    let entries = node.entries().unwrap_or_default();
    let mut named = entries
        .iter()
        .filter(|(key, _)| key.text != "command")
        .filter_map(|(key, _)| catalog.get(&key.text).map(|program| (key, program)));
    if let Some((first, program)) = named.next() {
        let other = named.next().map(|(key, _)| key);
        let command = entries
            .iter()
            .find(|(key, _)| key.text == "command")
            .map(|(key, _)| key);
        if let Some(second) = other.or(command) {
            let message = format!(
                "`{}` is a second program beside `{}`",
                second.text, first.text
            );
            return Err(JobError::at(source, second.place, message)
                .hint("a job runs one program; use a second job file"));
        }
        return Ok(Some(program));
    }
    if node.get("command").is_some() {
        return Ok(catalog.get("command"));
    }
    let testcase = node.get("testcase").and_then(Node::text);
    Ok(testcase
        .filter(|name| *name != "command")
        .and_then(|name| catalog.get(name)))
}

/// Refuses keys that nobody knows, with the nearest known one.
///
/// # Errors
/// The first unknown key.
pub fn check_keys(
    source: Source<'_>,
    node: &Node,
    program: Option<&Program>,
    catalog: &Catalog,
    plan_keys: bool,
) -> Result<(), JobError> {
    let mut known: Vec<&str> = [CASE_KEYS.as_slice(), &GROUPS].concat();
    if plan_keys {
        known.extend(PLAN_KEYS);
    }
    match program {
        Some(program) => known.push(&program.name),
        None => known.extend(catalog.names()),
    }
    for (key, value) in node.entries().unwrap_or_default() {
        if !known.contains(&key.text.as_str()) {
            return Err(unknown_key(source, key, program, &known));
        }
        if let Some(program) = program.filter(|p| p.name == key.text && p.name != "command") {
            check_options(source, value, program)?;
        }
    }
    Ok(())
}

fn unknown_key(
    source: Source<'_>,
    key: &Key,
    program: Option<&Program>,
    known: &[&str],
) -> JobError {
    if PLAN_KEYS.contains(&key.text.as_str()) {
        let message = format!(
            "`{}` shapes the plan and cannot differ between variants",
            key.text
        );
        return JobError::at(source, key.place, message).hint("set it at the top of the job");
    }
    let mut candidates: Vec<&str> = known.to_vec();
    candidates.extend(SYNONYMS.iter().map(|(theirs, _)| *theirs));
    candidates.extend(
        program
            .iter()
            .flat_map(|p| p.options.iter().map(|o| o.name.as_str())),
    );
    JobError::at(source, key.place, format!("unknown key `{}`", key.text))
        .hint_nearest(&key.text, candidates)
}

fn check_options(source: Source<'_>, value: &Node, program: &Program) -> Result<(), JobError> {
    if value.is_null() {
        return Ok(());
    }
    let Some(entries) = value.entries() else {
        let message = format!(
            "`{}` holds {}; its options are expected",
            program.name,
            value.kind_name()
        );
        let options: Vec<&str> = program.options.iter().map(|o| o.name.as_str()).collect();
        return Err(JobError::at(source, value.place, message).hint(format!(
            "options of {}: {}",
            program.name,
            options.join(", ")
        )));
    };
    for (key, _) in entries {
        if program.option(&key.text).is_none() {
            let message = format!("`{}` is no option of {}", key.text, program.name);
            let names = program.options.iter().map(|o| o.name.as_str());
            return Err(JobError::at(source, key.place, message).hint_nearest(&key.text, names));
        }
    }
    Ok(())
}

/// Whether a list at this path of a normalised document is an axis; elsewhere it is data.
#[must_use]
pub fn is_axis(path: &[&str], program: &Program) -> bool {
    match path {
        ["affinity"] => true,
        [map, _] if is_free_map(map) => true,
        [name, option] => *name == program.name && program.option(option).is_some(),
        _ => false,
    }
}
