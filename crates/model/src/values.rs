//! Values that came without runs: a file of metrics by variant.

use crate::MetricName;

/// Values by metric and variant, both in order of appearance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueTable {
    /// The variants; the first is the base.
    pub variants: Vec<String>,
    /// The metrics.
    pub metrics: Vec<ValueRow>,
    /// Values that were missing or not finite.
    pub missing: usize,
}

/// The values of one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueRow {
    /// Its name.
    pub metric: MetricName,
    /// One list per variant that has values; shorter than the variants where the last have none.
    pub values: Vec<Vec<BlockValue>>,
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockValue {
    /// The number; finite.
    pub value: f64,
    /// The block that it was measured in, where blocks are given.
    pub block: Option<u32>,
}
