//! Plans and runs of another home.

use crate::sample::{plan, results, writer};
use kdyno_rundir::{Home, PlanDir, RundirError, State};
use std::fs;
use std::path::Path;

/// A plan with two sealed runs and one that was never sealed.
fn elsewhere(dir: &Path) -> PlanDir {
    let plan = plan(dir);
    for values in [[1.0], [2.0]] {
        let writer = writer(&plan);
        fs::write(writer.raw_dir().join("stdout"), "x".repeat(100_000)).unwrap();
        writer.seal(results(&values)).unwrap();
    }
    drop(writer(&plan));
    plan
}

fn runs(home: &Home, plan: &PlanDir) -> usize {
    let plan = home.plan(plan.id).unwrap();
    let runs = plan.runs().unwrap().entries;
    assert!(
        runs.iter()
            .all(|run| run.open().unwrap().state() == State::Complete)
    );
    runs.len()
}

#[test]
fn a_new_plan_comes_with_its_sealed_runs_and_counts_as_finished() {
    let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = elsewhere(theirs.path());
    let home = Home::at(ours.path());
    // What an import that was cut has left is in nobody's way.
    fs::create_dir_all(ours.path().join(format!("plans/{}.tmp/runs/x", plan.id))).unwrap();
    let imported = home.import(&plan, None).unwrap();
    assert_eq!(
        (imported.new, imported.known, imported.incomplete.len()),
        (2, 0, 1)
    );
    assert_eq!(runs(&home, &plan), 2);
    let copy = home.plan(plan.id).unwrap();
    assert!(copy.is_finished() && !plan.is_finished());
    assert_eq!(copy.plan_bytes().unwrap(), plan.plan_bytes().unwrap());
    let again = home.import(&plan, None).unwrap();
    assert_eq!((again.new, again.known), (0, 2));
    assert_eq!(home.plans().unwrap().entries.len(), 1);
}

#[test]
fn single_runs_are_added_to_a_plan_that_is_here() {
    let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = elsewhere(theirs.path());
    let home = Home::at(ours.path());
    let ids: Vec<_> = plan
        .runs()
        .unwrap()
        .entries
        .iter()
        .map(|run| run.id)
        .collect();
    assert_eq!(home.import(&plan, Some(ids[0])).unwrap().new, 1);
    assert_eq!(runs(&home, &plan), 1);
    assert_eq!(home.import(&plan, Some(ids[1])).unwrap().new, 1);
    assert_eq!(runs(&home, &plan), 2);
}

#[test]
fn damaged_runs_and_other_contents_are_refused_and_nothing_is_listed() {
    let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = elsewhere(theirs.path());
    let home = Home::at(ours.path());
    let readings = plan.runs().unwrap().entries[0].path.join("readings.json");
    let whole = fs::read(&readings).unwrap();
    fs::write(&readings, "[]").unwrap();
    let refused = home.import(&plan, None);
    assert!(
        matches!(refused, Err(RundirError::Damaged { .. })),
        "{refused:?}"
    );
    assert!(home.plans().unwrap().entries.is_empty());
    fs::write(&readings, whole).unwrap();
    home.import(&plan, None).unwrap();
    let path = home.plan(plan.id).unwrap().path.join("plan.json");
    fs::write(&path, "{}").unwrap();
    let refused = home.import(&plan, None);
    assert!(
        matches!(refused, Err(RundirError::Differs { .. })),
        "{refused:?}"
    );
}
