//! `kdyno compare`: from a selection to a table.

use crate::cli::{CompareArgs, Format};
use crate::context::{Context, Status};
use crate::index;
use kdyno_analyze::render::{self, lkp::LkpOptions};
use kdyno_analyze::{CompareOptions, Diagnostics, MetricGlobs, Selection, compare};
use kdyno_job::plan::Plan;
use kdyno_model::{PlanId, RunRow, VariantName};
use kdyno_rundir::Home;
use kdyno_store::RunFilter;
use std::collections::BTreeSet;

/// Prints the table.
pub fn command(args: &CompareArgs, context: &mut Context) -> anyhow::Result<Status> {
    let (rows, selection) = selected(&args.select, context)?;
    let metrics = match args.metric.as_slice() {
        [] => selection.metrics(),
        globs => Some(MetricGlobs::new(globs)?),
    };
    let rows: Vec<&RunRow> = selection.rows(&rows);
    let diagnostics = if args.all {
        Diagnostics::All
    } else {
        Diagnostics::Moved
    };
    let text = table(&rows, args.format, metrics, diagnostics, &context.home()?);
    context.out.write_all(text.as_bytes())?;
    context.out.flush()?;
    let compared = rows.iter().any(|row| !row.warm_up && row.outcome.is_done());
    Ok(if compared {
        Status::Done
    } else {
        Status::CannotTell
    })
}

/// The rows that a selection can choose from, and the selection.
pub fn selected(
    words: &[String],
    context: &mut Context,
) -> anyhow::Result<(Vec<RunRow>, Selection)> {
    let mut index = index::open(context)?;
    let filter = match (words, index.plan_newest()?) {
        // Without a selection only the newest plan is read, however many there are.
        ([], Some(newest)) => RunFilter {
            plans: vec![newest],
            ..RunFilter::default()
        },
        _ => RunFilter::default(),
    };
    let rows = index.runs_select(&filter)?;
    let selection = Selection::parse(words, &rows)?;
    Ok((rows, selection))
}

/// The table of these runs. Columns come in the order of their plans.
pub fn table(
    rows: &[&RunRow],
    format: Format,
    metrics: Option<MetricGlobs>,
    diagnostics: Diagnostics,
    home: &Home,
) -> String {
    let mut options = CompareOptions {
        metrics,
        diagnostics,
        ..CompareOptions::default()
    };
    for (name, description) in columns_of(rows, home) {
        if !description.is_empty() {
            options.descriptions.insert(name.clone(), description);
        }
        options.variants.push(name);
    }
    let comparison = compare(rows.iter().copied(), &options);
    match format {
        Format::Text => render::text::render(&comparison),
        Format::Lkp => render::lkp::render(&comparison, &LkpOptions::default()),
        Format::LkpCases => render::lkp_cases::render(&comparison, &LkpOptions::default()),
        Format::Csv => render::csv::render(&comparison),
        Format::Json => render::json::render(&comparison),
    }
}

/// The variants of these runs with what they change, in the order of their plans.
pub fn columns_of(rows: &[&RunRow], home: &Home) -> Vec<(VariantName, String)> {
    let plans: BTreeSet<PlanId> = rows.iter().map(|row| row.plan).collect();
    let mut columns: Vec<(VariantName, String)> = Vec::new();
    for plan in plans.iter().filter_map(|id| read_plan(home, *id)) {
        for (name, description) in plan.variants.into_iter().zip(plan.descriptions) {
            let used = rows.iter().any(|row| row.variant == name);
            if used && columns.iter().all(|(known, _)| *known != name) {
                columns.push((name, description));
            }
        }
    }
    columns
}

/// A plan's own text; a plan that cannot be read only costs the order of its columns.
fn read_plan(home: &Home, id: PlanId) -> Option<Plan> {
    let bytes = home.plan(id).ok()?.plan_bytes().ok()?;
    serde_json::from_slice(&bytes).ok()
}
