//! Many p-values at once: Bonferroni, Holm, Benjamini-Hochberg, Benjamini-Yekutieli, Simes, and
//! the two-stage selection over groups.
//!
//! The adjusted value of each test comes at its place in the input. Which tests make up a family
//! is the caller's decision, and it must be made before the p-values are seen.

use crate::summary::count;

/// How to adjust a family of p-values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `n p`; controls the chance of any false finding.
    Bonferroni,
    /// Step down (Holm 1979); controls the same and finds no less.
    Holm,
    /// False discovery rate of independent or positively dependent tests (Benjamini, Hochberg
    /// 1995).
    BenjaminiHochberg,
    /// False discovery rate under any dependence (Benjamini, Yekutieli 2001).
    BenjaminiYekutieli,
}

/// The adjusted p-values of a family, each at the place of its p-value and at most 1; `None` when
/// one of them lies outside 0..=1. An empty family gives an empty list.
#[must_use]
pub fn adjust(p: &[f64], method: Method) -> Option<Vec<f64>> {
    let order = ascending(p)?;
    let n = count(p.len());
    // The value at each rank before the running maximum or minimum.
    let raw = |rank: usize, value: f64| match method {
        Method::Bonferroni => n * value,
        Method::Holm => (n - count(rank)) * value,
        Method::BenjaminiHochberg => n / count(rank + 1) * value,
        Method::BenjaminiYekutieli => harmonic(p.len()) * n / count(rank + 1) * value,
    };
    let mut adjusted = vec![1.0; p.len()];
    let mut set = |rank: usize, so_far: f64, tighter: fn(f64, f64) -> f64| -> f64 {
        let Some((slot, value)) = order
            .get(rank)
            .and_then(|i| Some((adjusted.get_mut(*i)?, *p.get(*i)?)))
        else {
            return so_far;
        };
        let next = tighter(so_far, raw(rank, value).min(1.0));
        *slot = next;
        next
    };
    match method {
        Method::Bonferroni | Method::Holm => {
            let keep: fn(f64, f64) -> f64 = match method {
                Method::Holm => f64::max,
                _ => |_, value| value,
            };
            (0..p.len()).fold(0.0, |so_far, rank| set(rank, so_far, keep));
        }
        Method::BenjaminiHochberg | Method::BenjaminiYekutieli => {
            (0..p.len())
                .rev()
                .fold(1.0, |so_far, rank| set(rank, so_far, f64::min));
        }
    }
    Some(adjusted)
}

/// The p-value of "no test of this group found anything", `min n p_(i) / i` (Simes 1986); `None`
/// for an empty group or a value outside 0..=1.
#[must_use]
pub fn simes(p: &[f64]) -> Option<f64> {
    let adjusted = adjust(p, Method::BenjaminiHochberg)?;
    adjusted.into_iter().min_by(f64::total_cmp)
}

/// What the two-stage selection says about one group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupFindings {
    /// Simes p-value of the group; `None` for an empty one, which cannot be selected.
    pub group_p: Option<f64>,
    /// The same adjusted over the groups (Benjamini, Hochberg 1995).
    pub group_q: Option<f64>,
    /// Whether the group was selected.
    pub selected: bool,
    /// For each test of the group the Benjamini-Hochberg value times `G / R`, at most 1: at or
    /// below `q` exactly for what was found. In a group that was not selected the value at which
    /// it would have been is a lower bound, and stands for those below it.
    pub adjusted: Vec<f64>,
}

/// Selects among groups of tests, then among the tests of the groups selected: Simes p-values,
/// Benjamini-Hochberg over the `G` groups at `q`, and Benjamini-Hochberg at `q R / G` inside each
/// of the `R` selected (Benjamini, Bogomolov 2014). One result per group in their order; `None`
/// when a p-value lies outside 0..=1 or `q` outside 0..1.
#[must_use]
pub fn two_stage(groups: &[Vec<f64>], q: f64) -> Option<Vec<GroupFindings>> {
    if !(q > 0.0 && q < 1.0) {
        return None;
    }
    let simes_p: Vec<Option<f64>> = groups.iter().map(|group| simes(group)).collect();
    let filled: Vec<f64> = simes_p.iter().copied().flatten().collect();
    let mut over_groups = adjust(&filled, Method::BenjaminiHochberg)?.into_iter();
    let group_q: Vec<Option<f64>> = simes_p
        .iter()
        .map(|p| p.and_then(|_| over_groups.next()))
        .collect();
    let selected = group_q.iter().flatten().filter(|p| **p <= q).count();
    let penalty = count(filled.len()) / count(selected.max(1));
    groups
        .iter()
        .zip(simes_p.iter().zip(group_q))
        .map(|(group, (group_p, group_q))| {
            let chosen = group_q.is_some_and(|p| p <= q);
            let inside = adjust(group, Method::BenjaminiHochberg)?;
            let adjusted = inside
                .into_iter()
                .map(|p| match group_q {
                    Some(group_q) if !chosen => p.max(group_q),
                    _ => (p * penalty).min(1.0),
                })
                .collect();
            Some(GroupFindings {
                group_p: *group_p,
                group_q,
                selected: chosen,
                adjusted,
            })
        })
        .collect()
}

