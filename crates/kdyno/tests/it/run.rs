//! `kdyno run` when nothing goes wrong, and when the program does.

use crate::bench::{Bench, Printed, wait_until};
use std::collections::BTreeMap;

const MINE: &str = "\
testcase: mine
command: \"echo value: $X\"
metrics: {value: {unit: ops/s, better: higher}}
variants:
  a: {environment: {X: \"10\"}}
  b: {environment: {X: \"20\"}}
";

#[test]
fn a_job_runs_its_variants_in_blocks_and_ends_with_the_table() {
    let bench = Bench::new();
    let job = bench.file("job.yaml", MINE);
    let printed = bench.kdyno(&["run", &job, "-n", "4", "--seed", "7"]).ok();
    let printed = printed.says("mine.value of b is 100 % higher than a");
    assert!(printed.err.contains("trial 10 of 10"), "{}", printed.err);
    let rows = bench.listed();
    assert_eq!(rows.len(), 2 * (4 + 1));
    let warm_ups = rows.iter().filter(|row| row["warm_up"] == true).count();
    assert_eq!(warm_ups, 2);
    let mut blocks: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for row in &rows {
        let block = row["block"].as_u64().unwrap();
        blocks
            .entry(block)
            .or_default()
            .push(row["variant"].as_str().unwrap().to_owned());
        assert_eq!(row["outcome"]["kind"], "done");
        assert!(row["boot_id"].is_string() && row["session"].is_string());
    }
    assert!(
        blocks
            .values()
            .all(|variants| variants.len() == 2 && variants[0] != variants[1])
    );
}

#[test]
fn the_same_seed_gives_the_same_order() {
    let order = |bench: &Bench| -> Vec<String> {
        let job = bench.file("job.yaml", MINE);
        let printed = bench
            .kdyno(&["run", &job, "-n", "10", "--seed", "5", "--dry-run"])
            .ok();
        let (_, order) = printed.out.split_once("\norder\n").unwrap();
        order.lines().map(str::to_owned).collect()
    };
    assert_eq!(order(&Bench::new()), order(&Bench::new()));
}

#[test]
fn commands_need_no_job() {
    let bench = Bench::new();
    let printed = bench
        .kdyno(&["run", "-r", "4", "sleep 0.02", "sleep 0.2"])
        .ok();
    printed
        .says("time.elapsed_time of sleep 0.2 is")
        .says("regressed, 4 runs each, 1 boot");
    bench
        .kdyno(&["run", "-n", "2", "--", "ls", "-l", "/"])
        .ok()
        .says("ls/defaults");
    let rows = bench.listed();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(rows.last().unwrap()["variant"], kernel.trim());
}

#[test]
fn words_behind_the_dashes_are_executed_as_they_are() {
    let bench = Bench::new();
    bench
        .kdyno(&["run", "-n", "1", "--", "echo", "a  b", "$HOME", ""])
        .ok();
    bench
        .kdyno(&["show", "--stdout"])
        .ok()
        .says("a  b $HOME \n");
}

#[test]
fn variants_of_the_command_line() {
    let bench = Bench::new();
    let job = bench.file("job.yaml", "testcase: t\ncommand: 'echo value: $X$Y'\n");
    let words = [
        "run",
        &job,
        "-n",
        "3",
        "-V",
        "p:environment.X=1",
        "-V",
        "p:environment.Y=5",
        "-V",
        "q:environment.X=30",
    ];
    bench
        .kdyno(&words)
        .ok()
        .says("t.value of q and p: unclear (too few runs): +100 %");
    bench
        .kdyno(&[
            "run",
            &job,
            "-n",
            "1",
            "--label",
            "mine",
            "-V",
            "p:environment.X=1",
        ])
        .ok()
        .says("no effect");
}

#[test]
fn a_record_keeps_what_the_machine_was_and_did() {
    let bench = Bench::new();
    bench
        .kdyno(&[
            "run",
            "-n",
            "1",
            "--warm-up",
            "0",
            "echo value: 5; echo oops >&2; sleep 1.2",
        ])
        .ok();
    let record = bench.record();
    let names: Vec<&str> = record["readings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["metric"].as_str().unwrap())
        .collect();
    for name in [
        "echo.value",
        "echo.time.user_time",
        "proc-vmstat.pgfault",
        "proc-vmstat.pgfault/s",
        "meminfo.MemFree",
        "proc-stat.ctxt",
        "kdyno.overhead.cpu_ms",
    ] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    bench
        .kdyno(&["show", "--facts"])
        .ok()
        .says("kernel.release = ")
        .says("cpu.");
    assert_eq!(bench.kdyno(&["show", "--stdout"]).ok().out, "value: 5\n");
    assert_eq!(bench.kdyno(&["show", "--stderr"]).ok().out, "oops\n");
    bench.kdyno(&["show", "--all"]).ok().says("meminfo.MemFree");
}

#[test]
fn failures_end_with_3_and_say_which_and_why() {
    let why = |command: &str, reason: &str| {
        let bench = Bench::new();
        let job = bench.file(
            "job.yaml",
            format!("testcase: t\ncommand: {command}\ntimeout: 1s\nruns: 1\nwarm_up: 0\n"),
        );
        let printed = bench
            .kdyno(&["run", &job])
            .with_status(3)
            .says(reason)
            .says("t/defaults");
        assert_eq!(bench.listed().len(), 1, "a failed run is a result");
        printed
    };
    why("[/no/such/program]", "`/no/such/program` was not found");
    why("[/etc]", "Permission denied");
    why("exit 7", "exit code 7").says("1 run of");
    why("'echo because >&2; exit 7'", "| because");
    why("kill -SEGV $$", "ended by signal 11");
    why("echo nothing", "printed no figure").says("key: number");
    why("'echo value: nan'", "no finite number");
    why("head -c 100000 /dev/urandom", "printed no figure");
    why("sleep 60", "timed out after 1.0 s");
    why(
        "'trap \"\" TERM; sleep 60; sleep 60'",
        "timed out after 1.0 s",
    );
}

#[test]
fn a_missing_catalog_program_comes_with_its_hint() {
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        "testcase: hackbench\nhackbench: {hackbench: /no/hackbench}\nruns: 1\nwarm_up: 0\n",
    );
    bench.kdyno(&["run", &job]).with_status(3).says("rt-tests");
    bench
        .kdyno(&["run", &job, "--dry-run"])
        .with_status(4)
        .says("missing: the program `/no/hackbench`");
}

#[test]
fn a_case_that_the_machine_cannot_run_is_skipped_aloud() {
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        "testcase: t\ncommand: 'echo value: 1'\nneed_memory: 900T\n",
    );
    bench
        .kdyno(&["run", &job])
        .with_status(4)
        .says("skipped: t/defaults: it needs")
        .says("nothing to run");
}

#[test]
fn processes_that_a_program_leaves_behind_are_ended() {
    let bench = Bench::new();
    let marker = format!("7{}", std::process::id());
    let daemon = format!("setsid sleep {marker} >/dev/null 2>&1 & echo value: 1");
    bench
        .kdyno(&["run", "-n", "1", "--warm-up", "0", &daemon])
        .ok();
    let left = std::process::Command::new("pgrep")
        .args(["-f", &format!("sleep {marker}")])
        .output();
    match left {
        Ok(output) => assert_eq!(String::from_utf8_lossy(&output.stdout), ""),
        Err(error) => eprintln!("skipped the look for processes: pgrep: {error}"),
    }
    assert!(bench.record()["notes"].to_string().contains("left behind"));
}

#[test]
fn processes_that_hide_their_environment_are_ended_too() {
    let bench = Bench::new();
    let marker = format!("8{}", std::process::id());
    let daemon = format!(
        "env -i setsid sleep {marker} >/dev/null 2>&1 & env -i sleep {marker} & echo value: 1"
    );
    bench
        .kdyno(&["run", "-n", "1", "--warm-up", "0", &daemon])
        .ok();
    let left = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            let arguments = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            arguments
                .split(|byte| *byte == 0)
                .any(|argument| argument == marker.as_bytes())
        });
    assert_eq!(left.count(), 0);
    assert!(bench.record()["notes"].to_string().contains("left behind"));
}

#[test]
fn a_program_that_asks_the_terminal_fails_instead_of_waiting_for_ever() {
    let bench = Bench::new();
    bench
        .kdyno(&["run", "-n", "1", "--warm-up", "0", "read x < /dev/tty"])
        .with_status(3)
        .says("/dev/tty");
}

#[test]
fn a_reader_that_has_gone_does_not_hide_a_failure() {
    let bench = Bench::new();
    let script = format!(
        "{} run -n 1 --warm-up 0 'exit 7' 2>err; echo $? >status",
        crate::bench::binary()
    );
    let mut shell = bench.command_of("/bin/sh".as_ref(), &["-c", &format!("( {script} ) | true")]);
    assert!(shell.status().unwrap().success());
    assert_eq!(
        std::fs::read_to_string(bench.path("status")).unwrap(),
        "3\n"
    );
    assert!(
        std::fs::read_to_string(bench.path("err"))
            .unwrap()
            .contains("exit code 7")
    );
}

#[test]
fn children_that_a_shell_left_us_are_none_of_our_trials() {
    let bench = Bench::new();
    let marker = format!("9{}", std::process::id());
    let script = format!(
        "sleep {marker} >/dev/null 2>&1 & echo $! > pid; exec {} run -n 1 true",
        crate::bench::binary()
    );
    bench
        .command_of("/bin/sh".as_ref(), &["-c", &script])
        .output()
        .unwrap();
    let pid = std::fs::read_to_string(bench.path("pid")).unwrap();
    let arguments =
        std::fs::read_to_string(format!("/proc/{}/cmdline", pid.trim())).unwrap_or_default();
    assert!(
        std::process::Command::new("kill")
            .arg(pid.trim())
            .status()
            .unwrap()
            .success()
    );
    assert!(
        arguments.contains(&marker),
        "kdyno ended a process that it never started"
    );
}

#[test]
fn ignored_signals_stay_ignored_and_children_are_waited_for() {
    let bench = Bench::new();
    let script = format!(
        "trap '' CHLD; exec {} run -n 1 true",
        crate::bench::binary()
    );
    let printed: Printed = bench
        .command_of("/bin/bash".as_ref(), &["-c", &script])
        .output()
        .unwrap()
        .into();
    printed.ok();
    let script = format!(
        "trap '' HUP; exec {} run -n 1 'sleep 0.5'",
        crate::bench::binary()
    );
    let mut child = bench
        .command_of("/bin/sh".as_ref(), &["-c", &script])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until(|| bench.run_dirs().len() > 2);
    assert!(
        std::process::Command::new("kill")
            .args(["-HUP", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn times_beyond_any_age_are_no_panic() {
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        "vm-scalability: {test: anon-w-seq, size: 8M}\nruntime: 1000000000000000s\n",
    );
    let printed = bench.kdyno(&["run", &job, "-n", "90000", "--yes", "--dry-run"]);
    assert!(!printed.err.contains("panicked"), "{}", printed.err);
}

#[test]
fn a_dry_run_changes_and_keeps_nothing() {
    let bench = Bench::new();
    let job = bench.file("job.yaml", MINE);
    bench
        .kdyno(&["run", &job, "--dry-run"])
        .ok()
        .says("seed")
        .says("changes on this machine")
        .says("none");
    assert!(!bench.home().exists());
    assert!(!bench.path("state").exists());
}

#[test]
fn nothing_to_resume_is_said_and_fine() {
    let bench = Bench::new();
    bench
        .kdyno(&["run", "--resume"])
        .ok()
        .says("nothing to resume");
    bench.kdyno(&["run", "--resume", "-n", "3"]).with_status(2);
}

#[test]
fn a_second_run_is_refused_with_the_pid() {
    let bench = Bench::new();
    let mut first = bench
        .command(&["run", "-n", "1", "sleep 5"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let lock = bench.path("state").join("lock");
    wait_until(|| {
        std::fs::read_to_string(&lock).is_ok_and(|text| text.trim() == first.id().to_string())
    });
    let refused = bench.kdyno(&["run", "-n", "1", "true"]);
    let forced = bench.kdyno(&["run", "-n", "1", "--force", "true"]);
    let interrupted = interrupt(&mut first);
    refused
        .with_status(2)
        .says(&first.id().to_string())
        .says("--force");
    forced.ok();
    assert_eq!(interrupted, Some(130));
}

#[test]
fn a_forced_run_is_left_alone_by_restore_and_by_others() {
    let bench = Bench::new();
    let start = |words: &[&str]| {
        bench
            .command(words)
            .stderr(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut first = start(&["run", "-n", "1", "--warm-up", "0", "sleep 0.3"]);
    wait_until(|| bench.run_dirs().len() == 1);
    let mut forced = start(&["run", "-n", "1", "--warm-up", "0", "--force", "sleep 1.5"]);
    wait_until(|| bench.run_dirs().len() == 2);
    assert_eq!(first.wait().unwrap().code(), Some(0));
    bench.kdyno(&["restore"]).ok().says("nothing to restore");
    bench
        .kdyno(&["run", "-n", "1", "true"])
        .with_status(2)
        .says("started with --force");
    assert_eq!(forced.wait().unwrap().code(), Some(0));
}

#[test]
fn what_runs_is_what_was_started_even_if_the_file_is_replaced() {
    let bench = Bench::new();
    let program = bench.path("kdyno");
    std::fs::copy(crate::bench::binary(), &program).unwrap();
    let job = bench.file("job.yaml", "vm-scalability: {test: anon-w-seq, size: 8M, nr_task: 1}\nruntime: 1s\nruns: 2\nwarm_up: 0\n");
    let mut child = bench
        .command_of(&program, &["run", &job])
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until(|| !bench.run_dirs().is_empty());
    let impostor = bench.file("impostor", "#!/bin/sh\necho '1 bytes / 1 usecs = 1 KB/s'\n");
    std::fs::set_permissions(
        &impostor,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    std::fs::rename(&impostor, &program).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let rows = bench.listed();
    assert_eq!(rows.len(), 2);
    assert!(
        rows.iter()
            .all(|row| row["scalars"][0]["value"].as_f64().unwrap() > 1000.0),
        "{rows:?}"
    );
}

#[test]
fn names_cannot_break_a_line() {
    let bench = Bench::new();
    let printed = bench
        .kdyno(&["run", "-n", "1", "echo a\necho b\u{1b}[31m", "true"])
        .ok();
    let shown = format!("{}{}", printed.out, printed.err);
    assert!(
        !shown.contains('\u{1b}') && shown.contains("echo a echo b"),
        "{shown}"
    );
    bench
        .kdyno(&["run", "-n", "1", "--testbox", "a\nb", "true"])
        .with_status(2);
    bench
        .kdyno(&["run", "-n", "1", "--label", "a\u{1b}b", "true"])
        .with_status(2);
}

#[test]
fn unknown_monitors_are_refused_before_anything_runs() {
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        "testcase: t\ncommand: 'echo v: 1'\nmonitors: [memimfo]\n",
    );
    bench
        .kdyno(&["run", &job])
        .with_status(2)
        .says("memimfo")
        .says("did you mean `meminfo`?");
    assert!(bench.run_dirs().is_empty());
    let job = bench.file(
        "job.yaml",
        "testcase: t\ncommand: 'echo v: 1'\nmonitors: [vmstat]\nruns: 1\n",
    );
    bench.kdyno(&["run", &job]).ok();
}

#[test]
fn an_interrupt_ends_with_130_and_resume_goes_on() {
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        "testcase: t\ncommand: 'sleep 0.2; echo value: 1'\nruns: 6\n",
    );
    let child = bench
        .command(&["run", &job])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = child;
    wait_until(|| bench.sealed().len() >= 2);
    assert_eq!(interrupt(&mut child), Some(130));
    let before = bench.sealed().len();
    assert!(before < 7, "the interrupt came before the end");
    bench.kdyno(&["run", "--resume"]).ok();
    assert_eq!(bench.listed().len(), 7);
    bench
        .kdyno(&["run", "--resume"])
        .ok()
        .says("nothing to resume");
}

#[test]
fn timeout_of_coreutils_interrupts_once_although_it_signals_twice() {
    let bench = Bench::new();
    let words = [
        "-s",
        "INT",
        "1",
        crate::bench::binary(),
        "run",
        "-n",
        "3",
        "sleep 0.6",
    ];
    let printed: Printed = bench
        .command_of("timeout".as_ref(), &words)
        .output()
        .unwrap()
        .into();
    printed.says("interrupted; everything is put back");
    bench.kdyno(&["run", "--resume"]).ok();
}

fn interrupt(child: &mut std::process::Child) -> Option<i32> {
    let pid = child.id().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    child.wait().unwrap().code()
}

#[test]
fn no_terminal_control_reaches_a_pipe() {
    let bench = Bench::new();
    let Printed { out, err, .. } = bench.kdyno(&["run", "-n", "1", "true"]).ok();
    assert!(
        !out.contains('\u{1b}') && !err.contains('\u{1b}'),
        "{out}{err}"
    );
}

#[test]
fn jobs_include_jobs() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("suite/deep")).expect("folders");
    bench.file("suite/base.yaml", MINE);
    let job = bench.file(
        "suite/deep/job.yaml",
        "<<: base.yaml\nruns: 1\nwarm_up: 0\n",
    );
    bench.kdyno(&["run", &job]).ok();
    assert_eq!(bench.listed().len(), 2);
    // The run directory keeps the job as it was run.
    let plan = bench.run_dirs()[0]
        .ancestors()
        .nth(2)
        .map(|p| p.join("job.yaml"));
    let kept = std::fs::read_to_string(plan.expect("a plan")).expect("the job");
    assert!(
        kept.starts_with("testcase: mine\n") && kept.ends_with("warm_up: 0\n"),
        "{kept}"
    );
    let lost = bench.file("suite/lost.yaml", "\n<<: gone.yaml\n");
    bench
        .kdyno(&["run", &lost])
        .with_status(2)
        .says("suite/lost.yaml:2:1: cannot include `gone.yaml`")
        .says("hint: a path is taken from the folder of the including file");
    bench.file("suite/one.yaml", "<<: two.yaml\n");
    bench.file("suite/two.yaml", "<<: one.yaml\n");
    bench
        .kdyno(&["run", &bench.path("suite/one.yaml").display().to_string()])
        .with_status(2)
        .says("job files include each other");
}
