//! Judges every change of a comparison: gathers the evidence of each, borrows variance where it
//! may, adjusts p-values by family, decides.
//!
//! Two families. Headline metrics of the whole report are one per column (Benjamini-Hochberg,
//! with Holm over the columns inside a row, since several variants are several chances).
//! Everything else is groups of a table, selected first and searched then (Benjamini,
//! Bogomolov). A control column, the base once more, is judged by itself. No formula here.

use crate::compare::CompareOptions;
use crate::comparison::{
    CaseTable, Cell, Column, ControlCheck, FailureRow, Judged, Replicate, Row,
};
use crate::design::Sides;
use crate::noise::History;
use kdyno_model::{Better, ClockKind, Role};
use kdyno_stats::adjust::{Method, adjust, two_stage};
use kdyno_stats::judge::{
    ALPHA, Cache, Direction, Effect, Evidence, Judgement, Known, Opinion, Reason, Rule, Scale,
    StudentQuantile, Verdict, decide, family_prior, judge_failures, refine, second_opinion,
};
use kdyno_stats::lkp_rule::{LkpMode, lkp_changed};
use kdyno_stats::moderated::BuildSpread;
use std::collections::HashMap;

/// Ratio of medians from which lkp-tests reports a performance metric.
const LKP_RATIO: f64 = 1.01;

/// How strictly changes are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strictness {
    /// Level of claims: that of one look, or the nominal one of a planned look.
    pub alpha: f64,
    /// One-sided level of equivalence.
    pub equivalence_alpha: f64,
    /// Share of the base below which a headline change does not matter.
    pub headline_margin: f64,
    /// The same of every other metric.
    pub margin: f64,
    /// Whether every metric gets a second opinion, not only headline ones.
    pub exact: bool,
}

impl Default for Strictness {
    fn default() -> Self {
        Self {
            alpha: ALPHA,
            equivalence_alpha: ALPHA,
            headline_margin: 0.01,
            margin: 0.05,
            exact: false,
        }
    }
}

/// A table whose rows are not grouped yet.
pub(crate) struct Draft {
    pub table: CaseTable,
    pub rows: Vec<Row>,
    /// Clock and instrument of the base.
    pub basis: Option<(ClockKind, String)>,
    /// The runs of each column, as positions in the table's runs.
    pub columns: Vec<Vec<u32>>,
    /// What forbids claims about each column, beside its design.
    pub doubts: Vec<Vec<Reason>>,
}

/// One change on its way to a verdict.
struct Pending {
    draft: usize,
    row: usize,
    column: usize,
    evidence: Option<Evidence>,
    replicate: Replicate,
    one_boot: bool,
    paired: bool,
    drifts: bool,
    history: Option<History>,
    known: Option<Known>,
    effect: Option<Effect>,
    adjusted: Option<f64>,
    lkp_rule: bool,
}

/// Headline metrics up to which each gets a second opinion and a plan without being asked for.
const CLOSELY: usize = 200;

/// Judges the changes and failures of all drafts.
pub(crate) fn judge(drafts: &mut [Draft], columns: &[Column], options: &CompareOptions) {
    let mut pending = Vec::new();
    for (place, draft) in drafts.iter_mut().enumerate() {
        gather(place, draft, options, &mut pending);
    }
    borrow_from_family(drafts, &mut pending);
    let mut cache = Cache::default();
    for change in &mut pending {
        let builds = change.unseen_boots();
        let known = change.known;
        let evidence = change.evidence.as_ref();
        change.effect = evidence.and_then(|evidence| evidence.effect(known, builds, &mut cache));
    }
    adjust_all(drafts, columns, options.strictness.alpha, &mut pending);
    for (place, draft) in drafts.iter_mut().enumerate() {
        let of_draft = || pending.iter().filter(|change| change.draft == place);
        let controls = (0..).zip(columns).filter(|(_, column)| column.control);
        draft.table.controls = controls
            .map(|(column, _)| control_check(column, of_draft(), &draft.rows, options))
            .collect();
    }
    let of_headline = |change: &&Pending| role(drafts, change) == Role::Headline;
    let mut closing = Closing {
        options,
        headline_closely: pending.iter().filter(of_headline).count() <= CLOSELY,
        cache,
        quantiles: Quantiles::default(),
    };
    for change in pending {
        closing.conclude(change, drafts);
    }
    for draft in drafts {
        for row in &mut draft.table.failures {
            failures(row, options.strictness.alpha);
        }
    }
}

