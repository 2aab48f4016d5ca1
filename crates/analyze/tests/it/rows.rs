use crate::fixture::case;
use kdyno_analyze::row_of;
use kdyno_model::{
    Better, ClockKind, Command, Histogram, MetricName, Origin, Outcome, PlanId, Reading, Role,
    Rounds, RunId, RunRecord, Trial, Unit, Value, Work,
};
use std::collections::BTreeMap;

fn reading(name: &str, value: Value) -> Reading {
    Reading {
        metric: MetricName::new(name).expect("name"),
        unit: Unit::new("us"),
        better: Better::Lower,
        role: Role::Program,
        clock: ClockKind::Wall,
        value,
    }
}

fn record(readings: Vec<Reading>) -> RunRecord {
    let work = Work {
        program: "scan".to_owned(),
        command: Command::Shell("scan".to_owned()),
        instrument: "scan 1".to_owned(),
        environment: BTreeMap::new(),
        around: kdyno_model::Around::default(),
        directory: None,
        affinity: None,
        settings: Vec::new(),
        rounds: Rounds {
            at_most: 1,
            until_ms: None,
        },
        timeout_ms: 1000,
        monitors: Vec::new(),
        functions: Vec::new(),
        parameters: BTreeMap::new(),
    };
    let trial = Trial {
        plan: PlanId::new(),
        index: 4,
        block: 2,
        order: 1,
        case: case("scan", "4G"),
        variant: "a".into(),
        testbox: "box1".to_owned(),
        iteration: 3,
        warm_up: false,
        build_id: None,
        boot_id: Some("boot-1".into()),
        session: None,
        work,
    };
    RunRecord {
        run_id: RunId::new(),
        origin: Origin::Import,
        trial,
        kernel_release: "6.1.0".to_owned(),
        start_unix_ns: 7,
        window_ns: 8,
        clock: ClockKind::GuestWall,
        outcome: Outcome::Done,
        readings,
        notes: Vec::new(),
    }
}

#[test]
fn one_number_per_metric_and_the_rest_beside_it() {
    let summary = Value::Summary {
        n: 3,
        mean: 9.0,
        sd: None,
        min: None,
        max: None,
    };
    let series = Value::Series {
        t_ns: vec![0],
        values: vec![1.0],
    };
    let row = row_of(&record(vec![
        reading("a.scalar", Value::Scalar(2.0)),
        reading("a.samples", Value::Samples(vec![1.0, 2.0, 6.0])),
        reading("a.summary", summary),
        reading("a.series", series),
        reading("a.histogram", Value::Histogram(Histogram::default())),
        reading("a.first-is-none", Value::Scalar(f64::INFINITY)),
        reading("a.first-is-none", Value::Scalar(4.0)),
        reading("a.scalar", Value::Scalar(5.0)),
        reading("a.empty", Value::Samples(Vec::new())),
        reading("a.nan", Value::Scalar(f64::NAN)),
    ]));
    let scalars: Vec<(&str, f64)> = row
        .scalars
        .iter()
        .map(|s| (s.metric.as_str(), s.value))
        .collect();
    assert_eq!(
        scalars,
        [
            ("a.scalar", 2.0),
            ("a.samples", 3.0),
            ("a.summary", 9.0),
            ("a.first-is-none", 4.0)
        ]
    );
    let rich: Vec<&str> = row.rich.iter().map(|r| r.metric.as_str()).collect();
    assert_eq!(rich, ["a.samples", "a.summary", "a.histogram", "a.empty"]);
}

#[test]
fn the_trial_is_carried_over() {
    let record = record(Vec::new());
    let row = row_of(&record);
    assert_eq!((row.run_id, row.plan), (record.run_id, record.trial.plan));
    assert_eq!(
        (row.index, row.block, row.order, row.iteration),
        (4, 2, 1, 3)
    );
    assert_eq!(
        (row.instrument.as_str(), row.clock),
        ("scan 1", ClockKind::GuestWall)
    );
    assert_eq!(
        (row.origin, row.start_unix_ns, row.window_ns),
        (Origin::Import, 7, 8)
    );
}
