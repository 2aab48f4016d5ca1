//! What a change is: percent of a base, or a difference where percent has no meaning.

/// The change of a figure against its base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Percent of the base.
    Percent(f64),
    /// New minus base, in the metric's own unit: for shares, which are percentages already, and
    /// where the base is 0.
    Absolute(f64),
}

impl Change {
    /// The change from `base` to `new`, as a difference when `absolute` or when percent does not
    /// exist; `None` when the difference exceeds the range of `f64`.
    #[must_use]
    pub fn between(base: f64, new: f64, absolute: bool) -> Option<Self> {
        let percent = if absolute {
            None
        } else {
            percent_change(base, new)
        };
        percent.map(Self::Percent).or_else(|| {
            let difference = new - base;
            difference.is_finite().then_some(Self::Absolute(difference))
        })
    }

    /// The number without its kind.
    #[must_use]
    pub fn amount(self) -> f64 {
        match self {
            Self::Percent(amount) | Self::Absolute(amount) => amount,
        }
    }
}

/// `100 (new - base) / base`, as kernel reports have it: with a base below 0 its sign says
/// whether the figure moved away from 0. `None` when the base is 0 or the result is not finite.
///
/// The only division by a base in the tree.
#[must_use]
pub fn percent_change(base: f64, new: f64) -> Option<f64> {
    let percent = 100.0 * ((new - base) / base);
    (base != 0.0 && percent.is_finite()).then_some(percent)
}

/// Percent change of a ratio given as its natural logarithm, `100 (e^x - 1)`, exact also near 0;
/// infinite where the ratio exceeds the range of `f64`.
#[must_use]
pub fn percent_of_log_ratio(log_ratio: f64) -> f64 {
    100.0 * log_ratio.exp_m1()
}

/// Difference of two failure shares `(failed, runs)` in percentage points,
/// `100 (f1/n1 - f0/n0)`; `None` when a side has no run.
#[must_use]
pub fn reproduction_difference(base: (u64, u64), new: (u64, u64)) -> Option<f64> {
    Some(failure_percent(new)? - failure_percent(base)?)
}

/// Share of failed runs in percent; `None` without a run.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "a count of runs stays far below 2^53"
)]
pub fn failure_percent((failed, runs): (u64, u64)) -> Option<f64> {
    (runs > 0).then(|| 100.0 * failed as f64 / runs as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percent_of_the_base() {
        assert_eq!(percent_change(200.0, 150.0), Some(-25.0));
        assert_eq!(percent_change(-5.0, -10.0), Some(100.0));
        assert_eq!(percent_change(0.0, 3.0), None);
        assert_eq!(percent_change(f64::MAX, f64::MIN), None);
    }

    #[test]
    fn percent_of_a_ratio() {
        assert!((percent_of_log_ratio(1.1_f64.ln()) - 10.0).abs() < 1e-12);
        assert!((percent_of_log_ratio(1e-12) - 1e-10).abs() < 1e-21);
    }

    #[test]
    fn a_base_of_zero_gives_a_difference() {
        assert_eq!(
            Change::between(0.0, 36.0, false),
            Some(Change::Absolute(36.0))
        );
        assert_eq!(
            Change::between(23.5, 27.5, true),
            Some(Change::Absolute(4.0))
        );
        assert_eq!(
            Change::between(100.0, 110.0, false),
            Some(Change::Percent(10.0))
        );
    }

    #[test]
    fn each_side_is_divided_by_its_own_runs() {
        assert_eq!(reproduction_difference((5, 10), (4, 4)), Some(50.0));
        assert_eq!(reproduction_difference((0, 20), (6, 20)), Some(30.0));
        assert_eq!(reproduction_difference((0, 0), (1, 2)), None);
    }

    proptest! {
        #[test]
        fn never_not_finite(base in any::<f64>(), new in any::<f64>(), absolute: bool) {
            if let Some(change) = Change::between(base, new, absolute) {
                prop_assert!(change.amount().is_finite());
            }
        }
    }
}
