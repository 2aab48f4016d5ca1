//! Extraction from the outside: rules and raw output in, readings out.

#[path = "it/hist.rs"]
mod hist;

use kdyno_formats::{RawOutput, extract};
use kdyno_model::{
    Better, BoxFacts, ClockKind, Column, ColumnKind, Derive, ExtractRules, FailReason, LineRule,
    Measurement, MetricName, MetricRule, MonitorOverhead, Outcome, Quantity, Reading, Reduce, Role,
    Round, SeriesSet, Unit, Usage, Value, Window,
};
use proptest::prelude::*;
use std::path::Path;

const KEY_VALUE: &str = r"^\s*(?P<key>[A-Za-z_][A-Za-z0-9_.%/+-]*)\s*:\s*(?P<value>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?i:nan|inf|infinity))(?:\s+(?P<unit>[A-Za-z%/µ]\S*))?\s*$";
const USEMEM: &str = r"^\.*(?P<bytes>\d+) bytes / (?P<usecs>\d+) usecs = (?P<kbps>\d+) KB.s";

fn measurement(rounds: Vec<Round>) -> Measurement {
    Measurement {
        outcome: Outcome::Done,
        window: Window {
            start_raw_ns: 0,
            end_raw_ns: 2_000_000_000,
            start_unix_ns: 0,
            start_monotonic_ns: None,
        },
        clock: ClockKind::Wall,
        rounds,
        facts_before: BoxFacts::default(),
        facts_after: BoxFacts::default(),
        kernel_log: Vec::new(),
        series: Vec::new(),
        overhead: MonitorOverhead::default(),
        notes: Vec::new(),
    }
}

/// One round per text; what they print is one file.
fn rounds(texts: &[&str]) -> (String, Measurement) {
    let mut whole = String::new();
    let mut rounds = Vec::new();
    for text in texts {
        let stdout_from = whole.len() as u64;
        whole.push_str(text);
        rounds.push(Round {
            end_ns: 1_000_000_000,
            stdout_from,
            stdout_to: whole.len() as u64,
            usage: Usage {
                user_ns: 300,
                system_ns: 200,
                ..Usage::default()
            },
            ..Round::default()
        });
    }
    (whole, measurement(rounds))
}

fn rules(pattern: &str, metrics: Vec<MetricRule>) -> ExtractRules {
    ExtractRules {
        prefix: "t".to_owned(),
        lines: vec![LineRule {
            pattern: pattern.to_owned(),
            ..LineRule::default()
        }],
        metrics,
        figures_required: true,
        headline_usage: None,
    }
}

fn rule(name: &str, derive: Option<Derive>) -> MetricRule {
    MetricRule {
        name: name.to_owned(),
        unit: Unit::new("KB/s"),
        better: Better::Higher,
        role: Role::Headline,
        about: String::new(),
        derive,
    }
}

fn reduce(stream: &str, within: Reduce, across: Reduce) -> Option<Derive> {
    Some(Derive::Reduce {
        stream: stream.to_owned(),
        within,
        across,
        scale: 1.0,
    })
}

fn run(rules: &ExtractRules, texts: &[&str]) -> (Vec<Reading>, Option<FailReason>) {
    let (stdout, measurement) = rounds(texts);
    let raw = RawOutput {
        stdout: stdout.as_bytes(),
        stderr: b"",
    };
    let extracted = extract(rules, raw, &measurement).expect("rules compile");
    (extracted.readings, extracted.problem)
}

fn scalar(readings: &[Reading], name: &str) -> f64 {
    let reading = readings.iter().find(|r| r.metric.as_str() == name);
    match reading.map(|r| &r.value) {
        Some(Value::Scalar(value)) => *value,
        other => panic!("{name}: {other:?}"),
    }
}

