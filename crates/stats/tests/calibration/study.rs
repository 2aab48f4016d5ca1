//! The study: how often each rule is right and wrong.
#![allow(
    dead_code,
    reason = "the example and the test use different parts of it"
)]

use super::noise::{Dice, Noise};
use super::rules::{
    ALPHA, CV, Caches, Compared, Order, RULE, Session, history, kdyno_claims, welch_logs_p,
};
use kdyno_stats::adjust::{Method, adjust};
use kdyno_stats::evalue::t_e_process;
use kdyno_stats::judge::{Cache, Direction, Evidence, Known, Scale, Verdict, decide, family_prior};
use kdyno_stats::lkp_rule::{LkpMode, lkp_changed};
use kdyno_stats::moderated::Prior;
use kdyno_stats::rank::{NullCache, mann_whitney};
use kdyno_stats::spending::{Spending, boundaries};
use kdyno_stats::{paired, ttest};

/// Sessions that share one history: making it costs more than using it.
const SHARED: usize = 10;

/// Share of sessions in which `rule` sees a change.
pub fn rate(
    rule: Compared,
    noise: Noise,
    order: Order,
    n: usize,
    change: f64,
    trials: usize,
    seed: u64,
) -> f64 {
    let mut dice = Dice::new(seed);
    let mut caches = Caches::default();
    let mut known = None;
    let mut seen = 0;
    for trial in 0..trials {
        if trial % SHARED == 0 && matches!(rule, Compared::Kdyno | Compared::KdynoClaim) {
            known = history(&mut dice, noise);
        }
        let session = Session::draw(&mut dice, noise, order, n, change);
        seen += usize::from(rule.says(&session, known, &mut caches));
    }
    seen as f64 / trials as f64
}

/// Rules for thousands of metrics at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    BhWelch,
    BhMannWhitney,
    Lkp,
    /// Moderated by the other metrics.
    KdynoAlone,
    /// Moderated by each metric's history of 20 degrees of freedom.
    KdynoHistory,
}

pub const FAMILIES: [Family; 5] = [
    Family::BhWelch,
    Family::BhMannWhitney,
    Family::Lkp,
    Family::KdynoAlone,
    Family::KdynoHistory,
];

impl Family {
    pub fn name(self) -> &'static str {
        match self {
            Self::BhWelch => "BH on Welch",
            Self::BhMannWhitney => "BH on Mann-Whitney",
            Self::Lkp => "LKP",
            Self::KdynoAlone => "kdyno, no history",
            Self::KdynoHistory => "kdyno, history",
        }
    }
}

pub const METRICS: usize = 3000;
pub const CHANGED: usize = 60;

/// Found and false findings among 3000 metrics of which 60 changed by 3 standard deviations, per
/// family rule, each the mean over `trials`.
pub fn family(n: usize, trials: usize, seed: u64) -> Vec<(Family, f64, f64)> {
    let mut sums = FAMILIES.map(|family| (family, 0.0, 0.0));
    for trial in 0..trials {
        let mut dice = Dice::new(seed + trial as u64);
        let metrics: Vec<(Session, Known)> = (0..METRICS)
            .map(|metric| {
                // Three standard deviations of the logarithms.
                let change = if metric < CHANGED {
                    (3.0 * CV).exp_m1()
                } else {
                    0.0
                };
                let order = Order::Blocks;
                let session = Session::draw(&mut dice, Noise::Normal, order, n, change);
                // Twenty earlier values' worth of the variance of a run.
                let chi: f64 = (0..20).map(|_| dice.normal().powi(2)).sum();
                let variance = CV * CV * chi / 20.0;
                (session, Known::History(Prior { df: 20.0, variance }))
            })
            .collect();
        for (family, found, wrong) in &mut sums {
            let hits = family.findings(&metrics);
            *found += hits.iter().take(CHANGED).filter(|hit| **hit).count() as f64;
            *wrong += hits.iter().skip(CHANGED).filter(|hit| **hit).count() as f64;
        }
    }
    let mean = |(family, found, wrong): (Family, f64, f64)| {
        (family, found / trials as f64, wrong / trials as f64)
    };
    sums.into_iter().map(mean).collect()
}

