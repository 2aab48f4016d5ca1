//! Settings of the real machine: made, and back.

use crate::bench::{Bench, cgroups_of, machine_turn, settings_now};
use std::os::unix::process::CommandExt;

const JOB: &str = "\
testcase: t
command: 'printf \"value: \"; cat /proc/sys/vm/swappiness'
runs: 3
variants:
  low: {sysctl: {vm.swappiness: 11}}
  high: {sysctl: {vm.swappiness: 77}}
";

#[test]
fn root_each_variant_has_its_setting_and_all_is_back() {
    let Some(_turn) = machine_turn("root_each_variant_has_its_setting_and_all_is_back") else {
        return;
    };
    let bench = Bench::new();
    let job = bench.file("job.yaml", JOB);
    let before = settings_now();
    bench
        .kdyno(&["run", &job, "--dry-run"])
        .ok()
        .says("/proc/sys/vm/swappiness: ")
        .says("-> 11");
    bench
        .kdyno(&["run", &job])
        .ok()
        .says("t.value of high and low: unclear (too few runs): +600 %");
    assert_eq!(settings_now(), before);
    bench.kdyno(&["restore"]).ok().says("nothing to restore");
}

/// Setting one of a pair makes the kernel set the other to 0, and it refuses that 0 for the first.
#[test]
fn root_both_of_a_pair_of_settings_are_back() {
    let Some(_turn) = machine_turn("root_both_of_a_pair_of_settings_are_back") else {
        return;
    };
    let pairs = || {
        [
            "dirty_bytes",
            "dirty_ratio",
            "dirty_background_bytes",
            "dirty_background_ratio",
        ]
        .map(|name| std::fs::read_to_string(format!("/proc/sys/vm/{name}")).unwrap_or_default())
    };
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        "testcase: t\ncommand: 'printf \"value: \"; cat /proc/sys/vm/dirty_bytes'\nruns: 2\nvariants:\n  bytes: {sysctl: {vm.dirty_bytes: 100000000, vm.dirty_background_bytes: 50000000}}\n  ratio: {sysctl: {vm.dirty_ratio: 30}}\n  plain: {environment: {X: \"1\"}}\n",
    );
    let before = pairs();
    bench.kdyno(&["run", &job]).ok();
    assert_eq!(pairs(), before);
    let values: Vec<(String, f64)> = bench
        .listed()
        .iter()
        .map(|row| {
            (
                row["variant"].as_str().unwrap().to_owned(),
                row["scalars"][0]["value"].as_f64().unwrap(),
            )
        })
        .collect();
    assert!(
        values
            .iter()
            .all(|(variant, value)| (variant == "bytes") == (*value == 1e8)),
        "{values:?}"
    );
}

#[test]
fn root_huge_pages_of_the_pool_are_given_back() {
    let Some(_turn) = machine_turn("root_huge_pages_of_the_pool_are_given_back") else {
        return;
    };
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        "vm-scalability: {test: [anon-cow-seq-hugetlb, anon-w-rand-hugetlb], size: 64M, nr_task: 2}\nruntime: 0s\nruns: 1\nwarm_up: 0\n",
    );
    let before = settings_now();
    let printed = bench.kdyno(&["run", &job]);
    assert_eq!(settings_now(), before);
    if printed.status == Some(3) && printed.err.contains("huge pages") {
        eprintln!("skipped the figures: this machine has no free huge pages now");
        return;
    }
    printed.ok().says("vm-scalability.median");
}

#[test]
fn root_without_privilege_a_setting_is_refused_and_the_rest_works() {
    let Some(_turn) =
        machine_turn("root_without_privilege_a_setting_is_refused_and_the_rest_works")
    else {
        return;
    };
    let bench = Bench::new();
    // The checkout may lie where nobody else may look.
    let program = bench.path("kdyno");
    std::fs::copy(crate::bench::binary(), &program).unwrap();
    let job = bench.file("job.yaml", JOB);
    for dir in [bench.path("."), bench.home(), bench.path("state")] {
        std::fs::create_dir_all(&dir).unwrap();
        std::os::unix::fs::chown(&dir, Some(65534), Some(65534)).unwrap();
    }
    let nobody = |words: &[&str]| -> crate::bench::Printed {
        bench
            .command_of(&program, words)
            .uid(65534)
            .gid(65534)
            .output()
            .unwrap()
            .into()
    };
    let before = settings_now();
    nobody(&["run", &job])
        .with_status(2)
        .says("/proc/sys/vm/swappiness")
        .says("need root");
    nobody(&["run", &job, "--dry-run"])
        .with_status(4)
        .says("need root");
    nobody(&["run", "-n", "2", "echo value: 3"])
        .ok()
        .says("echo.value");
    assert_eq!(settings_now(), before);
    let notes = nobody(&["show"]).ok().out;
    assert!(notes.contains("no cgroup"), "{notes}");
}

