//! Evidence that may be looked at after every run: the t e-process and e-BH over metrics.
//!
//! An e-value of `1/alpha` rejects at level `alpha` whenever one stops to look. The values are
//! those of run pairs (log ratios within a block). Nothing here decides when a campaign should
//! end for lack of an effect.

use crate::summary::{Summary, count};

/// State of the e-process after `n` values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EStep {
    /// Values so far, at least 2.
    pub n: usize,
    /// One-sample t statistic against 0; `None` while all values are equal.
    pub t: Option<f64>,
    /// Natural logarithm of the e-value.
    pub ln_e: f64,
}

impl EStep {
    /// The e-value; `f64::MAX` where it exceeds the range of numbers.
    #[must_use]
    pub fn e(&self) -> f64 {
        self.ln_e.exp().min(f64::MAX)
    }
}

/// Logarithm of the e-value of a one-sample t statistic of `n` values, for a `N(0, g)` prior on
/// the effect in standard deviations and the right Haar prior on the deviation (Gronau, Ly,
/// Wagenmakers 2020; valid under optional stopping by Perez-Ortiz et al. 2024).
///
/// `e = (1+ng)^(-1/2) [(1+t^2/v) / (1+t^2/((1+ng)v))]^((v+1)/2)`, `v = n - 1`; `None` for
/// `n < 2`, `g` not above 0, or a statistic that is NaN. An infinite `t` is allowed.
#[must_use]
pub fn ln_t_e_value(n: usize, t: f64, g: f64) -> Option<f64> {
    if n < 2 || t.is_nan() || !(g > 0.0 && g.is_finite()) {
        return None;
    }
    let v = count(n) - 1.0;
    let growth = count(n) * g;
    let square = t * t / v;
    let ratio = if square.is_finite() {
        square.ln_1p() - (square / (1.0 + growth)).ln_1p()
    } else {
        growth.ln_1p()
    };
    let ln_e = 0.5 * ((v + 1.0) * ratio - growth.ln_1p());
    ln_e.is_finite().then_some(ln_e)
}

/// The e-process along `values` from the second on; empty for fewer than two, `None` when a value
/// is not finite.
///
/// While all values are equal there is no t statistic, and the e-value stays 1: equal values
/// carry no scale, and the limit of the formula would call any nonzero constant certain.
#[must_use]
pub fn t_e_process(values: &[f64], g: f64) -> Option<Vec<EStep>> {
    if values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let step = |n: usize| {
        let summary = Summary::of(values.get(..n)?)?;
        let t = summary.mean / summary.standard_error()?;
        let t = t.is_finite().then_some(t);
        let ln_e = t.map_or(Some(0.0), |t| ln_t_e_value(n, t, g))?;
        Some(EStep { n, t, ln_e })
    };
    (2..=values.len()).map(step).collect()
}

/// First number of values at which the e-value reached `threshold` (`1/alpha`); `None` when it
/// never did.
#[must_use]
pub fn stopping_time(path: &[EStep], threshold: f64) -> Option<usize> {
    let reached = path.iter().find(|step| step.e() >= threshold);
    reached.map(|step| step.n)
}

/// Which hypotheses e-BH rejects at false discovery rate `q`, in the order given: the `k` largest
/// e-values for the largest `k` with `e_(k) >= m / (q k)` (Wang, Ramdas 2022), valid under any
/// dependence. A NaN counts as 0; with `q` outside 0..=1 nothing is rejected.
#[must_use]
pub fn e_bh(e_values: &[f64], q: f64) -> Vec<bool> {
    let m = count(e_values.len());
    let value = |i: &usize| e_values.get(*i).map_or(0.0, |e| e.max(0.0));
    let mut order: Vec<usize> = (0..e_values.len()).collect();
    order.sort_by(|a, b| value(b).total_cmp(&value(a)));
    let rejected = order
        .iter()
        .enumerate()
        .filter(|(rank, i)| (0.0..=1.0).contains(&q) && value(i) * q * count(rank + 1) >= m)
        .map(|(rank, _)| rank + 1)
        .next_back()
        .unwrap_or(0);
    let mut reject = vec![false; e_values.len()];
    for i in order.into_iter().take(rejected) {
        if let Some(slot) = reject.get_mut(i) {
            *slot = true;
        }
    }
    reject
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_effect_is_evidence_for_none() {
        let ln_e = ln_t_e_value(100, 0.0, 1.0).expect("e-value");
        assert!((ln_e + 0.5 * 101.0_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn an_infinite_statistic_has_the_limit() {
        let limit = ln_t_e_value(4, f64::INFINITY, 1.0).expect("limit");
        let near = ln_t_e_value(4, 1e150, 1.0).expect("near");
        assert!((limit - near).abs() < 1e-12);
    }

    #[test]
    fn constants_are_no_evidence() {
        let path = t_e_process(&[2.0, 2.0, 2.0], 1.0).expect("path");
        assert!(path.iter().all(|s| s.t.is_none() && s.e() == 1.0));
        assert_eq!(stopping_time(&path, 20.0), None);
        assert_eq!(t_e_process(&[f64::NAN, 1.0], 1.0), None);
        assert_eq!(t_e_process(&[1.0], 1.0), Some(vec![]));
        assert_eq!(t_e_process(&[1.0, 2.0], 0.0), None);
    }

    #[test]
    fn e_bh_takes_the_largest_set() {
        // m = 4, q = 0.1: thresholds 40, 20, 13.3, 10.
        assert_eq!(
            e_bh(&[25.0, 1.0, 21.0, 3.0], 0.1),
            [true, false, true, false]
        );
        assert_eq!(e_bh(&[25.0, 1.0, 19.0, 3.0], 0.1), [false; 4]);
        assert_eq!(e_bh(&[10.0; 4], 0.1), [true; 4]);
        assert_eq!(e_bh(&[f64::NAN, f64::INFINITY], 0.05), [false, true]);
        assert_eq!(e_bh(&[], 0.05), Vec::<bool>::new());
    }

    proptest! {
        #[test]
        fn grows_with_the_statistic(n in 2_usize..60, t in 0.0..50.0_f64) {
            let low = ln_t_e_value(n, t, 1.0).expect("e");
            let high = ln_t_e_value(n, -(t + 0.1), 1.0).expect("e");
            prop_assert!(low < high);
        }

        #[test]
        fn anything_in_finite_out(v in prop::collection::vec(any::<f64>(), 0..12), g in any::<f64>()) {
            for step in t_e_process(&v, g).into_iter().flatten() {
                prop_assert!(step.ln_e.is_finite() && step.e().is_finite());
            }
        }
    }
}
