//! What the rule of lkp-tests says of two sides, to be shown beside a verdict.
//!
//! It holds the medians against the other side's range, so that it finds less the more runs there
//! are: ranges grow. kdyno decides nothing by it.

use crate::quantile::sorted;

/// Which of its forms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LkpMode {
    /// A side's least value above the other's median, and its median above the other's largest.
    Plain,
    /// A gap between the ranges larger than half the distance of the medians; with fewer than
    /// three runs on a side, larger than so many times the longer range.
    Distance(f64),
}

/// Share of the values, as a power of two, that is cut from each end.
const MARGIN_SHIFT: u32 = 5;
/// Most values cut from an end.
const MOST_CUT: usize = 3;
/// Most values cut from an end when the base has few runs.
const MOST_CUT_OF_FEW: usize = 1;
/// Runs that one side must have, and up to which a base has few.
const FEWEST: usize = 3;

struct Range {
    n: usize,
    least: f64,
    middle: f64,
    most: f64,
}

impl Range {
    fn of(values: &[f64], most_cut: usize) -> Option<Self> {
        let sorted = sorted(values)?;
        let n = sorted.len();
        let cut = (n >> MARGIN_SHIFT).min(most_cut);
        let kept = sorted.get(cut..n.checked_sub(cut)?)?;
        Some(Self {
            n,
            least: *kept.first()?,
            middle: *kept.get(kept.len() / 2)?,
            most: *kept.last()?,
        })
    }

    fn length(&self) -> f64 {
        self.most - self.least
    }
}