/// The designs of a draft's columns, and the evidence of each change that may be compared.
fn gather(place: usize, draft: &mut Draft, options: &CompareOptions, pending: &mut Vec<Pending>) {
    let Some(base_runs) = draft.columns.first() else {
        return;
    };
    let sides: Vec<Option<Sides<'_>>> = draft
        .columns
        .iter()
        .enumerate()
        .map(|(column, runs)| {
            let compared = column > 0 && !runs.is_empty() && !base_runs.is_empty();
            compared.then(|| Sides::of(&draft.table.runs, base_runs, runs))
        })
        .collect();
    for (row_place, row) in draft.rows.iter().enumerate() {
        for (column, sides) in sides.iter().enumerate() {
            if let (Some(sides), Some(base), Some(cell)) = (sides, row.base(), row.cell(column))
                && cell.change.is_some()
            {
                let change = Pending::of(sides, row, base, cell, draft, options);
                pending.push(Pending {
                    draft: place,
                    row: row_place,
                    column,
                    ..change
                });
            }
        }
    }
    draft.table.designs = sides
        .into_iter()
        .map(|sides| sides.map(|sides| sides.design))
        .collect();
}

impl Pending {
    fn of(
        sides: &Sides<'_>,
        row: &Row,
        base: &Cell,
        cell: &Cell,
        draft: &Draft,
        options: &CompareOptions,
    ) -> Self {
        let (a, b) = (base.values(), cell.values());
        let scale = Scale::of(&a, &b, row.metric.changes_absolutely());
        let lkp_rule = lkp_changed(&a, &b, LkpMode::Plain, LKP_RATIO);
        let (a, b, paired) = sides.replicates(base, cell, scale);
        let evidence = Evidence::new(&a, &b, scale, paired);
        let paired = evidence.as_ref().is_some_and(Evidence::is_paired);
        let history = draft.basis.as_ref().and_then(|(clock, instrument)| {
            let table = &draft.table;
            let basis = (*clock, instrument.as_str(), row.unit.as_str());
            let logs = scale == Scale::Ratio;
            let memory = &options.history;
            memory.of(&table.testbox, &table.case.id, &row.metric, basis, logs)
        });
        let boots = sides.design.replicate == Replicate::Boot;
        let one_boot = sides.design.doubts.contains(&Reason::OneBoot);
        let prior = history.as_ref().and_then(|history| {
            let each = |cell: &Cell| cell.n() / cell.boots.max(1);
            match (boots && !one_boot, paired) {
                (true, _) => history
                    .between_boots
                    .zip(history.within)
                    .map(|(boots, within)| {
                        boots.prior_of_means(within, each(base).min(each(cell)))
                    }),
                (false, true) => history.paired,
                (false, false) => history.within,
            }
        });
        Self {
            draft: 0,
            row: 0,
            column: 0,
            evidence,
            replicate: sides.design.replicate,
            one_boot,
            paired,
            drifts: row.role == Role::Headline && sides.drifts(base, cell),
            history,
            known: prior.map(Known::History),
            effect: None,
            adjusted: None,
            lkp_rule,
        }
    }

    /// What boots differ by, where boots are what differs.
    fn between_boots(&self) -> Option<BuildSpread> {
        let history = self.history.as_ref()?;
        history
            .between_boots
            .filter(|_| self.replicate == Replicate::Boot)
    }

    /// The part of it that the values do not show: a side that stands on one boot cannot know how
    /// another boot would differ.
    fn unseen_boots(&self) -> Option<BuildSpread> {
        self.between_boots().filter(|_| self.one_boot)
    }
}

/// Where a metric has no history, the metrics of its table, unit and scale lend each other
/// variance.
fn borrow_from_family(drafts: &[Draft], pending: &mut [Pending]) {
    let mut families: HashMap<_, Vec<usize>> = HashMap::new();
    for (place, change) in pending.iter().enumerate() {
        let Some(row) = drafts
            .get(change.draft)
            .and_then(|d| d.rows.get(change.row))
        else {
            continue;
        };
        if let (Some(evidence), None) = (&change.evidence, change.known)
            && evidence.varies()
        {
            let scale = evidence.scale() as u8;
            let key = (
                change.draft,
                change.column,
                row.unit.as_str(),
                scale,
                change.paired,
            );
            families.entry(key).or_default().push(place);
        }
    }
    for places in families.into_values() {
        let variance = |place: &usize| pending.get(*place)?.evidence.as_ref()?.variance();
        let variances: Vec<(f64, f64)> = places.iter().filter_map(variance).collect();
        if let Some(known) = family_prior(&variances) {
            for place in places {
                if let Some(change) = pending.get_mut(place) {
                    change.known = Some(known);
                }
            }
        }
    }
}

