//! Each tool's table gives its counts; what cannot be read is an error with its line.

use kdyno_formats::hist::{Report, Section, Tool, read};
use kdyno_model::Histogram;
use proptest::prelude::*;
use std::fmt::Write;
use std::path::Path;

fn report(text: &str) -> Report {
    match read(text.as_bytes(), None) {
        Ok(report) => report,
        Err(error) => panic!("{error}\n{text}"),
    }
}

fn one(text: &str) -> Section {
    let report = report(text);
    assert_eq!(report.sections.len(), 1, "{report:?}");
    report.sections.into_iter().next().expect("one")
}

/// Buckets with an event, as `low, high, count`.
fn filled(histogram: &Histogram) -> Vec<(f64, f64, u64)> {
    let buckets = histogram.buckets.iter();
    buckets
        .filter(|bucket| bucket.count > 0)
        .map(|bucket| (bucket.low, bucket.high, bucket.count))
        .collect()
}

fn total(histogram: &Histogram) -> u64 {
    let inside: u64 = histogram.buckets.iter().map(|bucket| bucket.count).sum();
    inside + histogram.underflow + histogram.overflow
}

/// The line and the words of an error.
fn refused(text: &str) -> (Option<usize>, String) {
    let error = read(text.as_bytes(), None).expect_err("it must be refused");
    assert!(!error.hint.is_empty());
    (error.line, error.reason)
}

#[test]
fn bcc_has_closed_ranges_keys_and_totals() {
    let report = report(
        "Tracing... Hit Ctrl-C to end.\n\n\
         disk = b'vda'\n     usecs               : count     distribution\n         \
         0 -> 1          : 4        |****                                    |\n         \
         2 -> 3          : 0        |                                        |\n         \
         4 -> 7          : 40       |****************************************|\n\n\
         avg = 5 usecs, total: 220 usecs, count: 44\n\n\
         disk = vdb\n     msecs               : count    distribution\n        \
         16 -> 31         : 7        |****************************************|\nwords behind it\n",
    );
    assert_eq!(report.tool, Tool::Bcc);
    let names: Vec<&str> = report.sections.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["disk = vda", "disk = vdb"]);
    assert_eq!(report.sections[0].unit.as_str(), "us");
    assert_eq!(report.sections[1].unit.as_str(), "ms");
    let first = &report.sections[0].histogram;
    assert_eq!(filled(first), [(0.0, 2.0, 4), (4.0, 8.0, 40)]);
    assert_eq!(first.sum, Some(220.0));
    assert_eq!(filled(&report.sections[1].histogram), [(16.0, 32.0, 7)]);
}

#[test]
fn linear_rows_of_bcc_are_buckets_of_one() {
    let section = one("     depth         : count     distribution\n        \
         0          : 3        |***                                     |\n        \
         2          : 9        |****************************************|\n");
    assert_eq!(section.unit.as_str(), "depth");
    assert_eq!(filled(&section.histogram), [(0.0, 1.0, 3), (2.0, 3.0, 9)]);
}

#[test]
fn a_damaged_row_of_bcc_is_an_error_with_its_line() {
    let table = "     usecs               : count     distribution\n         0 -> 1          : 4        |*|\n         2 -> 3          : x        |*|\n";
    assert_eq!(
        refused(table),
        (Some(3), "no row of a bcc table".to_owned())
    );
    let overlapping = "usecs : count distribution\n 4 -> 7 : 1 |*|\n 6 -> 9 : 1 |*|\n";
    assert_eq!(refused(overlapping).0, Some(3));
    let huge = "usecs : count distribution\n 4 -> 7 : 99999999999999999999 |*|\n";
    assert_eq!(refused(huge).0, Some(2));
}

#[test]
fn quoted_tables_are_read_with_their_lines() {
    let text = "On Monday somebody wrote:\n> > usecs : count distribution\n> > 0 -> 1 : 0 | |\n> > 8 -> 15 : 44 | |\n> > 16 -> 31 : 10 |** |\n> ok\n";
    let section = one(text);
    assert_eq!(
        filled(&section.histogram),
        [(8.0, 16.0, 44), (16.0, 32.0, 10)]
    );
    let damaged = text.replace("16 -> 31 : 10", "16 -> 31 : 1o");
    assert_eq!(refused(&damaged).0, Some(5));
}

