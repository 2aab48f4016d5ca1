//! From the values of two sides to one change with its error.

use super::{FEWEST, POWER};
use crate::change::percent_of_log_ratio;
use crate::counts::FailCounts;
use crate::equivalence::log_margin;
use crate::moderated::{BuildSpread, Prior, moderated_of, moderated_paired_of};
use crate::rank::NullCache;
use crate::sample_size::{RunsNeeded, blocks_needed, runs_needed};
use crate::summary::{self, Summary};
use crate::ttest::{self, Difference};
use std::collections::HashMap;

/// On what a change is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Logarithms; a change is a ratio of geometric means, in percent.
    Ratio,
    /// Shares; a change is a difference in percentage points.
    Points,
    /// Values that have no logarithm; a change is a difference in the metric's unit.
    Difference,
}

impl Scale {
    /// The scale of two sides: points where the metric is a share already, ratios where every
    /// value is above 0.
    #[must_use]
    pub fn of(a: &[f64], b: &[f64], share: bool) -> Self {
        if share {
            Self::Points
        } else if a.iter().chain(b).all(|v| *v > 0.0) {
            Self::Ratio
        } else {
            Self::Difference
        }
    }

    /// A point of this scale as it is shown: percent, points, or the metric's unit.
    #[must_use]
    pub fn shown(self, at: f64) -> f64 {
        match self {
            Self::Ratio => percent_of_log_ratio(at),
            Self::Points | Self::Difference => at,
        }
    }
}

/// How an effect was estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Welch's t.
    Welch,
    /// t of the differences within blocks.
    Paired,
    /// Moderated t with a prior variance.
    Moderated,
    /// Moderated t of the differences within blocks.
    ModeratedPaired,
    /// Neither side varies: nothing is estimated.
    Exact,
    /// Share of zeros and size of the rest, tested apart.
    TwoPart,
}

impl Method {
    /// The word for programs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Welch => "welch",
            Self::Paired => "paired-t",
            Self::Moderated => "moderated-t",
            Self::ModeratedPaired => "paired-moderated-t",
            Self::Exact => "exact",
            Self::TwoPart => "two-part",
        }
    }
}

/// Where a prior variance comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    /// The metric's own earlier runs.
    History(Prior),
    /// The other metrics of the family.
    Family(Prior),
}

impl Known {
    /// The prior itself.
    #[must_use]
    pub fn prior(self) -> Prior {
        match self {
            Self::History(prior) | Self::Family(prior) => prior,
        }
    }
}

/// Exact distributions that many comparisons of equal sizes share.
#[derive(Debug, Default)]
pub struct Cache {
    pub(super) ranks: NullCache,
    shares: HashMap<FailCounts, Option<f64>>,
}

impl Cache {
    /// Boschloo's p-value, Fisher's for more runs than that takes.
    pub(super) fn shares_p(&mut self, counts: FailCounts) -> Option<f64> {
        let p = |counts: FailCounts| counts.boschloo_p().or_else(|| counts.fisher_p());
        *self.shares.entry(counts).or_insert_with(|| p(counts))
    }
}

/// The replicates of two sides, made ready for an estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    scale: Scale,
    /// Values on the scale; where paired, the i-th of both belong to one block.
    pub(super) a: Vec<f64>,
    pub(super) b: Vec<f64>,
    /// Mean of the base in the metric's unit.
    base: f64,
    spread: Spread,
}

#[derive(Clone, Debug, PartialEq)]
enum Spread {
    /// Summaries of both sides.
    Sides(Summary, Summary),
    /// Summary of the differences within blocks.
    Pairs(Summary),
}

/// One change with its error.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// Of what its figures are.
    pub scale: Scale,
    /// How it was found.
    pub method: Method,
    /// New minus base on the scale.
    pub difference: Difference,
    /// Replicates of base and new side behind it.
    pub n: (usize, usize),
    /// The prior that entered.
    pub known: Option<Known>,
    /// Mean of the base in the metric's unit.
    pub base: f64,
    /// Two-sided p-value of no change; `None` where nothing varies and the sides differ.
    pub p: Option<f64>,
}

impl Spread {
    /// Differences that are all alike although the sides vary have no error of their own: they
    /// are a matter of few digits, and the sides are taken instead.
    fn of_pairs(pairs: Summary, a: Summary, b: Summary) -> Self {
        let alike = pairs.n > 1 && pairs.min == pairs.max;
        if alike && (a.min < a.max || b.min < b.max) {
            Self::Sides(a, b)
        } else {
            Self::Pairs(pairs)
        }
    }
}

