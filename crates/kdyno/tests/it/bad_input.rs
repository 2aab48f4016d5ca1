//! Input that is wrong: exit status 2, the place, the reason, what to do, and nothing left.

use crate::bench::Bench;

#[track_caller]
fn refused(text: &str, says: &[&str]) {
    let bench = Bench::new();
    let job = bench.file("job.yaml", text);
    let mut printed = bench.kdyno(&["run", &job]).with_status(2);
    for what in says {
        printed = printed.says(what);
    }
    assert!(bench.run_dirs().is_empty());
    assert!(!bench.path("state").exists(), "nothing was prepared");
}

#[test]
fn jobs_that_are_wrong() {
    refused(
        "testcase: hackbench\nipcc: pipe\n",
        &[
            "job.yaml:2:1",
            "unknown key `ipcc`",
            "did you mean `ipc`?",
            "2 | ipcc: pipe",
        ],
    );
    refused(
        "vm-scalability: {test: anon-w-seq, size: 5 parsecs}\n",
        &["`parsecs` is not a unit of size", "hint:"],
    );
    refused(
        "vm-scalability: {test: anon-w-seq, size: 99999999999T}\n",
        &["more than 64 bits"],
    );
    refused(
        "testcase: t\ncommand: x\nvariants: {a: {}, b: {}}\n",
        &["measure the same thing"],
    );
    refused("a: [\n", &["not valid YAML"]);
    refused("\0\0\0", &["error"]);
    refused(
        &format!(
            "testcase: t\ncommand: {}x{}\n",
            "[".repeat(100),
            "]".repeat(100)
        ),
        &["nested deeper"],
    );
}

#[test]
fn files_that_are_no_jobs() {
    let bench = Bench::new();
    let latin = bench.file("latin.yaml", b"testcase: t\ncommand: caf\xe9\n");
    bench
        .kdyno(&["run", &latin])
        .with_status(2)
        .says("latin.yaml:2:13: this byte is no UTF-8");
    std::os::unix::fs::symlink("/dev/zero", bench.path("zero.yaml")).unwrap();
    bench
        .kdyno(&["run", "zero.yaml"])
        .with_status(2)
        .says("zero.yaml is no job file");
    bench
        .kdyno(&["run", "no/such.yaml"])
        .with_status(2)
        .says("no/such.yaml: No such file");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(bench.path("fifo.yaml"))
            .status()
            .unwrap()
            .success()
    );
    bench
        .kdyno(&["run", "fifo.yaml"])
        .with_status(2)
        .says("fifo.yaml is no job file");
    bench
        .kdyno(&["run", &bench.file("big.yaml", vec![b'#'; 17 << 20])])
        .with_status(2)
        .says("no job file");
    let keys: String = (0..20_000).map(|i| format!("k{i}: 1\n")).collect();
    bench
        .kdyno(&["run", &bench.file("keys.yaml", keys)])
        .with_status(2)
        .says("more than 10000 keys");
}

#[test]
fn values_that_mean_nothing() {
    refused(
        "vm-scalability: {test: anon-w-seq, size: 0}\n",
        &["no memory at all"],
    );
    refused(
        "testcase: t\ncommand: x\ndirectory: ''\n",
        &["`directory` is empty"],
    );
    refused(
        "testcase: t\ncommand: x\naffinity: 0,3999\n",
        &["CPU 3999 is not online"],
    );
    refused(
        "testcase: t\ncommand: x\nmonitors: [memimfo]\n",
        &["job.yaml: monitors", "did you mean `meminfo`?"],
    );
}

#[test]
fn axes_that_explode_are_counted_and_ask_for_yes() {
    let list = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
    let job = |n| {
        format!(
            "testcase: t\ncommand: 'echo v: 1'\nenvironment: {{A: [{}], B: [{}]}}\n",
            list(n),
            list(n)
        )
    };
    refused(
        &job(20),
        &["2400 trials", "400 cases x 1 variants x 6 runs", "--yes"],
    );
    refused(&job(4000), &["more than the 100000"]);
    let bench = Bench::new();
    let file = bench.file("job.yaml", job(20));
    bench
        .kdyno(&["run", &file, "--yes", "--dry-run"])
        .ok()
        .says("2400 trials");
}

#[test]
fn settings_that_cannot_be_made() {
    refused(
        "testcase: t\ncommand: x\nsysctl: {vm.no_such_thing: 1}\n",
        &["no_such_thing", "no such setting"],
    );
    if std::path::Path::new("/sys/kernel/mm/transparent_hugepage/enabled").exists() {
        refused(
            "testcase: t\ncommand: x\nthp: {enabled: sometimes}\n",
            &["`sometimes` is not offered", "it offers: always"],
        );
    }
}

#[test]
fn command_lines_that_are_wrong() {
    let bench = Bench::new();
    let job = bench.file("job.yaml", "testcase: t\ncommand: x\n");
    for (words, says) in [
        (&["run"][..], "nothing to run"),
        (&["run", "no-such.yaml"], "no-such.yaml"),
        (&["run", &job, "true"], "stands alone"),
        (&["run", "true", "--", "true"], "do not mix"),
        (&["run", ""], "a command is empty"),
        (&["run", "-n", "0", "true"], "0 runs"),
        (&["run", &job, "-V", "nonsense"], "NAME:KEY=VALUE"),
        (&["run", &job, "-V", "a:colour=red"], "unknown key `colour`"),
        (
            &[
                "run",
                &job,
                "-V",
                "a:environment.A=1",
                "-V",
                "b:environment.A=1",
            ],
            "same thing",
        ),
        (&["run", "-n", "4000000000", "true"], "trials"),
    ] {
        bench.kdyno(words).with_status(2).says(says);
    }
    assert!(bench.run_dirs().is_empty());
}

#[test]
fn a_place_for_runs_that_cannot_be_used() {
    let bench = Bench::new();
    let mut command = bench.command(&["run", "-n", "1", "true"]);
    command.env("KDYNO_HOME", "/proc/kdyno");
    let printed: crate::bench::Printed = command.output().unwrap().into();
    printed.with_status(2).says("/proc/kdyno");
    let mut command = bench.command(&["list"]);
    command
        .env_remove("KDYNO_HOME")
        .env_remove("XDG_DATA_HOME")
        .env_remove("HOME");
    let printed: crate::bench::Printed = command.output().unwrap().into();
    printed.with_status(2).says("KDYNO_HOME");
}
