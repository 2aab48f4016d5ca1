//! Runs the numeric cases: every `*.json` of the folder that `KDYNO_STATS_CASES` names, else of
//! `../shared/stats-cases` beside the repository; skipped aloud where neither exists.
//!
//! Prints one line per case, also when the tests pass. A case fails when one of its expected
//! values is missed *or was not looked at*; a case of a kind that nobody wrote fails as well.

use crate::cases::check::{Case, Check};
use std::io::Write;
use std::path::{Path, PathBuf};

/// One module per kind of case, each with `run(&Case, &mut Check)`.
mod cases {
    pub mod check;

    pub mod bayes_bisect;
    pub mod changepoint;
    pub mod degenerate;
    pub mod drift_checks;
    pub mod ebayes;
    pub mod equivalence_tost;
    pub mod factorial_effects;
    pub mod fail_counts;
    pub mod geomean_across_testboxes;
    pub mod k_commits;
    pub mod log2_histogram;
    pub mod mann_whitney;
    pub mod ministat;
    pub mod moderated_t;
    pub mod normalise_baseline_reference;
    pub mod p_adjust;
    pub mod paired;
    pub mod quantile_order_ci;
    pub mod sample_size;
    pub mod sequential_t_evalue;
    pub mod two_sample_distribution;
    pub mod welch;
}

/// How a kind of case is run; `None` for a kind that is not known.
fn runner(kind: &str) -> Option<fn(&Case, &mut Check<'_>)> {
    Some(match kind {
        "bayes_bisect" => cases::bayes_bisect::run,
        "changepoint" => cases::changepoint::run,
        "degenerate" => cases::degenerate::run,
        "drift_checks" => cases::drift_checks::run,
        "ebayes" => cases::ebayes::run,
        "equivalence_tost" => cases::equivalence_tost::run,
        "factorial_effects" => cases::factorial_effects::run,
        "fail_counts" => cases::fail_counts::run,
        "geomean_across_testboxes" => cases::geomean_across_testboxes::run,
        "k_commits" => cases::k_commits::run,
        "log2_histogram" => cases::log2_histogram::run,
        "mann_whitney" => cases::mann_whitney::run,
        "ministat" => cases::ministat::run,
        "moderated_t" => cases::moderated_t::run,
        "normalise_baseline_reference" => cases::normalise_baseline_reference::run,
        "p_adjust" => cases::p_adjust::run,
        "paired" => cases::paired::run,
        "quantile_order_ci" => cases::quantile_order_ci::run,
        "sample_size" => cases::sample_size::run,
        "sequential_t_evalue" => cases::sequential_t_evalue::run,
        "two_sample_distribution" => cases::two_sample_distribution::run,
        "welch" => cases::welch::run,
        _ => return None,
    })
}

#[test]
fn all_cases() {
    let Some(folder) = folder() else {
        say("SKIPPED: no folder of cases; KDYNO_STATS_CASES=DIR names one");
        return;
    };
    let files = json_files(&folder);
    assert!(!files.is_empty(), "no *.json in {}", folder.display());
    let failed = files.iter().filter(|file| !passes(file)).count();
    say(&format!("{} cases, {failed} failed", files.len()));
    assert_eq!(failed, 0, "cases failed; the lines above say which values");
}

/// Runs one file and prints its line.
fn passes(file: &Path) -> bool {
    let problems = match Case::read(file) {
        Err(problem) => vec![problem],
        Ok(case) => match runner(&case.kind) {
            None => vec![format!("unknown kind {:?}", case.kind)],
            Some(run) => {
                let mut check = Check::new(&case);
                run(&case, &mut check);
                let (values, problems) = check.finish();
                if problems.is_empty() {
                    say(&format!("ok {} ({}, {values} values)", case.id, case.kind));
                }
                problems
            }
        },
    };
    if !problems.is_empty() {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        say(&format!("FAIL {name}: {}", problems.join("; ")));
    }
    problems.is_empty()
}

fn folder() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("KDYNO_STATS_CASES") {
        return Some(PathBuf::from(named));
    }
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/stats-cases");
    beside.is_dir().then_some(beside)
}

fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder of cases can be read");
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "json"))
        .collect();
    files.sort();
    files
}

/// Prints past the capturing of the test harness.
fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("stdout takes a line");
}
