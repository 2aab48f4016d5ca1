//! Distributions of events, such as latencies: their quantiles, and whole ones of two variants.
//!
//! A histogram belongs to a run. Its quantiles are figures of that run, judged like any other, and
//! never averaged inside one. Whole distributions are compared by exchanging the labels of whole
//! runs, since the events of a run depend on each other.

use crate::compare::{by_place, is_compared};
use crate::render::hist::Series;
use crate::select::MetricGlobs;
use kdyno_model::{
    CaseRef, ClockKind, Histogram, MetricName, Reading, RunRow, Unit, Value, VariantName,
};
use kdyno_stats::hist::{Bounds, Bucket, Buckets};
use kdyno_stats::permutation::BucketedRuns;
use std::collections::BTreeMap;

/// Quantiles that a run has, by name, if so many events or more lie beyond.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Draws where not all labellings are tried: the same in every comparison of the same runs.
const SEED: u64 = 1;

/// A histogram metric of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct DistributionRow {
    /// Which.
    pub metric: MetricName,
    /// The unit of its values.
    pub unit: Unit,
    /// Against the first column; `None` for that one, and where a side has no events.
    pub cells: Vec<Option<DistributionCell>>,
}

/// How the distribution of a column lies to that of the first. Every run weighs the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistributionCell {
    /// Runs of the first column and of this one.
    pub runs: (usize, usize),
    /// Mean difference of the binary logarithms of values: above 0 when they are larger here.
    pub shift_octaves: f64,
    /// First Wasserstein distance of the binary logarithms.
    pub distance_octaves: f64,
    /// Kolmogorov distance, 0..=1.
    pub ks: f64,
    /// p-value of the Wasserstein distance by relabelling runs.
    pub p: f64,
    /// The smallest that this many runs allow.
    pub smallest_p: f64,
}

/// The histogram as statistics look at it.
#[must_use]
pub fn buckets_of(histogram: &Histogram) -> Buckets {
    let bucket = |b: &kdyno_model::Bucket| Bucket {
        low: b.low,
        high: b.high,
        count: b.count,
    };
    Buckets {
        buckets: histogram.buckets.iter().map(bucket).collect(),
        below: histogram.underflow,
        above: histogram.overflow,
        min: histogram.min,
        max: histogram.max,
    }
}

/// Whether at least one event lies beyond a quantile: below so many events it would be the largest.
pub(crate) fn is_told(buckets: &Buckets, p: f64) -> bool {
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of events stay below 2^53"
    )]
    let beyond = buckets.count() as f64 * (1.0 - p);
    beyond >= 1.0 - 1e-9
}

/// `p50`, `p90`, `p99`, `p99.9` and `max` of one run, in the unit of the histogram: the middle of
/// the bucket that the quantile lies in. A quantile beyond which there would be no event is left
/// out, and so is one that lies outside the buckets.
#[must_use]
pub fn quantiles(histogram: &Histogram) -> Vec<(&'static str, f64)> {
    let buckets = buckets_of(histogram);
    let told = QUANTILES.into_iter().filter(|(_, p)| is_told(&buckets, *p));
    let mut found: Vec<(&str, f64)> = told
        .filter_map(|(name, p)| Some((name, buckets.quantile(p)?.middle()?)))
        .collect();
    let largest = histogram
        .max
        .or_else(|| buckets.quantile(1.0).as_ref().and_then(Bounds::middle));
    found.extend(largest.map(|value| ("max", value)));
    found.retain(|(_, value)| value.is_finite());
    found
}

/// One histogram metric of one place, with the runs of each variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// What was run.
    pub case: CaseRef,
    /// Where.
    pub testbox: String,
    /// Which metric.
    pub metric: MetricName,
    /// The unit of its values.
    pub unit: Unit,
    /// A series per variant that has events, in the order of the variants.
    pub series: Vec<Series>,
}

/// What must be the same for histograms to be put together or set against each other.
#[derive(Clone, PartialEq)]
struct Basis {
    metric: MetricName,
    unit: Unit,
    clock: ClockKind,
    instrument: String,
}

