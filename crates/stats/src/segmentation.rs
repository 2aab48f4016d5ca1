//! The cheapest division of a series into segments of constant level, exactly.
//!
//! Minimises the cost of all points plus a penalty per change, where a point costs the square of
//! its distance from its segment's level, or at most a bound (biweight), so that an outlier
//! cannot buy a segment. The minimum is found by functional pruning: the cost of the best
//! division is kept as a function of the last level, a few parabolas. What penalty and bound are
//! right, and what a change means, is the business of [`crate::changepoint`].

use crate::quantile;
use crate::summary::count;

/// How segments are priced; in the units of the values, squared where it says so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pricing {
    /// Cost of one more change, in squared units; above 0.
    pub penalty: f64,
    /// Distance from the level beyond which a point costs no more; `None` for plain squares.
    pub bound: Option<f64>,
    /// Fewest points of a segment, at least 1.
    pub shortest: usize,
}

/// The best division.
#[derive(Clone, Debug, PartialEq)]
pub struct Segmentation {
    /// Index of the first point of each segment but the first, ascending.
    pub changes: Vec<usize>,
    /// Level of each segment, one more than the changes.
    pub levels: Vec<f64>,
    /// Cost of all points plus the penalties, in squared units.
    pub objective: f64,
}

/// The division of `values` with the least total cost, each point weighted by `weights` (all 1
/// when empty), by functional pruning (Maidstone, Hocking, Rigaill, Fearnhead 2017; the bound on
/// a point's cost as Fearnhead, Rigaill 2019).
///
/// `None` for fewer points than the shortest segment, a value, weight or price that is not finite
/// or not above 0 where it must be, or lengths that differ.
#[must_use]
pub fn segment(values: &[f64], weights: &[f64], pricing: Pricing) -> Option<Segmentation> {
    let n = values.len();
    let shortest = pricing.shortest.max(1);
    let priced = pricing.penalty > 0.0 && pricing.bound.is_none_or(|b| b > 0.0);
    if n < shortest || !priced || !(weights.is_empty() || weights.len() == n) {
        return None;
    }
    if weights.iter().any(|w| !(*w > 0.0 && w.is_finite())) {
        return None;
    }
    let sorted = quantile::sorted(values)?;
    let middle = quantile::of_sorted(&sorted, 0.5)?;
    let (low, high) = (*sorted.first()? - middle, *sorted.last()? - middle);
    let scale = high.max(-low);
    if !scale.is_finite() {
        return None;
    }
    if scale == 0.0 {
        return Some(Segmentation {
            changes: Vec::new(),
            levels: vec![middle],
            objective: 0.0,
        });
    }
    let weight = |i: usize| weights.get(i).copied().unwrap_or(1.0);
    let points: Vec<(f64, f64)> = values
        .iter()
        .enumerate()
        .map(|(i, v)| ((v - middle) / scale, weight(i)))
        .collect();
    let search = Search {
        points: &points,
        domain: (low / scale, high / scale),
        penalty: (pricing.penalty / scale / scale).min(f64::MAX),
        bound: pricing.bound.map(|b| b / scale),
        shortest,
    };
    let (mut changes, mut levels, objective) = search.run()?;
    changes.reverse();
    levels.reverse();
    for level in &mut levels {
        *level = middle + *level * scale;
    }
    Some(Segmentation {
        changes,
        levels,
        objective: objective * scale * scale,
    })
}

/// The cost `a x^2 + b x + c` of the best division whose last level `x` lies between `from` and
/// the next piece, and whose last segment starts at point `start`.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: f64,
    a: f64,
    b: f64,
    c: f64,
    start: usize,
}

impl Piece {
    fn at(&self, x: f64) -> f64 {
        (self.a * x + self.b) * x + self.c
    }

    /// The least value up to `to` and where it is.
    fn least(&self, to: f64) -> (f64, f64) {
        let vertex = if self.a > 0.0 {
            -self.b / (2.0 * self.a)
        } else {
            self.from
        };
        let x = vertex.clamp(self.from, to);
        (self.at(x), x)
    }

    fn same_cost(&self, other: &Self) -> bool {
        self.start == other.start && self.a == other.a && self.b == other.b && self.c == other.c
    }
}

struct Search<'a> {
    points: &'a [(f64, f64)],
    domain: (f64, f64),
    penalty: f64,
    bound: Option<f64>,
    shortest: usize,
}

/// Starts of the segments and their levels, from the last back, and the total cost.
type Backwards = (Vec<usize>, Vec<f64>, f64);

