//! Distributions as text, to the column.

use kdyno_analyze::render::hist::{Series, bcc, bpftrace, list, perf, quantiles, shares, table};
use kdyno_stats::hist::{Bucket, Buckets};

fn buckets(parts: &[(f64, f64, u64)]) -> Buckets {
    let bucket = |(low, high, count): &(f64, f64, u64)| Bucket {
        low: *low,
        high: *high,
        count: *count,
    };
    Buckets {
        buckets: parts.iter().map(bucket).collect(),
        ..Buckets::default()
    }
}

/// Octaves from 0..2 on.
fn octaves(counts: &[u64]) -> Buckets {
    let end = |place: usize| {
        if place == 0 {
            0.0
        } else {
            2_f64.powi(place as i32)
        }
    };
    let parts: Vec<_> = counts
        .iter()
        .enumerate()
        .map(|(place, count)| (end(place), end(place + 1), *count))
        .collect();
    buckets(&parts)
}

fn series(name: &str, buckets: Buckets) -> Series {
    Series {
        name: name.to_owned(),
        runs: vec![buckets],
    }
}

#[test]
fn octaves_as_bcc_prints_them() {
    let printed = bcc::log2(&octaves(&[3, 0, 80, 7]), "us");
    assert_eq!(
        printed.text,
        "     usecs               : count     distribution
         0 -> 1          : 3        |*                                       |
         2 -> 3          : 0        |                                        |
         4 -> 7          : 80       |****************************************|
         8 -> 15         : 7        |***                                     |
"
    );
    assert_eq!((printed.across, printed.outside), (0, 0));
}

#[test]
fn long_ranges_have_the_wide_form() {
    let printed = bcc::log2(&buckets(&[(2_f64.powi(33), 2_f64.powi(34), 5)]), "ns");
    let lines: Vec<&str> = printed.text.lines().collect();
    assert_eq!(
        lines[0],
        "               nsecs                         : count     distribution"
    );
    assert_eq!(lines.len(), 35);
    assert_eq!(
        lines[34],
        "          8589934592 -> 17179869183          : 5        |********************|"
    );
}

#[test]
fn rows_of_one_width_as_bcc_prints_them() {
    let printed = bcc::linear(
        &buckets(&[(1.0, 2.0, 4), (3.0, 4.0, 2)]),
        "",
        &[0.0, 1.0, 2.0, 3.0, 4.0],
    );
    assert_eq!(
        printed.text,
        "                   : count     distribution
        1          : 4        |****************************************|
        2          : 0        |                                        |
        3          : 2        |********************                    |
"
    );
}

#[test]
fn maps_as_bpftrace_prints_them() {
    let parts = [
        (0.0, 1.0, 1),
        (1.0, 2.0, 11),
        (2.0, 4.0, 16),
        (512.0, 1024.0, 220),
        (1024.0, 2048.0, 5),
    ];
    let printed = bpftrace::hist("usecs", &buckets(&parts));
    let lines: Vec<&str> = printed.text.lines().collect();
    assert_eq!(lines[0], "@usecs:");
    assert_eq!(
        lines[1],
        "[0]                    1 |                                                    |"
    );
    assert_eq!(
        lines[3],
        "[2, 4)                16 |@@@                                                 |"
    );
    assert_eq!(
        lines[11],
        "[512, 1K)            220 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|"
    );
    assert_eq!(
        lines[12],
        "[1K, 2K)               5 |@                                                   |"
    );
    assert_eq!(lines[13], "");
}

#[test]
fn linear_maps_have_open_ends_and_suffixes_only_for_whole_steps() {
    let mut values = buckets(&[(600.0, 800.0, 1359), (800.0, 1000.0, 12)]);
    values.above = 32;
    let edges: Vec<f64> = (0..=5).map(|step| f64::from(step) * 200.0).collect();
    let text = bpftrace::lhist("hist[a]", &values, &edges).text;
    let starts: Vec<&str> = text
        .lines()
        .map(|line| line.split('|').next().expect("a start"))
        .collect();
    assert_eq!(
        starts,
        [
            "@hist[a]:",
            "[600, 800)          1359 ",
            "[800, 1000)           12 ",
            "[1000, ...)           32 ",
            ""
        ]
    );
    let edges: Vec<f64> = (0..=2).map(|step| f64::from(step) * 2048.0).collect();
    let text = bpftrace::lhist(
        "h",
        &buckets(&[(0.0, 2048.0, 1), (2048.0, 4096.0, 1)]),
        &edges,
    )
    .text;
    assert!(
        text.contains("[0, 2K) ") && text.contains("[2K, 4K) "),
        "{text}"
    );
}

