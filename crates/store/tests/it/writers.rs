//! Several at once.

use crate::engines::{on_every_engine, place_of};
use crate::sample::{row, scalar};
use kdyno_model::{PlanId, Role, RunRow};
use kdyno_store::{Index, Place, RunFilter};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;

fn write_batches(place: &Place, batches: u32) -> usize {
    let mut index = Index::open(place).unwrap();
    let plan = PlanId::new();
    let batch = |n| {
        (0..20)
            .map(|i| row(plan, 20 * n + i))
            .collect::<Vec<RunRow>>()
    };
    (0..batches).map(|n| index.ingest(&batch(n)).unwrap()).sum()
}

/// Six that create and fill one index at once.
pub fn lose_nothing(place: &Place) {
    let start = Barrier::new(6);
    let added: usize = thread::scope(|scope| {
        let work = || {
            start.wait();
            write_batches(place, 10)
        };
        let writers: Vec<_> = (0..6).map(|_| scope.spawn(work)).collect();
        writers.into_iter().map(|w| w.join().unwrap()).sum()
    });
    assert_eq!(added, 1200);
    let mut index = Index::open(place).unwrap();
    assert_eq!(
        index.runs_select(&RunFilter::default()).unwrap().len(),
        1200
    );
    assert_eq!(index.plans_list().unwrap().len(), 6);
}

#[test]
fn threads_that_create_and_fill_one_index_at_once_lose_nothing() {
    on_every_engine(|site| lose_nothing(&site.place()));
}

#[test]
fn one_that_reads_while_another_adds_new_metrics_finds_whole_runs() {
    const RUNS: u32 = 300;
    on_every_engine(|site| {
        let mut reader = site.open();
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut index = site.open();
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
    });
}

/// The words of the child's place, one a line.
const CHILD_PLACE: &str = "INDEX_TEST_PLACE";

#[test]
#[ignore = "it is the child of the next test"]
fn child_that_writes() {
    let words = std::env::var(CHILD_PLACE).unwrap();
    let words: Vec<String> = words.lines().map(str::to_owned).collect();
    write_batches(&place_of(&words), 10);
}

#[test]
fn processes_that_write_at_once_lose_nothing_and_one_killed_leaves_whole_batches() {
    on_every_engine(|site| {
        let child = || {
            Command::new(std::env::current_exe().unwrap())
                .args(["--ignored", "--exact", "writers::child_that_writes"])
                .env(CHILD_PLACE, site.words().join("\n"))
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        };
        let mut kept = [child(), child()];
        let mut killed = child();
        while !site.exists() {
            thread::yield_now();
        }
        killed.kill().unwrap();
        killed.wait().unwrap();
        assert!(kept.iter_mut().all(|c| c.wait().unwrap().success()));
        let mut index = site.open();
        let plans = index.plans_list().unwrap();
        assert!(plans.iter().filter(|p| p.runs == 200).count() >= 2);
        assert!(plans.iter().all(|p| p.runs.is_multiple_of(20)), "{plans:?}");
    });
}
