//! The workload `usemem` by itself: lines, bytes and exit status of the tool it stands in for.

use crate::bench::{Bench, Printed};

fn usemem(words: &[&str]) -> Printed {
    let bench = Bench::new();
    let words: Vec<&str> = ["workload", "usemem"]
        .iter()
        .chain(words)
        .copied()
        .collect();
    bench.kdyno(&words)
}

/// Bytes of each task line; the line must have the published form.
fn bytes_of(printed: &Printed) -> Vec<u64> {
    let lines = printed
        .out
        .lines()
        .filter(|line| line.contains(" bytes / "));
    lines
        .map(|line| {
            let words: Vec<&str> = line.trim_start_matches('.').split(' ').collect();
            let [bytes, "bytes", "/", usecs, "usecs", "=", rate, "KB/s"] = words[..] else {
                panic!("not a task line: {line}")
            };
            let (bytes, usecs, rate): (u64, u64, u64) = (
                bytes.parse().unwrap(),
                usecs.parse().unwrap(),
                rate.parse().unwrap(),
            );
            assert_eq!(rate, ((bytes * 1_000_000) >> 10) / usecs.max(1), "{line}");
            bytes
        })
        .collect()
}

fn free_lines(printed: &Printed) -> usize {
    printed
        .out
        .lines()
        .filter(|line| line.ends_with(" usecs to free memory"))
        .count()
}

fn dots(printed: &Printed) -> usize {
    printed.out.matches('.').count()
}

#[test]
fn bytes_lines_and_dots_are_those_of_the_original() {
    for (words, bytes, free, dotted) in [
        (&["-O", "16m"][..], vec![18_874_368], 1, 0),
        (
            &["-n", "2", "-O", "-P", "-r", "3", "16m"],
            vec![52_428_800; 2],
            0,
            4,
        ),
        (
            &["-O", "-u", "4m", "-r", "2", "16m"],
            vec![35_651_584],
            1,
            4,
        ),
        (&["-O", "-j", "64", "16m"], vec![4_194_304], 1, 0),
        (
            &["-n", "3", "-O", "--prealloc", "--prefault", "8m"],
            vec![9_437_184; 3],
            0,
            0,
        ),
        (
            &["-t", "2", "-O", "--random", "8m"],
            vec![9_437_184; 2],
            2,
            0,
        ),
    ] {
        let printed = usemem(words).ok();
        assert_eq!(bytes_of(&printed), bytes, "{words:?}");
        assert_eq!(free_lines(&printed), free, "{words:?}");
        assert_eq!(dots(&printed), dotted, "{words:?}");
    }
}

#[test]
fn wrong_usage_ends_with_2_and_failures_with_1() {
    for words in [
        &["--bogus", "1m"][..],
        &["-n", "2x", "1m"],
        &["99999999999t"],
        &["1q"],
        &[],
    ] {
        usemem(words).with_status(2).says("usemem");
    }
    let bench = Bench::new();
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let status = bench
        .command(&["workload", "usemem", "-O", "1m"])
        .stdout(full)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn the_headline_of_a_job_is_the_middle_task() {
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        "vm-scalability: {test: [anon-w-seq, anon-cow-rand-mt], size: 32M, nr_task: 2, repeat: 2}\nruntime: 0s\nruns: 1\nwarm_up: 0\n",
    );
    bench.kdyno(&["run", &job]).ok();
    let rows = bench.listed();
    let names: Vec<&str> = rows[0]["scalars"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["metric"].as_str().unwrap())
        .collect();
    assert_eq!(
        names[..3],
        [
            "vm-scalability.median",
            "vm-scalability.throughput",
            "vm-scalability.cpu_ns_per_byte"
        ]
    );
    assert!(rows.iter().all(|row| row["instrument"] == "usemem/kdyno-1"));
}

#[test]
fn figures_of_another_usemem_are_never_compared() {
    let bench = Bench::new();
    let script = bench.file(
        "usemem",
        "#!/bin/sh\necho '100 bytes / 10 usecs = 40 KB/s'\n",
    );
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let job = bench.file(
        "job.yaml",
        format!("vm-scalability: {{test: anon-w-seq, size: 8M, nr_task: 1}}\nruntime: 0s\nruns: 2\nvariants:\n  ours: {{}}\n  theirs: {{vm-scalability: {{usemem: {script}}}}}\n"),
    );
    bench
        .kdyno(&["run", &job])
        .ok()
        .says("not compared")
        .says("usemem/external");
}
