//! One number out of a sampled quantity: the mean of a state, the total and rate of a counter.
//!
//! Samples that the source did not show are `None` and are passed over; they are not zero. Times
//! are nanoseconds in ascending order; of two lengths the shorter counts.

use crate::summary::mean;

const NS_PER_SECOND: f64 = 1e9;

/// Time-weighted mean of a state by the trapezoid rule over the present samples; the plain mean
/// when they share one moment, `None` when there is none.
#[must_use]
pub fn window_mean(t_ns: &[u64], values: &[Option<f64>]) -> Option<f64> {
    let samples = present(t_ns, values);
    let span = span_ns(&samples);
    if span <= 0.0 {
        let values: Vec<f64> = samples.iter().map(|(_, v)| *v).collect();
        return mean(&values);
    }
    let weighted = samples.windows(2).map(|pair| match pair {
        [(t0, v0), (t1, v1)] => {
            let weight = ns(t1.saturating_sub(*t0)) / span;
            // Halved before they are added, so that large values cannot overflow.
            weight * (v0 / 2.0 + v1 / 2.0)
        }
        _ => 0.0,
    });
    Some(weighted.sum()).filter(|mean: &f64| mean.is_finite())
}

/// Growth of a running total, last present sample minus first; `None` with fewer than two or
/// when it ever went backwards, since a counter that was reset has no total.
#[must_use]
pub fn counter_total(values: &[Option<f64>]) -> Option<f64> {
    let present: Vec<f64> = values.iter().copied().flatten().collect();
    if present.len() < 2 || !present.is_sorted() {
        return None;
    }
    Some(present.last()? - present.first()?).filter(|total| total.is_finite())
}

/// Growth of a running total per second between its first and last present sample; `None` where
/// [`counter_total`] is, or when no time passed.
#[must_use]
pub fn counter_rate(t_ns: &[u64], values: &[Option<f64>]) -> Option<f64> {
    let samples = present(t_ns, values);
    let total = counter_total(values.get(..t_ns.len().min(values.len()))?)?;
    Some(total / span_ns(&samples) * NS_PER_SECOND).filter(|rate| rate.is_finite())
}

/// How a running total grew around a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Per second, between the samples on either side of the moment.
    pub rate: f64,
    /// Per second, the median of all other intervals.
    pub usual: f64,
}

/// The growth of a running total around `at_ns` beside its usual one; `None` with fewer than three
/// other intervals, for a moment outside of the samples, or for a total that went backwards.
#[must_use]
pub fn burst(t_ns: &[u64], values: &[Option<f64>], at_ns: u64) -> Option<Burst> {
    const LEAST_OTHERS: usize = 3;
    counter_total(values)?;
    let samples = present(t_ns, values);
    let (mut around, mut others) = (None, Vec::new());
    for pair in samples.windows(2) {
        let [(from, first), (to, last)] = pair else {
            continue;
        };
        let rate = (last - first) / ns(to.saturating_sub(*from)) * NS_PER_SECOND;
        if !rate.is_finite() {
            continue;
        }
        match (*from..*to).contains(&at_ns) {
            true => around = Some(rate),
            false => others.push(rate),
        }
    }
    if others.len() < LEAST_OTHERS {
        return None;
    }
    Some(Burst {
        rate: around?,
        usual: crate::Summary::of(&others)?.median,
    })
}

fn present(t_ns: &[u64], values: &[Option<f64>]) -> Vec<(u64, f64)> {
    t_ns.iter()
        .zip(values)
        .filter_map(|(t, v)| v.map(|v| (*t, v)))
        .collect()
}

fn span_ns(samples: &[(u64, f64)]) -> f64 {
    match (samples.first(), samples.last()) {
        (Some((first, _)), Some((last, _))) => ns(last.saturating_sub(*first)),
        _ => 0.0,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "2^53 ns are 104 days; a window is shorter"
)]
fn ns(duration: u64) -> f64 {
    duration as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_state_is_weighted_by_time() {
        // 10 for one second, then a ramp to 30 over two: (10 + 2 * 20) / 3.
        let t = [0, 1_000_000_000, 3_000_000_000];
        let v = [Some(10.0), Some(10.0), Some(30.0)];
        assert!((window_mean(&t, &v).expect("mean") - 50.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn absent_samples_are_passed_over() {
        assert_eq!(
            window_mean(&[0, 1, 2], &[Some(4.0), None, Some(6.0)]),
            Some(5.0)
        );
        assert_eq!(window_mean(&[0, 1], &[None, Some(6.0)]), Some(6.0));
        assert_eq!(window_mean(&[0, 1], &[None, None]), None);
        assert_eq!(window_mean(&[], &[]), None);
    }

    #[test]
    fn counters() {
        let t = [0, 500_000_000, 2_000_000_000];
        let v = [Some(100.0), None, Some(140.0)];
        assert_eq!(counter_total(&v), Some(40.0));
        assert_eq!(counter_rate(&t, &v), Some(20.0));
    }

    #[test]
    fn a_counter_that_went_backwards_has_no_total() {
        assert_eq!(counter_total(&[Some(9.0), Some(2.0), Some(12.0)]), None);
        assert_eq!(counter_total(&[Some(9.0)]), None);
        assert_eq!(counter_rate(&[5, 5], &[Some(1.0), Some(2.0)]), None);
        assert_eq!(counter_rate(&[5, 5], &[Some(1.0), Some(1.0)]), None);
    }

    proptest! {
        #[test]
        fn the_mean_lies_between_the_samples(
            steps in prop::collection::vec((1_u64..1_000_000, -1e300..1e300_f64), 1..20)
        ) {
            let times: Vec<u64> = steps.iter().scan(0, |t, (dt, _)| { *t += dt; Some(*t) }).collect();
            let values: Vec<Option<f64>> = steps.iter().map(|(_, v)| Some(*v)).collect();
            let mean = window_mean(&times, &values).expect("mean");
            let low = steps.iter().map(|(_, v)| *v).fold(f64::MAX, f64::min);
            let high = steps.iter().map(|(_, v)| *v).fold(f64::MIN, f64::max);
            let slack = 1e-9 * low.abs().max(high.abs());
            prop_assert!(low - slack <= mean && mean <= high + slack);
        }
    }

    #[test]
    fn a_burst_is_the_interval_around_the_moment_beside_the_others() {
        let t: Vec<u64> = (0..=5).map(|second| second * 1_000_000_000).collect();
        let values: Vec<Option<f64>> = [0.0, 10.0, 20.0, 520.0, 530.0, 540.0].map(Some).to_vec();
        let burst_at = |at: u64| burst(&t, &values, at);
        assert_eq!(
            burst_at(2_500_000_000),
            Some(Burst {
                rate: 500.0,
                usual: 10.0
            })
        );
        assert_eq!(burst_at(5_000_000_000), None);
        assert_eq!(burst(&t[..3], &values[..3], 0), None);
        assert_eq!(burst(&t, &[Some(5.0), Some(1.0), Some(2.0)], 0), None);
    }
}
