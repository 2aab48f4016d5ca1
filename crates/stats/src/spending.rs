//! Looking at the data several times without paying in false alarms: alpha spending.
//!
//! Boundaries for the standardised statistic at planned looks, from a spending function of the
//! share of information reached (runs so far over runs planned). For t statistics the boundary is
//! applied as its nominal p. Stopping for lack of an effect is the margin's business, not a
//! boundary here.

use crate::dist::{StudentT, normal_sf, normal_upper_quantile};
use crate::numeric::{GaussLegendre, find_root};

/// How the error rate is spent over the information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spending {
    /// Nearly nothing early: `2 - 2 Phi(z_(a/2) / sqrt(t))` per side (Lan, DeMets 1983).
    ObrienFleming,
    /// Evenly: `a ln(1 + (e - 1) t)` per side (Lan, DeMets 1983).
    Pocock,
}

impl Spending {
    /// Error spent on one side, out of `alpha` on that side, when the share `t` of the
    /// information is reached; 0 at or before 0, `alpha` from 1 on, `None` unless
    /// `0 < alpha < 1`.
    #[must_use]
    pub fn spent(self, t: f64, alpha: f64) -> Option<f64> {
        if !(alpha > 0.0 && alpha < 1.0) || t.is_nan() {
            return None;
        }
        if t <= 0.0 {
            return Some(0.0);
        }
        let t = t.min(1.0);
        Some(match self {
            Self::ObrienFleming => 2.0 * normal_sf(normal_upper_quantile(alpha / 2.0)? / t.sqrt()),
            Self::Pocock => alpha * ((std::f64::consts::E - 1.0) * t).ln_1p(),
        })
    }
}

/// One look of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Share of the planned information, above 0 and at most 1.
    pub time: f64,
    /// Two-sided error spent up to and including this look.
    pub spent: f64,
    /// Boundary of `|z|`.
    pub z: f64,
    /// Two-sided p of the boundary: the look rejects at or below it.
    pub nominal_p: f64,
}

impl Look {
    /// The boundary for a t statistic with `df` degrees of freedom: that of equal nominal p; its
    /// product with the standard error is the half-width of a repeated confidence interval
    /// (Jennison, Turnbull 1989). `None` unless `df > 0`.
    #[must_use]
    pub fn t(&self, df: f64) -> Option<f64> {
        StudentT::new(df)?.upper_quantile(self.nominal_p / 2.0)
    }
}

/// Symmetric two-sided boundaries at the information shares `times` (ascending, in `(0, 1]`) that
/// spend `alpha` in all, by recursive integration of the density of the statistic (Armitage,
/// McPherson, Rowe 1969; Lan, DeMets 1983).
///
/// The two sides are spent separately and crossing one after the other is not subtracted, as in
/// published tables. `None` for no look, times out of order, more than 1000 looks, or unless
/// `0 < alpha < 1`.
#[must_use]
pub fn boundaries(times: &[f64], alpha: f64, spending: Spending) -> Option<Vec<Look>> {
    let mut walk = Walk::over(times)?;
    let mut looks = Vec::with_capacity(times.len());
    let mut before = 0.0;
    for time in times {
        let spent = spending.spent(*time, alpha / 2.0)?;
        let now = (spent - before).max(0.0);
        before = spent;
        let z = walk.boundary_for(*time, now)?;
        walk.step(*time, z);
        looks.push(Look {
            time: *time,
            spent: 2.0 * spent,
            z,
            nominal_p: 2.0 * normal_sf(z),
        });
    }
    Some(looks)
}