impl Evidence {
    /// Base and new side, one value per replicate in the metric's unit; where `paired`, the i-th
    /// of both belong to one block. `None` when a side is empty, when a value is not finite (or
    /// its logarithm does not exist), or when pairs do not match.
    #[must_use]
    pub fn new(a: &[f64], b: &[f64], scale: Scale, paired: bool) -> Option<Self> {
        let base = summary::mean(a)?;
        let (a, b) = match scale {
            Scale::Ratio => (ttest::logs(a)?, ttest::logs(b)?),
            Scale::Points | Scale::Difference => (a.to_vec(), b.to_vec()),
        };
        let spread = if paired {
            if a.len() != b.len() {
                return None;
            }
            let pairs: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
            Spread::of_pairs(Summary::of(&pairs)?, Summary::of(&a)?, Summary::of(&b)?)
        } else {
            Spread::Sides(Summary::of(&a)?, Summary::of(&b)?)
        };
        Some(Self {
            scale,
            a,
            b,
            base,
            spread,
        })
    }

    /// On what the change is measured.
    #[must_use]
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Replicates of base and new side.
    #[must_use]
    pub fn replicates(&self) -> (usize, usize) {
        (self.a.len(), self.b.len())
    }

    /// Whether any side varies. A metric that never does tells nothing of the others' noise, nor
    /// they of its own.
    #[must_use]
    pub fn varies(&self) -> bool {
        let vary = |values: &[f64]| values.iter().any(|v| Some(v) != values.first());
        vary(&self.a) || vary(&self.b)
    }

    /// Whether the estimate will rest on differences within blocks.
    #[must_use]
    pub fn is_paired(&self) -> bool {
        matches!(self.spread, Spread::Pairs(_))
    }

    /// Variance and degrees of freedom as [`family_prior`] wants them: pooled within the sides,
    /// or of the differences where paired. `None` where one value a side gives none.
    #[must_use]
    pub fn variance(&self) -> Option<(f64, f64)> {
        match &self.spread {
            Spread::Sides(a, b) => {
                let df = summary::count(a.n + b.n) - 2.0;
                Some((ttest::pooled_sd(a, b)?.powi(2), df))
            }
            Spread::Pairs(pairs) => Some((pairs.sample_sd?.powi(2), summary::count(pairs.n) - 1.0)),
        }
    }

    /// Estimates the change: moderated t with a prior, else Welch on unpaired and Student on
    /// paired values (Smyth 2004; Welch 1938). The prior is of the variance within a side, or of
    /// a difference where paired, in the square of the scale's unit. `None` when one value a side
    /// leaves no error.
    #[must_use]
    pub fn effect(
        &self,
        known: Option<Known>,
        builds: Option<BuildSpread>,
        cache: &mut Cache,
    ) -> Option<Effect> {
        let (difference, method) = self.estimate(known, builds)?;
        let mut effect = Effect {
            scale: self.scale,
            p: difference.p(),
            method: if difference.se > 0.0 {
                method
            } else {
                Method::Exact
            },
            difference,
            n: (self.a.len(), self.b.len()),
            known,
            base: self.base,
        };
        if let Some(p) = self.two_part_p(cache)
            && effect.method != Method::Exact
        {
            effect.p = Some(p);
            effect.method = Method::TwoPart;
        }
        Some(effect)
    }

    fn estimate(
        &self,
        known: Option<Known>,
        builds: Option<BuildSpread>,
    ) -> Option<(Difference, Method)> {
        let prior = known.map(Known::prior);
        Some(match (&self.spread, prior) {
            (Spread::Sides(a, b), None) => (ttest::welch_of(a, b)?, Method::Welch),
            (Spread::Sides(a, b), Some(prior)) => (
                moderated_of(a, b, prior, builds)?.difference,
                Method::Moderated,
            ),
            (Spread::Pairs(pairs), None) => (ttest::one_sample_of(pairs)?, Method::Paired),
            (Spread::Pairs(pairs), Some(prior)) => (
                moderated_paired_of(pairs, prior, builds)?.difference,
                Method::ModeratedPaired,
            ),
        })
    }

    /// For counts with zeros among them: whether a run has any is tested apart from how many it
    /// has (Lachenbruch 2002), the smaller of the two p-values doubled. `None` without zeros.
    fn two_part_p(&self, cache: &mut Cache) -> Option<f64> {
        if self.scale != Scale::Difference {
            return None;
        }
        let values = || self.a.iter().chain(&self.b);
        let zeros = values().filter(|v| **v == 0.0).count();
        let (n, m) = (self.a.len(), self.b.len());
        let counts = values().all(|v| *v >= 0.0);
        if !counts || zeros == 0 || zeros == n + m || n.min(m) < FEWEST {
            return None;
        }
        let positive =
            |side: &[f64]| -> Vec<f64> { side.iter().copied().filter(|v| *v > 0.0).collect() };
        let (a, b) = (positive(&self.a), positive(&self.b));
        let share = |positive: &[f64], n: usize| ((n - positive.len()) as u64, n as u64);
        let zeros = FailCounts::new(share(&a, n), share(&b, m))?;
        let of_zeros = cache.shares_p(zeros)?;
        let of_rest = if differ_without_varying(&a, &b) {
            Some(0.0)
        } else {
            ttest::logs(&a)
                .zip(ttest::logs(&b))
                .and_then(|(a, b)| ttest::welch(&a, &b)?.p())
        };
        let smallest = of_rest.map_or(of_zeros, |rest| rest.min(of_zeros));
        Some((2.0 * smallest).min(1.0))
    }
}

