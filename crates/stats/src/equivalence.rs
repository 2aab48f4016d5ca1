//! Equivalence: showing that a change is smaller than a margin.
//!
//! Two one-sided tests. "Not significant" is no equivalence; only this is. The difference may rest
//! on any standard error, moderated or not.

use crate::ttest::Difference;

/// Outcome of the two one-sided tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Equivalence {
    /// p-value against "the change is at or below the lower margin".
    pub p_lower: f64,
    /// p-value against "the change is at or above the upper margin".
    pub p_upper: f64,
}

impl Equivalence {
    /// The p-value of equivalence, the larger of the two.
    #[must_use]
    pub fn p(&self) -> f64 {
        self.p_lower.max(self.p_upper)
    }
}

/// Tests that `difference` lies inside `-margin..margin`, in its own unit (Schuirmann 1987); at
/// level `alpha` it does exactly where the interval of probability `1 - 2 alpha` lies inside.
/// Without spread both p-values are 0 inside the margin and 1 outside, since the change is exact.
/// `None` unless the margin is finite and above 0.
#[must_use]
pub fn equivalence(difference: &Difference, margin: f64) -> Option<Equivalence> {
    if !(margin > 0.0 && margin.is_finite()) {
        return None;
    }
    if difference.se == 0.0 {
        let exact = |inside: bool| if inside { 0.0 } else { 1.0 };
        return Some(Equivalence {
            p_lower: exact(difference.estimate > -margin),
            p_upper: exact(difference.estimate < margin),
        });
    }
    Some(Equivalence {
        p_lower: difference.p_above(-margin)?,
        p_upper: difference.p_below(margin)?,
    })
}

/// The margin `ln(1 + m)` on logarithms for a ratio between `1 / (1 + m)` and `1 + m`; `None`
/// unless `m` is finite and above 0.
#[must_use]
pub fn log_margin(m: f64) -> Option<f64> {
    (m > 0.0 && m.is_finite()).then(|| m.ln_1p())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exact_changes_and_margins() {
        let exact = Difference::new(0.5, 0.0, 4.0, vec![]).expect("difference");
        assert_eq!(equivalence(&exact, 1.0).expect("test").p(), 0.0);
        assert_eq!(equivalence(&exact, 0.4).expect("test").p(), 1.0);
        assert_eq!(equivalence(&exact, 0.0), None);
        assert_eq!(equivalence(&exact, f64::NAN), None);
        assert_eq!(log_margin(-0.1), None);
    }

    proptest! {
        #[test]
        fn the_interval_says_the_same(
            estimate in -2.0..2.0_f64, se in 0.01..1.0_f64, df in 1.0..50.0_f64, margin in 0.1..3.0_f64
        ) {
            let d = Difference::new(estimate, se, df, vec![]).expect("difference");
            let (low, high) = d.interval(0.9).expect("interval");
            let p = equivalence(&d, margin).expect("test").p();
            prop_assume!((p - 0.05).abs() > 1e-9);
            prop_assert_eq!(p < 0.05, -margin < low && high < margin);
        }
    }
}
