//! A second opinion from ranks and spreads, for the metrics that matter.
//!
//! It adds reasons and can take a claim back; it never makes one, so that it costs no error rate.

use super::{Cache, Effect, Evidence, Judgement, Reason, Verdict};
use crate::paired::{signed_rank, walsh_location};
use crate::rank::{hodges_lehmann, mann_whitney};
use crate::spread::{SpreadTest, brown_forsythe};

/// Replicates a side from which ranks can say something.
const FEWEST: usize = 6;
/// Level at which a difference of spreads is mentioned.
const SPREAD_LEVEL: f64 = 0.01;
/// Level of the interval of the shift.
const LEVEL: f64 = 0.95;

/// What ranks and spreads say of the same runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Opinion {
    /// Two-sided p-value: Mann-Whitney, or signed ranks where paired.
    pub p: f64,
    /// Smallest p-value that so many runs allow; `None` for signed ranks.
    pub smallest_p: Option<f64>,
    /// Hodges-Lehmann shift on the effect's scale.
    pub shift: f64,
    /// Interval of the shift that inverts the test.
    pub shift_interval: (f64, f64),
    /// Brown-Forsythe test of equal spread.
    pub spread: Option<SpreadTest>,
}

/// Ranks and spreads of the evidence (Mann, Whitney 1947; Wilcoxon 1945; Hodges, Lehmann 1963;
/// Brown, Forsythe 1974). `None` with fewer than six replicates a side.
#[must_use]
pub fn second_opinion(evidence: &Evidence, cache: &mut Cache) -> Option<Opinion> {
    let (a, b) = (&evidence.a, &evidence.b);
    if a.len().min(b.len()) < FEWEST {
        return None;
    }
    let spread = brown_forsythe(a, b);
    if evidence.is_paired() {
        let pairs: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
        let shift = walsh_location(&pairs, LEVEL)?;
        return Some(Opinion {
            p: signed_rank(&pairs).map_or(1.0, |test| test.p),
            smallest_p: None,
            shift: shift.estimate,
            shift_interval: shift.interval,
            spread,
        });
    }
    let test = mann_whitney(a, b, &mut cache.ranks)?;
    let shift = hodges_lehmann(a, b, LEVEL, &mut cache.ranks)?;
    Some(Opinion {
        p: test.p(),
        smallest_p: test.smallest_p,
        shift: shift.estimate,
        shift_interval: shift.interval,
        spread,
    })
}

/// The judgement with what the second opinion adds: a claimed change whose shift points the other
/// way is taken back, and shift and mean more than one standard error apart are a changed shape.
#[must_use]
pub fn refine(judgement: Judgement, effect: &Effect, opinion: &Opinion) -> Judgement {
    let Judgement {
        mut verdict,
        mut reasons,
    } = judgement;
    let (estimate, se) = (effect.difference.estimate, effect.difference.se);
    let opposed = opinion.shift * estimate < 0.0;
    if verdict.is_change() && opposed {
        verdict = Verdict::Unclear;
        reasons.insert(0, Reason::ShapeChanged);
    } else if se > 0.0 && (opinion.shift - estimate).abs() > se {
        reasons.push(Reason::ShapeChanged);
    }
    if opinion.spread.as_ref().is_some_and(|s| s.p <= SPREAD_LEVEL) {
        reasons.push(Reason::SpreadChanged);
    }
    Judgement { verdict, reasons }
}
