//! The table of `perf ftrace latency`: octaves from a microsecond to a second, all of them, with bars
//! that scale to the total.

use super::{Printed, bar, bar_length};
use kdyno_stats::hist::Buckets;
use std::fmt::Write;

/// Octaves between the first row and the last.
const OCTAVES: u32 = 20;
/// Characters of the longest bar.
const BAR: u64 = 46;

/// The table of values in microseconds, or, where `nanoseconds` are asked for, of values in these.
#[must_use]
pub fn latency(buckets: &Buckets, nanoseconds: bool) -> Printed {
    let (small, large, last) = match nanoseconds {
        true => ("ns", "us", "ms"),
        false => ("us", "ms", " s"),
    };
    let mut edges = vec![0.0];
    edges.extend((0..=OCTAVES).map(|octave| f64::from(1_u32 << octave)));
    let rows = buckets.regrouped(&edges);
    let total = rows.total();
    let mut text = format!("#   DURATION     | {:>10} | {:<46} |\n", "COUNT", "GRAPH");
    let mut line = |low: f64, high: &str, unit: &str, count: u64| {
        let bar = bar('#', bar_length(BAR, count, total));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {low:>4} - {high:<4} {unit} | {count:>10} | {bar:<46} |"
        );
    };
    for (pair, count) in edges.windows(2).zip(&rows.counts) {
        match pair {
            [low, high] if *low >= 1024.0 => {
                line(low / 1024.0, &(high / 1024.0).to_string(), large, *count);
            }
            [low, high] => line(*low, &high.to_string(), small, *count),
            _ => {}
        }
    }
    line(1.0, "...", last, rows.above);
    Printed {
        text,
        across: rows.across,
        outside: rows.below,
    }
}
