//! The study: how often each rule is right and wrong.
#![allow(
    dead_code,
    reason = "the example and the test use different parts of it"
)]

use super::noise::{Dice, Noise};
use super::rules::{
    ALPHA, CV, Caches, Compared, EARLIER, Order, RULE, Session, earlier_plans, history,
    kdyno_claims, welch_logs_p, width,
};
use kdyno_stats::adjust::{Method, adjust};
use kdyno_stats::agreement::Agreement;
use kdyno_stats::evalue::t_e_process;
use kdyno_stats::judge::{Cache, Direction, Evidence, Known, Scale, Verdict, decide, family_prior};
use kdyno_stats::lkp_rule::{LkpMode, lkp_changed};
use kdyno_stats::moderated::Prior;
use kdyno_stats::noise::{BootMean, between_boots, prior_of_sets};
use kdyno_stats::rank::{NullCache, mann_whitney};
use kdyno_stats::spending::{Spending, boundaries};
use kdyno_stats::summary::Summary;
use kdyno_stats::{paired, ttest};

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
    let mut seen = 0;
    for _ in 0..trials {
        let remembers = matches!(rule, Compared::Kdyno | Compared::KdynoClaim);
        let known = remembers.then(|| history(&mut dice, noise)).flatten();
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
    /// Moderated by a variance of each metric that is known with 20 degrees of freedom, sides.
    KdynoTwentySides,
    /// The same within blocks.
    KdynoTwenty,
    /// Moderated by what six earlier plans of the metrics say, as the product learns it.
    KdynoHistory(World),
    /// The same where each metric is remembered by itself, as the product does with few metrics.
    KdynoLoneHistory(World),
}

/// How noise behaves where a history is learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// Normal, the same in every plan.
    Steady,
    /// Log variances move from plan to plan with a standard deviation of 0.5.
    Moving,
    /// The same with 0.8.
    MovingMuch,
    /// The same with 0.5, but all metrics alike.
    MovingTogether,
    /// Every twentieth metric moves with 2, the others stay.
    FewMovingWildly,
    /// Heavy tails, the same in every plan.
    Tails,
}

impl World {
    fn noise(self) -> Noise {
        match self {
            Self::Tails => Noise::T3,
            _ => Noise::Normal,
        }
    }

    /// Standard deviation of a metric's log variance from plan to plan.
    fn moves(self, metric: usize) -> f64 {
        match self {
            Self::Moving => 0.5,
            Self::MovingMuch => 0.8,
            Self::FewMovingWildly if metric.is_multiple_of(20) => 2.0,
            Self::Steady | Self::MovingTogether | Self::FewMovingWildly | Self::Tails => 0.0,
        }
    }

    /// The same of what all metrics share.
    fn moves_together(self) -> f64 {
        if self == Self::MovingTogether {
            0.5
        } else {
            0.0
        }
    }

    /// How wide the noise of each metric is in one plan.
    fn widths(self, dice: &mut Dice) -> Vec<f64> {
        let together = width(dice, self.moves_together());
        (0..METRICS)
            .map(|metric| together * width(dice, self.moves(metric)))
            .collect()
    }
}

pub const FAMILIES: [Family; 14] = [
    Family::BhWelch,
    Family::BhMannWhitney,
    Family::Lkp,
    Family::KdynoAlone,
    Family::KdynoTwentySides,
    Family::KdynoTwenty,
    Family::KdynoHistory(World::Steady),
    Family::KdynoLoneHistory(World::Steady),
    Family::KdynoHistory(World::Moving),
    Family::KdynoLoneHistory(World::Moving),
    Family::KdynoHistory(World::MovingMuch),
    Family::KdynoHistory(World::MovingTogether),
    Family::KdynoHistory(World::FewMovingWildly),
    Family::KdynoHistory(World::Tails),
];

