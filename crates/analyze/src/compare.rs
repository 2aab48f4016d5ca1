//! Runs to a [`Comparison`].
//!
//! Warm-ups and runs that did not end well never give a value; failures are counted beside the
//! values. Figures of two clocks, instruments or units are never set against each other. What is
//! said of the changes comes from [`mod@crate::judge`].

use crate::comparison::{
    CaseTable, Cell, Column, Comparison, Counts, FailureCell, FailureRow, Group, GroupKind,
    Observation, Row, RunPlace,
};
use crate::distribution;
use crate::judge::{Draft, Strictness, judge};
use crate::noise::NoiseMemory;
use crate::select::MetricGlobs;
use kdyno_model::{ClockKind, MetricName, PlanId, Role, RunRow, Scalar, VariantName};
use kdyno_stats::change::reproduction_difference;
use kdyno_stats::judge::Reason;
use kdyno_stats::{Change, Summary, screen};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What to compare and what to show.
#[derive(Clone, Debug, Default)]
pub struct CompareOptions {
    /// Columns in order, the base first; empty for the order of first execution.
    pub variants: Vec<VariantName>,
    /// What a variant is, in one line, by name.
    pub descriptions: BTreeMap<VariantName, String>,
    /// Only these metrics; they are shown whether or not they moved.
    pub metrics: Option<MetricGlobs>,
    /// Which diagnostics to show.
    pub diagnostics: Diagnostics,
    /// How strictly changes are judged.
    pub strictness: Strictness,
    /// What is remembered of the metrics' noise.
    pub history: NoiseMemory,
    /// Columns that are the base once more.
    pub controls: BTreeSet<VariantName>,
    /// What speaks against the runs of a variant on a testbox.
    pub doubts: Vec<Doubt>,
}

/// Something that forbids claims about a variant on a testbox.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubt {
    /// Where.
    pub testbox: String,
    /// Whose runs.
    pub variant: VariantName,
    /// In a word.
    pub reason: Reason,
    /// In a sentence, for the table's notes.
    pub note: String,
}

/// Which diagnostics a table shows; headline and program metrics are always there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Diagnostics {
    /// None.
    None,
    /// Those of which a change was shown; where a total and its rate per second both would be,
    /// only the total.
    Changed,
    /// Those that pass the display filter, as LKP's table has many rows; totals as above.
    #[default]
    Moved,
    /// Every one.
    All,
}

/// Sets the variants of `rows` side by side, one table per case and testbox.
#[must_use]
pub fn compare<'a>(
    rows: impl IntoIterator<Item = &'a RunRow>,
    options: &CompareOptions,
) -> Comparison {
    let mut rows: Vec<&RunRow> = rows.into_iter().collect();
    rows.sort_by_key(|row| (row.plan, row.index, row.start_unix_ns));
    let variants = columns_of(&rows, options);

    let columns: Vec<Column> = variants
        .iter()
        .map(|name| Column {
            name: name.clone(),
            description: options.descriptions.get(name).cloned(),
            counts: counts(&rows, name),
            control: options.controls.contains(name),
        })
        .collect();
    let mut drafts: Vec<Draft> = by_place(&rows)
        .iter()
        .filter_map(|of_place| draft(of_place, &variants, options))
        .collect();
    judge(&mut drafts, &columns, options);
    let tables = drafts
        .into_iter()
        .map(|draft| shown(draft, options))
        .collect();
    let notes = comparison_notes(&rows, &columns);
    Comparison {
        columns,
        tables,
        notes,
    }
}

/// The runs of each case and testbox, in the order in which these come first.
pub(crate) fn by_place<'a>(rows: &[&'a RunRow]) -> Vec<Vec<&'a RunRow>> {
    let mut places: Vec<(Place<'_>, Vec<&RunRow>)> = Vec::new();
    for row in rows {
        let place = (&row.case.id, row.case.name(), row.testbox.as_str());
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, of_place)) => of_place.push(row),
            None => places.push((place, vec![row])),
        }
    }
    places.into_iter().map(|(_, of_place)| of_place).collect()
}

