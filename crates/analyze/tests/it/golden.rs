//! Whole outputs, byte for byte. With `BLESS=1` in the environment they are written instead, to
//! be read before they are committed.

use crate::fixture::{IDLE, LATENCY, THROUGHPUT, case, interleaved, run, small_plan, with};
use kdyno_analyze::comparison::Comparison;
use kdyno_analyze::render::lkp::LkpOptions;
use kdyno_analyze::render::text::TextOptions;
use kdyno_analyze::render::{csv, json, lkp, lkp_cases, text};
use kdyno_analyze::{CompareOptions, compare};
use kdyno_model::{Outcome, PlanId, RunRow, VariantName};
use std::path::Path;

fn check(name: &str, printed: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, printed).expect("golden file");
    }
    let expected = std::fs::read_to_string(&path).expect("golden file");
    assert!(printed == expected, "{name} differs; printed:\n{printed}");
}

fn two_variants() -> Comparison {
    let description = (
        "thp-on".into(),
        "huge pages \"always\", all sizes".to_owned(),
    );
    let options = CompareOptions {
        descriptions: [description].into(),
        ..CompareOptions::default()
    };
    compare(&small_plan(), &options)
}

/// Three commits over two cases, the second of them a recovery.
fn three_commits() -> Comparison {
    let names = [
        "3f0c5e1d9a7b2468aa11",
        "b7d2e94c60f1a835bb22cc33dd44ee55",
        "0a9c8e7f6d5b4a39",
    ];
    let values: [&[f64]; 3] = [
        &[43_394.0, 43_100.0, 43_700.0],
        &[34_575.0, 36_100.0, 33_000.0],
        &[41_120.0, 41_000.0, 41_260.0],
    ];
    let columns: Vec<(&str, &[f64])> = names.into_iter().zip(values).collect();
    let mut runs = interleaved(THROUGHPUT, &columns);
    let mut other = runs.clone();
    for (i, run) in (0_u32..).zip(&mut other) {
        run.case = case("scan", "16G-shared");
        run.index += 100;
        run.scalars[0].value *= 2.0;
        *run = with(run.clone(), &[(LATENCY, 900.0 + f64::from(i % 2))]);
    }
    runs.extend(other);
    compare(&runs, &CompareOptions::default())
}

fn one_variant() -> Comparison {
    let runs: Vec<RunRow> = small_plan();
    let off = runs.iter().filter(|run| run.variant.as_str() == "thp-off");
    compare(off, &CompareOptions::default())
}

/// Runs of two plans; a metric that is missing here and there, another instrument, a share.
fn with_notes() -> Comparison {
    let values: [&[f64]; 2] = [&[100.0, 101.0, 99.0], &[120.0, 119.0, 121.0]];
    let mut runs = interleaved(THROUGHPUT, &[("base", values[0]), ("patched", values[1])]);
    runs[0] = with(runs[0].clone(), &[(LATENCY, 3.5e-5), (IDLE, 20.0)]);
    runs[1] = with(runs[1].clone(), &[(IDLE, 30.0)]);
    runs[5].plan = PlanId::parse("01890000-0000-7000-8000-00000000c003").expect("id");
    let mut other = interleaved(THROUGHPUT, &[("base", values[0]), ("patched", values[1])]);
    for run in &mut other {
        run.case = case("fill", "2t");
        if run.variant.as_str() == "patched" {
            run.instrument = "fill 2".to_owned();
        }
    }
    other[4].outcome = Outcome::Infrastructure {
        reason: "box1 lost".to_owned(),
    };
    runs.extend(other);
    let only_base = with(run(60, "base"), &[(THROUGHPUT, 7.0)]);
    runs.push(RunRow {
        testbox: "box2".to_owned(),
        ..only_base
    });
    let variants = ["base", "patched", "absent"]
        .map(VariantName::from)
        .to_vec();
    compare(
        &runs,
        &CompareOptions {
            variants,
            ..CompareOptions::default()
        },
    )
}

#[test]
fn notes_are_printed_everywhere() {
    let comparison = with_notes();
    check(
        "text-notes.txt",
        &text::render(&comparison, &TextOptions::default()),
    );
    check(
        "lkp-notes.txt",
        &lkp::render(&comparison, &LkpOptions::default()),
    );
    check(
        "lkp-cases-notes.txt",
        &lkp_cases::render(&comparison, &LkpOptions::default()),
    );
    check("notes.csv", &csv::render(&comparison));
    check("notes.json", &json::render(&comparison));
}

#[test]
fn lkp_blocks() {
    let variants = LkpOptions::default();
    check(
        "lkp-two-variants.txt",
        &lkp::render(&two_variants(), &variants),
    );
    let commits = LkpOptions {
        axis: "commit",
        verdicts: false,
    };
    check(
        "lkp-three-commits.txt",
        &lkp::render(&three_commits(), &commits),
    );
}

#[test]
fn lkp_case_rows() {
    let commits = LkpOptions {
        axis: "commit",
        verdicts: false,
    };
    check(
        "lkp-cases-three-commits.txt",
        &lkp_cases::render(&three_commits(), &commits),
    );
}

#[test]
fn text_tables() {
    check(
        "text-two-variants.txt",
        &text::render(&two_variants(), &TextOptions::default()),
    );
    check(
        "text-three-commits.txt",
        &text::render(&three_commits(), &TextOptions::default()),
    );
    check(
        "text-one-variant.txt",
        &text::render(&one_variant(), &TextOptions::default()),
    );
    check(
        "text-nothing.txt",
        &text::render(&Comparison::default(), &TextOptions::default()),
    );
}

#[test]
fn machine_readable() {
    check("two-variants.csv", &csv::render(&two_variants()));
    check("two-variants.json", &json::render(&two_variants()));
}

#[test]
fn no_table_says_that_nothing_changed() {
    let same = interleaved(
        THROUGHPUT,
        &[("a", &[1.0, 2.0, 3.0]), ("b", &[1.1, 2.1, 3.0])],
    );
    let printed = text::render(
        &compare(&same, &CompareOptions::default()),
        &TextOptions::default(),
    );
    assert!(printed.contains("unclear"), "{printed}");
    assert!(
        !printed.contains("unchanged") && !printed.contains("no change"),
        "{printed}"
    );
}
