//! Streams to the metrics of a program.

use super::lines::Found;
use super::{Draft, Sink};
use kdyno_model::{
    Better, Bucket, Derive, ExtractRules, Histogram, Measurement, MetricRule, Quantity, Reduce,
    Role, Unit, Value,
};
use kdyno_stats::Summary;
use std::collections::BTreeMap;

/// How many undeclared keys of a command count as headline.
const HEADLINE_KEYS: usize = 5;

/// Metrics that the program names itself, `key: number`; a key that came again makes samples.
pub(super) fn keyed(rules: &ExtractRules, found: &Found, out: &mut Sink<'_>) {
    let declared = |key: &str| {
        rules
            .metrics
            .iter()
            .find(|rule| rule.derive.is_none() && rule.name == key)
    };
    let any_declared = rules.metrics.iter().any(|rule| rule.derive.is_none());
    for (position, keyed) in found.keys.iter().enumerate() {
        let printed_unit = Unit(keyed.unit.clone());
        let draft = match declared(&keyed.key) {
            Some(rule) => Draft {
                unit: if rule.unit.as_str().is_empty() {
                    &printed_unit
                } else {
                    &rule.unit
                },
                better: rule.better,
                role: rule.role,
            },
            None => Draft {
                unit: &printed_unit,
                better: Better::Neither,
                role: if any_declared || position >= HEADLINE_KEYS {
                    Role::Program
                } else {
                    Role::Headline
                },
            },
        };
        let value = match keyed.values.as_slice() {
            [one] => Value::Scalar(*one),
            many => Value::Samples(many.to_vec()),
        };
        out.program(&keyed.key, &draft, value);
    }
}

/// Metrics that the rules compute.
pub(super) fn derived(
    rules: &ExtractRules,
    found: &Found,
    measurement: &Measurement,
    out: &mut Sink<'_>,
) {
    for rule in &rules.metrics {
        let value = rule
            .derive
            .as_ref()
            .and_then(|derive| compute(derive, found, measurement));
        if let Some(value) = value {
            out.program(&rule.name, &draft(rule), value);
        }
    }
}

fn draft(rule: &MetricRule) -> Draft<'_> {
    Draft {
        unit: &rule.unit,
        better: rule.better,
        role: rule.role,
    }
}

fn compute(derive: &Derive, found: &Found, measurement: &Measurement) -> Option<Value> {
    match derive {
        Derive::Histogram {
            value,
            count,
            sub_buckets,
            total,
            min,
            max,
        } => histogram(found, value, count, *sub_buckets)
            .and_then(|histogram| {
                completed(found, histogram, [total, min, max].map(Option::as_deref))
            })
            .map(Value::Histogram),
        one => number(one, found, measurement).map(Value::Scalar),
    }
}

/// Counts by value; `None` where no line gave any, or values and counts do not go together.
fn histogram(
    found: &Found,
    value: &str,
    count: &str,
    sub_buckets: Option<u64>,
) -> Option<Histogram> {
    let (values, counts) = (found.streams.get(value)?, found.streams.get(count)?);
    let mut buckets: BTreeMap<u64, Bucket> = BTreeMap::new();
    for (values, counts) in values.iter().zip(counts) {
        if values.len() != counts.len() {
            return None;
        }
        for (value, count) in values.iter().zip(counts) {
            let bucket = bucket_of(whole(*value)?, sub_buckets);
            let entry = buckets.entry(whole(bucket.low)?).or_insert(bucket);
            entry.count = entry.count.checked_add(whole(*count)?)?;
        }
    }
    (!buckets.is_empty()).then(|| Histogram {
        buckets: buckets.into_values().collect(),
        ..Histogram::default()
    })
}

