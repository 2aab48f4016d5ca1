//! `compare`, `stat`, `list`, `show` and the index behind them.

use crate::bench::Bench;

/// Two plans: the first of two variants, the second of one.
fn measured() -> Bench {
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        "testcase: t\ncommand: 'echo value: $X'\nmetrics: {value: {unit: ops/s, better: lower}}\nruns: 3\nvariants: {slow: {environment: {X: 200}}, fast: {environment: {X: 100}}}\n",
    );
    bench.kdyno(&["run", &job]).ok();
    let other = bench.file(
        "other.yaml",
        "testcase: other\ncommand: 'echo value: 7'\nruns: 2\n",
    );
    bench.kdyno(&["run", &other, "--label", "k1"]).ok();
    bench
}

#[test]
fn a_selection_finds_plans_variants_cases_and_metrics() {
    let bench = measured();
    bench.kdyno(&["compare"]).ok().says("other.value");
    bench
        .kdyno(&["compare", "t/*"])
        .ok()
        .says("t.value of fast and slow: unclear (too few runs): -50 %");
    let plan = bench.listed()[0]["plan"].as_str().unwrap().to_owned();
    let short = &plan[plan.len() - 8..];
    bench
        .kdyno(&["compare", short])
        .ok()
        .says("t.value of fast");
    bench
        .kdyno(&["compare", "t/*", "fast"])
        .ok()
        .says("fast  3 runs");
    bench
        .kdyno(&["compare", "t/*", "--metric", "*.pgfault"])
        .ok()
        .says("proc-vmstat.pgfault");
    bench
        .kdyno(&["compare", "nonsense"])
        .with_status(2)
        .says("nonsense");
    bench.kdyno(&["compare", "--metric", "["]).with_status(2);
}

#[test]
fn the_lkp_block_is_exact() {
    let bench = measured();
    let printed = bench
        .kdyno(&["compare", "--format", "lkp", "t/*", "--metric", "t.value"])
        .ok();
    let (_, block) = printed.out.split_once("variant: \n").expect("a heading");
    assert_eq!(
        block,
        concat!(
            "  slow (\"environment.X=200\")\n",
            "  fast (\"environment.X=100\")\n",
            "\n",
            "slow             fast                        \n",
            "---------------- --------------------------- \n",
            "         %stddev     %change         %stddev\n",
            "             \\          |                \\  \n",
            "    200.00           -50.0%     100.00        t.value\n",
        )
    );
    let cases = bench
        .kdyno(&[
            "compare",
            "--format",
            "lkp-cases",
            "t/*",
            "--metric",
            "t.value",
        ])
        .ok();
    assert!(
        cases
            .out
            .contains("    200.00             -50%     100.00        t/defaults/"),
        "{}",
        cases.out
    );
    assert!(cases.out.contains("GEO-MEAN t.value"), "{}", cases.out);
}

#[test]
fn csv_and_json_carry_every_value() {
    let bench = measured();
    let csv = bench
        .kdyno(&["compare", "--format", "csv", "t/*", "--metric", "t.value"])
        .ok()
        .out;
    assert!(
        csv.contains("200 200 200") && csv.contains("100 100 100"),
        "{csv}"
    );
    let json = bench
        .kdyno(&["compare", "--format", "json", "t/*", "--metric", "t.value"])
        .ok()
        .out;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(json.to_string().contains("[100.0,100.0,100.0]"), "{json}");
}

#[test]
fn stat_prints_ministats_rows_of_runs_and_of_files() {
    let bench = measured();
    let header = "    N           Min           Max        Median           Avg        Stddev\n";
    let printed = bench.kdyno(&["stat", "t/*"]).ok();
    assert!(
        printed
            .out
            .contains(&format!("x slow\n+ fast\n{header}x   3           200")),
        "{}",
        printed.out
    );
    let (a, b) = (
        bench.file("a", "1\n2\n3\n4\n"),
        bench.file("b", "# seconds\n5 x\n\n7\n"),
    );
    let printed = bench.kdyno(&["stat", &a, &b]).ok();
    assert!(
        printed.out.contains(
            "x   4             1             4             3           2.5     1.2909944\n"
        ),
        "{}",
        printed.out
    );
    let bad = bench.file("bad", "1\nx\n");
    bench
        .kdyno(&["stat", &bad])
        .with_status(2)
        .says("bad:2: `x` is no finite number");
}

#[test]
fn two_plans_are_set_against_each_other_in_the_order_given() {
    let bench = Bench::new();
    // The command is part of the case: what changes is behind it, as a kernel would be.
    let plan = |value: &str| -> String {
        bench.file("value", value);
        let job = bench.file(
            "same.yaml",
            "testcase: same\ncommand: 'echo value: $(cat value)'\nruns: 3\nwarm_up: 0\n",
        );
        bench.kdyno(&["run", &job, "--label", "k"]).ok();
        let id = bench.listed().last().unwrap()["plan"]
            .as_str()
            .unwrap()
            .to_owned();
        id[id.len() - 8..].to_owned()
    };
    let (old, new) = (plan("10"), plan("20"));
    let printed = bench.kdyno(&["compare", &old, &new]).ok();
    printed.says(&format!(
        "same.value of k@{new} and k@{old}: unclear (too few runs): +100 %"
    ));
    let printed = bench.kdyno(&["compare", &new, &old]).ok();
    printed.says(&format!(
        "same.value of k@{old} and k@{new}: unclear (too few runs): -50 %"
    ));
}

