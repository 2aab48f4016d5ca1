use crate::sample::{plan, results, trial, writer};
use kdyno_model::{PlanId, RunId};
use kdyno_rundir::{Home, RundirError, State};
use std::collections::HashSet;
use std::error::Error;
use std::fs;

#[test]
fn plans_are_listed_newest_first_and_strange_names_are_noted() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path().join("home"));
    assert!(home.plans().unwrap().entries.is_empty());
    let made: Vec<PlanId> = (0..3)
        .map(|_| home.create_plan(PlanId::new(), b"p", None).unwrap().id)
        .collect();
    let plans = home.path().join("plans");
    fs::create_dir(plans.join("notes")).unwrap();
    fs::create_dir(plans.join(made[0].to_string().replace('-', ""))).unwrap();
    fs::write(plans.join(PlanId::new().to_string()), "a file").unwrap();
    let listing = home.plans().unwrap();
    let ids: Vec<PlanId> = listing.entries.iter().map(|p| p.id).rev().collect();
    assert_eq!(ids, made);
    assert_eq!(listing.notes.len(), 3, "{:?}", listing.notes);
}

#[test]
fn a_plan_is_written_once() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(dir.path());
    let home = Home::at(dir.path());
    let again = home.create_plan(plan.id, b"other", None);
    assert!(matches!(again, Err(RundirError::Exists { .. })));
    assert_eq!(home.plan(plan.id).unwrap().plan_bytes().unwrap(), b"{}\n");
    assert_eq!(plan.job_source().unwrap().unwrap(), b"testcase: x\n");
    let absent = home.plan(PlanId::new());
    assert!(matches!(absent, Err(RundirError::NotFound { .. })));
    assert!(!plan.is_finished());
    plan.mark_finished().unwrap();
    plan.mark_finished().unwrap();
    assert!(plan.is_finished());
}

#[test]
fn a_run_is_written_once() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(dir.path());
    let id = RunId::new();
    let first = plan.create_run(id, None, &trial(plan.id)).unwrap();
    let second = plan.create_run(id, None, &trial(plan.id));
    assert!(matches!(second, Err(RundirError::Exists { .. })));
    assert_eq!(first.seal(results(&[1.0])).unwrap().run_id, id);
}

#[test]
fn a_damaged_or_unfinished_run_does_not_hide_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(dir.path());
    for _ in 0..3 {
        writer(&plan).seal(results(&[1.0])).unwrap();
    }
    drop(writer(&plan));
    let runs = plan.runs().unwrap().entries;
    fs::write(runs[1].path.join("record.json"), "{").unwrap();
    let states: Vec<State> = runs.iter().map(|run| run.open().unwrap().state()).collect();
    assert!(
        matches!(
            states[..],
            [
                State::Complete,
                State::Damaged(_),
                State::Complete,
                State::Incomplete(_)
            ]
        ),
        "{states:?}"
    );
}

#[test]
fn an_error_says_its_cause_once_along_its_chain() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plans");
    fs::write(&path, "a file").unwrap();
    let error = Home::at(dir.path()).plans().unwrap_err();
    let cause = error.source().unwrap().to_string();
    assert!(cause.starts_with("Not a directory"), "{cause}");
    assert_eq!(
        error.to_string(),
        format!("{}: cannot list", path.display())
    );
}

#[test]
fn a_home_has_one_id_whoever_asks_first_and_keeps_it() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path().join("home"));
    let ids: HashSet<_> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..8).map(|_| scope.spawn(|| home.id().unwrap())).collect();
        asking.into_iter().map(|a| a.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 1);
    let names = fs::read_dir(home.path()).unwrap();
    assert_eq!(names.count(), 1, "nothing unfinished is left");
    let moved = dir.path().join("moved");
    fs::rename(home.path(), &moved).unwrap();
    assert!(ids.contains(&Home::at(&moved).id().unwrap()));
    fs::write(moved.join("index-id"), "x\n").unwrap();
    let error = Home::at(&moved).id().unwrap_err();
    assert!(matches!(error, RundirError::Content { .. }), "{error}");
    assert_ne!(
        Home::at(home.path()).id().unwrap(),
        *ids.iter().next().unwrap()
    );
}
