//! Verdicts as a user meets them: exit statuses, values from files, fixes, machines, looks, noise
//! memory, controls.

use crate::bench::{Bench, Printed, wait_until};
use std::process::{Child, Command, Stdio};

/// A job whose figure is a variant's X and a little noise that is the same in every test.
fn job(bench: &Bench, name: &str, variants: &[(&str, u32)]) -> String {
    let count = bench.path("count").display().to_string();
    let mut text = format!(
        "testcase: t\ncommand: 'n=$(cat {count} 2>/dev/null || echo 0); echo $((n + 1)) > {count}; \
         echo value: $((X * 10 + n * 7 % 50))'\nmetrics: {{value: {{unit: ops/s, better: higher}}}}\n\
         warm_up: 0\nseed: 5\nvariants:\n"
    );
    for (name, x) in variants {
        text.push_str(&format!(
            "  {name}: {{environment: {{X: \"{x}\", NAME: {name}}}}}\n"
        ));
    }
    bench.file(name, text)
}

fn run(bench: &Bench, job: &str, more: &[&str]) -> Printed {
    let words: Vec<&str> = ["run", job].iter().chain(more).copied().collect();
    bench.kdyno(&words).ok()
}

#[test]
fn a_regression_sets_the_status_where_asked() {
    let bench = Bench::new();
    let worse = job(&bench, "worse.yaml", &[("old", 1000), ("new", 900)]);
    run(&bench, &worse, &["-n", "8"]).says("regressed, 8 runs each, 1 boot");
    bench.kdyno(&["compare"]).ok();
    bench
        .kdyno(&["compare", "--fail-on", "regression"])
        .with_status(1);
    bench.kdyno(&["compare", "--bisect-exit"]).with_status(1);
    let turned = ["compare", "new", "old"];
    let with = |option: &[&str]| bench.kdyno(&[&turned[..], option].concat());
    with(&["--fail-on", "regression"])
        .ok()
        .says("improved, 8 runs each");
    with(&["--bisect-exit"]).ok();
    // Two runs cannot tell.
    run(&bench, &worse, &["-n", "2"]);
    let few = |options: &[&str]| bench.kdyno(&[&["compare", "--no-history"], options].concat());
    few(&["--fail-on", "regression"]).ok();
    few(&["--fail-on", "regression,unclear"]).with_status(4);
    few(&["--bisect-exit"]).with_status(125);
    few(&["--fail-on", "regression", "--bisect-exit"]).with_status(128);
    few(&["--margin", "0"])
        .with_status(2)
        .says("--margin 0 is no share");
}

#[test]
fn beside_the_block_and_beside_another_rule() {
    let bench = Bench::new();
    let worse = job(&bench, "worse.yaml", &[("old", 1000), ("new", 900)]);
    run(&bench, &worse, &["-n", "6"]);
    let block = bench.kdyno(&["compare", "--format", "lkp"]).ok();
    let line = |printed: &Printed| -> String {
        let mut lines = printed.out.lines();
        let found = lines.find(|line| line.contains("t.value"));
        found.expect("a line of the metric").to_owned()
    };
    assert!(line(&block).ends_with("  t.value"), "{}", line(&block));
    let beside = bench
        .kdyno(&["compare", "--format", "lkp", "--verdicts"])
        .ok();
    assert!(line(&beside).starts_with(&line(&block)));
    assert!(line(&beside).contains("regressed"), "{}", line(&beside));
    assert!(line(&beside).ends_with("n 6/6"), "{}", line(&beside));
    let lkp = bench.kdyno(&["compare", "--lkp-rule"]).ok();
    assert!(
        line_of(&lkp, "ops/s").contains("  changed  t.value"),
        "{}",
        lkp.out
    );
}

fn line_of(printed: &Printed, word: &str) -> String {
    let mut lines = printed.out.lines();
    lines
        .find(|line| line.contains(word))
        .unwrap_or("")
        .to_owned()
}

