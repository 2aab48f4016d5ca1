//! Made-up runs.

use kdyno_model::{
    Better, BootId, CaseId, CaseRef, ClockKind, MetricName, Origin, Outcome, PlanId, Role, RunId,
    RunRow, Scalar, Unit,
};

pub const PLAN: &str = "01890000-0000-7000-8000-00000000a001";

/// A finished run of `scan/4G-anon` on `box1`, without figures.
pub fn run(index: u32, variant: &str) -> RunRow {
    RunRow {
        run_id: RunId::parse(&format!("01890000-0000-7000-8000-0000{index:08x}")).expect("id"),
        origin: Origin::Measured,
        plan: PlanId::parse(PLAN).expect("id"),
        index,
        block: index / 2,
        order: index % 2,
        case: case("scan", "4G-anon"),
        variant: variant.into(),
        testbox: "box1".to_owned(),
        iteration: index,
        warm_up: false,
        build_id: None,
        boot_id: Some(BootId::from("boot-1")),
        session: None,
        kernel_release: "6.1.0".to_owned(),
        start_unix_ns: i64::from(index),
        window_ns: 1_000_000_000,
        clock: ClockKind::Wall,
        instrument: "scan 1".to_owned(),
        outcome: Outcome::Done,
        scalars: Vec::new(),
        rich: Vec::new(),
    }
}

pub fn case(testcase: &str, params: &str) -> CaseRef {
    CaseRef {
        testcase: testcase.to_owned(),
        params: params.to_owned(),
        id: CaseId(format!("{testcase}-{params}")),
    }
}

/// Name, unit, direction and role of a metric.
pub type Kind = (&'static str, &'static str, Better, Role);

pub const THROUGHPUT: Kind = ("scan.throughput", "KB/s", Better::Higher, Role::Headline);
pub const LATENCY: Kind = ("scan.latency", "us", Better::Lower, Role::Headline);
pub const ROUNDS: Kind = ("scan.rounds", "", Better::Neither, Role::Program);
pub const FAULTS: Kind = ("proc-vmstat.pgfault", "", Better::Neither, Role::Diagnostic);
pub const SPLITS: Kind = (
    "proc-vmstat.thp_split_page",
    "",
    Better::Neither,
    Role::Diagnostic,
);
pub const IDLE: Kind = (
    "mpstat.cpu.all.idle%",
    "%",
    Better::Neither,
    Role::Diagnostic,
);
pub const SWITCHES: Kind = ("vmstat.system.cs", "", Better::Neither, Role::Diagnostic);

pub fn with(mut run: RunRow, figures: &[(Kind, f64)]) -> RunRow {
    for ((name, unit, better, role), value) in figures {
        run.scalars.push(Scalar {
            metric: MetricName::new(*name).expect("name"),
            unit: Unit::new(unit),
            better: *better,
            role: *role,
            value: *value,
        });
    }
    run
}

/// Runs of variants in turn: `values[i]` holds the figures of one variant's runs.
pub fn interleaved(kind: Kind, variants: &[(&str, &[f64])]) -> Vec<RunRow> {
    let longest = variants
        .iter()
        .map(|(_, values)| values.len())
        .max()
        .unwrap_or(0);
    let mut runs = Vec::new();
    for iteration in 0..longest {
        for (name, values) in variants {
            if let Some(value) = values.get(iteration) {
                let index = u32::try_from(runs.len()).expect("few runs");
                runs.push(with(run(index, name), &[(kind, *value)]));
            }
        }
    }
    runs
}

/// A plan of two variants, five runs each, with warm-ups, a failure and diagnostics.
pub fn small_plan() -> Vec<RunRow> {
    let off = [43_100.0, 43_900.0, 43_200.0, 43_700.0, 43_070.0];
    let on = [56_800.0, 57_900.0, 56_100.0, 58_200.0];
    let mut runs = Vec::new();
    for (index, variant) in [(0, "thp-off"), (1, "thp-on")] {
        let mut warm_up = with(run(index, variant), &[(THROUGHPUT, 1.0)]);
        warm_up.warm_up = true;
        runs.push(warm_up);
    }
    for (i, throughput) in (0_u32..).zip(off) {
        runs.push(with(
            run(2 + 2 * i, "thp-off"),
            &figures(throughput, i, 0.0),
        ));
    }
    for (i, throughput) in (0_u32..).zip(on) {
        runs.push(with(run(3 + 2 * i, "thp-on"), &figures(throughput, i, 7.0)));
    }
    let mut failed = run(11, "thp-on");
    failed.outcome = Outcome::OutOfMemory;
    runs.push(failed);
    runs
}

fn figures(throughput: f64, i: u32, splits: f64) -> Vec<(Kind, f64)> {
    let i = f64::from(i);
    vec![
        (THROUGHPUT, throughput),
        (LATENCY, 0.25 + 0.01 * i),
        (ROUNDS, 12.0),
        (FAULTS, 1.5e9 - 2e8 * splits - 1e6 * i),
        (SPLITS, splits),
        (IDLE, 23.0 + splits / 2.0 + 0.1 * i),
        (SWITCHES, 5000.0 + 400.0 * (i - 2.0)),
    ]
}
