//! `kdyno show`: everything about one run.

use crate::cli::ShowArgs;
use crate::context::{Context, Status, UsageError};
use crate::index;
use crate::list::time_text;
use anyhow::Context as _;
use kdyno_analyze::number::general;
use kdyno_model::{Command, Measurement, Reading, Role, RunRecord, Value};
use kdyno_rundir::RunReader;
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
        let mut text = summary(&record, &reader.measurement()?, args.all);
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
                let count: u64 = histogram.buckets.iter().map(|bucket| bucket.count).sum();
                format!("{count} in {} buckets", histogram.buckets.len())
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
