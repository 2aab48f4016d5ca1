//! `kdyno compare`: from a selection to a table, and to an exit status.

mod controls;
mod environment;
mod exit;
mod recover;
mod values;

use crate::cli::{Across, CompareArgs, Format};
use crate::context::{Context, Status, UsageError, report};
use crate::index;
use kdyno_analyze::looks::{runs_done, strictness_at};
use kdyno_analyze::noise::NoiseMemory;
use kdyno_analyze::recover::sentences;
use kdyno_analyze::render::{self, lkp::LkpOptions, text::TextOptions};
use kdyno_analyze::select::set_apart;
use kdyno_analyze::{
    CompareOptions, Comparison, Diagnostics, MetricGlobs, Selection, Strictness, compare,
};
use kdyno_job::plan::Plan;
use kdyno_model::{PlanId, RunId, RunRow, VariantName};
use kdyno_rundir::Home;
use kdyno_store::{Index, RunFilter, Scalars};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

/// Prints the table, and says by the exit status what was asked for. For a bisection an error must
/// not look like a bad commit.
pub fn command(args: &CompareArgs, context: &mut Context) -> anyhow::Result<Status> {
    match print(args, context) {
        Err(error) if args.bisect_exit => {
            report(&error, context);
            Ok(Status::BisectStop)
        }
        other => other,
    }
}

fn print(args: &CompareArgs, context: &mut Context) -> anyhow::Result<Status> {
    if !(args.margin > 0.0 && args.margin < 100.0) {
        return Err(UsageError::new(
            format!("--margin {} is no share of a figure", args.margin),
            "give percent above 0 and below 100, as --margin 2",
        )
        .into());
    }
    let in_words = args.across.is_some() || !args.recover.is_empty() || args.aa;
    if in_words && !matches!(args.format, Format::Text) {
        return Err(UsageError::new(
            "--across, --recover and --aa speak in words: they have no other format",
            "leave --format out; the figures of every variant are in `compare --format json`",
        )
        .into());
    }
    if args.aa {
        return controls::command(args, context);
    }
    if let Some(file) = &args.csv {
        let comparison = values::compare_file(file, args)?;
        if !args.metric.is_empty() && has_no_row(&comparison) {
            let hint = format!("the first field of each line of {file} is the metric");
            return Err(UsageError::new("no metric matches", hint).into());
        }
        return conclude(&comparison, &BTreeMap::new(), args, context);
    }
    let selected = selected(&args.select, context)?;
    let metrics = match args.metric.as_slice() {
        [] => selected.metrics.clone(),
        globs => Some(MetricGlobs::new(globs)?),
    };
    let filtered = metrics.is_some();
    let mut options = CompareOptions {
        metrics,
        diagnostics: diagnostics(args),
        ..options_of(&selected.columns)
    };
    judging(&mut options, args, &selected, context)?;
    if let [good, bad, fixed] = args.recover.as_slice() {
        options.variants = recover::columns([good, bad, fixed], &selected.columns)?;
    }
    let comparison = compare(&selected.rows, &options);
    if selected.rows.is_empty() {
        context.note("no run yet; begin with `kdyno run jobs/quickstart.yaml`");
    } else if filtered && has_no_row(&comparison) {
        let error = UsageError::new(
            "no run has such a metric",
            "see `kdyno show --all` for the names",
        );
        return Err(error.into());
    }
    let commands = recheck_commands(&selected.plans);
    conclude(&comparison, &commands, args, context)
}

pub fn has_no_row(comparison: &Comparison) -> bool {
    let mut rows = comparison.tables.iter().flat_map(|table| table.rows());
    rows.next().is_none()
}

/// Names for a hint.
pub fn known_names<'a>(names: impl Iterator<Item = &'a VariantName>) -> String {
    let names: Vec<&str> = names.map(VariantName::as_str).collect();
    if names.is_empty() {
        "there is no run yet; begin with `kdyno run jobs/quickstart.yaml`".to_owned()
    } else {
        format!("the runs have {}", names.join(", "))
    }
}