/// Probability of leaving `|z| < bounds` for the first time at each look, when the statistic at
/// full information has mean `drift` (0 for no effect): its sum is the error rate, or the power.
/// `None` as for [`boundaries`] or for bounds not above 0.
#[must_use]
pub fn crossing_probabilities(times: &[f64], bounds: &[f64], drift: f64) -> Option<Vec<f64>> {
    let usable = times.len() == bounds.len() && bounds.iter().all(|b| *b > 0.0 && b.is_finite());
    if !usable || !drift.is_finite() {
        return None;
    }
    let mut walk = Walk::over(times)?;
    walk.drift = drift;
    let looks = times.iter().zip(bounds);
    let crossing = |(time, z): (&f64, &f64)| {
        let (lower, upper) = walk.beyond(*time, *z);
        walk.step(*time, *z);
        (lower + upper).clamp(0.0, 1.0)
    };
    Some(looks.map(crossing).collect())
}

/// A Brownian motion observed at the looks so far without having left the boundaries.
struct Walk {
    rule: GaussLegendre,
    drift: f64,
    time: f64,
    /// Smallest gap between looks: no panel of nodes is wider than its deviation.
    finest: f64,
    /// Points with the probability of being there.
    mass: Vec<(f64, f64)>,
}

impl Walk {
    fn over(times: &[f64]) -> Option<Self> {
        let mut finest = f64::MAX;
        let mut before = 0.0;
        for time in times {
            finest = finest.min(time - before);
            before = *time;
        }
        let usable = !times.is_empty() && times.len() <= 1000 && finest >= 1e-5 && before <= 1.0;
        usable.then(|| Self {
            rule: GaussLegendre::new(8),
            drift: 0.0,
            time: 0.0,
            finest,
            mass: vec![(0.0, 1.0)],
        })
    }

    /// Probability of lying below `-z` and above `z` (standardised) at `time`.
    fn beyond(&self, time: f64, z: f64) -> (f64, f64) {
        let gap = time - self.time;
        let (edge, sd) = (z * time.sqrt(), gap.sqrt());
        let tails = |(x, p): &(f64, f64)| {
            let mean = x + self.drift * gap;
            (
                p * normal_sf((edge + mean) / sd),
                p * normal_sf((edge - mean) / sd),
            )
        };
        let add = |sum: (f64, f64), part: (f64, f64)| (sum.0 + part.0, sum.1 + part.1);
        self.mass.iter().map(tails).fold((0.0, 0.0), add)
    }

    /// The `z` that the statistic exceeds with probability `wanted` at `time`.
    fn boundary_for(&self, time: f64, wanted: f64) -> Option<f64> {
        if self.time == 0.0 {
            return normal_upper_quantile(wanted).filter(|z| z.is_finite());
        }
        let gap = |z: f64| self.beyond(time, z).1 - wanted;
        if gap(0.0) <= 0.0 {
            return None;
        }
        find_root(0.0, 38.0, gap)
    }

