//! The one table: columns are variants, rows are metrics of a case on a testbox.
//!
//! Data only. Every renderer prints this and computes nothing of its own, so that a mail, a CSV
//! file and a page cannot disagree. It carries no verdict.

use kdyno_model::{Better, BootId, CaseRef, MetricName, PlanId, Role, RunId, Unit, VariantName};
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
    /// Kinds of failure that occurred.
    pub failures: Vec<FailureRow>,
    /// Metrics by group, in the order in which they are shown.
    pub groups: Vec<Group>,
    /// Diagnostics left out since none of their cells passed the display filter.
    pub hidden: usize,
    /// What the reader must know about this table.
    pub notes: Vec<String>,
}

impl CaseTable {
    /// All rows in the order in which they are shown.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.groups.iter().flat_map(|group| &group.rows)
    }

    /// `testcase/params/testbox`.
    #[must_use]
    pub fn name(&self) -> String {
        self.case.name_on(&self.testbox)
    }
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailureCell {
    /// Runs that failed in this way.
    pub failed: u64,
    /// Runs that were done or failed in any way.
    pub runs: u64,
    /// Difference from the first column's share in percentage points.
    pub difference: Option<f64>,
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
    /// Mean, median, spread of the values.
    pub summary: Summary,
    /// Change against the first column; `None` in it, and where the two must not be compared.
    pub change: Option<Change>,
    /// Whether it passed the display filter ([`kdyno_stats::screen::moved`]). Not a verdict.
    pub moved: bool,
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

    /// The boots behind the numbers; empty when they are not known.
    #[must_use]
    pub fn boots(&self) -> BTreeSet<&BootId> {
        let boots = self.observations.iter().map(|o| o.boot.as_ref());
        boots.flatten().collect()
    }
}

/// One metric of one run, and where the run stood: values are paired by plan and block, spread
/// over boots, and drift along the order.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The number; finite.
    pub value: f64,
    /// The run that gave it.
    pub run: RunId,
    /// The boot that the run was in, where it is known.
    pub boot: Option<BootId>,
    /// The plan that `block` and `order` count in.
    pub plan: PlanId,
    /// Block of the plan.
    pub block: u32,
    /// Position in the plan.
    pub order: u32,
    /// Start of the run, nanoseconds since 1970.
    pub start_unix_ns: i64,
}
