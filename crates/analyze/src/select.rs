//! Which runs and which metrics a question is about.
//!
//! People give one list of words; what a word means is decided by what it matches: a plan or run
//! id (whole, or its last eight digits), a variant, a testbox, a glob over cases
//! (`testcase/params`), or else a glob over metrics. Words of one kind widen the selection,
//! kinds narrow it. A word that matches nothing is an error, never an empty table.

use globset::{Glob, GlobMatcher};
use kdyno_model::{MetricName, PlanId, RunId, RunRow, VariantName, nearest};
use std::collections::{BTreeMap, BTreeSet};

/// Names that a hint offers.
const OFFERED: usize = 3;

/// Why a selection cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// A word names nothing that is there.
    #[error("`{pattern}` matches no plan, run, variant, testbox, case or metric\nhint: {hint}")]
    Unmatched {
        /// The word.
        pattern: String,
        /// Names close to it, or where names are listed.
        hint: String,
    },
    /// A word is not a valid glob.
    #[error(
        "`{pattern}` is not a valid pattern: {reason}\nhint: `*` stands for any text, `[` begins a set and needs a `]`"
    )]
    BadGlob {
        /// The word.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Globs over metric names; a name passes when one of them matches.
#[derive(Clone, Debug)]
pub struct MetricGlobs(Vec<GlobMatcher>);

impl MetricGlobs {
    /// Compiles `patterns`.
    ///
    /// # Errors
    /// [`SelectError::BadGlob`] for the first pattern that is none.
    pub fn new<S: AsRef<str>>(patterns: &[S]) -> Result<Self, SelectError> {
        let globs = patterns.iter().map(|p| glob(p.as_ref()));
        Ok(Self(globs.collect::<Result<_, _>>()?))
    }

    /// Whether one of the globs matches `name`.
    #[must_use]
    pub fn matches(&self, name: &MetricName) -> bool {
        self.is_match(name.as_str())
    }

    /// Whether one of the globs matches another kind of name.
    #[must_use]
    pub fn is_match(&self, name: &str) -> bool {
        self.0.iter().any(|glob| glob.is_match(name))
    }
}

/// A parsed selection; what its words name stands in the order of the words.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    plans: Vec<PlanId>,
    runs: Vec<RunId>,
    variants: Vec<VariantName>,
    testboxes: Vec<String>,
    cases: Vec<GlobMatcher>,
    metrics: Vec<GlobMatcher>,
}

impl Selection {
    /// Reads `patterns`, each by the first kind of which it matches something in `rows`.
    ///
    /// # Errors
    /// [`SelectError`] for the first word that matches nothing or is not a valid glob.
    pub fn parse<S: AsRef<str>>(patterns: &[S], rows: &[RunRow]) -> Result<Self, SelectError> {
        let mut selection = Self::default();
        for pattern in patterns {
            selection.add(pattern.as_ref(), rows)?;
        }
        Ok(selection)
    }

    /// The rows that it selects, in their order. When no word selects runs, the newest plan's.
    #[must_use]
    pub fn rows<'a>(&self, rows: &'a [RunRow]) -> Vec<&'a RunRow> {
        if self.selects_runs() {
            return rows.iter().filter(|row| self.contains(row)).collect();
        }
        let newest = rows.iter().map(|row| row.plan).max();
        rows.iter().filter(|row| Some(row.plan) == newest).collect()
    }

    /// The metric globs among its words; `None` when all metrics are meant.
    #[must_use]
    pub fn metrics(&self) -> Option<MetricGlobs> {
        (!self.metrics.is_empty()).then(|| MetricGlobs(self.metrics.clone()))
    }

    /// The plans that words name, in the order of the words, each once.
    #[must_use]
    pub fn plans_named(&self) -> &[PlanId] {
        &self.plans
    }

    /// The variants that words name, in the order of the words, each once.
    #[must_use]
    pub fn variants_named(&self) -> &[VariantName] {
        &self.variants
    }

    fn add(&mut self, pattern: &str, rows: &[RunRow]) -> Result<(), SelectError> {
        let plan = PlanId::parse(pattern);
        let plans = rows.iter().map(|row| &row.plan);
        if extend(&mut self.plans, plans, |id| {
            Some(*id) == plan || id.short() == pattern
        }) {
            return Ok(());
        }
        let run = RunId::parse(pattern);
        let runs = rows.iter().map(|row| &row.run_id);
        if extend(&mut self.runs, runs, |id| {
            Some(*id) == run || id.short() == pattern
        }) {
            return Ok(());
        }
        let variants = rows.iter().map(|row| &row.variant);
        if extend(&mut self.variants, variants, |name| {
            name.as_str() == pattern
        }) {
            return Ok(());
        }
        let testboxes = rows.iter().map(|row| &row.testbox);
        if extend(&mut self.testboxes, testboxes, |name| name == pattern) {
            return Ok(());
        }
        let glob = glob(pattern)?;
        if rows.iter().any(|row| is_case(&glob, row)) {
            self.cases.push(glob);
        } else if all_metrics(rows).any(|name| glob.is_match(name)) {
            self.metrics.push(glob);
        } else {
            return Err(unmatched(pattern, rows));
        }
        Ok(())
    }

    fn selects_runs(&self) -> bool {
        !(self.plans.is_empty()
            && self.runs.is_empty()
            && self.variants.is_empty()
            && self.testboxes.is_empty()
            && self.cases.is_empty())
    }

    fn contains(&self, row: &RunRow) -> bool {
        (self.plans.is_empty() || self.plans.contains(&row.plan))
            && (self.runs.is_empty() || self.runs.contains(&row.run_id))
            && (self.variants.is_empty() || self.variants.contains(&row.variant))
            && (self.testboxes.is_empty() || self.testboxes.contains(&row.testbox))
            && (self.cases.is_empty() || self.cases.iter().any(|glob| is_case(glob, row)))
    }
}

