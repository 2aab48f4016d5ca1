//! How figures are read from a program's output: data that the catalog holds and the extraction
//! engine follows.

use crate::{Better, Role, Unit};
use serde::{Deserialize, Serialize};

/// Everything needed to turn the output of a program into readings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExtractRules {
    /// What is put in front of every metric: the testcase.
    pub prefix: String,
    /// Lines to look for.
    pub lines: Vec<LineRule>,
    /// Metrics made of what the lines gave.
    pub metrics: Vec<MetricRule>,
    /// Whether a run that printed no figure has failed.
    pub figures_required: bool,
    /// The resource figure that is the headline where the program prints none
    /// (`time.elapsed_time`).
    pub headline_usage: Option<String>,
}

/// A kind of line and the figures in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRule {
    /// A regular expression. Each named group is a stream of numbers; with a group `key`, the
    /// group `value` belongs to the metric that `key` names, in the unit of the group `unit`.
    pub pattern: String,
    /// A regular expression that is looked for again and again in the lines that `pattern` matches,
    /// and whose groups count instead of that one's.
    #[serde(default)]
    pub each: Option<String>,
    /// Where to look.
    #[serde(default)]
    pub from: OutputStream,
    /// Regular expressions that must have matched earlier lines, one after the other; then the
    /// rule is looked for, from the next line on.
    #[serde(default)]
    pub after: Vec<String>,
    /// A regular expression whose line ends that, until `after` has matched once more.
    #[serde(default)]
    pub until: Option<String>,
}

/// One of a program's outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Standard output.
    #[default]
    Stdout,
    /// Standard error.
    Stderr,
}

/// A metric, what it means and how it is computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricRule {
    /// Its name behind the prefix.
    pub name: String,
    /// Its unit.
    #[serde(default)]
    pub unit: Unit,
    /// Which direction is good.
    #[serde(default)]
    pub better: Better,
    /// How prominent it is.
    #[serde(default)]
    pub role: Role,
    /// What it means, one sentence.
    #[serde(default)]
    pub about: String,
    /// How it is computed; `None` for a metric that a `key` names.
    pub derive: Option<Derive>,
}

/// How a metric is computed from streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Derive {
    /// Reduce a stream within each round, then reduce over rounds.
    Reduce {
        /// The stream.
        stream: String,
        /// Within a round.
        within: Reduce,
        /// Over the rounds that have the stream.
        across: Reduce,
        /// Factor for the result: unit conversion.
        scale: f64,
    },
    /// The sum of one quantity over the sum of another, times `scale`.
    Ratio {
        /// Numerator.
        of: Quantity,
        /// Denominator.
        to: Quantity,
        /// Factor.
        scale: f64,
    },
    /// The spread of a stream: with several rounds that of the rounds' sums, else that of the
    /// round's values; population standard deviation over the mean, in percent.
    Spread {
        /// The stream.
        stream: String,
    },
    /// Counts by value, over all rounds.
    Histogram {
        /// The stream of values: whole numbers.
        value: String,
        /// The stream of counts, one beside each value.
        count: String,
        /// Each power of two is divided into so many equal buckets, of which a value is any
        /// number inside; each whole number has a bucket of its own when absent.
        sub_buckets: Option<u64>,
        /// The stream of how many events there are, summed: those beyond the ones that are counted
        /// lie above them.
        #[serde(default)]
        total: Option<String>,
        /// The stream of exact smallest values.
        #[serde(default)]
        min: Option<String>,
        /// The stream of exact largest values.
        #[serde(default)]
        max: Option<String>,
    },
}

/// How many numbers become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduce {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The element at n/2 of the sorted values: the upper median.
    UpperMedian,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The last.
    Last,
    /// Population standard deviation over the mean, in percent.
    SpreadPercent,
}

/// Something that adds up over a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantity {
    /// The sum of a stream.
    Stream(String),
    /// User plus system CPU time, nanoseconds.
    CpuNs,
    /// The number of rounds.
    Rounds,
}