fn usemem_rules() -> ExtractRules {
    let ratio = Derive::Ratio {
        of: Quantity::CpuNs,
        to: Quantity::Stream("bytes".to_owned()),
        scale: 1.0,
    };
    rules(
        USEMEM,
        vec![
            rule("median", reduce("kbps", Reduce::UpperMedian, Reduce::Mean)),
            rule("throughput", reduce("kbps", Reduce::Sum, Reduce::Mean)),
            rule(
                "stddev%",
                Some(Derive::Spread {
                    stream: "kbps".to_owned(),
                }),
            ),
            rule("cpu_ns_per_byte", Some(ratio)),
            MetricRule {
                role: Role::Program,
                ..rule("free", reduce("free_usecs", Reduce::Mean, Reduce::Mean))
            },
        ],
    )
}

#[test]
fn task_lines_become_median_throughput_and_spread() {
    let first = "..100 bytes / 10 usecs = 40 KB/s\n100 bytes / 10 usecs = 10 KB/s\n";
    let second = "noise\n100 bytes / 10 usecs = 20 KB/s\n100 bytes / 10 usecs = 30 KB/s\n";
    let (readings, problem) = run(&usemem_rules(), &[first, second]);
    assert_eq!(problem, None);
    // The upper of two: 40 and 30, averaged over the rounds.
    assert_eq!(scalar(&readings, "t.median"), 35.0);
    assert_eq!(scalar(&readings, "t.throughput"), 50.0);
    // Both rounds add up to 50.
    assert_eq!(scalar(&readings, "t.stddev%"), 0.0);
    assert_eq!(scalar(&readings, "t.cpu_ns_per_byte"), 1000.0 / 400.0);
    let absent = readings.iter().any(|r| r.metric.as_str() == "t.free");
    assert!(!absent, "a stream that no line gave makes no reading");
}

#[test]
fn one_round_has_the_spread_of_its_tasks() {
    let text = "1 bytes / 1 usecs = 90 KB/s\n1 bytes / 1 usecs = 110 KB/s\n";
    let (readings, _) = run(&usemem_rules(), &[text]);
    assert!((scalar(&readings, "t.stddev%") - 10.0).abs() < 1e-12);
}

#[test]
fn keys_are_metrics_and_repeated_keys_are_samples() {
    let declared = MetricRule {
        unit: Unit::new("ops/s"),
        ..rule("value", None)
    };
    let text = "value: 42\n lat.p99 : 1.5e3 us\nvalue: 43\nhttp://x: y\n12: 3\ntime: 10:30\n";
    let (readings, problem) = run(&rules(KEY_VALUE, vec![declared]), &[text]);
    assert_eq!(problem, None);
    let value = readings
        .iter()
        .find(|r| r.metric.as_str() == "t.value")
        .unwrap();
    assert_eq!(value.value, Value::Samples(vec![42.0, 43.0]));
    assert_eq!(
        (value.unit.as_str(), value.role, value.better),
        ("ops/s", Role::Headline, Better::Higher)
    );
    let latency = readings
        .iter()
        .find(|r| r.metric.as_str() == "t.lat.p99")
        .unwrap();
    assert_eq!((latency.unit.as_str(), latency.role), ("us", Role::Program));
    let printed: Vec<&str> = readings
        .iter()
        .map(|r| r.metric.as_str())
        .filter(|n| n.starts_with("t.") && !n.contains(".time."))
        .collect();
    assert_eq!(printed, ["t.value", "t.lat.p99"]);
}

#[test]
fn no_figure_and_bad_figures_fail_the_run() {
    let rules = rules(KEY_VALUE, Vec::new());
    assert_eq!(
        run(&rules, &["nothing here\n"]).1,
        Some(FailReason::NoMetric)
    );
    assert_eq!(run(&rules, &[""]).1, Some(FailReason::NoMetric));
    for bad in ["value: nan\n", "value: -inf\n", "value: 1e999\n"] {
        let (readings, problem) = run(&rules, &["good: 1\n", bad]);
        assert!(matches!(problem, Some(FailReason::BadFigure(_))), "{bad}");
        assert_eq!(scalar(&readings, "t.good"), 1.0);
    }
}

#[test]
fn a_declared_metric_that_is_not_printed_fails_the_run() {
    let declared = vec![rule("value", None)];
    let (_, problem) = run(&rules(KEY_VALUE, declared), &["v: 1\nw: 2\n"]);
    let Some(FailReason::BadFigure(why)) = problem else {
        panic!("{problem:?}")
    };
    assert!(why.contains("`value`") && why.contains("v, w"), "{why}");
}

