//! The one table: columns are variants, rows are metrics of a case on a testbox.
//!
//! Data only. Every renderer prints this and computes nothing of its own, so that a mail, a CSV
//! file and a page cannot disagree.

use crate::distribution::DistributionRow;
use crate::noise::History;
use kdyno_model::{Better, BootId, CaseRef, MetricName, PlanId, Role, RunId, Unit, VariantName};
use kdyno_stats::judge::{Effect, FailureJudgement, Judgement, Opinion, Verdict};
use kdyno_stats::{Change, Summary};
use std::collections::BTreeSet;

/// Variants side by side; the first column is the base of every change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The variants, in the order in which they are shown.
    pub columns: Vec<Column>,
    /// One table per case and testbox, in order of first appearance.
    pub tables: Vec<CaseTable>,
    /// What the reader must know about all tables.
    pub notes: Vec<String>,
}

/// One variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: VariantName,
    /// What it is, in one line, where the caller knows.
    pub description: Option<String>,
    /// Its runs over all tables.
    pub counts: Counts,
    /// Whether it is the base once more under another name, to see what noise looks like.
    pub control: bool,
}

/// How often a variant was run, and how independently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Measured runs that gave figures.
    pub runs: usize,
    /// Warm-up runs, which are never compared.
    pub warm_ups: usize,
    /// The boots behind the measured runs; empty when they are not known.
    pub boots: BTreeSet<BootId>,
}

/// All rows of one case on one testbox.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseTable {
    /// What was run.
    pub case: CaseRef,
    /// On which machine.
    pub testbox: String,
    /// Runs per column.
    pub counts: Vec<Counts>,
    /// The runs that observations stand for.
    pub runs: Vec<RunPlace>,
    /// How each column is set against the first.
    pub designs: Vec<Option<Design>>,
    /// Kinds of failure that occurred.
    pub failures: Vec<FailureRow>,
    /// Metrics by group, in the order in which they are shown.
    pub groups: Vec<Group>,
    /// Whole distributions of metrics that are histograms.
    pub distributions: Vec<DistributionRow>,
    /// Diagnostics left out since they do not stand out.
    pub hidden: usize,
    /// What the control columns showed.
    pub controls: Vec<ControlCheck>,
    /// What the reader must know about this table.
    pub notes: Vec<String>,
}

impl CaseTable {
    /// All rows in the order in which they are shown.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.groups.iter().flat_map(|group| &group.rows)
    }

    /// `testcase/params/testbox`; the testcase alone for values that came without runs.
    #[must_use]
    pub fn name(&self) -> String {
        if self.is_of_values() {
            return self.case.testcase.clone();
        }
        self.case.name_on(&self.testbox)
    }

    /// Whether its values came without runs, so that nobody knows of boots.
    #[must_use]
    pub fn is_of_values(&self) -> bool {
        self.case.params.is_empty() && self.testbox.is_empty()
    }
}

/// How often the base differed from itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlCheck {
    /// The control's column.
    pub column: usize,
    /// Headline metrics that differ at the level, before any adjustment, of those tested.
    pub headline: (u64, u64),
    /// The same of all other metrics.
    pub other: (u64, u64),
}

/// How often one kind of failure occurred, per column.
#[derive(Clone, Debug, PartialEq)]
pub struct FailureRow {
    /// `outcome.` and the outcome's word.
    pub name: String,
    /// Failed and attempted measured runs per column.
    pub cells: Vec<FailureCell>,
}

/// Failures of one column.
#[derive(Clone, Debug, PartialEq)]
pub struct FailureCell {
    /// Runs that failed in this way.
    pub failed: u64,
    /// Runs that were done or failed in any way.
    pub runs: u64,
    /// Difference from the first column's share in percentage points.
    pub difference: Option<f64>,
    /// What it says; `None` in the first column.
    pub judged: Option<FailureJudgement>,
}

/// Metrics that stand together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What they have in common.
    pub kind: GroupKind,
    /// The metrics.
    pub rows: Vec<Row>,
}

/// What the metrics of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupKind {
    /// What the benchmark is run for.
    Headline,
    /// Other figures of the program.
    Program,
    /// Diagnostics whose names begin alike.
    Diagnostic(String),
}

