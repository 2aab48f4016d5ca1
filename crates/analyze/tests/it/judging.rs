//! What is said of changes, and when nothing may be.

use crate::fixture::{Kind, LATENCY, THROUGHPUT, interleaved, run, with};
use kdyno_analyze::comparison::{Cell, Comparison, Judged, Replicate};
use kdyno_analyze::noise::{NoiseMemory, run_sets};
use kdyno_analyze::{CompareOptions, Diagnostics, Doubt, compare, compare_values};
use kdyno_model::{
    Better, BlockValue, BootId, MetricName, PlanId, Role, RunRow, ValueRow, ValueTable,
};
use kdyno_stats::judge::{Known, Method, Reason, Verdict};

const BASE: [f64; 8] = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.0];

fn cell(comparison: &Comparison, column: usize) -> &Cell {
    let mut rows = comparison.tables[0].rows();
    rows.next().expect("row").cell(column).expect("cell")
}

fn judged(comparison: &Comparison) -> &Judged {
    cell(comparison, 1).judged.as_deref().expect("judged")
}

fn shifted(factor: f64) -> Vec<f64> {
    BASE.iter().rev().map(|v| v * factor).collect()
}

/// Blocks whose order is not always the same.
fn in_blocks(kind: Kind, a: &[f64], b: &[f64]) -> Vec<RunRow> {
    let mut runs = interleaved(kind, &[("a", a), ("b", b)]);
    for block in runs.chunks_mut(2).skip(1).step_by(2) {
        let first = block[0].index;
        block[0].index = first + 1;
        block[1].index = first;
    }
    runs
}

/// Blocks of three variants, each second one in the other order.
fn blocks_of_three(variants: &[(&str, &[f64]); 3]) -> Vec<RunRow> {
    let mut runs = interleaved(THROUGHPUT, variants);
    for (block, of_block) in (0..).zip(runs.chunks_mut(3)) {
        for (place, run) in (0..).zip(of_block) {
            run.block = block;
            run.index = 3 * block + if block % 2 == 0 { place } else { 2 - place };
        }
    }
    runs
}

#[test]
fn a_change_in_blocks_is_judged_by_pairs() {
    let runs = in_blocks(THROUGHPUT, &BASE, &shifted(0.9));
    let comparison = compare(&runs, &CompareOptions::default());
    let judged = judged(&comparison);
    let effect = judged.effect.as_ref().expect("effect");
    assert_eq!(effect.method, Method::Paired);
    assert_eq!(judged.judgement.verdict, Verdict::Regressed);
    let (low, high) = judged.interval.expect("interval");
    assert!(low < -9.9 && high > -10.1 && high < -8.0, "{low} {high}");
    assert!(judged.smallest_visible.is_some_and(|size| size < 5.0));
    assert!(judged.opinion.as_ref().is_some_and(|o| o.p < 0.01));
}

#[test]
fn one_order_in_all_blocks_is_an_alias() {
    let runs = interleaved(THROUGHPUT, &[("a", &BASE), ("b", &shifted(0.9))]);
    let comparison = compare(&runs, &CompareOptions::default());
    assert_eq!(judged(&comparison).judgement.verdict, Verdict::Unclear);
    assert_eq!(judged(&comparison).judgement.reasons, [Reason::Alias]);
}

#[test]
fn two_kernels_with_a_boot_each_are_unclear() {
    let mut runs = in_blocks(THROUGHPUT, &BASE, &shifted(0.5));
    for run in runs.iter_mut().filter(|run| run.variant.as_str() == "b") {
        run.kernel_release = "6.2.0".to_owned();
        run.boot_id = Some(BootId::from("boot-2"));
    }
    let comparison = compare(&runs, &CompareOptions::default());
    let judged = judged(&comparison);
    assert_eq!(judged.judgement.verdict, Verdict::Unclear);
    assert_eq!(judged.judgement.reasons, [Reason::OneBoot]);
    assert_eq!(judged.replicate, Replicate::Boot);
    // The same kernel in two boots is no better.
    for run in &mut runs {
        run.kernel_release = "6.1.0".to_owned();
    }
    let comparison = compare(&runs, &CompareOptions::default());
    assert_eq!(
        self::judged(&comparison).judgement.reasons,
        [Reason::OneBoot]
    );
}

