//! Rows: one that is plain, and any that can be.

use kdyno_model::{
    Better, Bucket, CaseId, CaseRef, ClockKind, FailReason, Histogram, MetricName, Origin, Outcome,
    PlanId, Reading, Role, RunId, RunRow, Scalar, SessionId, Stage, Unit, Value,
};
use proptest::prelude::*;

pub fn scalar(metric: &str, role: Role, value: f64) -> Scalar {
    Scalar {
        metric: MetricName::new(metric).unwrap(),
        unit: Unit::new("KB/s"),
        better: Better::Higher,
        role,
        value,
    }
}

pub fn row(plan: PlanId, index: u32) -> RunRow {
    RunRow {
        run_id: RunId::new(),
        origin: Origin::Measured,
        plan,
        index,
        block: 0,
        order: 0,
        case: CaseRef {
            testcase: "vm-scalability".into(),
            params: "300s-8T".into(),
            id: CaseId::from("c1"),
        },
        variant: if index.is_multiple_of(2) {
            "base"
        } else {
            "head"
        }
        .into(),
        testbox: "box-1".into(),
        iteration: index / 2,
        warm_up: false,
        build_id: None,
        boot_id: None,
        session: None,
        kernel_release: "6.1.0".into(),
        start_unix_ns: 1_700_000_000_000_000_000 + i64::from(index),
        window_ns: 300_000_000_000,
        clock: ClockKind::Wall,
        instrument: "usemem".into(),
        outcome: Outcome::Done,
        scalars: vec![
            scalar("vm-scalability.median", Role::Headline, 43394.0),
            scalar("proc-vmstat.pgfault", Role::Diagnostic, f64::from(index)),
        ],
        rich: Vec::new(),
    }
}

fn finite() -> impl Strategy<Value = f64> {
    use prop::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    NORMAL | SUBNORMAL | ZERO | POSITIVE | NEGATIVE
}

fn value() -> impl Strategy<Value = Value> {
    let samples = prop::collection::vec(finite(), 1..5);
    let histogram = (any::<u64>(), any::<u64>(), prop::option::of(finite()));
    prop_oneof![
        samples.prop_map(Value::Samples),
        histogram.prop_map(|(count, overflow, max)| {
            Value::Histogram(Histogram {
                buckets: vec![Bucket {
                    low: 1.0,
                    high: 2.0,
                    count,
                }],
                overflow,
                max,
                ..Histogram::default()
            })
        }),
        (any::<u64>(), finite(), prop::option::of(finite())).prop_map(|(n, mean, sd)| {
            Value::Summary {
                n,
                mean,
                sd,
                min: None,
                max: None,
            }
        }),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let failed = (any::<i32>()).prop_map(|code| Outcome::Failed {
        stage: Stage::Test,
        reason: FailReason::ExitCode(code),
    });
    prop_oneof![
        Just(Outcome::Done),
        failed,
        any::<u64>().prop_map(|limit_ms| Outcome::TimedOut { limit_ms }),
        any::<String>().prop_map(|reason| Outcome::Invalid { reason }),
    ]
}

/// The row as PostgreSQL can have it: its texts hold no NUL.
pub fn without_nul(row: &mut RunRow) {
    let texts = [
        &mut row.case.testcase,
        &mut row.case.params,
        &mut row.case.id.0,
        &mut row.variant.0,
        &mut row.testbox,
        &mut row.kernel_release,
        &mut row.instrument,
    ];
    let maybe = [
        row.build_id.as_mut(),
        row.boot_id.as_mut().map(|boot| &mut boot.0),
    ];
    let units = row.scalars.iter_mut().map(|scalar| &mut scalar.unit.0);
    for text in texts
        .into_iter()
        .chain(maybe.into_iter().flatten())
        .chain(units)
    {
        text.retain(|c| c != '\0');
    }
}

/// Any row; texts are any Unicode.
pub fn any_row() -> impl Strategy<Value = RunRow> {
    let metric = "[a-z]{1,8}(\\.[a-zäß%]{1,8})?";
    let better = prop_oneof![
        Just(Better::Higher),
        Just(Better::Lower),
        Just(Better::Neither)
    ];
    let role = prop_oneof![
        Just(Role::Headline),
        Just(Role::Program),
        Just(Role::Diagnostic)
    ];
    let scalar = (metric, any::<String>(), better, role, finite());
    let scalar = scalar.prop_map(|(metric, unit, better, role, value)| Scalar {
        metric: MetricName::new(metric).unwrap(),
        unit: Unit(unit),
        better,
        role,
        value,
    });
    let reading = (metric, value()).prop_map(|(metric, value)| Reading {
        metric: MetricName::new(metric).unwrap(),
        unit: Unit::new("us"),
        better: Better::Lower,
        role: Role::Program,
        clock: ClockKind::GuestInstructions,
        value,
    });
    let figures = (
        prop::collection::vec(scalar, 0..30),
        prop::collection::vec(reading, 0..4),
    );
    let texts = prop::collection::vec(any::<String>(), 7);
    let numbers = (any::<[u32; 4]>(), any::<i64>(), any::<u64>(), any::<bool>());
    let maybe = prop::option::of(any::<String>());
    (texts, numbers, maybe, outcome(), figures).prop_map(
        |(
            texts,
            ([index, block, order, iteration], start, window, flag),
            maybe,
            outcome,
            figures,
        )| {
            RunRow {
                origin: if flag {
                    Origin::Import
                } else {
                    Origin::Measured
                },
                block,
                order,
                iteration,
                case: CaseRef {
                    testcase: texts[0].clone(),
                    params: texts[1].clone(),
                    id: CaseId(texts[2].clone()),
                },
                variant: texts[3].as_str().into(),
                testbox: texts[4].clone(),
                warm_up: flag,
                build_id: maybe.clone(),
                boot_id: maybe.as_deref().map(Into::into),
                session: flag.then(SessionId::new),
                kernel_release: texts[5].clone(),
                start_unix_ns: start,
                window_ns: window,
                clock: ClockKind::GuestWall,
                instrument: texts[6].clone(),
                outcome,
                scalars: figures.0,
                rich: figures.1,
                ..row(PlanId::new(), index)
            }
        },
    )
}