#[test]
fn an_index_that_was_only_half_filled_is_filled() {
    let bench = measured();
    let before = bench.kdyno(&["list"]).ok().out;
    let index = bench.home().join("index.sqlite");
    for milliseconds in [1, 3, 5, 8, 12, 20] {
        std::fs::remove_file(&index).unwrap();
        let mut child = bench
            .command(&["list"])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(
            bench.kdyno(&["list"]).ok().out,
            before,
            "killed after {milliseconds} ms"
        );
    }
}

#[test]
fn a_missing_corrupt_or_foreign_index_is_built_anew() {
    let bench = measured();
    let before = bench.kdyno(&["list"]).ok().out;
    let index = bench.home().join("index.sqlite");
    std::fs::remove_file(&index).unwrap();
    assert_eq!(bench.kdyno(&["list"]).ok().out, before);
    for garbage in [
        &b"SQLite format 3\0 and then nonsense"[..],
        b"nonsense",
        &[0xff; 8192],
    ] {
        std::fs::write(&index, garbage).unwrap();
        let printed = bench.kdyno(&["list"]).ok().says("corrupt");
        assert_eq!(printed.out, before);
    }
    bench.kdyno(&["index", "rebuild"]).ok().says("11 runs");
    assert_eq!(bench.kdyno(&["list"]).ok().out, before);
}

#[test]
fn an_index_that_is_damaged_in_its_middle_is_built_anew() {
    let bench = measured();
    let before = bench.kdyno(&["list"]).ok().out;
    let index = bench.home().join("index.sqlite");
    // Without its journal the file has everything.
    let whole = || {
        bench.kdyno(&["index", "rebuild"]).ok().says("11 runs");
        bench.kdyno(&["list"]).ok();
        std::fs::read(&index).unwrap()
    };
    let pages = whole().len() / 4096;
    for page in 1..pages.min(16) {
        let mut bytes = whole();
        bytes[page * 4096..(page + 1) * 4096].fill(0xa5);
        for suffix in ["-wal", "-shm"] {
            std::fs::remove_file(bench.home().join(format!("index.sqlite{suffix}"))).ok();
        }
        std::fs::write(&index, &bytes).unwrap();
        assert_eq!(bench.kdyno(&["list"]).ok().out, before, "page {page}");
    }
    bench.kdyno(&["index", "rebuild"]).ok().says("11 runs");
}

#[test]
fn a_broken_plan_hides_no_other() {
    let bench = measured();
    let before = bench.kdyno(&["list"]).ok().out;
    let broken = bench
        .home()
        .join("plans/01a00000-0000-7000-8000-000000000001");
    std::fs::create_dir(&broken).unwrap();
    std::fs::write(broken.join("runs"), "not a directory").unwrap();
    assert_eq!(bench.kdyno(&["list"]).ok().out, before);
    bench
        .kdyno(&["index", "rebuild"])
        .ok()
        .says("11 runs")
        .says("is left out");
    bench
        .kdyno(&["run", "--resume"])
        .with_status(2)
        .says("cannot be resumed")
        .says("nothing else is to be resumed");
}

#[test]
fn a_damaged_run_hides_no_other() {
    let bench = measured();
    let runs = bench.sealed();
    let victim = runs[0].join("trial.json");
    let text = std::fs::read(&victim).unwrap();
    std::fs::write(&victim, &text[..text.len() / 2]).unwrap();
    std::fs::remove_file(runs[1].join("MANIFEST")).unwrap();
    let printed = bench.kdyno(&["index", "rebuild"]).ok();
    assert!(printed.out.starts_with("9 runs"), "{}", printed.out);
    assert!(printed.err.contains("damaged"), "{}", printed.err);
    bench.kdyno(&["compare", "t/*"]).ok();
}

#[test]
fn show_finds_a_run_by_its_last_digits_and_names_what_is_unknown() {
    let bench = measured();
    let id = bench.listed()[3]["run_id"].as_str().unwrap().to_owned();
    bench.kdyno(&["show", &id[id.len() - 8..]]).ok().says(&id);
    bench
        .kdyno(&["show", "zzzz"])
        .with_status(2)
        .says("no run `zzzz`");
    let empty = Bench::new();
    empty.kdyno(&["show"]).with_status(2).says("no run yet");
    empty.kdyno(&["list"]).ok().says("no run yet");
    empty.kdyno(&["compare"]).with_status(4);
}
