//! The readable name and the content hash of a case.

use crate::spec::CaseSpec;
use kdyno_model::{CaseId, CaseRef, Command};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Longest part that a value contributes to a name, as lkp-tests has it.
const WIDEST_PART: usize = 31;

/// The reference to a case: option values sorted by option name and joined with `-`, and the
/// hash of everything it asks for. Names collide (values are cut), hashes do not.
#[must_use]
pub fn case_ref(spec: &CaseSpec) -> CaseRef {
    CaseRef {
        testcase: spec.testcase.clone(),
        params: params(spec),
        id: case_id(spec),
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

fn case_id(spec: &CaseSpec) -> CaseId {
    let digest = Sha256::digest(canonical(spec).as_bytes());
    let hex = digest.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    CaseId(hex)
}

/// The canonical text of a case: one line per thing it asks for, sorted, values escaped. Equal
/// texts mean equal cases, whatever the job file looked like.
#[must_use]
pub fn canonical(spec: &CaseSpec) -> String {
    let mut lines = vec![
        format!("testcase {:?}", spec.testcase),
        format!("program {:?}", spec.program),
    ];
    let mut map = |name: &str, entries: Vec<(&String, &String)>| {
        lines.extend(
            entries
                .into_iter()
                .map(|(key, value)| format!("{name} {key:?} {value:?}")),
        );
    };
    map("option", spec.options.iter().collect());
    map("environment", spec.environment.iter().collect());
    map(
        "setting",
        spec.settings.iter().map(|s| (&s.key, &s.value)).collect(),
    );
    match &spec.command {
        Some(Command::Shell(line)) => lines.push(format!("shell {line:?}")),
        Some(Command::Argv(words)) => lines.push(format!("argv {words:?}")),
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
            .filter_map(|(name, value)| Some(format!("{name} {:?}", value?))),
    );
    lines.sort_unstable();
    lines.push(String::new());
    lines.join("\n")
}
