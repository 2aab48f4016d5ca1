//! A run record flattened to what the index keeps and tables are built from.
//!
//! One number per metric and run: the replicate is the run, so repeated observations inside it
//! are averaged first; a histogram gives one number per quantile. What numbers do not exhaust stays
//! beside them in `rich`.

use crate::distribution;
use kdyno_model::{MetricName, Reading, Role, RunRecord, RunRow, Scalar, Value};
use kdyno_stats::summary;
use std::collections::HashSet;

/// The row of a record: each scalar reading as it is, samples and summaries by their mean,
/// histograms by their quantiles; series give no scalar. Of two readings of one metric the first
/// counts.
#[must_use]
pub fn row_of(record: &RunRecord) -> RunRow {
    let trial = &record.trial;
    RunRow {
        run_id: record.run_id,
        origin: record.origin,
        plan: trial.plan,
        index: trial.index,
        block: trial.block,
        order: trial.order,
        case: trial.case.clone(),
        variant: trial.variant.clone(),
        testbox: trial.testbox.clone(),
        iteration: trial.iteration,
        warm_up: trial.warm_up,
        build_id: trial.build_id.clone(),
        boot_id: trial.boot_id.clone(),
        session: trial.session,
        kernel_release: record.kernel_release.clone(),
        start_unix_ns: record.start_unix_ns,
        window_ns: record.window_ns,
        clock: record.clock,
        instrument: trial.work.instrument.clone(),
        outcome: record.outcome.clone(),
        scalars: scalars_of(&record.readings),
        rich: record
            .readings
            .iter()
            .filter(|r| is_rich(r))
            .cloned()
            .collect(),
    }
}

/// One number per metric, where one number stands for it, and one per quantile of a histogram; of
/// two readings of one metric the first counts.
#[must_use]
pub fn scalars_of(readings: &[Reading]) -> Vec<Scalar> {
    let mut known: HashSet<MetricName> = HashSet::new();
    let mut scalars = Vec::new();
    for reading in readings {
        for (metric, role, value) in numbers(reading) {
            if known.insert(metric.clone()) {
                scalars.push(Scalar {
                    metric,
                    unit: reading.unit.clone(),
                    better: reading.better,
                    role,
                    value,
                });
            }
        }
    }
    scalars
}

/// The finite numbers that stand for a reading.
fn numbers(reading: &Reading) -> Vec<(MetricName, Role, f64)> {
    let value = match &reading.value {
        Value::Scalar(value) => Some(*value),
        Value::Samples(values) => summary::mean(values),
        Value::Summary { mean, .. } => Some(*mean),
        Value::Series { .. } => None,
        Value::Histogram(histogram) => {
            return distribution::quantiles(histogram)
                .into_iter()
                .filter_map(|(name, value)| {
                    // A name that gets too long has no quantiles.
                    let metric = MetricName::new(format!("{}.{name}", reading.metric)).ok()?;
                    Some((metric, role_of_quantile(name, reading.role), value))
                })
                .collect();
        }
    };
    let finite = value.filter(|value| value.is_finite());
    let one = |value| (reading.metric.clone(), reading.role, value);
    finite.map(one).into_iter().collect()
}

/// Of a distribution that a benchmark is run for, the middle and the tail are headlines; each more
/// would cost all others power.
fn role_of_quantile(name: &str, role: Role) -> Role {
    match (role, name) {
        (Role::Headline, "p50" | "p99") => Role::Headline,
        (Role::Headline, _) => Role::Program,
        (other, _) => other,
    }
}

fn is_rich(reading: &Reading) -> bool {
    matches!(
        reading.value,
        Value::Samples(_) | Value::Histogram(_) | Value::Summary { .. }
    )
}
