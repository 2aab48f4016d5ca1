//! Printers of the one table, each to a `String`.
//!
//! A renderer only lays out what [`crate::Comparison`] holds. Widths depend on the content and
//! never on a terminal, so that a table looks the same in a mail, a log and a test.

pub mod across;
pub mod csv;
mod figure;
pub mod hist;
pub mod json;
pub mod lkp;
pub mod lkp_cases;
pub mod ministat;
pub mod normalize;
pub mod page;
mod sentence;
pub mod text;
mod words;

/// Heading of every column of changes; the formula is
/// [`kdyno_stats::change::percent_change`].
pub(crate) const PERCENT_CHANGE: &str = "%change";
/// The same in the table of case rows, where each change has its percent sign beside it.
pub(crate) const CHANGE: &str = "change";
