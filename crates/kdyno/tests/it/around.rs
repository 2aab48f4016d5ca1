//! Directories, swap and limits of a trial's own; set-up commands and servers of programs.

use crate::bench::{Bench, Printed, cgroups_left, machine_turn, settings_now};
use std::time::{Duration, Instant};

const EVERYTHING: &str = "\
testcase: t
command: 'echo scratch: $(stat -f -c %b $KDYNO_SCRATCH); grep -c kdyno-scratch /proc/swaps | sed s/^/files:\\ /; grep -c zram /proc/swaps | sed s/^/zram:\\ /; echo cpus: $(nproc)'
runs: 2
warm_up: 0
scratch: {ext4: 32M}
swap: {file: 16M}
cgroup: {memory.max: 200M}
cache: {drop: pages}
cpu: {dma_latency: 0}
";

/// Mounts, swaps, block devices and directories that trials may have made.
fn made_things() -> Vec<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap();
    let ours = mounts.lines().chain(swaps.lines());
    let mut things: Vec<String> = ours
        .filter(|line| line.contains("kdyno-scratch") || line.contains("/dev/zram"))
        .map(str::to_owned)
        .collect();
    for dir in ["/var/tmp", "/sys/block"] {
        let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
        things.extend(
            names
                .map(|entry| entry.path().display().to_string())
                .filter(|path| path.contains("kdyno-scratch") || path.contains("zram")),
        );
    }
    things.sort();
    things
}

#[test]
fn root_a_trial_has_its_own_file_system_swap_and_limits() {
    let Some(_turn) = machine_turn("root_a_trial_has_its_own_file_system_swap_and_limits") else {
        return;
    };
    let bench = Bench::new();
    let job = bench.file("job.yaml", EVERYTHING);
    let before = (made_things(), settings_now());
    bench
        .kdyno(&["run", &job, "--dry-run"])
        .ok()
        .says("scratch.ext4 33554432 for each trial");
    let printed = bench.kdyno(&["run", &job]);
    assert_eq!((made_things(), settings_now()), before);
    if printed.status == Some(3) && printed.err.contains("mount") {
        eprintln!(
            "skipped the figures: no loop device to be had: {}",
            printed.err
        );
        return;
    }
    printed.ok();
    for row in bench.listed() {
        let value = |name: &str| {
            let scalars = row["scalars"].as_array().unwrap();
            let found = scalars.iter().find(|s| s["metric"] == format!("t.{name}"));
            found.map(|s| s["value"].as_f64().unwrap())
        };
        // Blocks of 1 or 4 KiB.
        assert!(value("scratch").is_some_and(|n| n > 1000.0), "{row}");
        assert_eq!(value("files"), Some(1.0), "{row}");
        assert_eq!(value("zram"), Some(0.0), "{row}");
    }
}

#[test]
fn root_a_killed_trial_leaves_no_file_system_and_no_swap() {
    let Some(_turn) = machine_turn("root_a_killed_trial_leaves_no_file_system_and_no_swap") else {
        return;
    };
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        "testcase: t\ncommand: 'echo v: 1; sleep 20'\nruns: 1\nwarm_up: 0\nscratch: {tmpfs: 8M}\nswap: {file: 8M}\ncgroup: {memory.max: 200M}\n",
    );
    let before = (made_things(), cgroups_left());
    let mut child = bench.command(&["run", &job]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while made_things().len() < before.0.len() + 3 {
        assert!(Instant::now() < deadline, "{:?}", made_things());
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while made_things() != before.0 {
        assert!(Instant::now() < deadline, "{:?}", made_things());
        std::thread::sleep(Duration::from_millis(50));
    }
    bench.kdyno(&["restore"]).ok();
    assert_eq!(made_things(), before.0);
}

#[test]
fn root_limits_hold() {
    let Some(_turn) = machine_turn("root_limits_hold") else {
        return;
    };
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        format!(
            "testcase: t\ncommand: '{} workload usemem -O 300m; true'\nmetrics: none\nruns: 1\nwarm_up: 0\ncgroup: {{memory.max: 100M}}\n",
            crate::bench::binary()
        ),
    );
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps.lines().count() > 1 {
        eprintln!("skipped: this machine swaps, so that a limit need not kill");
        return;
    }
    bench
        .kdyno(&["run", &job])
        .with_status(3)
        .says("out of memory");
}

#[test]
fn a_limit_that_no_cgroup_has_is_refused_before_anything_runs() {
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        "testcase: t\ncommand: 'echo v: 1'\ncgroup: {colour.red: 1}\n",
    );
    bench.kdyno(&["run", &job]).with_status(2).says("hint");
    assert!(bench.run_dirs().is_empty());
    bench
        .kdyno(&["run", "--dry-run", &job])
        .with_status(4)
        .says("missing: ");
}

fn program(bench: &Bench, text: &str) {
    let folder = bench.path("programs/served");
    std::fs::create_dir_all(&folder).unwrap();
    let head = "program: served\nabout: talks to a server\ntool: {name: cat, hint: coreutils}\ninstrument: {external: cat}\nextract: ['^value (?P<v>\\d+)']\nmetrics:\n  v: {about: a value, role: headline, reduce: {stream: v, within: last, across: mean}}\n";
    std::fs::write(folder.join("program.yaml"), format!("{head}{text}")).unwrap();
}

