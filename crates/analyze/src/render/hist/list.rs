//! Buckets for programs.

use super::Series;
use crate::number::exact;
use crate::render::csv::quote;
use std::fmt::Write;

/// One line per bucket with an event: `series,run,low,high,count,unit`, runs from 1. What is below or
/// above all buckets has no `low` or no `high`.
#[must_use]
pub fn csv(series: &[Series], unit: &str) -> String {
    let mut text = String::from("series,run,low,high,count,unit\n");
    for series in series {
        let name = quote(&series.name);
        for (run, buckets) in series.runs.iter().enumerate() {
            let run = run + 1;
            let mut line = |low: &str, high: &str, count: u64| {
                if count > 0 {
                    let _ = writeln!(text, "{name},{run},{low},{high},{count},{unit}");
                }
            };
            let first = buckets.buckets.first().map(|bucket| bucket.low);
            let last = buckets.buckets.last().map(|bucket| bucket.high);
            line("", &first.map(exact).unwrap_or_default(), buckets.below);
            for bucket in &buckets.buckets {
                line(&exact(bucket.low), &exact(bucket.high), bucket.count);
            }
            line(&last.map(exact).unwrap_or_default(), "", buckets.above);
        }
    }
    text
}