/// Case and testbox; the name too, since a row without a content hash must not be merged.
type Place<'a> = (&'a kdyno_model::CaseId, String, &'a str);

fn columns_of(rows: &[&RunRow], options: &CompareOptions) -> Vec<VariantName> {
    let mut variants = options.variants.clone();
    if variants.is_empty() {
        for row in rows {
            if !variants.contains(&row.variant) {
                variants.push(row.variant.clone());
            }
        }
    }
    variants
}

fn counts(rows: &[&RunRow], variant: &VariantName) -> Counts {
    let of_variant = || rows.iter().filter(|row| row.variant == *variant);
    let done = || of_variant().filter(|row| is_compared(row));
    Counts {
        runs: done().count(),
        warm_ups: of_variant().filter(|row| row.warm_up).count(),
        boots: done().filter_map(|row| row.boot_id.clone()).collect(),
    }
}

/// Whether a run's figures count: done, and no warm-up.
pub(crate) fn is_compared(row: &RunRow) -> bool {
    !row.warm_up && row.outcome.is_done()
}

fn comparison_notes(rows: &[&RunRow], columns: &[Column]) -> Vec<String> {
    let mut notes = Vec::new();
    let plans = plans_put_together(rows, columns);
    if plans > 1 {
        notes.push(format!("runs of {plans} plans are put together"));
    }
    for column in columns.iter().filter(|column| column.counts.runs == 0) {
        notes.push(format!("no run of {} gave figures", column.name));
    }
    notes
}

/// The number of plans whose runs share a column with those of another plan.
fn plans_put_together(rows: &[&RunRow], columns: &[Column]) -> usize {
    let plans_of = |column: &Column| -> BTreeSet<PlanId> {
        let of_column = rows.iter().filter(|row| row.variant == column.name);
        of_column.map(|row| row.plan).collect()
    };
    let mixed = columns.iter().map(plans_of).filter(|plans| plans.len() > 1);
    mixed.flatten().collect::<BTreeSet<_>>().len()
}

/// The rows of one place before anything is judged; `None` when no column has a run there.
fn draft(rows: &[&RunRow], variants: &[VariantName], options: &CompareOptions) -> Option<Draft> {
    let first = rows.iter().find(|row| variants.contains(&row.variant))?;
    let counts: Vec<Counts> = variants.iter().map(|name| counts(rows, name)).collect();
    let mut notes = uncounted(rows, variants);
    let compared: Vec<&RunRow> = rows
        .iter()
        .copied()
        .filter(|row| is_compared(row) && variants.contains(&row.variant))
        .collect();
    let columns = variants
        .iter()
        .map(|name| runs_of(&compared, name))
        .collect();
    let mut table_rows = Vec::new();
    for gathered in gather(&compared, variants, options.metrics.as_ref()) {
        let (row, refusals) = gathered.into_row(variants, &counts);
        for refusal in refusals {
            if !notes.contains(&refusal) {
                notes.push(refusal);
            }
        }
        table_rows.push(row);
    }
    let of_place = |doubt: &&Doubt| doubt.testbox == first.testbox;
    let doubts = options.doubts.iter().filter(of_place);
    notes.extend(doubts.clone().map(|doubt| doubt.note.clone()));
    let doubts = variants
        .iter()
        .map(|name| {
            let told = doubts.clone().filter(|doubt| doubt.variant == *name);
            let throttled = is_throttled(&compared, name).then_some(Reason::Throttled);
            told.map(|doubt| doubt.reason).chain(throttled).collect()
        })
        .collect();
    let table = CaseTable {
        case: first.case.clone(),
        testbox: first.testbox.clone(),
        counts,
        runs: compared.iter().map(|row| place_of(row)).collect(),
        designs: Vec::new(),
        failures: failures(rows, variants),
        groups: Vec::new(),
        distributions: distribution::rows(&compared, variants, options.metrics.as_ref()),
        hidden: 0,
        controls: Vec::new(),
        notes,
    };
    let base = compared
        .iter()
        .find(|row| Some(&row.variant) == variants.first());
    Some(Draft {
        table,
        rows: table_rows,
        basis: base.map(|row| (row.clock, row.instrument.clone())),
        columns,
        doubts,
    })
}

