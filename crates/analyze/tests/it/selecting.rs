use crate::fixture::{PLAN, THROUGHPUT, case, interleaved, run, small_plan};
use kdyno_analyze::{SelectError, Selection, set_apart};
use kdyno_model::{MetricName, PlanId, RunRow};

const NEWER: &str = "01890000-0000-7000-8000-00000000b002";

/// A plan of two cases on two boxes, and an older one.
fn runs() -> Vec<RunRow> {
    let mut runs = interleaved(THROUGHPUT, &[("base", &[1.0; 4]), ("patched", &[2.0; 4])]);
    for run in &mut runs {
        run.plan = PlanId::parse(NEWER).expect("id");
    }
    for run in &mut runs[2..4] {
        run.testbox = "box2".to_owned();
    }
    for run in &mut runs[4..6] {
        run.case = case("fill", "2t");
    }
    runs.extend(small_plan());
    runs
}

fn indices(patterns: &[&str]) -> Vec<(String, u32)> {
    let runs = runs();
    let selection = Selection::parse(patterns, &runs).expect("selection");
    let selected = selection.rows(&runs);
    selected
        .iter()
        .map(|run| (run.plan.short(), run.index))
        .collect()
}

fn of_newer(indices: &[u32]) -> Vec<(String, u32)> {
    indices
        .iter()
        .map(|index| ("0000b002".to_owned(), *index))
        .collect()
}

#[test]
fn nothing_said_means_the_newest_plan() {
    assert_eq!(indices(&[]), of_newer(&[0, 1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(indices(&["scan.*"]).len(), 8, "metric globs select no runs");
}

#[test]
fn plans_and_runs_by_long_and_short_id() {
    let older = PlanId::parse(PLAN).expect("id").short();
    assert_eq!(indices(&[PLAN]).len(), small_plan().len());
    assert_eq!(indices(&[PLAN]), indices(&[&older]));
    assert_eq!(indices(&["00000003", "0000b002"]), of_newer(&[3]));
    assert_eq!(
        indices(&["01890000-0000-7000-8000-000000000003", "0000b002"]),
        of_newer(&[3])
    );
}

#[test]
fn one_kind_widens_and_kinds_narrow() {
    assert_eq!(indices(&["base"]), of_newer(&[0, 2, 4, 6]));
    assert_eq!(
        indices(&["base", "patched"]),
        of_newer(&[0, 1, 2, 3, 4, 5, 6, 7])
    );
    assert_eq!(indices(&["base", "box2"]), of_newer(&[2]));
    assert_eq!(indices(&["fill/*", "patched"]), of_newer(&[5]));
    assert_eq!(indices(&["fill"]), of_newer(&[4, 5]));
}

#[test]
fn metric_globs() {
    let runs = runs();
    let selection = Selection::parse(&["base", "proc-vmstat.*"], &runs).expect("selection");
    let globs = selection.metrics().expect("globs");
    assert!(globs.matches(&MetricName::new("proc-vmstat.pgfault").expect("name")));
    assert!(!globs.matches(&MetricName::new("scan.throughput").expect("name")));
    assert!(
        Selection::parse(&["base"], &runs)
            .expect("selection")
            .metrics()
            .is_none()
    );
}

#[test]
fn a_word_that_matches_nothing_is_an_error_with_near_names() {
    let error = Selection::parse(&["bsae"], &runs()).expect_err("no such name");
    assert_eq!(
        error.to_string(),
        "`bsae` matches no plan, run, variant, testbox, case or metric\nhint: did you mean `base`?"
    );
    let error = Selection::parse(&["THP*"], &runs()).expect_err("names have their case");
    assert!(
        error
            .to_string()
            .ends_with("hint: did you mean `proc-vmstat.thp_split_page`, `thp-off`, `thp-on`?"),
        "{error}"
    );
    let error = Selection::parse(&["wholly-unlike-anything"], &runs()).expect_err("no such name");
    assert!(
        error
            .to_string()
            .ends_with("hint: `kdyno list` shows what there is")
    );
}

#[test]
fn a_broken_glob_is_an_error() {
    let error = Selection::parse(&["scan.[a"], &runs()).expect_err("broken");
    assert!(matches!(error, SelectError::BadGlob { .. }), "{error}");
}

#[test]
fn names_stand_in_the_order_of_the_words() {
    let runs = runs();
    let id = |text: &str| PlanId::parse(text).expect("id");
    let named = |words: &[&str]| {
        let selection = Selection::parse(words, &runs).expect("selection");
        let variants = selection.variants_named().iter();
        let variants: Vec<String> = variants.map(ToString::to_string).collect();
        (selection.plans_named().to_vec(), variants)
    };
    let words = ["patched", NEWER, "base", PLAN, "0000b002", "patched"];
    let variants = vec!["patched".to_owned(), "base".to_owned()];
    assert_eq!(named(&words), (vec![id(NEWER), id(PLAN)], variants));
    assert_eq!(named(&[PLAN, NEWER]).0, [id(PLAN), id(NEWER)]);
    assert_eq!(named(&["fill"]), (Vec::new(), Vec::new()));
}

/// Variants `base` and `new` of plan a, `base` and `old` of plan b, `base` of plan c.
fn three_plans() -> (Vec<RunRow>, [PlanId; 3]) {
    let plans = ["a001", "b002", "c003"]
        .map(|end| format!("01890000-0000-7000-8000-00000000{end}"))
        .map(|text| PlanId::parse(&text).expect("id"));
    let of = [
        (0, "base"),
        (0, "new"),
        (1, "base"),
        (1, "old"),
        (2, "base"),
    ];
    let rows = (0_u32..).zip(of).map(|(index, (plan, variant))| RunRow {
        plan: plans[plan],
        ..run(index, variant)
    });
    (rows.collect(), plans)
}

fn variants_apart(plans: &[PlanId]) -> Vec<String> {
    let apart = set_apart(three_plans().0, plans);
    let names = apart.iter().map(|row| row.variant.to_string());
    names.collect()
}

#[test]
fn plans_named_together_are_set_apart() {
    let [a, b, c] = three_plans().1;
    assert_eq!(
        variants_apart(&[b, a]),
        ["base@0000a001", "new", "base@0000b002", "old", "base"]
    );
    assert_eq!(
        variants_apart(&[c, a, b]),
        [
            "base@0000a001",
            "new",
            "base@0000b002",
            "old",
            "base@0000c003"
        ]
    );
}

#[test]
fn one_plan_is_not_set_apart_from_itself() {
    let (rows, [a, ..]) = three_plans();
    for plans in [&[][..], &[a], &[a, a], &[a, PlanId::new()]] {
        assert_eq!(set_apart(rows.clone(), plans), rows, "{plans:?}");
    }
}