impl Search<'_> {
    fn run(&self) -> Option<Backwards> {
        let n = self.points.len();
        // Per number of points seen: best cost, start of the last segment, its level.
        let mut best: Vec<Option<(f64, usize, f64)>> = vec![None; n + 1];
        let mut costs: Vec<Piece> = Vec::new();
        let (mut shifted, mut merged) = (Vec::new(), Vec::new());
        for seen in self.shortest..=n {
            let (point, weight) = *self.points.get(seen - 1)?;
            self.add_point(&costs, point, weight, &mut shifted);
            let start = seen - self.shortest;
            let before = if start == 0 {
                Some(0.0)
            } else {
                best.get(start)
                    .copied()
                    .flatten()
                    .map(|(cost, _, _)| cost + self.penalty)
            };
            if let Some(before) = before {
                let fresh = self.fresh(start, before, seen);
                self.lower(&shifted, &fresh, &mut merged);
                std::mem::swap(&mut costs, &mut merged);
            } else {
                std::mem::swap(&mut costs, &mut shifted);
            }
            *best.get_mut(seen)? = self.least(&costs);
        }
        let objective = best.get(n).copied().flatten()?.0;
        let (mut changes, mut levels) = (Vec::new(), Vec::new());
        let mut end = n;
        while end > 0 {
            let (_, start, level) = best.get(end).copied().flatten()?;
            levels.push(level);
            if start > 0 {
                changes.push(start);
            }
            end = start;
        }
        Some((changes, levels, objective))
    }

    /// The least cost, the start it belongs to and the level.
    fn least(&self, pieces: &[Piece]) -> Option<(f64, usize, f64)> {
        let ends = pieces.iter().skip(1).map(|p| p.from).chain([self.domain.1]);
        pieces
            .iter()
            .zip(ends)
            .map(|(piece, to)| {
                let (cost, level) = piece.least(to);
                (cost, piece.start, level)
            })
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
    }

    /// The costs of a segment from `start` that holds the points up to `seen`.
    fn fresh(&self, start: usize, before: f64, seen: usize) -> Vec<Piece> {
        let mut pieces = vec![Piece {
            from: self.domain.0,
            a: 0.0,
            b: 0.0,
            c: before,
            start,
        }];
        for (point, weight) in self.points.iter().take(seen).skip(start) {
            let mut next = Vec::with_capacity(pieces.len() + 2);
            self.add_point(&pieces, *point, *weight, &mut next);
            pieces = next;
        }
        pieces
    }

    /// Adds the cost of one point to all pieces.
    fn add_point(&self, pieces: &[Piece], point: f64, weight: f64, into: &mut Vec<Piece>) {
        into.clear();
        let near = |piece: &Piece| Piece {
            a: piece.a + weight,
            b: piece.b - 2.0 * weight * point,
            c: piece.c + weight * point * point,
            ..*piece
        };
        let Some(bound) = self.bound else {
            into.extend(pieces.iter().map(near));
            return;
        };
        let far = |piece: &Piece| Piece {
            c: piece.c + weight * bound * bound,
            ..*piece
        };
        let (enter, leave) = (point - bound, point + bound);
        for (i, piece) in pieces.iter().enumerate() {
            let to = pieces.get(i + 1).map_or(self.domain.1, |next| next.from);
            if piece.from < enter {
                push(into, far(piece));
            }
            if enter < to && leave > piece.from {
                let mut middle = near(piece);
                middle.from = piece.from.max(enter);
                push(into, middle);
            }
            if to > leave || (piece.from >= to && piece.from >= leave) {
                let mut right = far(piece);
                right.from = piece.from.max(leave);
                push(into, right);
            }
        }
    }

    /// The lower envelope of two costs; `old` may be empty.
    fn lower(&self, old: &[Piece], fresh: &[Piece], into: &mut Vec<Piece>) {
        into.clear();
        if old.is_empty() {
            into.extend_from_slice(fresh);
            return;
        }
        let (mut i, mut j) = (0, 0);
        let mut from = self.domain.0;
        while let (Some(first), Some(second)) = (old.get(i), fresh.get(j)) {
            let end = |pieces: &[Piece], k: usize| pieces.get(k + 1).map(|next| next.from);
            let (end_i, end_j) = (end(old, i), end(fresh, j));
            let to = end_i
                .unwrap_or(self.domain.1)
                .min(end_j.unwrap_or(self.domain.1));
            if to > from || (end_i.is_none() && end_j.is_none()) {
                cheaper(first, second, from, to, into);
            }
            from = from.max(to);
            if end_i.is_none() && end_j.is_none() {
                break;
            }
            if end_i.is_some_and(|e| e <= to) {
                i += 1;
            }
            if end_j.is_some_and(|e| e <= to) {
                j += 1;
            }
        }
    }
}

