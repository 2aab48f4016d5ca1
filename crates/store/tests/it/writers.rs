//! Several at once.

use crate::sample::{row, scalar};
use kdyno_model::{PlanId, Role, RunRow};
use kdyno_store::{Index, RunFilter};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;

fn write_batches(path: &Path, batches: u32) -> usize {
    let mut index = Index::open(path).unwrap();
    let plan = PlanId::new();
    let batch = |n| {
        (0..20)
            .map(|i| row(plan, 20 * n + i))
            .collect::<Vec<RunRow>>()
    };
    (0..batches).map(|n| index.ingest(&batch(n)).unwrap()).sum()
}

#[test]
fn threads_that_create_and_fill_one_index_at_once_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index.db");
    let start = Barrier::new(6);
    let added: usize = thread::scope(|scope| {
        let work = || {
            start.wait();
            write_batches(&path, 10)
        };
        let writers: Vec<_> = (0..6).map(|_| scope.spawn(work)).collect();
        writers.into_iter().map(|w| w.join().unwrap()).sum()
    });
    assert_eq!(added, 1200);
    let mut index = Index::open(&path).unwrap();
    assert_eq!(
        index.runs_select(&RunFilter::default()).unwrap().len(),
        1200
    );
    assert_eq!(index.plans_list().unwrap().len(), 6);
}

#[test]
fn one_that_reads_while_another_adds_new_metrics_finds_whole_runs() {
    const RUNS: u32 = 300;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index.db");
    let mut reader = Index::open(&path).unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut index = Index::open(&path).unwrap();
            let plan = PlanId::new();
            for i in 0..RUNS {
                let mut row = row(plan, i);
                row.scalars = vec![scalar(&format!("m.{i}"), Role::Headline, 1.0)];
                index.ingest(&[row]).unwrap();
            }
        });
        loop {
            let done = writer.is_finished();
            let rows = reader.runs_select(&RunFilter::default()).unwrap();
            assert!(rows.iter().all(|row| row.scalars.len() == 1));
            if done {
                break assert_eq!(rows.len(), RUNS as usize);
            }
        }
    });
}

const CHILD_PATH: &str = "INDEX_TEST_PATH";

#[test]
#[ignore = "it is the child of the next test"]
fn child_that_writes() {
    let path = std::env::var_os(CHILD_PATH).unwrap();
    write_batches(Path::new(&path), 10);
}

#[test]
fn processes_that_write_at_once_lose_nothing_and_one_killed_leaves_whole_batches() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index.db");
    let child = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "writers::child_that_writes"])
            .env(CHILD_PATH, &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut kept = [child(), child()];
    let mut killed = child();
    while !path.exists() {
        thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(kept.iter_mut().all(|c| c.wait().unwrap().success()));
    let mut index = Index::open(&path).unwrap();
    let plans = index.plans_list().unwrap();
    assert!(plans.iter().filter(|p| p.runs == 200).count() >= 2);
    assert!(plans.iter().all(|p| p.runs.is_multiple_of(20)), "{plans:?}");
}