#[test]
fn a_flood_of_keys_is_bounded() {
    let text: String = (0..50_000).map(|i| format!("k{i}: 1\n")).collect();
    let (readings, problem) = run(&rules(KEY_VALUE, Vec::new()), &[&text]);
    assert!(readings.len() < 3000);
    assert!(matches!(problem, Some(FailReason::BadFigure(why)) if why.contains("different keys")));
}

#[test]
fn usage_is_the_headline_where_nothing_is_printed() {
    let rules = ExtractRules {
        figures_required: false,
        headline_usage: Some("time.elapsed_time".to_owned()),
        ..rules(KEY_VALUE, Vec::new())
    };
    let (readings, problem) = run(&rules, &["", ""]);
    assert_eq!(problem, None);
    assert_eq!(scalar(&readings, "t.time.elapsed_time"), 2.0);
    assert_eq!(scalar(&readings, "t.time.user_time"), 600e-9);
    let headline: Vec<&str> = readings
        .iter()
        .filter(|r| r.role == Role::Headline)
        .map(|r| r.metric.as_str())
        .collect();
    assert_eq!(headline, ["t.time.elapsed_time"]);
}

#[test]
fn gauges_become_means_and_counters_totals_and_rates() {
    let column = |name: &str, kind, values: Vec<Option<f64>>| Column {
        metric: MetricName::new(name).unwrap(),
        unit: Unit::new("kB"),
        kind,
        values,
    };
    let set = SeriesSet {
        monitor: "m".to_owned(),
        t_ns: vec![0, 1_000_000_000, 2_000_000_000],
        columns: vec![
            column(
                "m.free",
                ColumnKind::Gauge,
                vec![Some(10.0), Some(20.0), Some(30.0)],
            ),
            column(
                "m.faults",
                ColumnKind::Counter,
                vec![Some(5.0), Some(6.0), Some(25.0)],
            ),
            column("m.gone", ColumnKind::Counter, vec![None, None, Some(1.0)]),
            column(
                "m.wrapped",
                ColumnKind::Counter,
                vec![Some(9.0), Some(3.0), Some(2.0)],
            ),
        ],
    };
    let mut measurement = measurement(vec![Round::default()]);
    measurement.series.push(set);
    measurement.overhead = MonitorOverhead {
        cpu_ns: 4_000_000,
        wakeups: 3,
        samples: 3,
        runner_cpu_ns: 5_000_000,
    };
    let rules = ExtractRules {
        figures_required: false,
        ..rules(KEY_VALUE, Vec::new())
    };
    let raw = RawOutput {
        stdout: b"",
        stderr: b"",
    };
    let readings = extract(&rules, raw, &measurement).unwrap().readings;
    assert_eq!(scalar(&readings, "m.free"), 20.0);
    assert_eq!(scalar(&readings, "m.faults"), 20.0);
    assert_eq!(scalar(&readings, "m.faults/s"), 10.0);
    assert_eq!(scalar(&readings, "kdyno.overhead.cpu_ms"), 4.0);
    assert_eq!(scalar(&readings, "kdyno.overhead.cpu_ms/s"), 2.0);
    assert_eq!(scalar(&readings, "kdyno.overhead.runner_cpu_ms"), 5.0);
    assert!(
        !readings
            .iter()
            .any(|r| ["m.gone", "m.wrapped"].contains(&r.metric.as_str()))
    );
}

#[test]
fn throttling_is_counted_where_the_machine_counts_it() {
    let rules = ExtractRules {
        figures_required: false,
        ..rules(KEY_VALUE, Vec::new())
    };
    let mut measurement = measurement(vec![Round::default()]);
    let read = |measurement: &Measurement| {
        let raw = RawOutput {
            stdout: b"",
            stderr: b"",
        };
        extract(&rules, raw, measurement).unwrap().readings
    };
    let has = |readings: &[Reading]| {
        readings
            .iter()
            .any(|r| r.metric.as_str() == "thermal.throttle_events")
    };
    assert!(!has(&read(&measurement)));
    let events = |n: &str| [("now.cpu.throttle_events".to_owned(), n.to_owned())].into();
    measurement.facts_before.entries = events("7");
    measurement.facts_after.entries = events("9");
    let readings = read(&measurement);
    assert_eq!(scalar(&readings, "thermal.throttle_events"), 2.0);
}

