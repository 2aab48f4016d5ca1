//! Histograms: how events are counted into buckets, and what the counts still tell.
//!
//! [`LogLinear`] is what kdyno records with: every octave is cut into `2^k` buckets of one width,
//! so that the width of a bucket is at most `2^-k` of its values; values below `2^(k+1)` have a
//! bucket each. [`Linear`] has buckets of one width. Counts, sum, smallest and largest value are
//! exact whatever the buckets are. [`Buckets`] is what every histogram, also one of another tool,
//! can be looked at as.
//!
//! The events of one run depend on each other: nothing here is a test between variants, that takes
//! the labels of whole runs ([`crate::permutation`]).

mod buckets;
mod linear;
mod modes;
mod regroup;

pub use buckets::{Bounds, Bucket, Buckets};
pub use linear::Linear;
pub use modes::{Mode, modes};
pub use regroup::Regrouped;

use crate::dist::whole;

/// Most buckets per octave: `2^11`, a width of one in two thousand.
pub const MOST_BITS: u32 = 11;

/// A histogram of whole numbers, such as nanoseconds, whose buckets grow with the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLinear {
    bits: u32,
    counts: Vec<u64>,
    above: u64,
    sum: u128,
    extremes: Option<(u64, u64)>,
}

impl LogLinear {
    /// An empty one with `2^bits` buckets per octave for values up to `highest`; what is above is
    /// counted apart. `None` for more than [`MOST_BITS`].
    #[must_use]
    pub fn new(bits: u32, highest: u64) -> Option<Self> {
        (bits <= MOST_BITS).then(|| Self {
            bits,
            counts: vec![0; index(bits, highest) + 1],
            above: 0,
            sum: 0,
            extremes: None,
        })
    }

    /// For times in nanoseconds up to a minute, 32 buckets per octave.
    #[must_use]
    pub fn of_nanoseconds() -> Self {
        const MINUTE: u64 = 60_000_000_000;
        Self {
            bits: 5,
            counts: vec![0; index(5, MINUTE) + 1],
            above: 0,
            sum: 0,
            extremes: None,
        }
    }

    /// Counts one event.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Counts `times` events of one value.
    #[inline]
    pub fn record_many(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        match self.counts.get_mut(index(self.bits, value)) {
            Some(count) => *count += times,
            None => self.above += times,
        }
        self.sum += u128::from(value) * u128::from(times);
        self.extremes = Some(match self.extremes {
            Some((low, high)) => (low.min(value), high.max(value)),
            None => (value, value),
        });
    }