#[test]
fn root_read_only_sysfs_is_an_error_and_not_a_half_made_change() {
    let Some(_turn) = machine_turn("root_read_only_sysfs_is_an_error_and_not_a_half_made_change")
    else {
        return;
    };
    let bench = Bench::new();
    let job = bench.file("job.yaml", "testcase: t\ncommand: 'echo v: 1'\nsysctl: {vm.swappiness: 12}\nvariants: {a: {thp: {enabled: never}}, b: {thp: {enabled: always}}}\n");
    let script = format!(
        "mount -o bind,remount,ro /sys || mount -t sysfs -o ro sysfs /sys || exit 99; exec {} run {job}",
        crate::bench::binary()
    );
    let output = bench
        .command_of("unshare".as_ref(), &["-m", "sh", "-c", &script])
        .output();
    let before = settings_now();
    match output {
        Ok(output) if output.status.code() != Some(99) => {
            crate::bench::Printed::from(output)
                .with_status(2)
                .says("read-only");
        }
        _ => eprintln!("skipped: no mount namespace to be had"),
    }
    assert_eq!(settings_now(), before);
    assert!(bench.run_dirs().is_empty());
}

#[test]
fn root_out_of_memory_is_an_outcome() {
    let Some(_turn) = machine_turn("root_out_of_memory_is_an_outcome") else {
        return;
    };
    let bench = Bench::new();
    let Some(limited) = limited_cgroup() else {
        eprintln!("skipped: no memory cgroup to be had");
        return;
    };
    let script = format!(
        "echo $$ > {}/cgroup.procs && exec {} run -n 1 --warm-up 0 '{} workload usemem -O 400m; true'",
        limited.display(),
        crate::bench::binary(),
        crate::bench::binary()
    );
    let printed: crate::bench::Printed = bench
        .command_of("/bin/sh".as_ref(), &["-c", &script])
        .output()
        .unwrap()
        .into();
    for _ in 0..200 {
        if std::fs::remove_dir(&limited).is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    printed.with_status(3).says("out of memory");
    assert!(!limited.exists());
}

/// A memory cgroup of 150 MiB without swap, of version 1 or 2.
fn limited_cgroup() -> Option<std::path::PathBuf> {
    for (parent, limit) in [
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        ("/sys/fs/cgroup", "memory.max"),
    ] {
        let dir =
            std::path::Path::new(parent).join(format!("test-of-kdyno-{}", std::process::id()));
        if std::fs::create_dir(&dir).is_ok() {
            if std::fs::write(dir.join(limit), "157286400").is_ok() {
                return Some(dir);
            }
            std::fs::remove_dir(&dir).ok();
        }
    }
    None
}

#[test]
fn root_no_cgroup_is_left() {
    let Some(_turn) = machine_turn("root_no_cgroup_is_left") else {
        return;
    };
    let bench = Bench::new();
    bench.kdyno(&["run", "-n", "2", "true"]).ok();
    assert_eq!(cgroups_of(&bench), [] as [std::path::PathBuf; 0]);
}

#[test]
fn root_a_setting_that_somebody_changes_under_a_trial_is_noted() {
    let Some(_turn) = machine_turn("root_a_setting_that_somebody_changes_under_a_trial_is_noted")
    else {
        return;
    };
    const SWAPPINESS: &str = "/proc/sys/vm/swappiness";
    let bench = Bench::new();
    let before = std::fs::read(SWAPPINESS).unwrap();
    let job = bench.file(
        "job.yaml",
        "testcase: t\ncommand: 'echo v: 1; echo 33 > /proc/sys/vm/swappiness'\nruns: 1\nwarm_up: 0\nmonitors: none\nsysctl: {vm.swappiness: 11}\n",
    );
    bench.kdyno(&["run", "--no-doctor", &job]).ok();
    bench
        .kdyno(&["show"])
        .ok()
        .says("vm/swappiness was 11 at the start of the trial and 33 at its end");
    // What somebody else has set is theirs, and stays.
    assert_eq!(std::fs::read_to_string(SWAPPINESS).unwrap(), "33\n");
    std::fs::write(SWAPPINESS, before).unwrap();
}