#[test]
fn bpftrace_has_half_open_ranges_suffixes_and_open_ends() {
    let report = report(
        "Attaching 3 probes...\n\n@usecs[read]:\n(..., 0)               2 |@@                  |\n\
         [0]                    1 |@                   |\n[1]                    3 |@@@                 |\n\
         [2, 512)               5 |@@@@@               |\n[512, 1K)              7 |@@@@@@@             |\n\
         [1K, 2K)               1 |                    |\n\n\
         @dist:\n[10, 20)               6 |@@@@@@@@@@@@@@@@@@@@@@@@@@\n@@@@@@@@@@ |\n\
         [20, ...)              2 |@@                  |\n",
    );
    assert_eq!(report.tool, Tool::Bpftrace);
    let [read, dist] = report.sections.as_slice() else {
        panic!("{report:?}");
    };
    assert_eq!(
        (read.name.as_str(), read.unit.as_str()),
        ("usecs[read]", "us")
    );
    assert_eq!(
        filled(&read.histogram),
        [
            (0.0, 1.0, 1),
            (1.0, 2.0, 3),
            (2.0, 512.0, 5),
            (512.0, 1024.0, 7),
            (1024.0, 2048.0, 1)
        ]
    );
    assert_eq!(read.histogram.underflow, 2);
    assert_eq!((dist.name.as_str(), dist.unit.as_str()), ("dist", ""));
    assert_eq!(filled(&dist.histogram), [(10.0, 20.0, 6)]);
    assert_eq!(dist.histogram.overflow, 2);
    let damaged = "@a:\n[0]   1 |@|\n[2, 4)  |@|\n";
    assert_eq!(refused(damaged).0, Some(3));
}

#[test]
fn json_of_bcc_and_bpftrace() {
    let section = one(
        r#"{"ts": "12:00", "val_type": "usecs", "data": [{"interval-start": 0, "interval-end": 1, "count": 2}, {"interval-start": 4, "interval-end": 7, "count": 5}]}"#,
    );
    assert_eq!(filled(&section.histogram), [(0.0, 2.0, 2), (4.0, 8.0, 5)]);
    let report = report(
        "{\"type\": \"attached_probes\", \"data\": {\"probes\": 1}}\n{\"type\": \"hist\", \"data\": {\"@us\": [{\"max\": -1, \"count\": 1}, {\"min\": 0, \"max\": 9, \"count\": 3}, {\"min\": 10, \"count\": 4}]}}\n{\"type\": \"hist\", \"data\": {\"@b\": {\"cat\": [{\"min\": 2, \"max\": 3, \"count\": 8}]}}}\n",
    );
    assert_eq!(report.tool, Tool::Bpftrace);
    let names: Vec<&str> = report.sections.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["us", "b[cat]"]);
    let first = &report.sections[0];
    assert_eq!(first.unit.as_str(), "us");
    assert_eq!(filled(&first.histogram), [(0.0, 10.0, 3)]);
    assert_eq!(
        (first.histogram.underflow, first.histogram.overflow),
        (1, 4)
    );
}

/// As the tool prints it: all rows of 22, the unit changing at 1024.
fn perf_table(counts: &[u64; 22], nanoseconds: bool) -> String {
    let (small, large, last) = if nanoseconds {
        ("ns", "us", "ms")
    } else {
        ("us", "ms", " s")
    };
    let mut text = String::from("#   DURATION     |      COUNT | GRAPH                |\n");
    for (row, count) in counts.iter().enumerate() {
        let (low, high, unit) = match row {
            0 => (0, "1".to_owned(), small),
            21 => (1, "...".to_owned(), last),
            row if row > 10 => (1 << (row - 11), (1 << (row - 10)).to_string(), large),
            row => (1 << (row - 1), (1 << row).to_string(), small),
        };
        let _ = writeln!(
            text,
            "  {low:>4} - {high:<4} {unit} | {count:>10} | ##         |"
        );
    }
    text
}

