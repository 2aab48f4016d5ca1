use crate::fixture::{Kind, LATENCY, THROUGHPUT, case, run, with};
use kdyno_analyze::noise::{NoiseMemory, run_sets};
use kdyno_analyze::render::lkp::LkpOptions;
use kdyno_analyze::render::text::TextOptions;
use kdyno_analyze::render::{csv, json, lkp, lkp_cases, ministat, text};
use kdyno_analyze::{CompareOptions, Diagnostics, compare};
use kdyno_model::{Better, Role, RunRow};
use proptest::prelude::*;

const SHARE: Kind = (
    "perf-profile.self.copy",
    "%",
    Better::Neither,
    Role::Diagnostic,
);

fn any_finite() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("finite", |v| v.is_finite()),
        prop::sample::select(vec![
            0.0,
            -0.0,
            1e300,
            -1e300,
            f64::MAX,
            f64::MIN,
            5e-324,
            1e8,
            1e3
        ]),
        -1e5..1e5_f64,
    ]
}

/// Runs of up to three variants and two cases, with three metrics each.
fn any_runs() -> impl Strategy<Value = Vec<RunRow>> {
    let one = (
        0_usize..3,
        any::<bool>(),
        any_finite(),
        any_finite(),
        any_finite(),
    );
    prop::collection::vec(one, 0..14).prop_map(|drawn| {
        let runs = (0_u32..)
            .zip(drawn)
            .map(|(index, (variant, other_case, a, b, c))| {
                let name = ["base", "new", "a-variant-with-a-very-long-name"][variant];
                let figures = [(THROUGHPUT, a), (LATENCY, b), (SHARE, c)];
                let mut run = with(run(index, name), &figures);
                if other_case {
                    run.case = case("fill", "2t");
                }
                run
            });
        runs.collect()
    })
}

/// Whether a word of the text is a number that is none.
fn shows_no_number(text: &str) -> bool {
    let words = text.to_lowercase();
    words
        .split(|c: char| !c.is_alphabetic())
        .any(|word| ["nan", "inf", "infinity"].contains(&word))
}

proptest! {
    #[test]
    fn every_renderer_takes_every_finite_value(runs in any_runs(), all: bool) {
        let comparison = compare(&runs, &CompareOptions { diagnostics: if all { Diagnostics::All } else { Diagnostics::Moved }, ..CompareOptions::default() });
        let options = LkpOptions::default();
        for printed in [
            lkp::render(&comparison, &options),
            lkp_cases::render(&comparison, &options),
            text::render(&comparison, &TextOptions::default()),
            csv::render(&comparison),
            json::render(&comparison),
        ] {
            prop_assert!(!shows_no_number(&printed), "{}", printed);
        }
    }

    #[test]
    fn ministat_takes_every_finite_value(values in prop::collection::vec(any_finite(), 1..9)) {
        let printed = ministat::stat(&[("s", &values)]).expect("rows");
        prop_assert!(!shows_no_number(&printed), "{}", printed);
    }

    #[test]
    fn what_is_remembered_is_finite(runs in any_runs()) {
        let sets = run_sets(&runs);
        let memory = NoiseMemory::new(sets.clone());
        for set in &sets {
            for figure in &set.figures {
                prop_assert!(figure.mean.is_finite() && figure.runs > 0);
                prop_assert!(figure.variance.is_none_or(|v| v.is_finite() && v >= 0.0));
                if let Some(residual) = figure.residual {
                    prop_assert!(residual.variance.is_finite() && residual.variance >= 0.0);
                    prop_assert!(residual.df > 0.0);
                }
                let basis = (set.clock, set.instrument.as_str(), figure.unit.as_str());
                let history = memory
                    .of(&set.testbox, &set.case, &figure.metric, basis, figure.logs)
                    .expect("what was put in");
                for prior in [history.within, history.paired].into_iter().flatten() {
                    prop_assert!(prior.variance > 0.0 && prior.variance.is_finite());
                    prop_assert!(prior.df > 0.0 && prior.df <= 30.0);
                }
            }
        }
    }

    #[test]
    fn csv_has_the_same_number_of_fields_in_each_line(runs in any_runs()) {
        let printed = csv::render(&compare(&runs, &CompareOptions::default()));
        for line in printed.lines() {
            prop_assert_eq!(line.split(',').count(), 25, "{}", line);
        }
    }

    #[test]
    fn json_reads_back(runs in any_runs()) {
        let comparison = compare(&runs, &CompareOptions::default());
        let read: serde_json::Value = serde_json::from_str(&json::render(&comparison)).expect("JSON");
        let tables = read["tables"].as_array().expect("tables");
        prop_assert_eq!(tables.len(), comparison.tables.len());
    }
}