/// Four boots of each kernel, two runs in each: four replicates a side, not eight.
#[test]
fn boots_are_the_replicates_of_kernels() {
    let mut runs = in_blocks(THROUGHPUT, &BASE, &shifted(0.5));
    for run in &mut runs {
        run.boot_id = Some(BootId(format!("{}-{}", run.variant, run.iteration / 4)));
        run.kernel_release = format!("6.1-{}", run.variant);
    }
    let comparison = compare(&runs, &CompareOptions::default());
    let judged = judged(&comparison);
    let effect = judged.effect.as_ref().expect("effect");
    assert_eq!((effect.n, effect.method), ((4, 4), Method::Welch));
    assert_eq!(judged.judgement.verdict, Verdict::Regressed);
}

#[test]
fn drift_between_sides_that_take_no_turns() {
    let rising: Vec<f64> = (0..8).map(|i| 100.0 + f64::from(i)).collect();
    let higher: Vec<f64> = (8..16).map(|i| 100.0 + f64::from(i)).collect();
    let mut runs = interleaved(THROUGHPUT, &[("a", &rising), ("b", &higher)]);
    for run in &mut runs {
        // All runs of a, then all of b, of two plans.
        run.start_unix_ns = i64::from(run.iteration);
        if run.variant.as_str() == "b" {
            run.start_unix_ns += 1000;
            run.plan = PlanId::parse("01890000-0000-7000-8000-00000000c003").expect("id");
        }
    }
    let comparison = compare(&runs, &CompareOptions::default());
    assert_eq!(judged(&comparison).judgement.reasons, [Reason::Drift]);
    assert!(
        comparison.tables[0].designs[1]
            .as_ref()
            .is_some_and(|d| !d.in_turn && !d.paired)
    );
}

#[test]
fn doubts_of_the_caller_forbid_claims_and_are_told() {
    let options = CompareOptions {
        doubts: vec![Doubt {
            testbox: "box1".to_owned(),
            variant: "b".into(),
            reason: Reason::EnvironmentDiffers,
            note: "the governor differs".to_owned(),
        }],
        ..CompareOptions::default()
    };
    let runs = in_blocks(THROUGHPUT, &BASE, &shifted(0.5));
    let comparison = compare(&runs, &options);
    assert_eq!(
        judged(&comparison).judgement.reasons,
        [Reason::EnvironmentDiffers]
    );
    assert_eq!(comparison.tables[0].notes, ["the governor differs"]);
}

/// Three runs say nothing by themselves and something with the noise of earlier plans.
#[test]
fn history_lets_few_runs_speak() {
    let few = in_blocks(THROUGHPUT, &BASE[..3], &shifted(0.9)[..3]);
    let without = compare(&few, &CompareOptions::default());
    assert_eq!(judged(&without).judgement.reasons, [Reason::TooFewRuns]);
    let mut sets = Vec::new();
    for plan in 0..4 {
        let mut earlier = in_blocks(THROUGHPUT, &BASE, &shifted(1.0));
        for run in &mut earlier {
            run.plan = PlanId::parse(&format!("01890000-0000-7000-8000-0000000000{plan:02x}"))
                .expect("id");
        }
        sets.extend(run_sets(&earlier));
    }
    assert_eq!(sets.len(), 8);
    let options = CompareOptions {
        history: NoiseMemory::new(sets),
        ..CompareOptions::default()
    };
    let with_history = compare(&few, &options);
    let judged = judged(&with_history);
    let effect = judged.effect.as_ref().expect("effect");
    assert!(matches!(effect.known, Some(Known::History(prior)) if prior.df >= 10.0));
    assert_eq!(effect.method, Method::ModeratedPaired);
    assert_eq!(judged.judgement.verdict, Verdict::Regressed);
    let history = judged.history.as_ref().expect("history");
    assert_eq!((history.sets, history.runs, history.boots), (8, 64, 1));
}