/// Adds those of `found` that are `wanted` and not yet named, and says whether one was wanted.
fn extend<'a, T: Clone + Ord + 'a>(
    named: &mut Vec<T>,
    found: impl Iterator<Item = &'a T>,
    wanted: impl Fn(&T) -> bool,
) -> bool {
    let matching: BTreeSet<&T> = found.filter(|item| wanted(item)).collect();
    for item in &matching {
        if !named.contains(item) {
            named.push((*item).clone());
        }
    }
    !matching.is_empty()
}

/// The rows in their order, with the runs of `plans` set apart so that one plan can be compared
/// with another: a variant name that more than one of `plans` has becomes `name@` and the short
/// id of the plan in the rows of these plans. With fewer than two plans nothing changes.
#[must_use]
pub fn set_apart(mut rows: Vec<RunRow>, plans: &[PlanId]) -> Vec<RunRow> {
    let plans: BTreeSet<PlanId> = plans.iter().copied().collect();
    let mut having: BTreeMap<VariantName, BTreeSet<PlanId>> = BTreeMap::new();
    for row in rows.iter().filter(|row| plans.contains(&row.plan)) {
        let plans = having.entry(row.variant.clone()).or_default();
        plans.insert(row.plan);
    }
    having.retain(|_, plans| plans.len() > 1);
    for row in &mut rows {
        if plans.contains(&row.plan) && having.contains_key(&row.variant) {
            row.variant = VariantName(format!("{}@{}", row.variant, row.plan.short()));
        }
    }
    rows
}

/// Whether a case glob means this row: `testcase/params`, or the testcase alone.
fn is_case(glob: &GlobMatcher, row: &RunRow) -> bool {
    glob.is_match(row.case.name()) || glob.is_match(&row.case.testcase)
}

fn glob(pattern: &str) -> Result<GlobMatcher, SelectError> {
    Glob::new(pattern)
        .map(|glob| glob.compile_matcher())
        .map_err(|error| SelectError::BadGlob {
            pattern: pattern.to_owned(),
            reason: error.kind().to_string(),
        })
}

fn all_metrics(rows: &[RunRow]) -> impl Iterator<Item = &str> {
    let scalars = rows.iter().flat_map(|row| &row.scalars);
    scalars.map(|scalar| scalar.metric.as_str())
}

fn unmatched(pattern: &str, rows: &[RunRow]) -> SelectError {
    let mut names: BTreeSet<String> = all_metrics(rows).map(str::to_owned).collect();
    for row in rows {
        names.extend([
            row.plan.short(),
            row.run_id.short(),
            row.variant.to_string(),
            row.testbox.clone(),
            row.case.testcase.clone(),
            row.case.name(),
        ]);
    }
    let near = near_names(pattern, &names);
    let hint = if near.is_empty() {
        "`kdyno list` shows what there is".to_owned()
    } else {
        format!("did you mean `{}`?", near.join("`, `"))
    };
    SelectError::Unmatched {
        pattern: pattern.to_owned(),
        hint,
    }
}

/// A few of `names` that somebody may have meant: those that contain the word, then the nearest.
fn near_names<'a>(wanted: &str, names: &'a BTreeSet<String>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let stem = wanted.trim_matches('*');
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let contains = |name: &&str| !stem.is_empty() && name.to_lowercase().contains(stem);
    let mut near: Vec<&str> = names.iter().copied().filter(contains).collect();
    near.extend(nearest(stem, &names).filter(|name| !contains(name)));
    near.truncate(OFFERED);
    near
}
