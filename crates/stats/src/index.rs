//! The normalised index: a figure on a scale where a baseline is 0 and a reference is 1.
//!
//! All three are measured on the same testbox, and the error of the baseline enters both the
//! numerator and the denominator. When baseline and reference do not differ clearly the scale
//! has no length and the index is refused. Nothing here compares two indices.

use crate::dist::normal_upper_quantile;
use crate::summary::Summary;

/// An index with its uncertainty; 0 is the baseline, 1 the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Index {
    /// `(x - b) / (r - b)` of the estimates.
    pub index: f64,
    /// Standard error by the delta method.
    pub error: f64,
    /// `index +- z error`.
    pub delta: (f64, f64),
    /// Fieller's set, an interval since `g < 1`.
    pub fieller: (f64, f64),
    /// Square of `z` over the anchors' distance in standard errors, below 1.
    pub g: f64,
}

/// Why there is no index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoIndex {
    /// Baseline and reference do not differ at this level: `g >= 1`, or `None` where the
    /// estimates are equal.
    AnchorsDoNotDiffer {
        /// `z^2 (v_b + v_r) / (r - b)^2`.
        g: Option<f64>,
    },
    /// A set has too few runs or a value that is not finite, or a result is out of range.
    NotEnoughData,
}

/// Index of the runs `x` between `baseline` and `reference`, all in the metric's unit and
/// independent, with intervals at `1 - alpha`.
///
/// Variance `(v_x + (i-1)^2 v_b + i^2 v_r) / (r-b)^2`, where `v` is the variance of a mean; the
/// Fieller set solves `(num - i den)^2 = z^2 (v_x + (i-1)^2 v_b + i^2 v_r)` (Fieller 1954).
///
/// # Errors
/// When the anchors do not differ, or a set has fewer than two runs.
pub fn normalise(
    x: &[f64],
    baseline: &[f64],
    reference: &[f64],
    alpha: f64,
) -> Result<Index, NoIndex> {
    let parts = [x, baseline, reference].map(mean_and_variance);
    let [Some(x), Some(b), Some(r)] = parts else {
        return Err(NoIndex::NotEnoughData);
    };
    let z = normal_upper_quantile(alpha / 2.0).filter(|z| z.is_finite());
    index_of_estimates(x, b, r, z.ok_or(NoIndex::NotEnoughData)?)
}

/// The same index from medians, with the error of each by [`crate::order::median_error`]; for
/// latencies, whose means are a matter of a few long ones.
///
/// # Errors
/// As for [`normalise`]; five runs of each are needed.
pub fn normalise_medians(
    x: &[f64],
    baseline: &[f64],
    reference: &[f64],
    alpha: f64,
) -> Result<Index, NoIndex> {
    let median = |values: &[f64]| {
        let error = crate::order::median_error(values)?;
        Some((Summary::of(values)?.median, error * error))
    };
    let [Some(x), Some(b), Some(r)] = [x, baseline, reference].map(median) else {
        return Err(NoIndex::NotEnoughData);
    };
    let z = normal_upper_quantile(alpha / 2.0).filter(|z| z.is_finite());
    index_of_estimates(x, b, r, z.ok_or(NoIndex::NotEnoughData)?)
}

/// The same from estimates with the variance of each, `(estimate, variance)`, and the normal
/// quantile `z`; for a figure that is one run its variance may be 0.
///
/// # Errors
/// When the anchors do not differ, or a result is out of range.
pub fn index_of_estimates(
    (x, vx): (f64, f64),
    (b, vb): (f64, f64),
    (r, vr): (f64, f64),
    z: f64,
) -> Result<Index, NoIndex> {
    let length = r - b;
    if length == 0.0 {
        return Err(NoIndex::AnchorsDoNotDiffer { g: None });
    }
    // All in units of the scale, so that squares of large figures cannot overflow.
    let [vx, vb, vr] = [vx, vb, vr].map(|v| v / length / length);
    let i = (x - b) / length;
    let g = z * z * (vb + vr);
    if !(i.is_finite() && g.is_finite() && vx.is_finite()) {
        return Err(NoIndex::NotEnoughData);
    }
    if g >= 1.0 {
        return Err(NoIndex::AnchorsDoNotDiffer { g: Some(g) });
    }
    let error = (vx + (i - 1.0).powi(2) * vb + i * i * vr).sqrt();
    // (1 - g) t^2 - 2 (i - z^2 vb) t + i^2 - z^2 (vx + vb) = 0; the discriminant in a form that
    // does not subtract squares of i.
    let middle = (i - z * z * vb) / (1.0 - g);
    let spread = vx + (i - 1.0).powi(2) * vb + i * i * vr - z * z * (vx * (vb + vr) + vb * vr);
    let half = z * spread.max(0.0).sqrt() / (1.0 - g);
    let result = Index {
        index: i,
        error,
        delta: (i - z * error, i + z * error),
        fieller: (middle - half, middle + half),
        g,
    };
    let ends = [result.delta, result.fieller];
    let finite = ends.iter().all(|(l, u)| l.is_finite() && u.is_finite());
    finite.then_some(result).ok_or(NoIndex::NotEnoughData)
}

