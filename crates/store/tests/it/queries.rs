use crate::engines::{Site, on_every_engine};
use crate::sample::{any_row, row, scalar, without_nul};
use kdyno_model::{FailReason, Outcome, PlanId, Role, RunId, RunRow, Stage};
use kdyno_store::{Index, Place, RunFilter, Scalars, StoreError};
use proptest::prelude::*;
use std::collections::HashSet;

fn in_new_index(work: impl Fn(&mut Index)) {
    on_every_engine(|site| {
        let mut index = site.open();
        assert!(!index.is_filled().unwrap());
        work(&mut index);
    });
}

/// The row as it comes back when only these figures are wanted.
fn reduced(row: &RunRow, scalars: Scalars) -> RunRow {
    let mut row = row.clone();
    row.scalars
        .retain(|s| scalars == Scalars::Headline && s.role == Role::Headline);
    row.rich.clear();
    row
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rows_come_back_as_they_went_in(rows in prop::collection::vec(any_row(), 1..8)) {
        on_every_engine(|site| rows_come_back(site, rows.clone()));
    }
}

fn rows_come_back(site: &Site, mut rows: Vec<RunRow>) {
    if site.is_postgres() {
        rows.iter_mut().for_each(without_nul);
    }
    let mut index = site.open();
    assert_eq!(index.ingest(&rows).unwrap(), rows.len());
    for row in &rows {
        let filter = RunFilter {
            runs: vec![row.run_id],
            ..RunFilter::default()
        };
        let read = index.runs_select(&filter).unwrap();
        assert_eq!(read, std::slice::from_ref(row));
        for scalars in [Scalars::Headline, Scalars::None] {
            let filter = RunFilter {
                scalars,
                ..filter.clone()
            };
            let read = index.runs_select(&filter).unwrap();
            assert_eq!(read, [reduced(row, scalars)]);
        }
    }
}

#[test]
fn a_file_may_have_a_name_that_an_address_would_read_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a ?mode=ro&#%41/index.db");
    Index::open(&Place::File(path.clone())).unwrap();
    assert!(path.exists());
}

#[test]
fn texts_are_ordered_by_their_bytes() {
    in_new_index(|index| {
        let plan = PlanId::new();
        let mut rows: Vec<RunRow> = (0..5).map(|i| row(plan, i)).collect();
        for (row, name) in rows.iter_mut().zip(["a b", "\u{c4}", "B", "a-a", "ab"]) {
            row.case.testcase = name.into();
        }
        for (kept, first) in [(0, "B"), (3, "a-a"), (4, "ab")] {
            index.ingest(&rows[kept..]).unwrap();
            assert_eq!(index.plans_list().unwrap()[0].testcase, first);
            let all: Vec<_> = rows.iter().map(|row| row.run_id).collect();
            index.runs_delete(&all).unwrap();
        }
    });
}

#[test]
fn the_same_runs_again_change_nothing() {
    in_new_index(|index| {
        let plan = PlanId::new();
        let mut rows: Vec<RunRow> = (0..5).map(|i| row(plan, i)).collect();
        assert_eq!(index.ingest(&rows[..3]).unwrap(), 3);
        assert_eq!(index.ingest(&rows).unwrap(), 2);
        let before = index.runs_select(&RunFilter::default()).unwrap();
        assert_eq!(before, rows);
        rows[0].testbox = "another".into();
        rows[0].scalars.push(scalar("x.y", Role::Headline, 1.0));
        let twice = [rows[0].clone(), rows[0].clone()];
        assert_eq!(index.ingest(&twice).unwrap(), 0);
        assert_eq!(index.runs_select(&RunFilter::default()).unwrap(), before);
        assert_eq!(index.count().unwrap(), 5);
        assert_eq!(index.ingest(&[]).unwrap(), 0);
    });
}