/// The metric that counts how often the machine slowed itself down to keep cool.
const THROTTLE_EVENTS: &str = "thermal.throttle_events";

/// Whether the machine was throttled in a run of the variant.
fn is_throttled(compared: &[&RunRow], name: &VariantName) -> bool {
    let of_variant = compared.iter().filter(|row| row.variant == *name);
    of_variant
        .flat_map(|row| &row.scalars)
        .any(|scalar| scalar.metric.as_str() == THROTTLE_EVENTS && scalar.value > 0.0)
}

/// Positions of a variant's runs.
fn runs_of(compared: &[&RunRow], name: &VariantName) -> Vec<u32> {
    let positions = (0..).zip(compared);
    positions
        .filter(|(_, row)| row.variant == *name)
        .map(|(position, _)| position)
        .collect()
}

fn place_of(row: &RunRow) -> RunPlace {
    RunPlace {
        run: row.run_id,
        boot: row.boot_id.clone(),
        kernel_release: row.kernel_release.clone(),
        build_id: row.build_id.clone(),
        plan: row.plan,
        block: row.block,
        order: row.index,
        start_unix_ns: row.start_unix_ns,
    }
}

/// The table with the rows that are to be shown, in groups.
pub(crate) fn shown(draft: Draft, options: &CompareOptions) -> CaseTable {
    let mut table = draft.table;
    let names: HashSet<MetricName> = draft.rows.iter().map(|row| row.metric.clone()).collect();
    let (mut kept, mut hidden) = (Vec::new(), 0);
    for row in draft.rows {
        let wanted = options.metrics.is_some() || row.role != Role::Diagnostic;
        let stands_out = match options.diagnostics {
            Diagnostics::None => false,
            Diagnostics::Changed => row.changed() && !is_rate_of_shown_total(&row.metric, &names),
            Diagnostics::Moved => row.moved() && !is_rate_of_shown_total(&row.metric, &names),
            Diagnostics::All => true,
        };
        if wanted || stands_out {
            kept.push(row);
        } else {
            hidden += 1;
        }
    }
    table.groups = grouped(kept);
    table.hidden = hidden;
    table
}

fn is_rate_of_shown_total(metric: &MetricName, names: &HashSet<MetricName>) -> bool {
    let total = metric
        .as_str()
        .strip_suffix("/s")
        .and_then(|total| MetricName::new(total).ok());
    total.is_some_and(|total| names.contains(&total))
}

/// Measured runs that are neither done nor a failure of the variant, said per variant.
fn uncounted(rows: &[&RunRow], variants: &[VariantName]) -> Vec<String> {
    let mut by_word: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.warm_up) {
        let outcome = &row.outcome;
        if let Some(column) = variants.iter().position(|name| *name == row.variant)
            && !outcome.is_done()
            && !outcome.is_failure()
        {
            *by_word.entry((column, outcome.word())).or_default() += 1;
        }
    }
    let said = |((column, word), n): (&(usize, &str), &usize)| {
        let name = variants.get(*column)?;
        Some(format!("{} of {name} not counted: {word}", runs(*n)))
    };
    by_word.iter().filter_map(said).collect()
}

pub(crate) fn runs(n: usize) -> String {
    format!("{n} run{}", if n == 1 { "" } else { "s" })
}

fn failures(rows: &[&RunRow], variants: &[VariantName]) -> Vec<FailureRow> {
    let measured: Vec<&&RunRow> = rows.iter().filter(|row| !row.warm_up).collect();
    let words: BTreeSet<&str> = measured
        .iter()
        .filter(|row| row.outcome.is_failure() && variants.contains(&row.variant))
        .map(|row| row.outcome.word())
        .collect();
    let count = |name: &VariantName, wanted: &dyn Fn(&RunRow) -> bool| {
        let of_variant = measured.iter().filter(|row| row.variant == *name);
        of_variant.filter(|row| wanted(row)).count() as u64
    };
    let row_of = |word: &str| {
        let shares: Vec<(u64, u64)> = variants
            .iter()
            .map(|name| {
                let failed = count(name, &|row| row.outcome.word() == word);
                let attempted = count(name, &|row| {
                    row.outcome.is_done() || row.outcome.is_failure()
                });
                (failed, attempted)
            })
            .collect();
        let base = shares.first().copied().unwrap_or_default();
        let cells = shares
            .iter()
            .enumerate()
            .map(|(column, &(failed, runs))| FailureCell {
                failed,
                runs,
                difference: (column > 0)
                    .then(|| reproduction_difference(base, (failed, runs)))
                    .flatten(),
                judged: None,
            });
        FailureRow {
            name: format!("outcome.{word}"),
            cells: cells.collect(),
        }
    };
    words.into_iter().map(row_of).collect()
}

