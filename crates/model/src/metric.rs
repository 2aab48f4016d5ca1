//! Metric names, units and directions.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A flat dotted name such as `vm-scalability.median` or `proc-vmstat.pgfault`.
///
/// Printable, without blanks (a table is split at blanks) and at most 200 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MetricName(String);

/// Why a text cannot be a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` cannot be a metric name: {reason}")]
pub struct InvalidName {
    /// The rejected text, shortened.
    pub name: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl MetricName {
    const MAX_BYTES: usize = 200;

    /// Checks and takes a name.
    ///
    /// # Errors
    /// [`InvalidName`] when it is empty, too long, or holds blanks or control characters.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidName> {
        let name = name.into();
        let reason = if name.is_empty() {
            "it is empty"
        } else if name.len() > Self::MAX_BYTES {
            "it is longer than 200 bytes"
        } else if name.chars().any(|c| c.is_whitespace() || c.is_control()) {
            "it holds a blank or a control character"
        } else {
            return Ok(Self(name));
        };
        let name = name.chars().take(40).collect();
        Err(InvalidName { name, reason })
    }

    /// The whole name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the first dot: the group that tables sort by.
    #[must_use]
    pub fn group(&self) -> &str {
        self.0.split('.').next().unwrap_or(&self.0)
    }

    /// Whether its change is a difference in percentage points: shares and names that end in `%`
    /// are never divided by their base again.
    #[must_use]
    pub fn changes_absolutely(&self) -> bool {
        self.0.starts_with("perf-profile") || self.0.ends_with('%')
    }
}

impl fmt::Display for MetricName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for MetricName {
    type Error = InvalidName;
    fn try_from(name: String) -> Result<Self, InvalidName> {
        Self::new(name)
    }
}

impl From<MetricName> for String {
    fn from(name: MetricName) -> String {
        name.0
    }
}

/// A unit of measurement as it is printed, such as `KB/s`, `ns/byte` or `%`; empty for a plain count.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Unit(pub String);

impl Unit {
    /// The unit with this symbol.
    #[must_use]
    pub fn new(symbol: &str) -> Self {
        Self(symbol.to_owned())
    }

    /// Its symbol.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Which direction of a metric is good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better: throughput.
    Higher,
    /// Less is better: latency, time.
    Lower,
    /// Neither is: a diagnostic.
    #[default]
    Neither,
}

/// How prominently a metric is shown.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// What the benchmark is run for; first in every table.
    Headline,
    /// Another figure of the program itself.
    Program,
    /// What the machine did meanwhile: resource usage, monitors.
    #[default]
    Diagnostic,
}
