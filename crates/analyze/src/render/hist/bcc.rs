//! Powers of two, and rows of one width, as bcc's Python tools print them.

use super::{Printed, bar, bar_length, highest, octaves, unit::in_seconds};
use kdyno_stats::hist::Buckets;
use std::fmt::Write;

/// Octaves up to here are printed in the narrow form.
const NARROW: usize = 32;

/// A power-of-two histogram of values in `unit`; of whole numbers, so that the first row is 0 and 1.
#[must_use]
pub fn log2(buckets: &Buckets, unit: &str) -> Printed {
    let edges = octaves(highest(buckets));
    let rows = buckets.regrouped(&edges);
    let last = rows.counts.iter().rposition(|count| *count > 0);
    let shown = last.map_or(0, |last| last + 1);
    let (margin, label, ends, stars) = match shown <= NARROW {
        true => (5, 19, 10, 40),
        false => (15, 29, 20, 20),
    };
    let mut text = format!(
        "{:margin$}{:<label$} : count     distribution\n",
        "",
        in_seconds(unit),
    );
    let most = rows.counts.iter().copied().max().unwrap_or(0);
    for (pair, count) in edges.windows(2).zip(&rows.counts).take(shown) {
        let [low, high] = pair else { continue };
        let stars_of = bar('*', bar_length(stars, *count, most));
        let width = usize::try_from(stars).unwrap_or(0);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{low:>ends$} -> {:<ends$} : {count:<8} |{stars_of:<width$}|",
            high - 1.0,
        );
    }
    Printed {
        text,
        across: rows.across,
        outside: rows.below.saturating_add(rows.above),
    }
}

/// Rows of one width, each named by where it begins.
#[must_use]
pub fn linear(buckets: &Buckets, unit: &str, edges: &[f64]) -> Printed {
    let rows = buckets.regrouped(edges);
    let first = rows.counts.iter().position(|count| *count > 0);
    let last = rows.counts.iter().rposition(|count| *count > 0);
    let most = rows.counts.iter().copied().max().unwrap_or(0);
    let mut text = format!("     {:<13} : count     distribution\n", in_seconds(unit));
    let named = edges.iter().zip(&rows.counts).enumerate();
    for (place, (low, count)) in named {
        if first.is_some_and(|first| place >= first) && last.is_some_and(|last| place <= last) {
            let stars = bar('*', bar_length(40, *count, most));
            let _ = writeln!(text, "        {low:<10} : {count:<8} |{stars:<40}|");
        }
    }
    Printed {
        text,
        across: rows.across,
        outside: rows.below.saturating_add(rows.above),
    }
}
