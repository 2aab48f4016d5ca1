//! What seldom happens and must not lose a run: floods of output, clocks that are set, full disks,
//! indexes that are damaged, two users.

use crate::bench::{Bench, Printed, machine_turn, wait_until};
use std::os::unix::process::CommandExt;
use std::process::Command;

#[test]
fn a_gigabyte_of_output_is_kept_and_its_figures_are_found() {
    let bench = Bench::new();
    let free = Command::new("df")
        .args(["--output=avail", "-k"])
        .arg(bench.path("."))
        .output();
    let free = free.ok().and_then(|told| {
        let text = String::from_utf8(told.stdout).ok()?;
        text.lines().last()?.trim().parse::<u64>().ok()
    });
    if free.is_none_or(|kib| kib < 4 << 20) {
        eprintln!("skipped: a gigabyte of output needs 4 GiB of disk");
        return;
    }
    bench
        .kdyno(&[
            "run",
            "-n",
            "1",
            "--warm-up",
            "0",
            "echo first: 3; head -c 1073741824 /dev/zero | tr '\\0' x; echo; echo last: 4",
        ])
        .ok()
        .says("echo.first");
    let kept = bench.run_dirs()[0].join("raw/stdout.gz");
    assert!(kept.metadata().unwrap().len() < 16 << 20);
    let length = Command::new("sh")
        .args(["-c", "zcat \"$0\" | wc -c"])
        .arg(&kept)
        .output()
        .unwrap();
    let length = String::from_utf8(length.stdout).unwrap();
    assert_eq!(length.trim(), (1_073_741_824 + 18).to_string());
    bench.kdyno(&["index", "rebuild"]).ok();
    assert_eq!(bench.listed().len(), 1);
}

#[test]
fn binary_output_is_kept_to_the_byte() {
    let bench = Bench::new();
    let bytes: Vec<u8> = (0..300_000u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let path = bench.file("bytes", &bytes);
    bench
        .kdyno(&[
            "run",
            "-n",
            "1",
            "--warm-up",
            "0",
            &format!("cat {path}; echo; echo value: 4"),
        ])
        .ok()
        .says("cat.value");
    let shown = bench
        .command(&["show", "--stdout"])
        .output()
        .unwrap()
        .stdout;
    assert_eq!(shown[..bytes.len()], bytes[..]);
}

/// libfaketime reads its offset from a file anew at each call, so that the clock is set meanwhile.
#[test]
fn a_clock_that_is_set_back_changes_no_order_and_no_time() {
    let Some(library) = faketime() else {
        eprintln!("skipped: libfaketime is not here (Debian's package faketime)");
        return;
    };
    let bench = Bench::new();
    let clock = bench.file("clock", "+0");
    let run = |words: &[&str]| -> Printed {
        let mut command = bench.command(words);
        command
            .env("LD_PRELOAD", &library)
            .env("FAKETIME_TIMESTAMP_FILE", &clock)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        command.output().unwrap().into()
    };
    run(&["run", "-n", "2", "--warm-up", "0", "sleep 0.2; echo v: 1"]).ok();
    std::fs::write(&clock, "-3d").unwrap();
    let set = format!(
        "echo -- -9d > {clock}.new; sed -i 's/-- //' {clock}.new; mv {clock}.new {clock}; sleep 0.2; echo v: 2"
    );
    run(&["run", "-n", "2", "--warm-up", "0", &set]).ok();
    let values: Vec<f64> = bench
        .listed()
        .iter()
        .map(|row| row["scalars"][0]["value"].as_f64().unwrap())
        .collect();
    assert_eq!(
        values,
        [1.0, 1.0, 2.0, 2.0],
        "by creation, not by the clock"
    );
    let shown = bench.kdyno(&["list", "--json"]).ok().out;
    for line in shown.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let window = row["window_ns"].as_u64().unwrap();
        assert!((150_000_000..20_000_000_000).contains(&window), "{row}");
    }
    let told: Vec<String> = bench
        .run_dirs()
        .iter()
        .map(|run| run.file_name().unwrap().to_string_lossy().into_owned())
        .map(|id| bench.kdyno(&["show", &id]).ok().out)
        .collect();
    let set = told
        .iter()
        .filter(|text| text.contains("the time of day was set"));
    assert_eq!(set.count(), 1, "{told:?}");
    bench.kdyno(&["compare", "--all"]).ok().says("echo");
}

fn faketime() -> Option<std::path::PathBuf> {
    let lib = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let places = lib.map(|entry| entry.path().join("faketime/libfaketime.so.1"));
    places.into_iter().find(|path| path.is_file())
}

#[test]
fn root_a_full_disk_of_a_real_file_system_loses_no_finished_run() {
    let Some(_turn) = machine_turn("root_a_full_disk_of_a_real_file_system_loses_no_finished_run")
    else {
        return;
    };
    let bench = Bench::new();
    let (image, home) = (bench.path("image"), bench.home());
    std::fs::create_dir(&home).unwrap();
    let script = "truncate -s 24M \"$0\" && mkfs.ext4 -q -F \"$0\" && mount -o loop \"$0\" \"$1\"";
    let mounted = Command::new("sh")
        .args(["-c", script])
        .args([&image, &home])
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no loop device to be had");
        return;
    }
    let job = bench.file("job.yaml", "testcase: t\ncommand: 'head -c 900000 /dev/urandom | base64; echo value: 1'\nruns: 40\nwarm_up: 0\n");
    let full = bench.kdyno(&["run", &job]);
    let sealed = bench.sealed().len();
    // Room again: the plan goes on.
    std::fs::remove_dir_all(home.join("lost+found")).unwrap();
    let runs = bench.run_dirs()[0].parent().unwrap().to_owned();
    for run in bench.sealed().iter().take(sealed / 2) {
        std::fs::remove_dir_all(run).unwrap();
    }
    let left = std::fs::read_dir(&runs).unwrap().count();
    let listed = bench.kdyno(&["index", "rebuild"]);
    let unmounted = Command::new("umount").arg(&home).status().unwrap();
    assert!(unmounted.success());
    full.with_status(2).says("No space left");
    assert!(sealed > 2 && sealed < 40, "{sealed} sealed");
    assert!(left >= sealed - sealed / 2);
    listed.ok();
}