/// Indices in ascending order of their values; `None` when one lies outside 0..=1.
fn ascending(p: &[f64]) -> Option<Vec<usize>> {
    if p.iter().any(|v| !(0.0..=1.0).contains(v)) {
        return None;
    }
    let mut keyed: Vec<(f64, usize)> = p.iter().copied().zip(0..).collect();
    keyed.sort_by(|x, y| x.0.total_cmp(&y.0));
    Some(keyed.into_iter().map(|(_, i)| i).collect())
}

/// `1 + 1/2 + ... + 1/n`, by digamma.
fn harmonic(n: usize) -> f64 {
    crate::special::digamma(count(n) + 1.0) - crate::special::digamma(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(got: &[f64], expected: &[f64]) {
        assert_eq!(got.len(), expected.len());
        for (g, e) in got.iter().zip(expected) {
            assert!((g - e).abs() < 1e-14, "{got:?} {expected:?}");
        }
    }

    #[test]
    fn three_tests() {
        let p = [0.03, 0.01, 0.02];
        let by = |method| adjust(&p, method).expect("adjusted");
        close(&by(Method::Bonferroni), &[0.09, 0.03, 0.06]);
        close(&by(Method::Holm), &[0.04, 0.03, 0.04]);
        close(&by(Method::BenjaminiHochberg), &[0.03, 0.03, 0.03]);
        close(&by(Method::BenjaminiYekutieli), &[0.055, 0.055, 0.055]);
        assert!((simes(&p).expect("simes") - 0.03).abs() < 1e-15);
    }

    #[test]
    fn what_is_no_p_value() {
        assert_eq!(adjust(&[0.1, f64::NAN], Method::Holm), None);
        assert_eq!(adjust(&[1.1], Method::Bonferroni), None);
        assert_eq!(adjust(&[], Method::Holm), Some(vec![]));
        assert_eq!(simes(&[]), None);
    }

    #[test]
    fn selection_over_groups() {
        let groups = vec![vec![0.001, 0.9], vec![0.5, 0.6], vec![], vec![0.011, 0.02]];
        let found = two_stage(&groups, 0.05).expect("selection");
        let selected: Vec<bool> = found.iter().map(|g| g.selected).collect();
        assert_eq!(selected, [true, false, false, true]);
        // Three groups with tests, two selected: the values inside count 3/2.
        close(&found[0].adjusted, &[0.003, 1.0]);
        // Simes 0.6, the largest of three.
        close(&found[1].adjusted, &[0.6, 0.6]);
        close(&found[3].adjusted, &[0.03, 0.03]);
        assert_eq!(found[2].group_p, None);
        assert_eq!(two_stage(&groups, 0.0), None);
    }

    proptest! {
        #[test]
        fn adjusting_never_lowers(p in prop::collection::vec(0.0..=1.0_f64, 0..40)) {
            for method in [Method::Bonferroni, Method::Holm, Method::BenjaminiHochberg, Method::BenjaminiYekutieli] {
                let adjusted = adjust(&p, method).expect("adjusted");
                for (raw, value) in p.iter().zip(&adjusted) {
                    prop_assert!(*value <= 1.0 && *value >= raw * (1.0 - 1e-14));
                }
            }
        }

        #[test]
        fn any_input(p in prop::collection::vec(any::<f64>(), 0..10), q in any::<f64>()) {
            let _ = two_stage(std::slice::from_ref(&p), q);
            let _ = adjust(&p, Method::Holm);
        }
    }
}