#[test]
fn a_program_has_its_setup_its_server_and_its_load() {
    let bench = Bench::new();
    program(
        &bench,
        "settings:\n  - set: {scratch.dir: true}\n\
         setup:\n  - words: [sh, -c, 'echo 1 > \"$KDYNO_SCRATCH/setup\"']\n\
         server:\n  command:\n    - words: [sh, -c, 'test -e \"$KDYNO_SCRATCH/setup\" && echo listening; exec sleep 60']\n  ready: {line: listening}\n\
         load:\n  - words: [sh, -c, 'echo value 7 > \"$0/data\"', '{scratch}']\n\
         command:\n  - words: ['{scratch}/data']\n",
    );
    let job = bench.file("job.yaml", "served:\nruns: 2\n");
    bench
        .kdyno(&["run", "--dry-run", &job])
        .ok()
        .says("before: sh -c")
        .says("beside: sh -c");
    let scratch = bench.path("a place");
    std::fs::create_dir(&scratch).unwrap();
    let mut command = bench.command(&["run", &job]);
    let printed = command.env("KDYNO_SCRATCH_DIR", &scratch).output().unwrap();
    Printed::from(printed).ok().says("served.v");
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0);
    let server = bench.run_dirs()[0].join("raw/server");
    assert_eq!(std::fs::read_to_string(server).unwrap(), "listening\n");
}

#[test]
fn a_setup_that_fails_and_a_server_that_ends_say_why() {
    let bench = Bench::new();
    let job = bench.file("job.yaml", "served:\nruns: 1\nwarm_up: 0\n");
    let command = "command:\n  - words: [/dev/null]\n";
    program(
        &bench,
        &format!("setup:\n  - words: [sh, -c, 'echo no room >&2; exit 7']\n{command}"),
    );
    bench
        .kdyno(&["run", &job])
        .with_status(3)
        .says("set-up: `sh`: exit code 7: no room");
    program(
        &bench,
        &format!(
            "server:\n  command:\n    - words: [sh, -c, 'echo address in use; exit 1']\n  ready: {{line: listening}}\n{command}"
        ),
    );
    bench
        .kdyno(&["run", &job])
        .with_status(3)
        .says("the server `sh` ended before it was ready: address in use");
    program(
        &bench,
        &format!("setup:\n  - words: [no-such-program-here]\n{command}"),
    );
    bench
        .kdyno(&["run", &job])
        .with_status(3)
        .says("no-such-program-here");
    bench
        .kdyno(&["run", "--dry-run", &job])
        .with_status(4)
        .says("missing: the program `no-such-program-here`");
}

#[test]
fn a_need_that_is_not_met_is_a_skip_with_its_reason() {
    let bench = Bench::new();
    let command = "command:\n  - words: [/dev/null]\n";
    let job = bench.file("job.yaml", "served:\nruns: 1\n");
    for (need, told) in [
        ("numa_nodes: 1000", "it needs 1000 NUMA nodes"),
        ("path: /no/such/path", "it needs /no/such/path"),
        ("memory: '{memory + 1048576}'", "MiB of memory"),
    ] {
        program(&bench, &format!("needs:\n  - set: {{{need}}}\n{command}"));
        bench.kdyno(&["run", &job]).with_status(4).says(told);
    }
    program(
        &bench,
        &format!("needs:\n  - set: {{colour: red}}\n{command}"),
    );
    bench
        .kdyno(&["run", &job])
        .with_status(2)
        .says("unknown key");
}

#[test]
fn root_scratch_behind_links_and_dots_is_unmounted_as_well() {
    let Some(_turn) = machine_turn("root_scratch_behind_links_and_dots_is_unmounted_as_well")
    else {
        return;
    };
    let bench = Bench::new();
    std::fs::create_dir(bench.path("real")).unwrap();
    std::os::unix::fs::symlink(bench.path("real"), bench.path("link")).unwrap();
    let job = bench.file(
        "job.yaml",
        "testcase: t\ncommand: 'echo v: 1'\nruns: 1\nwarm_up: 0\nmonitors: none\nscratch: {ext4: 16M}\nswap: {file: 16M}\n",
    );
    for named in ["link", "./real/../link", "real"] {
        let mut command = bench.command(&["run", "--no-doctor", &job]);
        let run = command.env("KDYNO_SCRATCH_DIR", named).output().unwrap();
        Printed::from(run).ok();
        let left = std::fs::read_dir(bench.path("real")).unwrap().count();
        assert_eq!(left, 0, "{named}");
        for list in ["/proc/mounts", "/proc/swaps"] {
            let text = std::fs::read_to_string(list).unwrap();
            let own = bench.path("real").canonicalize().unwrap();
            assert!(!text.contains(own.to_str().unwrap()), "{named}: {text}");
        }
    }
    let mut command = bench.command(&["run", "--no-doctor", &job]);
    let run = command
        .env("KDYNO_SCRATCH_DIR", "nowhere")
        .output()
        .unwrap();
    Printed::from(run)
        .with_status(2)
        .says("nowhere: there is no such directory");
    let pool = bench.file(
        "pool.yaml",
        "testcase: t\ncommand: 'echo v: 1'\nhugepages: {2M: 99999999999}\n",
    );
    bench
        .kdyno(&["run", "--no-doctor", &pool])
        .with_status(2)
        .says("more than there is memory for");
}
