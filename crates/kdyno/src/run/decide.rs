//! `--until-decided`: looks at the runs after every few blocks, and ends the plan when each
//! headline metric is settled or the time is up.

use super::event::{Event, Look, MetricStanding};
use super::events::Events;
use super::progress::duration_text;
use crate::compare;
use crate::index;
use anyhow::Context as _;
use kdyno_analyze::looks::{Standing, runs_done, standings};
use kdyno_analyze::noise::NoiseMemory;
use kdyno_job::plan::{Looks, Plan};
use kdyno_model::RunRow;
use kdyno_rundir::PlanDir;
use kdyno_stats::judge::Verdict;
use serde_json::json;
use std::time::{Duration, Instant};

/// Undecided metrics named at the end before the rest is only counted.
const NAMED: usize = 5;

/// The looks of a plan in one session.
pub(super) struct Decider {
    plan: Plan,
    looks: Looks,
    history: NoiseMemory,
    rows: Vec<RunRow>,
    begun: Instant,
    trials: u32,
    /// Looks of earlier sessions, as the plan's directory keeps them.
    earlier: Vec<serde_json::Value>,
    seen: Vec<Seen>,
    stopped: Option<Stopped>,
}

/// What one look saw.
struct Seen {
    runs: u32,
    standings: Vec<Standing>,
}

fn told(standing: &Standing) -> MetricStanding {
    MetricStanding {
        table: standing.table.clone(),
        metric: standing.metric.clone(),
        variant: standing.variant.clone(),
        verdict: standing.verdict.word(),
        reasons: standing.reasons.iter().map(ToString::to_string).collect(),
        settled: standing.is_settled(),
    }
}

/// Why the plan ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    Decided,
    OutOfTime,
}

impl Stopped {
    fn word(self) -> &'static str {
        match self {
            Self::Decided => "decided",
            Self::OutOfTime => "out-of-time",
        }
    }
}

/// The looks that earlier sessions kept.
fn earlier_looks(dir: &PlanDir) -> anyhow::Result<Vec<serde_json::Value>> {
    let Some(bytes) = dir.decision()? else {
        return Ok(Vec::new());
    };
    let record: serde_json::Value = serde_json::from_slice(&bytes)?;
    let looks = record["looks"].as_array();
    looks.cloned().context("it has no looks")
}

impl Decider {
    /// Begins with the runs that earlier sessions left.
    pub fn begin(
        plan: &Plan,
        looks: Looks,
        dir: &PlanDir,
        events: &mut Events<'_>,
    ) -> anyhow::Result<Self> {
        let earlier = earlier_looks(dir).unwrap_or_else(|error| {
            events.warn(format!(
                "{}: what earlier looks saw is lost: {error:#}",
                dir.path.join("decision.json").display()
            ));
            Vec::new()
        });
        let rows = events.hearing(|context| {
            index::rows_of_plan(plan.id, context).or_else(|_| index::rows_on_disk(plan.id, context))
        })?;
        let history = events
            .hearing(|context| index::noise_of_plan(plan, context))
            .unwrap_or_else(|error| {
                events.warn(format!("no noise memory: {error:#}"));
                NoiseMemory::default()
            });
        Ok(Self {
            plan: plan.clone(),
            looks,
            history,
            rows,
            begun: Instant::now(),
            trials: 0,
            earlier,
            seen: Vec::new(),
            stopped: None,
        })
    }

    /// How many looks there were in this session.
    pub fn looks_seen(&self) -> usize {
        self.seen.len()
    }

    /// Takes in a run that has ended, and says whether the plan ends with it.
    pub fn after(&mut self, row: RunRow, events: &mut Events<'_>) -> bool {
        self.rows.push(row);
        self.trials += 1;
        let Some(done) = self.complete_runs() else {
            return false;
        };
        let due = self.looks.runs().contains(&done);
        if due && self.last_look().is_none_or(|runs| runs < done) {
            let standings = self.look();
            let settled = standings.iter().filter(|s| s.is_settled()).count();
            let all = standings.len();
            events.emit(&Event::Look(Look {
                runs: done,
                settled,
                metrics: all,
                standings: standings.iter().map(told).collect(),
            }));
            self.seen.push(Seen {
                runs: done,
                standings,
            });
            if settled == all && done < self.looks.most {
                self.stopped = Some(Stopped::Decided);
            }
        }
        let limit = self.looks.most_seconds.map(Duration::from_secs);
        if self.stopped.is_none()
            && done < self.looks.most
            && limit.is_some_and(|limit| self.begun.elapsed() >= limit)
        {
            self.stopped = Some(Stopped::OutOfTime);
        }
        self.stopped.is_some()
    }

