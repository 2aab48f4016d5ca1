//! The workload `usemem` by itself: lines, bytes and exit status of the tool it stands in for.

use crate::bench::{Bench, Printed, cgroups_of, machine_turn, settings_now};

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
        .filter(|line| line.contains(" bytes / ") && !line.contains(": "));
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

/// Lines that end as the lines of calls do that are timed by themselves: bytes by what was done.
fn timed(printed: &Printed) -> Vec<(u64, String)> {
    let lines = printed.out.lines().filter_map(|line| {
        let (what, usecs) = line.strip_suffix(" usecs")?.split_once(" in ")?;
        let _usecs: u64 = usecs.parse().unwrap();
        let (count, what) = what.split_once(' ')?;
        Some((count.parse().unwrap(), what.to_owned()))
    });
    lines.collect()
}

#[test]
fn every_kind_of_memory_and_call_leaves_its_lines() {
    let dir = tempfile::tempdir().unwrap();
    let in_dir = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (file, each) = (in_dir("file"), in_dir("each"));
    let written = 4_718_592; // 4 MiB and an eighth.
    for (words, bytes, free) in [
        (vec!["-a"], vec![written], 1),
        (vec!["-r", "2"], vec![8_912_896], 1),
        (vec!["--memfd", "-S", "-A", "-D"], vec![written], 1),
        (vec!["-f", &file, "-S", "-B", "64k"], vec![written], 1),
        (
            vec!["-o", "--each-file", &each, "-n", "2"],
            vec![written; 2],
            2,
        ),
        (
            vec!["--read-file", "--each-file", &each, "-t", "2"],
            vec![4 << 20; 2],
            0,
        ),
        (
            vec!["--read-file", "-R", "-r", "2", "-f", &file],
            vec![8 << 20],
            0,
        ),
        (vec!["-O", "-e", "2us"], vec![written], 1),
        (
            vec!["-n", "2", "-t", "2", "-O", "-b", "-y", "-x", "-r", "3"],
            vec![13_107_200; 4],
            4,
        ),
        (vec!["-O", "-N"], vec![written], 1),
        (vec!["-O", "-Z"], vec![written], 1),
        (vec!["-O", "--punch-holes"], vec![written], 1),
        (vec!["--memfd", "--fallocate-punch-holes"], vec![written], 1),
        (
            vec!["-P", "--main-write-data", "-n", "2", "-O"],
            vec![written; 2],
            0,
        ),
        // What a signal starts counts its own accesses only.
        (
            vec!["-O", "-W", "--no-signal", "--signal-verify"],
            vec![4 << 20],
            1,
        ),
        (
            vec![
                "-O",
                "--write-signal-write",
                "--signal-write-times",
                "3",
                "--signal-fork",
                "--no-signal",
            ],
            vec![12 << 20],
            1,
        ),
    ] {
        let mut words = words;
        words.push("4m");
        let printed = usemem(&words).ok();
        assert_eq!(bytes_of(&printed), bytes, "{words:?}");
        assert_eq!(free_lines(&printed), free, "{words:?}");
    }
    for (words, lines) in [
        (
            &["-O", "-E", "-n", "2", "4m"][..],
            vec![(40 << 20, "bytes remapped"); 2],
        ),
        (&["-n", "50", "0"], vec![(50, "processes")]),
    ] {
        let lines: Vec<(u64, String)> = lines.into_iter().map(|(n, w)| (n, w.to_owned())).collect();
        assert_eq!(timed(&usemem(words).ok()), lines, "{words:?}");
    }
    usemem(&["-f", "/nonexistent/file", "4m"])
        .with_status(1)
        .says("/nonexistent/file");
}

