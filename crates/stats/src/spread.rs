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

/// Spread about the medians (Brown, Forsythe 1974), the robust form. Two constant sides have a p
/// of 1; `None` when a side has fewer than three values or one that is not finite, or when the
/// deviations differ but are constant on each side.
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
    use crate::testing::close;
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

    /// Means 3 and 10, deviations 2 1 3 and 10 5 0 15, their means 2 and 7.5, sums of squares 2
    /// and 125. Medians 2 and 7.5, deviations 1 0 4 and 7.5 2.5 2.5 17.5, their means 5/3 and 7.5,
    /// sums of squares 26/3 and 150. The p-values by Simpson's rule over Student's density.
    #[test]
    fn skewed_sides_tell_the_two_apart() {
        let (a, b) = ([1.0, 2.0, 6.0], [0.0, 5.0, 10.0, 25.0]);
        let by_mean = levene(&a, &b).expect("test");
        close(by_mean.f, 30.25 / (127.0 / 5.0 * 7.0 / 12.0), 1e-12);
        close(by_mean.p, 0.212_422_655_174_991_6, 1e-9);
        let by_median = brown_forsythe(&a, &b).expect("test");
        close(
            by_median.f,
            1225.0 / 36.0 / (476.0 / 15.0 * 7.0 / 12.0),
            1e-12,
        );
        close(by_median.p, 0.233_176_900_592_203_3, 1e-9);
        // Variances 14/2 and 350/3.
        close(
            by_mean.ratio.expect("ratio"),
            (350.0_f64 / 21.0).sqrt(),
            1e-12,
        );
    }

    #[test]
    fn what_has_no_spread() {
        let same = brown_forsythe(&[1.0; 4], &[2.0; 4]).expect("test");
        assert_eq!((same.f, same.p, same.ratio), (0.0, 1.0, None));
        let one_side = brown_forsythe(&[1.0; 4], &[1.0, 2.0, 3.0]).expect("test");
        assert!(one_side.p < 1.0 && one_side.ratio.is_none());
        // All deviations are 1 on one side and 0 on the other.
        assert_eq!(brown_forsythe(&[1.0; 4], &[0.0, 0.0, 2.0, 2.0]), None);
        assert_eq!(brown_forsythe(&[1.0, 2.0], &[1.0, 2.0, 3.0]), None);
        assert_eq!(
            brown_forsythe(&[1.0, 2.0, f64::NAN], &[1.0, 2.0, 3.0]),
            None
        );
    }

    type Test = fn(&[f64], &[f64]) -> Option<SpreadTest>;
    const TESTS: [Test; 2] = [brown_forsythe, levene];

    proptest! {
        #[test]
        fn any_input(a in prop::collection::vec(any::<f64>(), 0..8), b in prop::collection::vec(any::<f64>(), 0..8)) {
            for test in [brown_forsythe(&a, &b), levene(&a, &b)].into_iter().flatten() {
                prop_assert!((0.0..=1.0).contains(&test.p) && test.f >= 0.0);
            }
        }

        #[test]
        fn location_and_order_do_not_matter(
            a in prop::collection::vec(-10.0..10.0_f64, 3..9),
            b in prop::collection::vec(-10.0..10.0_f64, 3..9),
            shift in -100.0..100.0_f64,
        ) {
            let moved: Vec<f64> = a.iter().map(|v| v + shift).collect();
            for test in TESTS {
                let p = |a: &[f64], b: &[f64]| test(a, b).expect("test").p;
                let here = p(&a, &b);
                prop_assert!((0.0..=1.0).contains(&here));
                prop_assert!((here - p(&moved, &b)).abs() < 1e-9);
                prop_assert!((here - p(&b, &a)).abs() < 1e-12);
            }
        }

        /// Ties, and with them sides and deviations without spread.
        #[test]
        fn location_and_order_of_ties_do_not_matter(
            a in prop::collection::vec(-2..=2_i32, 3..9),
            b in prop::collection::vec(-2..=2_i32, 3..9),
            shift in -100..100_i32,
        ) {
            let values = |side: &[i32], shift: i32| -> Vec<f64> {
                side.iter().map(|v| f64::from(v + shift)).collect()
            };
            let (a, moved, b) = (values(&a, 0), values(&a, shift), values(&b, 0));
            let p = |a: &[f64], b: &[f64]| brown_forsythe(a, b).map(|test| test.p);
            let here = p(&a, &b);
            for there in [p(&moved, &b), p(&b, &a)] {
                prop_assert_eq!(here.is_some(), there.is_some());
                let off = here.zip(there).map_or(0.0, |(x, y)| (x - y).abs());
                prop_assert!(off < 1e-9, "{:?} {:?}", here, there);
            }
        }
    }
}
