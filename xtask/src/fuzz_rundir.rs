//! Mutated files of a sealed run through its reader: nothing may panic, and a changed file never
//! gets out as if it were whole.

use crate::fuzz::{Random, watched};
use anyhow::Context;
use kdyno_model::{
    BoxFacts, CaseId, CaseRef, ClockKind, Command, Measurement, MetricName, MonitorOverhead,
    Origin, Outcome, PlanId, Reading, Round, Rounds, RunId, Trial, Unit, Value, Window, Work,
};
use kdyno_rundir::{Home, Results, RunReader, State, verify};
use std::fs;
use std::path::{Path, PathBuf};

/// Memory rather than a disk, where there is such a place.
fn place() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let parent = if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    };
    parent.join(format!("kdyno-fuzz-{}", std::process::id()))
}

/// Changes one file at a time and reads everything.
///
/// # Errors
/// A panic, a slow input, or a changed file that passes for a whole one.
pub fn all(iterations: u64, seed: u64) -> anyhow::Result<()> {
    let place = place();
    let result = in_place(&place, iterations, seed);
    fs::remove_dir_all(&place).with_context(|| place.display().to_string())?;
    result
}

fn in_place(place: &Path, iterations: u64, seed: u64) -> anyhow::Result<()> {
    let run = sealed(place)?;
    let mut files = Vec::new();
    for dir in [run.clone(), run.join("raw")] {
        for entry in fs::read_dir(&dir)?.flatten() {
            if entry.file_type()?.is_file() {
                files.push((entry.path(), fs::read(entry.path())?));
            }
        }
    }
    let mut random = Random::new(seed);
    println!(
        "{iterations} changes of {} files from seed {seed}",
        files.len()
    );
    for n in 0..iterations {
        let (path, whole) = &files[random.below(files.len())];
        let changed = random.changed(whole);
        fs::write(path, &changed)?;
        watched("rundir", n, &changed, || read(&run, changed != *whole))
            .with_context(|| path.display().to_string())?;
        fs::write(path, whole)?;
    }
    println!("no panic, nothing slow, no changed file passed for a whole one");
    Ok(())
}

fn read(run: &Path, is_changed: bool) {
    let Ok(reader) = RunReader::open(run) else {
        return;
    };
    // Whether each can be read is not the question.
    let _ = (reader.record(), reader.trial(), reader.measurement());
    let _ = (reader.stdout(), reader.stderr(), reader.series());
    let _ = (reader.case_text(), verify(run));
    assert!(
        !is_changed || reader.state() != State::Complete,
        "a changed run passes for a complete one"
    );
}

fn sealed(place: &Path) -> anyhow::Result<PathBuf> {
    let plan_id = PlanId::new();
    let plan = Home::at(place).create_plan(plan_id, b"{}", Some(b"command: x\n"))?;
    let writer = plan.create_run(RunId::new(), Some("command: x\n"), &trial(plan_id))?;
    let lines: String = (0..20_000).map(|n| format!("value: {n}\n")).collect();
    fs::write(writer.raw_dir().join("stdout"), lines)?;
    fs::write(writer.raw_dir().join("stderr"), "warning\n")?;
    let path = writer.path().to_owned();
    writer.seal(results()?)?;
    Ok(path)
}

fn trial(plan: PlanId) -> Trial {
    Trial {
        plan,
        index: 0,
        block: 0,
        order: 0,
        case: CaseRef {
            testcase: "t".into(),
            params: "defaults".into(),
            id: CaseId::from("0123456789abcdef"),
        },
        variant: "base".into(),
        testbox: "box".into(),
        iteration: 0,
        warm_up: false,
        build_id: None,
        boot_id: None,
        session: None,
        work: Work {
            program: "command".into(),
            command: Command::Shell("x".into()),
            instrument: "command".into(),
            environment: [("A".to_owned(), "b\n\"c\"".to_owned())].into(),
            affinity: None,
            settings: Vec::new(),
            around: kdyno_model::Around::default(),
            directory: None,
            rounds: Rounds {
                at_most: 1,
                until_ms: None,
            },
            timeout_ms: 1000,
            monitors: Vec::new(),
            functions: Vec::new(),
            parameters: Default::default(),
        },
    }
}

fn results() -> anyhow::Result<Results> {
    let reading = |value| -> anyhow::Result<Reading> {
        Ok(Reading {
            metric: MetricName::new("t.value")?,
            unit: Unit::new("s"),
            better: Default::default(),
            role: Default::default(),
            clock: ClockKind::Wall,
            value,
        })
    };
    Ok(Results {
        origin: Origin::Measured,
        measurement: Measurement {
            outcome: Outcome::Done,
            window: Window::default(),
            clock: ClockKind::Wall,
            rounds: vec![Round::default()],
            facts_before: BoxFacts::default(),
            facts_after: BoxFacts::default(),
            kernel_log: vec!["warning".into()],
            series: Vec::new(),
            overhead: MonitorOverhead::default(),
            notes: vec!["a note".into()],
        },
        readings: vec![
            reading(Value::Scalar(1.5))?,
            reading(Value::Samples(vec![1.0, 2.0]))?,
        ],
        outcome: Outcome::Done,
        notes: Vec::new(),
    })
}
