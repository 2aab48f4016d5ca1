//! Rows of published mails, taken apart into figures and printed again.

use super::*;
use std::path::Path;

/// File and number of data rows in it.
const MAILS: [(&str, usize); 8] = [
    ("lkp-2020-12-three-commits-full.eml", 213),
    ("lkp-2022-07-failruns-three-commits.eml", 7),
    ("lkp-2023-09-latency-lower-better.eml", 132),
    ("lkp-2024-01-latency-p95.eml", 13),
    ("lkp-2024-05-four-commits.eml", 1),
    ("lkp-2024-06-large-four-tables.eml", 1236),
    ("lkp-2025-01-rawdata-matrixjson.eml", 181),
    ("lkp-2025-12-small-regression.eml", 79),
];

#[test]
fn published_rows_print_byte_for_byte() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if !corpus.is_dir() {
        eprintln!("skipped: no corpus of mails beside the workspace");
        return;
    }
    for (file, expected) in MAILS {
        let mail = text_of(&std::fs::read(corpus.join(file)).expect("mail"));
        let (equal, differing): (Vec<_>, Vec<_>) = reprinted(&mail)
            .into_iter()
            .partition(|(original, ours)| original == ours);
        let differing: Vec<String> = differing
            .into_iter()
            .map(|(original, ours)| format!("mail {original}ours {ours}"))
            .collect();
        assert!(differing.is_empty(), "{file}:\n{}", differing.concat());
        assert_eq!(equal.len(), expected, "{file}: data rows");
    }
}

/// Mails of this age are Latin-1 or UTF-8.
fn text_of(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec())
        .unwrap_or_else(|_| bytes.iter().map(|byte| char::from(*byte)).collect())
}

/// Each data row of the tables with what we print for its figures.
fn reprinted(mail: &str) -> Vec<(String, String)> {
    let (mut columns, mut failures) = (0, false);
    let mut rows = Vec::new();
    for line in mail.lines() {
        if line.starts_with("---------------- ") {
            columns = line.split_whitespace().count();
        } else if line.contains("fail:runs") {
            failures = true;
        } else if line.contains("%stddev") {
            failures = false;
        } else if line.trim().is_empty() {
            columns = 0;
        } else if columns > 0 && !line.contains(" | ") && !line.contains("\\  ") {
            let cells = fields(line, columns);
            rows.push((format!("{line}\n"), print(&cells, failures)));
        }
    }
    rows
}

struct Fields {
    /// Change and figure per column; the first has no change.
    cells: Vec<(String, String)>,
    name: String,
}

fn fields(line: &str, columns: usize) -> Fields {
    let chars: Vec<char> = line.chars().collect();
    let part =
        |from: usize, to: usize| -> String { chars.iter().skip(from).take(to - from).collect() };
    let mut cells = vec![(String::new(), part(0, 16))];
    for later in 1..columns {
        let from = 16 + 28 * (later - 1);
        cells.push((part(from, from + 12), part(from + 12, from + 28)));
    }
    let name = part(16 + 28 * (columns - 1), chars.len()).trim().to_owned();
    Fields { cells, name }
}

fn print(fields: &Fields, failures: bool) -> String {
    let cell = |text: &String| if failures { failure(text) } else { value(text) };
    let change = |text: &String| if failures { points(text) } else { amount(text) };
    data_row(
        fields.cells.iter().map(|(_, text)| cell(text)),
        fields.cells.iter().map(|(text, _)| change(text)),
        &fields.name,
    )
}

fn value(text: &str) -> String {
    let Some((mean, spread)) = text.split_once('±').or(Some((text, ""))) else {
        return String::new();
    };
    let spread = spread.trim().trim_end_matches('%').parse::<f64>().ok();
    // The mail shows the truncated percentage of something above 2.
    let spread = spread.map(|percent| percent + 0.5);
    value_cell(mean.trim().parse().ok().map(|mean| (mean, spread)))
}

fn amount(text: &str) -> String {
    let amount = text.trim().trim_end_matches('%').parse::<f64>().ok();
    change_cell(amount.map(|amount| {
        if text.contains('%') {
            Change::Percent(amount)
        } else {
            Change::Absolute(amount)
        }
    }))
}

fn failure(text: &str) -> String {
    let (failed, runs) = text.split_once(':').expect("failed:runs");
    failure_cell(&FailureCell {
        failed: failed.trim().parse().unwrap_or(0),
        runs: runs.trim().parse().expect("runs"),
        difference: None,
        judged: None,
    })
}

fn points(text: &str) -> String {
    difference_cell(text.trim().trim_end_matches('%').parse().ok())
}
