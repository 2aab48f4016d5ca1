//! `kdyno stat`: ministat's rows, of files or of runs.

use crate::cli::StatArgs;
use crate::compare;
use crate::context::{Context, Status, UsageError};
use anyhow::Context as _;
use kdyno_analyze::MetricGlobs;
use kdyno_analyze::render::ministat::stat;
use kdyno_model::{MetricName, Role, RunRow, VariantName};
use std::collections::BTreeMap;
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

fn of_runs(args: &StatArgs, context: &mut Context) -> anyhow::Result<String> {
    let (rows, selection) = compare::selected(&args.what, context)?;
    let globs = match args.metric.as_slice() {
        [] => selection.metrics(),
        globs => Some(MetricGlobs::new(globs)?),
    };
    let rows = selection.rows(&rows);
    let columns: Vec<VariantName> = compare::columns_of(&rows, &context.home()?)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let mut out = String::new();
    for ((case, metric), sets) in by_case_and_metric(&rows, &columns, globs.as_ref()) {
        if !out.is_empty() {
            out.push('\n');
        }
        let named: Vec<(&str, &[f64])> = sets
            .iter()
            .map(|(variant, values)| (variant.as_str(), values.as_slice()))
            .collect();
        out.push_str(&format!("{case} {metric}\n{}", stat(&named)?));
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

type Sets = Vec<(VariantName, Vec<f64>)>;

fn by_case_and_metric(
    rows: &[&RunRow],
    columns: &[VariantName],
    globs: Option<&MetricGlobs>,
) -> BTreeMap<(String, MetricName), Sets> {
    let mut found: BTreeMap<(String, MetricName), Sets> = BTreeMap::new();
    for row in rows
        .iter()
        .filter(|row| row.outcome.is_done() && !row.warm_up)
    {
        for scalar in &row.scalars {
            if !globs.map_or(scalar.role == Role::Headline, |globs| {
                globs.matches(&scalar.metric)
            }) {
                continue;
            }
            let key = (row.case.name_on(&row.testbox), scalar.metric.clone());
            let sets = found.entry(key).or_default();
            match sets.iter_mut().find(|(variant, _)| *variant == row.variant) {
                Some((_, values)) => values.push(scalar.value),
                None => sets.push((row.variant.clone(), vec![scalar.value])),
            }
        }
    }
    for sets in found.values_mut() {
        sets.sort_by_key(|(variant, _)| columns.iter().position(|column| column == variant));
    }
    found
}
