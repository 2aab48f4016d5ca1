//! `kdyno doctor`, and the quick look of `kdyno run`.

use crate::bench::{Bench, Printed, binary};
use serde_json::Value;
use std::process::Command;

#[track_caller]
fn report(bench: &Bench, words: &[&str]) -> Value {
    let printed = bench.kdyno(words).ok();
    serde_json::from_str(&printed.out).expect("JSON")
}

#[test]
fn people_get_what_why_and_what_to_do_in_80_columns() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("state")).expect("a directory");
    bench.file("state/journal.made-up", "");
    let printed = bench.kdyno(&["doctor"]).ok();
    let first = "warning  undo-journal: a run that died left an undo journal\n";
    assert!(printed.out.contains(first), "{}", printed.out);
    assert!(printed.out.contains("hint: run `kdyno restore`"));
    for check in [
        "load: ",
        "memory: ",
        "wake-up: timers wake",
        "interference: ",
    ] {
        assert!(printed.out.contains(check), "{check}: {}", printed.out);
    }
    for line in printed
        .out
        .lines()
        .filter(|line| !line.contains("-V NAME:"))
    {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(!printed.out.contains('\u{1b}'));
    assert!(!bench.home().exists());
    assert!(
        bench.path("state/journal.made-up").exists(),
        "it only looks"
    );
}

#[test]
fn programs_get_what_the_document_says() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = std::fs::read_to_string(root.join("docs/doctor.md")).expect("docs/doctor.md");
    let bench = Bench::new();
    let quick = report(&bench, &["doctor", "--quick", "--json"]);
    assert_eq!(
        (&quick["schema"], &quick["quick"]),
        (&1.into(), &true.into())
    );
    assert_eq!(quick["timing"], Value::Null);
    let full = report(&bench, &["doctor", "--json"]);
    assert_eq!(full["timing"]["wake_ups"], 1000);
    let finding = &full["findings"][0];
    for part in [&full, finding, &full["timing"]] {
        for field in part.as_object().expect("an object").keys() {
            assert!(document.contains(&format!("`{field}`")), "{field}");
        }
    }
    let levels = full["findings"].as_array().expect("a list");
    for finding in levels {
        let level = finding["level"].as_str().expect("a level");
        assert!(["ok", "note", "warning"].contains(&level), "{finding}");
        assert!(finding["setting"].is_null() || level != "ok", "{finding}");
    }
}

#[test]
fn settings_that_it_names_are_settings_of_a_job() {
    let bench = Bench::new();
    let found = report(&bench, &["doctor", "--quick", "--json"]);
    let findings = found["findings"].as_array().expect("a list");
    for setting in findings.iter().filter_map(|f| f["setting"].as_str()) {
        let variant = format!("quiet:{setting}");
        let printed = bench.kdyno(&["run", "--dry-run", "-V", &variant, "true"]);
        let status = printed.status;
        assert!(
            status == Some(0) || status == Some(4),
            "{setting}: {}",
            printed.err
        );
        assert!(
            !printed.out.contains("no setting of this machine"),
            "{}",
            printed.out
        );
    }
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let bench = Bench::new();
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped colours_are_for_terminals_that_want_them: script is not installed");
        return;
    }
    let line = format!("{} doctor --quick", binary());
    let on_terminal = |no_color: &str| -> Printed {
        let words = ["-qec", &line, "/dev/null"];
        let mut command = bench.command_of("script".as_ref(), &words);
        command.env("TERM", "xterm").env("NO_COLOR", no_color);
        command.output().expect("script").into()
    };
    assert!(on_terminal("").ok().out.contains("\u{1b}[32mok"));
    assert!(!on_terminal("1").ok().out.contains('\u{1b}'));
}

#[test]
fn a_run_looks_first_and_keeps_what_it_saw() {
    let bench = Bench::new();
    let events = |words: &[&str]| -> Vec<Value> {
        let printed = bench.kdyno(words).ok();
        let event = |line| serde_json::from_str(line).expect("an event");
        printed.out.lines().map(event).collect()
    };
    let words = ["run", "--json", "-n", "1", "--warm-up", "0", "true"];
    let with = events(&words);
    let place = |name: &str| with.iter().position(|event| event["event"] == name);
    let (doctor, plan) = (place("doctor").expect("a look"), place("plan-begun"));
    assert!(Some(doctor) < plan);
    let findings = with[doctor]["findings"].as_array().expect("a list");
    assert!(
        findings
            .iter()
            .all(|f| f["level"] == "note" || f["level"] == "warning")
    );
    let without = events(&[&words[..], &["--no-doctor"]].concat());
    assert!(without.iter().all(|event| event["event"] != "doctor"));
}