impl Family {
    fn findings(self, metrics: &[(Session, Known)]) -> Vec<bool> {
        let mut ranks = NullCache::default();
        let mut cache = Cache::default();
        let sides = |session: &Session| Evidence::new(&session.a, &session.b, Scale::Ratio, false);
        let p: Vec<f64> = match self {
            Self::Lkp => {
                let says =
                    |(s, _): &(Session, Known)| lkp_changed(&s.a, &s.b, LkpMode::Plain, 1.01);
                return metrics.iter().map(says).collect();
            }
            Self::BhWelch => metrics
                .iter()
                .map(|(s, _)| welch_logs_p(&s.a, &s.b).unwrap_or(1.0))
                .collect(),
            Self::BhMannWhitney => metrics
                .iter()
                .map(|(s, _)| mann_whitney(&s.a, &s.b, &mut ranks).map_or(1.0, |t| t.p()))
                .collect(),
            Self::KdynoAlone => {
                let variances: Vec<(f64, f64)> = metrics
                    .iter()
                    .filter_map(|(s, _)| sides(s)?.variance())
                    .collect();
                let known = family_prior(&variances);
                let p = |(s, _): &(Session, Known)| sides(s)?.effect(known, None, &mut cache)?.p;
                metrics.iter().map(p).map(|p| p.unwrap_or(1.0)).collect()
            }
            Self::KdynoHistory => metrics
                .iter()
                .map(|(s, known)| sides(s)?.effect(Some(*known), None, &mut cache)?.p)
                .map(|p| p.unwrap_or(1.0))
                .collect(),
        };
        let adjusted = adjust(&p, Method::BenjaminiHochberg).unwrap_or_default();
        adjusted.iter().map(|p| *p <= ALPHA).collect()
    }
}

/// Ways to look at runs while they grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looking {
    /// After every pair, until p <= 0.05.
    Peeking,
    /// At 5, 10, ... 40 pairs with O'Brien and Fleming's spending.
    ObrienFleming,
    /// The same with Pocock's.
    Pocock,
    /// After every pair, until the t e-value reaches 20.
    EValue,
}

pub const LOOKINGS: [Looking; 4] = [
    Looking::Peeking,
    Looking::ObrienFleming,
    Looking::Pocock,
    Looking::EValue,
];

impl Looking {
    pub fn name(self) -> &'static str {
        match self {
            Self::Peeking => "peeking",
            Self::ObrienFleming => "O'Brien-Fleming",
            Self::Pocock => "Pocock",
            Self::EValue => "t e-process",
        }
    }
}

const MOST_PAIRS: usize = 40;

/// Share of campaigns that end with a finding, and their mean number of pairs.
pub fn looking(how: Looking, change: f64, trials: usize, seed: u64) -> (f64, f64) {
    let mut dice = Dice::new(seed);
    let (mut found, mut pairs) = (0, 0);
    for _ in 0..trials {
        let order = Order::Blocks;
        let session = Session::draw(&mut dice, Noise::Normal, order, MOST_PAIRS, change);
        let ratios = paired::log_ratios(&session.a, &session.b).unwrap_or_default();
        let at = stopped_at(how, &ratios);
        found += usize::from(at.is_some());
        pairs += at.unwrap_or(MOST_PAIRS);
    }
    (found as f64 / trials as f64, pairs as f64 / trials as f64)
}