/// What to run on a machine to look again, with twice the runs, by the machine's name.
pub fn recheck_commands(plans: &[Plan]) -> BTreeMap<String, String> {
    let command = |plan: &Plan| {
        let is_file = plan.job.ends_with(".yaml") || plan.job.ends_with(".yml");
        let commands = || {
            let lines = plan
                .descriptions
                .iter()
                .filter_map(|d| d.strip_prefix("command="));
            lines.map(quoted).collect::<Vec<_>>().join(" ")
        };
        let what = if is_file {
            quoted(&plan.job)
        } else {
            commands()
        };
        let runs = plan.runs.saturating_mul(2);
        format!(
            "kdyno run -n {runs} --testbox {} {what}",
            quoted(&plan.testbox)
        )
    };
    let of_plan = |plan: &Plan| (plan.testbox.clone(), command(plan));
    plans.iter().map(of_plan).collect()
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Which diagnostics a form shows: a program that reads the table filters for itself, and the LKP
/// block has all that moved.
fn diagnostics(args: &CompareArgs) -> Diagnostics {
    match args.format {
        _ if args.all => Diagnostics::All,
        Format::Csv | Format::Json => Diagnostics::All,
        Format::Lkp | Format::LkpCases => Diagnostics::Moved,
        Format::Text => Diagnostics::Changed,
    }
}

/// How the changes of selected runs are judged.
fn judging(
    options: &mut CompareOptions,
    args: &CompareArgs,
    selected: &Selected,
    context: &mut Context,
) -> anyhow::Result<()> {
    options.strictness = strictness_of(&selected.rows, &selected.plans, strictness(args));
    options.controls = controls_of(&selected.plans);
    if !args.no_history {
        options.history = index::noise_memory(context, &selected.rows)?;
    }
    options.doubts = environment::doubts(&selected.rows, &options.variants, context)?;
    Ok(())
}

fn strictness(args: &CompareArgs) -> Strictness {
    let usual = Strictness::default();
    let margin = args.margin / 100.0;
    Strictness {
        headline_margin: margin,
        margin: usual.margin.max(margin),
        exact: args.exact,
        ..usual
    }
}

/// The levels of the looks that the runs' plans had, the strictest of all.
fn strictness_of(rows: &[RunRow], plans: &[Plan], usual: Strictness) -> Strictness {
    plans.iter().fold(usual, |strictest, plan| {
        let Some(looks) = plan.looks else {
            return strictest;
        };
        let of_plan = rows.iter().filter(|row| row.plan == plan.id);
        match strictness_at(&looks.runs(), runs_done(of_plan), usual) {
            Some(levels) if levels.alpha < strictest.alpha => levels,
            _ => strictest,
        }
    })
}

fn controls_of(plans: &[Plan]) -> BTreeSet<VariantName> {
    let apart =
        |plan: &Plan, name: &VariantName| VariantName(format!("{name}@{}", plan.id.short()));
    plans
        .iter()
        .filter_map(|plan| Some((plan, plan.control.as_ref()?)))
        .flat_map(|(plan, name)| [name.clone(), apart(plan, name)])
        .collect()
}

/// Prints a comparison and turns it into an exit status.
fn conclude(
    comparison: &Comparison,
    commands: &BTreeMap<String, String>,
    args: &CompareArgs,
    context: &mut Context,
) -> anyhow::Result<Status> {
    let mut text = match args.across {
        Some(Across::Testbox) => render::across::render(comparison, commands),
        None => render(comparison, args),
    };
    if !args.recover.is_empty() {
        text.push_str(&sentences(comparison));
    }
    context.out.write_all(text.as_bytes())?;
    context.out.flush()?;
    let compared = comparison.columns.iter().any(|c| c.counts.runs > 0);
    let status = exit::status(comparison, compared, args);
    if args.bisect_exit && status == Status::BisectSkip {
        context.note(exit::why_skipped(comparison));
    }
    Ok(status)
}

/// What a selection found.
pub struct Selected {
    /// The runs, with all their figures.
    pub rows: Vec<RunRow>,
    /// The columns in order, with what each changes.
    pub columns: Vec<(VariantName, String)>,
    /// The metrics that it names.
    pub metrics: Option<MetricGlobs>,
    /// The plans of the runs, as far as they can be read.
    pub plans: Vec<Plan>,
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
    let home = context.home()?;
    // The plan has the order of the columns and the levels of its looks: guessed, a regression
    // would be an improvement.
    let plans: Vec<Plan> = plans
        .iter()
        .map(|id| read_plan(&home, *id))
        .collect::<Result<_, _>>()?;
    let mut columns = columns_of(&rows, &plans);
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
        plans,
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

/// The comparison that ends a run: headline and program metrics of one plan.
pub fn comparison_of_plan(rows: &[RunRow], plan: &Plan, history: NoiseMemory) -> Comparison {
    let plans = std::slice::from_ref(plan);
    let columns = columns_of(rows, plans);
    let options = CompareOptions {
        diagnostics: Diagnostics::None,
        strictness: strictness_of(rows, plans, Strictness::default()),
        controls: controls_of(plans),
        history,
        ..options_of(&columns)
    };
    compare(rows, &options)
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

fn render(comparison: &Comparison, args: &CompareArgs) -> String {
    let lkp = LkpOptions {
        verdicts: args.verdicts,
        ..LkpOptions::default()
    };
    let text = TextOptions {
        lkp_rule: args.lkp_rule,
    };
    match args.format {
        Format::Text => render::text::render(comparison, &text),
        Format::Lkp => render::lkp::render(comparison, &lkp),
        Format::LkpCases => render::lkp_cases::render(comparison, &lkp),
        Format::Csv => render::csv::render(comparison),
        Format::Json => render::json::render(comparison),
    }
}

/// The variants of these runs with what they change, in the order of these plans. A variant that
/// was set apart carries its plan in its name.
fn columns_of(rows: &[RunRow], plans: &[Plan]) -> Vec<(VariantName, String)> {
    let used: HashSet<&VariantName> = rows.iter().map(|row| &row.variant).collect();
    let mut columns: Vec<(VariantName, String)> = Vec::new();
    for plan in plans {
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

/// A plan's own text.
fn read_plan(home: &Home, id: PlanId) -> Result<Plan, UsageError> {
    let unreadable = |path: &Path, why: String| {
        UsageError::new(
            format!("{}: {why}", path.display()),
            "without it nobody knows which side is the base: put it back, or name other plans; \
             the runs themselves are whole, as `kdyno show RUN` shows",
        )
    };
    let dir = home.plan(id).map_err(|error| {
        let why = format!("plan {} of the index is gone ({error})", id.short());
        UsageError::new(why, "`kdyno index rebuild` forgets it")
    })?;
    let path = dir.path.join("plan.json");
    let bytes = dir
        .plan_bytes()
        .map_err(|error| unreadable(&path, error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| unreadable(&path, error.to_string()))
}