#[test]
fn memory_is_taken_from_and_moved_to_nodes() {
    if !std::path::Path::new("/sys/devices/system/node/node0").exists() {
        eprintln!("skipped the look at NUMA options: this kernel has no nodes");
        return;
    }
    let printed = usemem(&[
        "-O",
        "--numa-cpu",
        "0",
        "--numa-memory",
        "0",
        "--mbind",
        "0",
        "4m",
    ]);
    if printed.err.contains("Operation not permitted") {
        eprintln!("skipped the look at NUMA options: their calls are not permitted here");
        return;
    }
    let printed = printed.ok();
    assert_eq!(bytes_of(&printed), [4_718_592]);
    // All of it is there already.
    assert_eq!(timed(&printed), [(0, "bytes bound".to_owned())]);
    for option in ["--mbind", "--numa-memory", "--numa-cpu"] {
        let refused = usemem(&["-O", option, "999", "4m"]).with_status(1);
        refused.says("hint: see /sys/devices/system/node/");
    }
    let nodes = std::fs::read_to_string("/sys/devices/system/node/has_memory").unwrap();
    if nodes.trim() == "0-1" {
        let words = ["-O", "--numa-memory", "0", "--migrate", "0:1", "4m"];
        let moved = timed(&usemem(&words).ok());
        assert!(moved[0].0 > 3 << 20, "{moved:?}");
    }
}

#[test]
fn locked_memory_and_huge_pages_leave_the_same_lines() {
    for (words, what) in [
        (["-O", "-M", "4m"], "lock memory"),
        (["-L", "-q", "4m"], "lock a shared segment"),
        (["-O", "-H", "4m"], "map"),
    ] {
        let printed = usemem(&words);
        if printed.err.contains(what) {
            eprintln!("skipped {words:?}: {}", printed.err.trim());
            continue;
        }
        assert_eq!(bytes_of(&printed.ok()), [4_718_592], "{words:?}");
    }
}

#[test]
fn fresh_files_have_nothing_in_memory_and_truncation_counts_what_is() {
    let dir = tempfile::tempdir().unwrap();
    let each = dir.path().join("each").to_str().unwrap().to_owned();
    let cut = |more: &[&str]| {
        let words = [more, &["--truncate", "--each-file", &each, "4m"]].concat();
        timed(&usemem(&words).ok())
    };
    assert_eq!(
        cut(&["--read-file"]),
        [(4 << 20, "bytes truncated".to_owned())]
    );
    let path = format!("{each}-0");
    std::fs::write(&path, vec![7; 8 << 20]).unwrap();
    usemem(&["--fresh", "-o", "--each-file", &each, "4m"]).ok();
    let content = std::fs::read(&path).unwrap();
    assert_eq!(content, vec![0; 4 << 20]);
}

#[test]
fn a_thread_that_fails_ends_those_that_wait_for_it() {
    let bench = Bench::new();
    let limited = "ulimit -v 400000; exec timeout 20 \"$0\" workload usemem -t 2 -x -O 150m";
    let printed: Printed = bench
        .command_of("/bin/sh".as_ref(), &["-c", limited, crate::bench::binary()])
        .output()
        .unwrap()
        .into();
    printed.with_status(1).says("Cannot allocate memory");
}

#[test]
fn pages_that_cannot_be_pushed_out_are_told() {
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap();
    let printed = usemem(&["-O", "--madv-pageout", "-W", "--no-signal", "4m"]);
    if swaps.lines().count() == 1 {
        // Swap of a test that runs at the same time may have been there meanwhile.
        if printed.status == Some(0) {
            return;
        }
        printed.with_status(1).says("there is no swap");
    } else {
        assert_eq!(bytes_of(&printed.ok()), [4 << 20]);
    }
}