/// Whether enough values of each side are all alike and the sides differ: an exact change, for
/// which no test has a p-value above 0.
fn differ_without_varying(a: &[f64], b: &[f64]) -> bool {
    let only = |side: &[f64]| {
        let first = *side.first()?;
        (side.len() >= FEWEST && side.iter().all(|v| *v == first)).then_some(first)
    };
    matches!((only(a), only(b)), (Some(a), Some(b)) if a != b)
}

impl Effect {
    /// The estimate as it is shown: percent, points, or the metric's unit.
    #[must_use]
    pub fn shown(&self) -> f64 {
        self.scale.shown(self.difference.estimate)
    }

    /// Whether estimate and interval are numbers as they are shown.
    pub(super) fn is_in_range(&self, level: f64) -> bool {
        self.shown().is_finite() && self.interval(level).is_some()
    }

    /// Whether the interval of probability `level` leaves the direction open.
    pub(super) fn straddles_zero(&self, level: f64) -> bool {
        self.interval(level)
            .is_some_and(|(low, high)| low <= 0.0 && high >= 0.0)
    }

    /// The interval of probability `level` as it is shown; its ends may be infinite only where a
    /// ratio exceeds the range of numbers, then there is none.
    #[must_use]
    pub fn interval(&self, level: f64) -> Option<(f64, f64)> {
        self.interval_at(StudentQuantile::of(
            self.difference.df,
            0.5 * (1.0 - level),
        )?)
    }

    /// The same from a quantile that rows of equal `df` can share.
    #[must_use]
    pub fn interval_at(&self, quantile: StudentQuantile) -> Option<(f64, f64)> {
        let half = quantile.0 * self.difference.se;
        let low = self.scale.shown(self.difference.estimate - half);
        let high = self.scale.shown(self.difference.estimate + half);
        (low.is_finite() && high.is_finite()).then_some((low, high))
    }

    /// The margin `share` (0.01 for 1 %) on the effect's scale, widened to two standard deviations
    /// of what builds differ by; `None` where a base of 0 gives no margin.
    #[must_use]
    pub fn margin(&self, share: f64, builds: Option<BuildSpread>) -> Option<f64> {
        let margin = match self.scale {
            Scale::Ratio => log_margin(share)?,
            Scale::Points => 100.0 * share,
            Scale::Difference => share * self.base.abs(),
        };
        let least = builds.and_then(crate::moderated::least_margin);
        let margin = margin.max(least.unwrap_or(0.0));
        (margin > 0.0 && margin.is_finite()).then_some(margin)
    }

    /// Standard deviation of one replicate (of one difference where paired) that the error rests
    /// on, on the scale.
    fn deviation(&self) -> f64 {
        let (n, m) = (summary::count(self.n.0), summary::count(self.n.1));
        if self.is_paired() {
            self.difference.se * n.sqrt()
        } else {
            self.difference.se / (1.0 / n + 1.0 / m).sqrt()
        }
    }

    fn is_paired(&self) -> bool {
        matches!(self.method, Method::Paired | Method::ModeratedPaired)
    }

    /// Replicates a side, in all, to show a change of `delta` (on the scale).
    pub(super) fn runs_needed(&self, delta: f64, alpha: f64) -> Option<RunsNeeded> {
        let needed = if self.is_paired() {
            blocks_needed
        } else {
            runs_needed
        };
        needed(self.deviation(), self.difference.df, delta, alpha, POWER)
    }

    /// The smallest change that these runs would have shown with probability [`POWER`], as it is
    /// shown; `None` where nothing varies.
    #[must_use]
    pub fn smallest_visible(&self, alpha: f64) -> Option<f64> {
        let d = &self.difference;
        let at = crate::sample_size::smallest_detectable(d.se, d.df.max(1.0), alpha, POWER)?;
        Some(self.scale.shown(at)).filter(|at| at.is_finite())
    }
}

/// A quantile of Student's t for a certain `df`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StudentQuantile(f64);

impl StudentQuantile {
    /// The quantile with upper tail `tail`.
    #[must_use]
    pub fn of(df: f64, tail: f64) -> Option<Self> {
        if !(tail > 0.0 && tail < 1.0) {
            return None;
        }
        crate::dist::StudentT::new(df)?
            .upper_quantile(tail)
            .map(Self)
    }
}
