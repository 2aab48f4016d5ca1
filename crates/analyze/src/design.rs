//! How the runs of two columns stand to each other: what was randomised, what pairs up, what
//! forbids a claim.
//!
//! The replicate is the smallest unit that was randomised between the sides. Where they have
//! other kernels or share no boot, that is the boot: ten runs of one boot say nothing of the next
//! one. Within shared boots it is the run. Formulas are elsewhere; here is only bookkeeping.

use crate::comparison::{Cell, Design, Replicate, RunPlace};
use kdyno_model::{BootId, PlanId};
use kdyno_stats::drift::kendall;
use kdyno_stats::judge::{Reason, Scale};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Blocks of equal order from which the order is held to be no accident (chance 1 in 128).
const ALIAS_BLOCKS: usize = 8;
/// Level at which a trend over the order of runs is taken for drift.
const DRIFT_LEVEL: f64 = 0.005;

/// The runs of two columns, with their pairs.
pub(crate) struct Sides<'a> {
    places: &'a [RunPlace],
    pub design: Design,
    /// The new side's run in the same block, by the base's run.
    partner: HashMap<u32, u32>,
}

impl<'a> Sides<'a> {
    /// The design of the runs `base` and `new`, which are positions in `places`.
    pub fn of(places: &'a [RunPlace], base: &[u32], new: &[u32]) -> Self {
        let side = |runs: &[u32]| -> Vec<&'a RunPlace> {
            let place = |run: &u32| places.get(*run as usize);
            runs.iter().filter_map(place).collect()
        };
        let (a, b) = (side(base), side(new));
        let replicate = replicate(&a, &b);
        let partner = partners(places, base, new);
        let paired =
            replicate == Replicate::Run && are_enough_pairs(partner.len(), base.len(), new.len());
        let mut doubts = Vec::new();
        if replicate == Replicate::Boot && boots(&a).len().min(boots(&b).len()) < 2 {
            doubts.push(Reason::OneBoot);
        }
        if paired && is_alias(places, &partner) {
            doubts.push(Reason::Alias);
        }
        Self {
            places,
            design: Design {
                replicate,
                paired,
                in_turn: in_turn(&a, &b),
                doubts,
            },
            partner,
        }
    }

    /// The values of two cells as replicates, and whether they are paired. Runs without a partner
    /// are left out of pairs; boots are averaged on the scale.
    pub fn replicates(&self, base: &Cell, new: &Cell, scale: Scale) -> (Vec<f64>, Vec<f64>, bool) {
        let one_boot = self.design.doubts.contains(&Reason::OneBoot);
        if self.design.replicate == Replicate::Boot && !one_boot {
            return (self.by_boot(base, scale), self.by_boot(new, scale), false);
        }
        if self.design.paired {
            let pairs = base.observations.iter().filter_map(|a| {
                let partner = self.partner.get(&a.run)?;
                let found = new.observations.binary_search_by_key(partner, |b| b.run);
                Some((a.value, new.observations.get(found.ok()?)?.value))
            });
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.unzip();
            if are_enough_pairs(a.len(), base.observations.len(), new.observations.len()) {
                return (a, b, true);
            }
        }
        (base.values(), new.values(), false)
    }

    /// One value per boot; geometric means of ratios.
    fn by_boot(&self, cell: &Cell, scale: Scale) -> Vec<f64> {
        let mut boots: BTreeMap<&BootId, Vec<f64>> = BTreeMap::new();
        for observation in &cell.observations {
            let place = self.places.get(observation.run as usize);
            if let Some(boot) = place.and_then(|place| place.boot.as_ref()) {
                boots.entry(boot).or_default().push(observation.value);
            }
        }
        let mean = |values: Vec<f64>| match scale {
            Scale::Ratio => kdyno_stats::summary::geometric_mean(&values),
            Scale::Points | Scale::Difference => kdyno_stats::summary::mean(&values),
        };
        boots.into_values().filter_map(mean).collect()
    }

    /// Whether the figure drifts along the order of a side's runs although the sides were not run
    /// in turn, so that drift would look like a change (Kendall 1938).
    pub fn drifts(&self, base: &Cell, new: &Cell) -> bool {
        let trend =
            |cell: &Cell| kendall(&cell.values()).is_some_and(|trend| trend.p <= DRIFT_LEVEL);
        let one_after_the_other = !self.design.in_turn && self.design.replicate == Replicate::Run;
        one_after_the_other && (trend(base) || trend(new))
    }
}

/// A few failed runs leave a plan of blocks what it is; a side of which a quarter or more would be
/// left out is compared as it is.
fn are_enough_pairs(pairs: usize, base: usize, new: usize) -> bool {
    pairs >= 2 && 4 * pairs >= 3 * base.max(new)
}

fn replicate(a: &[&RunPlace], b: &[&RunPlace]) -> Replicate {
    let kernels = |side: &[&RunPlace]| -> BTreeSet<(String, Option<String>)> {
        side.iter()
            .map(|place| (place.kernel_release.clone(), place.build_id.clone()))
            .collect()
    };
    let (boots_a, boots_b) = (boots(a), boots(b));
    let apart = !boots_a.is_empty() && !boots_b.is_empty() && boots_a.is_disjoint(&boots_b);
    if apart || kernels(a) != kernels(b) {
        Replicate::Boot
    } else {
        Replicate::Run
    }
}

fn boots<'a>(side: &[&'a RunPlace]) -> BTreeSet<&'a BootId> {
    side.iter()
        .filter_map(|place| place.boot.as_ref())
        .collect()
}

/// Runs that share a block of a plan; a block with two runs of a side pairs none of them.
fn partners(places: &[RunPlace], base: &[u32], new: &[u32]) -> HashMap<u32, u32> {
    let in_blocks = |runs: &[u32]| {
        let mut blocks: HashMap<(PlanId, u32), Option<u32>> = HashMap::new();
        for run in runs {
            if let Some(place) = places.get(*run as usize) {
                let only = |seen: &mut Option<u32>| *seen = None;
                let block = blocks.entry((place.plan, place.block));
                block.and_modify(only).or_insert(Some(*run));
            }
        }
        blocks
    };
    let of_new = in_blocks(new);
    let pairs = in_blocks(base).into_iter().filter_map(|(block, run)| {
        let partner = of_new.get(&block).copied()??;
        Some((run?, partner))
    });
    pairs.collect()
}

/// Whether one side came first in every block.
fn is_alias(places: &[RunPlace], partner: &HashMap<u32, u32>) -> bool {
    let order = |run: u32| places.get(run as usize).map(|place| place.order);
    let in_order = |earlier: &dyn Fn(Option<u32>, Option<u32>) -> bool| {
        partner.iter().all(|(a, b)| earlier(order(*a), order(*b)))
    };
    partner.len() >= ALIAS_BLOCKS && (in_order(&|a, b| a < b) || in_order(&|a, b| b < a))
}

/// Whether the sides were run in turn: neither ended before the other began.
fn in_turn(a: &[&RunPlace], b: &[&RunPlace]) -> bool {
    let span = |side: &[&RunPlace]| {
        let starts = || side.iter().map(|place| place.start_unix_ns);
        Some((starts().min()?, starts().max()?))
    };
    match (span(a), span(b)) {
        (Some(a), Some(b)) => !(a.1 < b.0 || b.1 < a.0),
        _ => true,
    }
}