fn mean_and_variance(values: &[f64]) -> Option<(f64, f64)> {
    let summary = Summary::of(values)?;
    Some((summary.mean, summary.standard_error()?.powi(2)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn medians_are_not_moved_by_a_long_one() {
        let b = [1.0, 1.1, 0.9, 1.05, 0.95];
        let r = [5.0, 5.1, 4.9, 5.05, 4.95];
        let x = [3.0, 3.1, 2.9, 3.05, 95.0];
        let index = normalise_medians(&x, &b, &r, 0.05).expect("index");
        let i = (3.05 - 1.0) / 4.0;
        assert!((index.index - i).abs() < 1e-12);
        // The error of the median of five is their range, here 92.1, 0.2 and 0.2, over 2 z.005.
        let ranges = [92.1, (i - 1.0) * 0.2, i * 0.2_f64];
        let squares: f64 = ranges.iter().map(|v| v * v).sum();
        let error = squares.sqrt() / (2.0 * 2.575_829_303_548_901) / 4.0;
        assert!((index.error - error).abs() < 1e-9, "{index:?} {error}");
        assert_eq!(
            normalise_medians(&x[..4], &b, &r, 0.05),
            Err(NoIndex::NotEnoughData)
        );
        let same = normalise_medians(&x, &b, &b, 0.05);
        assert!(matches!(same, Err(NoIndex::AnchorsDoNotDiffer { .. })));
    }

    #[test]
    fn the_anchors_are_0_and_1() {
        let (b, r) = ([1.0, 1.1, 0.9], [5.0, 5.2, 4.8]);
        for (x, expected) in [(b, 0.0), (r, 1.0)] {
            let got = normalise(&x, &b, &r, 0.05).expect("index");
            assert!((got.index - expected).abs() < 1e-12);
            assert!(got.fieller.0 < expected && expected < got.fieller.1);
        }
    }

    #[test]
    fn refused_without_a_scale() {
        let noisy = [1.0, 2.0, 3.0];
        assert!(matches!(
            normalise(&noisy, &[1.0, 2.0, 3.0], &[1.5, 2.5, 3.5], 0.05),
            Err(NoIndex::AnchorsDoNotDiffer { g: Some(g) }) if g >= 1.0
        ));
        assert_eq!(
            normalise(&noisy, &[1.0, 1.0], &[1.0, 1.0], 0.05),
            Err(NoIndex::AnchorsDoNotDiffer { g: None })
        );
        assert_eq!(
            normalise(&[1.0], &noisy, &[9.0, 9.1], 0.05),
            Err(NoIndex::NotEnoughData)
        );
        assert_eq!(
            normalise(&[f64::NAN, 1.0], &noisy, &[9.0, 9.1], 0.05),
            Err(NoIndex::NotEnoughData)
        );
    }

    proptest! {
        #[test]
        fn the_set_solves_its_equation(
            x in -1e3..1e3_f64, b in -1e3..1e3_f64, r in -1e3..1e3_f64,
            vx in 0.0..1e3_f64, vb in 0.0..1e3_f64, vr in 0.0..1e3_f64,
        ) {
            let z = 1.96;
            if let Ok(found) = index_of_estimates((x, vx), (b, vb), (r, vr), z) {
                for t in [found.fieller.0, found.fieller.1] {
                    let left = (x - b) - t * (r - b);
                    let right = z * z * (vx + (t - 1.0).powi(2) * vb + t * t * vr);
                    prop_assert!((left * left - right).abs() <= 1e-6 * (1.0 + right));
                }
            }
        }

        #[test]
        fn anything_in_finite_out(v in prop::collection::vec(any::<f64>(), 7), alpha in any::<f64>()) {
            if let Ok(found) = normalise(&v[..2], &v[2..5], &v[5..], alpha) {
                prop_assert!(found.index.is_finite() && found.error.is_finite());
            }
        }
    }
}