#[test]
fn a_filter_selects_by_every_condition() {
    in_new_index(|index| {
        let (old, new) = (PlanId::new(), PlanId::new());
        let mut rows: Vec<RunRow> = (0..6).map(|i| row(old, i)).collect();
        rows.extend((0..6).map(|i| row(new, i)));
        rows[11].testbox = "box-2".into();
        rows[10].case.testcase = "o'clock; DROP TABLE run".into();
        rows[0].start_unix_ns = i64::MAX;
        index.ingest(&rows).unwrap();
        let mut select = |filter: RunFilter| index.runs_select(&filter).unwrap();

        let all = RunFilter::default;
        assert_eq!(select(all()), rows);
        assert_eq!(
            select(RunFilter {
                plans: vec![new],
                ..all()
            }),
            &rows[6..]
        );
        let heads = RunFilter {
            plans: vec![old],
            variants: vec!["head".into()],
            ..all()
        };
        assert_eq!(
            select(heads).iter().map(|r| r.index).collect::<Vec<_>>(),
            [1, 3, 5]
        );
        let boxes = RunFilter {
            testboxes: vec!["box-2".into(), "none".into()],
            ..all()
        };
        assert_eq!(select(boxes), &rows[11..]);
        let testcase = Some(rows[10].case.testcase.clone());
        assert_eq!(select(RunFilter { testcase, ..all() }), &rows[10..11]);
        let newest = RunFilter {
            newest_first: true,
            limit: Some(2),
            ..all()
        };
        assert_eq!(select(newest), [rows[0].clone(), rows[11].clone()]);
        let named = vec![rows[7].run_id, rows[2].run_id];
        let named = select(RunFilter {
            runs: named,
            ..all()
        });
        assert_eq!(named, [rows[2].clone(), rows[7].clone()]);
        assert_eq!(
            select(RunFilter {
                limit: Some(0),
                ..all()
            }),
            []
        );
        let nothing = RunFilter {
            plans: vec![old],
            testboxes: vec!["box-2".into()],
            ..all()
        };
        assert_eq!(select(nothing), []);
    });
}

#[test]
fn a_selection_that_is_too_long_is_refused_and_a_long_one_is_not() {
    in_new_index(|index| {
        let mut filter = RunFilter {
            testcase: Some("x".into()),
            limit: Some(1),
            runs: (0..29_998).map(|_| RunId::new()).collect(),
            ..RunFilter::default()
        };
        assert_eq!(index.runs_select(&filter).unwrap(), []);
        filter.runs.push(RunId::new());
        let error = index.runs_select(&filter).unwrap_err();
        assert!(matches!(
            error,
            StoreError::FilterTooLong { given: 29_999, .. }
        ));
    });
}

#[test]
fn plans_are_summed_up_newest_first() {
    in_new_index(|index| {
        assert_eq!(index.plan_newest().unwrap(), None);
        assert_eq!(index.plans_list().unwrap(), []);
        let (old, new) = (PlanId::new(), PlanId::new());
        let mut rows: Vec<RunRow> = (0..4).map(|i| row(new, i)).collect();
        rows[1].outcome = Outcome::OutOfMemory;
        rows[2].outcome = Outcome::Failed {
            stage: Stage::Test,
            reason: FailReason::NoMetric,
        };
        rows[3].outcome = Outcome::Incomplete;
        rows[3].case.id = "c2".into();
        rows.push(row(old, 0));
        index.ingest(&rows).unwrap();
        assert_eq!(index.plan_newest().unwrap(), Some(new));
        let plans = index.plans_list().unwrap();
        assert_eq!([plans[0].plan, plans[1].plan], [new, old]);
        let first = &plans[0];
        assert_eq!((first.runs, first.done, first.failed), (4, 1, 2));
        assert_eq!((first.cases, first.variants, first.testboxes), (2, 2, 1));
        assert_eq!(first.testcase, "vm-scalability");
        assert_eq!(first.last_start_unix_ns - first.start_unix_ns, 3);
        index
            .runs_delete(&rows.iter().map(|row| row.run_id).collect::<Vec<_>>())
            .unwrap();
        assert_eq!(index.count().unwrap(), 0);
        assert_eq!(index.ingest(&rows).unwrap(), 5);
    });
}

#[test]
fn the_ids_of_a_plan_are_its_runs_and_no_others() {
    in_new_index(|index| {
        let (one, other) = (PlanId::new(), PlanId::new());
        let rows: Vec<RunRow> = (0..3).map(|i| row(one, i)).collect();
        index.ingest(&rows).unwrap();
        index.ingest(&[row(other, 0)]).unwrap();
        let expected: HashSet<RunId> = rows.iter().map(|row| row.run_id).collect();
        assert_eq!(index.run_ids(one).unwrap(), expected);
        assert_eq!(index.run_ids(PlanId::new()).unwrap(), HashSet::new());
    });
}

