//! The rows of FreeBSD's ministat: number, range, upper median, mean and sample deviation.
//!
//! Rows only; no plot and no test.

use super::figure::printable;
use crate::number::general;
use kdyno_stats::Summary;
use std::fmt::Write;

/// One mark per set, in ministat's order.
const SYMBOLS: [char; 7] = ['x', '+', '*', '%', '#', '@', 'O'];
const WIDTH: usize = 13;
const DIGITS: usize = 8;

/// Why the rows cannot be printed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatError {
    /// There are more sets than marks.
    #[error(
        "{given} sets are given and there are marks for {limit}\nhint: print them in several calls"
    )]
    TooManySets {
        /// Number of sets.
        given: usize,
        /// Number of marks.
        limit: usize,
    },
    /// A set has no value, or one that is no number.
    #[error("{name}: no values, or one that is not finite\nhint: give one number per line")]
    NoValues {
        /// Name of the set.
        name: String,
    },
}

/// The legend, the heading and one row per named set of values. The deviation of a single value
/// is `-`.
///
/// # Errors
/// [`StatError`] when there are more than seven sets or one of them cannot be summarised.
pub fn stat(sets: &[(&str, &[f64])]) -> Result<String, StatError> {
    if sets.len() > SYMBOLS.len() {
        return Err(StatError::TooManySets {
            given: sets.len(),
            limit: SYMBOLS.len(),
        });
    }
    let mut legend = String::new();
    let mut rows = heading();
    for ((name, values), symbol) in sets.iter().zip(SYMBOLS) {
        let summary = Summary::of(values).ok_or_else(|| StatError::NoValues {
            name: (*name).to_owned(),
        })?;
        // Writing to a String cannot fail.
        let _ = writeln!(legend, "{symbol} {}", printable(name));
        rows.push_str(&row(symbol, &summary));
    }
    Ok(legend + &rows)
}

/// The titles of [`figures`].
pub(super) const FIGURE_TITLES: &str =
    "           Min           Max        Median           Avg        Stddev";

fn heading() -> String {
    format!("    N{FIGURE_TITLES}\n")
}

fn row(symbol: char, summary: &Summary) -> String {
    format!("{symbol} {:>3}{}\n", summary.n, figures(summary))
}

/// Range, upper median, mean and sample deviation, each 13 wide behind a blank.
pub(super) fn figures(summary: &Summary) -> String {
    let figures = [
        Some(summary.min),
        Some(summary.max),
        Some(summary.upper_median),
        Some(summary.mean),
        summary.sample_sd,
    ];
    let mut out = String::new();
    for figure in figures {
        let text = figure.map_or_else(|| "-".to_owned(), |value| general(value, DIGITS));
        let _ = write!(out, " {text:>WIDTH$}");
    }
    out
}
