//! kill -9 at random moments, of kdyno, of its guardian, of both.

use crate::bench::{Bench, machine_turn, settings_now, wait_until};
use std::collections::{BTreeSet, HashMap};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const JOB: &str = "\
testcase: t
command: 'sleep 0.05; echo value: 1'
runs: 12
thp: {defrag: never}
variants:
  low: {sysctl: {vm.swappiness: 21}, nr_hugepages: 4}
  high: {sysctl: {vm.swappiness: 81}, nr_hugepages: 8}
";
const TRIALS: u64 = 26;

/// A generator for moments; the seed is printed so that a failure can be looked at again.
struct Moments(u64);

impl Moments {
    fn new() -> Self {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let seed = since.as_nanos() as u64 | 1;
        eprintln!("seed of the moments: {seed}");
        Self(seed)
    }

    /// Marsaglia's xorshift64.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn start(bench: &Bench, words: &[&str]) -> Child {
    bench
        .command(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("kdyno starts")
}

fn trial_of(run: &std::path::Path) -> u64 {
    let text = std::fs::read_to_string(run.join("trial.json")).expect("a trial");
    let trial: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    trial["index"].as_u64().expect("an index")
}

#[track_caller]
fn is_back_within_a_second(before: &str) {
    let begun = Instant::now();
    while settings_now() != before {
        assert!(
            begun.elapsed() < Duration::from_secs(1),
            "still changed:\n{}",
            settings_now()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn root_twenty_kills_lose_no_run_and_leave_no_setting() {
    let Some(_turn) = machine_turn("root_twenty_kills_lose_no_run_and_leave_no_setting") else {
        return;
    };
    let bench = Bench::new();
    let job = bench.file("job.yaml", JOB);
    let before = settings_now();
    let mut moments = Moments::new();
    let mut kept: BTreeSet<std::path::PathBuf> = BTreeSet::new();
    for kill in 0..20 {
        let fresh = bench.run_dirs().is_empty();
        let words: &[&str] = if fresh {
            &["run", "--no-doctor", &job]
        } else {
            &["run", "--no-doctor", "--resume"]
        };
        let mut child = start(&bench, words);
        std::thread::sleep(Duration::from_millis(moments.below(250)));
        child.kill().expect("kill -9");
        let status = child.wait().expect("it ended");
        is_back_within_a_second(&before);
        let now: BTreeSet<_> = bench.sealed().into_iter().collect();
        assert!(kept.is_subset(&now), "kill {kill} lost a finished run");
        kept = now;
        if status.success() && !fresh {
            break;
        }
    }
    if bench.run_dirs().is_empty() {
        bench.kdyno(&["run", &job]).ok();
    }
    bench.kdyno(&["run", "--resume"]).ok();
    is_back_within_a_second(&before);
    let mut times: HashMap<u64, usize> = HashMap::new();
    for run in bench.sealed() {
        *times.entry(trial_of(&run)).or_default() += 1;
    }
    let once: BTreeSet<u64> = times
        .iter()
        .filter(|(_, n)| **n == 1)
        .map(|(trial, _)| *trial)
        .collect();
    assert_eq!(
        once,
        (0..TRIALS).collect(),
        "each planned trial exactly once: {times:?}"
    );
    assert_eq!(bench.listed().len() as u64, TRIALS);
}

#[test]
fn root_when_the_guardian_dies_too_the_next_start_and_restore_put_things_back() {
    let Some(_turn) = machine_turn("root_when_the_guardian_dies_too") else {
        return;
    };
    let before = settings_now();
    for last_resort in [&["restore"][..], &["run", "-n", "1", "true"]] {
        let bench = Bench::new();
        let job = bench.file(
            "job.yaml",
            "testcase: t\ncommand: 'sleep 54321'\nsysctl: {vm.swappiness: 22}\nruns: 1\n",
        );
        let mut child = start(&bench, &["run", &job]);
        wait_until(|| settings_now() != before);
        for guardian in guardians_of(&bench) {
            assert!(
                std::process::Command::new("kill")
                    .args(["-9", &guardian])
                    .status()
                    .unwrap()
                    .success()
            );
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_ne!(settings_now(), before, "nobody was left to put it back");
        bench.kdyno(last_resort).ok();
        assert_eq!(settings_now(), before, "after {last_resort:?}");
        assert_eq!(processes_with(&bench, "54321"), Vec::<String>::new());
    }
}

fn guardians_of(bench: &Bench) -> Vec<String> {
    processes_with(bench, "guardian")
}

/// Processes that have `word` in their arguments and this bench's home in their environment.
fn processes_with(bench: &Bench, word: &str) -> Vec<String> {
    let home = format!("KDYNO_HOME={}", bench.home().display());
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|pid| pid.bytes().all(|b| b.is_ascii_digit()))
        .filter(|pid| {
            let read = |file: &str| {
                String::from_utf8_lossy(
                    &std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default(),
                )
                .into_owned()
            };
            read("cmdline").split('\0').any(|argument| argument == word)
                && read("environ").split('\0').any(|v| v == home)
        })
        .collect()
}

#[test]
fn a_killed_run_leaves_no_process_and_its_plan_resumes() {
    let bench = Bench::new();
    let job = bench.file("job.yaml", "testcase: t\ncommand: 'test -e go && echo value: 1 || exec sleep 65432'\nruns: 2\nwarm_up: 0\n");
    let mut child = start(&bench, &["run", &job]);
    wait_until(|| !processes_with(&bench, "65432").is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    let begun = Instant::now();
    while !processes_with(&bench, "65432").is_empty() {
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "the program outlived kdyno"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    bench.file("go", "");
    bench.kdyno(&["run", "--resume"]).ok();
    assert_eq!(bench.listed().len(), 2);
    assert_eq!(
        bench.run_dirs().len(),
        3,
        "the incomplete run is kept beside the finished ones"
    );
}

#[test]
fn resume_runs_the_trial_of_a_damaged_run_again_and_drops_the_damaged_one() {
    for victim in ["trial.json", "readings.json", "MANIFEST"] {
        let bench = Bench::new();
        let job = bench.file("job.yaml", "testcase: t\ncommand: 'sleep 0.1; echo value: 1'\nruns: 6\nwarm_up: 0\nmonitors: none\n");
        let mut child = start(&bench, &["run", &job]);
        wait_until(|| bench.sealed().len() >= 2);
        child.kill().unwrap();
        child.wait().unwrap();
        bench.kdyno(&["list"]).ok();
        let damaged = bench.sealed()[0].join(victim);
        let bytes = std::fs::read(&damaged).unwrap();
        std::fs::write(&damaged, &bytes[..bytes.len() / 2]).unwrap();
        bench
            .kdyno(&["run", "--resume"])
            .ok()
            .says("is damaged; its trial runs again");
        let mut indices: Vec<u64> = bench
            .listed()
            .iter()
            .map(|row| row["index"].as_u64().unwrap())
            .collect();
        indices.sort_unstable();
        assert_eq!(indices, [0, 1, 2, 3, 4, 5], "{victim}");
    }
}

#[test]
fn resume_tells_of_failures_of_the_session_before() {
    let bench = Bench::new();
    let job = bench.file("job.yaml", "testcase: t\ncommand: 'sleep 0.1; test -e go && echo value: 1 || exit 7'\nruns: 4\nwarm_up: 0\n");
    let mut child = start(&bench, &["run", &job]);
    wait_until(|| !bench.sealed().is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    bench.file("go", "");
    bench
        .kdyno(&["run", "--resume"])
        .with_status(3)
        .says("exit code 7");
    bench
        .kdyno(&["run", "--resume"])
        .ok()
        .says("nothing to resume");
}

#[test]
fn a_plan_is_run_by_one_process_at_a_time() {
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        "testcase: t\ncommand: 'sleep 0.3; echo value: 1'\nruns: 3\nwarm_up: 0\n",
    );
    let mut child = start(&bench, &["run", &job]);
    wait_until(|| !bench.run_dirs().is_empty());
    bench
        .kdyno(&["run", "--resume", "--force"])
        .with_status(2)
        .says("is being run by another process");
    assert!(child.wait().unwrap().success());
    assert_eq!(bench.listed().len(), 3);
}

#[test]
fn root_a_full_disk_loses_no_finished_run() {
    let Some(_turn) = machine_turn("root_a_full_disk_loses_no_finished_run") else {
        return;
    };
    let bench = Bench::new();
    let home = bench.home();
    std::fs::create_dir(&home).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"])
        .arg(&home)
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no tmpfs to be had");
        return;
    }
    let job = bench.file("job.yaml", "testcase: t\ncommand: 'head -c 300000 /dev/urandom | base64; echo value: 1'\nruns: 30\nwarm_up: 0\n");
    let printed = bench.kdyno(&["run", &job]);
    let sealed = bench.sealed().len();
    let listed = bench.kdyno(&["list", "--json"]).out.lines().count();
    let unmounted = std::process::Command::new("umount")
        .arg(&home)
        .status()
        .unwrap()
        .success();
    assert!(unmounted);
    printed.with_status(2).says("No space left");
    assert!(sealed > 0 && sealed < 30, "{sealed} sealed");
    assert!(listed <= sealed);
}
