//! Readings that do not come from the program's output: resource usage, monitors, overhead.

use super::{Draft, Sink};
use kdyno_model::{
    Better, Column, ColumnKind, ExtractRules, Measurement, MetricName, Role, SeriesSet, Unit, Value,
};
use kdyno_stats::series::{counter_rate, counter_total, window_mean};

/// Resource usage over all rounds, under the names that lkp-tests gives them.
pub(super) fn usage(rules: &ExtractRules, measurement: &Measurement, out: &mut Sink<'_>) {
    let rounds = &measurement.rounds;
    if rounds.is_empty() {
        return;
    }
    let sum = |of: fn(&kdyno_model::Usage) -> u64| -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
        let total = rounds.iter().map(|round| of(&round.usage)).sum::<u64>() as f64;
        total
    };
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds far below 2^53")]
    let elapsed_ns = rounds
        .iter()
        .map(|r| r.end_ns.saturating_sub(r.start_ns))
        .sum::<u64>() as f64;
    let cpu_ns = sum(|u| u.user_ns) + sum(|u| u.system_ns);
    #[expect(clippy::cast_precision_loss, reason = "bytes far below 2^53")]
    let max_rss = rounds
        .iter()
        .map(|round| round.usage.max_rss_bytes)
        .max()
        .unwrap_or_default() as f64;
    let alone = rules.headline_usage.is_some();
    let lower = if alone {
        Better::Lower
    } else {
        Better::Neither
    };
    let readings = [
        ("time.elapsed_time", "s", lower, Some(elapsed_ns / 1e9)),
        ("time.user_time", "s", lower, Some(sum(|u| u.user_ns) / 1e9)),
        (
            "time.system_time",
            "s",
            lower,
            Some(sum(|u| u.system_ns) / 1e9),
        ),
        (
            "time.percent_of_cpu_this_job_got%",
            "%",
            Better::Neither,
            (elapsed_ns > 0.0).then(|| cpu_ns / elapsed_ns * 100.0),
        ),
        (
            "time.maximum_resident_set_size",
            "kB",
            lower,
            Some(max_rss / 1024.0),
        ),
        (
            "time.minor_page_faults",
            "",
            Better::Neither,
            Some(sum(|u| u.minor_faults)),
        ),
        (
            "time.major_page_faults",
            "",
            Better::Neither,
            Some(sum(|u| u.major_faults)),
        ),
        (
            "time.voluntary_context_switches",
            "",
            Better::Neither,
            Some(sum(|u| u.voluntary_switches)),
        ),
        (
            "time.involuntary_context_switches",
            "",
            Better::Neither,
            Some(sum(|u| u.involuntary_switches)),
        ),
    ];
    for (name, unit, better, value) in readings {
        let role = match &rules.headline_usage {
            Some(headline) if headline == name => Role::Headline,
            Some(_) => Role::Program,
            None => Role::Diagnostic,
        };
        if let Some(value) = value {
            out.program(
                name,
                &Draft {
                    unit: &Unit::new(unit),
                    better,
                    role,
                },
                Value::Scalar(value),
            );
        }
    }
}

/// Gauges become means over the window, counters totals and rates.
///
/// The first sample is taken before the program starts and the last after it has ended: they
/// delimit what a counter counted, but they show a gauge of the idle machine. A window without a
/// sample inside gives no gauge.
pub(super) fn monitors(measurement: &Measurement, out: &mut Sink<'_>) {
    for set in &measurement.series {
        for column in &set.columns {
            match column.kind {
                ColumnKind::Gauge => {
                    let mean = inner(&set.t_ns).zip(inner(&column.values));
                    let mean = mean.and_then(|(t_ns, values)| window_mean(t_ns, values));
                    push(out, column.metric.clone(), &column.unit, mean);
                }
                ColumnKind::Counter => counter(set, column, out),
            }
        }
    }
}

fn inner<T>(samples: &[T]) -> Option<&[T]> {
    samples
        .get(1..samples.len().checked_sub(1)?)
        .filter(|inner| !inner.is_empty())
}

fn counter(set: &SeriesSet, column: &Column, out: &mut Sink<'_>) {
    push(
        out,
        column.metric.clone(),
        &column.unit,
        counter_total(&column.values),
    );
    if let Ok(name) = MetricName::new(format!("{}/s", column.metric)) {
        let unit = Unit(format!("{}/s", column.unit.as_str()));
        push(out, name, &unit, counter_rate(&set.t_ns, &column.values));
    }
}

fn push(out: &mut Sink<'_>, metric: MetricName, unit: &Unit, value: Option<f64>) {
    if let Some(value) = value {
        let draft = Draft {
            unit,
            better: Better::Neither,
            role: Role::Diagnostic,
        };
        out.push(metric, &draft, Value::Scalar(value));
    }
}

/// What watching cost inside the window.
pub(super) fn overhead(measurement: &Measurement, out: &mut Sink<'_>) {
    let overhead = measurement.overhead;
    if measurement.rounds.is_empty() {
        return;
    }
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds far below 2^53")]
    let runner_ms = overhead.runner_cpu_ns as f64 / 1e6;
    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds and counts far below 2^53"
    )]
    let (cpu_ms, wakeups, seconds) = (
        overhead.cpu_ns as f64 / 1e6,
        overhead.wakeups as f64,
        measurement.window.length_ns() as f64 / 1e9,
    );
    let rate = (seconds > 0.0).then(|| cpu_ms / seconds);
    let readings = [
        ("kdyno.overhead.cpu_ms", "ms", Some(cpu_ms)),
        ("kdyno.overhead.cpu_ms/s", "ms/s", rate),
        ("kdyno.overhead.runner_cpu_ms", "ms", Some(runner_ms)),
        ("kdyno.overhead.wakeups", "", Some(wakeups)),
    ];
    for (name, unit, value) in readings {
        if let Ok(metric) = MetricName::new(name) {
            push(out, metric, &Unit::new(unit), value);
        }
    }
}
