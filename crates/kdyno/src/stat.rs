//! `kdyno stat`: ministat's rows, of files or of runs.

use crate::cli::StatArgs;
use crate::compare;
use crate::context::{Context, Status, UsageError};
use anyhow::Context as _;
use kdyno_analyze::render::ministat::stat;
use kdyno_analyze::{CompareOptions, Diagnostics, MetricGlobs};
use kdyno_model::Role;
use std::io::Read;
use std::path::Path;

/// Prints the rows.
pub fn command(args: &StatArgs, context: &mut Context) -> anyhow::Result<Status> {
    let is_file = |word: &String| word == "-" || Path::new(word).is_file();
    let text = if !args.what.is_empty() && args.what.iter().all(is_file) {
        of_files(&args.what)?
    } else {
        of_runs(args, context)?
    };
    context.out.write_all(text.as_bytes())?;
    context.out.flush()?;
    Ok(Status::Done)
}

fn of_files(files: &[String]) -> anyhow::Result<String> {
    let sets = files
        .iter()
        .map(|file| numbers_in(file))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let named: Vec<(&str, &[f64])> = files
        .iter()
        .zip(&sets)
        .map(|(file, set)| (file.as_str(), set.as_slice()))
        .collect();
    Ok(stat(&named)?)
}

/// The first word of each line; empty lines and comments are passed over.
fn numbers_in(file: &str) -> anyhow::Result<Vec<f64>> {
    const MOST_BYTES: u64 = 1 << 30;
    let mut text = String::new();
    let read = if file == "-" {
        std::io::stdin().take(MOST_BYTES).read_to_string(&mut text)
    } else {
        std::fs::File::open(file).and_then(|f| f.take(MOST_BYTES).read_to_string(&mut text))
    };
    read.with_context(|| file.to_owned())?;
    let mut numbers = Vec::new();
    for (place, line) in text.lines().enumerate() {
        let Some(word) = line
            .split_whitespace()
            .next()
            .filter(|word| !word.starts_with('#'))
        else {
            continue;
        };
        let number = word.parse::<f64>().ok().filter(|number| number.is_finite());
        numbers.push(number.ok_or_else(|| {
            UsageError::new(
                format!("{file}:{}: `{word}` is no finite number", place + 1),
                "one number per line; lines that begin with # are passed over",
            )
        })?);
    }
    Ok(numbers)
}

/// Rows per case and metric, of the same cells that `compare` shows: what must not be compared is
/// not put together here either.
fn of_runs(args: &StatArgs, context: &mut Context) -> anyhow::Result<String> {
    let selected = compare::selected(&args.what, context)?;
    let metrics = match args.metric.as_slice() {
        [] => selected.metrics,
        globs => Some(MetricGlobs::new(globs)?),
    };
    let only_headline = metrics.is_none();
    let options = CompareOptions {
        variants: selected.columns.into_iter().map(|(name, _)| name).collect(),
        metrics,
        diagnostics: Diagnostics::All,
        ..CompareOptions::default()
    };
    let comparison = kdyno_analyze::compare(&selected.rows, &options);
    let mut out = String::new();
    for table in &comparison.tables {
        for row in table
            .rows()
            .filter(|row| !only_headline || row.role == Role::Headline)
        {
            let cells = comparison.columns.iter().zip(&row.cells);
            let sets: Vec<(&str, Vec<f64>)> = cells
                .filter_map(|(column, cell)| Some((column.name.as_str(), cell.as_ref()?.values())))
                .collect();
            let named: Vec<(&str, &[f64])> = sets
                .iter()
                .map(|(name, values)| (*name, values.as_slice()))
                .collect();
            let gap = if out.is_empty() { "" } else { "\n" };
            out.push_str(&format!(
                "{gap}{} {}\n{}",
                table.name(),
                row.metric,
                stat(&named)?
            ));
            out.extend(row.notes.iter().map(|note| format!("note: {note}\n")));
        }
    }
    if out.is_empty() {
        let error = UsageError::new(
            "no run has such a metric",
            "see `kdyno show --all` for the names",
        );
        return Err(error.into());
    }
    Ok(out)
}