/// Sets the adjusted p-values of both families.
fn adjust_all(drafts: &[Draft], columns: &[Column], alpha: f64, pending: &mut [Pending]) {
    let role = |change: &Pending| role(drafts, change);
    let is_control = |column: usize| columns.get(column).is_some_and(|column| column.control);
    let headline: Vec<usize> = (0..pending.len())
        .filter(|place| {
            pending
                .get(*place)
                .is_some_and(|c| role(c) == Role::Headline)
        })
        .collect();
    adjust_headline(&headline, &is_control, pending);
    let mut groups: HashMap<(usize, bool, String), Vec<usize>> = HashMap::new();
    for (place, change) in pending.iter().enumerate() {
        if role(change) == Role::Headline || change.p().is_none() {
            continue;
        }
        let row = drafts
            .get(change.draft)
            .and_then(|d| d.rows.get(change.row));
        let group = row.map_or("", |row| row.metric.group()).to_owned();
        let key = (change.draft, is_control(change.column), group);
        groups.entry(key).or_default().push(place);
    }
    for control in [false, true] {
        let places: Vec<&Vec<usize>> = groups
            .iter()
            .filter(|((_, of_control, _), _)| *of_control == control)
            .map(|(_, places)| places)
            .collect();
        let p: Vec<Vec<f64>> = places
            .iter()
            .map(|places| {
                let p = |place: &usize| pending.get(*place).and_then(Pending::p);
                places.iter().filter_map(p).collect()
            })
            .collect();
        let Some(found) = two_stage(&p, alpha) else {
            continue;
        };
        for (places, findings) in places.into_iter().zip(found) {
            for (place, adjusted) in places.iter().zip(findings.adjusted) {
                if let Some(change) = pending.get_mut(*place) {
                    change.adjusted = Some(adjusted);
                }
            }
        }
    }
}

impl Pending {
    fn p(&self) -> Option<f64> {
        self.effect.as_ref()?.p
    }
}

/// Holm over the columns of each row, then Benjamini-Hochberg over the rows of each column.
fn adjust_headline(
    headline: &[usize],
    is_control: &dyn Fn(usize) -> bool,
    pending: &mut [Pending],
) {
    let mut by_row: HashMap<(usize, usize, bool), Vec<usize>> = HashMap::new();
    for place in headline {
        if let Some(change) = pending.get(*place).filter(|change| change.p().is_some()) {
            let key = (change.draft, change.row, is_control(change.column));
            by_row.entry(key).or_default().push(*place);
        }
    }
    for places in by_row.values() {
        set_adjusted(places, Method::Holm, pending, Pending::p);
    }
    let mut by_column: HashMap<usize, Vec<usize>> = HashMap::new();
    for place in headline {
        if let Some(change) = pending
            .get(*place)
            .filter(|change| change.adjusted.is_some())
        {
            by_column.entry(change.column).or_default().push(*place);
        }
    }
    for places in by_column.values() {
        set_adjusted(places, Method::BenjaminiHochberg, pending, |c| c.adjusted);
    }
}

fn set_adjusted(
    places: &[usize],
    method: Method,
    pending: &mut [Pending],
    p: impl Fn(&Pending) -> Option<f64>,
) {
    let raw: Vec<f64> = places
        .iter()
        .filter_map(|place| pending.get(*place).and_then(&p))
        .collect();
    for (place, adjusted) in places.iter().zip(adjust(&raw, method).unwrap_or_default()) {
        if let Some(change) = pending.get_mut(*place) {
            change.adjusted = Some(adjusted);
        }
    }
}

/// Quantiles of Student's t by degrees of freedom: rows of one design share them.
#[derive(Default)]
struct Quantiles(HashMap<(u64, u64), Option<StudentQuantile>>);

impl Quantiles {
    fn at(&mut self, df: f64, tail: f64) -> Option<StudentQuantile> {
        let entry = self.0.entry((df.to_bits(), tail.to_bits()));
        *entry.or_insert_with(|| StudentQuantile::of(df, tail))
    }
}

/// The last step, with what its changes share.
struct Closing<'a> {
    options: &'a CompareOptions,
    /// Whether headline metrics are few enough to look at each closely.
    headline_closely: bool,
    cache: Cache,
    quantiles: Quantiles,
}

