//! Pure statistics: summaries, quantiles, percent change, totals and means over time.
//!
//! Every formula of the tree has its home here, so that a table, a mail and a CSV file cannot
//! disagree. Nothing here reads, prints or decides a verdict; [`screen`] only filters what a
//! table shows. Numbers that do not exist (the deviation of one run, a change from 0) are
//! `None`, never 0 and never NaN.
#![warn(missing_docs)]

pub mod change;
pub mod quantile;
pub mod screen;
pub mod series;
pub mod summary;

pub use change::Change;
pub use summary::Summary;
