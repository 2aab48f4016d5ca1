//! Whether two sides spread alike: Brown and Forsythe, Levene.
//!
//! Both are an analysis of variance of absolute deviations, from the median or from the mean of
//! each side. They say nothing of location, and a spread that was not shown to differ was not
//! shown to be equal.

use crate::dist::FisherF;
use crate::summary::{Summary, count};

/// Outcome of a test of equal spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpreadTest {
    /// F statistic with 1 and `df` degrees of freedom.
    pub f: f64,
    /// Degrees of freedom of the denominator, `n + m - 2`.
    pub df: f64,
    /// Upper tail of F.
    pub p: f64,
    /// Standard deviation of the new side over that of the base; `None` for a constant base.
    pub ratio: Option<f64>,
}

/// Spread about the medians (Brown, Forsythe 1974), the robust form. `None` when a side has fewer
/// than three values or one that is not finite.
#[must_use]
pub fn brown_forsythe(a: &[f64], b: &[f64]) -> Option<SpreadTest> {
    compare(a, b, |side| side.median)
}

/// Spread about the means (Levene 1960), for nearly normal values. `None` as for
/// [`brown_forsythe`].
#[must_use]
pub fn levene(a: &[f64], b: &[f64]) -> Option<SpreadTest> {
    compare(a, b, |side| side.mean)
}

fn compare(a: &[f64], b: &[f64], centre: impl Fn(&Summary) -> f64) -> Option<SpreadTest> {
    let (of_a, of_b) = (Summary::of(a)?, Summary::of(b)?);
    if of_a.n.min(of_b.n) < 3 {
        return None;
    }
    let deviations = |values: &[f64], side: &Summary| -> Option<Summary> {
        let centre = centre(side);
        let off: Vec<f64> = values.iter().map(|v| (v - centre).abs()).collect();
        Summary::of(&off)
    };
    let (z_a, z_b) = (deviations(a, &of_a)?, deviations(b, &of_b)?);
    let (n, m) = (count(z_a.n), count(z_b.n));
    let df = n + m - 2.0;
    let pooled = crate::ttest::pooled_sd(&z_a, &z_b)?;
    let ratio = of_b.sample_sd? / of_a.sample_sd?;
    let difference = z_b.mean - z_a.mean;
    // With one degree of freedom F is the square of Student's t.
    let t = difference / pooled / (1.0 / n + 1.0 / m).sqrt();
    let (f, p) = if pooled > 0.0 {
        let f = t * t;
        (f, FisherF::new(1.0, df)?.sf(f).clamp(0.0, 1.0))
    } else if difference == 0.0 {
        (0.0, 1.0)
    } else {
        // Deviations that are constant on each side and differ have no error to be held against.
        return None;
    };
    let test = SpreadTest {
        f,
        df,
        p,
        ratio: Some(ratio).filter(|ratio| ratio.is_finite()),
    };
    (f.is_finite() && p.is_finite()).then_some(test)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Deviations from the medians 3 and 30: 2 1 0 1 2 and 20 10 0 10 20; means 1.2 and 12,
    /// sums of squares 2.8 and 280. F = 10.8^2 / (282.8/8 * 2/5).
    #[test]
    fn five_and_five() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0], [10.0, 20.0, 30.0, 40.0, 50.0]);
        let test = brown_forsythe(&a, &b).expect("test");
        assert!(
            (test.f - 116.64 / (282.8 / 8.0 * 0.4)).abs() < 1e-12,
            "{test:?}"
        );
        assert_eq!((test.df, test.ratio), (8.0, Some(10.0)));
        assert!(test.p > 0.015 && test.p < 0.025, "{test:?}");
        // Both sides are symmetric: mean and median agree.
        assert_eq!(levene(&a, &b), Some(test));
    }

    #[test]
    fn what_has_no_spread() {
        let same = brown_forsythe(&[1.0; 4], &[2.0; 4]).expect("test");
        assert_eq!((same.f, same.p, same.ratio), (0.0, 1.0, None));
        assert_eq!(brown_forsythe(&[1.0, 2.0], &[1.0, 2.0, 3.0]), None);
        assert_eq!(
            brown_forsythe(&[1.0, 2.0, f64::NAN], &[1.0, 2.0, 3.0]),
            None
        );
    }

    proptest! {
        #[test]
        fn any_input(a in prop::collection::vec(any::<f64>(), 0..8), b in prop::collection::vec(any::<f64>(), 0..8)) {
            for test in [brown_forsythe(&a, &b), levene(&a, &b)].into_iter().flatten() {
                prop_assert!((0.0..=1.0).contains(&test.p) && test.f >= 0.0);
            }
        }

        #[test]
        fn location_does_not_matter(a in prop::collection::vec(-10..10_i32, 3..9), b in prop::collection::vec(-10..10_i32, 3..9), shift in -100..100_i32) {
            let values = |side: &[i32], shift: i32| -> Vec<f64> { side.iter().map(|v| f64::from(v + shift)).collect() };
            let (a, moved, b) = (values(&a, 0), values(&a, shift), values(&b, 0));
            match (brown_forsythe(&a, &b), brown_forsythe(&moved, &b), brown_forsythe(&b, &a)) {
                (Some(x), Some(y), Some(swapped)) => {
                    prop_assert!((x.p - y.p).abs() < 1e-9 && (x.p - swapped.p).abs() < 1e-9);
                }
                (x, y, swapped) => prop_assert!(x.is_none() && y.is_none() && swapped.is_none()),
            }
        }
    }
}