/// The histogram with what other streams tell of it: how many events there are, the smallest and the
/// largest. `None` where it has more events than there are.
fn completed(
    found: &Found,
    histogram: Histogram,
    [total, min, max]: [Option<&str>; 3],
) -> Option<Histogram> {
    let numbers = |stream: &str| {
        found
            .streams
            .get(stream)
            .map(|rounds| rounds.iter().flatten())
    };
    let extreme = |stream: Option<&str>, pick: fn(f64, f64) -> f64| {
        stream.and_then(|stream| numbers(stream)?.copied().reduce(pick))
    };
    let counted: u64 = histogram.buckets.iter().map(|bucket| bucket.count).sum();
    let overflow = match total {
        None => 0,
        Some(stream) => {
            let mut parts = numbers(stream)?;
            let all = parts.try_fold(0_u64, |sum, part| sum.checked_add(whole(*part)?))?;
            all.checked_sub(counted)?
        }
    };
    Some(Histogram {
        overflow,
        min: extreme(min, f64::min),
        max: extreme(max, f64::max),
        ..histogram
    })
}

/// A whole number that floats hold exactly.
fn whole(number: f64) -> Option<u64> {
    let exact = (0.0..9_007_199_254_740_992.0).contains(&number) && number.fract() == 0.0;
    exact.then_some(number as u64)
}

/// The empty bucket that holds a value: [value, value + 1), or of a log-linear grid whose buckets
/// have width 1 up to twice `sub_buckets`.
fn bucket_of(value: u64, sub_buckets: Option<u64>) -> Bucket {
    let shift = sub_buckets.map_or(0, |parts| {
        let (bits, of_parts) = (value.max(1).ilog2(), parts.max(1).ilog2());
        bits.saturating_sub(of_parts)
    });
    let low = value >> shift << shift;
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    Bucket {
        low: low as f64,
        high: (low + (1 << shift)) as f64,
        count: 0,
    }
}

fn number(derive: &Derive, found: &Found, measurement: &Measurement) -> Option<f64> {
    match derive {
        Derive::Histogram { .. } => None,
        Derive::Reduce {
            stream,
            within,
            across,
            scale,
        } => {
            let rounds = found.streams.get(stream)?;
            let reduced: Vec<f64> = rounds
                .iter()
                .filter_map(|round| reduce(*within, round))
                .collect();
            Some(reduce(*across, &reduced)? * scale)
        }
        Derive::Ratio { of, to, scale } => {
            let denominator = quantity(to, found, measurement).filter(|total| *total != 0.0)?;
            Some(quantity(of, found, measurement)? / denominator * scale)
        }
        Derive::Spread { stream } => {
            let rounds: Vec<&Vec<f64>> = found
                .streams
                .get(stream)?
                .iter()
                .filter(|r| !r.is_empty())
                .collect();
            match rounds.as_slice() {
                [only] => reduce(Reduce::SpreadPercent, only),
                many => {
                    let sums: Vec<f64> = many
                        .iter()
                        .filter_map(|round| reduce(Reduce::Sum, round))
                        .collect();
                    reduce(Reduce::SpreadPercent, &sums)
                }
            }
        }
    }
}

fn quantity(quantity: &Quantity, found: &Found, measurement: &Measurement) -> Option<f64> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds and counts far below 2^53"
    )]
    match quantity {
        Quantity::Stream(stream) => {
            let all: Vec<f64> = found
                .streams
                .get(stream)?
                .iter()
                .flatten()
                .copied()
                .collect();
            reduce(Reduce::Sum, &all)
        }
        Quantity::CpuNs => {
            let usage = measurement.rounds.iter().map(|round| round.usage);
            Some(usage.map(|u| u.user_ns + u.system_ns).sum::<u64>() as f64)
        }
        Quantity::Rounds => Some(measurement.rounds.len() as f64),
    }
}

/// Many numbers to one; `None` for none, and for the spread of numbers whose mean is 0.
fn reduce(how: Reduce, values: &[f64]) -> Option<f64> {
    let summary = Summary::of(values)?;
    match how {
        Reduce::Sum => Some(values.iter().sum()),
        Reduce::Mean => Some(summary.mean),
        Reduce::UpperMedian => Some(summary.upper_median),
        Reduce::Min => Some(summary.min),
        Reduce::Max => Some(summary.max),
        Reduce::Last => values.last().copied(),
        Reduce::SpreadPercent => summary.relative_spread(),
    }
}