#[test]
fn of_a_flood_the_part_that_is_given_is_read() {
    let (_, mut measurement) = rounds(&["value: 5\n"]);
    measurement.rounds[0].stdout_to = 5 << 30;
    let raw = RawOutput {
        stdout: b"value: 5\n",
        stderr: b"",
    };
    let extracted = extract(&rules(KEY_VALUE, Vec::new()), raw, &measurement).unwrap();
    assert_eq!(extracted.problem, None);
    assert_eq!(scalar(&extracted.readings, "t.value"), 5.0);
}

#[test]
fn a_broken_rule_is_named() {
    let (stdout, measurement) = rounds(&["x"]);
    let raw = RawOutput {
        stdout: stdout.as_bytes(),
        stderr: b"",
    };
    let error = extract(&rules("(", Vec::new()), raw, &measurement).unwrap_err();
    assert!(error.to_string().contains('('), "{error}");
}

/// A public result file of the original tool: 32 tasks, then their times to free memory.
#[test]
fn public_usemem_output_gives_its_figures() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/usemem-swapin.txt");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: no public inputs beside the checkout");
        return;
    };
    let (readings, problem) = run(&usemem_rules(), &[&text]);
    assert_eq!(problem, None);
    let kbps: Vec<u64> = text
        .lines()
        .filter_map(|line| {
            line.split_once(" usecs = ")?
                .1
                .split_once(' ')?
                .0
                .parse()
                .ok()
        })
        .collect();
    assert_eq!(kbps.len(), 32);
    assert_eq!(
        scalar(&readings, "t.throughput"),
        kbps.iter().sum::<u64>() as f64
    );
    let mut sorted = kbps;
    sorted.sort_unstable();
    assert_eq!(scalar(&readings, "t.median"), sorted[16] as f64);
}

proptest! {
    #[test]
    fn no_output_makes_the_engine_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        ends in prop::collection::vec((any::<u16>(), any::<u16>()), 0..4),
    ) {
        let rounds: Vec<Round> = ends
            .iter()
            .map(|(from, to)| Round { stdout_from: u64::from(*from), stdout_to: u64::from(*to), ..Round::default() })
            .chain([Round { stdout_to: bytes.len() as u64, ..Round::default() }])
            .collect();
        let raw = RawOutput { stdout: &bytes, stderr: &bytes };
        for rules in [rules(KEY_VALUE, Vec::new()), usemem_rules()] {
            let extracted = extract(&rules, raw, &measurement(Vec::clone(&rounds))).unwrap();
            prop_assert!(extracted.readings.iter().all(|r| r.value.check().is_ok()));
        }
    }
}

#[test]
fn rules_may_share_a_stream() {
    let mut rules = rules(
        r"^reads (?P<ops>\d+)",
        vec![rule("ops", reduce("ops", Reduce::Sum, Reduce::Mean))],
    );
    rules.lines.push(LineRule {
        pattern: r"^writes (?P<ops>\d+)".to_owned(),
        ..LineRule::default()
    });
    let (readings, problem) = run(&rules, &["reads 3\nwrites 4\n", "reads 1\n"]);
    assert_eq!(problem, None);
    // 7 in the first round, 1 in the second.
    assert_eq!(scalar(&readings, "t.ops"), 4.0);
}

fn histogram(sub_buckets: Option<u64>) -> ExtractRules {
    let mut rules = rules(
        r#"^\s*"(?P<ns>\d+)" : (?P<n>\d+)"#,
        vec![MetricRule {
            derive: Some(Derive::Histogram {
                value: "ns".to_owned(),
                count: "n".to_owned(),
                sub_buckets,
                total: None,
                min: None,
                max: None,
            }),
            ..rule("latency", reduce("ns", Reduce::Sum, Reduce::Mean))
        }],
    );
    rules.lines[0].after = vec!["read".to_owned(), "bins".to_owned()];
    rules.lines[0].until = Some(r"\}".to_owned());
    rules
}