impl Family {
    pub fn name(self) -> &'static str {
        match self {
            Self::BhWelch => "BH on Welch",
            Self::BhMannWhitney => "BH on Mann-Whitney",
            Self::Lkp => "LKP",
            Self::KdynoAlone => "kdyno, no history",
            Self::KdynoTwentySides => "kdyno, 20 df, sides",
            Self::KdynoTwenty => "kdyno, 20 df",
            Self::KdynoHistory(World::Steady) => "kdyno, six plans",
            Self::KdynoHistory(World::Moving) => "  moving by 0.5",
            Self::KdynoHistory(World::MovingMuch) => "  moving by 0.8",
            Self::KdynoHistory(World::MovingTogether) => "  together by 0.5",
            Self::KdynoHistory(World::FewMovingWildly) => "  one in 20 by 2",
            Self::KdynoHistory(World::Tails) => "  t3",
            Self::KdynoLoneHistory(_) => "    each metric alone",
        }
    }

    /// How noise behaves where the rule is tried.
    fn world(self) -> World {
        match self {
            Self::KdynoHistory(world) | Self::KdynoLoneHistory(world) => world,
            _ => World::Steady,
        }
    }

    /// What is known of each metric before it is measured.
    fn known(self, dice: &mut Dice) -> Vec<Option<Known>> {
        let of_differences = match self {
            Self::KdynoTwentySides => 1.0,
            Self::KdynoTwenty => 2.0,
            Self::KdynoHistory(world) => {
                return learnt(dice, world, |all| Agreement::of(all.iter().copied()));
            }
            Self::KdynoLoneHistory(world) => return learnt(dice, world, |_| None),
            _ => return vec![None; METRICS],
        };
        let known = |_| {
            let chi: f64 = (0..20).map(|_| dice.normal().powi(2)).sum();
            let variance = of_differences * CV * CV * chi / 20.0;
            Some(Known::History(Prior { df: 20.0, variance }))
        };
        (0..METRICS).map(known).collect()
    }

    /// Which of the metrics are said to differ.
    fn findings(self, metrics: &[(Session, Option<Known>)]) -> Vec<bool> {
        let mut ranks = NullCache::default();
        let mut cache = Cache::default();
        let paired = self != Self::KdynoTwentySides;
        let evidence = |s: &Session| Evidence::new(&s.a, &s.b, Scale::Ratio, paired);
        let family = (self == Self::KdynoAlone).then(|| {
            let variance = |(s, _): &(Session, _)| evidence(s)?.variance();
            family_prior(&metrics.iter().filter_map(variance).collect::<Vec<_>>())
        });
        let p = |(s, known): &(Session, Option<Known>)| match self {
            Self::BhMannWhitney => Some(mann_whitney(&s.a, &s.b, &mut ranks)?.p()),
            Self::BhWelch => welch_logs_p(&s.a, &s.b),
            _ => {
                evidence(s)?
                    .effect(family.unwrap_or(*known), None, &mut cache)?
                    .p
            }
        };
        if self == Self::Lkp {
            let says = |(s, _): &(Session, _)| lkp_changed(&s.a, &s.b, LkpMode::Plain, 1.01);
            return metrics.iter().map(says).collect();
        }
        let p: Option<Vec<f64>> = metrics.iter().map(p).collect();
        let adjusted = p.and_then(|p| adjust(&p, Method::BenjaminiHochberg));
        let adjusted = adjusted.expect("every metric has a p-value");
        adjusted.iter().map(|p| *p <= ALPHA).collect()
    }
}

