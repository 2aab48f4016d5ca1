//! A run record flattened to what the index keeps and tables are built from.
//!
//! One number per metric and run: the replicate is the run, so repeated observations inside it
//! are averaged first. What one number does not exhaust stays beside it in `rich`.

use kdyno_model::{MetricName, Reading, RunRecord, RunRow, Scalar, Value};
use kdyno_stats::summary;
use std::collections::HashSet;

/// The row of a record: each scalar reading as it is, samples and summaries by their mean;
/// series and histograms give no scalar. Of two readings of one metric the first counts.
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

/// One number per metric, where one number stands for it; of two readings of one metric the first
/// counts.
#[must_use]
pub fn scalars_of(readings: &[Reading]) -> Vec<Scalar> {
    let mut known: HashSet<&MetricName> = HashSet::new();
    let mut scalars = Vec::new();
    for reading in readings {
        let Some(value) = one_number(&reading.value) else {
            continue;
        };
        if !known.insert(&reading.metric) {
            continue;
        }
        scalars.push(Scalar {
            metric: reading.metric.clone(),
            unit: reading.unit.clone(),
            better: reading.better,
            role: reading.role,
            value,
        });
    }
    scalars
}

/// The value as one finite number, where one number stands for it.
fn one_number(value: &Value) -> Option<f64> {
    match value {
        Value::Scalar(v) => Some(*v).filter(|v| v.is_finite()),
        Value::Samples(values) => summary::mean(values),
        Value::Summary { mean, .. } => Some(*mean).filter(|v| v.is_finite()),
        Value::Series { .. } | Value::Histogram(_) => None,
    }
}

fn is_rich(reading: &Reading) -> bool {
    matches!(
        reading.value,
        Value::Samples(_) | Value::Histogram(_) | Value::Summary { .. }
    )
}