    /// Goes on to `time` and keeps what lies within `|z| < bound`.
    fn step(&mut self, time: f64, bound: f64) {
        let gap = time - self.time;
        let sd = gap.sqrt();
        // Beyond ten deviations there is no mass to keep.
        let edge = bound.min(10.0 + self.drift.abs()) * time.sqrt();
        let width = (self.finest.sqrt() * 2.0).min(edge);
        let panels = (2.0 * edge / width).ceil().clamp(1.0, 20_000.0);
        let step = 2.0 * edge / panels;
        let mut next = Vec::new();
        let mut start = -edge;
        while start < edge - 0.5 * step {
            for (y, weight) in self.rule.nodes(start, start + step) {
                let at = |(x, p): &(f64, f64)| {
                    p * crate::dist::normal_pdf((y - x - self.drift * gap) / sd)
                };
                let density = self.mass.iter().map(at).sum::<f64>() / sd;
                next.push((y, weight * density));
            }
            start += step;
        }
        self.mass = next;
        self.time = time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(looks: u32) -> Vec<f64> {
        (1..=looks)
            .map(|i| f64::from(i) / f64::from(looks))
            .collect()
    }

    fn assert_table(spending: Spending, expected: &[f64], tolerance: f64) {
        let looks = boundaries(&equal(5), 0.05, spending).expect("boundaries");
        for (look, expected) in looks.iter().zip(expected) {
            assert!((look.z - expected).abs() < tolerance, "{look:?} {expected}");
        }
    }

    /// Five equal looks, two-sided 5 %: tables of Reboussin, DeMets, Kim, Lan (2000), whose
    /// grid is good to 2e-4.
    #[test]
    fn the_published_tables() {
        let obrien_fleming = [4.8769, 3.3569, 2.6803, 2.2898, 2.0310];
        assert_table(Spending::ObrienFleming, &obrien_fleming, 2e-4);
        assert_table(
            Spending::Pocock,
            &[2.4380, 2.4268, 2.4101, 2.3966, 2.3859],
            2e-4,
        );
    }

    /// Classical constants: Pocock (1977) 2.413 and O'Brien, Fleming (1979) 2.040 for five looks
    /// (Jennison, Turnbull 2000, tables 2.1 and 2.3).
    #[test]
    fn the_classical_constants() {
        let times = equal(5);
        let pocock = crossing_probabilities(&times, &[2.413; 5], 0.0).expect("pocock");
        assert!((pocock.iter().sum::<f64>() - 0.05).abs() < 5e-5);
        let bounds: Vec<f64> = times.iter().map(|t| 2.040 / t.sqrt()).collect();
        let obf = crossing_probabilities(&times, &bounds, 0.0).expect("obf");
        assert!((obf.iter().sum::<f64>() - 0.05).abs() < 5e-5);
    }

    /// One look has the power of a z test; a drift of 3.2415 gives 90 % (1.96 + 1.2816).
    #[test]
    fn a_single_look() {
        let looks = boundaries(&[1.0], 0.05, Spending::Pocock).expect("boundaries");
        assert!((looks[0].z - 1.959_963_984_540_054).abs() < 1e-12);
        let power = crossing_probabilities(&[1.0], &[looks[0].z], 3.241_515_5).expect("power");
        assert!((power[0] - 0.9).abs() < 1e-6);
    }

    #[test]
    fn what_is_spent_is_what_crosses() {
        for (spending, looks) in [(Spending::Pocock, 12), (Spending::ObrienFleming, 30)] {
            let times = equal(looks);
            let plan = boundaries(&times, 0.05, spending).expect("boundaries");
            let bounds: Vec<f64> = plan.iter().map(|look| look.z).collect();
            let crossing = crossing_probabilities(&times, &bounds, 0.0).expect("crossing");
            assert!((crossing.iter().sum::<f64>() - 0.05).abs() < 1e-9);
        }
    }

    #[test]
    fn a_t_boundary_is_wider() {
        let looks = boundaries(&equal(4), 0.05, Spending::ObrienFleming).expect("boundaries");
        assert!(
            looks
                .iter()
                .all(|look| look.t(4.0).is_some_and(|t| t > look.z))
        );
        assert_eq!(looks[0].t(0.0), None);
    }

    #[test]
    fn plans_that_are_none() {
        let plan = |times: &[f64], alpha| boundaries(times, alpha, Spending::Pocock);
        for times in [
            &[][..],
            &[0.5, 0.5],
            &[0.7, 0.5],
            &[0.0, 1.0],
            &[1.1],
            &[f64::NAN],
        ] {
            assert_eq!(plan(times, 0.05), None, "{times:?}");
        }
        assert_eq!(plan(&[1.0], 0.0), None);
        assert_eq!(plan(&[1.0], f64::NAN), None);
        assert_eq!(crossing_probabilities(&[1.0], &[], 0.0), None);
        assert_eq!(crossing_probabilities(&[1.0], &[f64::INFINITY], 0.0), None);
        // So early that nothing is left to spend.
        let early = boundaries(&[0.0001, 1.0], 0.05, Spending::ObrienFleming);
        assert!(early.is_none_or(|looks| looks[0].z.is_finite()));
    }
}