/// The histogram metrics of runs, by place and metric. Runs of two instruments or on two kinds of
/// clock are never put together.
#[must_use]
pub fn distributions(
    rows: &[RunRow],
    variants: &[VariantName],
    metrics: Option<&MetricGlobs>,
) -> Vec<Distribution> {
    let compared: Vec<&RunRow> = rows.iter().filter(|row| is_compared(row)).collect();
    let mut all = Vec::new();
    for (of_place, first) in by_place(&compared)
        .iter()
        .filter_map(|of_place| Some((of_place, of_place.first()?)))
    {
        for basis in bases(of_place, metrics) {
            let of = |name: &VariantName| Series {
                name: name.to_string(),
                runs: histograms(of_place, name, &basis),
            };
            let series = variants.iter().map(of);
            all.push(Distribution {
                case: first.case.clone(),
                testbox: first.testbox.clone(),
                series: series.filter(|series| !series.runs.is_empty()).collect(),
                metric: basis.metric,
                unit: basis.unit,
            });
        }
    }
    all.retain(|found| !found.series.is_empty());
    all
}

/// The histogram metrics of runs of one place, every column against the first.
pub(crate) fn rows(
    compared: &[&RunRow],
    variants: &[VariantName],
    metrics: Option<&MetricGlobs>,
) -> Vec<DistributionRow> {
    let row = |basis: Basis| {
        let of = |variant| histograms(compared, variant, &basis);
        let base = variants.first().map(of).unwrap_or_default();
        let later = variants.iter().skip(1);
        let cells = later.map(|variant| against(&base, &of(variant)));
        DistributionRow {
            cells: std::iter::once(None).chain(cells).collect(),
            metric: basis.metric,
            unit: basis.unit,
        }
    };
    bases(compared, metrics).into_iter().map(row).collect()
}

/// The histogram metrics there are.
fn bases(rows: &[&RunRow], metrics: Option<&MetricGlobs>) -> Vec<Basis> {
    let mut found: Vec<Basis> = Vec::new();
    for row in rows {
        for reading in &row.rich {
            let wanted = metrics.is_none_or(|globs| globs.matches(&reading.metric));
            let is_known = found
                .iter()
                .any(|known| known.is_of(reading) && known.fits(row));
            if matches!(reading.value, Value::Histogram(_)) && wanted && !is_known {
                found.push(Basis {
                    metric: reading.metric.clone(),
                    unit: reading.unit.clone(),
                    clock: row.clock,
                    instrument: row.instrument.clone(),
                });
            }
        }
    }
    found
}

impl Basis {
    fn is_of(&self, reading: &Reading) -> bool {
        self.metric == reading.metric && self.unit == reading.unit
    }

    fn fits(&self, row: &RunRow) -> bool {
        self.clock == row.clock && self.instrument == row.instrument
    }
}

/// The metric's histograms of a variant's runs that have events.
fn histograms(compared: &[&RunRow], variant: &VariantName, basis: &Basis) -> Vec<Buckets> {
    let of_variant = compared
        .iter()
        .filter(|row| row.variant == *variant && basis.fits(row));
    let readings = of_variant.flat_map(|row| &row.rich);
    readings
        .filter(|reading| basis.is_of(reading))
        .filter_map(|reading| match &reading.value {
            Value::Histogram(histogram) => Some(buckets_of(histogram)),
            _ => None,
        })
        .filter(|buckets| buckets.count() > 0)
        .collect()
}

/// Sets the runs of a column against those of the first.
fn against(base: &[Buckets], other: &[Buckets]) -> Option<DistributionCell> {
    let mut positions: Vec<f64> = base
        .iter()
        .chain(other)
        .flat_map(events)
        .map(|e| e.0)
        .collect();
    positions.sort_by(f64::total_cmp);
    positions.dedup();
    let places: BTreeMap<u64, usize> = positions.iter().map(|p| p.to_bits()).zip(0..).collect();
    let counts = |run: &Buckets| {
        let mut counts = vec![0_u64; positions.len()];
        for (position, count) in events(run) {
            let place = places.get(&position.to_bits());
            if let Some(slot) = place.and_then(|place| counts.get_mut(*place)) {
                *slot = slot.saturating_add(count);
            }
        }
        counts
    };
    let (a, b): (Vec<_>, Vec<_>) = (
        base.iter().map(counts).collect(),
        other.iter().map(counts).collect(),
    );
    let runs = BucketedRuns::new(positions, &a, &b)?;
    let distance = runs.wasserstein(SEED)?;
    // Exchanging all labels of sides of one size gives the same distance again.
    let alike = if a.len() == b.len() { 2.0 } else { 1.0 };
    Some(DistributionCell {
        runs: (a.len(), b.len()),
        shift_octaves: mean_of(other)? - mean_of(base)?,
        distance_octaves: distance.statistic,
        ks: runs.ks(SEED)?.statistic,
        p: distance.p,
        smallest_p: (alike * distance.smallest_p).min(1.0),
    })
}