#[test]
fn the_table_of_perf_ftrace_has_all_its_rows_and_bars_of_the_total() {
    let mut values = octaves(&[0, 41, 499]);
    values.buckets.push(Bucket {
        low: 1024.0,
        high: 2048.0,
        count: 460,
    });
    values.above = 1;
    let printed = perf::latency(&values, false);
    let lines: Vec<&str> = printed.text.lines().collect();
    assert_eq!(lines.len(), 23);
    assert_eq!(
        lines[0],
        "#   DURATION     |      COUNT | GRAPH                                          |"
    );
    assert_eq!(
        lines[4],
        "     4 - 8    us |        499 | ######################                         |"
    );
    assert_eq!(
        lines[12],
        "     1 - 2    ms |        460 | #####################                          |"
    );
    assert_eq!(
        lines[22],
        "     1 - ...   s |          1 |                                                |"
    );
}

#[test]
fn the_bucket_table_has_a_dot_for_none_and_leaves_out_empty_rows() {
    let mut second = buckets(&[(20.0, 30.0, 2), (500.0, 1000.0, 7)]);
    second.above = 3;
    let columns = [
        series("10/10", buckets(&[(10.0, 20.0, 12), (20.0, 30.0, 988)])),
        series("retry", second),
    ];
    let edges = "10us..500us,500us..10ms"
        .parse::<kdyno_analyze::render::hist::steps::Steps>()
        .expect("steps")
        .edges("us")
        .expect("a time");
    assert_eq!(
        table::table(&columns, &edges, "us").text,
        "     Time  10/10  retry
       N:   1000     12
    10us:     12      .
    20us:    988      2
   500us:      .      7
>10000us:      .      3
"
    );
}

#[test]
fn columns_that_do_not_fit_follow_in_a_second_block() {
    let columns: Vec<Series> = (0..12)
        .map(|place| series(&format!("variant-{place}"), octaves(&[5])))
        .collect();
    let text = table::table(&columns, &[0.0, 2.0], "us").text;
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert_eq!(text.matches("N:").count(), 2);
    assert_eq!(text.matches("variant-").count(), 12);
}

#[test]
fn quantiles_are_bounds_and_only_those_with_an_event_beyond() {
    let mut many = buckets(&[(16.0, 32.0, 900), (1024.0, 2048.0, 100)]);
    many.max = Some(1500.0);
    let text = quantiles::quantiles(&[series("a", many), series("b", octaves(&[0, 4]))], "us");
    let words: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(words[0], ["a", "b"]);
    assert_eq!(words[1], ["N", "1000", "4"]);
    assert_eq!(words[4], ["p50", "16..32", "us", "2..4", "us"]);
    assert_eq!(words[6], ["p99", "1.024..1.5", "ms", "."]);
    assert_eq!(words[8], ["max", "1.5", "ms", "2..4", "us"]);
}

#[test]
fn a_second_mode_that_is_gone_is_named() {
    let bad = octaves(&[0, 0, 0, 40, 1000, 300, 0, 0, 0, 20, 600, 90]);
    let good = octaves(&[0, 0, 0, 60, 1600, 420]);
    let text = shares::shares(&series("before", bad), &series("after", good), "us");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(text.contains("before: 2 modes: "), "{text}");
    assert!(text.contains("after: 1 mode: "), "{text}");
    assert!(
        text.contains("second mode gone (1.024..2.048 ms): 34.6 % of events -> 0 %"),
        "{text}"
    );
    assert!(
        text.contains("first mode (16..32 us): 65.4 % of events -> 100 %"),
        "{text}"
    );
}

#[test]
fn a_mode_that_moved_and_one_that_came_are_named() {
    let before = octaves(&[0, 0, 0, 10, 1000, 10]);
    let moved = octaves(&[0, 0, 0, 0, 0, 0, 10, 1000, 10]);
    let text = shares::shares(&series("a", before.clone()), &series("b", moved), "us");
    assert!(
        text.contains("the mode moved from 16..32 us to 128..256 us"),
        "{text}"
    );
    let more = octaves(&[0, 0, 0, 10, 700, 10, 0, 0, 0, 300]);
    let text = shares::shares(&series("a", before), &series("b", more), "us");
    assert!(
        text.contains("new mode (512..1024 us): 0 % of events -> 29.4 %"),
        "{text}"
    );
}

#[test]
fn nothing_is_said_of_nothing() {
    let empty = series("a", Buckets::default());
    assert_eq!(shares::shares(&empty, &empty, "us"), "There is no event.\n");
    assert_eq!(bcc::log2(&Buckets::default(), "us").text.lines().count(), 1);
    assert_eq!(bpftrace::hist("a", &Buckets::default()).text, "@a:\n\n");
    assert_eq!(
        perf::latency(&Buckets::default(), true)
            .text
            .lines()
            .count(),
        23
    );
    assert!(!quantiles::quantiles(&[empty], "us").contains("NaN"));
}

#[test]
fn buckets_for_programs_keep_what_is_outside() {
    let mut values = buckets(&[(1.0, 2.5, 4)]);
    values.above = 2;
    assert_eq!(
        list::csv(&[series("a,b", values)], "us"),
        "series,run,low,high,count,unit\n\"a,b\",1,1,2.5,4,us\n\"a,b\",1,2.5,,2,us\n"
    );
}
