//! `kdyno run --json` and the record in the plan's directory.

use crate::bench::{Bench, Printed, binary, wait_until};
use serde_json::Value;
use std::io::BufRead;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const MINE: &str = "\
testcase: mine
command: \"echo value: $X\"
metrics: {value: {unit: ops/s, better: higher}}
runs: 2
variants:
  a: {environment: {X: \"10\"}}
  b: {environment: {X: \"20\"}}
";

#[track_caller]
fn events_in(text: &str) -> Vec<Value> {
    let event = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    text.lines().map(event).collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|e| e["event"].as_str()).collect()
}

#[track_caller]
fn only<'a>(events: &'a [Value], name: &str) -> &'a Value {
    let found: Vec<&Value> = events.iter().filter(|e| e["event"] == name).collect();
    assert_eq!(found.len(), 1, "{name} in {:?}", names(events));
    found[0]
}

fn plan_dir(bench: &Bench) -> PathBuf {
    let mut plans = std::fs::read_dir(bench.home().join("plans")).expect("plans");
    plans.next().expect("a plan").expect("an entry").path()
}

fn recorded(bench: &Bench) -> String {
    std::fs::read_to_string(plan_dir(bench).join("events.jsonl")).expect("the record")
}

#[test]
fn standard_output_is_events_and_nothing_else() {
    let bench = Bench::new();
    let job = bench.file("job.yaml", MINE);
    let printed = bench.kdyno(&["run", "--json", &job, "--seed", "7"]).ok();
    let events = events_in(&printed.out);
    let expected: Vec<&str> = ["stream-begun", "doctor", "plan-begun"]
        .into_iter()
        .chain(["trial-begun", "trial-ended"].repeat(6))
        .chain(["plan-ended", "stream-ended"])
        .collect();
    assert_eq!(names(&events), expected);
    assert_eq!(events[0]["schema"], 1);
    let begun = only(&events, "plan-begun");
    assert_eq!(begun["seed"], 7);
    assert_eq!(begun["variants"], serde_json::json!(["a", "b"]));
    assert_eq!(
        (&begun["trials"], &begun["todo"], &begun["cases"]),
        (&6.into(), &6.into(), &1.into())
    );
    assert_eq!(begun["expected_seconds"], Value::Null);
    let times: Vec<u64> = events
        .iter()
        .map(|e| e["at_unix_ms"].as_u64().expect("a moment"))
        .collect();
    assert!(times.iter().all(|ms| *ms > 1_600_000_000_000), "{times:?}");
    let rows = bench.listed();
    let ended: Vec<&Value> = events
        .iter()
        .filter(|e| e["event"] == "trial-ended")
        .collect();
    for (row, ended) in rows.iter().zip(&ended) {
        assert_eq!(ended["run"], row["run_id"]);
        assert_eq!(ended["variant"], row["variant"]);
        assert_eq!(ended["warm_up"], row["warm_up"]);
        assert_eq!(ended["reason"], Value::Null);
        let figure = &ended["headline"][0];
        assert_eq!(figure["metric"], "mine.value");
        assert_eq!(figure["unit"], "ops/s");
        assert_eq!(figure["value"], row["scalars"][0]["value"]);
        assert_eq!(
            ended["seconds"].as_f64(),
            row["window_ns"].as_f64().map(|ns| ns / 1e9)
        );
    }
    let end = only(&events, "plan-ended");
    assert_eq!(end["ending"], "finished");
    assert_eq!(end["plan"], begun["plan"]);
    let result = end["result"].as_str().expect("a command");
    let words: Vec<&str> = result.split(' ').skip(1).collect();
    bench.kdyno(&words).ok().says("mine.value");
    assert_eq!(only(&events, "stream-ended")["exit_status"], 0);
    assert!(printed.err.contains("mine.value"), "{}", printed.err);
    assert!(printed.err.contains("trial 6 of 6"));
    assert_eq!(recorded(&bench), printed.out, "the record has the same");
}

#[test]
fn every_event_and_field_is_in_the_document() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = std::fs::read_to_string(root.join("docs/events.md")).expect("docs/events.md");
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        "testcase: t\ncommand: \"echo value: $X; exit $Y\"\nmonitors: none\nwarm_up: 0\n\
         variants:\n  a: {environment: {X: \"1\", Y: \"0\"}}\n  b: {environment: {X: \"2\", Y: \"0\"}}\n  \
         c: {environment: {X: \"3\", Y: \"4\"}}\n",
    );
    let looked = bench.kdyno(&["run", "--json", "--until-decided", "--max-runs", "5", &job]);
    let skipped = bench.file(
        "huge.yaml",
        "testcase: t\ncommand: 'true'\nneed_memory: 900T\n",
    );
    let skipped = bench.kdyno(&["run", "--json", &skipped]).with_status(4);
    let lost = bench
        .kdyno(&["run", "--json", "lost.yaml"])
        .with_status(2)
        .says("error: lost.yaml");
    let mut seen = std::collections::BTreeSet::new();
    for event in events_in(&[looked.with_status(3).out, skipped.out, lost.out].concat()) {
        let name = event["event"].as_str().expect("a name").to_owned();
        for field in event.as_object().expect("an object").keys() {
            assert!(
                document.contains(&format!("`{field}`")),
                "docs/events.md lacks `{field}` of {name}"
            );
        }
        assert!(document.contains(&format!("`{name}`")), "{name}");
        seen.insert(name);
    }
    for name in [
        "decision",
        "error",
        "failure",
        "look",
        "note",
        "skipped",
        "stream-ended",
    ] {
        assert!(seen.contains(name), "{name} is not in {seen:?}");
    }
}