/// What a block shares is no noise of a pair, but it is noise of a side.
#[test]
fn the_memory_of_pairs_leaves_blocks_out() {
    let blocks: Vec<f64> = (0..8)
        .map(|i| 100.0 * (1.0 + 0.2 * f64::from(i % 4)))
        .collect();
    let b: Vec<f64> = blocks
        .iter()
        .zip([1.0, 1.002, 0.998, 1.001, 0.999, 1.0, 1.001, 0.999])
        .map(|(v, f)| v * f)
        .collect();
    let sets = run_sets(&in_blocks(THROUGHPUT, &blocks, &b));
    let figure = &sets[0].figures[0];
    let residual = figure.residual.expect("residual");
    assert!(figure.logs);
    assert!(residual.variance < 1e-5, "{residual:?}");
    assert!(figure.variance.is_some_and(|v| v > 0.01));
    // Seven degrees of freedom, half of them for each variant's set.
    assert_eq!(residual.df, 3.5);
    assert_eq!(run_sets(&[run(0, "a")])[0].figures, []);
}

#[test]
fn other_instruments_are_not_remembered_as_this_one() {
    let sets = run_sets(&in_blocks(THROUGHPUT, &BASE, &shifted(1.0)));
    let memory = NoiseMemory::new(sets);
    let case = crate::fixture::case("scan", "4G-anon").id;
    let metric = MetricName::new("scan.throughput").expect("name");
    let clock = kdyno_model::ClockKind::Wall;
    let of = |instrument: &str, unit: &str, logs: bool| {
        memory.of("box1", &case, &metric, (clock, instrument, unit), logs)
    };
    assert!(of("scan 1", "KB/s", true).is_some());
    for other in [
        of("scan 2", "KB/s", true),
        of("scan 1", "MB/s", true),
        of("scan 1", "KB/s", false),
    ] {
        assert_eq!(other, None);
    }
}

/// Two headline metrics of p 0.03 each are found together, and a third column costs its share.
#[test]
fn headline_metrics_are_one_family_and_columns_cost() {
    let noisy: Vec<f64> = BASE.iter().map(|v| 100.0 + 6.0 * (v - 100.0)).collect();
    let near: Vec<f64> = noisy.iter().rev().map(|v| v * 1.09).collect();
    let two = compare(
        &in_blocks(THROUGHPUT, &noisy, &near),
        &CompareOptions::default(),
    );
    let p = judged(&two).effect.as_ref().and_then(|e| e.p).expect("p");
    assert_eq!(judged(&two).adjusted_p, Some(p));
    let three = compare(
        &blocks_of_three(&[("a", &noisy), ("b", &near), ("c", &noisy)]),
        &CompareOptions::default(),
    );
    let adjusted = judged(&three).adjusted_p.expect("p");
    assert!((adjusted - 2.0 * p).abs() < 1e-12, "{adjusted} {p}");
}

#[test]
fn a_control_is_counted_and_costs_nothing() {
    let options = CompareOptions {
        controls: ["aa".into()].into(),
        ..CompareOptions::default()
    };
    let runs = blocks_of_three(&[("a", &BASE), ("b", &shifted(1.02)), ("aa", &shifted(1.0))]);
    let comparison = compare(&runs, &options);
    let effect = judged(&comparison).effect.as_ref().expect("effect");
    assert_eq!(judged(&comparison).adjusted_p, effect.p);
    let check = comparison.tables[0].controls[0];
    assert_eq!(
        (check.column, check.headline, check.other),
        (2, (0, 1), (0, 0))
    );
}

/// Fifty diagnostics without a change and one with: only the one is claimed.
#[test]
fn diagnostics_are_searched_by_group() {
    let mut runs = in_blocks(LATENCY, &BASE, &shifted(1.0));
    for run in &mut runs {
        let i = f64::from(run.iteration / 2);
        let side = f64::from(u8::from(run.variant.as_str() == "b"));
        for metric in 0..50_u32 {
            let wave = ((i * 7.0 + f64::from(metric) * 3.0 + side * 5.0) % 11.0) / 11.0;
            let changed = if metric == 7 { 3.0 * side } else { 0.0 };
            let scalar = kdyno_model::Scalar {
                metric: MetricName::new(format!("vmstat.m{metric}")).expect("name"),
                unit: kdyno_model::Unit::default(),
                better: Better::Neither,
                role: Role::Diagnostic,
                value: 10.0 + wave + changed,
            };
            run.scalars.push(scalar);
        }
    }
    let options = CompareOptions {
        diagnostics: Diagnostics::Changed,
        ..CompareOptions::default()
    };
    let comparison = compare(&runs, &options);
    let names: Vec<&str> = comparison.tables[0]
        .rows()
        .map(|r| r.metric.as_str())
        .collect();
    assert_eq!(names, ["scan.latency", "vmstat.m7"]);
    let row = comparison.tables[0].rows().nth(1).expect("row");
    let judged = row
        .cell(1)
        .and_then(|c| c.judged.as_deref())
        .expect("judged");
    assert_eq!(judged.judgement.verdict, Verdict::Changed);
    // Fifty metrics of one unit lend each other variance.
    let effect = judged.effect.as_ref().expect("effect");
    assert!(matches!(effect.known, Some(Known::Family(_))));
}