#[test]
fn perf_ftrace_joins_its_units() {
    let mut counts = [0; 22];
    for (row, count) in [(0, 1), (10, 20), (11, 36), (20, 4), (21, 3)] {
        counts[row] = count;
    }
    let section = one(&perf_table(&counts, false));
    assert_eq!(section.unit.as_str(), "us");
    assert_eq!(
        filled(&section.histogram),
        [
            (0.0, 1.0, 1),
            (512.0, 1024.0, 20),
            (1024.0, 2048.0, 36),
            (524_288.0, 1_048_576.0, 4)
        ]
    );
    assert_eq!(section.histogram.overflow, 3);
    let section = one(&perf_table(&counts, true));
    assert_eq!(section.unit.as_str(), "ns");
    assert_eq!(total(&section.histogram), 64);
}

#[test]
fn newer_perf_tells_statistics_and_leaves_rows_out() {
    let table = "#   DURATION     |      COUNT | GRAPH |\n     2 - 4    us |          3 | ###   |\n     4 - 8    us |          1 | #     |\n\n# statistics  (in usec)\n  total time:                   14\n    avg time:                    3\n    max time:                    6\n    min time:                    2\n       count:                    4\n";
    let section = one(table);
    let histogram = &section.histogram;
    assert_eq!(
        (histogram.sum, histogram.min, histogram.max),
        (Some(14.0), Some(2.0), Some(6.0))
    );
    let wrong = table.replace("count:                    4", "count:                    5");
    assert_eq!(refused(&wrong).0, Some(10));
    let damaged = table.replace(
        "     4 - 8    us |          1",
        "     4 - 8    us |         1?",
    );
    assert_eq!(refused(&damaged).0, Some(3));
}

const CYCLICTEST: &str = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n000000 000000\t000000\n000001 000003\t000000\n000002 000001\t000007\n# Total: 000000004 000000007\n# Min Latencies: 00001 00002\n# Avg Latencies: 00001 00002\n# Max Latencies: 00009 00002\n# Histogram Overflows: 00001 00000\n# Histogram Overflow at cycle number:\n# Thread 0: 00003\n# Thread 1:\n";

#[test]
fn cyclictest_has_a_section_per_thread() {
    let report = report(CYCLICTEST);
    assert_eq!(report.tool, Tool::Cyclictest);
    let first = &report.sections[0];
    assert_eq!(
        (first.name.as_str(), first.unit.as_str()),
        ("thread 0", "us")
    );
    assert_eq!(filled(&first.histogram), [(1.0, 2.0, 3), (2.0, 3.0, 1)]);
    assert_eq!(
        (first.histogram.overflow, first.histogram.max),
        (1, Some(9.0))
    );
    assert_eq!(total(&report.sections[1].histogram), 7);
    // With a column of all threads, which is none.
    let all = CYCLICTEST
        .replace("\t000000\n", "\t000000\t000003\n")
        .replace("\t000007\n", "\t000007\t000008\n")
        .replace(
            "Total: 000000004 000000007",
            "Total: 000000004 000000007 000000011",
        );
    let all = all.replace(
        "000000 000000\t000000\t000003",
        "000000 000000\t000000\t000000",
    );
    assert_eq!(self::report(&all).sections.len(), 2);
    let wrong = CYCLICTEST.replace("Total: 000000004", "Total: 000000005");
    assert_eq!(refused(&wrong).0, Some(6));
    let short = CYCLICTEST.replace("000002 000001\t000007", "000002 000001");
    assert_eq!(refused(&short).0, Some(5));
}

#[test]
fn cyclictest_as_json() {
    let report = report(
        r#"{"file_version": 1, "num_threads": 2, "thread": {"0": {"histogram": {"13": 39, "9": 1}, "cycles": 42, "min": 9, "max": 900, "avg": 13.5}, "1": {"histogram": {"7": 5}, "cycles": 5, "min": 7, "max": 7, "avg": 7.0}}}"#,
    );
    assert_eq!(report.tool, Tool::Cyclictest);
    let first = &report.sections[0].histogram;
    assert_eq!(filled(first), [(9.0, 10.0, 1), (13.0, 14.0, 39)]);
    assert_eq!((first.overflow, first.max), (2, Some(900.0)));
}

