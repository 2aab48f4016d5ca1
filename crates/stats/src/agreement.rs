//! How much variances move from set to set, told from many metrics together.
//!
//! Six variances of one metric hardly tell whether they moved or scattered by chance: every fourth
//! steady metric looks as if it moved. The same of a hundred metrics tell it well. So the metrics
//! of a case share one figure, the variance of log variances beyond chance (Smyth 2004, with the
//! metric's own level instead of a common one). A few metrics that move wildly would spoil it for
//! the rest: those that stick out are left out and go by themselves (the idea of Phipson et al.
//! 2016). Heavy tails of runs scatter variances too and pass for moves, which costs findings and
//! not truth.

use crate::adjust::{Method, adjust};
use crate::dist::ChiSquared;
use crate::ebayes::{centred_logs, mean_trigamma};
use crate::special::{pentagamma, trigamma_inverse};
use crate::summary::{Summary, count};

/// Metrics from which how much they move together is told; derived figures move together, and a
/// handful of them feign agreement.
const FEWEST_METRICS: usize = 20;
/// False discovery rate at which metrics are said to stick out from the rest.
const STICKS_OUT: f64 = 0.05;
/// Chance below which a metric is not trusted to move like the rest. It costs three steady metrics
/// of a hundred what the others know, and holds down false findings of those that move more.
const OWN_WAY: f64 = 0.03;
/// Most rounds of leaving out what sticks out.
const ROUNDS: usize = 10;

/// How much the variances of the metrics of a case move from set to set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Variance of log variances beyond chance; not above 0 when there is none to be seen.
    excess: f64,
}

impl Agreement {
    /// From the variances `(variance, degrees of freedom)` of each metric, one per set; metrics
    /// with fewer than three sets are left out. `None` when fewer than twenty remain.
    #[must_use]
    pub fn of<'a>(metrics: impl IntoIterator<Item = &'a [(f64, f64)]>) -> Option<Self> {
        let scatters: Vec<Scatter> = metrics.into_iter().filter_map(Scatter::of).collect();
        if scatters.len() < FEWEST_METRICS {
            return None;
        }
        let mut excess = pooled(scatters.iter())?;
        for _ in 0..ROUNDS {
            let p: Option<Vec<f64>> = scatters.iter().map(|metric| metric.p(excess)).collect();
            let adjusted = adjust(&p?, Method::BenjaminiHochberg)?;
            let kept = scatters.iter().zip(&adjusted);
            let kept = kept.filter(|(_, p)| **p > STICKS_OUT).map(|(kept, _)| kept);
            let next = pooled(kept)?;
            if next == excess {
                break;
            }
            excess = next;
        }
        Some(Self { excess })
    }

    /// Degrees of freedom that the variance of one set is worth for another, however well it is
    /// known itself: half of it is the inverse trigamma of the excess (Smyth 2004). Infinite when
    /// nothing moves. A metric whose own variances agree less than chance allows goes by them.
    #[must_use]
    pub fn df(&self, variances: &[(f64, f64)]) -> f64 {
        let own = Scatter::of(variances)
            .filter(|own| own.p(self.excess).is_some_and(|p| p <= OWN_WAY))
            .map(|own| own.excess());
        let excess = own.unwrap_or(self.excess);
        if excess > 0.0 {
            2.0 * trigamma_inverse(excess)
        } else {
            f64::INFINITY
        }
    }
}

/// Excess of all, each weighted by its sets less one; `None` for none.
fn pooled<'a>(scatters: impl Iterator<Item = &'a Scatter>) -> Option<f64> {
    let (sum, weight) = scatters.fold((0.0, 0.0), |(sum, weight), metric| {
        let own = metric.sets - 1.0;
        (sum + own * metric.excess(), weight + own)
    });
    let excess: f64 = sum / weight;
    excess.is_finite().then_some(excess)
}

/// How the log variances of one metric scatter.
struct Scatter {
    sets: f64,
    /// Their variance as seen.
    seen: f64,
    /// The variance that chance explains.
    chance: f64,
    /// The fourth cumulant that chance explains.
    fourth: f64,
}

impl Scatter {
    /// `None` with fewer than three variances above 0.
    fn of(variances: &[(f64, f64)]) -> Option<Self> {
        let usable = crate::noise::usable(variances);
        let seen = Summary::of(&centred_logs(&usable)?)?.sample_sd?.powi(2);
        let sets = count(usable.len());
        let fourth: f64 = usable.iter().map(|(_, df)| pentagamma(0.5 * df)).sum();
        Some(Self {
            sets,
            seen,
            chance: mean_trigamma(&usable),
            fourth: fourth / sets,
        })
    }

