//! Prints what the index costs: `cargo run --release -p kdyno-store --example index_cost`, in a file
//! or, with the address of a PostgreSQL database behind it, in the schema `index_cost` there.
//!
//! Selecting everything is done by a process of its own each time, since the most memory that a
//! process ever held is known only once.

#![expect(clippy::print_stdout, reason = "printing is its purpose")]

use kdyno_model::{
    Better, CaseId, CaseRef, ClockKind, MetricName, Origin, Outcome, PlanId, Role, RunId, RunRow,
    Scalar, Unit,
};
use kdyno_store::{Index, Place, RunFilter, Scalars, StoreError};
use std::error::Error;
use std::process::Command;
use std::time::{Duration, Instant};

const PLANS: u32 = 500;
const RUNS_PER_PLAN: u32 = 20;
const METRICS: u32 = 500;

/// Plans per transaction.
const BATCH: usize = 25;

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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("index.db").display().to_string();
    let words = match &arguments[..] {
        [words, scalars] => return select_everything(&place_of(words)?, scalars),
        [url] => url,
        _ => &file,
    };
    let place = place_of(words)?;
    let plans: Vec<PlanId> = (0..PLANS).map(|_| PlanId::new()).collect();
    fill(&place, &plans)?;
    for scalars in ["none", "headline", "all"] {
        let itself = std::env::current_exe()?;
        let status = Command::new(itself).arg(words).arg(scalars).status()?;
        if !status.success() {
            return Err(format!("selecting {scalars}: {status}").into());
        }
    }
    ask_little(&place, plans.get(250).copied().ok_or("too few plans")?)
}

/// A file's path, or the address of a database.
fn place_of(words: &str) -> Result<Place, StoreError> {
    if words.starts_with("postgres") {
        Place::postgres(words, "index_cost")
    } else {
        Ok(Place::File(words.into()))
    }
}

/// Creates the index and fills it, everything twice.
fn fill(place: &Place, plans: &[PlanId]) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let mut index = Index::replace(place)?;
    println!("create the index: {:?}", start.elapsed());
    let (mut first, mut second) = (Duration::ZERO, Duration::ZERO);
    let (mut added, mut again) = (0, 0);
    for batch in plans.chunks(BATCH) {
        let rows = batch
            .iter()
            .flat_map(|plan| (0..RUNS_PER_PLAN).map(|i| row(*plan, i)))
            .collect::<Result<Vec<RunRow>, _>>()?;
        let start = Instant::now();
        added += index.ingest(&rows)?;
        first += start.elapsed();
        let start = Instant::now();
        again += index.ingest(&rows)?;
        second += start.elapsed();
    }
    index.close()?;
    println!("ingest {added} runs x {METRICS} metrics: {first:?}");
    println!("ingest them again ({again} new): {second:?}");
    if let Place::File(path) = place {
        let size = std::fs::metadata(path)?.len();
        println!(
            "size: {} bytes per run",
            size / u64::from(PLANS * RUNS_PER_PLAN)
        );
    }
    Ok(())
}

/// Selects every run, with these of its numbers, and prints time and memory.
fn select_everything(place: &Place, scalars: &str) -> Result<(), Box<dyn Error>> {
    let filter = RunFilter {
        scalars: match scalars {
            "all" => Scalars::All,
            "headline" => Scalars::Headline,
            "none" => Scalars::None,
            other => return Err(format!("`{other}` is none of all, headline, none").into()),
        },
        ..RunFilter::default()
    };
    let mut index = Index::open(place)?;
    let before = peak_memory()?;
    let start = Instant::now();
    let rows = index.runs_select(&filter)?;
    let elapsed = start.elapsed();
    let numbers: usize = rows.iter().map(|row| row.scalars.len()).sum();
    println!(
        "select {} runs with {scalars} of their numbers ({numbers}): {elapsed:?}, peak {} (before: {before})",
        rows.len(),
        peak_memory()?
    );
    Ok(())
}

/// The most memory that this process ever held.
fn peak_memory() -> Result<String, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let mut lines = status.lines();
    let peak = lines.find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(peak.ok_or("no VmHWM")?.trim().to_owned())
}

/// Asks what most commands ask.
fn ask_little(place: &Place, plan: PlanId) -> Result<(), Box<dyn Error>> {
    let filter = RunFilter {
        plans: vec![plan],
        ..RunFilter::default()
    };
    let mut suffix = String::new();
    for _ in 0..3 {
        let start = Instant::now();
        let mut index = Index::open(place)?;
        let opened = start.elapsed();
        let runs = index.runs_select(&filter)?;
        println!(
            "open: {opened:?}, with selecting the {} runs of a plan: {:?}",
            runs.len(),
            start.elapsed()
        );
        suffix = runs
            .last()
            .map(|run| run.run_id.short())
            .unwrap_or_default();
    }
    let mut index = Index::open(place)?;
    for times in ["the first time", "once more"] {
        let start = Instant::now();
        index.runs_select(&filter)?;
        println!("select it {times}: {:?}", start.elapsed());
    }
    let start = Instant::now();
    let plans = index.plans_list()?.len();
    println!("list {plans} plans: {:?}", start.elapsed());
    let start = Instant::now();
    let found = index.run_by_id_suffix(&suffix)?.is_some();
    println!(
        "find a run by the end of its id ({found}): {:?}",
        start.elapsed()
    );
    Ok(())
}
