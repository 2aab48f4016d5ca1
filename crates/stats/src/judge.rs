//! From two sides of runs to a verdict in one word, with its reasons.
//!
//! Three steps, so that many metrics can be judged together: [`Evidence::effect`] estimates one
//! change with its error, the caller adjusts the p-values of a family ([`crate::adjust`]), and
//! [`decide`] turns effect and adjusted p into a [`Judgement`]. That something was not shown is
//! [`Verdict::Unclear`], never "no change"; [`Verdict::Unchanged`] needs equivalence. Nothing
//! here knows runs, boots or plans: what the caller doubts comes in as reasons.

mod evidence;
mod opinion;
mod verdict;

pub use evidence::{Cache, Effect, Evidence, Known, Method, Scale, StudentQuantile};
pub use opinion::{Opinion, refine, second_opinion};
pub use verdict::{Reason, Verdict};

use crate::counts::FailCounts;
use crate::equivalence::equivalence;
use crate::moderated::{BuildSpread, MOST_PRIOR_DF};

/// The error rate that everything is judged at unless looks were planned.
pub const ALPHA: f64 = 0.05;
/// Runs per side (or blocks) below which nothing is claimed without history: three runs estimate
/// a variance too badly (statistics: at most `unclear`).
pub const FEWEST: usize = 4;
/// Fewest with history.
const FEWEST_WITH_HISTORY: usize = 2;
/// Degrees of freedom from which history counts as history.
const HISTORY_DF: f64 = 10.0;
/// Power at which runs are planned and the smallest visible change is stated.
pub const POWER: f64 = 0.8;

/// Which direction is good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Nobody said.
    #[default]
    Unknown,
}

/// What a judgement is held to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Level of the adjusted p: [`ALPHA`], or the nominal one of a planned look.
    pub alpha: f64,
    /// One-sided level of equivalence.
    pub equivalence_alpha: f64,
    /// Share of the base below which a change does not matter, as 0.01.
    pub margin: f64,
    /// Whether to work out how many runs are missing.
    pub plan: bool,
}

/// A verdict with its reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// In a word.
    pub verdict: Verdict,
    /// Why; the first one matters most.
    pub reasons: Vec<Reason>,
}

/// Judges one effect by its adjusted p-value. `doubts` are reasons of the caller that allow no
/// claim whatever the figures say; `builds` widens the margin. Without an effect the verdict is
/// [`Verdict::Unclear`] for too few runs.
#[must_use]
pub fn decide(
    effect: Option<&Effect>,
    adjusted_p: Option<f64>,
    better: Direction,
    rule: &Rule,
    builds: Option<BuildSpread>,
    doubts: &[Reason],
) -> Judgement {
    let unclear = |mut reasons: Vec<Reason>, more: Option<Reason>| {
        reasons.extend(more);
        Judgement {
            verdict: Verdict::Unclear,
            reasons,
        }
    };
    let Some(effect) = effect else {
        let why = match doubts.contains(&Reason::OutOfRange) {
            true => doubts.to_vec(),
            false => with(doubts, Reason::TooFewRuns),
        };
        return unclear(why, None);
    };
    let estimate = effect.difference.estimate;
    let margin = effect.margin(rule.margin, builds);
    let large = margin.is_none_or(|margin| estimate.abs() >= margin);
    let exact = (effect.method == Method::Exact).then_some(if estimate == 0.0 {
        Reason::Identical
    } else {
        Reason::ExactChange
    });
    if too_few(effect) {
        return unclear(with(doubts, Reason::TooFewRuns), exact);
    }
    if !doubts.is_empty() {
        return unclear(doubts.to_vec(), None);
    }
    if !effect.is_in_range(1.0 - rule.alpha) {
        return unclear(vec![Reason::OutOfRange], None);
    }
    let judged = |verdict: Verdict, reasons: Vec<Reason>| Judgement { verdict, reasons };
    let shown = exact.map_or_else(
        || adjusted_p.is_some_and(|p| p <= rule.alpha),
        |_| estimate != 0.0,
    );
    // Zeros and the rest were tested apart: where they pull the mean to both sides, the figures
    // differ and their means need not.
    if shown && effect.method == Method::TwoPart && effect.straddles_zero(1.0 - rule.alpha) {
        return unclear(vec![Reason::ShapeChanged], None);
    }
    if shown && large {
        return judged(towards(estimate, better), exact.into_iter().collect());
    }
    let equivalent = estimate == 0.0 && exact.is_some()
        || margin
            .and_then(|margin| equivalence(&effect.difference, margin))
            .is_some_and(|test| test.p() <= rule.equivalence_alpha);
    let mut reasons: Vec<Reason> = exact.into_iter().collect();
    if shown {
        reasons.push(Reason::Small);
    }
    if equivalent {
        return judged(Verdict::Unchanged, reasons);
    }
    let missing = rule.plan.then(|| missing_runs(effect, margin, rule.alpha));
    unclear(reasons, missing.flatten())
}

