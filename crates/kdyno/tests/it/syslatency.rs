//! The workload `syslatency`, by hand and as thread C's job.

use crate::bench::{Bench, cgroups_of, machine_turn, settings_now};
use std::path::Path;

#[test]
fn timers_by_hand_print_their_row_and_histogram() {
    let bench = Bench::new();
    let printed = bench
        .kdyno(&[
            "workload",
            "syslatency",
            "-t",
            "100ms",
            "-i",
            "2ms",
            "--igt",
            "-1",
        ])
        .ok();
    printed
        .says("# timer wake-ups: interval 2000 us, policy other, timer slack ")
        .says("wakeup_median: ")
        .says("late_ns ")
        .says("gem_syslatency: cycles=0, latency mean=");
}

#[test]
fn what_would_harm_or_show_nothing_is_refused() {
    let bench = Bench::new();
    let of = |words: &[&str]| bench.kdyno(&[&["workload", "syslatency"], words].concat());
    of(&["--pin", "100t", "-t", "1"])
        .with_status(2)
        .says("at most half may be taken")
        .says("hint:");
    of(&["-m", "-t", "1"]).with_status(2).says("needs a file");
    of(&["--bogus"]).with_status(2).says("unknown option");
    let file = bench.path("file");
    of(&["-m", "-t", "1", "--file", file.to_str().expect("a path")])
        .with_status(2)
        .says("no memory limit of its own")
        .says("kdyno run jobs/syslatency.yaml");
    assert!(!file.exists());
    if !Path::new("/dev/dri/renderD128").exists() {
        of(&["--gpu", "-t", "1"])
            .with_status(4)
            .says("skipped: --gpu");
    }
}

/// The job of thread C, shortened: all variants measure, the counters are there, and nothing is left.
/// How large the effect is, is no test's matter.
#[test]
fn root_pinned_and_locked_pages_are_measured_and_nothing_is_left() {
    let name = "root_pinned_and_locked_pages_are_measured_and_nothing_is_left";
    let Some(_turn) = machine_turn(name) else {
        return;
    };
    if !Path::new("/sys/class/zram-control").exists() {
        eprintln!("skipped {name}: this kernel has no zram");
        return;
    }
    let before = settings_now();
    let bench = Bench::new();
    let job = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../jobs/syslatency.yaml");
    let text = std::fs::read_to_string(job).expect("the job");
    let text = text
        .replace("runtime: 900ms", "runtime: 200ms\nwarm_up_time: 200ms")
        .replace("runs: 5", "runs: 1");
    assert!(text.contains("warm_up_time"), "{text}");
    let job = bench.file("job.yaml", text);
    bench.kdyno(&["run", "--no-doctor", &job]).ok();
    let rows = bench.listed();
    assert_eq!(rows.len(), 4);
    let shown = bench.kdyno(&["show"]).ok();
    shown
        .says("syslatency.thp_cpu_mean")
        .says("syslatency.pgscan_anon")
        .says("syslatency.nr_unevictable");
    let stdout = bench.kdyno(&["show", "--stdout"]).ok().out;
    assert!(!stdout.contains("there is no swap"), "{stdout}");
    let hist = bench.kdyno(&["hist", "--metric", "syslatency.thp_cpu", "--format", "csv"]);
    assert!(hist.ok().out.lines().count() > 4);
    assert_eq!(settings_now(), before);
    assert!(cgroups_of(&bench).is_empty());
}
