//! Counts by bucket, whoever counted.

use crate::dist::whole;

/// One bucket: `low <= value < high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// Smallest value that belongs here.
    pub low: f64,
    /// First value that no longer does.
    pub high: f64,
    /// How many fell in.
    pub count: u64,
}

impl Bucket {
    /// The middle, on a logarithmic scale where both ends are above 0.
    #[must_use]
    pub fn middle(&self) -> f64 {
        middle(self.low, self.high)
    }

    /// Its ends in binary logarithms; one that begins at 0 has its values next to its end.
    #[must_use]
    pub fn octaves(&self) -> (f64, f64) {
        let low = match self.low > 0.0 {
            true => self.low,
            false => self.high / 2.0,
        };
        (low.log2(), self.high.log2())
    }

    /// Whether there is something of it on either side of an edge.
    pub(super) fn lies_across(&self, edge: f64) -> bool {
        self.low < edge && edge < self.high
    }
}

/// The middle between two ends, on a logarithmic scale where both are above 0.
fn middle(low: f64, high: f64) -> f64 {
    let product = low * high;
    match low > 0.0 {
        true if product.is_normal() => product.sqrt(),
        // The product is beyond what floats hold, its root is not.
        true => low * (high / low).sqrt(),
        false => f64::midpoint(low, high),
    }
}

/// Counts by bucket, with what fell outside kept beside them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buckets {
    /// In ascending order, without overlap; empty ones may be left out.
    pub buckets: Vec<Bucket>,
    /// Events below the first bucket there could be.
    pub below: u64,
    /// Events at or above the end of the last.
    pub above: u64,
    /// Exact smallest value, when known.
    pub min: Option<f64>,
    /// Exact largest value, when known.
    pub max: Option<f64>,
}

/// Between which values something lies, both included; `None` for an end that is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// It is not below this.
    pub low: Option<f64>,
    /// It is not above this.
    pub high: Option<f64>,
}

impl Bounds {
    /// One value for it: the middle, on a logarithmic scale where both ends are above 0; `None`
    /// when an end is not known.
    #[must_use]
    pub fn middle(&self) -> Option<f64> {
        Some(middle(self.low?, self.high?))
    }
}

impl Buckets {
    /// How many events there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        let inside: u64 = self.buckets.iter().map(|bucket| bucket.count).sum();
        self.below.saturating_add(inside).saturating_add(self.above)
    }

    /// Where the `p`-quantile lies: the smallest value that at least `p` of all events do not
    /// exceed (nearest rank). The bucket is all that the counts tell, narrowed by the exact
    /// extremes where these are known. `None` without an event or for `p` outside 0..=1.
    #[must_use]
    pub fn quantile(&self, p: f64) -> Option<Bounds> {
        let total = self.count();
        if total == 0 || !(0.0..=1.0).contains(&p) {
            return None;
        }
        // The last event is never missed by a rounding of p * total.
        let rank = (p * whole(total)).ceil().clamp(1.0, whole(total));
        let mut seen = self.below;
        let first = self.buckets.first().map(|bucket| bucket.low);
        if rank <= whole(seen) {
            return Some(self.within(None, first));
        }
        for bucket in &self.buckets {
            seen = seen.saturating_add(bucket.count);
            if rank <= whole(seen) {
                return Some(self.within(Some(bucket.low), Some(bucket.high)));
            }
        }
        let last = self.buckets.last().map(|bucket| bucket.high);
        Some(self.within(last, None))
    }

    /// Bounds, not beyond the extremes.
    fn within(&self, low: Option<f64>, high: Option<f64>) -> Bounds {
        let inner = |a: Option<f64>, b: Option<f64>, pick: fn(f64, f64) -> f64| match (a, b) {
            (Some(a), Some(b)) => Some(pick(a, b)),
            (a, b) => a.or(b),
        };
        Bounds {
            low: inner(low, self.min, f64::max),
            high: inner(high, self.max, f64::min),
        }
    }

    /// The share of the events in each bucket, in order; nothing without an event.
    #[must_use]
    pub fn shares(&self) -> Vec<f64> {
        let total = self.count();
        if total == 0 {
            return Vec::new();
        }
        let share = |bucket: &Bucket| whole(bucket.count) / whole(total);
        self.buckets.iter().map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Buckets {
        let bucket = |low: f64, high: f64, count| Bucket { low, high, count };
        Buckets {
            buckets: vec![bucket(1.0, 2.0, 5), bucket(4.0, 8.0, 4)],
            below: 1,
            above: 0,
            min: None,
            max: Some(6.5),
        }
    }

    #[test]
    fn a_quantile_is_a_bucket_narrowed_by_the_extremes() {
        let buckets = some();
        let bounds = |p| buckets.quantile(p).map(|b| (b.low, b.high));
        assert_eq!(bounds(0.05), Some((None, Some(1.0))));
        assert_eq!(bounds(0.5), Some((Some(1.0), Some(2.0))));
        assert_eq!(bounds(0.6), Some((Some(1.0), Some(2.0))));
        assert_eq!(bounds(0.61), Some((Some(4.0), Some(6.5))));
        assert_eq!(bounds(1.0), Some((Some(4.0), Some(6.5))));
        assert_eq!(bounds(1.1), None);
        assert_eq!(bounds(f64::NAN), None);
        assert_eq!(Buckets::default().quantile(0.5), None);
    }

    #[test]
    fn beyond_the_last_bucket_there_is_no_upper_end() {
        let buckets = Buckets {
            above: 10,
            max: None,
            ..some()
        };
        let bounds = buckets.quantile(0.99).expect("events");
        assert_eq!((bounds.low, bounds.high), (Some(8.0), None));
        assert_eq!(bounds.middle(), None);
    }

    #[test]
    fn shares_count_what_is_outside_as_well() {
        assert_eq!(some().shares(), [0.5, 0.4]);
        assert_eq!(Buckets::default().shares(), [0.0; 0]);
    }

    #[test]
    fn the_middle_of_what_is_too_large_to_multiply() {
        assert_eq!(middle(1e300, 1e302), 1e301);
        assert!((middle(1e-300, 1e-302) / 1e-301 - 1.0).abs() < 1e-12);
        assert_eq!(middle(0.0, 4.0), 2.0);
        assert_eq!(middle(2.0, 8.0), 4.0);
    }
}