fn stopped_at(how: Looking, ratios: &[f64]) -> Option<usize> {
    let p = |n: usize| ttest::one_sample(ratios.get(..n)?)?.p();
    let spending = match how {
        Looking::Peeking => return (3..=MOST_PAIRS).find(|n| p(*n).is_some_and(|p| p <= ALPHA)),
        Looking::EValue => {
            let path = t_e_process(ratios, 1.0)?;
            return kdyno_stats::evalue::stopping_time(&path, 1.0 / ALPHA);
        }
        Looking::ObrienFleming => Spending::ObrienFleming,
        Looking::Pocock => Spending::Pocock,
    };
    let looks: Vec<usize> = (1..=MOST_PAIRS / 5).map(|look| 5 * look).collect();
    let times: Vec<f64> = looks
        .iter()
        .map(|n| *n as f64 / MOST_PAIRS as f64)
        .collect();
    let levels = boundaries(&times, ALPHA, spending)?;
    let reached = |(n, level): &(&usize, &kdyno_stats::spending::Look)| {
        p(**n).is_some_and(|p| p <= level.nominal_p)
    };
    looks.iter().zip(&levels).find(reached).map(|(n, _)| *n)
}

/// Share of sessions that are called unchanged although the change is just the margin of 1 %.
pub fn wrongly_unchanged(n: usize, trials: usize, seed: u64) -> f64 {
    let mut dice = Dice::new(seed);
    let mut caches = Caches::default();
    let mut wrong = 0;
    for _ in 0..trials {
        let known = history(&mut dice, Noise::Normal);
        let session = Session::draw(&mut dice, Noise::Normal, Order::Blocks, n, RULE.margin);
        let evidence = Evidence::new(&session.a, &session.b, Scale::Ratio, true);
        let effect = evidence.and_then(|e| e.effect(known, None, &mut caches.judge));
        let p = effect.as_ref().and_then(|effect| effect.p);
        let judged = decide(effect.as_ref(), p, Direction::Lower, &RULE, None, &[]);
        wrong += usize::from(judged.verdict == Verdict::Unchanged);
    }
    wrong as f64 / trials as f64
}

/// Share of unchanged kernels, each of `boots` boots of `runs` runs with a spread of 0.3 standard
/// deviations between boots, that are claimed to differ: with boots as replicates, and with runs.
pub fn boots(boots: usize, runs: usize, trials: usize, seed: u64) -> (f64, f64) {
    let mut dice = Dice::new(seed);
    let mut caches = Caches::default();
    let (mut by_boot, mut by_run) = (0, 0);
    for _ in 0..trials {
        let mut side = || -> (Vec<f64>, Vec<f64>) {
            let (mut means, mut all) = (Vec::new(), Vec::new());
            for _ in 0..boots {
                let boot = 0.3 * dice.normal();
                let values: Vec<f64> = (0..runs)
                    .map(|_| 100.0 * (1.0 + CV * (boot + dice.normal())))
                    .collect();
                means.push(values.iter().sum::<f64>() / runs as f64);
                all.extend(values);
            }
            (means, all)
        };
        let (a, b) = (side(), side());
        let differs = |a: &[f64], b: &[f64], caches: &mut Caches| {
            let evidence = Evidence::new(a, b, Scale::Ratio, false);
            let effect = evidence.and_then(|e| e.effect(None, None, &mut caches.judge));
            effect.and_then(|e| e.p).is_some_and(|p| p <= ALPHA)
        };
        by_boot += usize::from(differs(&a.0, &b.0, &mut caches));
        by_run += usize::from(differs(&a.1, &b.1, &mut caches));
    }
    (
        by_boot as f64 / trials as f64,
        by_run as f64 / trials as f64,
    )
}

/// Whether kdyno claims a change of three runs a side, however large, without history.
pub fn claims_of_three(trials: usize, seed: u64) -> usize {
    let mut dice = Dice::new(seed);
    let mut caches = Caches::default();
    (0..trials)
        .filter(|_| {
            let session = Session::draw(&mut dice, Noise::Normal, Order::Blocks, 3, 0.5);
            kdyno_claims(&session, None, &mut caches)
        })
        .count()
}
