//! `kdyno normalize`: figures on a scale between two variants, per machine.

use crate::cli::NormalizeArgs;
use crate::compare::{has_no_row, known_names, recheck_commands, selected};
use crate::context::{Context, Status, UsageError};
use kdyno_analyze::normalize::normalize;
use kdyno_analyze::{CompareOptions, Comparison, Diagnostics, MetricGlobs, compare, render};
use kdyno_model::VariantName;

/// Prints the rows and what the machines confirm. Cannot tell where no machine has a scale.
pub fn command(args: &NormalizeArgs, context: &mut Context) -> anyhow::Result<Status> {
    let selected = selected(&args.select, context)?;
    let metrics = match args.metric.as_slice() {
        [] => selected.metrics,
        globs => Some(MetricGlobs::new(globs)?),
    };
    let columns = selected.columns.into_iter().map(|(name, _)| name);
    let options = CompareOptions {
        variants: columns.collect(),
        metrics,
        diagnostics: Diagnostics::None,
        ..CompareOptions::default()
    };
    let comparison = compare(&selected.rows, &options);
    if !args.metric.is_empty() && has_no_row(&comparison) {
        let hint = "see `kdyno show --all` for the names";
        return Err(UsageError::new("no run has such a metric", hint).into());
    }
    let zero = column(&comparison, "--zero", &args.zero)?;
    let one = column(&comparison, "--one", &args.one)?;
    if zero == one {
        let hint = "name two variants, as --zero idle --one loaded";
        return Err(UsageError::new("both ends of the scale are the same variant", hint).into());
    }
    let found = normalize(&comparison, &zero, &one);
    let commands = recheck_commands(&selected.plans);
    let text = render::normalize::render(&found, zero.as_str(), one.as_str(), &commands);
    context.out.write_all(text.as_bytes())?;
    context.out.flush()?;
    let mut rows = found.iter().flat_map(|normalized| &normalized.rows);
    if rows.any(|row| row.scaled.is_ok()) {
        return Ok(Status::Done);
    }
    if found.is_empty() {
        context.note("no variant beside the two ends has figures");
    }
    Ok(Status::CannotTell)
}

fn column(comparison: &Comparison, option: &str, name: &str) -> Result<VariantName, UsageError> {
    let names = || comparison.columns.iter().map(|column| &column.name);
    let found = names().find(|known| known.as_str() == name);
    found.cloned().ok_or_else(|| {
        UsageError::new(
            format!("{option}: no variant is called `{name}`"),
            known_names(names()),
        )
    })
}
