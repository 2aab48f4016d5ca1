//! `kdyno show`: everything about one run.

use crate::cli::ShowArgs;
use crate::context::{Context, Status, UsageError};
use crate::index;
use crate::list::time_text;
use anyhow::Context as _;
use kdyno_analyze::distribution::buckets_of;
use kdyno_analyze::number::general;
use kdyno_formats::threads::{Thread, worst_first};
use kdyno_model::{ColumnKind, Command, Measurement, Reading, Role, RunRecord, SeriesSet, Value};
use kdyno_rundir::RunReader;
use kdyno_stats::series::{Burst, burst};
use kdyno_store::{RunFilter, Scalars};
use std::fmt::Write;
use std::path::PathBuf;

/// Prints the run.
pub fn command(args: &ShowArgs, context: &mut Context) -> anyhow::Result<Status> {
    let path = find(args.run.as_deref(), context)?;
    let reader = RunReader::open(&path)?;
    let bytes = if args.stdout {
        reader.stdout()?.unwrap_or_default()
    } else if args.stderr {
        reader.stderr()?.unwrap_or_default()
    } else if args.json {
        let mut text = serde_json::to_vec_pretty(&reader.record()?)?;
        text.push(b'\n');
        text
    } else if args.facts {
        facts(&reader.measurement()?).into_bytes()
    } else {
        let record = reader.record()?;
        let measurement = reader.measurement()?;
        let mut text = summary(&record, &measurement, args.all);
        if record.trial.case.testcase == "cyclictest" {
            let output = reader.stdout()?.unwrap_or_default();
            text.push_str(&threads(&output, &measurement, &reader.series()?));
        }
        let _ = writeln!(text, "\nkept in {}", path.display());
        text.into_bytes()
    };
    context.out.write_all(&bytes)?;
    context.out.flush()?;
    Ok(Status::Done)
}

/// The run directory that the user means.
fn find(wanted: Option<&str>, context: &mut Context) -> anyhow::Result<PathBuf> {
    let row = index::ask(context, |index| match wanted {
        Some(id) => Ok(index.run_by_id_suffix(id)?),
        None => {
            let newest = RunFilter {
                limit: Some(1),
                newest_first: true,
                scalars: Scalars::None,
                ..RunFilter::default()
            };
            Ok(index.runs_select(&newest)?.into_iter().next())
        }
    })?;
    let row = row.ok_or_else(|| match wanted {
        Some(id) => UsageError::new(
            format!("no run `{id}`"),
            "`kdyno list` shows the ids of all runs",
        ),
        None => UsageError::new("no run yet", "begin with `kdyno run jobs/quickstart.yaml`"),
    })?;
    let plan = context.home()?.plan(row.plan)?;
    let run = plan
        .runs()?
        .entries
        .into_iter()
        .find(|run| run.id == row.run_id);
    let run = run.with_context(|| {
        format!(
            "the directory of run {} is gone; `kdyno index rebuild` forgets it",
            row.run_id
        )
    })?;
    Ok(run.path)
}

fn summary(record: &RunRecord, measurement: &Measurement, all: bool) -> String {
    let trial = &record.trial;
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<12}{value}");
    };
    line("case", trial.case.name_on(&trial.testbox));
    line("variant", trial.variant.to_string());
    let warm_up = if trial.warm_up {
        ", warm-up: never compared"
    } else {
        ""
    };
    line("outcome", format!("{}{warm_up}", record.outcome));
    line(
        "run",
        format!(
            "{} (run {} of its variant, block {}, position {})",
            record.run_id,
            trial.iteration + 1,
            trial.block,
            trial.order
        ),
    );
    line("plan", trial.plan.to_string());
    line("start", time_text(record.start_unix_ns));
    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds shown to a millisecond"
    )]
    line(
        "window",
        format!(
            "{:.3} s, {} {}",
            record.window_ns as f64 / 1e9,
            measurement.rounds.len(),
            if measurement.rounds.len() == 1 {
                "round"
            } else {
                "rounds"
            }
        ),
    );
    line("kernel", record.kernel_release.clone());
    line(
        "boot",
        trial
            .boot_id
            .as_ref()
            .map_or_else(|| "unknown".to_owned(), ToString::to_string),
    );
    line("command", command_text(&trial.work.command));
    line("instrument", trial.work.instrument.clone());
    for (name, value) in &trial.work.environment {
        line("environment", format!("{name}={value}"));
    }
    if let Some(cpus) = &trial.work.affinity {
        line("affinity", cpus.clone());
    }
    for setting in &trial.work.settings {
        line("setting", format!("{} = {}", setting.key, setting.value));
    }
    for note in &record.notes {
        line("note", note.clone());
    }
    for message in &measurement.kernel_log {
        line("kernel log", message.clone());
    }
    out.push('\n');
    readings(&record.readings, all, &mut out);
    out
}