#[test]
fn a_task_waits_for_signals_and_does_what_each_starts() {
    let bench = Bench::new();
    let pids = bench.path("pids");
    let words = [
        "workload",
        "usemem",
        "-n",
        "1",
        "-O",
        "-W",
        "--signal-loop",
        "--signal-verify",
        "--write-signal-write",
        "--signal-write-data",
        "7",
        "-p",
    ];
    let mut child = bench
        .command(&words)
        .arg(&pids)
        .arg("1m")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let pid = || {
        std::fs::read_to_string(&pids)
            .ok()
            .filter(|text| text.ends_with('\n'))
    };
    crate::bench::wait_until(|| pid().is_some());
    let pid = pid().unwrap();
    for _ in 0..3 {
        let sent = std::process::Command::new("kill")
            .args(["-USR1", pid.trim()])
            .status();
        assert!(sent.unwrap().success());
        // What was written after the last signal is verified, then written again.
        let line = lines.next().unwrap().unwrap();
        assert!(line.starts_with("2097152 bytes / "), "{line}");
    }
    let ended = std::process::Command::new("kill").arg(pid.trim()).status();
    assert!(ended.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn detached_tasks_go_on_and_a_lost_one_ends_those_that_wait_for_it() {
    let bench = Bench::new();
    let pids = bench.path("pids");
    let pid_file = pids.to_str().unwrap();
    let words = [
        "workload", "usemem", "-d", "-s", "60", "-n", "2", "-O", "-p", pid_file, "1m",
    ];
    let mut detaching = bench
        .command(&words)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(detaching.wait().unwrap().success());
    let text = std::fs::read_to_string(&pids).unwrap();
    assert_eq!(text.lines().count(), 2);
    for pid in text.lines() {
        assert!(std::path::Path::new("/proc").join(pid).exists());
        std::process::Command::new("kill")
            .args(["-KILL", pid])
            .status()
            .unwrap();
    }
    let words = [
        "workload", "usemem", "-x", "-g", "-n", "2", "-O", "-p", pid_file, "1m",
    ];
    let mut waiting = bench
        .command(&words)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let out = std::io::BufReader::new(waiting.stdout.take().unwrap());
    let told = std::io::BufRead::lines(out).take(2).filter(Result::is_ok);
    assert_eq!(told.count(), 2);
    let text = std::fs::read_to_string(&pids).unwrap();
    let first = text.lines().next().unwrap();
    std::process::Command::new("kill")
        .args(["-KILL", first])
        .status()
        .unwrap();
    // It would wait for ever: the status is asked for until it is there.
    crate::bench::wait_until(|| waiting.try_wait().unwrap().is_some());
    assert_eq!(waiting.wait().unwrap().code(), Some(1));
}

#[test]
fn root_all_cases_of_the_suite_run_and_leave_nothing_behind() {
    let Some(_turn) = machine_turn("all cases of the suite") else {
        return;
    };
    let bench = Bench::new();
    let catalog = include_str!("../../../job/catalog/vm-scalability/program.yaml");
    let (_, cases) = catalog.split_once("choices:\n      [").unwrap();
    let (cases, _) = cases.split_once(']').unwrap();
    let cases: Vec<&str> = cases
        .split(',')
        .map(str::trim)
        .filter(|c| !c.is_empty())
        .collect();
    assert_eq!(cases.len(), 71, "those of the suite");
    let mounts_and_swaps = || {
        ["/proc/self/mounts", "/proc/swaps"].map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().count()
        })
    };
    let (before, in_use) = (settings_now(), mounts_and_swaps());
    let job = bench.file(
        "job.yaml",
        format!(
            "vm-scalability: {{test: [{}], size: 48M, nr_task: 2, nr_process: 100}}\n\
             runtime: 0s\nruns: 1\nwarm_up: 0\nmonitors: none\n",
            // It sleeps for ten seconds, and is as `fork` but for that.
            cases
                .iter()
                .filter(|c| **c != "fork-sleep")
                .copied()
                .collect::<Vec<_>>()
                .join(", ")
        ),
    );
    let printed = bench.kdyno(&["run", "--no-doctor", &job]).ok();
    let rows = bench.listed();
    for case in cases.iter().filter(|case| **case != "fork-sleep") {
        let has_run = rows.iter().any(|row| {
            let params = row["case"]["params"].as_str().unwrap();
            params.ends_with(&format!("-48M-{case}"))
        });
        let is_skipped = printed
            .err
            .lines()
            .any(|line| line.starts_with("skipped: ") && line.contains(&format!("-48M-{case}: ")));
        assert!(has_run != is_skipped, "{case}: {}", printed.err);
    }
    let headline = |row: &serde_json::Value| -> Vec<f64> {
        let scalars = row["scalars"].as_array().unwrap().iter();
        scalars
            .filter(|scalar| scalar["role"] == "headline")
            .map(|scalar| scalar["value"].as_f64().unwrap())
            .collect()
    };
    for row in &rows {
        let figures = headline(row);
        assert!(
            !figures.is_empty() && figures.iter().all(|v| *v > 0.0),
            "{row}"
        );
    }
    assert_eq!(settings_now(), before);
    assert_eq!(cgroups_of(&bench), [] as [std::path::PathBuf; 0]);
    assert_eq!(mounts_and_swaps(), in_use);
}
