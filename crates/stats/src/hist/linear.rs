//! Buckets of one width.

use super::buckets::{Bucket, Buckets};
use crate::dist::whole;

/// A histogram of whole numbers with buckets of one width, and what is outside of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linear {
    first: u64,
    width: u64,
    counts: Vec<u64>,
    below: u64,
    above: u64,
    sum: u128,
    extremes: Option<(u64, u64)>,
}

impl Linear {
    /// An empty one with `places` buckets of `width` from `first` on; `None` when the width is 0,
    /// there is no place, or the last one ends beyond 64 bits.
    #[must_use]
    pub fn new(first: u64, width: u64, places: usize) -> Option<Self> {
        let span = u64::try_from(places).ok()?.checked_mul(width)?;
        (span > 0 && first.checked_add(span).is_some()).then(|| Self {
            first,
            width,
            counts: vec![0; places],
            below: 0,
            above: 0,
            sum: 0,
            extremes: None,
        })
    }

    /// Counts one event.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.sum += u128::from(value);
        self.extremes = Some(match self.extremes {
            Some((low, high)) => (low.min(value), high.max(value)),
            None => (value, value),
        });
        let Some(distance) = value.checked_sub(self.first) else {
            self.below += 1;
            return;
        };
        let place = usize::try_from(distance / self.width).unwrap_or(usize::MAX);
        match self.counts.get_mut(place) {
            Some(count) => *count += 1,
            None => self.above += 1,
        }
    }

    /// Adds the events of another one; `false`, and nothing is added, when its buckets differ.
    #[must_use]
    pub fn merge(&mut self, other: &Self) -> bool {
        let shape = |h: &Self| (h.first, h.width, h.counts.len());
        if shape(self) != shape(other) {
            return false;
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.below += other.below;
        self.above += other.above;
        self.sum += other.sum;
        self.extremes = match (self.extremes, other.extremes) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (own, other) => own.or(other),
        };
        true
    }

    /// The sum of all values, also of those outside.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The buckets that hold an event, for all further questions.
    #[must_use]
    pub fn buckets(&self) -> Buckets {
        let mut low = self.first;
        let mut buckets = Vec::new();
        for count in &self.counts {
            let high = low + self.width;
            if *count > 0 {
                buckets.push(Bucket {
                    low: whole(low),
                    high: whole(high),
                    count: *count,
                });
            }
            low = high;
        }
        let (min, max) = self.extremes.unzip();
        Buckets {
            buckets,
            below: self.below,
            above: self.above,
            min: min.map(whole),
            max: max.map(whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Linear {
        let mut histogram = Linear::new(10, 10, 3).expect("a shape");
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    #[test]
    fn what_is_outside_is_kept_beside() {
        let buckets = of(&[9, 10, 19, 20, 39, 40, 1000]).buckets();
        let counts: Vec<(f64, u64)> = buckets.buckets.iter().map(|b| (b.low, b.count)).collect();
        assert_eq!(counts, [(10.0, 2), (20.0, 1), (30.0, 1)]);
        assert_eq!((buckets.below, buckets.above, buckets.count()), (1, 2, 7));
        assert_eq!((buckets.min, buckets.max), (Some(9.0), Some(1000.0)));
    }

    #[test]
    fn only_the_same_shape_merges() {
        let mut both = of(&[10, 11]);
        assert!(both.merge(&of(&[5, 39])));
        assert_eq!(both, of(&[10, 11, 5, 39]));
        let other = Linear::new(0, 10, 3).expect("a shape");
        assert!(!both.merge(&other));
        assert_eq!(both.buckets().count(), 4);
    }

    #[test]
    fn shapes_that_cannot_be_are_refused() {
        assert!(Linear::new(0, 0, 3).is_none());
        assert!(Linear::new(0, 1, 0).is_none());
        assert!(Linear::new(u64::MAX - 5, 2, 3).is_none());
    }
}
