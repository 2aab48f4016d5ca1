//! The rules that are held against each other, and the sessions that they see.
#![allow(
    dead_code,
    reason = "the example and the test use different parts of it"
)]

use super::noise::{Dice, Noise};
use kdyno_stats::judge::{Cache, Direction, Evidence, Known, Rule, Scale, decide};
use kdyno_stats::lkp_rule::{LkpMode, lkp_changed};
use kdyno_stats::noise::{prior_of_sets, residual_of_blocks};
use kdyno_stats::rank::{NullCache, mann_whitney};
use kdyno_stats::{paired, ttest};

/// Coefficient of variation of the made-up metric: the standard deviation of its logarithms.
pub const CV: f64 = 0.02;
/// Nominal level.
pub const ALPHA: f64 = 0.05;
/// Earlier plans that history rests on, and their blocks.
pub const EARLIER: usize = 6;
const EARLIER_BLOCKS: usize = 5;

/// In which order the runs of two variants are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A block of both at a time, in an order drawn anew: kdyno's plan.
    Blocks,
    /// All of one, then all of the other.
    OneAfterTheOther,
    /// A B A B ...
    Alternating,
}

/// Runs of two sides; the i-th of both belong together.
#[derive(Clone, Debug)]
pub struct Session {
    pub a: Vec<f64>,
    pub b: Vec<f64>,
}

impl Session {
    /// `n` runs a side of a metric of 100 with noise, the second side higher by `change` (0.03
    /// for 3 %).
    pub fn draw(dice: &mut Dice, noise: Noise, order: Order, n: usize, change: f64) -> Self {
        Self::draw_wide(dice, noise, order, n, change, 1.0)
    }

    /// The same with noise `wide` times as wide.
    pub fn draw_wide(
        dice: &mut Dice,
        noise: Noise,
        order: Order,
        n: usize,
        change: f64,
        wide: f64,
    ) -> Self {
        let along = noise.session(dice, 2 * n);
        let value = |noise: f64, change: f64| 100.0 * (CV * wide * noise).exp() * (1.0 + change);
        let mut session = Self {
            a: Vec::with_capacity(n),
            b: Vec::with_capacity(n),
        };
        for block in 0..n {
            let (first, second) = match order {
                Order::OneAfterTheOther => (along[block], along[n + block]),
                _ => (along[2 * block], along[2 * block + 1]),
            };
            let turned = order == Order::Blocks && dice.coin();
            let (a, b) = if turned {
                (second, first)
            } else {
                (first, second)
            };
            session.a.push(value(a, 0.0));
            session.b.push(value(b, change));
        }
        session
    }
}

/// What earlier plans of one metric say, as the product remembers it when there are no others.
pub fn history(dice: &mut Dice, noise: Noise) -> Option<Known> {
    prior_of_sets(&earlier_plans(dice, noise, &[1.0; EARLIER]), None).map(Known::History)
}

/// How much wider or narrower noise is in a plan than in others, where `moves` is the standard
/// deviation of the logarithm of its variance.
pub fn width(dice: &mut Dice, moves: f64) -> f64 {
    if moves > 0.0 {
        (0.5 * moves * dice.normal()).exp()
    } else {
        1.0
    }
}

/// Variances of differences in earlier plans of one metric, with their degrees of freedom; one
/// plan for each width of its noise.
pub fn earlier_plans(dice: &mut Dice, noise: Noise, widths: &[f64]) -> Vec<(f64, f64)> {
    widths
        .iter()
        .filter_map(|wide| {
            let order = Order::Blocks;
            let plan = Session::draw_wide(dice, noise, order, EARLIER_BLOCKS, 0.0, *wide);
            let (a, b) = (ttest::logs(&plan.a)?, ttest::logs(&plan.b)?);
            let blocks: Vec<Vec<f64>> = a.iter().zip(&b).map(|(a, b)| vec![*a, *b]).collect();
            let (variance, df) = residual_of_blocks(&blocks)?;
            Some((2.0 * variance, df))
        })
        .collect()
}

