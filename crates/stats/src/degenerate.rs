//! Pairs of sides for which the usual figures do not exist.
//!
//! Constant sides, a base of 0, too few runs. Says only which figures make sense, not what a
//! change means.

use crate::summary::Summary;

/// What the values of two sides allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A side has no run or only one, and no history stands in for its spread.
    NotEnoughData,
    /// Every value of both sides is the same.
    Identical,
    /// Both sides are constant and differ: the change is exact, a t statistic does not exist.
    ChangedExact,
    /// The base has a mean of 0: no percent and no ratio, only the difference.
    ZeroBase,
    /// A value is 0 or below: no logarithms, but means and differences.
    NotPositive,
    /// All figures exist.
    Regular,
}

impl Shape {
    /// The shape of base `a` and new side `b`; `None` when a value is not finite.
    #[must_use]
    pub fn of(a: &[f64], b: &[f64]) -> Option<Self> {
        if a.iter().chain(b).any(|v| !v.is_finite()) {
            return None;
        }
        let (Some(a), Some(b)) = (Summary::of(a), Summary::of(b)) else {
            return Some(Self::NotEnoughData);
        };
        if a.n < 2 || b.n < 2 {
            return Some(Self::NotEnoughData);
        }
        let constant = a.min == a.max && b.min == b.max;
        Some(if constant && a.min == b.min {
            Self::Identical
        } else if a.mean == 0.0 {
            Self::ZeroBase
        } else if constant {
            Self::ChangedExact
        } else if a.min <= 0.0 || b.min <= 0.0 {
            Self::NotPositive
        } else {
            Self::Regular
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        let of = |a: &[f64], b: &[f64]| Shape::of(a, b).expect("shape");
        assert_eq!(of(&[], &[1.0, 2.0]), Shape::NotEnoughData);
        assert_eq!(of(&[1.0], &[1.0, 2.0]), Shape::NotEnoughData);
        assert_eq!(of(&[0.0, 0.0], &[0.0, -0.0]), Shape::Identical);
        assert_eq!(of(&[1.0, 1.0], &[2.0, 2.0]), Shape::ChangedExact);
        assert_eq!(of(&[0.0, 0.0], &[2.0, 2.0]), Shape::ZeroBase);
        assert_eq!(of(&[1.0, 3.0], &[0.0, 2.0]), Shape::NotPositive);
        assert_eq!(of(&[1e300, 1e-300], &[5e-324, 2.0]), Shape::Regular);
        assert_eq!(Shape::of(&[f64::NAN, 1.0], &[1.0, 1.0]), None);
    }
}
