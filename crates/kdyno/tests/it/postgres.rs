//! The index on a PostgreSQL server.

use crate::bench::{Bench, Printed};

/// A server that tests may fill: a throw-away one, in which what they make stays.
fn server() -> Option<String> {
    let url = std::env::var("KDYNO_TEST_POSTGRES").ok();
    if url.is_none() {
        eprintln!("skipped on PostgreSQL: KDYNO_TEST_POSTGRES is not set");
    }
    url
}

fn with_index(bench: &Bench, url: &str, words: &[&str]) -> Printed {
    let mut command = bench.command(words);
    command.env("KDYNO_INDEX", url);
    command.output().expect("kdyno starts").into()
}

fn job(bench: &Bench) -> String {
    bench.file(
        "job.yaml",
        "testcase: t\ncommand: 'echo value: $X'\nmetrics: {value: {unit: ops/s, better: lower}}\nruns: 3\nvariants: {slow: {environment: {X: 200}}, fast: {environment: {X: 100}}}\n",
    )
}

#[test]
fn a_server_answers_what_a_file_answers() {
    let Some(url) = server() else { return };
    let bench = Bench::new();
    with_index(&bench, &url, &["run", &job(&bench)]).ok();
    let more = ["run", "-n", "2", "--label", "k1", "echo a=1"];
    with_index(&bench, &url, &more).ok();
    let questions: [&[&str]; 6] = [
        &["list"],
        &["list", "--json"],
        &["compare", "t/*", "--format", "json"],
        &["compare", "t/*", "--all"],
        &["show", "--json"],
        &["show", "--all"],
    ];
    let answers = || questions.map(|words| with_index(&bench, &url, words).ok().out);
    let on_server = answers();
    assert!(on_server[0].lines().count() >= 10, "{}", on_server[0]);
    assert!(!bench.home().join("index.sqlite").exists());
    let rebuilt = with_index(&bench, &url, &["index", "rebuild"]).ok();
    rebuilt.says("11 runs in postgres://").says("schema kdyno_");
    assert_eq!(answers(), on_server);
    let in_file = questions.map(|words| bench.kdyno(words).ok().out);
    assert_eq!(in_file, on_server);
    assert!(bench.home().join("index.sqlite").exists());
}

#[test]
fn homes_share_a_server_and_a_home_that_is_moved_keeps_its_index() {
    let Some(url) = server() else { return };
    let (one, other) = (Bench::new(), Bench::new());
    for (bench, command) in [(&one, "echo one=1"), (&other, "echo other=1")] {
        with_index(bench, &url, &["run", "-n", "1", "--warm-up", "0", command]).ok();
    }
    let list = with_index(&one, &url, &["list", "--json"]).ok().out;
    assert_eq!(list.lines().count(), 1, "{list}");
    let moved = one.path("moved");
    std::fs::rename(one.home(), &moved).unwrap();
    // Without its plans it cannot fill the index again.
    std::fs::rename(moved.join("plans"), one.path("plans")).unwrap();
    let mut command = one.command(&["list", "--json"]);
    command.env("KDYNO_HOME", &moved).env("KDYNO_INDEX", &url);
    let printed = Printed::from(command.output().unwrap()).ok();
    assert_eq!(printed.out, list);
}

#[test]
fn a_server_that_is_away_costs_no_run_and_its_error_keeps_the_password() {
    let bench = Bench::new();
    let away = "postgres:///runs?host=/nowhere/at/all&user=me&password=hunter2";
    let printed = with_index(&bench, away, &["run", &job(&bench)]).ok();
    assert!(printed.out.contains("t.value"), "{}", printed.out);
    let printed = printed
        .says("no index for now, the runs are kept all the same")
        .says("postgres:///runs?host=/nowhere/at/all&user=me");
    assert!(!printed.err.contains("hunter2"), "{}", printed.err);
    for words in [&["list"][..], &["index", "rebuild"]] {
        let printed = with_index(&bench, away, words).with_status(2);
        let printed = printed
            .says("No such file")
            .says("hint: see that the server");
        assert!(!printed.err.contains("hunter2"), "{}", printed.err);
    }
    assert_eq!(bench.listed().len(), bench.sealed().len());
    assert_eq!(bench.listed().len(), 8);
}

#[test]
fn what_is_no_address_is_said_with_an_example() {
    let bench = Bench::new();
    for wrong in ["index.sqlite", "mysql://me:hunter2@host/runs"] {
        let printed = with_index(&bench, wrong, &["list"]).with_status(2);
        let printed = printed.says("KDYNO_INDEX").says("postgres://user@host");
        assert!(!printed.err.contains("hunter2"), "{}", printed.err);
    }
    with_index(&bench, "", &["list"]).ok();
}
