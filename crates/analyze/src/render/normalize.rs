//! Rows in ministat's form on the scale from 0 to 1, and what the machines confirm.

use super::figure::{printable, shortened};
use super::ministat::{FIGURE_TITLES, figures};
use super::words::p_text;
use crate::normalize::{Effectiveness, Normalized, NormalizedRow, common_index};
use kdyno_stats::index::NoIndex;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Every case and metric: rows, what is left per machine, what to look at again. `zero` and `one`
/// name the ends of the scale, `commands` what to run again on a machine, by its name.
#[must_use]
pub fn render(
    found: &[Normalized],
    zero: &str,
    one: &str,
    commands: &BTreeMap<String, String>,
) -> String {
    let mut out = String::new();
    for normalized in found {
        if !out.is_empty() {
            out.push('\n');
        }
        let _ = writeln!(
            out,
            "{} {}: 0 is the median of {}, 1 that of {}; N counts runs",
            printable(&normalized.case),
            printable(&normalized.metric),
            shortened(zero),
            shortened(one)
        );
        out.push_str(&rows(normalized));
        out.push('\n');
        out.push_str(&effectiveness(normalized));
        out.push_str(&together(normalized, commands));
    }
    out
}

/// A row is called by its machine, and by its variant where there are several.
fn name(normalized: &Normalized, row: &NormalizedRow) -> String {
    let first = normalized.rows.first().map(|row| &row.variant);
    let several = normalized
        .rows
        .iter()
        .any(|row| Some(&row.variant) != first);
    if several {
        format!("{} {}", printable(&row.testbox), shortened(&row.variant))
    } else {
        printable(&row.testbox)
    }
}

fn width(normalized: &Normalized) -> usize {
    let names = normalized.rows.iter().map(|row| name(normalized, row));
    names.map(|name| name.chars().count()).max().unwrap_or(0)
}

/// `name N Min Max Median Avg Stddev`.
fn rows(normalized: &Normalized) -> String {
    let width = width(normalized);
    let mut out = format!("{:width$} {:>3}{FIGURE_TITLES}\n", "", "N");
    for row in &normalized.rows {
        let name = name(normalized, row);
        let _ = match &row.scaled {
            Ok(scaled) => {
                let figures = figures(&scaled.summary);
                writeln!(out, "{name:<width$} {:>3}{figures}", scaled.summary.n)
            }
            Err(why) => writeln!(out, "{name:<width$}   - {}", refusal(*why)),
        };
    }
    out
}

fn refusal(why: NoIndex) -> &'static str {
    match why {
        NoIndex::AnchorsDoNotDiffer { .. } => {
            "no scale: its two ends do not clearly differ on this machine"
        }
        NoIndex::NotEnoughData => "no scale: five runs of each variant are needed",
    }
}

/// What is left per machine, with the interval that the ends' own uncertainty is part of.
fn effectiveness(normalized: &Normalized) -> String {
    let width = width(normalized);
    let mut out = String::new();
    for row in &normalized.rows {
        if let Ok(scaled) = &row.scaled {
            let (low, high) = scaled.index.fieller;
            let _ = writeln!(
                out,
                "{:<width$} {:<10} index {:.2} ({low:.2}..{high:.2}), {:.0} % of runs above 1",
                name(normalized, row),
                scaled.effectiveness().word(),
                scaled.index.index,
                scaled.above_one
            );
        }
    }
    out
}

/// How many machines confirm, the common index, and what to run again.
fn together(normalized: &Normalized, commands: &BTreeMap<String, String>) -> String {
    let mut by_variant: Vec<(&str, Vec<&NormalizedRow>)> = Vec::new();
    for row in &normalized.rows {
        match by_variant.iter_mut().find(|(name, _)| *name == row.variant) {
            Some((_, rows)) => rows.push(row),
            None => by_variant.push((&row.variant, vec![row])),
        }
    }
    let mut out = String::new();
    for (variant, rows) in by_variant.iter().filter(|(_, rows)| rows.len() > 1) {
        let _ = writeln!(
            out,
            "{}: {}",
            shortened(variant),
            confirmation(rows, commands)
        );
        if let Some((pooled, h)) = common_index(rows) {
            let (low, high) = pooled.interval;
            let _ = writeln!(
                out,
                "over machines: index {:.2} ({low:.2}..{high:.2}), I^2 {:.0} %, Q {:.1} (p {})",
                pooled.estimate,
                h.i2,
                h.q,
                p_text(h.p)
            );
        }
    }
    out
}

