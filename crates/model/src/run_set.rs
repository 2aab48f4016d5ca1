//! What is remembered of how much metrics vary.

use crate::{BootId, CaseId, ClockKind, MetricName, PlanId, Unit, VariantName};

/// The measured runs of one variant of one case in one boot of one plan, boiled down to how much
/// each metric varied.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSet {
    /// The plan.
    pub plan: PlanId,
    /// The machine.
    pub testbox: String,
    /// The case.
    pub case: CaseId,
    /// The variant.
    pub variant: VariantName,
    /// The kernel that ran it.
    pub kernel_release: String,
    /// The build under test, where builds differ.
    pub build_id: Option<String>,
    /// The boot, where it is known.
    pub boot_id: Option<BootId>,
    /// The clock of the figures.
    pub clock: ClockKind,
    /// What produced them.
    pub instrument: String,
    /// Start of its first run, nanoseconds since 1970.
    pub start_unix_ns: i64,
    /// One per metric.
    pub figures: Vec<SetFigure>,
}

/// How one metric varied within a run set.
#[derive(Clone, Debug, PartialEq)]
pub struct SetFigure {
    /// The metric.
    pub metric: MetricName,
    /// Its unit.
    pub unit: Unit,
    /// Whether mean and variances are of natural logarithms; else of the values.
    pub logs: bool,
    /// Runs that gave a value.
    pub runs: u32,
    /// Their mean.
    pub mean: f64,
    /// Their variance; `None` for one run.
    pub variance: Option<f64>,
    /// What varies when variant and block are taken out; `None` without blocks of two variants.
    pub residual: Option<Residual>,
}

/// A variance with the share of its degrees of freedom that one run set stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residual {
    /// Residual mean square of variants by blocks.
    pub variance: f64,
    /// Degrees of freedom of the plan's table over the run sets that share them.
    pub df: f64,
}
