//! Distributions as text: as the tools print them that people know, as the bucket table, as
//! quantiles, and two beside each other as shares.
//!
//! What is printed is never finer than what was counted: a bucket that lies across two rows goes
//! into one of them as a whole, and [`Printed::across`] says how many events that concerns.

pub mod bcc;
pub mod bpftrace;
pub mod list;
pub mod perf;
pub mod quantiles;
pub mod shares;
pub mod steps;
pub mod table;
pub mod unit;

use kdyno_stats::hist::Buckets;

/// What is printed under one name: a variant, a file, a key of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// A histogram per run, all in one unit.
    pub runs: Vec<Buckets>,
}

impl Series {
    /// The events of all runs together.
    #[must_use]
    pub fn pooled(&self) -> Buckets {
        Buckets::pooled(&self.runs)
    }
}

/// A text, and how exact its rows are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// The lines.
    pub text: String,
    /// Events whose bucket lies across the ends of rows.
    pub across: u64,
    /// Events that the form has no row for.
    pub outside: u64,
}

/// Columns of a mail.
const WIDTH: usize = 80;

/// As many of `widths` as fit beside a first column, at least one, in order.
fn fitting(first: usize, widths: &[usize]) -> Vec<std::ops::Range<usize>> {
    let mut parts = Vec::new();
    let mut from = 0;
    while from < widths.len() {
        let mut taken = first;
        let room = widths.iter().skip(from).take_while(|width| {
            taken += **width;
            taken <= WIDTH
        });
        let to = from + room.count().max(1);
        parts.push(from..to);
        from = to;
    }
    parts
}

/// `length` characters of `of` that `share` is of the whole.
fn bar(mark: char, length: usize) -> String {
    std::iter::repeat_n(mark, length).collect()
}

/// Floor of `width * count / whole`, as the tools compute the lengths of their bars.
fn bar_length(width: u64, count: u64, whole: u64) -> usize {
    let scaled = u128::from(width) * u128::from(count);
    let length = scaled.checked_div(u128::from(whole)).unwrap_or(0);
    usize::try_from(length.min(u128::from(width))).unwrap_or(0)
}

/// The ends of octaves that hold whole numbers up to `highest`: 0, 2, 4, 8 and so on.
fn octaves(highest: f64) -> Vec<f64> {
    let mut edges = vec![0.0, 2.0];
    let mut edge = 2.0;
    // Of a number beyond these nobody has an octave.
    while edge <= highest && edge < 2_f64.powi(64) {
        edge *= 2.0;
        edges.push(edge);
    }
    edges
}

/// The end of the last bucket with an event.
fn highest(buckets: &Buckets) -> f64 {
    let filled = buckets.buckets.iter().filter(|bucket| bucket.count > 0);
    filled.map(|bucket| bucket.high).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_put_into_blocks_of_one_width() {
        assert_eq!(
            fitting(10, &[30, 30, 30, 30, 100, 5]),
            [0..2, 2..4, 4..5, 5..6]
        );
        assert!(fitting(10, &[]).is_empty());
    }

    #[test]
    fn bars_are_floors_and_never_longer_than_their_room() {
        assert_eq!(bar_length(40, 233, 809), 11);
        assert_eq!(bar_length(40, 809, 809), 40);
        assert_eq!(bar_length(40, 5, 0), 0);
        assert_eq!(bar_length(40, u64::MAX, 1), 40);
    }
}