/// `3 of 4 confirm; recheck ivb: COMMAND`.
fn confirmation(rows: &[&NormalizedRow], commands: &BTreeMap<String, String>) -> String {
    let left = |row: &NormalizedRow| {
        let scaled = row.scaled.as_ref().ok();
        scaled.map_or(Effectiveness::Unclear, |scaled| scaled.effectiveness())
    };
    let confirming = rows.iter().filter(|row| left(row).confirms()).count();
    let mut out = format!("{confirming} of {} confirm", rows.len());
    for row in rows.iter().filter(|row| !left(row).confirms()) {
        let testbox = printable(&row.testbox);
        let _ = match commands.get(&row.testbox) {
            Some(command) => write!(out, "; recheck {testbox}: {command}"),
            None => write!(out, "; recheck {testbox}"),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalize::Scaled;
    use kdyno_stats::Summary;
    use kdyno_stats::index::Index;

    /// The published rows of a thread about four machines, in the form that it has.
    #[test]
    fn rows_of_four_machines() {
        let published = [
            ("ivb", [0.701641, 2.79209, 1.24469, 1.3333911, 0.40871825]),
            (
                "byt",
                [-0.108194, 0.0777012, 0.0485302, 0.01343581, 0.061524734],
            ),
            (
                "bxt",
                [-0.262057, 6.27002, 0.0801667, 0.15963388, 0.63528121],
            ),
            (
                "kbl",
                [-0.0891262, 1.22326, -0.0245336, 0.041492506, 0.14929689],
            ),
        ];
        let row = |(testbox, [min, max, median, mean, sd]): (&str, [f64; 5])| {
            // The error of a median of 120 runs, about.
            let error = 1.2533 * sd / 120_f64.sqrt();
            let ends = (median - 1.96 * error, median + 1.96 * error);
            NormalizedRow {
                testbox: testbox.to_owned(),
                variant: "unevictable".to_owned(),
                scaled: Ok(Scaled {
                    summary: Summary {
                        n: 120,
                        mean,
                        median,
                        upper_median: median,
                        min,
                        max,
                        sample_sd: Some(sd),
                        population_sd: Some(sd),
                    },
                    above_one: if max > 1.0 { 1.0 } else { 0.0 },
                    index: Index {
                        index: median,
                        error,
                        delta: ends,
                        fieller: ends,
                        g: 0.01,
                    },
                }),
            }
        };
        let normalized = Normalized {
            case: "syslatency/thp".to_owned(),
            metric: "syslatency.latency".to_owned(),
            rows: published.into_iter().map(row).collect(),
        };
        let commands = [("ivb".to_owned(), "kdyno run -n 240 job.yaml".to_owned())].into();
        let printed = render(&[normalized], "idle", "drm-tip", &commands);
        let expected = "\
syslatency/thp syslatency.latency: 0 is the median of idle, 1 that of drm-tip; N counts runs
      N           Min           Max        Median           Avg        Stddev
ivb 120      0.701641       2.79209       1.24469     1.3333911    0.40871825
byt 120     -0.108194     0.0777012     0.0485302    0.01343581   0.061524734
bxt 120     -0.262057       6.27002     0.0801667    0.15963388    0.63528121
kbl 120    -0.0891262       1.22326    -0.0245336   0.041492506    0.14929689
";
        assert!(printed.starts_with(expected), "{printed}");
        assert!(printed.contains("ivb worse "), "{printed}");
        assert!(printed.contains("byt reduced "), "{printed}");
        assert!(printed.contains("bxt eliminated "), "{printed}");
        assert!(printed.contains("kbl eliminated "), "{printed}");
        let summary = "unevictable: 3 of 4 confirm; recheck ivb: kdyno run -n 240 job.yaml\n";
        assert!(printed.contains(summary), "{printed}");
        assert!(printed.contains("over machines: index "), "{printed}");
    }

    #[test]
    fn intervals_against_both_ends() {
        let of = |low, high| Effectiveness::of((low, high)).word();
        assert_eq!(of(-0.1, 0.2), "eliminated");
        assert_eq!(of(-0.3, -0.1), "eliminated");
        assert_eq!(of(0.2, 0.6), "reduced");
        assert_eq!(of(0.6, 1.2), "none");
        assert_eq!(of(1.1, 1.4), "worse");
        assert_eq!(of(-0.5, 1.5), "unclear");
    }
}
