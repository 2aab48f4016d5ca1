//! A run as the index has it: everything that `list` and `compare` need, and no raw data.

use crate::{
    Better, BootId, CaseRef, ClockKind, MetricName, Origin, Outcome, PlanId, Reading, Role, RunId,
    SessionId, Unit, VariantName,
};
use serde::{Deserialize, Serialize};

/// One run, flat. Derived from a [`crate::RunRecord`] and never the only copy of anything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// Its identity.
    pub run_id: RunId,
    /// Measured or imported.
    pub origin: Origin,
    /// The plan it belongs to.
    pub plan: PlanId,
    /// Position in the plan.
    pub index: u32,
    /// Block of the plan.
    pub block: u32,
    /// Position within the block.
    pub order: u32,
    /// What was run.
    pub case: CaseRef,
    /// What was under test.
    pub variant: VariantName,
    /// The machine.
    pub testbox: String,
    /// The n-th measured run of this case and variant.
    pub iteration: u32,
    /// A warm-up: shown, never compared.
    pub warm_up: bool,
    /// The build under test, where builds differ.
    pub build_id: Option<String>,
    /// The boot that ran it.
    pub boot_id: Option<BootId>,
    /// The process that ran it.
    pub session: Option<SessionId>,
    /// The kernel that ran it.
    pub kernel_release: String,
    /// Start, nanoseconds since 1970.
    pub start_unix_ns: i64,
    /// Length of the measured window, nanoseconds.
    pub window_ns: u64,
    /// The clock of its figures.
    pub clock: ClockKind,
    /// What produced its figures; two instruments are never compared.
    pub instrument: String,
    /// How it ended.
    pub outcome: Outcome,
    /// One number per metric, in the order in which the program's rules name them.
    pub scalars: Vec<Scalar>,
    /// Readings that one number does not exhaust: samples, histograms, summaries.
    pub rich: Vec<Reading>,
}

/// One metric of one run as one number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scalar {
    /// What was measured.
    pub metric: MetricName,
    /// In which unit.
    pub unit: Unit,
    /// Which direction is good.
    pub better: Better,
    /// How prominent it is.
    pub role: Role,
    /// The number; finite.
    pub value: f64,
}
