//! Each program of the catalog reads its own recorded output right, and runs for real where it
//! is installed; programs of a user work as they do.

use crate::bench::Bench;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every folder of the catalog.
fn folders() -> Vec<PathBuf> {
    let catalog = Path::new(env!("CARGO_MANIFEST_DIR")).join("../job/catalog");
    let listed = std::fs::read_dir(catalog).expect("the catalog").flatten();
    listed.map(|entry| entry.path()).collect()
}

#[test]
fn recorded_output_gives_its_figures() {
    let bench = Bench::new();
    let listed = bench.kdyno(&["program", "list"]).ok();
    for folder in folders() {
        let name = folder
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        assert!(listed.out.contains(&name), "{name} is not in the catalog");
        bench
            .kdyno(&["program", "check", &folder.display().to_string()])
            .ok()
            .says(&format!("{name}: "))
            .says(" of recorded output ");
    }
}

/// A program of a user, below `programs` in the working directory.
fn of_a_user(bench: &Bench, entry: &str, expected: &str) {
    let folder = bench.path("programs/stream");
    std::fs::create_dir_all(folder.join("fixtures")).expect("a folder");
    let put = |name: &str, text: &str| {
        std::fs::write(folder.join(name), text).expect("a file");
    };
    put("program.yaml", entry);
    put("fixtures/one.out", "Copy: 100.5 MB/s\nScale: 90 MB/s\n");
    put("fixtures/one.expected", expected);
}

const STREAM: &str = "\
program: stream
about: Memory bandwidth of four loops.
tool: {name: sh, hint: it is on every machine}
instrument: {external: stream/1}
options:
  factor: {type: count, default: 2, about: what the figures are multiplied by}
command:
  - words: [-c, 'echo \"Copy: $((100 * {factor})) MB/s\"; echo \"Scale: 90 MB/s\"']
extract:
  - '^Copy: (?P<copy>[\\d.]+) MB/s'
  - '^Scale: (?P<scale>[\\d.]+) MB/s'
metrics:
  copy: {about: bytes copied, unit: MB/s, better: higher, role: headline, reduce: {stream: copy, within: mean, across: mean}}
  scale: {about: bytes scaled, unit: MB/s, better: higher, reduce: {stream: scale, within: mean, across: mean}}
";

#[test]
fn a_program_of_a_user_is_one_folder() {
    let bench = Bench::new();
    of_a_user(&bench, STREAM, "stream.copy 100.5\nstream.scale 90\n");
    bench.kdyno(&["program", "list"]).ok().says("stream");
    bench
        .kdyno(&["program", "show", "stream"])
        .ok()
        .says("factor: count [2]  what the figures are multiplied by")
        .says("copy (MB/s, higher is better, headline)  bytes copied");
    bench
        .kdyno(&["program", "check"])
        .ok()
        .says("stream: 2 figures of recorded output are right");
    let job = bench.file(
        "job.yaml",
        "testcase: stream\nstream: {factor: [1, 3]}\nruns: 1\nwarm_up: 0\n",
    );
    bench.kdyno(&["run", &job]).ok();
    let mut figures: Vec<f64> = bench
        .listed()
        .iter()
        .filter_map(|row| row["scalars"][0]["value"].as_f64())
        .collect();
    figures.sort_by(f64::total_cmp);
    assert_eq!(figures, [100.0, 300.0]);
}

#[test]
fn programs_of_the_configuration_directory_work_as_well() {
    let bench = Bench::new();
    of_a_user(&bench, STREAM, "stream.copy 100.5\n");
    let config = bench.path("config/kdyno");
    std::fs::create_dir_all(&config).expect("a folder");
    std::fs::rename(bench.path("programs"), config.join("programs")).expect("moved");
    let output = bench
        .command(&["program", "check"])
        .env("XDG_CONFIG_HOME", bench.path("config"))
        .output()
        .expect("kdyno starts");
    crate::bench::Printed::from(output)
        .ok()
        .says("stream: 1 figure of recorded output is right; no fixture has scale");
}

#[test]
fn what_is_wrong_with_an_entry_is_said_with_its_place() {
    let bench = Bench::new();
    of_a_user(&bench, STREAM, "stream.copy 100.5\nstream.scale 91\n");
    bench
        .kdyno(&["program", "check"])
        .with_status(2)
        .says("one.expected:2: stream.scale is 90, not 91");
    of_a_user(&bench, STREAM, "stream.triad 1\n");
    bench
        .kdyno(&["program", "check"])
        .with_status(2)
        .says("one.expected:1: stream.triad is not read from");
    of_a_user(
        &bench,
        &STREAM.replace("extract:", "extrakt:"),
        "stream.copy 100.5\n",
    );
    // It stands in the way of no other program.
    bench
        .kdyno(&["program", "list"])
        .ok()
        .says("left out: programs/stream/program.yaml:")
        .says("hackbench");
    bench
        .kdyno(&["program", "check"])
        .with_status(2)
        .says("programs/stream/program.yaml:")
        .says("unknown key `extrakt`")
        .says("hint: did you mean `extract`?");
    of_a_user(
        &bench,
        &STREAM.replace("stream: copy", "stream: cpy"),
        "stream.copy 100.5\n",
    );
    bench
        .kdyno(&["program", "check"])
        .with_status(2)
        .says("no rule of `extract` has a group `cpy`");
    std::fs::remove_dir_all(bench.path("programs")).expect("removed");
    bench
        .kdyno(&["program", "show", "hackbensh"])
        .with_status(2)
        .says("did you mean `hackbench`?");
}

