//! A trial and the work it does, resolved down to what a testbox executes.

use crate::{BootId, CaseRef, PlanId, SessionId, VariantName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Case x variant x testbox with its place in the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The plan it belongs to.
    pub plan: PlanId,
    /// Its position in the plan, from 0: the order of execution.
    pub index: u32,
    /// The block in which the order of variants was drawn, from 0; warm-ups have their own.
    pub block: u32,
    /// Its position within the block, from 0.
    pub order: u32,
    /// What is run.
    pub case: CaseRef,
    /// What is under test.
    pub variant: VariantName,
    /// The machine, by its name in tables.
    pub testbox: String,
    /// The n-th measured run of this case and variant, from 0.
    pub iteration: u32,
    /// A warm-up: run, kept and shown, never compared.
    pub warm_up: bool,
    /// The build under test, where builds differ.
    pub build_id: Option<String>,
    /// The boot that ran it; filled in when it runs.
    pub boot_id: Option<BootId>,
    /// The `kdyno run` process that ran it; filled in when it runs.
    pub session: Option<SessionId>,
    /// What to execute.
    pub work: Work,
}

/// A setting of the machine: key and value as the job wrote them, such as `thp.enabled` and
/// `always`, `sysctl.vm.swappiness` and `10`, `sysfs./sys/block/vda/queue/scheduler` and `none`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Setting {
    /// Which setting.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// How a program is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    /// Handed to `/bin/sh -c`.
    Shell(String),
    /// Executed as it is; the first word is the program.
    Argv(Vec<String>),
    /// One of kdyno's own workloads: `kdyno workload NAME ARGS` on the testbox.
    Workload(Vec<String>),
}

/// What runs around the measured program of a trial, outside its window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Around {
    /// Commands before the server, in order; one that fails fails the trial.
    #[serde(default)]
    pub setup: Vec<Vec<String>>,
    /// What the program talks to.
    #[serde(default)]
    pub server: Option<Server>,
    /// Commands once the server is ready, in order.
    #[serde(default)]
    pub load: Vec<Vec<String>>,
}

/// A program that serves the measured one, started before it and ended after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// How it is started; the first word is the program.
    pub words: Vec<String>,
    /// What tells that it can be used.
    pub ready: Ready,
}

/// What tells that a server can be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ready {
    /// This text in its output.
    Line(String),
    /// Something listens on this TCP port of the loopback address.
    Port(u16),
}

/// How often a program is executed within one trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rounds {
    /// At most so often; at least once in any case.
    pub at_most: u64,
    /// No further round begins after so many milliseconds.
    pub until_ms: Option<u64>,
}

/// A function of the kernel whose calls are timed during a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionProbe {
    /// Its name, as in `/proc/kallsyms`.
    pub function: String,
    /// Which calls count, as the kernel's event filters say it (`arg3 > 100`); all when absent.
    pub filter: Option<String>,
}

/// What a trial executes. Percentages and sizes are resolved: two variants of a case differ
/// only where the job says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The catalog program.
    pub program: String,
    /// How it is started.
    pub command: Command,
    /// What produced the figures: readings of two instruments are never compared.
    pub instrument: String,
    /// Variables added to the environment.
    pub environment: BTreeMap<String, String>,
    /// CPUs it may use, in the kernel's list form (`0-3,8`); all when absent.
    pub affinity: Option<String>,
    /// Settings of the machine, in the order in which they are made.
    pub settings: Vec<Setting>,
    /// What runs before and beside it.
    #[serde(default)]
    pub around: Around,
    /// Working directory; kdyno's own when absent.
    pub directory: Option<String>,
    /// How often it is executed.
    pub rounds: Rounds,
    /// When the whole trial is given up, milliseconds.
    pub timeout_ms: u64,
    /// Monitors that watch it, by name.
    pub monitors: Vec<String>,
    /// Functions of the kernel that are timed meanwhile.
    #[serde(default)]
    pub functions: Vec<FunctionProbe>,
    /// Parameters for the extraction rules and for people, by name.
    pub parameters: BTreeMap<String, String>,
}
