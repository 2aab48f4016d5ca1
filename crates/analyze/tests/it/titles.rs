//! Sentences of single runs, and names that would break a table.

use crate::fixture::{LATENCY, ROUNDS, THROUGHPUT, interleaved, run, with};
use kdyno_analyze::comparison::Comparison;
use kdyno_analyze::render::lkp::LkpOptions;
use kdyno_analyze::render::text::TextOptions;
use kdyno_analyze::render::{csv, json, lkp, lkp_cases, ministat, text};
use kdyno_analyze::{CompareOptions, compare};
use kdyno_model::{Outcome, RunRow};

/// The first sentence below the heading, its lines joined.
fn sentence(runs: &[RunRow]) -> String {
    let printed = text::render(
        &compare(runs, &CompareOptions::default()),
        &TextOptions::default(),
    );
    let prose = printed.split("\n\n").nth(1).expect("prose");
    prose
        .replace("\n  ", " ")
        .lines()
        .next()
        .expect("line")
        .to_owned()
}

#[test]
fn one_run_on_a_side_gives_figures_and_no_judgement() {
    for (base, new, expected) in [
        (
            &[43_394.0][..],
            &[34_575.5][..],
            "measured once each: 34576 KB/s against 43394 KB/s",
        ),
        (
            &[100.0],
            &[90.0, 92.0],
            "91 KB/s (mean of 2 runs) against 100 KB/s (one run)",
        ),
        (
            &[100.0, 102.0, 98.0],
            &[0.5],
            "0.5 KB/s (one run) against 100 KB/s (mean of 3 runs)",
        ),
    ] {
        assert_eq!(
            sentence(&interleaved(THROUGHPUT, &[("base", base), ("new", new)])),
            format!(
                "scan.throughput of new and base: unclear, {expected}; too few runs to tell a difference"
            )
        );
    }
}

#[test]
fn four_runs_on_each_side_are_judged_and_three_are_not() {
    let base = [99.0, 100.0, 101.0, 100.0];
    let new = [79.0, 80.0, 81.0, 80.0];
    let of = |n: usize| {
        sentence(&interleaved(
            THROUGHPUT,
            &[("base", &base[..n]), ("new", &new[..n])],
        ))
    };
    assert!(of(3).contains("unclear (too few runs): -20 %"), "{}", of(3));
    let four = of(4);
    assert!(four.contains("20 % lower than base (-"), "{four}");
    assert!(four.contains("regressed, 4 runs each, 1 boot"), "{four}");
}

/// Every text of a comparison that somebody may choose is `name`.
fn called(name: &str) -> Comparison {
    let other = format!("{name} -2");
    let names = [(name, &[1.0, 2.0][..]), (other.as_str(), &[5.0, 6.0])];
    let mut runs = interleaved(THROUGHPUT, &names);
    for run in &mut runs {
        run.testbox = name.to_owned();
        run.case.params = name.to_owned();
        run.scalars[0].unit.0 = name.to_owned();
    }
    runs[0] = with(runs[0].clone(), &[(ROUNDS, 3.0), (LATENCY, 4.0)]);
    let mut failed = run(9, name);
    failed.outcome = Outcome::OutOfMemory;
    failed.testbox = name.to_owned();
    failed.case = runs[0].case.clone();
    let mut lost = failed.clone();
    lost.outcome = Outcome::Interrupted;
    let mut elsewhere = runs[1].clone();
    elsewhere.testbox.push('b');
    runs.extend([failed, lost, elsewhere]);
    let descriptions = [(name.into(), name.to_owned())].into();
    let options = CompareOptions {
        descriptions,
        ..CompareOptions::default()
    };
    compare(&runs, &options)
}

#[test]
fn no_control_character_reaches_a_table() {
    let name = "a\n\u{1b}[2J\r\u{9b}b\t\u{7f}";
    let comparison = called(name);
    let options = LkpOptions::default();
    for printed in [
        text::render(&comparison, &TextOptions::default()),
        lkp::render(&comparison, &options),
        lkp_cases::render(&comparison, &options),
        ministat::stat(&[(name, &[1.0])]).expect("rows"),
    ] {
        let mut control = printed.chars().filter(|c| c.is_control() && *c != '\n');
        assert_eq!(control.next(), None, "{printed}");
        assert!(!printed.contains("a\n"), "{printed}");
        assert!(printed.contains("a\u{fffd}\u{fffd}[2J"), "{printed}");
    }
}

/// Two variants with runs, a failure, a metric that one run lacks, and nothing else that is long.
fn called_in_full(name: &str) -> Comparison {
    let other = format!("{name} -2");
    let names = [(name, &[1.0, 2.0][..]), (other.as_str(), &[5.0, 6.0])];
    let mut runs = interleaved(THROUGHPUT, &names);
    runs[0] = with(runs[0].clone(), &[(LATENCY, 4.0)]);
    let mut failed = run(9, &other);
    failed.outcome = Outcome::OutOfMemory;
    let mut lost = failed.clone();
    lost.outcome = Outcome::Interrupted;
    runs.extend([failed, lost]);
    compare(&runs, &CompareOptions::default())
}

#[test]
fn a_command_as_a_name_leaves_the_text_table_readable() {
    let name = "stress --option value ".repeat(14) + "--last first";
    let comparison = called_in_full(&name);
    let printed = text::render(&comparison, &TextOptions::default());
    for heading in [
        "  stress --option value stress...s --option value --last first  2 runs, 1 boot\n",
        "  stress --option value stress...-option value --last first -2  2 runs, 1 boot\n",
    ] {
        assert!(printed.contains(heading), "{printed}");
    }
    let in_full = "stress --option value ".repeat(3);
    let joined = printed.replace("\n  ", " ");
    assert!(
        joined.contains("present in 1 of 2 runs of stress"),
        "{joined}"
    );
    assert!(
        joined.contains(
            "1 run of stress --option value stress...-option value --last first -2 not counted"
        ),
        "{joined}"
    );
    assert!(!joined.contains(in_full.trim_end()), "{joined}");
    assert!(csv::render(&comparison).contains(&name));
    assert!(json::render(&comparison).contains(&name));
}
