//! The plan: every trial in the order in which it will run.
//!
//! Each case's warm-ups come right before its first measured block. Measured runs come in blocks: a block runs each
//! variant of one case once, in an order drawn anew, so that drift of the machine meets all
//! variants alike and alternation cannot fall in step with anything periodic (statistics: drift
//! of two standard deviations over a session makes 34-87 % false alarms when variants run one
//! after the other, and strict alternation is no better against a periodic disturbance).

use crate::jobfile::CaseList;
use kdyno_model::{BoxFacts, CaseId, ExtractRules, PlanId, Trial, VariantName, Work};
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A plan as it is kept on disk: enough to finish it in another session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of this layout.
    pub format: u32,
    /// Its identity.
    pub id: PlanId,
    /// When it was made, nanoseconds since 1970.
    pub created_unix_ns: i64,
    /// What the job was called: its file name, or the commands.
    pub job: String,
    /// The machine.
    pub testbox: String,
    /// Its kernel when the plan was made.
    pub kernel_release: String,
    /// Its host name, whatever tables call it: a plan is finished where it was begun.
    pub host: String,
    /// Its CPUs, which shares were taken of.
    pub cpus: u32,
    /// The seed that the order was drawn from.
    pub seed: u64,
    /// Measured runs per case and variant.
    pub runs: u32,
    /// Warm-up runs per case and variant.
    pub warm_up: u32,
    /// The columns, the first is the base.
    pub variants: Vec<VariantName>,
    /// What each column changes, in the same order.
    pub descriptions: Vec<String>,
    /// The cases: their canonical text and how their output is read.
    pub cases: BTreeMap<CaseId, PlanCase>,
    /// Every trial, in order.
    pub trials: Vec<Trial>,
    /// Cases that this machine cannot run, with the reason.
    pub skipped: Vec<String>,
    /// The column that is the base once more, to see what noise looks like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<VariantName>,
    /// When the runs are looked at and may end the plan; they were planned, so that the verdicts
    /// can be held to the levels of these looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looks: Option<Looks>,
}

/// Planned looks at the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looks {
    /// Runs per case and variant between two looks, at least 1.
    pub every: u32,
    /// Most runs per case and variant; the last look is there.
    pub most: u32,
    /// Most seconds that a session runs for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_seconds: Option<u64>,
}

impl Looks {
    /// Runs at each look, ascending; the last is `most`.
    #[must_use]
    pub fn runs(&self) -> Vec<u32> {
        let every = self.every.max(1);
        let mut runs: Vec<u32> = (1..=self.most / every).map(|look| look * every).collect();
        if runs.last() != Some(&self.most) {
            runs.push(self.most);
        }
        runs
    }
}

/// What a plan keeps of a case beside its trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanCase {
    /// The canonical text, of which the case's id is the hash.
    pub canonical: String,
    /// How its output is read.
    pub rules: ExtractRules,
}

/// The version of [`Plan`] that this code writes.
pub const PLAN_FORMAT: u32 = 1;

/// How a plan is drawn.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Its identity.
    pub id: PlanId,
    /// When, nanoseconds since 1970.
    pub created_unix_ns: i64,
    /// What the job is called.
    pub job: String,
    /// The machine's host name.
    pub host: String,
    /// Seed of the order.
    pub seed: u64,
    /// Measured runs per case and variant.
    pub runs: u32,
    /// Warm-up runs per case and variant.
    pub warm_up: u32,
    /// Whether the base is run once more in every block under another name.
    pub control: bool,
    /// When the runs are looked at.
    pub looks: Option<Looks>,
}

/// A case with its work per variant.
pub struct PlannedCase {
    /// Position in the case list.
    pub case: usize,
    /// Work per variant, in their order.
    pub work: Vec<Work>,
    /// Rules for its output.
    pub rules: ExtractRules,
}

/// Draws the plan.
#[must_use]
pub fn draw(
    list: &CaseList,
    planned: &[PlannedCase],
    skipped: Vec<String>,
    facts: &BoxFacts,
    options: &PlanOptions,
) -> Plan {
    let mut variants = list.variants.clone();
    let mut descriptions = list.descriptions.clone();
    let control = options.control.then(|| control_of(&variants)).flatten();
    if let Some(control) = &control {
        variants.push(control.clone());
        descriptions.push("the first variant once more".to_owned());
    }
    let trials = trials(list, planned, &variants, facts, options);
    let cases = planned.iter().map(|planned| kept(list, planned)).collect();
    Plan {
        format: PLAN_FORMAT,
        id: options.id,
        created_unix_ns: options.created_unix_ns,
        job: options.job.clone(),
        testbox: facts.testbox.clone(),
        kernel_release: facts.kernel_release.clone(),
        host: options.host.clone(),
        cpus: facts.cpus,
        seed: options.seed,
        runs: options.runs,
        warm_up: options.warm_up,
        variants,
        descriptions,
        cases,
        trials,
        skipped,
        control,
        looks: options.looks,
    }
}

fn kept(list: &CaseList, planned: &PlannedCase) -> (CaseId, PlanCase) {
    let case = &list.cases[planned.case];
    let kept = PlanCase {
        canonical: case.canonical.clone(),
        rules: planned.rules.clone(),
    };
    (case.reference.id.clone(), kept)
}

/// Every trial in order: the cases in an order drawn per iteration, the variants of a block in one
/// drawn per block.
fn trials(
    list: &CaseList,
    planned: &[PlannedCase],
    variants: &[VariantName],
    facts: &BoxFacts,
    options: &PlanOptions,
) -> Vec<Trial> {
    let mut rng = Pcg64::seed_from_u64(options.seed);
    let mut trials = Vec::new();
    let mut block = 0u32;
    let mut push_block = |rng: &mut Pcg64, planned: &PlannedCase, iteration: u32, warm_up: bool| {
        let mut order: Vec<usize> = (0..variants.len()).collect();
        order.shuffle(rng);
        for (position, variant) in order.into_iter().enumerate() {
            trials.push(Trial {
                plan: options.id,
                index: u32::try_from(trials.len()).unwrap_or(u32::MAX),
                block,
                order: u32::try_from(position).unwrap_or(u32::MAX),
                case: list.cases[planned.case].reference.clone(),
                variant: variants[variant].clone(),
                testbox: facts.testbox.clone(),
                iteration,
                warm_up,
                build_id: None,
                boot_id: None,
                session: None,
                // The control does what the base does.
                work: planned
                    .work
                    .get(variant)
                    .unwrap_or(&planned.work[0])
                    .clone(),
            });
        }
        block += 1;
    };
    for iteration in 0..options.runs {
        let mut cases: Vec<&PlannedCase> = planned.iter().collect();
        cases.shuffle(&mut rng);
        for planned in cases {
            if iteration == 0 {
                for warm_up in 0..options.warm_up {
                    push_block(&mut rng, planned, warm_up, true);
                }
            }
            push_block(&mut rng, planned, iteration, false);
        }
    }
    trials
}

/// A name for the base once more that no variant has; nothing without a base.
fn control_of(variants: &[VariantName]) -> Option<VariantName> {
    let base = variants.first()?;
    let name = |n: u32| match n {
        1 => VariantName(format!("{base}.aa")),
        n => VariantName(format!("{base}.aa{n}")),
    };
    (1..).map(name).find(|name| !variants.contains(name))
}