/// What earlier plans say of each metric, with what `together` says of all of them.
fn learnt(
    dice: &mut Dice,
    world: World,
    together: impl Fn(&[&[(f64, f64)]]) -> Option<Agreement>,
) -> Vec<Option<Known>> {
    let widths = [(); EARLIER].map(|()| world.widths(dice));
    let metrics: Vec<Vec<(f64, f64)>> = (0..METRICS)
        .map(|metric| {
            let widths = widths.each_ref().map(|of_plan| of_plan[metric]);
            earlier_plans(dice, world.noise(), &widths)
        })
        .collect();
    let of_case = together(&metrics.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let known =
        |plans: &Vec<(f64, f64)>| prior_of_sets(plans, of_case.as_ref()).map(Known::History);
    metrics.iter().map(known).collect()
}

pub const METRICS: usize = 3000;
pub const CHANGED: usize = 60;

/// Found and false findings among 3000 metrics of which 60 changed by 3 standard deviations, means
/// over `trials`.
pub fn family(rule: Family, n: usize, trials: usize, seed: u64) -> (f64, f64) {
    // Apart, so that every rule sees the same sessions.
    let (mut dice, mut past) = (Dice::new(seed), Dice::new(!seed));
    let (mut found, mut wrong) = (0, 0);
    for _ in 0..trials {
        let world = rule.world();
        let known = rule.known(&mut past).into_iter();
        let known = known.zip(world.widths(&mut past)).enumerate();
        let metrics: Vec<(Session, Option<Known>)> = known
            .map(|(metric, (known, wide))| {
                // Three standard deviations of the logarithms.
                let change = if metric < CHANGED {
                    (3.0 * CV).exp_m1()
                } else {
                    0.0
                };
                let order = Order::Blocks;
                let session = Session::draw_wide(&mut dice, world.noise(), order, n, change, wide);
                (session, known)
            })
            .collect();
        let hits = rule.findings(&metrics);
        found += hits.iter().take(CHANGED).filter(|hit| **hit).count();
        wrong += hits.iter().skip(CHANGED).filter(|hit| **hit).count();
    }
    (found as f64 / trials as f64, wrong as f64 / trials as f64)
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

/// Share of sessions with a change of `change` that are called unchanged at the margin of 1 %.
pub fn called_unchanged(n: usize, change: f64, trials: usize, seed: u64) -> f64 {
    let mut dice = Dice::new(seed);
    let mut caches = Caches::default();
    let mut unchanged = 0;
    for _ in 0..trials {
        let known = history(&mut dice, Noise::Normal);
        let session = Session::draw(&mut dice, Noise::Normal, Order::Blocks, n, change);
        let evidence = Evidence::new(&session.a, &session.b, Scale::Ratio, true);
        let effect = evidence.and_then(|e| e.effect(known, None, &mut caches.judge));
        let p = effect.as_ref().and_then(|effect| effect.p);
        let judged = decide(effect.as_ref(), p, Direction::Lower, &RULE, None, &[]);
        unchanged += usize::from(judged.verdict == Verdict::Unchanged);
    }
    unchanged as f64 / trials as f64
}

/// Boots of a kernel and the runs of each.
#[derive(Clone, Copy, Debug)]
pub struct Boots {
    pub boots: usize,
    pub runs: usize,
    /// Runs of each boot that the memory knows.
    pub earlier_runs: usize,
}

/// Shares of unchanged kernels that are said to differ, by what stands for one replicate.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByReplicate {
    pub run: f64,
    pub boot: f64,
    /// Boots, with a memory of earlier ones.
    pub boot_with_history: f64,
}

/// Spread between boots, in standard deviations of a run.
const BETWEEN: f64 = 0.3;
/// Earlier kernels that the memory knows, and the boots of each.
const EARLIER_KERNELS: usize = 6;
const EARLIER_BOOTS: usize = 4;

/// The logarithms of `runs` runs in each of `boots` boots.
fn kernel(dice: &mut Dice, boots: usize, runs: usize) -> Vec<Vec<f64>> {
    (0..boots)
        .map(|_| {
            let boot = BETWEEN * dice.normal();
            (0..runs)
                .map(|_| (CV * (boot + dice.normal())).ln_1p())
                .collect()
        })
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// What earlier boots say of the mean of one, as the product remembers it.
fn history_of_boots(dice: &mut Dice, plan: Boots) -> Option<Known> {
    let (mut groups, mut within) = (Vec::new(), Vec::new());
    for _ in 0..EARLIER_KERNELS {
        let boots = kernel(dice, EARLIER_BOOTS, plan.earlier_runs);
        // The boots of a plan stand for one set.
        let variances: Vec<f64> = boots
            .iter()
            .filter_map(|boot| Some(Summary::of(boot)?.sample_sd?.powi(2)))
            .collect();
        let df = (EARLIER_BOOTS * (plan.earlier_runs - 1)) as f64;
        within.push((mean(&variances), df));
        let of_boot = |boot: &Vec<f64>| BootMean {
            mean: mean(boot),
            runs: boot.len() as f64,
        };
        groups.push(boots.iter().map(of_boot).collect());
    }
    let within = prior_of_sets(&within, None)?;
    let between = between_boots(&groups, within.variance)?;
    Some(Known::History(between.prior_of_means(within, plan.runs)))
}

/// How often unchanged kernels, with a spread of 0.3 standard deviations between boots, are said
/// to differ.
pub fn boots(plan: Boots, trials: usize, seed: u64) -> ByReplicate {
    let mut dice = Dice::new(seed);
    let mut cache = Cache::default();
    let mut differs = |a: &[f64], b: &[f64], known: Option<Known>| {
        let evidence = Evidence::new(a, b, Scale::Difference, false);
        let effect = evidence.and_then(|e| e.effect(known, None, &mut cache));
        f64::from(u8::from(
            effect.and_then(|e| e.p).is_some_and(|p| p <= ALPHA),
        )) / trials as f64
    };
    let mut shares = ByReplicate::default();
    for _ in 0..trials {
        let known = history_of_boots(&mut dice, plan);
        let [a, b] = [(); 2].map(|()| kernel(&mut dice, plan.boots, plan.runs));
        shares.run += differs(&a.concat(), &b.concat(), None);
        let [a, b] = [a, b].map(|side| side.iter().map(|boot| mean(boot)).collect::<Vec<f64>>());
        shares.boot += differs(&a, &b, None);
        shares.boot_with_history += differs(&a, &b, known);
    }
    shares
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
