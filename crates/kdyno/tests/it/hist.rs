//! `kdyno hist`: distributions of files, of runs, and of functions of the kernel.

use crate::bench::Bench;
use kdyno_analyze::distribution::buckets_of;
use kdyno_analyze::render::hist::{bcc, bpftrace, perf};
use kdyno_formats::hist::{Section, read};
use kdyno_stats::hist::Buckets;
use std::path::Path;

/// Counts of a bcc tool, per octave from 8 us on.
fn octaves(counts: &[u64]) -> String {
    let mut text = String::from("     usecs               : count     distribution\n");
    for (place, count) in counts.iter().enumerate() {
        let low = 8_u64 << place;
        text.push_str(&format!("  {low} -> {} : {count} |**|\n", 2 * low - 1));
    }
    text
}

#[test]
fn a_table_of_one_tool_is_printed_as_by_another() {
    let bench = Bench::new();
    let file = bench.file("a.txt", octaves(&[10, 0, 5]));
    let of = |format: &str| bench.kdyno(&["hist", "--format", format, &file]).ok().out;
    let bcc = of("bcc");
    assert!(
        bcc.contains(
            "         8 -> 15         : 10       |****************************************|\n"
        ),
        "{bcc}"
    );
    // What was printed is read again.
    let again = bench.file("again.txt", &bcc);
    assert_eq!(
        bench.kdyno(&["hist", "--format", "bcc", &again]).ok().out,
        bcc
    );
    let maps = bench.file("maps.txt", of("bpftrace"));
    assert!(
        of("bpftrace").contains("[8, 16)               10 |@@@"),
        "{}",
        of("bpftrace")
    );
    assert_eq!(
        bench.kdyno(&["hist", "--format", "bcc", &maps]).ok().out,
        bcc
    );
    assert!(of("perf-ftrace").contains("     8 - 16   us |         10 | ####"));
    assert!(of("table").contains("10us:     10"), "{}", of("table"));
    assert!(of("quantiles").contains("p50"));
    assert!(of("csv").contains("a.txt,1,8,16,10,us"), "{}", of("csv"));
    let json: serde_json::Value = serde_json::from_str(&of("json")).expect("JSON");
    assert_eq!(json[0]["series"][0]["runs"][0]["buckets"][0][2], 10);
}

#[test]
fn two_inputs_stand_beside_each_other_and_a_lost_mode_is_named() {
    let bench = Bench::new();
    let before = bench.file("before", octaves(&[500, 20, 0, 0, 0, 10, 300]));
    let after = bench.file("after", octaves(&[800, 30]));
    let printed = bench.kdyno(&["hist", &before, &after]).ok();
    printed.says("second mode gone (512..1024 us)");
    bench
        .kdyno(&["hist", "--format", "shares", &before])
        .with_status(2)
        .says("shares are of two series");
    let page = bench.path("page.html");
    let page = page.to_str().expect("a path");
    let html = bench.kdyno(&["hist", "--format", "html", "-o", page, &before, &after]);
    assert_eq!(html.ok().out, "");
    let text = std::fs::read_to_string(page).expect("a page");
    assert!(text.contains("<svg") && text.contains("before"));
    // Nothing is left where it cannot be written.
    bench
        .kdyno(&["hist", "--format", "html", "-o", "/nowhere/page", &before])
        .with_status(2)
        .says("/nowhere/page");
}

#[test]
fn hdr_files_go_out_and_come_in_again() {
    let bench = Bench::new();
    let file = bench.file("a", octaves(&[100, 5]));
    for format in ["hdr", "hlog"] {
        let path = bench.path(format);
        let path = path.to_str().expect("a path");
        bench
            .kdyno(&["hist", "--format", format, "-o", path, &file])
            .ok();
        let csv = bench.kdyno(&["hist", "--format", "csv", path]).ok();
        csv.says(",100,ns");
    }
}

#[test]
fn what_cannot_be_read_is_told_with_its_line() {
    let bench = Bench::new();
    let damaged = octaves(&[10, 5]).replace(": 5", ": five");
    let file = bench.file("a", damaged);
    bench
        .kdyno(&["hist", &file])
        .with_status(2)
        .says("a:3: no row of a bcc table")
        .says("hint:");
    let file = bench.file("b", "nothing here\n");
    bench
        .kdyno(&["hist", &file])
        .with_status(2)
        .says("there is no histogram in it");
    let good = bench.file("c", octaves(&[1]));
    bench
        .kdyno(&["hist", &good, "nowhere"])
        .with_status(2)
        .says("nowhere: there is no such file");
    bench
        .kdyno(&["hist", "--steps", "1..x", &good])
        .with_status(2);
    bench
        .kdyno(&["hist", "--format", "bcc", "--steps", "1KB..9KB", &good])
        .with_status(2)
        .says("steps in KB do not fit values us");
    bench
        .kdyno(&["hist", "--from", "rtla", &good])
        .with_status(2);
    bench.kdyno(&["hist"]).with_status(2).says("no run yet");
}

