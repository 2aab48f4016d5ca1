//! What watches the machine while a trial is measured.

use crate::{MetricName, TestboxError, Unit};
use serde::{Deserialize, Serialize};

/// Something that is sampled during the measured window.
///
/// Monitors of `/proc` files implement it now; tracers follow. One thread calls `sample` at the
/// window's start, at each period and at its end, so an implementation keeps its descriptors
/// open, does not allocate in the steady state and leaves arithmetic to `finish` or later.
pub trait Monitor: Send {
    /// Its name, the group of its metrics (`proc-vmstat`).
    fn name(&self) -> &str;

    /// Takes one sample, stamped `t_ns` nanoseconds after the window's start.
    ///
    /// # Errors
    /// When the source can no longer be read; the monitor is then dropped with a note, the
    /// trial goes on.
    fn sample(&mut self, t_ns: u64) -> Result<(), TestboxError>;

    /// Hands over what was sampled.
    fn finish(self: Box<Self>) -> SeriesSet;
}

/// Whether a column holds a state or a running total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnKind {
    /// A state at a moment; summarised as its mean over the window.
    Gauge,
    /// A running total; summarised as total and rate over the window.
    Counter,
}

/// One quantity of a monitor over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its metric name, with the monitor's name in front.
    pub metric: MetricName,
    /// Its unit.
    pub unit: Unit,
    /// State or running total.
    pub kind: ColumnKind,
    /// One value per entry of the set's `t_ns`; `None` where the source did not show it.
    pub values: Vec<Option<f64>>,
}

/// All series of one monitor; they share their times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesSet {
    /// The monitor's name.
    pub monitor: String,
    /// Sampling times, nanoseconds after the window's start.
    pub t_ns: Vec<u64>,
    /// The quantities.
    pub columns: Vec<Column>,
}