impl Closing<'_> {
    /// Decides one change and writes it into its cell.
    fn conclude(&mut self, change: Pending, drafts: &mut [Draft]) {
        let Some(draft) = drafts.get_mut(change.draft) else {
            return;
        };
        let doubts = doubts(&change, draft);
        let Some(row) = draft.rows.get_mut(change.row) else {
            return;
        };
        let strictness = &self.options.strictness;
        let headline = row.role == Role::Headline;
        let planned = headline && self.headline_closely;
        let rule = Rule {
            alpha: strictness.alpha,
            equivalence_alpha: strictness.equivalence_alpha,
            margin: if headline {
                strictness.headline_margin
            } else {
                strictness.margin
            },
            plan: planned,
        };
        let effect = change.effect.as_ref();
        let better = direction(row.better);
        let boots = change.between_boots();
        let judgement = decide(effect, change.adjusted, better, &rule, boots, &doubts);
        let closely = planned || strictness.exact;
        let evidence = change.evidence.as_ref().filter(|_| closely);
        let opinion = evidence.and_then(|e| second_opinion(e, &mut self.cache));
        let judgement = refined(judgement, effect, opinion.as_ref());
        let interval = effect.and_then(|effect| {
            let quantile = self.quantiles.at(effect.difference.df, 0.5 * rule.alpha)?;
            effect.interval_at(quantile)
        });
        let judged = Judged {
            interval,
            adjusted_p: change.adjusted,
            judgement,
            replicate: change.replicate,
            level: 1.0 - rule.alpha,
            smallest_visible: effect
                .filter(|_| planned)
                .and_then(|effect| effect.smallest_visible(rule.alpha)),
            opinion,
            history: change
                .history
                .filter(|_| matches!(change.known, Some(Known::History(_)))),
            lkp_rule: change.lkp_rule,
            effect: change.effect,
        };
        if let Some(cell) = row.cells.get_mut(change.column).and_then(Option::as_mut) {
            cell.judged = Some(Box::new(judged));
        }
    }
}

fn role(drafts: &[Draft], change: &Pending) -> Role {
    let row = drafts
        .get(change.draft)
        .and_then(|d| d.rows.get(change.row));
    row.map_or(Role::Diagnostic, |row| row.role)
}

/// How many metrics of a control differ from the base before any adjustment.
fn control_check<'a>(
    column: usize,
    changes: impl Iterator<Item = &'a Pending>,
    rows: &[Row],
    options: &CompareOptions,
) -> ControlCheck {
    let mut check = ControlCheck {
        column,
        headline: (0, 0),
        other: (0, 0),
    };
    for change in changes.filter(|change| change.column == column) {
        let (Some(p), Some(row)) = (change.p(), rows.get(change.row)) else {
            continue;
        };
        let count = if row.role == Role::Headline {
            &mut check.headline
        } else {
            &mut check.other
        };
        count.0 += u64::from(p <= options.strictness.alpha);
        count.1 += 1;
    }
    check
}

fn doubts(change: &Pending, draft: &Draft) -> Vec<Reason> {
    let design = draft.table.designs.get(change.column);
    let mut doubts = design
        .and_then(Option::as_ref)
        .map(|design| design.doubts.clone())
        .unwrap_or_default();
    if change.drifts {
        doubts.push(Reason::Drift);
    }
    // Values on both sides, enough for an estimate, and none: it overflowed.
    let enough = |evidence: &Evidence| {
        let (a, b) = evidence.replicates();
        a.min(b) > 1
    };
    if change.effect.is_none() && change.evidence.as_ref().is_none_or(enough) {
        doubts.push(Reason::OutOfRange);
    }
    // The base's troubles are those of every column.
    for column in [0, change.column] {
        let of_column = draft.doubts.get(column).into_iter().flatten();
        doubts.extend(of_column.copied());
    }
    doubts
}

fn refined(judgement: Judgement, effect: Option<&Effect>, opinion: Option<&Opinion>) -> Judgement {
    match (effect, opinion) {
        (Some(effect), Some(opinion)) => refine(judgement, effect, opinion),
        _ => judgement,
    }
}

pub(crate) fn direction(better: Better) -> Direction {
    match better {
        Better::Higher => Direction::Higher,
        Better::Lower => Direction::Lower,
        Better::Neither => Direction::Unknown,
    }
}

/// Judges the failures of each column against the first, with Holm over the columns.
fn failures(row: &mut FailureRow, alpha: f64) {
    let Some(base) = row.cells.first().map(|cell| (cell.failed, cell.runs)) else {
        return;
    };
    for cell in row.cells.iter_mut().skip(1) {
        cell.judged = judge_failures(base, (cell.failed, cell.runs), alpha);
    }
    let p: Vec<f64> = row
        .cells
        .iter()
        .filter_map(|cell| cell.judged.as_ref()?.p)
        .collect();
    let adjusted = adjust(&p, Method::Holm).unwrap_or_default();
    let judged = row.cells.iter_mut().filter_map(|cell| cell.judged.as_mut());
    for (judged, p) in judged.filter(|judged| judged.p.is_some()).zip(adjusted) {
        judged.p = Some(p);
        if p > alpha {
            judged.judgement.verdict = Verdict::Unclear;
        }
    }
}