#[test]
fn histograms_of_runs_are_shown_by_variant() {
    let bench = Bench::new();
    let job = bench.file(
        "job.yaml",
        "testcase: syslatency\nruntime: 300ms\nruns: 2\nwarm_up: 0\nmonitors: none\nvariants: {slow: {interval: 2000}, quick: {interval: 1000}}\n",
    );
    bench.kdyno(&["run", "--no-doctor", &job]).ok();
    let printed = bench.kdyno(&["hist"]).ok();
    printed.says("syslatency.wakeup").says("slow: ").says("p99");
    let csv = bench.kdyno(&["hist", "--format", "csv"]).ok().out;
    assert!(csv.contains("slow,2,") && csv.contains("quick,1,"), "{csv}");
    bench
        .kdyno(&["hist", "--metric", "nothing"])
        .with_status(2)
        .says("no run has such a histogram");
    bench
        .kdyno(&["hist", "--section", "x"])
        .with_status(2)
        .says("no file is named");
    // The distribution as a whole is in the comparison too.
    let compared = bench.kdyno(&["compare", "--all"]).ok();
    compared.says("syslatency.wakeup.p50").says("as a whole");
}

#[test]
fn a_function_of_the_kernel_is_timed_or_it_is_said_what_is_missing() {
    let bench = Bench::new();
    let printed = bench.kdyno(&["hist", "--func", "vfs_read", "-n", "2", "--", "/bin/true"]);
    if printed.status == Some(0) {
        printed.says("func.vfs_read.latency");
    } else {
        eprintln!("skipped: {}", printed.err.trim());
        printed.with_status(2).says("hint:");
    }
    bench
        .kdyno(&["hist", "--func", "vfs_read"])
        .with_status(2)
        .says("required");
}

#[test]
fn show_has_the_thread_that_woke_latest_first() {
    let bench = Bench::new();
    let script = "#!/bin/sh\nprintf 'T: 1 Spike: 900: TS: 99999999999\\n# Histogram\\n000005 000009\\t000003\\t000012\\n# Total: 000000009 000000003 000000012\\n# Min Latencies: 00005 00005\\n# Avg Latencies: 00005 00005\\n# Max Latencies: 00005 00900 00900\\n# Histogram Overflows: 00000 00001 00001\\n'\n";
    let tool = bench.file("cyclictest", script);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&tool, mode).expect("an executable");
    let job = bench.file(
        "job.yaml",
        format!(
            "cyclictest: {{runtime: 1s, cyclictest: {tool}}}\nruns: 1\nwarm_up: 0\nmonitors: none\n"
        ),
    );
    bench.kdyno(&["run", "--no-doctor", &job]).ok();
    let shown = bench.kdyno(&["show"]).ok().out;
    let (_, threads) = shown
        .split_once("threads, the worst first\n")
        .unwrap_or_else(|| panic!("{shown}"));
    let lines: Vec<&str> = threads.lines().collect();
    assert!(
        lines[0].starts_with("  thread 1   max    900 us at "),
        "{threads}"
    );
    assert!(
        lines[1].contains("thread 0   max      5 us time not recorded"),
        "{threads}"
    );
}

/// What tools have published is printed again to the column, table by table.
#[test]
fn published_tables_are_printed_again_to_the_column() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if !corpus.is_dir() {
        eprintln!("skipped: no {}", corpus.display());
        return;
    }
    type Printer = fn(&Section, &Buckets) -> String;
    let files: [(&str, usize, Printer); 5] = [
        ("bcc-runqlat-example.txt", 10, |section, buckets| {
            bcc::log2(buckets, section.unit.as_str()).text
        }),
        ("bcc-cpudist-example.txt", 3, |section, buckets| {
            bcc::log2(buckets, section.unit.as_str()).text
        }),
        ("bpftrace-runqlat-example.txt", 1, |section, buckets| {
            bpftrace::hist(&section.name, buckets).text
        }),
        ("bpftrace-biolatency-example.txt", 1, |section, buckets| {
            bpftrace::hist(&section.name, buckets).text
        }),
        ("perf-ftrace-latency-ext4-2025.eml", 1, |_, buckets| {
            perf::latency(buckets, false).text
        }),
    ];
    for (name, least, print) in files {
        let bytes = std::fs::read(corpus.join(name)).expect("a file");
        let report = read(&bytes, None).expect("histograms");
        let original = lines_of(&String::from_utf8_lossy(&bytes));
        let mut same = 0;
        for section in &report.sections {
            let printed = lines_of(&print(section, &buckets_of(&section.histogram)));
            let printed = printed.trim();
            same += usize::from(original.contains(printed));
            assert!(original.contains(printed), "{name}:\n{printed}");
        }
        assert!(same >= least, "{name}: {same} tables");
    }
}

/// Without blanks at the ends of lines, which tools and mails treat as they like.
fn lines_of(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}
