//! A disk that ends after any number of bytes and operations.

use crate::disk::{self, fault};
use crate::{Home, Results, RunReader, RundirError, State};
use kdyno_model::{
    CaseId, CaseRef, ClockKind, Command, Measurement, Origin, Outcome, PlanId, Rounds, RunId,
    RunRecord, Trial, Work,
};
use std::path::Path;

fn trial(plan: PlanId) -> Trial {
    Trial {
        plan,
        index: 0,
        block: 0,
        order: 0,
        case: CaseRef {
            testcase: "t".into(),
            params: "defaults".into(),
            id: CaseId::from("c"),
        },
        variant: "base".into(),
        testbox: "box".into(),
        iteration: 0,
        warm_up: false,
        build_id: None,
        boot_id: None,
        session: None,
        work: Work {
            program: "true".into(),
            command: Command::Argv(vec!["true".into()]),
            instrument: "true".into(),
            around: kdyno_model::Around::default(),
            directory: None,
            environment: Default::default(),
            affinity: None,
            settings: Vec::new(),
            rounds: Rounds {
                at_most: 1,
                until_ms: None,
            },
            timeout_ms: 1,
            monitors: Vec::new(),
            functions: Vec::new(),
            parameters: Default::default(),
        },
    }
}

fn results() -> Results {
    Results {
        origin: Origin::Measured,
        measurement: Measurement {
            outcome: Outcome::Done,
            window: Default::default(),
            clock: ClockKind::Wall,
            rounds: Vec::new(),
            facts_before: Default::default(),
            facts_after: Default::default(),
            kernel_log: Vec::new(),
            series: Vec::new(),
            overhead: Default::default(),
            notes: Vec::new(),
        },
        readings: Vec::new(),
        outcome: Outcome::Done,
        notes: Vec::new(),
    }
}

/// Writes and seals one run; its output is large, and does not shrink to nothing.
fn write_run(home: &Path, plan: PlanId, run: RunId) -> Result<RunRecord, RundirError> {
    let dir = Home::at(home).plan(plan)?;
    let writer = dir.create_run(run, Some("case"), &trial(plan))?;
    let lines: String = (0..12_000_u32)
        .map(|i| format!("{}\n", i.wrapping_mul(2_654_435_761) % 97))
        .collect();
    std::fs::write(writer.raw_dir().join("stdout"), lines)
        .map_err(RundirError::io("write", writer.raw_dir()))?;
    writer.seal(results())
}

#[test]
fn a_disk_that_ends_at_any_byte_or_step_leaves_an_incomplete_run() {
    let dir = tempfile::tempdir().unwrap();
    let plan = PlanId::new();
    Home::at(dir.path()).create_plan(plan, b"{}", None).unwrap();
    let attempt = |budget| {
        let run = RunId::new();
        let written = fault::after(budget, || write_run(dir.path(), plan, run));
        let path = dir.path().join(format!("plans/{plan}/runs/{run}"));
        let state = RunReader::open(&path).map(|reader| {
            let record = reader.record();
            // Reading whatever is there must not panic.
            let _ = (reader.stdout(), reader.series(), reader.case_text());
            (reader.state(), record)
        });
        (written, state)
    };

    // Bytes pass by the dozen (an odd number hits every kind of position), the sealing steps
    // at the end one by one.
    let total = (0..).map(|n| n * 1000).find(|n| attempt(*n).0.is_ok());
    let total = total.unwrap();
    let budgets = (0..40)
        .chain((40..total).step_by(229))
        .chain(total - 1000..);
    for budget in budgets {
        match attempt(budget) {
            (Ok(record), state) => {
                let (state, read) = state.unwrap();
                assert_eq!(state, State::Complete);
                assert_eq!(read.unwrap(), record);
                if budget >= total {
                    return;
                }
            }
            (Err(error), state) => {
                assert!(
                    error
                        .to_string()
                        .starts_with(&format!("{}", dir.path().display()))
                );
                assert!(error.hint().unwrap().contains("space"), "{error}");
                match state {
                    Err(RundirError::NotFound { .. }) => assert_eq!(budget, 0),
                    // The last step syncs the seal's name: the seal itself is whole by then.
                    Ok((State::Complete, Ok(_))) => assert!(error.to_string().contains("sync")),
                    Ok((State::Incomplete(_), Ok(record))) => {
                        assert_eq!(record.outcome, Outcome::Incomplete);
                    }
                    Ok((State::Incomplete(_), Err(RundirError::Incomplete { .. }))) => {}
                    other => panic!("after {budget}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn a_plan_is_there_entirely_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    for budget in 0.. {
        let id = PlanId::new();
        let made = fault::after(budget, || home.create_plan(id, b"{\"n\": 1}", Some(b"job")));
        if let Ok(plan) = home.plan(id) {
            assert_eq!(plan.plan_bytes().unwrap(), b"{\"n\": 1}");
            assert_eq!(plan.job_source().unwrap().unwrap(), b"job");
        } else {
            assert!(made.is_err());
        }
        if made.is_ok() {
            return;
        }
        assert!(budget < 1000, "it never succeeds");
    }
}

#[test]
fn what_is_stored_small_or_large_is_what_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let at_limit = vec![b'x'; usize::try_from(disk::PLAIN_BYTES).unwrap()];
    disk::store(dir.path(), "small", &at_limit).unwrap();
    disk::store(dir.path(), "large", &[&at_limit[..], b"y"].concat()).unwrap();
    assert_eq!(
        disk::read(&dir.path().join("small"), 1 << 20).unwrap(),
        at_limit
    );
    let packed = disk::read(&dir.path().join("large.gz"), 1 << 20).unwrap();
    let large = disk::unpack(&packed, dir.path(), 1 << 20).unwrap();
    assert_eq!(large.len(), at_limit.len() + 1);
}