type Damage = Box<dyn Fn(&mut Vec<u8>)>;

#[test]
fn an_index_that_is_damaged_anywhere_is_noticed_or_harmless() {
    let bench = Bench::new();
    bench
        .kdyno(&["run", "-n", "3", "echo value: 3", "echo value: 4"])
        .ok();
    let right = bench
        .kdyno(&["compare", "--all", "--format", "json"])
        .ok()
        .out;
    let index = bench.home().join("index.sqlite");
    let whole = std::fs::read(&index).unwrap();
    let damages: [(&str, Damage); 6] = [
        ("cut in half", Box::new(|b| b.truncate(b.len() / 2))),
        ("empty", Box::new(Vec::clear)),
        (
            "another file",
            Box::new(|b| *b = b"not a database at all".repeat(500)),
        ),
        (
            "zeros in the middle",
            Box::new(|b| {
                let middle = b.len() / 2;
                b[middle..].fill(0);
            }),
        ),
        (
            "a page of noise",
            Box::new(|b| {
                for (n, byte) in b.iter_mut().enumerate().skip(4096).take(4096) {
                    *byte = (n.wrapping_mul(31) >> 3) as u8;
                }
            }),
        ),
        (
            "every thousandth byte",
            Box::new(|b| {
                b.iter_mut().step_by(1000).for_each(|byte| *byte = !*byte);
            }),
        ),
    ];
    for (how, damage) in damages {
        let mut bytes = whole.clone();
        damage(&mut bytes);
        std::fs::write(&index, &bytes).unwrap();
        let printed = bench.kdyno(&["compare", "--all", "--format", "json"]);
        assert_eq!(printed.status, Some(0), "{how}: {}", printed.err);
        assert_eq!(printed.out, right, "{how}");
    }
}

/// Another user's run and root's run disturb each other, whatever their homes are.
#[test]
fn root_two_users_share_a_machine() {
    let Some(_turn) = machine_turn("root_two_users_share_a_machine") else {
        return;
    };
    let bench = Bench::new();
    let program = bench.path("kdyno");
    std::fs::copy(crate::bench::binary(), &program).unwrap();
    let theirs = bench.path("theirs");
    for dir in [bench.path("."), theirs.clone(), theirs.join("run")] {
        std::fs::create_dir_all(&dir).unwrap();
        std::os::unix::fs::chown(&dir, Some(65534), Some(65534)).unwrap();
    }
    let as_root = |words: &[&str]| {
        let mut command = bench.command_of(&program, words);
        command.env_remove("KDYNO_RUNTIME_DIR");
        command
    };
    let as_nobody = |words: &[&str]| -> Printed {
        let mut command = bench.command_of(&program, words);
        command
            .env_remove("KDYNO_RUNTIME_DIR")
            .env("XDG_RUNTIME_DIR", theirs.join("run"))
            .env("KDYNO_HOME", theirs.join("home"))
            .uid(65534)
            .gid(65534);
        command.output().unwrap().into()
    };
    let mut child = as_root(&["run", "-n", "1", "--warm-up", "0", "sleep 3"])
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until(|| !bench.run_dirs().is_empty());
    let pid = child.id().to_string();
    let refused = as_nobody(&["run", "-n", "1", "echo v: 1"]);
    assert!(child.wait().unwrap().success());
    refused.with_status(2).says(&pid).says("disturb each other");
    as_nobody(&["run", "-n", "2", "echo v: 1"]).ok();
    let own = |home: &std::path::Path| std::fs::read_dir(home.join("plans")).unwrap().count();
    assert_eq!((own(&bench.home()), own(&theirs.join("home"))), (1, 1));
}

#[test]
fn root_runs_of_another_user_can_be_looked_at() {
    let Some(_turn) = machine_turn("root_runs_of_another_user_can_be_looked_at") else {
        return;
    };
    let bench = Bench::new();
    bench.kdyno(&["run", "-n", "2", "echo v: 1"]).ok();
    let ours = bench.kdyno(&["compare"]).ok().out;
    let program = bench.path("kdyno");
    std::fs::copy(crate::bench::binary(), &program).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bench.path("."), mode).unwrap();
    let as_nobody = |words: &[&str]| -> Printed {
        let mut command = bench.command_of(&program, words);
        command.uid(65534).gid(65534).output().unwrap().into()
    };
    let said = "index.sqlite: cannot open or write the index";
    // With an index that can only be read, and without one.
    for _ in 0..2 {
        let theirs = as_nobody(&["compare"]).ok().says(said).says("in memory");
        assert_eq!(theirs.out, ours);
        assert_eq!(as_nobody(&["list"]).ok().out.lines().count(), 3);
        for file in std::fs::read_dir(bench.home()).unwrap().flatten() {
            if file.file_name().to_string_lossy().starts_with("index") {
                std::fs::remove_file(file.path()).unwrap();
            }
        }
    }
}