#[test]
fn numbers_that_are_not_wanted_are_not_read() {
    on_every_engine(|site| {
        let mut index = site.open();
        index.ingest(&[row(PlanId::new(), 0)]).unwrap();
        index.close().unwrap();
        // Whoever looks at these finds damage.
        site.sql(&format!("UPDATE run SET scalars = {}", site.bytes("00")));
        let mut index = site.open();
        let mut select = |scalars| {
            index.runs_select(&RunFilter {
                scalars,
                ..RunFilter::default()
            })
        };
        assert_eq!(select(Scalars::None).unwrap().len(), 1);
        for scalars in [Scalars::All, Scalars::Headline] {
            let error = select(scalars).unwrap_err();
            assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
        }
    });
}

#[test]
fn it_is_filled_from_the_mark_on_whoever_opens_it() {
    on_every_engine(|site| {
        let reopened = || site.open().is_filled().unwrap();
        let mut index = site.open();
        index.ingest(&[row(PlanId::new(), 0)]).unwrap();
        // A process that is killed here has filled some of it.
        drop(index);
        assert!(!reopened());
        let mut index = site.open();
        index.mark_filled().unwrap();
        index.mark_filled().unwrap();
        assert!(index.is_filled().unwrap() && reopened());
    });
}

#[test]
fn one_that_is_replaced_is_empty() {
    on_every_engine(|site| {
        let mut index = site.open();
        index.ingest(&[row(PlanId::new(), 0)]).unwrap();
        index.mark_filled().unwrap();
        drop(index);
        let mut index = Index::replace(&site.place()).unwrap();
        assert_eq!(index.count().unwrap(), 0);
        assert!(!index.is_filled().unwrap());
    });
}

#[test]
fn one_that_another_has_made_anew_says_so_and_goes_on_with_the_new_one() {
    on_every_engine(|site| {
        let mut index = site.open();
        assert!(!index.is_replaced().unwrap());
        site.open().ingest(&[row(PlanId::new(), 0)]).unwrap();
        assert!(!index.is_replaced().unwrap());
        Index::replace(&site.place()).unwrap();
        assert!(index.is_replaced().unwrap());
        assert_eq!(index.ingest(&[row(PlanId::new(), 0)]).unwrap(), 1);
        let mut other = site.open();
        assert!(!other.is_replaced().unwrap());
        assert_eq!(other.count().unwrap(), 1);
    });
}

#[test]
fn a_run_is_found_by_the_end_of_its_id() {
    in_new_index(|index| {
        let id = |text| RunId::parse(text).unwrap();
        let mut rows = [row(PlanId::new(), 0), row(PlanId::new(), 1)];
        rows[0].run_id = id("01890000-0000-7000-8000-00000000aa01");
        rows[1].run_id = id("01890000-0000-7000-8000-10000000aa01");
        index.ingest(&rows).unwrap();
        let mut find = |suffix: &str| index.run_by_id_suffix(suffix);
        assert!(matches!(find("aa01"), Err(StoreError::Ambiguous { .. })));
        assert_eq!(find("0-10000000AA01").unwrap().as_ref(), Some(&rows[1]));
        assert_eq!(
            find(&rows[0].run_id.to_string()).unwrap().as_ref(),
            Some(&rows[0])
        );
        for absent in ["aa02", "%", "_a01", "xyz", "'"] {
            assert_eq!(find(absent).unwrap(), None, "{absent}");
        }
    });
}

#[test]
fn headline_figures_are_there_for_plain_sql() {
    on_every_engine(|site| {
        let mut index = site.open();
        let mut row = row(PlanId::new(), 0);
        row.scalars = (0..14)
            .map(|i| scalar(&format!("m.{i:02}"), Role::Headline, f64::from(i)))
            .chain([scalar("d.x", Role::Diagnostic, 1.0)])
            .collect();
        index.ingest(&[row]).unwrap();
        index.close().unwrap();
        let rows = site.sql("SELECT metric, value FROM kpi_point ORDER BY metric");
        assert_eq!(rows.len(), 10);
        assert_eq!(rows[9], "m.09");
    });
}