/// Appends the cheaper of two pieces between `from` and `to`, divided where they cross.
fn cheaper(first: &Piece, second: &Piece, from: f64, to: f64, into: &mut Vec<Piece>) {
    let (a, b, c) = (first.a - second.a, first.b - second.b, first.c - second.c);
    let mut cuts = [from, to, to, to];
    let mut known = 1;
    for root in roots(a, b, c) {
        if root > from && root < to {
            if let Some(cut) = cuts.get_mut(known) {
                *cut = root;
            }
            known += 1;
        }
    }
    for (k, pair) in cuts.windows(2).take(known).enumerate() {
        let [left, right] = [pair.first(), pair.last()].map(|v| v.copied().unwrap_or(to));
        let middle = 0.5 * (left + right);
        let second_is_cheaper = (a * middle + b) * middle + c > 0.0;
        let mut piece = if second_is_cheaper { *second } else { *first };
        piece.from = left;
        if right > left || k == 0 {
            push(into, piece);
        }
    }
}

/// Real roots of `a x^2 + b x + c` in ascending order, NaN where there are fewer than two.
fn roots(a: f64, b: f64, c: f64) -> [f64; 2] {
    if a == 0.0 {
        return [-c / b, f64::NAN];
    }
    let inner = b * b - 4.0 * a * c;
    if inner < 0.0 {
        return [f64::NAN; 2];
    }
    let q = -0.5 * (b + inner.sqrt().copysign(b));
    let (x, y) = (q / a, c / q);
    if x <= y { [x, y] } else { [y, x] }
}

/// Appends a piece, or lets the last one go on when it costs the same.
fn push(into: &mut Vec<Piece>, piece: Piece) {
    if !into.last().is_some_and(|last| last.same_cost(&piece)) {
        into.push(piece);
    }
}

/// The level of least bounded cost near the median of `values`, by repeated means of the points
/// within `bound` of the level; the mean without a bound. `None` for no value or one that is not
/// finite.
pub(crate) fn level(values: &[f64], bound: Option<f64>) -> Option<f64> {
    let Some(bound) = bound else {
        return crate::summary::mean(values);
    };
    let mut level = quantile::quantile(values, 0.5)?;
    for _ in 0..100 {
        let near: Vec<f64> = values
            .iter()
            .copied()
            .filter(|v| (v - level).abs() <= bound)
            .collect();
        let Some(next) = crate::summary::mean(&near) else {
            break;
        };
        if next == level {
            break;
        }
        level = next;
    }
    Some(level)
}

/// Cost of points at a level, as [`segment`] counts it.
pub(crate) fn cost(values: &[f64], level: f64, bound: Option<f64>) -> f64 {
    values.iter().map(|v| point_cost(*v, level, bound)).sum()
}

pub(crate) fn point_cost(value: f64, level: f64, bound: Option<f64>) -> f64 {
    let square = (value - level).powi(2);
    bound.map_or(square, |b| square.min(b * b))
}

