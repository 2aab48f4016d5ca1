//! The same events in other buckets.

use super::buckets::{Bucket, Buckets};

/// Counts between given edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regrouped {
    /// Events between one edge and the next, one fewer than there are edges.
    pub counts: Vec<u64>,
    /// Events below the first edge.
    pub below: u64,
    /// Events at or above the last.
    pub above: u64,
    /// Events whose own bucket lies across an edge: they are counted where its middle is, and may
    /// belong into the row beside.
    pub across: u64,
}

impl Regrouped {
    /// How many events there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        let inside = self
            .counts
            .iter()
            .fold(0_u64, |sum, count| sum.saturating_add(*count));
        inside.saturating_add(self.below).saturating_add(self.above)
    }
}

impl Buckets {
    /// Counts the events between ascending `edges`; each bucket goes as a whole to where its middle
    /// lies, since nothing is known of where its events are.
    #[must_use]
    pub fn regrouped(&self, edges: &[f64]) -> Regrouped {
        let mut out = Regrouped {
            counts: vec![0; edges.len().saturating_sub(1)],
            below: self.below,
            above: self.above,
            across: 0,
        };
        for bucket in &self.buckets {
            let place = place_of(bucket.middle(), edges);
            let count = match place.checked_sub(1) {
                None => &mut out.below,
                Some(row) => out.counts.get_mut(row).unwrap_or(&mut out.above),
            };
            *count = count.saturating_add(bucket.count);
            if place_of(bucket.low, edges) != place
                || edges
                    .get(place)
                    .is_some_and(|edge| bucket.lies_across(*edge))
            {
                out.across = out.across.saturating_add(bucket.count);
            }
        }
        out
    }

    /// The same in a unit of which this one's has `factor`.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let scaled = |bucket: &Bucket| Bucket {
            low: bucket.low * factor,
            high: bucket.high * factor,
            count: bucket.count,
        };
        Self {
            buckets: self.buckets.iter().map(scaled).collect(),
            below: self.below,
            above: self.above,
            min: self.min.map(|value| value * factor),
            max: self.max.map(|value| value * factor),
        }
    }

    /// The events of several put together, each in the bucket that it was counted in. Only for
    /// showing: the runs behind them are no longer told apart.
    #[must_use]
    pub fn pooled<'b>(all: impl IntoIterator<Item = &'b Self>) -> Self {
        let mut pool = Self::default();
        let (mut min, mut max) = (Some(f64::INFINITY), Some(f64::NEG_INFINITY));
        for one in all.into_iter().filter(|one| one.count() > 0) {
            pool.below = pool.below.saturating_add(one.below);
            pool.above = pool.above.saturating_add(one.above);
            pool.buckets.extend(&one.buckets);
            // An extreme that one of them does not know is not known of all.
            min = min.zip(one.min).map(|(a, b)| a.min(b));
            max = max.zip(one.max).map(|(a, b)| a.max(b));
        }
        pool.buckets
            .sort_by(|a, b| a.low.total_cmp(&b.low).then(a.high.total_cmp(&b.high)));
        pool.buckets.dedup_by(|later, kept| {
            let same = later.low == kept.low && later.high == kept.high;
            if same {
                kept.count = kept.count.saturating_add(later.count);
            }
            same
        });
        pool.min = min.filter(|value| value.is_finite());
        pool.max = max.filter(|value| value.is_finite());
        pool
    }
}

/// How many edges are not above the value.
fn place_of(value: f64, edges: &[f64]) -> usize {
    edges.partition_point(|edge| *edge <= value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(parts: &[(f64, f64, u64)]) -> Buckets {
        let bucket = |(low, high, count): &(f64, f64, u64)| Bucket {
            low: *low,
            high: *high,
            count: *count,
        };
        Buckets {
            buckets: parts.iter().map(bucket).collect(),
            ..Buckets::default()
        }
    }

    #[test]
    fn buckets_that_fit_are_moved_whole_and_others_are_told() {
        let buckets = of(&[
            (0.0, 1.0, 1),
            (1.0, 2.0, 2),
            (3.0, 5.0, 4),
            (8.0, 16.0, 8),
            (16.0, 20.0, 16),
        ]);
        let regrouped = buckets.regrouped(&[1.0, 2.0, 4.0, 8.0, 16.0]);
        assert_eq!(regrouped.counts, [2, 4, 0, 8]);
        assert_eq!((regrouped.below, regrouped.above), (1, 16));
        assert_eq!(regrouped.across, 4);
        assert_eq!(regrouped.total(), buckets.count());
    }

    #[test]
    fn without_edges_everything_is_below() {
        let regrouped = of(&[(1.0, 2.0, 3)]).regrouped(&[]);
        assert_eq!((regrouped.below, regrouped.total()), (3, 3));
    }

    #[test]
    fn a_pool_adds_equal_buckets_and_forgets_extremes_that_one_lacks() {
        let a = Buckets {
            min: Some(1.5),
            max: Some(9.0),
            above: 1,
            ..of(&[(1.0, 2.0, 3), (8.0, 16.0, 1)])
        };
        let b = Buckets {
            min: Some(1.0),
            max: None,
            ..of(&[(1.0, 2.0, 4), (4.0, 8.0, 1)])
        };
        let pool = Buckets::pooled([&a, &b, &Buckets::default()]);
        let counts: Vec<u64> = pool.buckets.iter().map(|b| b.count).collect();
        assert_eq!(counts, [7, 1, 1]);
        assert_eq!((pool.min, pool.max, pool.above), (Some(1.0), None, 1));
        assert_eq!(Buckets::pooled([]), Buckets::default());
    }

    #[test]
    fn another_unit_moves_ends_and_extremes() {
        let ms = Buckets {
            min: Some(1.25),
            ..of(&[(1.0, 2.0, 3)])
        };
        let us = ms.scaled(1000.0);
        assert_eq!(us.buckets[0].high, 2000.0);
        assert_eq!((us.min, us.max), (Some(1250.0), None));
    }

    proptest! {
        #[test]
        fn no_event_is_lost(
            parts in prop::collection::vec((0.0..1e6_f64, 0.1..1e4_f64, 0..1000_u64), 0..40),
            mut edges in prop::collection::vec(0.0..1e6_f64, 0..20),
        ) {
            edges.sort_by(f64::total_cmp);
            let parts: Vec<_> = parts.iter().map(|(low, width, n)| (*low, low + width, *n)).collect();
            let buckets = of(&parts);
            let regrouped = buckets.regrouped(&edges);
            prop_assert_eq!(regrouped.total(), buckets.count());
            prop_assert!(regrouped.across <= buckets.count());
        }
    }
}
