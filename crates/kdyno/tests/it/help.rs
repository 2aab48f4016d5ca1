//! Help, version, completions and man pages.

use crate::bench::Bench;

#[test]
fn version_and_help_name_the_program_and_show_examples() {
    let bench = Bench::new();
    assert!(bench.kdyno(&["--version"]).ok().out.starts_with("kdyno "));
    for words in [
        &["--help"][..],
        &["run", "--help"],
        &["compare", "--help"],
        &["show", "--help"],
        &["stat", "--help"],
    ] {
        bench.kdyno(words).ok().says("Examples:");
    }
    bench
        .kdyno(&["workload", "usemem", "--help"])
        .ok()
        .says("usemem");
}

#[test]
fn completions_know_the_subcommands() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish"] {
        bench.kdyno(&["completions", shell]).ok().says("compare");
    }
}

#[test]
fn there_is_a_man_page_for_each_subcommand() {
    let bench = Bench::new();
    let printed = bench.kdyno(&["man", "pages"]).ok();
    for page in ["kdyno.1", "kdyno-run.1", "kdyno-compare.1"] {
        assert!(printed.out.contains(page), "{}", printed.out);
        let text = std::fs::read_to_string(bench.path("pages").join(page)).unwrap();
        assert!(
            text.contains(".TH") && text.contains(".SH EXAMPLES"),
            "{page}"
        );
    }
    let text = std::fs::read_to_string(bench.path("pages").join("kdyno-run.1")).unwrap();
    assert!(text.contains("kdyno run"), "{text}");
}

#[test]
fn wrong_usage_ends_with_2() {
    let bench = Bench::new();
    for words in [
        &["frobnicate"][..],
        &["run", "--frob"],
        &["workload", "frob"],
        &[],
        &["run", "-n", "x", "true"],
    ] {
        bench.kdyno(words).with_status(2);
    }
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let bench = Bench::new();
    let line = format!(
        "{} --help | true; {} list --json | true",
        crate::bench::binary(),
        crate::bench::binary()
    );
    let mut shell = bench.command_of("/bin/sh".as_ref(), &["-c", &line]);
    assert!(shell.status().unwrap().success());
}