/// A rule that says whether two sides differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    LkpPlain,
    LkpDistance,
    Student,
    Welch,
    WelchLogs,
    MannWhitney,
    Paired,
    /// kdyno's p-value, with history.
    Kdyno,
    /// What kdyno claims: also large enough, and enough runs.
    KdynoClaim,
    /// The claim without history.
    KdynoAlone,
}

pub const RULES: [Compared; 10] = [
    Compared::LkpPlain,
    Compared::LkpDistance,
    Compared::Student,
    Compared::Welch,
    Compared::WelchLogs,
    Compared::MannWhitney,
    Compared::Paired,
    Compared::Kdyno,
    Compared::KdynoClaim,
    Compared::KdynoAlone,
];

impl Compared {
    pub fn name(self) -> &'static str {
        match self {
            Self::LkpPlain => "LKP",
            Self::LkpDistance => "LKP distance",
            Self::Student => "Student",
            Self::Welch => "Welch",
            Self::WelchLogs => "Welch on logs",
            Self::MannWhitney => "Mann-Whitney",
            Self::Paired => "paired t",
            Self::Kdyno => "kdyno, p",
            Self::KdynoClaim => "kdyno, claim",
            Self::KdynoAlone => "without history",
        }
    }

    pub fn says(self, session: &Session, known: Option<Known>, caches: &mut Caches) -> bool {
        let (a, b) = (&session.a, &session.b);
        let significant = |p: Option<f64>| p.is_some_and(|p| p <= ALPHA);
        match self {
            Self::LkpPlain => lkp_changed(a, b, LkpMode::Plain, 1.01),
            Self::LkpDistance => lkp_changed(a, b, LkpMode::Distance(2.0), 1.01),
            Self::Student => significant(ttest::pooled(a, b).and_then(|d| d.p())),
            Self::Welch => significant(ttest::welch(a, b).and_then(|d| d.p())),
            Self::WelchLogs => significant(welch_logs_p(a, b)),
            Self::MannWhitney => {
                significant(mann_whitney(a, b, &mut caches.ranks).map(|test| test.p()))
            }
            Self::Paired => {
                let pairs = paired::log_ratios(a, b);
                significant(pairs.and_then(|pairs| ttest::one_sample(&pairs)?.p()))
            }
            Self::Kdyno => significant(kdyno_p(session, known, caches)),
            Self::KdynoClaim => kdyno_claims(session, known, caches),
            Self::KdynoAlone => kdyno_claims(session, None, caches),
        }
    }
}

pub fn welch_logs_p(a: &[f64], b: &[f64]) -> Option<f64> {
    ttest::welch(&ttest::logs(a)?, &ttest::logs(b)?)?.p()
}

/// What many comparisons share.
#[derive(Default)]
pub struct Caches {
    pub ranks: NullCache,
    pub judge: Cache,
}

fn evidence(session: &Session) -> Option<Evidence> {
    Evidence::new(&session.a, &session.b, Scale::Ratio, true)
}

fn kdyno_p(session: &Session, known: Option<Known>, caches: &mut Caches) -> Option<f64> {
    evidence(session)?.effect(known, None, &mut caches.judge)?.p
}

/// The usual strictness for a headline metric.
pub const RULE: Rule = Rule {
    alpha: ALPHA,
    equivalence_alpha: ALPHA,
    margin: 0.01,
    plan: false,
};

pub fn kdyno_claims(session: &Session, known: Option<Known>, caches: &mut Caches) -> bool {
    let effect = evidence(session).and_then(|e| e.effect(known, None, &mut caches.judge));
    let p = effect.as_ref().and_then(|effect| effect.p);
    decide(effect.as_ref(), p, Direction::Lower, &RULE, None, &[])
        .verdict
        .is_change()
}