/// What must agree before two figures may be compared.
#[derive(Clone, Copy, PartialEq)]
struct Basis<'a> {
    clock: ClockKind,
    instrument: &'a str,
    unit: &'a str,
}

impl Basis<'_> {
    /// The first thing in which two bases differ, as `clock wall` and `clock guest-wall`.
    fn difference(&self, other: &Self) -> Option<(String, String)> {
        let pair = |what: &str, a: &str, b: &str| {
            (a != b).then(|| (format!("{what} `{a}`"), format!("{what} `{b}`")))
        };
        pair("clock", clock_name(self.clock), clock_name(other.clock))
            .or_else(|| pair("instrument", self.instrument, other.instrument))
            .or_else(|| pair("unit", self.unit, other.unit))
    }
}

fn clock_name(clock: ClockKind) -> &'static str {
    match clock {
        ClockKind::Wall => "wall",
        ClockKind::GuestWall => "guest-wall",
        ClockKind::GuestInstructions => "guest-instructions",
    }
}

/// A metric of a run, with the run.
#[derive(Clone, Copy)]
struct Figure<'a> {
    /// Position of the run among those compared.
    position: u32,
    run: &'a RunRow,
    scalar: &'a Scalar,
}

impl<'a> Figure<'a> {
    fn basis(&self) -> Basis<'a> {
        Basis {
            clock: self.run.clock,
            instrument: &self.run.instrument,
            unit: self.scalar.unit.as_str(),
        }
    }
}

/// All values of one metric, by column.
struct Gathered<'a> {
    first: &'a Scalar,
    columns: Vec<Vec<Figure<'a>>>,
}

/// The values of all metrics, in order of first appearance.
fn gather<'a>(
    compared: &[&'a RunRow],
    variants: &[VariantName],
    wanted: Option<&MetricGlobs>,
) -> Vec<Gathered<'a>> {
    let mut position: HashMap<&MetricName, Option<usize>> = HashMap::new();
    let mut gathered: Vec<Gathered<'a>> = Vec::new();
    for (number, run) in (0..).zip(compared) {
        let Some(column) = variants.iter().position(|name| *name == run.variant) else {
            continue;
        };
        for scalar in &run.scalars {
            let place = *position.entry(&scalar.metric).or_insert_with(|| {
                wanted
                    .is_none_or(|globs| globs.matches(&scalar.metric))
                    .then(|| {
                        gathered.push(Gathered {
                            first: scalar,
                            columns: variants.iter().map(|_| Vec::new()).collect(),
                        });
                        gathered.len() - 1
                    })
            });
            let metric = place.and_then(|place| gathered.get_mut(place));
            if let Some(column) = metric.and_then(|metric| metric.columns.get_mut(column)) {
                column.push(Figure {
                    position: number,
                    run,
                    scalar,
                });
            }
        }
    }
    gathered
}