/// Whether lkp-tests would report a change from base `a` to `b`: `mode` fires and the larger median
/// is more than `least_ratio` times the smaller (1.01 there; from a smaller one of 0 or below any
/// distance counts). False when no side has three runs, a side has none, or a value is not finite.
#[must_use]
pub fn lkp_changed(a: &[f64], b: &[f64], mode: LkpMode, least_ratio: f64) -> bool {
    let most_cut = if a.len() <= FEWEST {
        MOST_CUT_OF_FEW
    } else {
        MOST_CUT
    };
    let (Some(a), Some(b)) = (Range::of(a, most_cut), Range::of(b, most_cut)) else {
        return false;
    };
    if a.n.max(b.n) < FEWEST {
        return false;
    }
    let (low, high) = if a.middle <= b.middle {
        (&a, &b)
    } else {
        (&b, &a)
    };
    let ratio = high.middle / low.middle;
    let far = low.middle <= 0.0 || ratio > least_ratio;
    let gap = high.least - low.most;
    let fires = match mode {
        LkpMode::Plain => high.least > low.middle && high.middle > low.most,
        LkpMode::Distance(times) if a.n.min(b.n) < FEWEST => {
            gap > times * a.length().max(b.length())
        }
        LkpMode::Distance(_) => gap > 0.0 && gap > (high.middle - low.middle) / 2.0,
    };
    fires && far
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::normal;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64;

    /// Of the 20 ways to split six values into three and three, two fire in each direction.
    #[test]
    fn one_in_five_unchanged_metrics_at_three_runs() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let (mut splits, mut up, mut down) = (0, 0, 0);
        for mask in 0_u32..64 {
            if mask.count_ones() != 3 {
                continue;
            }
            let side = |wanted: u32| -> Vec<f64> {
                let chosen = |i: &usize| mask >> i & 1 == wanted;
                (0..6).filter(chosen).map(|i| values[i]).collect()
            };
            splits += 1;
            let (a, b) = (side(0), side(1));
            if lkp_changed(&a, &b, LkpMode::Plain, 1.0) {
                let rose = a.iter().sum::<f64>() < b.iter().sum();
                up += u32::from(rose);
                down += u32::from(!rose);
            }
        }
        assert_eq!((splits, up, down), (20, 2, 2));
    }

    /// Share of sessions with `n` runs a side, CV 2 %, that fire when `b` is `times` as large.
    fn share_fired(n: usize, times: f64) -> f64 {
        const SESSIONS: u32 = 4000;
        let mut rng = Pcg64::seed_from_u64(1);
        let mut fired = 0;
        for _ in 0..SESSIONS {
            let mut side = |level: f64| -> Vec<f64> {
                (0..n)
                    .map(|_| level * (1.0 + 0.02 * normal(&mut rng)))
                    .collect()
            };
            let (a, b) = (side(100.0), side(100.0 * times));
            fired += u32::from(lkp_changed(&a, &b, LkpMode::Plain, 1.0));
        }
        f64::from(fired) / f64::from(SESSIONS)
    }

    /// Within four standard errors of 4000 sessions.
    #[test]
    fn false_positives_and_power_both_fall_with_runs() {
        for (n, expected, off) in [(3, 0.20, 0.026), (5, 0.05, 0.014), (10, 0.0015, 0.0025)] {
            let wrong = share_fired(n, 1.0);
            assert!((wrong - expected).abs() < off, "n={n}: {wrong}");
        }
        for (n, expected) in [(3, 0.61), (5, 0.49), (10, 0.27), (20, 0.09)] {
            let found = share_fired(n, 1.03);
            assert!((found - expected).abs() < 0.032, "n={n}: {found}");
        }
    }

    /// 96 values lose three from each end, but one where the base has three.
    #[test]
    fn ends_are_cut_by_the_size_of_the_base() {
        let with_low = |low: usize| -> Vec<f64> {
            (0..96)
                .map(|i| if i < low { 90.0 } else { 110.0 })
                .collect()
        };
        let fires = |a: &[f64], b: &[f64]| lkp_changed(a, b, LkpMode::Plain, 1.01);
        let (three, four) = ([100.0; 3], [100.0; 4]);
        assert!(fires(&four, &with_low(3)) && !fires(&four, &with_low(4)));
        assert!(fires(&three, &with_low(1)) && !fires(&three, &with_low(2)));
        // The base counts, not the smaller side.
        assert!(fires(&with_low(3), &three));
    }

    #[test]
    fn more_runs_widen_the_ranges() {
        let few = ([100.0, 101.0, 102.0], [103.0, 104.0, 105.0]);
        assert!(lkp_changed(&few.0, &few.1, LkpMode::Plain, 1.01));
        let many = (
            [100.0, 101.0, 102.0, 101.0, 103.5],
            [103.0, 104.0, 105.0, 104.0, 101.5],
        );
        assert!(lkp_changed(&many.0, &many.1, LkpMode::Plain, 1.01));
        let more = (
            [100.0, 101.0, 102.0, 101.0, 104.5],
            [103.0, 104.0, 105.0, 104.0, 100.5],
        );
        assert!(!lkp_changed(&more.0, &more.1, LkpMode::Plain, 1.01));
    }

    #[test]
    fn ranges_apart() {
        let near = ([100.0, 101.0, 102.0], [102.5, 104.0, 105.0]);
        assert!(!lkp_changed(&near.0, &near.1, LkpMode::Distance(2.0), 1.01));
        let far = ([100.0, 101.0, 102.0], [110.0, 111.0, 112.0]);
        assert!(lkp_changed(&far.0, &far.1, LkpMode::Distance(2.0), 1.01));
        assert!(lkp_changed(&far.1, &far.0, LkpMode::Distance(2.0), 1.01));
        let two = [100.0, 101.0];
        // The longest range is 2: a gap of 9 is more than 4 times it, but not 5.
        for (a, b) in [(&two[..], &far.1[..]), (&far.1, &two)] {
            assert!(lkp_changed(a, b, LkpMode::Distance(4.0), 1.01));
            assert!(!lkp_changed(a, b, LkpMode::Distance(5.0), 1.01));
        }
        let other = [110.0, 111.0];
        assert!(!lkp_changed(&two, &other, LkpMode::Distance(2.0), 1.01));
    }

    #[test]
    fn small_ratios_are_not_reported() {
        let (a, b) = ([100.0, 100.1, 100.2], [100.5, 100.6, 100.7]);
        assert!(!lkp_changed(&a, &b, LkpMode::Plain, 1.01));
        assert!(lkp_changed(&a, &b, LkpMode::Plain, 1.001));
        assert!(lkp_changed(&[0.0; 3], &[1.0; 3], LkpMode::Plain, 1.01));
    }

    proptest! {
        #[test]
        fn any_input(a in prop::collection::vec(any::<f64>(), 0..40), b in prop::collection::vec(any::<f64>(), 0..40)) {
            let _ = lkp_changed(&a, &b, LkpMode::Plain, 1.01);
            let _ = lkp_changed(&a, &b, LkpMode::Distance(2.0), 1.01);
            prop_assert!(!lkp_changed(&a, &a, LkpMode::Plain, 1.01));
        }
    }
}
