//! What is remembered of a plan, and what the memory says of it.

use crate::fixture::{IDLE, Kind, THROUGHPUT, case, run, with};
use kdyno_analyze::noise::{History, NoiseMemory, run_sets};
use kdyno_model::{
    BootId, ClockKind, MetricName, PlanId, Residual, RunRow, RunSet, SetFigure, Unit,
};

/// One run of a plan with one figure.
fn one(index: u32, variant: &str, block: u32, boot: &str, (kind, value): (Kind, f64)) -> RunRow {
    let mut row = with(run(index, variant), &[(kind, value)]);
    row.block = block;
    row.boot_id = Some(BootId::from(boot));
    row
}

fn memory_of(sets: Vec<RunSet>, (name, unit, ..): Kind, logs: bool) -> Option<History> {
    let metric = MetricName::new(name).expect("name");
    let basis = (ClockKind::Wall, "scan 1", unit);
    NoiseMemory::new(sets).of("box1", &case("scan", "4G-anon").id, &metric, basis, logs)
}

/// A plan that was resumed after a reboot has twice the sets, not twice the degrees of freedom.
#[test]
fn the_blocks_of_a_plan_count_once_whatever_its_boots() {
    let values = [
        100.0, 101.0, 99.0, 102.0, 98.0, 103.0, 97.0, 100.0, 101.0, 99.0,
    ];
    for boots in [1, 2, 5] {
        let rows: Vec<RunRow> = (0_u32..)
            .zip(values)
            .map(|(i, value)| {
                let boot = format!("boot-{}", i / 2 % boots);
                let variant = if i % 2 == 0 { "a" } else { "b" };
                one(i, variant, i / 2, &boot, (THROUGHPUT, value))
            })
            .collect();
        let sets = run_sets(&rows);
        let residuals = sets.iter().filter_map(|set| set.figures[0].residual);
        // Two variants in five blocks.
        let df: f64 = residuals.map(|residual| residual.df).sum();
        assert!((df - 4.0).abs() < 1e-12, "{boots} boots: {df}");
        let paired = memory_of(sets, THROUGHPUT, true).and_then(|history| history.paired);
        // One plan is worth half of what it measured.
        let df = paired.expect("a prior of pairs").df;
        assert!((df - 2.0).abs() < 1e-12, "{boots} boots: {df}");
    }
}

/// Three pairs of different variants are no three blocks of one table.
#[test]
fn blocks_that_lack_a_variant_are_left_out() {
    let pairs = [("a", "b"), ("a", "c"), ("b", "c")];
    let level = |variant: &str| match variant {
        "a" => 100.0,
        "b" => 200.0,
        _ => 400.0,
    };
    let mut rows = Vec::new();
    for (block, (first, second)) in (0_u32..).zip(pairs) {
        for (place, variant) in [(0, first), (1, second)] {
            let figure = (THROUGHPUT, level(variant));
            rows.push(one(2 * block + place, variant, block, "boot-1", figure));
        }
    }
    let sets = run_sets(&rows);
    assert_eq!(sets.len(), 3);
    for set in &sets {
        assert_eq!(set.figures[0].residual, None, "{}", set.variant);
    }
}

/// Boot means 12 (of two plans, three runs) and 21: variance 40.5, of which a variance of 2 within
/// explains 2 (1/3 + 1/2) / 2.
#[test]
fn boots_are_put_together_before_they_differ() {
    let mut sets = run_sets(&[
        one(0, "a", 0, "boot-1", (IDLE, 10.0)),
        one(1, "a", 1, "boot-1", (IDLE, 12.0)),
        one(2, "a", 2, "boot-2", (IDLE, 20.0)),
        one(3, "a", 3, "boot-2", (IDLE, 22.0)),
    ]);
    let mut later = one(4, "a", 0, "boot-1", (IDLE, 14.0));
    later.plan = PlanId::parse("01890000-0000-7000-8000-00000000b002").expect("id");
    sets.extend(run_sets(&[later]));
    assert_eq!(memory_of(sets.clone(), IDLE, true), None);
    let history = memory_of(sets.clone(), IDLE, false).expect("history");
    assert_eq!((history.sets, history.runs, history.boots), (3, 5, 2));
    let within = history.within.expect("a prior of runs");
    assert!((within.variance - 2.0).abs() < 1e-12 && (within.df - 1.0).abs() < 1e-12);
    let boots = history.between_boots.expect("two boots");
    assert!(
        (boots.variance - (40.5 - 5.0 / 6.0)).abs() < 1e-9,
        "{boots:?}"
    );
    assert!((boots.df - 1.0).abs() < 1e-12);
    assert_eq!(history.paired, None);
    // Another kernel is no boot of the same.
    for set in sets.iter_mut().skip(1) {
        set.kernel_release = format!("6.1.{}", set.start_unix_ns);
    }
    let history = memory_of(sets, IDLE, false).expect("history");
    assert_eq!(history.between_boots, None);
}