/// A command as one would type it.
pub fn command_text(command: &Command) -> String {
    let quoted = |words: &[String]| {
        let words = words.iter().map(|word| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,%+@".contains(c);
            if !word.is_empty() && word.chars().all(plain) {
                word.clone()
            } else {
                format!("'{}'", word.replace('\'', r"'\''"))
            }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    match command {
        Command::Shell(line) => format!("/bin/sh -c {}", quoted(std::slice::from_ref(line))),
        Command::Argv(words) => quoted(words),
        Command::Workload(words) => format!("kdyno workload {}", quoted(words)),
    }
}

fn readings(readings: &[Reading], all: bool, out: &mut String) {
    let shown = |reading: &&Reading| {
        all || reading.role != Role::Diagnostic || reading.metric.as_str().contains(".time.")
    };
    for reading in readings.iter().filter(shown) {
        let value = match &reading.value {
            Value::Scalar(value) => general(*value, 8),
            Value::Samples(values) => {
                let texts: Vec<String> = values.iter().map(|value| general(*value, 8)).collect();
                texts.join(" ")
            }
            Value::Series { values, .. } => format!("series of {}", values.len()),
            Value::Histogram(histogram) => {
                let count = buckets_of(histogram).count();
                format!("{count} events")
            }
            Value::Summary { n, mean, .. } => format!("mean {} of {n}", general(*mean, 8)),
        };
        let head = if reading.role == Role::Headline {
            "*"
        } else {
            " "
        };
        let _ = writeln!(
            out,
            "{head} {value:>14} {:<8} {}",
            reading.unit.as_str(),
            reading.metric
        );
    }
    let hidden = readings.iter().filter(|reading| !shown(reading)).count();
    if hidden > 0 {
        let _ = writeln!(out, "  {hidden} readings of monitors not shown: --all");
    }
}

/// The measuring threads of cyclictest, the one that woke latest first, and what monitors saw then.
fn threads(output: &[u8], measurement: &Measurement, series: &[SeriesSet]) -> String {
    let mut out = String::new();
    for (number, round) in measurement.rounds.iter().enumerate() {
        let end = |byte: u64| {
            usize::try_from(byte)
                .unwrap_or(usize::MAX)
                .min(output.len())
        };
        let own = output.get(end(round.stdout_from)..end(round.stdout_to));
        let threads = worst_first(&String::from_utf8_lossy(own.unwrap_or_default()));
        let Some(worst) = threads.first() else {
            continue;
        };
        let of_round = match measurement.rounds.len() {
            1 => String::new(),
            rounds => format!(", round {} of {rounds}", number + 1),
        };
        let _ = writeln!(out, "\nthreads, the worst first{of_round}");
        // Within the window, where both clocks are known.
        let at_ns = |thread: &Thread| {
            let start = measurement.window.start_monotonic_ns?;
            thread.max_at_us?.checked_mul(1000)?.checked_sub(start)
        };
        for thread in &threads {
            #[expect(clippy::cast_precision_loss, reason = "shown to a millisecond")]
            let when = at_ns(thread).map_or_else(
                || "time not recorded".to_owned(),
                |at| format!("at {:.3} s", at as f64 / 1e9),
            );
            let _ = writeln!(
                out,
                "  thread {:<3} max {:>6} us {when:<18} mean {:>4} min {:>4} us, {} wake-ups",
                thread.number, thread.max_us, thread.mean_us, thread.min_us, thread.wakeups
            );
        }
        if let Some(at) = at_ns(worst) {
            out.push_str(&what_ran(series, at));
        }
    }
    out
}

/// The running totals that grew much faster around a moment than usually.
fn what_ran(series: &[SeriesSet], at_ns: u64) -> String {
    const TIMES: f64 = 3.0;
    const MOST: usize = 5;
    let mut bursts: Vec<(&str, Burst)> = series
        .iter()
        .flat_map(|set| set.columns.iter().map(move |column| (set, column)))
        .filter(|(_, column)| column.kind == ColumnKind::Counter)
        .filter_map(|(set, column)| {
            let burst = burst(&set.t_ns, &column.values, at_ns)?;
            Some((column.metric.as_str(), burst))
        })
        .filter(|(_, burst)| burst.rate >= TIMES * burst.usual.max(1.0))
        .collect();
    bursts.sort_by(|a, b| {
        let ratio = |burst: &Burst| burst.rate / burst.usual.max(1.0);
        ratio(&b.1).total_cmp(&ratio(&a.1))
    });
    if bursts.is_empty() {
        let known = "no monitor saw more than usual around the worst wake-up";
        return format!("  {known} (they look once a second, at totals)\n");
    }
    let mut out = String::from("  what monitors saw around the worst wake-up, per second\n");
    for (name, burst) in bursts.into_iter().take(MOST) {
        let (rate, usual) = (general(burst.rate, 4), general(burst.usual, 4));
        let _ = writeln!(out, "    {name}: {rate}, usually {usual}");
    }
    out
}

fn facts(measurement: &Measurement) -> String {
    let (before, after) = (&measurement.facts_before, &measurement.facts_after);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "testbox = {}\nkernel.release = {}",
        before.testbox, before.kernel_release
    );
    let _ = writeln!(
        out,
        "cpus = {}\nmemory_bytes = {}",
        before.cpus, before.memory_bytes
    );
    for (name, value) in &before.entries {
        let _ = writeln!(out, "{name} = {value}");
        if let Some(later) = after.entries.get(name).filter(|later| *later != value) {
            let _ = writeln!(out, "  after the run: {later}");
        }
    }
    out
}