#[test]
fn failures_are_judged() {
    let mut runs = in_blocks(THROUGHPUT, &BASE, &shifted(1.0));
    for run in runs
        .iter_mut()
        .filter(|run| run.variant.as_str() == "b")
        .take(7)
    {
        run.outcome = kdyno_model::Outcome::OutOfMemory;
    }
    let comparison = compare(&runs, &CompareOptions::default());
    let judged = comparison.tables[0].failures[0].cells[1].judged.as_ref();
    let judgement = &judged.expect("judged").judgement;
    assert_eq!(judgement.verdict, Verdict::Regressed);
    assert_eq!(judgement.reasons, [Reason::NewFailures]);
}

#[test]
fn a_throttled_side_claims_nothing() {
    let throttle: Kind = (
        "thermal.throttle_events",
        "",
        Better::Neither,
        Role::Diagnostic,
    );
    let mut runs = in_blocks(THROUGHPUT, &BASE, &shifted(0.9));
    for run in &mut runs {
        let events = f64::from(u8::from(run.variant.as_str() == "b" && run.iteration > 9));
        *run = with(run.clone(), &[(throttle, events)]);
    }
    let comparison = compare(&runs, &CompareOptions::default());
    assert_eq!(judged(&comparison).judgement.reasons, [Reason::Throttled]);
}

fn table(blocks: bool) -> ValueTable {
    let values = |values: &[f64]| -> Vec<BlockValue> {
        (0..)
            .zip(values)
            .map(|(block, value)| BlockValue {
                value: *value,
                block: blocks.then_some(block),
            })
            .collect()
    };
    ValueTable {
        variants: vec!["old".to_owned(), "new".to_owned()],
        metrics: vec![ValueRow {
            metric: MetricName::new("alloc").expect("name"),
            values: vec![values(&BASE), values(&shifted(1.05))],
        }],
        missing: 2,
    }
}

#[test]
fn values_without_runs_are_judged() {
    for (blocks, method) in [(false, Method::Welch), (true, Method::Paired)] {
        let comparison = compare_values(
            table(blocks),
            "bench.csv",
            Better::Lower,
            &CompareOptions::default(),
        );
        let judged = judged(&comparison);
        assert_eq!(judged.effect.as_ref().expect("effect").method, method);
        assert_eq!(judged.judgement.verdict, Verdict::Regressed);
        assert_eq!(comparison.tables[0].name(), "bench.csv");
        assert_eq!(comparison.tables[0].notes.len(), 1);
    }
}

#[test]
fn a_side_of_which_half_has_no_partner_is_not_paired() {
    let mut values = table(true);
    values.metrics[0].values[1].truncate(BASE.len() / 2);
    let comparison = compare_values(
        values,
        "bench.csv",
        Better::Lower,
        &CompareOptions::default(),
    );
    let judged = judged(&comparison);
    let effect = judged.effect.as_ref().expect("effect");
    assert_eq!(effect.method, Method::Welch);
    assert_eq!(effect.n, (BASE.len(), BASE.len() / 2));
}

#[test]
fn figures_that_overflow_are_out_of_range() {
    let mut values = table(true);
    for (side, sign) in values.metrics[0].values.iter_mut().zip([1.0, -1.0]) {
        for (place, value) in side.iter_mut().enumerate() {
            value.value = if place % 2 == 0 { sign } else { -sign } * 1.7e308;
        }
    }
    let comparison = compare_values(
        values,
        "bench.csv",
        Better::Lower,
        &CompareOptions::default(),
    );
    let judgement = &judged(&comparison).judgement;
    assert_eq!(judgement.verdict, Verdict::Unclear);
    assert_eq!(judgement.reasons, [Reason::OutOfRange]);
}
