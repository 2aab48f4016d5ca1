//! What a run yields: readings, each with unit and clock kind.

use crate::{Better, MetricName, Role, Unit};
use serde::{Deserialize, Serialize};

/// On which clock a reading was taken. Two kinds are never compared with each other.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum ClockKind {
    /// The clock of the machine that runs the test.
    #[default]
    Wall,
    /// The clock inside a virtual machine whose time follows the host's.
    GuestWall,
    /// Guest instructions counted as time: exact, but without caches or parallelism.
    GuestInstructions,
}

/// One reading of one metric in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// What was measured.
    pub metric: MetricName,
    /// In which unit.
    pub unit: Unit,
    /// Which direction is good.
    #[serde(default)]
    pub better: Better,
    /// How prominent it is.
    #[serde(default)]
    pub role: Role,
    /// On which clock.
    #[serde(default)]
    pub clock: ClockKind,
    /// The value itself.
    pub value: Value,
}

/// The shapes a value can have. All numbers are finite; [`Value::check`] says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Value {
    /// One number.
    Scalar(f64),
    /// Repeated observations inside one run, in order of appearance.
    Samples(Vec<f64>),
    /// Values over time: nanoseconds since the window began, and as many values.
    Series {
        /// Times in nanoseconds.
        t_ns: Vec<u64>,
        /// Values.
        values: Vec<f64>,
    },
    /// Counts by bucket.
    Histogram(Histogram),
    /// Figures that someone else summarised.
    Summary {
        /// Number of observations.
        n: u64,
        /// Their mean.
        mean: f64,
        /// Their sample standard deviation, when it was given.
        sd: Option<f64>,
        /// The smallest, when it was given.
        min: Option<f64>,
        /// The largest, when it was given.
        max: Option<f64>,
    },
}

/// One bucket of a histogram: `low <= value < high` in the reading's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// Smallest value that belongs here.
    pub low: f64,
    /// First value that no longer does.
    pub high: f64,
    /// How many fell in.
    pub count: u64,
}

/// Counts by bucket, with what fell outside kept beside them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Buckets in ascending order, without overlap; empty ones may be left out.
    pub buckets: Vec<Bucket>,
    /// Observations below the first representable value.
    pub underflow: u64,
    /// Observations at or above the last.
    pub overflow: u64,
    /// Exact smallest observation, when known.
    pub min: Option<f64>,
    /// Exact largest observation, when known.
    pub max: Option<f64>,
    /// Exact sum, when known.
    pub sum: Option<f64>,
}

/// A value that must not be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidValue(pub &'static str);

impl Value {
    /// Checks that every number is finite and shapes agree.
    ///
    /// # Errors
    /// [`InvalidValue`] names the first rule that is broken.
    pub fn check(&self) -> Result<(), InvalidValue> {
        let finite = |ok: bool| {
            if ok {
                Ok(())
            } else {
                Err(InvalidValue("a number is not finite"))
            }
        };
        match self {
            Self::Scalar(v) => finite(v.is_finite()),
            Self::Samples(v) if v.is_empty() => Err(InvalidValue("there is no sample")),
            Self::Samples(v) => finite(v.iter().all(|x| x.is_finite())),
            Self::Series { t_ns, values } if t_ns.len() != values.len() => {
                Err(InvalidValue("a series has not as many times as values"))
            }
            Self::Series { values, .. } => finite(values.iter().all(|x| x.is_finite())),
            Self::Histogram(h) => {
                let ends = [h.min, h.max, h.sum];
                finite(
                    h.buckets
                        .iter()
                        .all(|b| b.low.is_finite() && b.high.is_finite() && b.low < b.high)
                        && ends.into_iter().flatten().all(f64::is_finite),
                )
            }
            Self::Summary {
                mean, sd, min, max, ..
            } => finite(
                mean.is_finite() && [sd, min, max].into_iter().flatten().all(|x| x.is_finite()),
            ),
        }
    }
}
