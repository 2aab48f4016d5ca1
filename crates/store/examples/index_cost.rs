//! Prints what the index costs: `cargo run --release -p kdyno-store --example index_cost`.

#![expect(clippy::print_stdout, reason = "printing is its purpose")]

use kdyno_model::{
    Better, CaseId, CaseRef, ClockKind, MetricName, Origin, Outcome, PlanId, Role, RunId, RunRow,
    Scalar, Unit,
};
use kdyno_store::{Index, RunFilter};
use std::error::Error;
use std::time::Instant;

const PLANS: u32 = 500;
const RUNS_PER_PLAN: u32 = 20;
const METRICS: u32 = 200;

fn row(plan: PlanId, index: u32) -> Result<RunRow, Box<dyn Error>> {
    let scalar = |i: u32| -> Result<Scalar, Box<dyn Error>> {
        Ok(Scalar {
            metric: MetricName::new(format!("proc-vmstat.metric_{i}"))?,
            unit: Unit::new("KB/s"),
            better: Better::Higher,
            role: if i < 3 {
                Role::Headline
            } else {
                Role::Diagnostic
            },
            value: f64::from(i) * 1.1 + f64::from(index),
        })
    };
    Ok(RunRow {
        run_id: RunId::new(),
        origin: Origin::Measured,
        plan,
        index,
        block: index / 2,
        order: index % 2,
        case: CaseRef {
            testcase: "vm-scalability".into(),
            params: "performance-300s-8T-anon-cow-seq-hugetlb".into(),
            id: CaseId("0123456789abcdef".repeat(4)),
        },
        variant: if index.is_multiple_of(2) {
            "base"
        } else {
            "head"
        }
        .into(),
        testbox: "box-1".into(),
        iteration: index / 2,
        warm_up: false,
        build_id: None,
        boot_id: Some("b7e2c2b0-6a0b-4d0e-9f2b-0d6c2f5f6f11".into()),
        session: None,
        kernel_release: "6.12.0-rc1".into(),
        start_unix_ns: 1_700_000_000_000_000_000 + i64::from(index),
        window_ns: 300_000_000_000,
        clock: ClockKind::Wall,
        instrument: "usemem".into(),
        outcome: Outcome::Done,
        scalars: (0..METRICS).map(scalar).collect::<Result<_, _>>()?,
        rich: Vec::new(),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("index.db");
    let plans: Vec<PlanId> = (0..PLANS).map(|_| PlanId::new()).collect();
    let rows = plans
        .iter()
        .flat_map(|plan| (0..RUNS_PER_PLAN).map(|i| row(*plan, i)))
        .collect::<Result<Vec<RunRow>, _>>()?;

    let start = Instant::now();
    let mut index = Index::open(&path)?;
    println!("create the index: {:?}", start.elapsed());
    let start = Instant::now();
    let added = index.ingest(&rows)?;
    println!(
        "ingest {added} runs x {METRICS} metrics: {:?}",
        start.elapsed()
    );
    let start = Instant::now();
    let again = index.ingest(&rows)?;
    println!("ingest them again ({again} new): {:?}", start.elapsed());
    index.close()?;
    println!(
        "size: {} bytes per run",
        std::fs::metadata(&path)?.len() / u64::from(PLANS * RUNS_PER_PLAN)
    );

    let filter = RunFilter {
        plans: plans.get(250).copied().into_iter().collect(),
        ..RunFilter::default()
    };
    for _ in 0..3 {
        let start = Instant::now();
        let mut index = Index::open(&path)?;
        let opened = start.elapsed();
        let runs = index.runs_select(&filter)?.len();
        println!(
            "open: {opened:?}, with selecting the {runs} runs of a plan: {:?}",
            start.elapsed()
        );
    }
    let mut index = Index::open(&path)?;
    let start = Instant::now();
    index.runs_select(&filter)?;
    println!("select the first time: {:?}", start.elapsed());
    let start = Instant::now();
    index.runs_select(&filter)?;
    println!("select it once more: {:?}", start.elapsed());
    let start = Instant::now();
    let plans = index.plans_list()?.len();
    println!("list {plans} plans: {:?}", start.elapsed());
    let suffix = rows
        .get(777)
        .map(|row| row.run_id.short())
        .unwrap_or_default();
    let start = Instant::now();
    let found = index.run_by_id_suffix(&suffix)?.is_some();
    println!(
        "find a run by the end of its id ({found}): {:?}",
        start.elapsed()
    );
    Ok(())
}