#[test]
fn a_fix_takes_back_a_part() {
    let bench = Bench::new();
    let three = [("good", 1000), ("bad", 800), ("fixed", 948)];
    run(&bench, &job(&bench, "three.yaml", &three), &["-n", "6"]);
    bench
        .kdyno(&["compare", "--recover", "good", "bad", "fixed"])
        .ok()
        .says("fixed recovers 74 % (")
        .says("of the way from bad to good: partial-fix");
    bench
        .kdyno(&["compare", "--recover", "good", "bad", "gone"])
        .with_status(2)
        .says("no variant is called `gone`")
        .says("the runs have good, bad, fixed");
    for format in ["json", "lkp"] {
        let words = [
            "compare",
            "--format",
            format,
            "--recover",
            "good",
            "bad",
            "fixed",
        ];
        bench.kdyno(&words).with_status(2).says("speak in words");
    }
}

#[test]
fn figures_as_wide_as_their_column_keep_a_blank_before_them() {
    let bench = Bench::new();
    let file = bench.file(
        "wide.csv",
        "metric,variant,value\nm,a,1e301\nm,a,2e305\nm,a,3e302\nm,b,1e302\nm,b,2e307\nm,b,3e305\n",
    );
    let table = bench.kdyno(&["compare", "--csv", &file]).ok().out;
    let row = table.lines().find(|line| line.ends_with("  m")).unwrap();
    assert!(row.contains("% 6.767e+306 ±"), "{row}");
}

#[test]
fn values_from_a_file() {
    let bench = Bench::new();
    let mut text = "metric,variant,value\n".to_owned();
    for (i, value) in [100.0, 101.0, 99.0, 100.5, 99.5].iter().enumerate() {
        text.push_str(&format!("alloc,old,{value}\nalloc,new,{}\n", value * 1.2));
        text.push_str(&format!(
            "calls,old,7\ncalls,new,{}\n",
            if i == 0 { "" } else { "7" }
        ));
    }
    let file = bench.file("bench.csv", &text);
    bench
        .kdyno(&["compare", "--csv", &file])
        .ok()
        .says("alloc of new is 20 % higher than old")
        .says("changed, 5 runs each")
        .says("1 value is missing");
    bench
        .kdyno(&[
            "compare",
            "--csv",
            &file,
            "--better",
            "lower",
            "--fail-on",
            "regression",
        ])
        .with_status(1)
        .says("regressed");
    let json = bench
        .kdyno(&["compare", "--csv", &file, "--format", "json"])
        .ok();
    let read: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    let judged = &read["tables"][0]["metrics"][0]["cells"][1]["judged"];
    assert_eq!(judged["verdict"], "changed");
    assert_eq!(judged["effect"]["method"], "welch");
    let mut piped = bench.command(&["compare", "--csv", "-"]);
    piped.stdin(std::fs::File::open(&file).expect("the file"));
    Printed::from(piped.output().expect("kdyno starts"))
        .ok()
        .says("alloc of new");
    let bad = bench.file("bad.csv", "metric,variant,value\nx,a,fast\n");
    bench
        .kdyno(&["compare", "--csv", &bad])
        .with_status(2)
        .says("bad.csv: line 2: value `fast` is no number")
        .says("hint: lines are `metric,variant,value`");
    bench
        .kdyno(&["compare", "--csv", "/nonexistent.csv"])
        .with_status(2)
        .says("/nonexistent.csv");
}