    /// How many events there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.above + self.counts.iter().sum::<u64>()
    }

    /// Events above the highest bucket.
    #[must_use]
    pub fn above(&self) -> u64 {
        self.above
    }

    /// The sum of all values, also of those above.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The smallest and the largest value, as far as known: not after [`LogLinear::subtract`].
    #[must_use]
    pub fn extremes(&self) -> Option<(u64, u64)> {
        self.extremes
    }

    /// `k`, where an octave has `2^k` buckets.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Adds the events of another one. Where the two have buckets of different width, this one
    /// takes the coarser ones first; what is above either one's highest bucket stays apart.
    pub fn merge(&mut self, other: &Self) {
        let bits = self.bits.min(other.bits);
        let (mut mine, theirs) = (self.coarsened(bits), other.coarsened(bits));
        let shorter = mine.counts.len().min(theirs.counts.len());
        mine.cut(shorter);
        for (place, count) in theirs.counts.iter().enumerate() {
            match mine.counts.get_mut(place) {
                Some(mine) => *mine += count,
                None => mine.above += count,
            }
        }
        mine.above += theirs.above;
        mine.sum += theirs.sum;
        mine.extremes = match (mine.extremes, theirs.extremes) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            // Where one is not known of events that there are, neither is that of both.
            (None, other) if self.count() == 0 => other,
            (own, None) if other.count() == 0 => own,
            _ => None,
        };
        *self = mine;
    }

    /// Removes the events of an earlier state of this one, which leaves what came since; smallest
    /// and largest value are then not known. `None` when the other has other buckets or events
    /// that this one lacks.
    #[must_use]
    pub fn subtract(&self, earlier: &Self) -> Option<Self> {
        if self.bits != earlier.bits || self.counts.len() != earlier.counts.len() {
            return None;
        }
        let pairs = self.counts.iter().zip(&earlier.counts);
        let counts: Option<Vec<u64>> = pairs.map(|(now, then)| now.checked_sub(*then)).collect();
        Some(Self {
            bits: self.bits,
            counts: counts?,
            above: self.above.checked_sub(earlier.above)?,
            sum: self.sum.checked_sub(earlier.sum)?,
            extremes: None,
        })
    }

    /// The same events in `2^bits` buckets per octave, where that is coarser.
    #[must_use]
    pub fn coarsened(&self, bits: u32) -> Self {
        if bits >= self.bits {
            return self.clone();
        }
        let last = self.counts.len() - 1;
        let mut counts = vec![0; index(bits, lowest(self.bits, last)) + 1];
        for (place, count) in self.counts.iter().enumerate() {
            if let Some(coarse) = counts.get_mut(index(bits, lowest(self.bits, place))) {
                *coarse += count;
            }
        }
        Self {
            bits,
            counts,
            ..self.clone()
        }
    }

    /// Keeps the first `length` buckets; the events of the others are above.
    fn cut(&mut self, length: usize) {
        let cut: u64 = self.counts.drain(length..).sum();
        self.above += cut;
    }

    /// The buckets that hold an event, for all further questions.
    #[must_use]
    pub fn buckets(&self) -> Buckets {
        let bucket = |(place, count): (usize, &u64)| Bucket {
            low: whole(lowest(self.bits, place)),
            high: whole(lowest(self.bits, place + 1)),
            count: *count,
        };
        let counted = self.counts.iter().enumerate();
        let buckets = counted
            .filter(|(_, count)| **count > 0)
            .map(bucket)
            .collect();
        let (min, max) = self.extremes.unzip();
        Buckets {
            buckets,
            below: 0,
            above: self.above,
            min: min.map(whole),
            max: max.map(whole),
        }
    }
}

/// The place of a value's bucket: the values of an octave differ in the `bits` bits behind their
/// first one, and those below `2^(bits + 1)` are their own place.
#[inline]
fn index(bits: u32, value: u64) -> usize {
    let octave = 63 - (value | 1 << bits).leading_zeros();
    let shift = octave - bits;
    ((u64::from(shift) << bits) + (value >> shift)) as usize
}

