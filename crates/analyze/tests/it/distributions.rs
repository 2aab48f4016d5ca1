//! Histograms of runs: their quantiles as figures, whole ones by relabelling runs.

use crate::fixture::run;
use kdyno_analyze::comparison::Replicate;
use kdyno_analyze::render::text::TextOptions;
use kdyno_analyze::render::{json, text};
use kdyno_analyze::row::scalars_of;
use kdyno_analyze::{CompareOptions, compare};
use kdyno_model::{
    Better, BootId, Bucket, ClockKind, Histogram, MetricName, Reading, Role, RunRow, Unit, Value,
};

/// A reading of events at 10 us and, so many of a thousand, at 640 us.
fn reading(slow: u64) -> Reading {
    let bucket = |low: f64, count| Bucket {
        low,
        high: low * 1.03,
        count,
    };
    Reading {
        metric: MetricName::new("wait.latency").expect("a name"),
        unit: Unit::new("us"),
        better: Better::Lower,
        role: Role::Headline,
        clock: ClockKind::Wall,
        value: Value::Histogram(Histogram {
            buckets: vec![bucket(10.0, 1000 - slow), bucket(640.0, slow)],
            ..Histogram::default()
        }),
    }
}

/// So many runs of each variant in turn.
fn runs(each: u32) -> Vec<RunRow> {
    let variants = [("idle", 5), ("loaded", 400)];
    (0..each)
        .flat_map(|i| {
            variants.map(|(name, slow)| {
                let index = 2 * i + u32::from(name == "loaded");
                let reading = reading(slow + u64::from(i));
                RunRow {
                    scalars: scalars_of(std::slice::from_ref(&reading)),
                    rich: vec![reading],
                    ..run(index, name)
                }
            })
        })
        .collect()
}

fn printed(rows: &[RunRow]) -> String {
    let comparison = compare(rows, &CompareOptions::default());
    let text = text::render(&comparison, &TextOptions::default());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn quantiles_are_figures_of_their_run() {
    let scalars = scalars_of(&[reading(5)]);
    let names: Vec<(&str, Role)> = scalars
        .iter()
        .map(|s| (s.metric.as_str(), s.role))
        .collect();
    assert_eq!(
        names,
        [
            ("wait.latency.p50", Role::Headline),
            ("wait.latency.p90", Role::Program),
            ("wait.latency.p99", Role::Headline),
            ("wait.latency.p99.9", Role::Program),
            ("wait.latency.max", Role::Program),
        ]
    );
    let values: Vec<f64> = scalars.iter().map(|s| s.value).collect();
    assert!(values[..3].iter().all(|v| (10.0..10.3).contains(v)));
    assert!(values[3..].iter().all(|v| (640.0..660.0).contains(v)));
}

#[test]
fn whole_distributions_are_told_by_runs() {
    let all = printed(&runs(5));
    assert!(
        all.contains("wait.latency as a whole: values of loaded are "),
        "{all}"
    );
    assert!(
        all.contains("largest gap of shares 0.4 (p 0.008, labels of 5 and 5 runs exchanged)"),
        "{all}"
    );
    let few = printed(&runs(3));
    assert!(
        few.contains("too few runs: no p below 0.100 could come out"),
        "{few}"
    );
    let comparison = compare(&runs(5), &CompareOptions::default());
    let value: serde_json::Value = serde_json::from_str(&json::render(&comparison)).expect("JSON");
    let cell = &value["tables"][0]["distributions"][0]["cells"][0];
    assert_eq!(cell["runs"], serde_json::json!([5, 5]));
    assert!((cell["p"].as_f64().expect("p") - 2.0 / 252.0).abs() < 1e-9);
}

#[test]
fn runs_of_one_boot_per_side_have_no_p() {
    let mut rows = runs(5);
    for row in rows
        .iter_mut()
        .filter(|row| row.variant.as_str() == "loaded")
    {
        row.boot_id = Some(BootId::from("boot-2"));
        row.kernel_release = "6.2.0".to_owned();
    }
    let comparison = compare(&rows, &CompareOptions::default());
    let design = comparison.tables[0].designs[1].as_ref().expect("a design");
    assert_eq!(design.replicate, Replicate::Boot);
    assert!(printed(&rows).contains("runs of one boot are no replicates: no p"));
}