/// One metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Which.
    pub metric: MetricName,
    /// In which unit.
    pub unit: Unit,
    /// Which direction is good.
    pub better: Better,
    /// How prominent it is.
    pub role: Role,
    /// One per column; `None` where no run of the variant has the metric.
    pub cells: Vec<Option<Cell>>,
    /// What the reader must know about this row.
    pub notes: Vec<String>,
}

impl Row {
    /// Whether some cell passed the display filter against the first column.
    #[must_use]
    pub fn moved(&self) -> bool {
        self.cells.iter().flatten().any(|cell| cell.moved)
    }

    /// Whether a change of some cell was shown.
    #[must_use]
    pub fn changed(&self) -> bool {
        let verdicts = self.cells.iter().flatten().filter_map(Cell::verdict);
        verdicts.into_iter().any(Verdict::is_change)
    }

    /// The cell of a column.
    #[must_use]
    pub fn cell(&self, column: usize) -> Option<&Cell> {
        self.cells.get(column)?.as_ref()
    }

    /// The first column's cell, the base of every change.
    #[must_use]
    pub fn base(&self) -> Option<&Cell> {
        self.cells.first()?.as_ref()
    }
}

/// One metric of one variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// One value per run, in order of execution.
    pub observations: Vec<Observation>,
    /// Boots behind the values; 0 when they are not known.
    pub boots: usize,
    /// Mean, median, spread of the values.
    pub summary: Summary,
    /// Change against the first column; `None` in it, and where the two must not be compared.
    pub change: Option<Change>,
    /// Whether it passed the display filter ([`kdyno_stats::screen::moved`]). Not a verdict.
    pub moved: bool,
    /// What is said of the change; `None` where there is none.
    pub judged: Option<Box<Judged>>,
}

impl Cell {
    /// The numbers alone, in order of execution.
    #[must_use]
    pub fn values(&self) -> Vec<f64> {
        self.observations.iter().map(|o| o.value).collect()
    }

    /// How many runs gave a number.
    #[must_use]
    pub fn n(&self) -> usize {
        self.observations.len()
    }

    /// The verdict, where there is one.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        self.judged.as_ref().map(|j| j.judgement.verdict)
    }
}

/// One metric of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The number; finite.
    pub value: f64,
    /// Position of the run in [`CaseTable::runs`].
    pub run: u32,
}

/// Where a run stood: values are paired by plan and block, spread over boots, and drift along
/// the order.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPlace {
    /// The run.
    pub run: RunId,
    /// The boot that it was in, where it is known.
    pub boot: Option<BootId>,
    /// The kernel that ran it.
    pub kernel_release: String,
    /// The build under test, where builds differ.
    pub build_id: Option<String>,
    /// The plan that `block` and `order` count in.
    pub plan: PlanId,
    /// Block of the plan.
    pub block: u32,
    /// Position in the plan.
    pub order: u32,
    /// Start of the run, nanoseconds since 1970.
    pub start_unix_ns: i64,
}

/// What was randomised between two columns, and so what counts as one replicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicate {
    /// A run: the sides share their boots.
    Run,
    /// A boot: the sides have other kernels, or none of their boots in common.
    Boot,
}

/// How two columns are set against each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// What counts as one.
    pub replicate: Replicate,
    /// Whether most runs have a partner in the same block of the same plan.
    pub paired: bool,
    /// Whether all runs of one side came before all of the other.
    pub in_turn: bool,
    /// What forbids a claim, whatever the figures say.
    pub doubts: Vec<kdyno_stats::judge::Reason>,
}

/// What is said of one change.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Estimate, error, method; `None` where there are too few values for an error.
    pub effect: Option<Effect>,
    /// Interval of the change at the comparison's level, as it is shown.
    pub interval: Option<(f64, f64)>,
    /// p-value adjusted for the family that the metric is judged in.
    pub adjusted_p: Option<f64>,
    /// Verdict and reasons.
    pub judgement: Judgement,
    /// What counts as one of [`Effect::n`].
    pub replicate: Replicate,
    /// The smallest change that would have shown, for headline metrics.
    pub smallest_visible: Option<f64>,
    /// Probability with which the interval covers.
    pub level: f64,
    /// What ranks say, for headline metrics of enough runs.
    pub opinion: Option<Opinion>,
    /// What history said, where it was used.
    pub history: Option<History>,
    /// What lkp-tests would have said.
    pub lkp_rule: bool,
}