/// The smallest value whose bucket has this place.
fn lowest(bits: u32, place: usize) -> u64 {
    let place = place as u64;
    let octave = (place >> bits).saturating_sub(1);
    let shifted = u128::from(place - (octave << bits)) << octave.min(64);
    u64::try_from(shifted).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(bits: u32, values: &[u64]) -> LogLinear {
        let mut histogram = LogLinear::new(bits, 60_000_000_000).expect("few bits");
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    #[test]
    fn zero_and_one_are_apart_and_small_values_exact() {
        let histogram = of(5, &[0, 1, 1, 2, 63, 64, 65]);
        let lows: Vec<(f64, f64, u64)> = histogram
            .buckets()
            .buckets
            .iter()
            .map(|b| (b.low, b.high, b.count))
            .collect();
        assert_eq!(
            lows,
            [
                (0.0, 1.0, 1),
                (1.0, 2.0, 2),
                (2.0, 3.0, 1),
                (63.0, 64.0, 1),
                (64.0, 66.0, 2)
            ]
        );
    }

    #[test]
    fn what_is_above_is_counted_and_its_value_kept() {
        let mut histogram = LogLinear::new(3, 1000).expect("few bits");
        histogram.record(5);
        histogram.record(1 << 40);
        histogram.record(u64::MAX);
        assert_eq!((histogram.count(), histogram.above()), (3, 2));
        assert_eq!(histogram.extremes(), Some((5, u64::MAX)));
        assert_eq!(histogram.sum(), 5 + (1 << 40) + u128::from(u64::MAX));
    }

    #[test]
    fn more_bits_than_there_are_are_refused() {
        assert!(LogLinear::new(MOST_BITS, 10).is_some());
        assert!(LogLinear::new(MOST_BITS + 1, 10).is_none());
    }

    #[test]
    fn differences_of_states_are_what_came_between() {
        let early = of(5, &[10, 100]);
        let late = of(5, &[10, 100, 100, 5000]);
        let between = late.subtract(&early).expect("a later state");
        assert_eq!((between.count(), between.sum()), (2, 5100));
        assert_eq!(between.extremes(), None);
        assert_eq!(early.subtract(&late), None);
        assert_eq!(late.subtract(&of(4, &[10])), None);
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = prop_oneof![0..100_u64, 0..1_000_000_u64, any::<u64>()];
        prop::collection::vec(value, 0..60)
    }

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket_and_buckets_are_narrow(
            value in any::<u64>(), bits in 0..=MOST_BITS
        ) {
            let place = index(bits, value);
            let (low, next) = (lowest(bits, place), lowest(bits, place + 1));
            prop_assert!(low <= value);
            prop_assert!(value < next || next == u64::MAX);
            prop_assert!(next == u64::MAX || next - low <= 1.max(low >> bits));
        }

        #[test]
        fn places_ascend_with_values(a in any::<u64>(), b in any::<u64>(), bits in 0..=MOST_BITS) {
            prop_assert!(index(bits, a.min(b)) <= index(bits, a.max(b)));
        }

        #[test]
        fn merging_is_commutative_and_associative(
            a in values(), b in values(), c in values(),
            bits in (0..=MOST_BITS, 0..=MOST_BITS, 0..=MOST_BITS),
        ) {
            let (a, b, c) = (of(bits.0, &a), of(bits.1, &b), of(bits.2, &c));
            let merged = |parts: &[&LogLinear]| {
                let mut all = parts[0].clone();
                parts[1..].iter().for_each(|part| all.merge(part));
                all
            };
            prop_assert_eq!(merged(&[&a, &b]), merged(&[&b, &a]));
            let bc = merged(&[&b, &c]);
            prop_assert_eq!(merged(&[&a, &b, &c]), merged(&[&a, &bc]));
        }

        #[test]
        fn merging_counts_each_event_as_if_recorded(a in values(), b in values()) {
            let mut both = of(5, &a);
            both.merge(&of(5, &b));
            prop_assert_eq!(both, of(5, &[a, b].concat()));
        }

        #[test]
        fn coarsening_is_recording_coarsely(a in values(), bits in 0..5_u32) {
            let coarse = of(5, &a).coarsened(bits);
            let direct = of(bits, &a);
            prop_assert_eq!(coarse.count(), direct.count());
            prop_assert_eq!(coarse.sum(), direct.sum());
            let places = coarse.counts.len().min(direct.counts.len());
            prop_assert_eq!(&coarse.counts[..places - 1], &direct.counts[..places - 1]);
        }

        #[test]
        fn subtracting_undoes_merging(a in values(), b in values()) {
            let (a, b) = (of(5, &a), of(5, &b));
            let mut both = a.clone();
            both.merge(&b);
            let back = both.subtract(&a).expect("both hold a");
            prop_assert_eq!(back.counts, b.counts);
            prop_assert_eq!((back.above, back.sum), (b.above, b.sum));
        }

        #[test]
        fn quantiles_bracket_the_truth(
            mut a in prop::collection::vec(0..1_u64 << 35, 1..200), p in 0.0..=1.0_f64
        ) {
            let bounds = of(5, &a).buckets().quantile(p).expect("events");
            a.sort_unstable();
            let rank = ((p * a.len() as f64).ceil() as usize).clamp(1, a.len());
            let truth = a[rank - 1] as f64;
            prop_assert!(bounds.low.is_some_and(|low| low <= truth));
            prop_assert!(bounds.high.is_some_and(|high| truth <= high));
        }
    }
}
