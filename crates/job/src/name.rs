//! The readable name and the content hash of a case.

use crate::catalog::{OptionKind, Program};
use crate::spec::CaseSpec;
use crate::value::{self, Whole};
use kdyno_model::{CaseId, CaseRef, Command};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Longest part that a value contributes to a name, as lkp-tests has it.
const WIDEST_PART: usize = 31;

/// The reference to a case: option values sorted by option name and joined with `-`, and the
/// hash of everything it asks for. Names collide (values are cut), hashes do not.
#[must_use]
pub fn case_ref(spec: &CaseSpec, program: &Program) -> CaseRef {
    CaseRef {
        testcase: spec.testcase.clone(),
        params: params(spec),
        id: case_id(spec, program),
    }
}

fn params(spec: &CaseSpec) -> String {
    let mut parts: Vec<(&str, &str)> = Vec::new();
    parts.extend(
        spec.options
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    parts.extend(
        spec.environment
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    parts.extend(spec.affinity.iter().map(|cpus| ("affinity", cpus.as_str())));
    let settings: Vec<(String, &str)> = spec
        .settings
        .iter()
        .map(|s| (s.key.replacen("thp.", "thp_", 1), s.value.as_str()))
        .collect();
    parts.extend(settings.iter().map(|(key, value)| (key.as_str(), *value)));
    parts.sort_by_key(|(name, _)| *name);
    let parts: Vec<String> = parts
        .into_iter()
        .map(|(_, value)| name_part(value))
        .collect();
    if parts.is_empty() {
        "defaults".to_owned()
    } else {
        parts.join("-")
    }
}

fn name_part(value: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || "-_.%+=:,".contains(c);
    value
        .chars()
        .take(WIDEST_PART)
        .map(|c| if keep(c) { c } else { '_' })
        .collect()
}

fn case_id(spec: &CaseSpec, program: &Program) -> CaseId {
    let digest = Sha256::digest(canonical(spec, program).as_bytes());
    let hex = digest.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    CaseId(hex)
}

/// The canonical text of a case: one line per thing it asks for, sorted, values escaped, options
/// that it does not give with their defaults. Equal texts mean equal cases, whatever the job file
/// looked like.
#[must_use]
pub fn canonical(spec: &CaseSpec, program: &Program) -> String {
    let mut lines = vec![
        line("testcase", &[&spec.testcase]),
        line("program", &[&spec.program]),
    ];
    let mut options = spec.options.clone();
    for option in &program.options {
        if let Some(default) = &option.default {
            options
                .entry(option.name.clone())
                .or_insert_with(|| default.clone());
        }
    }
    lines.extend(options.iter().map(|(name, value)| {
        let kind = program.option(name).map(|option| &option.kind);
        line("option", &[name, &one_spelling(kind, value)])
    }));
    lines.extend(
        spec.environment
            .iter()
            .map(|(name, value)| line("environment", &[name, value])),
    );
    lines.extend(
        spec.settings
            .iter()
            .map(|s| line("setting", &[&s.key, &s.value])),
    );
    match &spec.command {
        Some(Command::Shell(text)) => lines.push(line("shell", &[text])),
        Some(Command::Argv(words)) => {
            lines.push(line(
                "argv",
                &words.iter().map(String::as_str).collect::<Vec<_>>(),
            ));
        }
        Some(Command::Workload(_)) | None => {}
    }
    let singles = [
        ("affinity", spec.affinity.clone()),
        ("directory", spec.directory.clone()),
        ("timeout_ms", spec.timeout_ms.map(|ms| ms.to_string())),
        (
            "monitors",
            spec.monitors.as_ref().map(|names| names.join(",")),
        ),
    ];
    lines.extend(
        singles
            .into_iter()
            .filter_map(|(name, value)| Some(line(name, &[&value?]))),
    );
    lines.sort_unstable();
    lines.concat()
}

/// `256MiB` and `256M` are one size, `5m` and `300s` one time; shares stay shares, since they
/// mean another number on another machine.
fn one_spelling(kind: Option<&OptionKind>, text: &str) -> String {
    let nowhere = Whole {
        cpus: 0,
        memory_bytes: 0,
    };
    let number = match kind {
        _ if text.ends_with('%') => None,
        Some(OptionKind::Size) => value::size_bytes(text, nowhere).ok(),
        Some(OptionKind::Time) => value::time_ms(text).ok(),
        Some(OptionKind::Tasks) => value::tasks(text, nowhere).ok(),
        Some(OptionKind::Count) => value::count(text).ok(),
        Some(OptionKind::Flag) => value::flag(text).ok().map(u64::from),
        _ => None,
    };
    number.map_or_else(|| text.to_owned(), |number| number.to_string())
}

/// A name and quoted words. Escapes are spelled out here: a hash must not depend on how some
/// version of a library prints text.
fn line(name: &str, words: &[&str]) -> String {
    let mut line = name.to_owned();
    for word in words {
        line.push_str(" \"");
        for c in word.chars() {
            match c {
                '"' | '\\' => line.extend(['\\', c]),
                c if c.is_ascii_control() => line.push_str(&format!("\\x{:02x}", u32::from(c))),
                c => line.push(c),
            }
        }
        line.push('"');
    }
    line.push('\n');
    line
}
