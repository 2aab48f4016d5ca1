//! Divisions of a series.

use crate::cases::check::{Case, Check};
use kdyno_stats::changepoint::{energy_division, robust_phi};
use kdyno_stats::segmentation::{Pricing, segment};

pub fn run(case: &Case, check: &mut Check<'_>) {
    let x = case.floats("/x");
    let pricing = Pricing {
        penalty: case.float("/penalty"),
        bound: None,
        shortest: case.float("/min_size") as usize,
    };
    let found = segment(&x, &[], pricing);
    let changes = found.iter().flat_map(|s| &s.changes).map(|c| *c as f64);
    check.numbers("/optimal_partition", &changes.collect::<Vec<_>>());
    check.number("/objective", found.map(|s| s.objective));
    let division = energy_division(&x);
    check.number("/edivisive_first", division.map(|(k, _)| k as f64));
    check.number("/edivisive_Q", division.map(|(_, q)| q));
    check.number("/ar1seg_phi", robust_phi(&x));
}
