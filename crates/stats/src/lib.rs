//! Pure statistics: summaries and quantiles, percent change, distributions, tests and intervals,
//! multiplicity, shrinkage, verdicts, design, change points and bisection.
//!
//! Every formula of the tree has its home here, so that a table, a mail and a CSV file cannot
//! disagree; [`judge`] turns them into verdicts. Nothing here reads or prints, or knows what a run
//! is. Numbers that do not exist (the deviation of one run, a change from 0) are `None`, never 0
//! and never NaN.
#![warn(missing_docs)]

pub mod adjust;
pub mod agreement;
pub mod allocation;
pub mod bisect;
pub mod bisect_levels;
pub mod change;
pub mod changepoint;
pub mod counts;
pub mod degenerate;
pub mod dist;
pub mod distance;
pub mod drift;
pub mod ebayes;
pub mod equivalence;
pub mod evalue;
pub mod factorial;
pub mod fieller;
pub mod hist;
pub mod index;
pub mod judge;
mod least_squares;
pub mod lkp_rule;
pub mod log2_histogram;
pub mod moderated;
pub mod noise;
mod noncentral;
pub mod numeric;
pub mod order;
pub mod paired;
pub mod permutation;
pub mod quantile;
pub mod random_effects;
pub mod rank;
pub mod sample_size;
pub mod screen;
pub mod segmentation;
pub mod series;
pub mod special;
pub mod spending;
pub mod spread;
pub mod summary;
#[cfg(test)]
mod testing;
pub mod ttest;
pub mod variants;
pub mod warning;

pub use change::Change;
pub use summary::Summary;
