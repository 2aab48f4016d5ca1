use crate::fixture::{LATENCY, THROUGHPUT, case, interleaved, run, small_plan, with};
use kdyno_analyze::comparison::{Comparison, GroupKind, Row};
use kdyno_analyze::{CompareOptions, Diagnostics, MetricGlobs, compare};
use kdyno_model::{BootId, ClockKind, Outcome, PlanId, RunRow};
use kdyno_stats::Change;

fn row<'a>(comparison: &'a Comparison, metric: &str) -> &'a Row {
    let mut rows = comparison.tables.iter().flat_map(|table| table.rows());
    rows.find(|row| row.metric.as_str() == metric).expect("row")
}

fn all() -> CompareOptions {
    CompareOptions {
        diagnostics: Diagnostics::All,
        ..CompareOptions::default()
    }
}

fn names(comparison: &Comparison) -> Vec<&str> {
    let rows = comparison.tables.iter().flat_map(|table| table.rows());
    rows.map(|row| row.metric.as_str()).collect()
}

#[test]
fn warm_ups_and_failures_give_no_value() {
    let comparison = compare(&small_plan(), &all());
    let throughput = row(&comparison, "scan.throughput");
    let on = throughput.cells[1].as_ref().expect("cell");
    assert_eq!(on.values(), [56_800.0, 57_900.0, 56_100.0, 58_200.0]);
    let counts = &comparison.columns[1].counts;
    assert_eq!(
        (counts.runs, counts.warm_ups, counts.boots.len()),
        (4, 1, 1)
    );

    let failures = &comparison.tables[0].failures;
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].name, "outcome.out-of-memory");
    let shares: Vec<_> = failures[0]
        .cells
        .iter()
        .map(|c| (c.failed, c.runs, c.difference))
        .collect();
    assert_eq!(shares, [(0, 5, None), (1, 5, Some(20.0))]);
}

#[test]
fn the_first_column_is_the_base() {
    let runs = interleaved(
        THROUGHPUT,
        &[
            ("a", &[100.0, 100.0]),
            ("b", &[110.0, 110.0]),
            ("c", &[50.0, 50.0]),
        ],
    );
    let changes = |comparison: &Comparison| -> Vec<Option<Change>> {
        let row = row(comparison, "scan.throughput");
        row.cells
            .iter()
            .map(|cell| cell.as_ref().expect("cell").change)
            .collect()
    };
    let in_order = compare(&runs, &CompareOptions::default());
    assert_eq!(
        changes(&in_order),
        [
            None,
            Some(Change::Percent(10.0)),
            Some(Change::Percent(-50.0))
        ]
    );

    let options = CompareOptions {
        variants: vec!["c".into(), "a".into()],
        ..CompareOptions::default()
    };
    assert_eq!(
        changes(&compare(&runs, &options)),
        [None, Some(Change::Percent(100.0))]
    );
}

#[test]
fn shares_change_by_points_and_a_base_of_zero_by_difference() {
    let comparison = compare(&small_plan(), &all());
    let change = |metric: &str| {
        row(&comparison, metric).cells[1]
            .as_ref()
            .expect("cell")
            .change
    };
    assert_eq!(
        change("proc-vmstat.thp_split_page"),
        Some(Change::Absolute(7.0))
    );
    let Some(Change::Absolute(points)) = change("mpstat.cpu.all.idle%") else {
        panic!("a share changes by points");
    };
    assert!((points - 3.45).abs() < 1e-9);
}

#[test]
fn diagnostics_are_filtered_and_counted() {
    let comparison = compare(&small_plan(), &CompareOptions::default());
    assert_eq!(
        names(&comparison),
        [
            "scan.throughput",
            "scan.latency",
            "scan.rounds",
            "mpstat.cpu.all.idle%",
            "proc-vmstat.pgfault",
            "proc-vmstat.thp_split_page",
        ]
    );
    assert_eq!(comparison.tables[0].hidden, 1);
    let everything = compare(&small_plan(), &all());
    assert!(names(&everything).contains(&"vmstat.system.cs"));
    assert_eq!(everything.tables[0].hidden, 0);
}