    /// Runs a side at the last look, of whichever session.
    fn last_look(&self) -> Option<u32> {
        let earlier = self.earlier.last().and_then(|look| look["runs"].as_u64());
        let earlier = earlier.and_then(|runs| u32::try_from(runs).ok());
        self.seen.last().map(|seen| seen.runs).or(earlier)
    }

    /// Measured runs per case and variant, when no block is half done.
    fn complete_runs(&self) -> Option<u32> {
        let of_plan = self.plan.cases.len() * self.plan.variants.len();
        let measured = self.rows.iter().filter(|row| !row.warm_up).count();
        let done = runs_done(&self.rows);
        let expected = usize::try_from(done).ok()?.checked_mul(of_plan)?;
        (done > 0 && measured == expected).then_some(done)
    }

    fn look(&self) -> Vec<Standing> {
        let history = self.history.clone();
        standings(&compare::comparison_of_plan(
            &self.rows, &self.plan, history,
        ))
    }

    /// How the plan was decided, for its directory.
    pub fn record(&self) -> anyhow::Result<Vec<u8>> {
        let standing = |s: &Standing| {
            let reasons: Vec<String> = s.reasons.iter().map(ToString::to_string).collect();
            json!({
                "table": s.table,
                "metric": s.metric,
                "variant": s.variant,
                "verdict": s.verdict.word(),
                "reasons": reasons,
            })
        };
        let look = |seen: &Seen| {
            let standings: Vec<_> = seen.standings.iter().map(standing).collect();
            json!({ "runs": seen.runs, "standings": standings })
        };
        let looks: Vec<_> = self
            .earlier
            .iter()
            .cloned()
            .chain(self.seen.iter().map(look))
            .collect();
        let record = json!({
            "version": 1,
            "looks": looks,
            "stopped": self.stopped.map(Stopped::word),
        });
        let mut bytes = serde_json::to_vec_pretty(&record)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Why the plan ended, what that saved or what it would take.
    pub fn conclusion(&self) -> Event {
        let done = runs_done(&self.rows);
        Event::Decision {
            runs: done,
            stopped: self.stopped.map(Stopped::word),
            text: self.conclusion_text(done),
        }
    }

    fn conclusion_text(&self, done: u32) -> String {
        let spared = self.looks.most.saturating_sub(done);
        match self.stopped {
            Some(Stopped::Decided) if self.saw_nothing() => format!(
                "ended after {done} runs a side: no headline metric has figures on both sides"
            ),
            Some(Stopped::Decided) => format!(
                "decided after {done} runs a side: every headline metric is settled; {spared} of \
                 {} runs a side were not needed{}",
                self.looks.most,
                self.time_of(spared)
            ),
            Some(Stopped::OutOfTime) => {
                format!(
                    "the time is up after {done} runs a side; {}",
                    self.undecided()
                )
            }
            None => format!("{done} runs a side are done; {}", self.undecided()),
        }
    }

    fn saw_nothing(&self) -> bool {
        self.seen
            .last()
            .is_some_and(|seen| seen.standings.is_empty())
    }

    /// About how long so many more runs a side would have taken.
    fn time_of(&self, runs: u32) -> String {
        let trials = self.plan.cases.len() * self.plan.variants.len();
        let each = self.begun.elapsed() / self.trials.max(1);
        let all = u32::try_from(trials).ok().and_then(|n| n.checked_mul(runs));
        let time = all.and_then(|all| each.checked_mul(all));
        time.map_or_else(String::new, |time| {
            format!(" (about {} saved)", duration_text(time))
        })
    }

    fn undecided(&self) -> String {
        let standings = self.look();
        let open: Vec<String> = standings
            .iter()
            .filter(|standing| standing.verdict == Verdict::Unclear)
            .map(|standing| {
                let reasons: Vec<String> =
                    standing.reasons.iter().map(ToString::to_string).collect();
                format!(
                    "{} of {} ({})",
                    standing.metric,
                    standing.variant,
                    reasons.join(" ")
                )
            })
            .collect();
        if open.is_empty() {
            return "every headline metric is settled".to_owned();
        }
        let rest = match open.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named: Vec<&str> = open.iter().take(NAMED).map(String::as_str).collect();
        format!("undecided: {}{rest}", named.join(", "))
    }
}