/// Four plans of one throughput whose variances seem to move, beside `others` whose variances
/// hardly do.
fn beside(others: usize, instrument_of_others: &str) -> Vec<RunSet> {
    let set = &run_sets(&[one(0, "a", 0, "boot-1", (THROUGHPUT, 100.0))])[0];
    let figure = |metric: &str, variance: f64| SetFigure {
        metric: MetricName::new(metric).expect("name"),
        unit: Unit::new("KB/s"),
        logs: true,
        runs: 5,
        mean: 1.0,
        variance: Some(variance),
        residual: Some(Residual { variance, df: 4.0 }),
    };
    let of_plan = |plan: &str, instrument: &str, figures: Vec<SetFigure>| RunSet {
        plan: PlanId::parse(&format!("01890000-0000-7000-8000-0000000000{plan}")).expect("id"),
        instrument: instrument.to_owned(),
        figures,
        ..set.clone()
    };
    let plans = [
        ("01", 1.0, 2.0),
        ("02", 0.3, 1.0),
        ("03", 2.5, 3.0),
        ("04", 1.6, 2.0),
    ];
    let mut sets = Vec::new();
    for (plan, own, of_others) in plans {
        sets.push(of_plan(plan, "scan 1", vec![figure(THROUGHPUT.0, own)]));
        let others = (0..others).map(|other| figure(&format!("other.{other}"), of_others));
        sets.push(of_plan(plan, instrument_of_others, others.collect()));
    }
    sets
}

/// Four variances that chance explains are believed when the other metrics do not move either;
/// those of another instrument are not asked.
#[test]
fn metrics_of_a_case_tell_together_how_much_variances_move() {
    let df = |sets: Vec<RunSet>| {
        let history = memory_of(sets, THROUGHPUT, true).expect("history");
        let (within, paired) = (
            history.within.expect("runs"),
            history.paired.expect("pairs"),
        );
        assert!(
            (paired.variance / within.variance - 2.0).abs() < 0.01,
            "{history:?}"
        );
        (within.df, paired.df)
    };
    let (within, paired) = df(beside(19, "scan 1"));
    assert!((within - 16.0).abs() < 1e-9 && (paired - 16.0).abs() < 1e-9);
    for too_few in [beside(18, "scan 1"), beside(40, "scan 2")] {
        let (within, paired) = df(too_few);
        assert!(within < 12.0 && paired < 12.0, "{within} {paired}");
    }
}

/// Eight sets of one plan say nothing of how variances move from plan to plan.
#[test]
fn the_sets_of_a_plan_are_one_variance() {
    let mut sets = beside(30, "scan 1");
    let plan = sets[0].plan;
    for set in &mut sets {
        set.plan = plan;
    }
    let within = memory_of(sets, THROUGHPUT, true).and_then(|history| history.within);
    let within = within.expect("a prior of runs");
    // Half of four times four.
    assert!((within.df - 8.0).abs() < 1e-12, "{within:?}");
    assert!((within.variance - 1.35).abs() < 1e-12, "{within:?}");
}

#[test]
fn warm_ups_and_failures_are_not_remembered() {
    let mut rows = vec![
        one(0, "a", 0, "boot-1", (THROUGHPUT, 1.0)),
        one(1, "a", 0, "boot-1", (THROUGHPUT, 2.0)),
        one(2, "a", 1, "boot-1", (THROUGHPUT, 100.0)),
    ];
    rows[0].warm_up = true;
    rows[1].outcome = kdyno_model::Outcome::OutOfMemory;
    let sets = run_sets(&rows);
    let figure = &sets[0].figures[0];
    assert_eq!((figure.runs, figure.variance), (1, None));
    assert!((figure.mean - 100.0_f64.ln()).abs() < 1e-12);
    assert_eq!(sets[0].start_unix_ns, 2);
    assert!(run_sets(&rows[..2]).is_empty());
}