#[test]
fn groups_with_fewer_moved_metrics_come_first() {
    let comparison = compare(&small_plan(), &all());
    let kinds: Vec<_> = comparison.tables[0]
        .groups
        .iter()
        .map(|g| g.kind.clone())
        .collect();
    let diagnostic = |name: &str| GroupKind::Diagnostic(name.to_owned());
    assert_eq!(
        kinds,
        [
            GroupKind::Headline,
            GroupKind::Program,
            diagnostic("vmstat"),
            diagnostic("mpstat"),
            diagnostic("proc-vmstat"),
        ]
    );
}

#[test]
fn named_metrics_are_shown_moved_or_not() {
    let options = CompareOptions {
        metrics: Some(MetricGlobs::new(&["vmstat.*", "*.rounds"]).expect("globs")),
        ..CompareOptions::default()
    };
    let comparison = compare(&small_plan(), &options);
    assert_eq!(names(&comparison), ["scan.rounds", "vmstat.system.cs"]);
}

fn refused(change_other: impl Fn(&mut RunRow)) -> Comparison {
    let mut runs = interleaved(THROUGHPUT, &[("a", &[1.0, 1.0]), ("b", &[9.0, 9.0])]);
    for run in runs.iter_mut().filter(|run| run.variant.as_str() == "b") {
        change_other(run);
    }
    compare(&runs, &CompareOptions::default())
}

#[test]
fn clocks_instruments_and_units_are_never_mixed() {
    let other_clock = refused(|run| run.clock = ClockKind::GuestWall);
    let other_instrument = refused(|run| run.instrument = "scan 2".to_owned());
    let other_unit = refused(|run| run.scalars[0].unit.0 = "MB/s".to_owned());
    for (comparison, word) in [
        (other_clock, "clock `guest-wall`"),
        (other_instrument, "instrument `scan 2`"),
        (other_unit, "unit `MB/s`"),
    ] {
        let row = row(&comparison, "scan.throughput");
        let cell = row.cells[1].as_ref().expect("its figures are shown");
        assert_eq!(
            (cell.change, cell.moved, cell.summary.mean),
            (None, false, 9.0)
        );
        assert!(
            row.notes.iter().any(|note| note.contains(word)),
            "{:?}",
            row.notes
        );
        assert_eq!(comparison.tables[0].notes, row.notes);
    }
}

#[test]
fn a_column_of_two_clocks_has_no_figure() {
    let mut runs = interleaved(THROUGHPUT, &[("a", &[1.0, 1.0]), ("b", &[9.0, 9.0])]);
    runs[0].clock = ClockKind::GuestInstructions;
    let comparison = compare(&runs, &CompareOptions::default());
    let row = row(&comparison, "scan.throughput");
    assert_eq!(row.cells[0], None);
    assert_eq!(row.cells[1].as_ref().expect("cell").change, None);
    assert!(
        row.notes[0].starts_with("runs of a have clock"),
        "{:?}",
        row.notes
    );
}

#[test]
fn missing_is_not_zero() {
    let mut runs = interleaved(THROUGHPUT, &[("a", &[4.0, 6.0]), ("b", &[5.0, 5.0])]);
    runs[0] = with(runs[0].clone(), &[(LATENCY, 3.0)]);
    let comparison = compare(&runs, &CompareOptions::default());
    let latency = row(&comparison, "scan.latency");
    assert_eq!(latency.cells[0].as_ref().expect("cell").values(), [3.0]);
    assert_eq!(latency.cells[1], None);
    assert_eq!(
        latency.notes,
        ["present in 1 of 2 runs of a", "no run of b has it"]
    );
}

#[test]
fn boots_are_counted_where_they_are_known() {
    let mut runs = interleaved(THROUGHPUT, &[("a", &[4.0, 6.0, 5.0]), ("b", &[5.0, 5.0])]);
    runs[0].boot_id = Some(BootId::from("boot-2"));
    for run in runs.iter_mut().filter(|run| run.variant.as_str() == "b") {
        run.boot_id = None;
    }
    let comparison = compare(&runs, &CompareOptions::default());
    let boots: Vec<usize> = comparison
        .columns
        .iter()
        .map(|c| c.counts.boots.len())
        .collect();
    assert_eq!(boots, [2, 0]);
}