/// Runs a job of a program for a second or so, where it is installed.
fn for_real(tool: &str, job: &str, cases: usize, headline: &[&str]) {
    if Command::new(tool).arg("--version").output().is_err() {
        eprintln!("skipped: {tool} is not installed");
        return;
    }
    let bench = Bench::new();
    let job = bench.file("job.yaml", format!("{job}\nruns: 1\nwarm_up: 0\n"));
    bench.kdyno(&["run", &job]).ok();
    let rows = bench.listed();
    assert_eq!(rows.len(), cases);
    for row in rows {
        let metric = row["scalars"][0]["metric"]
            .as_str()
            .expect("a metric")
            .to_owned();
        assert!(headline.contains(&metric.as_str()), "{metric}");
    }
}

#[test]
fn hackbench_runs_for_real() {
    let job = "testcase: hackbench\nhackbench: {mode: [process, threads], ipc: [pipe, socket], loops: 5, fds: 2, iterations: 2}";
    for_real("hackbench", job, 4, &["hackbench.seconds"]);
}

#[test]
fn stress_ng_runs_for_real() {
    let job = "testcase: stress-ng\nstress-ng: {stressor: [pipe, futex], runtime: 1s}";
    for_real("stress-ng", job, 2, &["stress-ng.ops_per_sec"]);
}

#[test]
fn sysbench_runs_for_real() {
    let job = "testcase: sysbench\nsysbench: {test: [cpu, memory, threads, mutex], runtime: 1s}";
    let headline = ["events_per_sec", "throughput", "thread_events", "seconds"];
    let headline = headline.map(|name| format!("sysbench.{name}"));
    let headline: Vec<&str> = headline.iter().map(String::as_str).collect();
    for_real("sysbench", job, 4, &headline);
}

#[test]
fn cyclictest_runs_for_real() {
    let job = "testcase: cyclictest\ncyclictest: {runtime: 1s}";
    for_real("cyclictest", job, 1, &["cyclictest.latency_mean"]);
}

#[test]
fn fio_runs_for_real() {
    let job = "testcase: fio\nfio: {rw: [randread, randrw], size: 4M, runtime: 1s}";
    for_real("fio", job, 2, &["fio.iops", "fio.read_clat.p50"]);
}

#[test]
fn perf_bench_runs_for_real() {
    let job = "testcase: perf-bench\nperf-bench: {test: [sched-pipe, syscall-basic], loops: 2000}";
    for_real("perf", job, 2, &["perf-bench.usecs_per_op"]);
}

/// A TCP port that no other test of this machine is likely to use.
fn port() -> u32 {
    20_000 + std::process::id() % 20_000
}

#[test]
fn redis_benchmark_runs_for_real_with_a_server_of_its_own() {
    if Command::new("redis-server")
        .arg("--version")
        .output()
        .is_err()
    {
        eprintln!("skipped: redis-server is not installed");
        return;
    }
    let job = format!(
        "redis-benchmark: {{test: [get, lrange_100], requests: 2000, port: {}}}",
        port()
    );
    for_real("redis-benchmark", &job, 2, &["redis-benchmark.rps"]);
}

#[test]
fn iperf3_runs_for_real_with_a_server_of_its_own() {
    let job = format!(
        "iperf3: {{protocol: [tcp, udp], runtime: 1s, bandwidth: 100M, nr_task: 2, port: {}}}",
        port() + 20_000
    );
    for_real("iperf3", &job, 2, &["iperf3.throughput"]);
}

#[test]
fn pgbench_runs_for_real_with_a_cluster_of_its_own() {
    let job = "pgbench: {test: select-only, scale: 1, runtime: 1s, fsync: false}";
    for_real("pgbench", job, 1, &["pgbench.tps"]);
}

#[test]
fn a_port_that_is_taken_is_no_server_of_ours() {
    if Command::new("redis-server")
        .arg("--version")
        .output()
        .is_err()
    {
        eprintln!("skipped: redis-server is not installed");
        return;
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        format!("redis-benchmark: {{test: get, port: {port}}}\nruns: 1\nwarm_up: 0\n"),
    );
    bench
        .kdyno(&["run", &job])
        .with_status(3)
        .says(&format!("something listens on port {port} already"));
}