#[test]
fn runs_until_it_is_decided() {
    let bench = Bench::new();
    let far = job(&bench, "far.yaml", &[("old", 1000), ("new", 500)]);
    let printed = run(&bench, &far, &["--until-decided", "--max-runs", "20"]);
    printed
        .says("look after 5 runs a side: 1 of 1 headline metrics settled")
        .says("decided after 5 runs a side: every headline metric is settled; 15 of 20 runs")
        .says("regressed, 5 runs each");
    assert_eq!(bench.listed().len(), 10);
    let plan = bench.run_dirs()[0]
        .parent()
        .and_then(|runs| runs.parent())
        .map(|p| p.to_owned());
    let plan = plan.expect("a plan");
    let decision = std::fs::read_to_string(plan.join("decision.json")).expect("a decision");
    let decision: serde_json::Value = serde_json::from_str(&decision).expect("JSON");
    assert_eq!(decision["stopped"], "decided");
    assert_eq!(decision["looks"][0]["standings"][0]["verdict"], "regressed");
    // Later comparisons are held to the level of the look that ended it.
    bench.kdyno(&["compare"]).ok().says("99.999% interval");
    bench
        .kdyno(&["run", "--resume"])
        .ok()
        .says("nothing to resume");

    let near = job(&bench, "near.yaml", &[("old", 1000), ("new", 1009)]);
    run(&bench, &near, &["--until-decided", "--max-runs", "5"])
        .says("5 runs a side are done; undecided: t.value of new (small needs-runs:+");
    run(
        &bench,
        &near,
        &[
            "--until-decided",
            "--max-runs",
            "1000",
            "--max-time",
            "1s",
            "--yes",
        ],
    )
    .says("the time is up after");
    let refused = |more: &[&str]| {
        let words = [&["run", &near, "--until-decided"], more].concat();
        bench.kdyno(&words).with_status(2)
    };
    refused(&["--max-time", "soon"]).says("--max-time soon is no time");
    refused(&["--max-runs", "3"]).says("runs are looked at every 5");
    refused(&["-n", "3"]).says("cannot be used with");
    bench
        .kdyno(&["run", "--until-decided", "true"])
        .with_status(2)
        .says("there is one variant");
}

