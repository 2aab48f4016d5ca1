//! What is asked of the index, and the one answer that is not a run.

use kdyno_model::{PlanId, Role, RunId, VariantName};

/// Which runs; an empty list selects all. Conditions of different kinds must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Of one of these plans.
    pub plans: Vec<PlanId>,
    /// One of these runs.
    pub runs: Vec<RunId>,
    /// On one of these machines.
    pub testboxes: Vec<String>,
    /// Of one of these variants.
    pub variants: Vec<VariantName>,
    /// Of this testcase.
    pub testcase: Option<String>,
    /// At most so many.
    pub limit: Option<u32>,
    /// Latest start first, instead of plan by plan in the order of execution.
    pub newest_first: bool,
    /// What each run is to bring along.
    pub scalars: Scalars,
}

/// Which figures of the selected runs are read; a list of many runs cannot afford them all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scalars {
    /// Every number, and the rich readings.
    #[default]
    All,
    /// The numbers whose role is [`Role::Headline`]; no rich reading.
    Headline,
    /// None, and no rich reading: who ran what, when, and how it ended.
    None,
}

impl Scalars {
    /// Whether a number of this role is read.
    pub(crate) fn include(self, role: Role) -> bool {
        match self {
            Self::All => true,
            Self::Headline => role == Role::Headline,
            Self::None => false,
        }
    }
}

/// One plan in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanSummary {
    /// Which plan.
    pub plan: PlanId,
    /// Its runs in the index.
    pub runs: u64,
    /// Those that gave figures.
    pub done: u64,
    /// Those whose variant is to blame: failed, timed out, out of memory.
    pub failed: u64,
    /// How many cases.
    pub cases: u64,
    /// How many variants.
    pub variants: u64,
    /// How many machines.
    pub testboxes: u64,
    /// Its testcase; the first in order of names when it has several.
    pub testcase: String,
    /// Start of its first run, nanoseconds since 1970.
    pub start_unix_ns: i64,
    /// Start of its last run, nanoseconds since 1970.
    pub last_start_unix_ns: i64,
}
