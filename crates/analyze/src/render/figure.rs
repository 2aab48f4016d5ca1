//! Cells that several renderers share: values, spreads and cut titles, as LKP prints them.

use crate::comparison::Cell;
use crate::number::{general, general_signed};
use kdyno_stats::Change;

/// From this magnitude on a change is printed in scientific notation.
const LARGE_CHANGE: f64 = 100_000.0;
/// Spreads up to this many percent are left out.
const SMALL_SPREAD: f64 = 2.0;

/// A value: two decimals below 1000, four digits above 1e8, else its integer part.
pub(super) fn value_text(value: f64) -> String {
    if value.abs() < 1000.0 {
        format!("{value:.2}")
    } else if value.abs() > 1e8 {
        general(value, 4)
    } else {
        format!("{:.0}", value.trunc())
    }
}

/// A spread in percent, six wide: ` ± 12%`, or blanks when it is small or unknown.
pub(super) fn spread_text(percent: Option<f64>) -> String {
    match percent.filter(|percent| *percent > SMALL_SPREAD) {
        Some(percent) if percent < LARGE_CHANGE => format!(" ±{:3.0}%", percent.trunc()),
        Some(percent) => format!(" ±{}%", general(percent, 2)),
        None => " ".repeat(6),
    }
}

/// The amount of a change with its sign: one decimal, two digits when it is large.
pub(super) fn amount_text(change: Change) -> String {
    let amount = change.amount();
    if amount.abs() < LARGE_CHANGE {
        format!("{amount:+.1}")
    } else {
        general_signed(amount, 2)
    }
}

/// Mean and spread of a cell.
pub(super) fn mean_and_spread(cell: &Cell) -> (f64, Option<f64>) {
    (cell.summary.mean, cell.summary.relative_spread())
}

/// The first `width` characters of a title.
pub(super) fn cut(title: &str, width: usize) -> String {
    title.chars().take(width).collect()
}
