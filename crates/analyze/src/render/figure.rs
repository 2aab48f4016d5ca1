//! Cells that several renderers share: values and spreads as LKP prints them, and titles that a
//! table can hold whatever somebody called a variant or a testbox.

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

/// A text in which each control character is U+FFFD, so that a name can neither end a line nor
/// command the terminal.
pub(super) fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

/// The first `width` characters of a title.
pub(super) fn cut(title: &str, width: usize) -> String {
    printable(title).chars().take(width).collect()
}

/// A title with at most 60 characters; what is left out of a longer one is its middle, since
/// commands begin alike and differ in their last options.
pub(super) fn shortened(title: &str) -> String {
    const HEAD: usize = 28;
    const TAIL: usize = 29;
    const GAP: &str = "...";
    let title = printable(title);
    let length = title.chars().count();
    if length <= HEAD + GAP.len() + TAIL {
        return title;
    }
    let head = title.chars().take(HEAD);
    let tail = title.chars().skip(length - TAIL);
    head.chain(GAP.chars()).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        let (name, shown) = (
            "a\n\u{1b}[2J\u{9b}\tb \u{e9}",
            "a\u{fffd}\u{fffd}[2J\u{fffd}\u{fffd}b \u{e9}",
        );
        assert_eq!(printable(name), shown);
        assert_eq!(shortened(name), shown);
        assert_eq!(cut(name, 3), "a\u{fffd}\u{fffd}");
    }

    #[test]
    fn only_what_is_longer_than_sixty_is_shortened() {
        let sixty = "\u{e9}".repeat(60);
        assert_eq!(shortened(&sixty), sixty);
        let long = shortened(&format!("{}{}", "a".repeat(200), "b".repeat(100)));
        assert_eq!(long, format!("{}...{}", "a".repeat(28), "b".repeat(29)));
    }
}