#[test]
fn jq_reads_it() {
    let bench = Bench::new();
    if Command::new("jq").arg("--version").output().is_err() {
        eprintln!("skipped jq_reads_it: jq is not installed");
        return;
    }
    let job = bench.file("job.yaml", MINE);
    let filter = r#"select(.event=="trial-ended") | [.variant, .headline[0].value] | @tsv"#;
    let script = format!(
        "{} run --json {job} | jq -r '{filter}' | sort | uniq -c",
        binary()
    );
    let printed: Printed = bench
        .command_of("/bin/sh".as_ref(), &["-c", &script])
        .output()
        .expect("a shell")
        .into();
    let words: Vec<&str> = printed.out.split_whitespace().collect();
    assert_eq!(words, ["3", "a", "10", "3", "b", "20"], "{}", printed.err);
}

#[test]
fn failures_are_events_with_reason_and_last_words() {
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        "testcase: t\ncommand: 'echo because >&2; exit 7'\nruns: 2\nwarm_up: 0\n",
    );
    let printed = bench.kdyno(&["run", "--json", &job]).with_status(3);
    let events = events_in(&printed.out);
    let failure = only(&events, "failure");
    assert_eq!(failure["runs"], 2);
    assert_eq!(failure["last_words"], serde_json::json!(["because"]));
    assert!(failure["reason"].to_string().contains("exit code 7"));
    assert_eq!(only(&events, "plan-ended")["ending"], "failures");
    assert_eq!(only(&events, "stream-ended")["exit_status"], 3);
}

#[test]
fn a_reader_that_has_gone_ends_the_run_quietly_and_resume_finishes_it() {
    let bench = Bench::new();
    let job = bench.file("job.yaml", MINE);
    let script = format!(
        "( {} run --json {job} 2>err; echo $? >status ) | head -n 1",
        binary()
    );
    let printed: Printed = bench
        .command_of("/bin/sh".as_ref(), &["-c", &script])
        .output()
        .expect("a shell")
        .into();
    assert_eq!(names(&events_in(&printed.out)), ["stream-begun"]);
    let read = |name: &str| std::fs::read_to_string(bench.path(name)).expect("a file");
    assert_eq!(read("status"), "0\n");
    assert!(!read("err").contains("error"), "{}", read("err"));
    let events = events_in(&recorded(&bench));
    assert_eq!(only(&events, "plan-ended")["ending"], "reader-gone");
    assert!(bench.sealed().len() < 6);
    bench.kdyno(&["run", "--resume"]).ok();
    assert_eq!(bench.sealed().len(), 6);
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let bench = Bench::new();
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
        eprintln!("skipped output_that_cannot_be_written_is_an_error: no /dev/full");
        return;
    };
    let printed: Printed = bench
        .command(&["run", "--json", "-n", "1", "true"])
        .stdout(full)
        .output()
        .expect("kdyno starts")
        .into();
    printed
        .with_status(2)
        .says("standard output")
        .says("No space left");
    assert_eq!(bench.sealed().len(), 0);
}

