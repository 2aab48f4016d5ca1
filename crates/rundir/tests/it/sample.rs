//! A plan with one run in it.

use kdyno_model::{
    BoxFacts, CaseId, CaseRef, ClockKind, Column, ColumnKind, Command, Measurement, MetricName,
    Origin, Outcome, PlanId, Reading, Round, Rounds, RunId, SeriesSet, Trial, Unit, Value, Window,
    Work,
};
use kdyno_rundir::{Home, PlanDir, Results, RunWriter};
use std::path::Path;

pub fn trial(plan: PlanId) -> Trial {
    Trial {
        plan,
        index: 3,
        block: 1,
        order: 1,
        case: CaseRef {
            testcase: "vm-scalability".into(),
            params: "300s-8T".into(),
            id: CaseId::from("0123456789abcdef"),
        },
        variant: "base".into(),
        testbox: "box-1".into(),
        iteration: 2,
        warm_up: false,
        build_id: Some("b".into()),
        boot_id: Some("boot".into()),
        session: None,
        work: Work {
            program: "usemem".into(),
            command: Command::Shell("true".into()),
            instrument: "usemem".into(),
            around: kdyno_model::Around::default(),
            directory: None,
            environment: [("A".to_owned(), "b\n\"c\"".to_owned())].into(),
            affinity: Some("0-3".into()),
            settings: Vec::new(),
            rounds: Rounds {
                at_most: 2,
                until_ms: Some(5),
            },
            timeout_ms: 1000,
            monitors: vec!["proc-vmstat".into()],
            functions: Vec::new(),
            parameters: Default::default(),
        },
    }
}

pub fn results(values: &[f64]) -> Results {
    let reading = |value| Reading {
        metric: MetricName::new("vm-scalability.median").unwrap(),
        unit: Unit::new("KB/s"),
        better: Default::default(),
        role: Default::default(),
        clock: ClockKind::Wall,
        value,
    };
    let scalars = values.iter().map(|v| reading(Value::Scalar(*v)));
    let all = reading(Value::Samples(values.to_vec()));
    Results {
        origin: Origin::Measured,
        measurement: Measurement {
            outcome: Outcome::Done,
            window: Window {
                start_raw_ns: 5,
                end_raw_ns: 1_000_005,
                start_unix_ns: 1_700_000_000_123_456_789,
                start_monotonic_ns: Some(7),
            },
            clock: ClockKind::GuestWall,
            rounds: vec![Round::default(); 2],
            facts_before: BoxFacts {
                kernel_release: "6.1.0".into(),
                ..Default::default()
            },
            facts_after: BoxFacts::default(),
            kernel_log: vec!["warn".into()],
            series: vec![SeriesSet {
                monitor: "proc-vmstat".into(),
                t_ns: vec![0, 1],
                columns: vec![Column {
                    metric: MetricName::new("proc-vmstat.pgfault").unwrap(),
                    unit: Unit::default(),
                    kind: ColumnKind::Counter,
                    values: vec![Some(1.5), None],
                }],
            }],
            overhead: Default::default(),
            notes: vec!["no cgroup".into()],
        },
        readings: scalars.chain([all]).collect(),
        outcome: Outcome::Done,
        notes: vec!["one line was not read".into()],
    }
}

pub fn plan(home: &Path) -> PlanDir {
    let home = Home::at(home);
    home.create_plan(PlanId::new(), b"{}\n", Some(b"testcase: x\n"))
        .unwrap()
}

pub fn writer(plan: &PlanDir) -> RunWriter {
    plan.create_run(RunId::new(), Some("case: x\n"), &trial(plan.id))
        .unwrap()
}