fn with(doubts: &[Reason], first: Reason) -> Vec<Reason> {
    std::iter::once(first)
        .chain(doubts.iter().copied())
        .collect()
}

/// Whether a claim would rest on too little.
fn too_few(effect: &Effect) -> bool {
    let fewest = match effect.known {
        Some(Known::History(prior)) if prior.df >= HISTORY_DF => FEWEST_WITH_HISTORY,
        _ => FEWEST,
    };
    effect.n.0.min(effect.n.1) < fewest
}

fn towards(estimate: f64, better: Direction) -> Verdict {
    match (better, estimate > 0.0) {
        (Direction::Unknown, _) => Verdict::Changed,
        (Direction::Higher, true) | (Direction::Lower, false) => Verdict::Improved,
        (Direction::Higher, false) | (Direction::Lower, true) => Verdict::Regressed,
    }
}

/// How many more replicates a side would show the change that is suspected, or, where it is below
/// the margin, that it is.
fn missing_runs(effect: &Effect, margin: Option<f64>, alpha: f64) -> Option<Reason> {
    let estimate = effect.difference.estimate.abs();
    let needed = effect.runs_needed(margin.map_or(estimate, |m| m.max(estimate)), alpha)?;
    let have = effect.n.0.min(effect.n.1) as u64;
    let more = |needed: u64| needed.saturating_sub(have).max(1);
    Some(Reason::NeedsRuns {
        more: more(needed.expected),
        at_most: needed.pessimistic.map(more),
    })
}

/// What failures say about a change.
#[derive(Clone, Debug, PartialEq)]
pub struct FailureJudgement {
    /// Two-sided p-value: Boschloo's, Fisher's for more runs than that takes.
    pub p: Option<f64>,
    /// Interval of the difference of shares in percentage points (Newcombe 1998).
    pub interval: Option<(f64, f64)>,
    /// In a word, at the level asked for.
    pub judgement: Judgement,
}

/// Judges `(failed, runs)` of two sides at level `alpha`. `None` when a side has no run.
#[must_use]
pub fn judge_failures(base: (u64, u64), new: (u64, u64), alpha: f64) -> Option<FailureJudgement> {
    let counts = FailCounts::new(base, new)?;
    let p = Cache::default().shares_p(counts);
    let interval = counts
        .newcombe(1.0 - alpha)
        .map(|(low, high)| (100.0 * low, 100.0 * high));
    let reason = match (base.0, new.0) {
        (0, 0) => None,
        (0, _) => Some(Reason::NewFailures),
        (_, 0) => Some(Reason::FixedFailures),
        _ => Some(Reason::Flaky),
    };
    let shown = p.is_some_and(|p| p <= alpha);
    let verdict = if !shown {
        Verdict::Unclear
    } else if counts.difference() > 0.0 {
        Verdict::Regressed
    } else {
        Verdict::Improved
    };
    Some(FailureJudgement {
        p,
        interval,
        judgement: Judgement {
            verdict,
            reasons: reason.into_iter().collect(),
        },
    })
}

/// The prior that the metrics of one family give each other, from their variances and degrees of
/// freedom (Smyth 2004), worth at most [`Known`]'s 30 degrees of freedom. `None` with fewer than
/// twenty metrics: derived figures move together, and a handful of them feign agreement.
#[must_use]
pub fn family_prior(variances: &[(f64, f64)]) -> Option<Known> {
    const FEWEST_METRICS: usize = 20;
    if variances.len() < FEWEST_METRICS {
        return None;
    }
    let fitted = crate::ebayes::fit(variances)?;
    Some(Known::Family(fitted.prior.capped(MOST_PRIOR_DF).0))
}

#[cfg(test)]
mod tests;
