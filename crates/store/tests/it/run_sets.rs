//! The noise memory.

use crate::engines::on_every_engine;
use crate::sample::row;
use kdyno_model::{
    BootId, CaseId, ClockKind, MetricName, PlanId, Residual, RunSet, SetFigure, Unit,
};
use kdyno_store::{Index, StoreError};

fn figure(metric: &str, variance: Option<f64>) -> SetFigure {
    SetFigure {
        metric: MetricName::new(metric).unwrap(),
        unit: Unit::new("KB/s"),
        logs: variance.is_some(),
        runs: 5,
        mean: 10.5,
        variance,
        residual: variance.map(|variance| Residual { variance, df: 2.0 }),
    }
}

fn set(plan: PlanId, start: i64) -> RunSet {
    RunSet {
        plan,
        testbox: "box-1".into(),
        case: CaseId::from("c1"),
        variant: "base".into(),
        kernel_release: "6.1.0".into(),
        build_id: None,
        boot_id: Some(BootId::from("boot-1")),
        clock: ClockKind::Wall,
        instrument: "usemem".into(),
        start_unix_ns: start,
        figures: vec![figure("a.x", Some(0.25)), figure("a.y", None)],
    }
}

fn of(index: &mut Index, not_of: &[PlanId], limit: u32) -> Vec<RunSet> {
    let case = CaseId::from("c1");
    index
        .run_sets_select("box-1", &case, not_of, limit)
        .unwrap()
}

#[test]
fn run_sets_come_back_newest_first_and_are_replaced_by_plan() {
    on_every_engine(|site| {
        let mut index = site.open();
        let (old, new) = (PlanId::new(), PlanId::new());
        let (first, second) = (set(old, 1), set(new, 2));
        let elsewhere = RunSet {
            testbox: "box-2".into(),
            ..set(new, 3)
        };
        index
            .run_sets_replace(old, std::slice::from_ref(&first))
            .unwrap();
        let of_new = [second.clone(), elsewhere];
        index.run_sets_replace(new, &of_new).unwrap();
        index.run_sets_replace(new, &of_new).unwrap();
        assert_eq!(of(&mut index, &[], 9), [second.clone(), first.clone()]);
        assert_eq!(of(&mut index, &[], 1), [second]);
        assert_eq!(of(&mut index, &[new], 9), [first]);
        index.run_sets_replace(new, &[]).unwrap();
        assert_eq!(of(&mut index, &[], 9).len(), 1);
    });
}

#[test]
fn an_index_of_before_is_to_be_filled_again() {
    on_every_engine(|site| {
        {
            let mut index = site.open();
            index.ingest(&[row(PlanId::new(), 0)]).unwrap();
            index.mark_filled().unwrap();
            index.close().unwrap();
        }
        site.sql(
            "DROP TABLE run_set; DROP TABLE figure_set; \
             DELETE FROM schema_version WHERE version = 2",
        );
        let mut index = site.open();
        assert_eq!(index.count().unwrap(), 1);
        assert!(!index.is_filled().unwrap());
        assert_eq!(of(&mut index, &[], 9), []);
        let plan = PlanId::new();
        let remembered = [set(plan, 1)];
        index.run_sets_replace(plan, &remembered).unwrap();
        assert_eq!(of(&mut index, &[], 9), remembered);
    });
}

#[test]
fn a_damaged_blob_is_corrupt() {
    on_every_engine(|site| {
        let plan = PlanId::new();
        let mut index = site.open();
        index.run_sets_replace(plan, &[set(plan, 1)]).unwrap();
        index.close().unwrap();
        site.sql(&format!(
            "UPDATE run_set SET figures = {}",
            site.bytes("0011")
        ));
        let mut index = site.open();
        let error = index
            .run_sets_select("box-1", &CaseId::from("c1"), &[], 9)
            .unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    });
}
