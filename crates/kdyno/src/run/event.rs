//! What happens while a plan is carried out, as typed events: the one source of the progress
//! line, of the log lines in a pipe, of `--json` and of the record in the plan's directory.
//! docs/events.md describes them for those who read them.

use kdyno_model::{Better, MetricName, PlanId, RunId, RunRow, Trial, Unit, VariantName};
use kdyno_testbox::doctor::Finding;
use serde::Serialize;

/// Version of the events' layout: raised when a field changes its meaning or goes away, not when
/// events or fields are added.
pub(super) const SCHEMA: u32 = 1;

/// One thing that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(super) enum Event {
    /// The first event of a session.
    StreamBegun {
        /// [`SCHEMA`].
        schema: u32,
        /// The program's version.
        kdyno: &'static str,
    },
    /// Something that the user should know.
    Note {
        /// What.
        text: String,
    },
    /// Something that went wrong and loses no run.
    Warning {
        /// What.
        text: String,
    },
    /// The machine cannot run a case.
    Skipped {
        /// The case's name.
        case: String,
        /// Which need is not met.
        reason: String,
    },
    /// What makes noise on the machine, before anything is measured.
    Doctor {
        /// Notes and warnings, the worst first.
        findings: Vec<Finding>,
    },
    /// Trials follow.
    PlanBegun(PlanBegun),
    /// A trial is about to be measured.
    TrialBegun(TrialPlace),
    /// A trial was measured and its run is sealed.
    TrialEnded(TrialEnded),
    /// The runs were looked at (`--until-decided`).
    Look(Look),
    /// Why the trials of a plan with looks ended.
    Decision {
        /// Measured runs per case and variant.
        runs: u32,
        /// `decided`, `out-of-time`, or nothing when all planned runs were done.
        stopped: Option<&'static str>,
        /// The same for people, with what is undecided.
        text: String,
    },
    /// Runs that failed alike.
    Failure(Failure),
    /// The session of a plan is over, and the machine is as it was.
    PlanEnded(PlanEnded),
    /// kdyno could not do its work.
    Error {
        /// Why.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// The last event of a session.
    StreamEnded {
        /// The exit status that the process is about to end with.
        exit_status: u8,
    },
}

/// A plan as its session begins.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PlanBegun {
    pub plan: PlanId,
    /// The job file's name, or the commands.
    pub job: String,
    pub testbox: String,
    pub kernel: String,
    /// CPUs that shares are taken of.
    pub cpus: u32,
    /// The columns; the first is the base.
    pub variants: Vec<VariantName>,
    pub cases: usize,
    /// Measured runs per case and variant, the most with `--until-decided`.
    pub runs: u32,
    /// Warm-up runs per case and variant.
    pub warm_up: u32,
    /// What the order was drawn from.
    pub seed: u64,
    /// Trials of the plan.
    pub trials: usize,
    /// Those of them that this session is to run.
    pub todo: usize,
    /// How long that should take, where each trial says how long it runs.
    pub expected_seconds: Option<f64>,
    pub until_decided: bool,
    /// Whether an earlier session began it.
    pub resumed: bool,
    /// Where everything is kept.
    pub directory: String,
}

/// Which trial, and where in the session and plan it stands.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TrialPlace {
    /// Position in this session, from 1.
    pub number: usize,
    /// Trials of this session; fewer are run when a look decides.
    pub of: usize,
    /// Position in the plan, from 0.
    pub index: u32,
    /// Block of the plan, from 0.
    pub block: u32,
    /// The case's name.
    pub case: String,
    pub variant: VariantName,
    /// The n-th measured run of this case and variant, from 0.
    pub iteration: u32,
    /// Kept and shown, never compared.
    pub warm_up: bool,
}

impl TrialPlace {
    pub fn of(trial: &Trial, number: usize, of: usize) -> Self {
        Self {
            number,
            of,
            index: trial.index,
            block: trial.block,
            case: trial.case.name(),
            variant: trial.variant.clone(),
            iteration: trial.iteration,
            warm_up: trial.warm_up,
        }
    }
}

/// A figure of a run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figure {
    pub metric: MetricName,
    /// Finite.
    pub value: f64,
    /// Empty for a plain count.
    pub unit: Unit,
    pub better: Better,
}

/// What became of a trial.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TrialEnded {
    #[serde(flatten)]
    pub place: TrialPlace,
    pub run: RunId,
    /// The word that `kdyno list` has for it: `done`, `failed`, `timed-out`, ...
    pub outcome: &'static str,
    /// Why, unless it is done.
    pub reason: Option<String>,
    /// The headline figures, in the order of the program's rules.
    pub headline: Vec<Figure>,
    /// Length of the measured window.
    pub seconds: f64,
}

impl TrialEnded {
    pub fn of(row: &RunRow, place: TrialPlace) -> Self {
        let figure = |scalar: &kdyno_model::Scalar| Figure {
            metric: scalar.metric.clone(),
            value: scalar.value,
            unit: scalar.unit.clone(),
            better: scalar.better,
        };
        let headline = row
            .scalars
            .iter()
            .filter(|scalar| scalar.role == kdyno_model::Role::Headline);
        Self {
            place,
            run: row.run_id,
            outcome: row.outcome.word(),
            reason: (!row.outcome.is_done()).then(|| row.outcome.to_string()),
            headline: headline.map(figure).collect(),
            #[expect(
                clippy::cast_precision_loss,
                reason = "below 2^53 ns, which are months, nothing is lost"
            )]
            seconds: row.window_ns as f64 / 1e9,
        }
    }
}

/// Where the headline metrics stand after so many runs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Look {
    /// Measured runs per case and variant.
    pub runs: u32,
    /// Metrics that more runs would not change.
    pub settled: usize,
    /// All of them.
    pub metrics: usize,
    pub standings: Vec<MetricStanding>,
}

/// Where one headline metric stands.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MetricStanding {
    /// `testcase/params/testbox`.
    pub table: String,
    pub metric: String,
    /// What is set against the first variant.
    pub variant: String,
    /// `regressed`, `improved`, `changed`, `unchanged` or `unclear`.
    pub verdict: &'static str,
    pub reasons: Vec<String>,
    pub settled: bool,
}

/// Runs of one case and variant that failed in the same way.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Failure {
    /// The case's name.
    pub case: String,
    pub variant: VariantName,
    /// How many.
    pub runs: usize,
    pub outcome: &'static str,
    pub reason: String,
    /// What to do, where that is known.
    pub hint: Option<String>,
    /// The last lines that the first of them printed.
    pub last_words: Vec<String>,
    /// The first of them.
    pub run: RunId,
}

/// How the session of a plan ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Ending {
    /// Every trial is done, or the looks decided.
    Finished,
    /// The same, and runs failed.
    Failures,
    /// The user ended it.
    Interrupted,
    /// Nobody reads the events any more.
    ReaderGone,
}

/// The end of a plan's session.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PlanEnded {
    pub plan: PlanId,
    pub ending: Ending,
    /// Trials that this session ran to their end.
    pub trials: usize,
    /// Runs of the plan that failed, of all its sessions.
    pub failed: usize,
    /// From the first trial's begin to here.
    pub seconds: f64,
    /// Where everything is kept.
    pub directory: String,
    /// What prints the result.
    pub result: String,
}