/// Two samples' energy distance times `nm/(n+m)` at every division of `values`: the statistic of
/// E-divisive in its V form (Matteson, James 2014), index `k-1` for a division before point `k`.
/// Empty for fewer than two values, `None` where a distance is not finite.
#[must_use]
pub fn energy_profile(values: &[f64]) -> Option<Vec<f64>> {
    let n = values.len();
    let distances = |i: usize, range: std::ops::Range<usize>| {
        let own = values.get(i).copied().unwrap_or(f64::NAN);
        let others = values.get(range).unwrap_or(&[]);
        others.iter().map(|v| (v - own).abs()).sum::<f64>()
    };
    // Sums over ordered pairs within the left, within the right, and over pairs between them.
    let (mut left, mut between) = (0.0, 0.0);
    let mut right: f64 = (0..n).map(|i| distances(i, 0..n)).sum();
    let mut profile = Vec::with_capacity(n.saturating_sub(1));
    for k in 1..n {
        let (to_left, to_right) = (distances(k - 1, 0..k), distances(k - 1, k..n));
        left += 2.0 * to_left;
        right -= 2.0 * to_right;
        between += to_right - to_left;
        let (a, b) = (count(k), count(n - k));
        let energy = 2.0 * between / (a * b) - left / (a * a) - right / (b * b);
        let statistic = a * b / (a + b) * energy;
        profile.push(Some(statistic).filter(|s| s.is_finite())?);
    }
    Some(profile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The least total cost by trying all last segments, levels by trying all subsets of
    /// neighbours in order (the minimum of a bounded cost is a mean of some window).
    fn by_trying(values: &[f64], pricing: Pricing) -> f64 {
        let n = values.len();
        let mut best = vec![f64::INFINITY; n + 1];
        best[0] = -pricing.penalty;
        for end in pricing.shortest..=n {
            for start in 0..=end - pricing.shortest {
                let mut sorted = values[start..end].to_vec();
                sorted.sort_by(f64::total_cmp);
                let mut least = f64::INFINITY;
                for i in 0..sorted.len() {
                    for j in i + 1..=sorted.len() {
                        let level = crate::summary::mean(&sorted[i..j]).expect("mean");
                        least = least.min(cost(&sorted, level, pricing.bound));
                    }
                }
                best[end] = best[end].min(best[start] + least + pricing.penalty);
            }
        }
        best[n]
    }

    #[test]
    fn one_jump() {
        let values = [0.0, 0.1, -0.1, 0.0, 5.0, 5.1, 4.9, 5.0];
        let pricing = Pricing {
            penalty: 1.0,
            bound: None,
            shortest: 1,
        };
        let found = segment(&values, &[], pricing).expect("segmentation");
        assert_eq!(found.changes, [4]);
        assert!((found.objective - 1.04).abs() < 1e-12);
        assert!((found.levels[0]).abs() < 1e-12 && (found.levels[1] - 5.0).abs() < 1e-12);
    }

    #[test]
    fn a_bound_ignores_one_outlier() {
        let mut values = vec![0.0, 0.1, -0.1, 0.05, 0.0, -0.05, 0.1, 0.0, -0.1, 0.0];
        values[5] = 40.0;
        let plain = Pricing {
            penalty: 2.0,
            bound: None,
            shortest: 1,
        };
        let bounded = Pricing {
            bound: Some(0.6),
            ..plain
        };
        assert_eq!(segment(&values, &[], plain).expect("plain").changes, [5, 6]);
        assert!(
            segment(&values, &[], bounded)
                .expect("bounded")
                .changes
                .is_empty()
        );
    }

    #[test]
    fn weights_are_repetitions() {
        let pricing = Pricing {
            penalty: 1.5,
            bound: Some(2.0),
            shortest: 1,
        };
        let weighted = segment(&[0.0, 1.0, 1.2], &[3.0, 2.0, 1.0], pricing).expect("weighted");
        let repeated = segment(&[0.0, 0.0, 0.0, 1.0, 1.0, 1.2], &[], pricing).expect("repeated");
        assert!((weighted.objective - repeated.objective).abs() < 1e-9);
    }

    #[test]
    fn what_cannot_be_divided() {
        let pricing = Pricing {
            penalty: 1.0,
            bound: None,
            shortest: 3,
        };
        assert_eq!(segment(&[1.0, 2.0], &[], pricing), None);
        assert_eq!(segment(&[1.0, 2.0, f64::NAN], &[], pricing), None);
        assert_eq!(segment(&[1.0; 3], &[1.0], pricing), None);
        assert_eq!(segment(&[1.0; 3], &[0.0; 3], pricing), None);
        assert_eq!(
            segment(
                &[f64::MIN, f64::MAX, 0.0],
                &[],
                Pricing {
                    penalty: f64::NAN,
                    ..pricing
                }
            ),
            None
        );
        assert!(segment(&[7.0; 9], &[], pricing).is_some_and(|s| s.changes.is_empty()));
        assert_eq!(energy_profile(&[1.0]), Some(vec![]));
        assert_eq!(energy_profile(&[1.0, f64::NAN]), None);
    }

    proptest! {
        #[test]
        fn as_cheap_as_by_trying(
            values in prop::collection::vec(prop_oneof![-1.0..1.0_f64, 3.0..5.0_f64, 30.0..31.0_f64], 3..13),
            penalty in 0.05..8.0_f64, bound in prop::option::of(0.1..4.0_f64), shortest in 1_usize..4,
        ) {
            let pricing = Pricing { penalty, bound, shortest };
            let found = segment(&values, &[], pricing).expect("segmentation");
            let expected = by_trying(&values, pricing);
            prop_assert!((found.objective - expected).abs() < 1e-8, "{} {expected}", found.objective);
            let mut edges = vec![0];
            edges.extend(&found.changes);
            edges.push(values.len());
            let mut total = penalty * count(found.changes.len());
            for (pair, level) in edges.windows(2).zip(&found.levels) {
                prop_assert!(pair[1] - pair[0] >= shortest);
                total += cost(&values[pair[0]..pair[1]], *level, bound);
            }
            prop_assert!((total - expected).abs() < 1e-8);
        }

        #[test]
        fn anything_in_no_panic(
            values in prop::collection::vec(any::<f64>(), 0..20), penalty in any::<f64>(),
            bound in prop::option::of(any::<f64>()), shortest in 0_usize..4,
        ) {
            let finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
            for values in [&values, &finite] {
                if let Some(found) = segment(values, &[], Pricing { penalty, bound, shortest }) {
                    prop_assert_eq!(found.levels.len(), found.changes.len() + 1);
                }
            }
        }
    }
}
