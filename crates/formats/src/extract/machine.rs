//! Readings that do not come from the program's output: resource usage, monitors, overhead.

use super::{Draft, Sink};
use kdyno_model::{
    Better, BoxFacts, Column, ColumnKind, ExtractRules, Measurement, MetricName, Role, Round,
    SeriesSet, Unit, Value,
};
use kdyno_stats::series::{counter_rate, counter_total, window_mean};

/// Resource usage over all rounds, under the names that lkp-tests gives them.
pub(super) fn usage(rules: &ExtractRules, measurement: &Measurement, out: &mut Sink<'_>) {
    if measurement.rounds.is_empty() {
        return;
    }
    let alone = rules.headline_usage.is_some();
    for (name, unit, less_is_better, value) in usage_figures(&measurement.rounds) {
        let role = match &rules.headline_usage {
            Some(headline) if headline == name => Role::Headline,
            Some(_) => Role::Program,
            None => Role::Diagnostic,
        };
        // Where the program prints figures of its own, time is what it was given, not its merit.
        let better = if alone && less_is_better {
            Better::Lower
        } else {
            Better::Neither
        };
        let unit = Unit::new(unit);
        out.program(
            name,
            &Draft {
                unit: &unit,
                better,
                role,
            },
            Value::Scalar(value),
        );
    }
}

/// Name, unit, whether less is better, value.
type UsageFigure = (&'static str, &'static str, bool, f64);

fn usage_figures(rounds: &[Round]) -> Vec<UsageFigure> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts, bytes and nanoseconds far below 2^53"
    )]
    let sum = |of: fn(&Round) -> u64| rounds.iter().map(of).sum::<u64>() as f64;
    #[expect(clippy::cast_precision_loss, reason = "bytes far below 2^53")]
    let max_rss = rounds
        .iter()
        .map(|r| r.usage.max_rss_bytes)
        .max()
        .unwrap_or_default() as f64;
    let elapsed_ns = sum(|r| r.end_ns.saturating_sub(r.start_ns));
    let (user_ns, system_ns) = (sum(|r| r.usage.user_ns), sum(|r| r.usage.system_ns));
    let mut figures = vec![
        ("time.elapsed_time", "s", true, elapsed_ns / 1e9),
        ("time.user_time", "s", true, user_ns / 1e9),
        ("time.system_time", "s", true, system_ns / 1e9),
        (
            "time.maximum_resident_set_size",
            "kB",
            true,
            max_rss / 1024.0,
        ),
        (
            "time.minor_page_faults",
            "",
            false,
            sum(|r| r.usage.minor_faults),
        ),
        (
            "time.major_page_faults",
            "",
            false,
            sum(|r| r.usage.major_faults),
        ),
        (
            "time.voluntary_context_switches",
            "",
            false,
            sum(|r| r.usage.voluntary_switches),
        ),
        (
            "time.involuntary_context_switches",
            "",
            false,
            sum(|r| r.usage.involuntary_switches),
        ),
    ];
    if elapsed_ns > 0.0 {
        let busy = (user_ns + system_ns) / elapsed_ns * 100.0;
        figures.push(("time.percent_of_cpu_this_job_got%", "%", false, busy));
    }
    figures
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

/// How often the machine slowed itself down to keep cool while it was measured, where it counts
/// that.
pub(super) fn throttling(measurement: &Measurement, out: &mut Sink<'_>) {
    let count = |facts: &BoxFacts| -> Option<u64> {
        facts.entries.get("now.cpu.throttle_events")?.parse().ok()
    };
    let counts = count(&measurement.facts_before).zip(count(&measurement.facts_after));
    if let (Some((before, after)), Ok(metric)) =
        (counts, MetricName::new("thermal.throttle_events"))
    {
        #[expect(clippy::cast_precision_loss, reason = "events far below 2^53")]
        let events = after.saturating_sub(before) as f64;
        push(out, metric, &Unit::new(""), Some(events));
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