#[test]
fn rtla_has_a_section_per_column_and_its_checks() {
    let text = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:01\nIndex   IRQ-000   Thr-000\n0             5         0\n1             1         4\n3             0         1\nover:         0         2\ncount:        6         7\nmin:          0         1\navg:          0         1\nmax:          1        12\n";
    let report = report(text);
    assert_eq!(report.tool, Tool::Rtla);
    let thread = &report.sections[1];
    assert_eq!(
        (thread.name.as_str(), thread.unit.as_str()),
        ("Thr-000", "us")
    );
    assert_eq!(filled(&thread.histogram), [(1.0, 2.0, 4), (3.0, 4.0, 1)]);
    assert_eq!(
        (thread.histogram.overflow, thread.histogram.max),
        (2, Some(12.0))
    );
    assert_eq!(
        refused(&text.replace("count:        6", "count:        9")).0,
        Some(9)
    );
    assert_eq!(
        refused(&text.replace("1             1         4", "1             1")).0,
        Some(6)
    );
}

#[test]
fn hist_triggers_round_powers_up() {
    let section = one(
        "# event histogram\n#\n# trigger info: hist:keys=lat.log2:vals=hitcount:sort=hitcount:size=2048 [active]\n#\n\n{ lat: ~ 2^6  } hitcount:         29\n{ lat: ~ 2^0  } hitcount:          1\n\nTotals:\n    Hits: 30\n    Entries: 2\n    Dropped: 0\n",
    );
    assert_eq!(
        filled(&section.histogram),
        [(0.0, 2.0, 1), (33.0, 65.0, 29)]
    );
    let text = "{ comm: cat, usecs: ~ 10-19 } hitcount:          4\n{ comm: ls, usecs: ~ 0-9 } hitcount:          2\n{ comm: cat, usecs: ~ 0-9 } hitcount:          1\nTotals:\n    Hits: 7\n    Dropped: 3\n";
    let report = report(text);
    assert_eq!(report.tool, Tool::HistTrigger);
    let names: Vec<&str> = report.sections.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["comm: cat", "comm: ls"]);
    assert_eq!(report.sections[0].unit.as_str(), "us");
    assert_eq!(
        filled(&report.sections[0].histogram),
        [(0.0, 10.0, 1), (10.0, 20.0, 4)]
    );
    assert_eq!(report.notes.len(), 1);
    assert_eq!(refused(&text.replace("Hits: 7", "Hits: 8")).0, Some(5));
    assert_eq!(
        refused(&text.replace("hitcount:          2", "hitcount: many")).0,
        Some(2)
    );
}

#[test]
fn iolatency_has_half_open_ranges() {
    let section = one(
        "  >=(ms) .. <(ms)   : I/O      |Distribution |\n       0 -> 1       : 43       |####|\n       1 -> 2       : 9        |#   |\n",
    );
    assert_eq!(section.unit.as_str(), "ms");
    assert_eq!(filled(&section.histogram), [(0.0, 1.0, 43), (1.0, 2.0, 9)]);
}

#[test]
fn fio_logs_have_a_unit_by_their_length_and_times() {
    let line = |ms: u64, direction: u64, buckets: usize, filled: &[(usize, u64)]| {
        let mut counts = vec![0; buckets];
        for (place, count) in filled {
            counts[*place] = *count;
        }
        let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
        format!("{ms}, {direction}, 4096, {}\n", counts.join(", "))
    };
    let text = line(1000, 0, 1216, &[(5, 2), (130, 3)]) + &line(2000, 0, 1216, &[(1215, 1)]);
    let report = report(&text);
    assert_eq!(report.tool, Tool::Fio);
    let [first, second] = report.sections.as_slice() else {
        panic!("{report:?}");
    };
    assert_eq!((first.name.as_str(), first.unit.as_str()), ("read", "us"));
    // From 128 on two values share a bucket.
    assert_eq!(filled(&first.histogram), [(5.0, 6.0, 2), (132.0, 134.0, 3)]);
    let span = second.span.expect("a time");
    assert_eq!((span.start_s, span.length_s), (1.0, 1.0));
    assert_eq!(second.histogram.overflow, 1);
    assert_eq!(one(&line(1000, 1, 1856, &[(7, 1)])).unit.as_str(), "ns");
    assert_eq!(
        refused(&(text.clone() + &line(3000, 7, 1216, &[]))).0,
        Some(3)
    );
    assert_eq!(refused(&(text + "3000, 0, 4096, 1\n")).0, Some(3));
}

