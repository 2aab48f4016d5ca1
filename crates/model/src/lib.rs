//! The nouns of kdyno, shared by every other crate.
//!
//! A *case* is one point of a job's axes, a *variant* is what is under test (a column of the
//! table), a *trial* is case x variant x testbox with its place in the plan, and a *run record*
//! is what became of a trial. The crate holds data, the two traits that other machines and
//! later tracers implement, and [`nearest`] for words that were misspelt; it does no I/O and
//! knows no formula of a figure.
#![warn(missing_docs)]

mod case;
mod facts;
mod ids;
mod measurement;
mod metric;
mod monitor;
mod near;
mod outcome;
mod reading;
mod record;
mod row;
mod rules;
mod run_set;
mod testbox;
mod trial;
mod values;

pub use case::CaseRef;
pub use facts::BoxFacts;
pub use ids::{BootId, CaseId, HomeId, PlanId, RunId, SessionId, VariantName};
pub use measurement::{Measurement, MonitorOverhead, Round, Usage, Window};
pub use metric::{Better, InvalidName, MetricName, Role, Unit};
pub use monitor::{Column, ColumnKind, Monitor, SeriesSet};
pub use near::nearest;
pub use outcome::{FailReason, Outcome, Stage};
pub use reading::{Bucket, ClockKind, Histogram, InvalidValue, Reading, Value};
pub use record::{Origin, RunRecord};
pub use row::{RunRow, Scalar};
pub use rules::{Derive, ExtractRules, LineRule, MetricRule, OutputStream, Quantity, Reduce};
pub use run_set::{Residual, RunSet, SetFigure};
pub use testbox::{Preparation, Recovery, Testbox, TestboxError};
pub use trial::{Around, Command, FunctionProbe, Ready, Rounds, Server, Setting, Trial, Work};
pub use values::{BlockValue, ValueRow, ValueTable};
