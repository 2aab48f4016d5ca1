//! `kdyno compare`: from a selection to a table.

use crate::cli::{CompareArgs, Format};
use crate::context::{Context, Status, UsageError};
use crate::index;
use kdyno_analyze::render::{self, lkp::LkpOptions};
use kdyno_analyze::select::set_apart;
use kdyno_analyze::{CompareOptions, Comparison, Diagnostics, MetricGlobs, Selection, compare};
use kdyno_job::plan::Plan;
use kdyno_model::{PlanId, RunId, RunRow, VariantName};
use kdyno_rundir::Home;
use kdyno_store::{Index, RunFilter, Scalars};
use std::collections::HashSet;

/// Prints the table.
pub fn command(args: &CompareArgs, context: &mut Context) -> anyhow::Result<Status> {
    let selected = selected(&args.select, context)?;
    let metrics = match args.metric.as_slice() {
        [] => selected.metrics,
        globs => Some(MetricGlobs::new(globs)?),
    };
    // A program that reads the table filters for itself.
    let for_programs = matches!(args.format, Format::Csv | Format::Json);
    let diagnostics = if args.all || for_programs {
        Diagnostics::All
    } else {
        Diagnostics::Moved
    };
    let filtered = metrics.is_some();
    let options = CompareOptions {
        metrics,
        diagnostics,
        ..options_of(&selected.columns)
    };
    let comparison = compare(&selected.rows, &options);
    if selected.rows.is_empty() {
        context.note("no run yet; begin with `kdyno run jobs/quickstart.yaml`");
    } else if filtered
        && comparison
            .tables
            .iter()
            .all(|table| table.rows().next().is_none())
    {
        let error = UsageError::new(
            "no run has such a metric",
            "see `kdyno show --all` for the names",
        );
        return Err(error.into());
    }
    let text = render(&comparison, args.format);
    context.out.write_all(text.as_bytes())?;
    context.out.flush()?;
    let compared = selected
        .rows
        .iter()
        .any(|row| !row.warm_up && row.outcome.is_done());
    Ok(if compared {
        Status::Done
    } else {
        Status::CannotTell
    })
}

/// What a selection found.
pub struct Selected {
    /// The runs, with all their figures.
    pub rows: Vec<RunRow>,
    /// The columns in order, with what each changes.
    pub columns: Vec<(VariantName, String)>,
    /// The metrics that it names.
    pub metrics: Option<MetricGlobs>,
}

/// The runs that a selection means; without one those of the newest plan.
pub fn selected(words: &[String], context: &mut Context) -> anyhow::Result<Selected> {
    let (selection, plans, mut rows) = index::ask(context, |index| {
        let selection = find(words, index)?;
        let mut plans: Vec<PlanId> = selection.found.iter().map(|(plan, _)| *plan).collect();
        plans.dedup();
        let filter = RunFilter {
            plans: plans.clone(),
            ..RunFilter::default()
        };
        let rows = if plans.is_empty() {
            Vec::new()
        } else {
            index.runs_select(&filter)?
        };
        Ok((selection, plans, rows))
    })?;
    let wanted: HashSet<(PlanId, RunId)> = selection.found.into_iter().collect();
    rows.retain(|row| wanted.contains(&(row.plan, row.run_id)));
    let rows = set_apart(rows, &selection.plans_named);
    let plans = if selection.plans_named.is_empty() {
        plans
    } else {
        selection.plans_named
    };
    let mut columns = columns_of(&rows, &plans, &context.home()?);
    columns.sort_by_key(|(name, _)| {
        let named = selection
            .variants_named
            .iter()
            .position(|variant| variant == name);
        named.unwrap_or(usize::MAX)
    });
    Ok(Selected {
        rows,
        columns,
        metrics: selection.metrics,
    })
}

/// What the words of a selection came to.
#[derive(Default)]
struct Found {
    found: Vec<(PlanId, RunId)>,
    plans_named: Vec<PlanId>,
    variants_named: Vec<VariantName>,
    metrics: Option<MetricGlobs>,
}

/// Reads as little of the index as will do: nothing but the newest plan's name without words,
/// headline figures first, everything only when a word means none of what that has.
fn find(words: &[String], index: &mut Index) -> anyhow::Result<Found> {
    let newest = index.plan_newest()?;
    let plans = if words.is_empty() {
        newest.into_iter().collect()
    } else {
        Vec::new()
    };
    if words.is_empty() && plans.is_empty() {
        return Ok(Found::default());
    }
    let scalars = if words.is_empty() {
        Scalars::None
    } else {
        Scalars::Headline
    };
    let mut rows = index.runs_select(&RunFilter {
        plans,
        scalars,
        ..RunFilter::default()
    })?;
    let selection = match Selection::parse(words, &rows) {
        Ok(selection) => selection,
        Err(_) => {
            rows = index.runs_select(&RunFilter::default())?;
            Selection::parse(words, &rows)?
        }
    };
    Ok(Found {
        found: selection
            .rows(&rows)
            .iter()
            .map(|row| (row.plan, row.run_id))
            .collect(),
        plans_named: selection.plans_named().to_vec(),
        variants_named: selection.variants_named().to_vec(),
        metrics: selection.metrics(),
    })
}

/// The table that ends a run: headline and program metrics of one plan.
pub fn table_of_plan(rows: &[RunRow], plan: PlanId, home: &Home) -> String {
    let columns = columns_of(rows, &[plan], home);
    let options = CompareOptions {
        diagnostics: Diagnostics::None,
        ..options_of(&columns)
    };
    render(&compare(rows, &options), Format::Text)
}

fn options_of(columns: &[(VariantName, String)]) -> CompareOptions {
    let described = columns
        .iter()
        .filter(|(_, description)| !description.is_empty());
    CompareOptions {
        variants: columns.iter().map(|(name, _)| name.clone()).collect(),
        descriptions: described.cloned().collect(),
        ..CompareOptions::default()
    }
}

fn render(comparison: &Comparison, format: Format) -> String {
    match format {
        Format::Text => render::text::render(comparison),
        Format::Lkp => render::lkp::render(comparison, &LkpOptions::default()),
        Format::LkpCases => render::lkp_cases::render(comparison, &LkpOptions::default()),
        Format::Csv => render::csv::render(comparison),
        Format::Json => render::json::render(comparison),
    }
}

/// The variants of these runs with what they change, in the order of these plans. A variant that
/// was set apart carries its plan in its name.
fn columns_of(rows: &[RunRow], plans: &[PlanId], home: &Home) -> Vec<(VariantName, String)> {
    let used: HashSet<&VariantName> = rows.iter().map(|row| &row.variant).collect();
    let mut columns: Vec<(VariantName, String)> = Vec::new();
    for plan in plans.iter().filter_map(|id| read_plan(home, *id)) {
        for (name, description) in plan.variants.iter().zip(&plan.descriptions) {
            let apart = VariantName(format!("{name}@{}", plan.id.short()));
            for name in [name.clone(), apart] {
                if used.contains(&name) && columns.iter().all(|(known, _)| *known != name) {
                    columns.push((name, description.clone()));
                }
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