#[test]
fn fio_documents_give_bins_or_what_percentiles_tell() {
    let text = r#"note: something
{"fio version": "fio-3.33", "jobs": [{"jobname": "a", "read": {"clat_ns": {"min": 100, "max": 900, "N": 10, "bins": {"101": 4, "129": 3, "900": 3}}}, "write": {"clat_ns": {"min": 10, "max": 400, "N": 1000, "percentile": {"50.000000": 20, "99.000000": 200}}, "slat_ns": {"min": 0, "max": 0, "mean": 0.0, "N": 0}}}]}"#;
    let report = report(text);
    let names: Vec<&str> = report.sections.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["a.read.clat", "a.write.clat"]);
    assert_eq!(
        filled(&report.sections[0].histogram),
        [(101.0, 102.0, 4), (128.0, 130.0, 3), (896.0, 904.0, 3)]
    );
    assert_eq!(
        filled(&report.sections[1].histogram),
        [(10.0, 21.0, 500), (21.0, 201.0, 490), (201.0, 401.0, 10)]
    );
    assert_eq!(report.sections[1].histogram.max, Some(400.0));
    assert!(refused(r#"{"jobs": [{"read": {}}]}"#).1.contains("no bins"));
}

const TABLE: &str = "Time Original 10/10\nN: 12 1001\n10us: . 1\n20us: 5 900\n490us: 1 .\n500us: 4 60\n1000us: 1 40\n>10000us: 1 .\n";

#[test]
fn bucket_tables_have_a_column_per_setting() {
    let report = report(TABLE);
    assert_eq!(report.tool, Tool::BucketTable);
    let [original, other] = report.sections.as_slice() else {
        panic!("{report:?}");
    };
    assert_eq!(
        (original.name.as_str(), other.name.as_str()),
        ("Original", "10/10")
    );
    assert_eq!(
        filled(&original.histogram),
        [
            (20.0, 30.0, 5),
            (490.0, 500.0, 1),
            (500.0, 1000.0, 4),
            (1000.0, 1500.0, 1)
        ]
    );
    assert_eq!(original.histogram.overflow, 1);
    assert_eq!(total(&other.histogram), 1001);
    // A cell is lost: nobody knows which.
    let (line, reason) = refused(&TABLE.replace("490us: 1 .", "490us: 1"));
    assert_eq!(
        (line, reason.as_str()),
        (Some(5), "1 cells, the table has 2 columns")
    );
    // A row whose end stands on the next line is whole.
    assert_eq!(
        self::report(&TABLE.replace("20us: 5 900", "20us: 5\n900")),
        report
    );
    let broken = TABLE.replace("20us: 5 900", "20us: 5\n\n900");
    assert_eq!(refused(&broken).0, Some(4));
    assert_eq!(refused(&TABLE.replace("5 900", "5 9o0")).0, Some(4));
    // Every row has lost a cell: the head tells.
    let two = "Time a b c\n10us: 1 2\n20us: 3 4\n";
    assert_eq!(refused(two).0, Some(2));
    assert_eq!(refused(&TABLE.replace("N: 12", "N: 13")).0, Some(2));
}

#[test]
fn hdr_logs_and_single_histograms() {
    let interval = kdyno_formats::hdr::Interval {
        tag: Some("a".to_owned()),
        start: std::time::Duration::from_secs(3),
        length: std::time::Duration::from_secs(1),
        histogram: Histogram {
            buckets: vec![kdyno_model::Bucket {
                low: 5.0,
                high: 6.0,
                count: 4,
            }],
            ..Histogram::default()
        },
    };
    let bytes = kdyno_formats::hdr::write_log(std::slice::from_ref(&interval)).expect("a log");
    let report = read(&bytes, None).expect("a log");
    assert_eq!(report.tool, Tool::Hdr);
    assert_eq!(filled(&report.sections[0].histogram), [(5.0, 6.0, 4)]);
    assert_eq!(report.sections[0].span.map(|span| span.length_s), Some(1.0));
    let bytes = kdyno_formats::hdr::write(&interval.histogram).expect("a histogram");
    assert_eq!(
        total(&read(&bytes, None).expect("a histogram").sections[0].histogram),
        4
    );
}

#[test]
fn an_input_without_a_histogram_says_what_is_known() {
    for text in ["", "\n\n", "hello\nworld\n", "{}", "{\"a\": 1}", "1 2 3\n"] {
        let error = read(text.as_bytes(), None).expect_err("nothing in it");
        assert_eq!(
            (error.line, error.reason.as_str()),
            (None, "there is no histogram in it")
        );
        assert!(error.hint.contains("bpftrace"));
    }
    for (tool, _) in Tool::ALL {
        assert!(read(b"hello\n", Some(tool)).is_err(), "{tool}");
        assert_eq!(tool.to_string().parse(), Ok(tool));
    }
}

/// Files of the public corpus, with the right values of its index.
#[test]
fn corpus_files_give_their_values() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if !corpus.is_dir() {
        println!("skipped: no {}", corpus.display());
        return;
    }
    let of = |name: &str| {
        let bytes = std::fs::read(corpus.join(name)).expect("a file");
        match read(&bytes, None) {
            Ok(report) => report,
            Err(error) => panic!("{name}: {error}"),
        }
    };
    let counts = |section: &Section| -> Vec<u64> {
        section.histogram.buckets.iter().map(|b| b.count).collect()
    };
    let runqlat = of("bcc-runqlat-example.txt");
    assert_eq!(
        counts(&runqlat.sections[0])[..9],
        [233, 742, 203, 173, 24, 0, 30, 6, 3]
    );
    assert_eq!(runqlat.sections[0].unit.as_str(), "us");
    assert!(
        runqlat
            .sections
            .iter()
            .any(|s| s.name.starts_with("pid = "))
    );
    let biolatency = of("bcc-biolatency-example.txt");
    let first = filled(&biolatency.sections[0].histogram);
    assert_eq!(first[0], (64.0, 128.0, 1));
    assert_eq!(
        first.iter().map(|row| row.2).take(8).collect::<Vec<_>>(),
        [1, 12, 15, 43, 52, 47, 52, 36]
    );
    assert!(biolatency.sections.iter().any(|s| s.unit.as_str() == "ms"));
    let cpudist = of("bcc-cpudist-example.txt");
    assert_eq!(
        filled(&cpudist.sections[0].histogram)[..6],
        [
            (2.0, 4.0, 1),
            (4.0, 8.0, 1),
            (8.0, 16.0, 13),
            (16.0, 32.0, 187),
            (32.0, 64.0, 89),
            (64.0, 128.0, 26)
        ]
    );
    let biolatency = of("bpftrace-biolatency-example.txt");
    assert_eq!(
        filled(&biolatency.sections[0].histogram),
        [
            (256.0, 512.0, 2),
            (512.0, 1024.0, 10),
            (1024.0, 2048.0, 426),
            (2048.0, 4096.0, 230),
            (4096.0, 8192.0, 9),
            (8192.0, 16384.0, 128),
            (16384.0, 32768.0, 68),
            (131_072.0, 262_144.0, 10)
        ]
    );
    let runqlat = of("bpftrace-runqlat-example.txt");
    assert_eq!(runqlat.sections[0].unit.as_str(), "us");
    assert_eq!(
        counts(&runqlat.sections[0])[2..10],
        [16, 43, 134, 220, 117, 84, 10, 2]
    );
    let ssl = of("bpftrace-ssllatency-example.txt");
    let handshake = &ssl.sections[2].histogram;
    assert_eq!(
        filled(handshake),
        [(600.0, 800.0, 1359), (800.0, 1000.0, 12)]
    );
    assert_eq!(handshake.overflow, 32);
    let keyed = of("bpftrace-per-key-lhist-2025.eml");
    let total_of = |name: &str| {
        let section = keyed.sections.iter().find(|s| s.name == name);
        let histogram = &section.expect("a key").histogram;
        (total(histogram) - histogram.overflow, histogram.overflow)
    };
    assert_eq!(total_of("tmpfs"), (84, 451));
    assert_eq!(total_of("ext4").1, 7_775_413);
    assert_eq!(total_of("btrfs").0, 5_628_821);
    assert_eq!(total_of("devtmpfs"), (3609, 3790));
    assert_eq!(total_of("sysfs"), (4532, 0));
    let perf = of("perf-ftrace-latency-ext4-2025.eml");
    let perf = &perf.sections[0];
    assert_eq!(total(&perf.histogram), 1987);
    assert_eq!(
        filled(&perf.histogram)[8..11],
        [
            (512.0, 1024.0, 448),
            (1024.0, 2048.0, 36),
            (2048.0, 4096.0, 11)
        ]
    );
    let cyclictest = of("cyclictest-hist-4core.txt");
    assert_eq!(
        cyclictest
            .sections
            .iter()
            .map(|s| total(&s.histogram))
            .collect::<Vec<_>>(),
        [11_055_136, 11_055_141, 11_055_141, 11_055_131]
    );
    assert_eq!(
        cyclictest
            .sections
            .iter()
            .map(|s| s.histogram.max.expect("told"))
            .collect::<Vec<_>>(),
        [27.0, 28.0, 21.0, 25.0]
    );
    assert_eq!(cyclictest.sections[0].histogram.buckets[5].count, 9_249_673);
    assert_eq!(cyclictest.sections[0].histogram.buckets.len(), 400);
    let rtla = of("rtla-timerlat-hist-doc.txt");
    assert_eq!(rtla.sections.len(), 10);
    assert!(rtla.sections.iter().all(|s| total(&s.histogram) == 600_002));
    assert_eq!(
        rtla.sections
            .iter()
            .map(|s| s.histogram.max.expect("told"))
            .collect::<Vec<_>>(),
        [16.0, 36.0, 15.0, 58.0, 24.0, 44.0, 21.0, 46.0, 13.0, 50.0]
    );
    let iolatency = of("perf-tools-iolatency-example.txt");
    assert_eq!(counts(&iolatency.sections[0]), [4381, 9, 5, 0, 1]);
    let log = of("fio-clat_hist.1.log");
    assert_eq!(total(&log.sections[0].histogram), 8325);
    assert_eq!(log.sections[0].span.map(|span| span.length_s), Some(1.001));
    let document = of("fio-lkp-01.output");
    let read = document
        .sections
        .iter()
        .find(|s| s.name.ends_with("read.clat"))
        .expect("a section");
    assert_eq!(read.unit.as_str(), "ns");
    let old = of("fio-2.1.4.json");
    assert!(old.sections.iter().all(|s| s.unit.as_str() == "us"));
    assert!(old.sections.len() >= 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_input_makes_it_panic(
        which in 0..6_usize, cut in 0..4000_usize, place in 0..4000_usize, byte in any::<u8>(),
    ) {
        let perf = perf_table(&[7; 22], false);
        let texts = [
            CYCLICTEST, TABLE, &perf,
            "usecs : count distribution\n 0 -> 1 : 4 |**|\n 2 -> 3 : 5 |**|\n",
            "@a[b]:\n(..., 0) 1 |@|\n[1K, 2K) 5 |@@|\n[2K, ...) 5 |@@|\n",
            "{ lat: ~ 2^6 } hitcount: 29\n{ lat: ~ 2^7 } hitcount: 1\nTotals:\n Hits: 30\n",
        ];
        let mut bytes = texts[which].as_bytes().to_vec();
        bytes.truncate(cut.max(1));
        let place = place % bytes.len();
        bytes[place] = byte;
        for tool in Tool::ALL.map(|(tool, _)| Some(tool)).into_iter().chain([None]) {
            if let Ok(report) = read(&bytes, tool) {
                for section in &report.sections {
                    let value = kdyno_model::Value::Histogram(section.histogram.clone());
                    prop_assert!(value.check().is_ok(), "{:?}", section);
                }
            }
        }
    }
}