#[test]
fn outcomes_that_blame_nobody_are_noted() {
    let mut runs = interleaved(THROUGHPUT, &[("a", &[4.0, 6.0]), ("b", &[5.0, 5.0])]);
    let mut lost = run(9, "b");
    lost.outcome = Outcome::Interrupted;
    runs.push(lost);
    let comparison = compare(&runs, &CompareOptions::default());
    assert_eq!(
        comparison.tables[0].notes,
        ["1 run of b not counted: interrupted"]
    );
    assert!(comparison.tables[0].failures.is_empty());
}

#[test]
fn each_case_and_testbox_has_its_table() {
    let mut runs = interleaved(
        THROUGHPUT,
        &[("a", &[4.0, 6.0, 5.0]), ("b", &[5.0, 5.0, 5.0])],
    );
    for run in &mut runs[2..4] {
        run.case = case("scan", "8G-anon");
    }
    for run in &mut runs[4..] {
        run.testbox = "box2".to_owned();
    }
    let comparison = compare(&runs, &CompareOptions::default());
    let names: Vec<String> = comparison.tables.iter().map(|table| table.name()).collect();
    assert_eq!(
        names,
        [
            "scan/4G-anon/box1",
            "scan/8G-anon/box1",
            "scan/4G-anon/box2"
        ]
    );
}

#[test]
fn values_stand_in_order_of_execution() {
    let mut runs = interleaved(THROUGHPUT, &[("a", &[1.0, 2.0, 3.0])]);
    runs.reverse();
    let comparison = compare(&runs, &CompareOptions::default());
    let cell = row(&comparison, "scan.throughput").cells[0]
        .clone()
        .expect("cell");
    assert_eq!(cell.values(), [1.0, 2.0, 3.0]);
}

#[test]
fn each_value_knows_its_run_boot_and_place_in_the_plan() {
    let mut runs = interleaved(THROUGHPUT, &[("a", &[1.0, 2.0]), ("b", &[5.0, 6.0])]);
    runs[3].boot_id = None;
    let newer = PlanId::parse("01890000-0000-7000-8000-00000000c003").expect("id");
    runs.push(with(run(0, "b"), &[(THROUGHPUT, 7.0)]));
    runs[4].plan = newer;
    let comparison = compare(&runs, &CompareOptions::default());
    let cell = row(&comparison, "scan.throughput").cells[1]
        .clone()
        .expect("cell");
    let table = &comparison.tables[0];
    let places: Vec<_> = cell
        .observations
        .iter()
        .map(|o| {
            let place = &table.runs[o.run as usize];
            (o.value, place.run, place.plan, place.block, place.order)
        })
        .collect();
    let expected = [(&runs[1], 5.0), (&runs[3], 6.0), (&runs[4], 7.0)]
        .map(|(run, value)| (value, run.run_id, run.plan, run.block, run.index));
    assert_eq!(places, expected);
    let boots: Vec<_> = cell
        .observations
        .iter()
        .map(|o| table.runs[o.run as usize].boot.clone())
        .collect();
    assert_eq!(
        boots,
        [
            Some(BootId::from("boot-1")),
            None,
            Some(BootId::from("boot-1"))
        ]
    );
    assert_eq!((cell.n(), cell.boots), (3, 1));
}

#[test]
fn plans_that_share_no_column_are_not_put_together() {
    let mut runs = interleaved(THROUGHPUT, &[("a", &[1.0, 2.0]), ("b", &[5.0, 6.0])]);
    for run in runs.iter_mut().filter(|run| run.variant.as_str() == "b") {
        run.plan = PlanId::parse("01890000-0000-7000-8000-00000000c003").expect("id");
    }
    assert!(compare(&runs, &CompareOptions::default()).notes.is_empty());
    runs[0].variant = "b".into();
    assert_eq!(
        compare(&runs, &CompareOptions::default()).notes,
        ["runs of 2 plans are put together"]
    );
}

#[test]
fn nothing_gives_an_empty_comparison() {
    let none: [RunRow; 0] = [];
    assert_eq!(
        compare(&none, &CompareOptions::default()),
        Comparison::default()
    );
}