    fn excess(&self) -> f64 {
        self.seen - self.chance
    }

    /// Chance of so much scatter or more where the variances move by `excess`: a scaled chi squared
    /// with the mean and variance that a sample variance of log F has (Satterthwaite 1946).
    fn p(&self, excess: f64) -> Option<f64> {
        let (moves, fourth) = if excess > 0.0 {
            (excess, pentagamma(trigamma_inverse(excess)))
        } else {
            (0.0, 0.0)
        };
        let mean = self.chance + moves;
        let of_normal = 2.0 * mean * mean / (self.sets - 1.0);
        let variance = of_normal + (self.fourth + fourth) / self.sets;
        let df = 2.0 * mean * mean / variance;
        Some(ChiSquared::new(df)?.sf(df * self.seen / mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::FisherF;
    use proptest::prelude::*;
    use rand_pcg::Pcg64;
    use rand_pcg::rand_core::{Rng, SeedableRng};

    /// Six variances of four degrees of freedom for each of `metrics`, which move like a scaled F
    /// with `df`; the metrics are on scales far apart.
    fn drawn(metrics: i32, df: f64, seed: u64) -> Vec<Vec<(f64, f64)>> {
        let mut rng = Pcg64::seed_from_u64(seed);
        let f = FisherF::new(4.0, df).expect("df");
        let mut draw = || {
            let p = ((rng.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            f.quantile(p).expect("a share")
        };
        (0..metrics)
            .map(|metric| {
                let scale = 10_f64.powi(metric % 9);
                (0..6).map(|_| (scale * draw(), 4.0)).collect()
            })
            .collect()
    }

    fn agreement(metrics: &[Vec<(f64, f64)>]) -> Option<Agreement> {
        Agreement::of(metrics.iter().map(Vec::as_slice))
    }

    /// What one steady set says of others: no move.
    const STEADY: [(f64, f64); 3] = [(1.0, 4.0), (1.1, 4.0), (0.9, 4.0)];

    #[test]
    fn many_metrics_tell_how_much_they_move() {
        for df in [3.0, 8.0, 20.0] {
            let found = agreement(&drawn(1000, df, 1)).expect("enough").df(&STEADY);
            assert!((found / df - 1.0).abs() < 0.25, "{df}: {found}");
        }
        let steady = agreement(&drawn(1000, 1e6, 1)).expect("enough");
        assert!(steady.df(&STEADY) > 60.0, "{steady:?}");
    }

    /// One metric in twenty moves by orders of magnitude.
    #[test]
    fn wild_metrics_go_by_themselves() {
        let mut metrics = drawn(950, 1e6, 2);
        let wild = drawn(50, 0.5, 3);
        metrics.extend(wild.iter().cloned());
        let shared = agreement(&metrics).expect("enough");
        assert!(shared.df(&STEADY) > 25.0, "{shared:?}");
        let by_themselves = wild.iter().filter(|wild| shared.df(wild) < 3.0).count();
        assert!(by_themselves > 40, "{by_themselves} of 50");
        // Of the steady ones no more than chance brings: 3 % by design, 29.
        let steady = metrics.iter().take(950);
        let torn = steady.filter(|metric| shared.df(metric) < 10.0).count();
        assert!(torn < 45, "{torn} of 950");
    }

    #[test]
    fn few_metrics_tell_nothing() {
        assert_eq!(agreement(&drawn(19, 8.0, 4)), None);
        assert!(agreement(&drawn(20, 8.0, 4)).is_some());
        let mut short = drawn(25, 8.0, 4);
        for metric in &mut short {
            metric.truncate(2);
        }
        assert_eq!(agreement(&short), None);
        // Zeros are no variance.
        let still = vec![vec![(0.0, 4.0); 6]; 30];
        assert_eq!(agreement(&still), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn any_input(
            metrics in prop::collection::vec(
                prop::collection::vec((any::<f64>(), prop::sample::select(vec![0.5, 4.0, -1.0, 1e9])), 0..8),
                0..40,
            ),
        ) {
            if let Some(shared) = agreement(&metrics) {
                for metric in &metrics {
                    prop_assert!(shared.df(metric) > 0.0);
                }
            }
        }
    }
}