fn quietly(mut command: Command) -> Child {
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

#[test]
fn looks_survive_a_kill_and_are_not_made_twice() {
    let bench = Bench::new();
    let near = job(&bench, "near.yaml", &[("old", 1000), ("new", 1009)]);
    let words = ["run", &near, "--until-decided", "--max-runs", "15"];
    let mut child = quietly(bench.command(&words));
    let decision = || -> Option<serde_json::Value> {
        let runs = bench.run_dirs();
        let plan = runs.first()?.parent()?.parent()?;
        serde_json::from_slice(&std::fs::read(plan.join("decision.json")).ok()?).ok()
    };
    wait_until(|| decision().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    bench.kdyno(&["run", "--resume"]).ok();
    let looks = |decision: serde_json::Value| -> Vec<u64> {
        let looks = decision["looks"].as_array().unwrap().iter();
        looks.map(|look| look["runs"].as_u64().unwrap()).collect()
    };
    assert_eq!(looks(decision().unwrap()), [5, 10, 15]);
}

#[test]
fn a_plan_that_cannot_be_read_is_not_called_finished() {
    let bench = Bench::new();
    let job = job(&bench, "job.yaml", &[("old", 100), ("new", 150)]);
    let mut child = quietly(bench.command(&["run", &job, "-n", "200"]));
    wait_until(|| bench.sealed().len() > 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let plan = bench.run_dirs()[0].join("../../plan.json");
    let whole = std::fs::read(&plan).unwrap();
    std::fs::write(&plan, &whole[..whole.len() / 2]).unwrap();
    bench
        .kdyno(&["run", "--resume"])
        .with_status(2)
        .says("plan.json cannot be read");
}

#[test]
fn what_was_measured_before_is_remembered() {
    let bench = Bench::new();
    let same = job(&bench, "same.yaml", &[("a", 1000), ("b", 1000)]);
    run(&bench, &same, &["-n", "22"]);
    let worse = job(&bench, "worse.yaml", &[("a", 1000), ("b", 900)]);
    // Only the variants differ: it is the same case.
    let printed = run(&bench, &worse, &["-n", "3"]);
    printed
        .says("regressed, 3 runs each")
        .says("noise memory: 2 earlier run sets (44 runs)");
    bench
        .kdyno(&["compare", "--no-history"])
        .ok()
        .says("unclear (too few runs)");
    let json = bench.kdyno(&["compare", "--format", "json"]).ok();
    let read: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    let judged = &read["tables"][0]["metrics"][0]["cells"][1]["judged"];
    assert_eq!(judged["effect"]["method"], "paired-moderated-t");
    assert_eq!(judged["effect"]["prior"]["source"], "history");
    assert_eq!(judged["history"]["run_sets"], 2);
    // The memory is derived: built anew it says the same.
    bench.kdyno(&["index", "rebuild"]).ok();
    let again = bench.kdyno(&["compare", "--format", "json"]).ok();
    assert_eq!(json.out, again.out);
}

#[test]
fn controls_show_what_noise_looks_like() {
    let bench = Bench::new();
    bench
        .kdyno(&["compare", "--aa"])
        .with_status(4)
        .says("no plan has an A/A control");
    let two = job(&bench, "two.yaml", &[("a", 1000), ("b", 900)]);
    let printed = run(&bench, &two, &["-n", "5", "--aa"]);
    printed.says("A/A control a.aa: 0 of 1 headline and ");
    assert_eq!(bench.listed().len(), 15);
    bench
        .kdyno(&["compare", "--aa"])
        .ok()
        .says("headline metrics  0 of 1 differ: 0.0 % (0.0..97.5 %)")
        .says("other metrics     ");
    bench
        .kdyno(&["compare", "--fail-on", "regression"])
        .with_status(1);
}

#[test]
fn machines_side_by_side() {
    let bench = Bench::new();
    let boxes = [("ivb", 1100_u32), ("byt", 905), ("bxt", 900), ("kbl", 895)];
    for (testbox, new) in boxes {
        let of_box = job(
            &bench,
            "job.yaml",
            &[("idle", 1000), ("loaded", 500), ("new", new)],
        );
        run(&bench, &of_box, &["-n", "6", "--testbox", testbox]);
    }
    let printed = bench.kdyno(&["compare", "--across", "testbox", "t/*"]).ok();
    printed
        .says("new: 3 of 4 confirm (regressed); ivb disagree")
        .says("recheck ivb: kdyno run -n 12 --testbox ivb ")
        .says("the machines disagree, no common figure; I^2 ")
        .says("loaded: 4 of 4 confirm (regressed)")
        .says("loaded: over machines -");
    let normalize =
        |zero: &str, one: &str| bench.kdyno(&["normalize", "--zero", zero, "--one", one, "t/*"]);
    bench
        .kdyno(&[
            "normalize",
            "--zero",
            "idle",
            "--one",
            "loaded",
            "--metric",
            "nope",
        ])
        .with_status(2)
        .says("no run has such a metric");
    let printed = normalize("idle", "loaded").ok();
    let printed = printed
        .says("0 is the median of idle, 1 that of loaded; N counts runs")
        .says("N           Min           Max        Median           Avg        Stddev")
        .says("ivb eliminated")
        .says("byt reduced")
        .says("new: 4 of 4 confirm");
    assert!(line_of(&printed, "bxt   6").len() > 60, "{}", printed.out);
    normalize("idle", "idle")
        .with_status(2)
        .says("the same variant");
    normalize("idle", "gone")
        .with_status(2)
        .says("--one: no variant is called `gone`");
}

#[test]
fn ends_that_do_not_differ_are_no_scale() {
    let bench = Bench::new();
    let alike = [("idle", 1000), ("loaded", 1000), ("new", 900)];
    run(&bench, &job(&bench, "alike.yaml", &alike), &["-n", "6"]);
    bench
        .kdyno(&["normalize", "--zero", "idle", "--one", "loaded"])
        .with_status(4)
        .says("no scale: its two ends do not clearly differ");
}

/// Two plans of which one ran with another swappiness that no variant asked for.
#[test]
fn root_machines_that_differ_in_more_than_the_variant() {
    let name = "root_machines_that_differ_in_more_than_the_variant";
    let Some(_turn) = crate::bench::machine_turn(name) else {
        return;
    };
    let path = "/proc/sys/vm/swappiness";
    let before = std::fs::read_to_string(path).expect("swappiness");
    let bench = Bench::new();
    let plain = bench.file(
        "plain.yaml",
        "testcase: t\ncommand: 'echo value: $(date +%N)'\nmetrics: {value: {}}\nwarm_up: 0\n",
    );
    run(&bench, &plain, &["-n", "4", "--label", "before"]);
    std::fs::write(path, "37").expect("privilege");
    let second = bench.kdyno(&["run", &plain, "-n", "4", "--label", "after"]);
    std::fs::write(path, before.trim()).expect("privilege");
    second.ok();
    let printed = bench.kdyno(&["compare", "before", "after"]).ok();
    printed
        .says("the machine differs in more than the variant")
        .says("memory.swappiness: ");
}

#[test]
fn a_plan_that_cannot_be_read_is_no_guess() {
    let bench = Bench::new();
    let job = job(&bench, "job.yaml", &[("old", 100), ("new", 150)]);
    run(&bench, &job, &["-n", "5"]).ok();
    bench.kdyno(&["compare"]).ok().says("improved, 5 runs each");
    let plans = std::fs::read_dir(bench.home().join("plans")).unwrap();
    let plan = plans.flatten().next().unwrap().path().join("plan.json");
    let whole = std::fs::read(&plan).unwrap();
    std::fs::write(&plan, &whole[..100]).unwrap();
    for words in [
        &["compare"][..],
        &["normalize", "--zero", "old", "--one", "new"],
        &["stat"],
    ] {
        bench
            .kdyno(words)
            .with_status(2)
            .says("plan.json")
            .says("hint");
    }
    std::fs::write(&plan, whole).unwrap();
    bench.kdyno(&["compare"]).ok().says("improved, 5 runs each");
}

/// From 1 to 127 but for 125, `git bisect run` takes a commit for bad.
#[test]
fn a_bisection_takes_no_error_for_a_bad_commit() {
    let bench = Bench::new();
    for words in [
        &["compare", "--bisect-exit", "--csv", "no-such-file"][..],
        &["compare", "--bisect-exit", "--no-such-option"],
        &["compare", "--bisect-exit", "--margin", "0"],
    ] {
        bench.kdyno(words).with_status(128);
    }
    let rows = |variant: &str, values: &[u32]| -> String {
        values
            .iter()
            .map(|v| format!("m,{variant},{v}\n"))
            .collect()
    };
    let file = bench.file(
        "values.csv",
        format!(
            "metric,variant,value\n{}{}",
            rows("old", &[100, 101, 102, 103, 104]),
            rows("new", &[200, 201, 202, 203, 204])
        ),
    );
    let words = ["compare", "--bisect-exit", "--csv", &file];
    bench.kdyno(&words).with_status(125).says("--better");
    let of = |better: &str| bench.kdyno(&[&words[..], &["--better", better]].concat());
    of("lower").with_status(1);
    of("higher").ok();
}

#[test]
fn a_fix_is_neither_the_good_nor_the_bad_side() {
    let bench = Bench::new();
    let job = job(&bench, "job.yaml", &[("good", 100), ("bad", 150)]);
    run(&bench, &job, &["-n", "3"]).ok();
    bench
        .kdyno(&["compare", "--recover", "good", "bad", "good"])
        .with_status(2)
        .says("named twice");
}

#[test]
fn names_and_numbers_of_a_file_that_cannot_be_shown() {
    let bench = Bench::new();
    for (line, told) in [
        ("m\tx,a,1", "U+0009"),
        ("m,a\u{1b}[2J,1", "U+001B"),
        ("m\u{202e}x,a,1", "U+202E"),
        ("m x,a,1\nm_x,a,2", "prints as another"),
    ] {
        let file = bench.file("v.csv", format!("metric,variant,value\n{line}\n"));
        bench
            .kdyno(&["compare", "--csv", &file])
            .with_status(2)
            .says(told)
            .says("line");
    }
    let file = bench.file(
        "v.csv",
        "metric,variant,value\nm,a,1e-999\nm,a,1\nm,a,2\nm,b,0e-999\nm,b,3\n",
    );
    bench
        .kdyno(&["compare", "--csv", &file, "--format", "csv"])
        .ok()
        .says("1 2");
}
