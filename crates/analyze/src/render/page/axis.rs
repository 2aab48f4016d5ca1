//! The logarithmic axis of values.

use kdyno_stats::hist::{Bucket, Buckets};

/// From where to where values are drawn, in binary logarithms.
pub(super) struct Axis {
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Axis {
    /// Around all buckets; `None` without one.
    pub(super) fn over<'b>(all: impl Iterator<Item = &'b Buckets>) -> Option<Self> {
        let ends = all
            .flat_map(|buckets| &buckets.buckets)
            .map(Bucket::octaves)
            .filter(|(low, high)| low.is_finite() && high.is_finite());
        let (from, to) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
        // A little air, and room where all events are in one bucket.
        Some(Self {
            from: from - 0.2,
            to: to.max(from + 1.0) + 0.2,
        })
    }

    /// Marks at 1, 2 and 5 times powers of ten, as many as fit, with whether they carry a label.
    pub(super) fn marks(&self) -> Vec<(f64, bool)> {
        let ten = 10_f64.log2();
        let decades = (self.to - self.from) / ten;
        let mut marks = Vec::new();
        let mut exponent = (self.from / ten).floor();
        while exponent <= self.to / ten {
            for (step, labelled) in [(1.0, true), (2.0, decades < 3.5), (5.0, decades < 3.5)] {
                let value: f64 = step * 10_f64.powf(exponent);
                let at = value.log2();
                if (self.from..=self.to).contains(&at) {
                    marks.push((value, labelled));
                }
            }
            exponent += 1.0;
        }
        marks
    }

    /// Where a value lies, 0..=1 for those on the axis.
    pub(super) fn place(&self, log2: f64) -> f64 {
        (log2 - self.from) / (self.to - self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_few_on_long_axes_and_dense_on_short_ones() {
        let short = Axis { from: 0.0, to: 7.0 };
        assert_eq!(short.marks().iter().filter(|m| m.1).count(), 7);
        let long = Axis {
            from: 0.0,
            to: 30.0,
        };
        assert_eq!(long.marks().iter().filter(|m| m.1).count(), 10);
    }
}