#[test]
fn counts_by_value_become_a_histogram_of_their_section() {
    let text = "\"1\" : 100\nread {\n\"2\" : 100\nbins {\n\"127\" : 2\n \"129\" : 3\n\"16768\" : 5\n}\nwrite {\nbins {\n\"5\" : 7\n}\n";
    let of = |sub_buckets| {
        let (readings, problem) = run(&histogram(sub_buckets), &[text, text]);
        assert_eq!(problem, None);
        match &readings[0].value {
            Value::Histogram(histogram) => histogram
                .buckets
                .iter()
                .map(|b| (b.low, b.high, b.count))
                .collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        }
    };
    // 129 lies in 128..130, 16768 in the middle of 16640..16896.
    assert_eq!(
        of(Some(64)),
        [(127.0, 128.0, 4), (128.0, 130.0, 6), (16640.0, 16896.0, 10)]
    );
    assert_eq!(
        of(None),
        [(127.0, 128.0, 4), (129.0, 130.0, 6), (16768.0, 16769.0, 10)]
    );
}

#[test]
fn counts_that_are_none_make_no_histogram() {
    for line in [
        "\"18446744073709551616\" : 1",
        "\"1\" : 99999999999999999999",
    ] {
        let text = format!("read {{\nbins {{\n{line}\n}}\n");
        let (readings, problem) = run(&histogram(Some(64)), &[&text]);
        assert!(readings.iter().all(|r| r.metric.as_str() != "t.latency"));
        assert!(problem.is_some());
    }
}

/// A table with a column per thread and one of all, as cyclictest prints it.
#[test]
fn several_numbers_of_a_line_and_what_lies_beyond_the_counts() {
    let mut rules = rules(
        r"^(?P<us>\d+) .*\t0*(?P<n>[1-9]\d*)$",
        vec![
            MetricRule {
                derive: Some(Derive::Histogram {
                    value: "us".to_owned(),
                    count: "n".to_owned(),
                    sub_buckets: None,
                    total: Some("all".to_owned()),
                    min: Some("min".to_owned()),
                    max: Some("max".to_owned()),
                }),
                ..rule("latency", reduce("us", Reduce::Sum, Reduce::Mean))
            },
            rule("mean", reduce("avg", Reduce::Mean, Reduce::Mean)),
        ],
    );
    let line = |pattern: &str, each: Option<&str>| LineRule {
        pattern: pattern.to_owned(),
        each: each.map(str::to_owned),
        ..LineRule::default()
    };
    rules.lines.extend([
        line("^min:", Some(r"(?P<min>\d+)")),
        line("^avg:", Some(r"(?P<avg>\d+)")),
        line("^max:", Some(r"(?P<max>\d+)")),
        line(r"^in all:.* (?P<all>\d+)$", None),
    ]);
    let text = |all: u64| {
        format!(
            "03 1\t2\t3\n04 0\t0\t0\n05 1\t0\t1\nmin: 3 4 3\navg: 3 5\nmax: 5 9 9\nin all: 2 4 {all}\n"
        )
    };
    let (readings, problem) = run(&rules, &[&text(6)]);
    assert_eq!(problem, None);
    assert_eq!(scalar(&readings, "t.mean"), 4.0);
    let Value::Histogram(histogram) = &readings[0].value else {
        panic!("no histogram: {readings:?}");
    };
    let counts: Vec<(f64, u64)> = histogram.buckets.iter().map(|b| (b.low, b.count)).collect();
    assert_eq!(counts, [(3.0, 3), (5.0, 1)]);
    assert_eq!(
        (histogram.overflow, histogram.min, histogram.max),
        (2, Some(3.0), Some(9.0))
    );
    // Fewer than were counted: then nothing of it can be trusted.
    let (readings, _) = run(&rules, &[&text(3)]);
    assert!(
        readings
            .iter()
            .all(|r| !matches!(r.value, Value::Histogram(_))),
        "{readings:?}"
    );
}
