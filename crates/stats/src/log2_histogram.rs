//! Comparison of two histograms whose buckets are octaves, as BPF tools print them.
//!
//! Bucket `i` counts the events in `[2^i, 2^(i+1))` of the source's unit. Such a source does not
//! say where in an octave an event lies, so quantiles are buckets and distances are octaves. The
//! events of one run depend on each other: nothing here is a test between variants; that takes
//! the run-label permutation over runs.

use crate::dist::ChiSquared;
use crate::summary::count;

/// Distances between two histograms of octaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Log2Distance {
    /// Largest difference of the cumulative shares at a bucket's end, 0..=1.
    pub ks: f64,
    /// Earth mover's distance in octaves.
    pub emd_octaves: f64,
    /// The same with its direction: above 0 when the second histogram lies at larger values.
    pub emd_octaves_signed: f64,
}

/// Pearson's chi-square for the equality of two rows of counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChiSquare {
    /// The statistic.
    pub statistic: f64,
    /// Degrees of freedom, the number of buckets with an event less one.
    pub df: usize,
    /// Upper tail, 1 with no degree of freedom. Events inside a run are not independent: a
    /// check of the arithmetic, never a verdict.
    pub p: f64,
}

/// Kolmogorov distance and earth mover's distance of two histograms, the shorter one padded with
/// empty buckets; `None` when one holds no event.
///
/// On a line the earth mover's distance is the area between the cumulative shares
/// (Vallender 1974), here with the octave as unit.
#[must_use]
pub fn distance(a: &[u64], b: &[u64]) -> Option<Log2Distance> {
    let (total_a, total_b) = (total(a)?, total(b)?);
    let (mut seen_a, mut seen_b) = (0.0, 0.0);
    let mut result = Log2Distance {
        ks: 0.0,
        emd_octaves: 0.0,
        emd_octaves_signed: 0.0,
    };
    for i in 0..a.len().max(b.len()) {
        seen_a += bucket(a, i);
        seen_b += bucket(b, i);
        let gap = seen_a / total_a - seen_b / total_b;
        result.ks = result.ks.max(gap.abs());
        result.emd_octaves += gap.abs();
        result.emd_octaves_signed += gap;
    }
    Some(result)
}

/// The bucket that holds the `p`-quantile: the first with an event at which the cumulative count
/// reaches `p` times the total; `None` without an event or for `p` outside 0..=1.
#[must_use]
pub fn quantile_bucket(counts: &[u64], p: f64) -> Option<usize> {
    reach(counts, p).map(|reached| reached.bucket)
}

/// The `p`-quantile as other tools print it, in the source's unit, events spread evenly over
/// their octave; `None` as for [`quantile_bucket`].
///
/// For comparison with such tools only: the source supports no more than the bucket.
#[must_use]
pub fn quantile_linear(counts: &[u64], p: f64) -> Option<f64> {
    let reached = reach(counts, p)?;
    let lower = 2.0_f64.powi(i32::try_from(reached.bucket).ok()?);
    Some(lower * (1.0 + reached.share)).filter(|value| value.is_finite())
}

/// Pearson's chi-square (1900) of two rows of counts over the buckets that hold an event;
/// `None` when a row holds none.
#[must_use]
pub fn chi_square(a: &[u64], b: &[u64]) -> Option<ChiSquare> {
    let (total_a, total_b) = (total(a)?, total(b)?);
    let all = total_a + total_b;
    let (mut statistic, mut buckets) = (0.0, 0_usize);
    for i in 0..a.len().max(b.len()) {
        let column = bucket(a, i) + bucket(b, i);
        if column > 0.0 {
            buckets += 1;
            for (seen, row) in [(bucket(a, i), total_a), (bucket(b, i), total_b)] {
                let expected = column * (row / all);
                statistic += (seen - expected).powi(2) / expected;
            }
        }
    }
    let df = buckets - 1;
    let p = if df == 0 {
        1.0
    } else {
        ChiSquared::new(count(df))?.sf(statistic)
    };
    Some(ChiSquare { statistic, df, p })
}

struct Reached {
    bucket: usize,
    share: f64,
}

fn reach(counts: &[u64], p: f64) -> Option<Reached> {
    if !(0.0..=1.0).contains(&p) {
        return None;
    }
    let wanted = p * total(counts)?;
    let mut seen = 0.0;
    for (bucket, events) in counts.iter().enumerate().filter(|(_, c)| **c > 0) {
        let events = *events as f64;
        if seen + events >= wanted {
            let share = ((wanted - seen) / events).max(0.0);
            return Some(Reached { bucket, share });
        }
        seen += events;
    }
    None
}

fn bucket(counts: &[u64], i: usize) -> f64 {
    counts.get(i).map_or(0.0, |c| *c as f64)
}

fn total(counts: &[u64]) -> Option<f64> {
    let total: f64 = counts.iter().map(|c| *c as f64).sum();
    (total > 0.0).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_octave_apart() {
        let d = distance(&[0, 5], &[0, 0, 7]).expect("distance");
        assert_eq!((d.ks, d.emd_octaves, d.emd_octaves_signed), (1.0, 1.0, 1.0));
    }

    #[test]
    fn quantiles_are_buckets() {
        let counts = [0, 2, 0, 2];
        assert_eq!(quantile_bucket(&counts, 0.0), Some(1));
        assert_eq!(quantile_bucket(&counts, 0.5), Some(1));
        assert_eq!(quantile_bucket(&counts, 0.51), Some(3));
        assert_eq!(quantile_linear(&counts, 0.75), Some(12.0));
    }

    #[test]
    fn nothing_has_no_distance() {
        assert_eq!(distance(&[0, 0], &[1]), None);
        assert_eq!(quantile_bucket(&[], 0.5), None);
        assert_eq!(quantile_bucket(&[1], f64::NAN), None);
        assert_eq!(chi_square(&[], &[1]), None);
        assert_eq!(chi_square(&[3], &[1]).map(|c| (c.df, c.p)), Some((0, 1.0)));
    }

    proptest! {
        #[test]
        fn symmetric_and_finite(
            a in prop::collection::vec(any::<u64>(), 0..70),
            b in prop::collection::vec(any::<u64>(), 0..70),
        ) {
            if let (Some(one), Some(other)) = (distance(&a, &b), distance(&b, &a)) {
                prop_assert!((0.0..=1.0 + 1e-9).contains(&one.ks));
                prop_assert_eq!(one.emd_octaves, other.emd_octaves);
                prop_assert!(one.emd_octaves_signed.abs() <= one.emd_octaves + 1e-9);
            }
            if let Some(chi) = chi_square(&a, &b) {
                prop_assert!(chi.statistic.is_finite() && (0.0..=1.0).contains(&chi.p));
            }
        }
    }
}