/// The binary logarithms of where events lie, with how many: the middle of a bucket; for what is
/// outside, where the buckets end.
fn events(run: &Buckets) -> Vec<(f64, u64)> {
    let inside = run.buckets.iter().map(|bucket| {
        let (low, high) = bucket.octaves();
        ((low + high) / 2.0, bucket.count)
    });
    let first = run.buckets.first().map(|bucket| (bucket.low, run.below));
    let last = run.buckets.last().map(|bucket| (bucket.high, run.above));
    let outside = [first, last].into_iter().flatten();
    let outside = outside.map(|(value, count)| (value.log2(), count));
    inside
        .chain(outside)
        .filter(|(position, count)| position.is_finite() && *count > 0)
        .collect()
}

/// Mean position over runs, each run's own mean weighing the same.
fn mean_of(runs: &[Buckets]) -> Option<f64> {
    let mean = |run: &Buckets| {
        let events = events(run);
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts of events stay below 2^53"
        )]
        let weighed = events.iter().map(|(p, n)| (*n as f64, *n as f64 * p));
        let (n, sum) = weighed.fold((0.0, 0.0), |(n, sum), (m, part)| (n + m, sum + part));
        (n > 0.0).then(|| sum / n)
    };
    let means: Option<Vec<f64>> = runs.iter().map(mean).collect();
    kdyno_stats::summary::mean(&means?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[(f64, u64)]) -> Histogram {
        let bucket = |(low, count): &(f64, u64)| kdyno_model::Bucket {
            low: *low,
            high: low + 1.0,
            count: *count,
        };
        Histogram {
            buckets: values.iter().map(bucket).collect(),
            ..Histogram::default()
        }
    }

    #[test]
    fn a_quantile_needs_an_event_beyond_it() {
        let names = |n: u64| {
            let quantiles = quantiles(&histogram(&[(10.0, n - 1), (50.0, 1)]));
            let names: Vec<&str> = quantiles.iter().map(|(name, _)| *name).collect();
            names.join(" ")
        };
        assert_eq!(names(5), "p50 max");
        assert_eq!(names(10), "p50 p90 max");
        assert_eq!(names(100), "p50 p90 p99 max");
        assert_eq!(names(1000), "p50 p90 p99 p99.9 max");
        assert_eq!(quantiles(&Histogram::default()), []);
    }

    #[test]
    fn the_exact_maximum_is_taken_and_an_unknown_one_beyond_the_buckets_is_not_made_up() {
        let exact = Histogram {
            overflow: 3,
            max: Some(123_456.0),
            ..histogram(&[(10.0, 100)])
        };
        assert_eq!(quantiles(&exact).last(), Some(&("max", 123_456.0)));
        let unknown = Histogram { max: None, ..exact };
        let names: Vec<&str> = quantiles(&unknown).iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["p50", "p90"]);
    }

    #[test]
    fn a_second_mode_moves_the_distribution_and_five_runs_tell() {
        let run =
            |tail: u64, jitter: u64| buckets_of(&histogram(&[(10.0, 100 + jitter), (640.0, tail)]));
        let base: Vec<Buckets> = (0..5).map(|j| run(0, j)).collect();
        let other: Vec<Buckets> = (0..5).map(|j| run(50, j)).collect();
        let cell = against(&base, &other).expect("events on both sides");
        assert_eq!(cell.runs, (5, 5));
        assert!((cell.p - 2.0 / 252.0).abs() < 1e-12);
        assert!((1.0..2.5).contains(&cell.shift_octaves), "{cell:?}");
        assert!((cell.distance_octaves - cell.shift_octaves).abs() < 0.01);
        let same = against(&base, &base).expect("events");
        assert!(same.p > 0.9 && same.distance_octaves < 1e-9);
        assert_eq!(against(&base, &[]), None);
    }

    #[test]
    fn events_at_zero_and_outside_have_a_place() {
        let run = buckets_of(&Histogram {
            overflow: 2,
            ..histogram(&[(0.0, 5), (1.0, 1)])
        });
        let places: Vec<(f64, u64)> = events(&run);
        assert_eq!(places.len(), 3);
        assert_eq!(places.iter().map(|(_, n)| n).sum::<u64>(), 8);
        assert!(places.iter().all(|(p, _)| p.is_finite()));
    }
}