impl Gathered<'_> {
    /// The row, and why cells of it were refused.
    fn into_row(self, variants: &[VariantName], counts: &[Counts]) -> (Row, Vec<String>) {
        let absolute = self.first.metric.changes_absolutely();
        let (mut notes, mut refusals) = (Vec::new(), Vec::new());
        let mut base: Option<(Cell, Basis<'_>)> = None;
        let mut cells = Vec::new();
        for (place, (figures, name)) in self.columns.iter().zip(variants).enumerate() {
            let run = counts.get(place).map_or(0, |counts| counts.runs);
            notes.extend(missing(figures.len(), run, name));
            let measured = match own_basis(figures, name) {
                Ok(basis) => basis.and_then(|basis| Some((plain_cell(figures)?, basis))),
                Err(refusal) => {
                    refusals.push(refusal);
                    None
                }
            };
            if place == 0 {
                base = measured.clone();
            }
            cells.push(measured.map(|(cell, basis)| match &base {
                Some((base, base_basis)) if place > 0 => match base_basis.difference(&basis) {
                    None => against(cell, base, absolute),
                    Some((of_base, own)) => {
                        let first = variants.first().map_or("", VariantName::as_str);
                        refusals.push(format!(
                            "{name} has {own}, {first} has {of_base}: not compared"
                        ));
                        cell
                    }
                },
                _ => cell,
            }));
        }
        notes.extend(refusals.iter().cloned());
        let first = self.first;
        let row = Row {
            metric: first.metric.clone(),
            unit: first.unit.clone(),
            better: first.better,
            role: first.role,
            cells,
            notes,
        };
        (row, refusals)
    }
}

pub(crate) fn missing(present: usize, of: usize, name: &VariantName) -> Option<String> {
    match present {
        n if n >= of => None,
        0 => Some(format!("no run of {name} has it")),
        n => Some(format!("present in {n} of {} of {name}", runs(of))),
    }
}

/// The basis that all figures share; an error says in what they differ.
fn own_basis<'a>(figures: &[Figure<'a>], name: &VariantName) -> Result<Option<Basis<'a>>, String> {
    let Some(first) = figures.first().map(Figure::basis) else {
        return Ok(None);
    };
    let differing = |other: &Figure<'_>| first.difference(&other.basis());
    match figures.iter().find_map(differing) {
        None => Ok(Some(first)),
        Some((a, b)) => Err(format!(
            "runs of {name} have {a} and {b}: no figure is formed of them"
        )),
    }
}

fn plain_cell(figures: &[Figure<'_>]) -> Option<Cell> {
    let values: Vec<f64> = figures.iter().map(|figure| figure.scalar.value).collect();
    let observation = |figure: &Figure<'_>| Observation {
        value: figure.scalar.value,
        run: figure.position,
    };
    let boots = figures
        .iter()
        .filter_map(|figure| figure.run.boot_id.as_ref());
    Some(Cell {
        observations: figures.iter().map(observation).collect(),
        boots: boots.collect::<BTreeSet<_>>().len(),
        summary: Summary::of(&values)?,
        change: None,
        moved: false,
        judged: None,
    })
}

/// The cell with its change against the base.
pub(crate) fn against(cell: Cell, base: &Cell, absolute: bool) -> Cell {
    Cell {
        change: Change::between(base.summary.mean, cell.summary.mean, absolute),
        moved: screen::moved(&base.values(), &cell.values()),
        ..cell
    }
}

/// Headline rows, program rows, then diagnostics by group: those in which fewer metrics moved
/// come first, since a single changed counter says more than fifty.
fn grouped(rows: Vec<Row>) -> Vec<Group> {
    let mut by_kind: BTreeMap<GroupKind, Vec<Row>> = BTreeMap::new();
    for row in rows {
        let kind = match row.role {
            Role::Headline => GroupKind::Headline,
            Role::Program => GroupKind::Program,
            Role::Diagnostic => GroupKind::Diagnostic(row.metric.group().to_owned()),
        };
        by_kind.entry(kind).or_default().push(row);
    }
    let mut groups: Vec<Group> = by_kind
        .into_iter()
        .map(|(kind, mut rows)| {
            if matches!(kind, GroupKind::Diagnostic(_)) {
                rows.sort_by(|a, b| a.metric.cmp(&b.metric));
            }
            Group { kind, rows }
        })
        .collect();
    groups.sort_by_cached_key(|group| match &group.kind {
        GroupKind::Diagnostic(_) => (
            group.rows.iter().filter(|row| row.moved()).count(),
            group.kind.clone(),
        ),
        _ => (0, group.kind.clone()),
    });
    groups
}
