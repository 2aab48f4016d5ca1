//! Each program of the catalog reads its own recorded output right, and runs for real where it
//! is installed.

use crate::bench::Bench;
use kdyno_analyze::row_of;
use kdyno_formats::{RawOutput, extract};
use kdyno_job::catalog::Catalog;
use kdyno_model::{
    BoxFacts, CaseId, CaseRef, ClockKind, Command, ExtractRules, Measurement, MonitorOverhead,
    Origin, Outcome, PlanId, Round, Rounds, RunId, RunRecord, Trial, Window, Work,
};
use std::path::{Path, PathBuf};

/// Every `fixtures/NAME.out` with its `NAME.expected`.
fn fixtures() -> Vec<(String, PathBuf)> {
    let catalog = Path::new(env!("CARGO_MANIFEST_DIR")).join("../job/catalog");
    let mut found = Vec::new();
    for program in std::fs::read_dir(catalog).unwrap().flatten() {
        for file in std::fs::read_dir(program.path().join("fixtures"))
            .unwrap()
            .flatten()
        {
            if file
                .path()
                .extension()
                .is_some_and(|extension| extension == "out")
            {
                found.push((program.file_name().into_string().unwrap(), file.path()));
            }
        }
    }
    found
}

#[test]
fn recorded_output_gives_its_figures() {
    let catalog = Catalog::built_in().unwrap();
    let fixtures = fixtures();
    for program in catalog.names() {
        assert!(
            fixtures.iter().any(|(name, _)| name == program),
            "{program} has no fixture"
        );
    }
    for (program, path) in fixtures {
        let rules = ExtractRules {
            prefix: program.clone(),
            ..catalog.get(&program).unwrap().rules.clone()
        };
        let stdout = std::fs::read(&path).unwrap();
        let record = record_of(&rules, &stdout);
        let row = row_of(&record);
        let expected = std::fs::read_to_string(path.with_extension("expected")).unwrap();
        for line in expected.lines() {
            let (metric, value) = line.rsplit_once(' ').unwrap();
            let scalar = row
                .scalars
                .iter()
                .find(|scalar| scalar.metric.as_str() == metric);
            let found = scalar.map(|scalar| scalar.value);
            assert_eq!(
                found,
                Some(value.parse().unwrap()),
                "{}: {metric}",
                path.display()
            );
        }
    }
}

fn record_of(rules: &ExtractRules, stdout: &[u8]) -> RunRecord {
    let round = Round {
        stdout_to: stdout.len() as u64,
        ..Round::default()
    };
    let measurement = Measurement {
        outcome: Outcome::Done,
        window: Window::default(),
        clock: ClockKind::Wall,
        rounds: vec![round],
        facts_before: BoxFacts::default(),
        facts_after: BoxFacts::default(),
        kernel_log: Vec::new(),
        series: Vec::new(),
        overhead: MonitorOverhead::default(),
        notes: Vec::new(),
    };
    let extracted = extract(
        rules,
        RawOutput {
            stdout,
            stderr: b"",
        },
        &measurement,
    )
    .unwrap();
    assert_eq!(extracted.problem, None);
    RunRecord {
        run_id: RunId::new(),
        origin: Origin::Measured,
        trial: trial(),
        kernel_release: String::new(),
        start_unix_ns: 0,
        window_ns: 0,
        clock: ClockKind::Wall,
        outcome: Outcome::Done,
        readings: extracted.readings,
        notes: Vec::new(),
    }
}

fn trial() -> Trial {
    Trial {
        plan: PlanId::new(),
        index: 0,
        block: 0,
        order: 0,
        case: CaseRef {
            testcase: "t".to_owned(),
            params: "p".to_owned(),
            id: CaseId::from("c"),
        },
        variant: "v".into(),
        testbox: "b".to_owned(),
        iteration: 0,
        warm_up: false,
        build_id: None,
        boot_id: None,
        session: None,
        work: Work {
            program: String::new(),
            command: Command::Argv(Vec::new()),
            instrument: String::new(),
            environment: Default::default(),
            affinity: None,
            settings: Vec::new(),
            directory: None,
            rounds: Rounds {
                at_most: 1,
                until_ms: None,
            },
            timeout_ms: 0,
            monitors: Vec::new(),
            parameters: Default::default(),
        },
    }
}

#[test]
fn hackbench_runs_for_real() {
    if std::process::Command::new("hackbench")
        .arg("--help")
        .output()
        .is_err()
    {
        eprintln!("skipped: hackbench is not installed (Debian's rt-tests)");
        return;
    }
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        "testcase: hackbench\nhackbench: {mode: [process, threads], ipc: [pipe, socket], loops: 5, fds: 2, iterations: 2}\nruns: 1\nwarm_up: 0\n",
    );
    bench.kdyno(&["run", &job]).ok();
    let rows = bench.listed();
    assert_eq!(rows.len(), 4);
    assert!(
        rows.iter()
            .all(|row| row["scalars"][0]["metric"] == "hackbench.seconds")
    );
}