#[test]
fn events_come_while_the_run_goes_on_and_an_interrupt_is_one() {
    let bench = Bench::new();
    let mut child = bench
        .command(&["run", "--json", "-n", "3", "--warm-up", "0", "sleep 20"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("kdyno starts");
    let mut lines = std::io::BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || -> Value {
        let line = lines.next().expect("an event").expect("a line");
        serde_json::from_str(&line).expect("JSON")
    };
    while next()["event"] != "trial-begun" {}
    wait_until(|| !bench.run_dirs().is_empty());
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status();
    assert!(killed.expect("kill").success());
    let ended = next();
    assert_eq!(ended["event"], "plan-ended");
    assert_eq!(ended["ending"], "interrupted");
    assert_eq!(ended["trials"], 0);
    assert_eq!(next()["exit_status"], 130);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}

/// A plan of which one run is done and one is missing.
fn unfinished(bench: &Bench) {
    let job = bench.file(
        "job.yaml",
        "testcase: t\ncommand: 'test -e go && echo value: 1 || exec sleep 30'\nruns: 2\nwarm_up: 0\n",
    );
    bench.file("go", "");
    let mut child = bench
        .command(&["run", &job, "--warm-up", "0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kdyno starts");
    let mut lines = std::io::BufReader::new(child.stderr.take().expect("a pipe")).lines();
    while !lines
        .next()
        .expect("a line")
        .expect("text")
        .contains("trial 1 of 2")
    {}
    std::fs::remove_file(bench.path("go")).expect("the file");
    child.kill().expect("kill -9");
    child.wait().expect("it ended");
    bench.file("go", "");
}

#[test]
fn a_session_appends_to_the_record_and_cuts_half_a_line() {
    let bench = Bench::new();
    unfinished(&bench);
    let path = plan_dir(&bench).join("events.jsonl");
    let before = std::fs::read_to_string(&path).expect("the record of the first session");
    std::fs::write(&path, format!("{before}{{\"event\":\"trial-en")).expect("half a line");
    bench.kdyno(&["run", "--resume"]).ok();
    let events = events_in(&recorded(&bench));
    let sessions = events.iter().filter(|e| e["event"] == "stream-begun");
    assert_eq!(sessions.count(), 2);
    assert!(recorded(&bench).starts_with(&before));
    let resumed: Vec<&Value> = events
        .iter()
        .filter(|e| e["event"] == "plan-begun")
        .map(|e| &e["resumed"])
        .collect();
    assert_eq!(resumed, [false, true]);
}

#[track_caller]
fn goes_on_without_a_record(bench: &Bench, printed: Printed) {
    let events = events_in(&printed.ok().out);
    let warning = only(&events, "warning")["text"].to_string();
    assert!(warning.contains("events are not recorded"), "{warning}");
    assert_eq!(only(&events, "plan-ended")["ending"], "finished");
    assert_eq!(bench.sealed().len(), 2);
}

#[test]
fn a_record_that_cannot_be_opened_is_a_warning_and_costs_no_run() {
    let bench = Bench::new();
    unfinished(&bench);
    let path = plan_dir(&bench).join("events.jsonl");
    std::fs::remove_file(&path).expect("the record");
    std::os::unix::fs::symlink("/dev/full", &path).expect("a link");
    goes_on_without_a_record(&bench, bench.kdyno(&["run", "--resume", "--json"]));
}

#[test]
fn a_record_that_has_no_room_is_a_warning_and_costs_no_run() {
    const MIB: usize = 1 << 20;
    let bench = Bench::new();
    unfinished(&bench);
    let path = plan_dir(&bench).join("events.jsonl");
    let line = format!("{{\"event\":\"note\",\"text\":\"{}\"}}\n", "x".repeat(MIB));
    std::fs::write(&path, line.repeat(8)).expect("a long record");
    // No file of the process may grow beyond 4 MiB; others are smaller.
    let script = format!(
        "trap '' XFSZ; ulimit -f 4096; exec {} run --resume --json",
        binary()
    );
    let printed = bench
        .command_of("/bin/bash".as_ref(), &["-c", &script])
        .output()
        .expect("bash")
        .into();
    goes_on_without_a_record(&bench, printed);
}

#[test]
fn a_plan_is_not_printed_as_events() {
    let bench = Bench::new();
    bench
        .kdyno(&["run", "--json", "--dry-run", "true"])
        .with_status(2)
        .says("--dry-run");
}
