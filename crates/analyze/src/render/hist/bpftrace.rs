//! `hist()` and `lhist()` as bpftrace prints maps.

use super::{Printed, bar, bar_length, highest, octaves};
use kdyno_stats::hist::{Buckets, Regrouped};
use std::fmt::Write;

/// Characters of the longest bar.
const BAR: u64 = 52;

/// A map `@name:` of powers of two.
#[must_use]
pub fn hist(name: &str, buckets: &Buckets) -> Printed {
    // 0 and 1 have a row each.
    let mut edges = octaves(highest(buckets));
    edges.insert(1, 1.0);
    let rows = buckets.regrouped(&edges);
    let named = edges.windows(2).map(|pair| match pair {
        [0.0, _] => "[0]".to_owned(),
        [1.0, _] => "[1]".to_owned(),
        [low, high] => format!("[{}, {})", binary(*low), binary(*high)),
        _ => String::new(),
    });
    let mut labels = vec!["(..., 0)".to_owned()];
    labels.extend(named);
    let end = edges.last().copied().unwrap_or(0.0);
    labels.push(format!("[{}, ...)", binary(end)));
    print(name, &labels, &rows)
}

/// A map `@name:` of rows of one width; what is outside has its rows.
#[must_use]
pub fn lhist(name: &str, buckets: &Buckets, edges: &[f64]) -> Printed {
    let rows = buckets.regrouped(edges);
    let first = edges.first().copied().unwrap_or(0.0);
    let last = edges.last().copied().unwrap_or(0.0);
    // Suffixes only where steps are whole ones of them, as bpftrace has it.
    let binary_steps = edges.windows(2).all(|pair| match pair {
        [low, high] => (high - low) % 1024.0 == 0.0,
        _ => false,
    });
    let number = |value: f64| match binary_steps {
        true => binary(value),
        false => value.to_string(),
    };
    let mut labels = vec![format!("(..., {})", number(first))];
    labels.extend(edges.windows(2).map(|pair| match pair {
        [low, high] => format!("[{}, {})", number(*low), number(*high)),
        _ => String::new(),
    }));
    labels.push(format!("[{}, ...)", number(last)));
    print(name, &labels, &rows)
}

/// From the first row with an event to the last; labels have one for below and one for above.
fn print(name: &str, labels: &[String], rows: &Regrouped) -> Printed {
    let mut counts = vec![rows.below];
    counts.extend(&rows.counts);
    counts.push(rows.above);
    let first = counts.iter().position(|count| *count > 0).unwrap_or(0);
    let last = counts.iter().rposition(|count| *count > 0);
    let shown = last.map_or(0, |last| last + 1).saturating_sub(first);
    let most = counts.iter().copied().max().unwrap_or(0);
    let mut text = format!("@{name}:\n");
    for (label, count) in labels.iter().zip(&counts).skip(first).take(shown) {
        let bar = bar('@', bar_length(BAR, *count, most));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{label:<16}{count:>8} |{bar:<52}|");
    }
    text.push('\n');
    Printed {
        text,
        across: rows.across,
        outside: 0,
    }
}

/// A number with K, M, G, T, P or E for each factor of 1024 that it has.
fn binary(value: f64) -> String {
    let mut value = value;
    for suffix in ["", "K", "M", "G", "T", "P", "E"] {
        if value < 1024.0 || value % 1024.0 != 0.0 {
            return format!("{value}{suffix}");
        }
        value /= 1024.0;
    }
    format!("{value}Z")
}
