//! Distances between two distributions: Kolmogorov-Smirnov, Cramer-von Mises, Anderson-Darling,
//! Wasserstein, energy.
//!
//! Samples are runs, one value each; events pooled over runs are not independent, and for them
//! only [`crate::permutation`] gives a p-value. With ties the Kolmogorov-Smirnov p-value is
//! conservative.

use crate::quantile::sorted;
use crate::summary::count;
use std::collections::BTreeMap;

/// Values up to which the Cramer-von Mises distribution is exact.
const EXACT_VALUES: usize = 24;
/// Pairs of sizes that the exact Kolmogorov-Smirnov distribution may take.
const EXACT_PAIRS: usize = 25_000_000;

/// Two samples merged into steps of their empirical distribution functions.
#[derive(Clone, Debug)]
pub struct TwoSamples {
    n: usize,
    m: usize,
    /// Each distinct value in ascending order with how many of `a` and of `b` have it.
    steps: Vec<(f64, usize, usize)>,
}

impl TwoSamples {
    /// The samples `a` and `b`; `None` when one is empty or a value is not finite.
    #[must_use]
    pub fn new(a: &[f64], b: &[f64]) -> Option<Self> {
        let (a, b) = (sorted(a)?, sorted(b)?);
        if a.is_empty() || b.is_empty() {
            return None;
        }
        let mut all: Vec<(f64, bool)> = a.iter().map(|v| (*v, false)).collect();
        all.extend(b.iter().map(|v| (*v, true)));
        all.sort_by(|x, y| x.0.total_cmp(&y.0));
        let step = |group: &[(f64, bool)]| {
            let of_b = group.iter().filter(|(_, is_b)| *is_b).count();
            let value = group.first().map_or(0.0, |(v, _)| *v);
            (value, group.len() - of_b, of_b)
        };
        Some(Self {
            n: a.len(),
            m: b.len(),
            steps: all.chunk_by(|x, y| x.0 == y.0).map(step).collect(),
        })
    }

    /// Largest distance of the empirical distribution functions (Smirnov 1939), 0..=1.
    #[must_use]
    pub fn ks(&self) -> f64 {
        count(self.ks_scaled()) / (count(self.n) * count(self.m))
    }

    /// p-value of [`TwoSamples::ks`], by counting the paths that stay within it (Hodges 1958);
    /// `None` above 25 million pairs of values.
    #[must_use]
    pub fn ks_p(&self) -> Option<f64> {
        let (n, m) = (self.n, self.m);
        if n.checked_mul(m)? > EXACT_PAIRS {
            return None;
        }
        let limit = self.ks_scaled();
        // Share of the paths to (i, j) that reached the limit, row by row.
        let mut row: Vec<f64> = vec![0.0; m + 1];
        for i in 0..=n {
            let mut left = 0.0;
            for (j, slot) in row.iter_mut().enumerate() {
                *slot = if (i * m).abs_diff(j * n) >= limit {
                    1.0
                } else if i + j == 0 {
                    0.0
                } else {
                    let from_a = count(i) / count(i + j);
                    from_a * *slot + (1.0 - from_a) * left
                };
                left = *slot;
            }
        }
        row.last().copied()
    }

    /// The two-sample Cramer-von Mises statistic `T` with mid-ranks (Anderson 1962).
    #[must_use]
    pub fn cramer_von_mises(&self) -> f64 {
        let (n, m) = (count(self.n), count(self.m));
        let (mut before, mut seen_a, mut seen_b) = (0.0, 0.0, 0.0);
        let mut u = 0.0;
        for (_, of_a, of_b) in &self.steps {
            let rank = before + 0.5 * (count(of_a + of_b) + 1.0);
            for i in 1..=*of_a {
                u += n * (rank - seen_a - count(i)).powi(2);
            }
            for j in 1..=*of_b {
                u += m * (rank - seen_b - count(j)).powi(2);
            }
            before += count(of_a + of_b);
            seen_a += count(*of_a);
            seen_b += count(*of_b);
        }
        let pairs = n * m;
        u / (pairs * (n + m)) - (4.0 * pairs - 1.0) / (6.0 * (n + m))
    }

    /// p-value of the Cramer-von Mises distance between the empirical distribution functions
    /// (without ties that is [`TwoSamples::cramer_von_mises`]): exact given the ties up to 24
    /// values (Anderson 1962; Xiao, Gordon, Yakovlev 2006), beyond by the limiting distribution
    /// with matched moments (Anderson, Darling 1952).
    #[must_use]
    pub fn cramer_von_mises_p(&self) -> f64 {
        if self.n + self.m <= EXACT_VALUES {
            return self.exact_cramer_p();
        }
        let (n, m) = (count(self.n), count(self.m));
        let (all, pairs) = (n + m, n * m);
        let t = count(self.cramer_scaled()) / (all * all * pairs);
        let mean = (1.0 + 1.0 / all) / 6.0;
        let variance = (all + 1.0) * (4.0 * pairs * all - 3.0 * (n * n + m * m) - 2.0 * pairs)
            / (45.0 * all * all * 4.0 * pairs);
        let standard = 1.0 / 6.0 + (t - mean) / (45.0 * variance).sqrt();
        if standard < 0.003 {
            return 1.0;
        }
        (1.0 - cramer_limit(standard)).clamp(0.0, 1.0)
    }

    /// Anderson-Darling distance with mid-ranks, standardised by its mean and deviation (Scholz,
    /// Stephens 1987, equation 7); `None` with fewer than four values or all of them equal.
    #[must_use]
    pub fn anderson_darling(&self) -> Option<f64> {
        let all = count(self.n + self.m);
        if self.steps.len() < 2 || self.n + self.m < 4 {
            return None;
        }
        let statistic =
            self.anderson_part(true) / count(self.n) + self.anderson_part(false) / count(self.m);
        let a2 = statistic * (all - 1.0) / all;
        let standard = (a2 - 1.0) / anderson_variance(self.n, self.m).sqrt();
        standard.is_finite().then_some(standard)
    }

    fn anderson_part(&self, of_first: bool) -> f64 {
        let all = count(self.n + self.m);
        let own = count(if of_first { self.n } else { self.m });
        let (mut before, mut own_before, mut sum) = (0.0, 0.0, 0.0);
        for (_, of_a, of_b) in &self.steps {
            let here = count(of_a + of_b);
            let mine = count(if of_first { *of_a } else { *of_b });
            let middle = before + 0.5 * here;
            let own_middle = own_before + 0.5 * mine;
            let weight = middle * (all - middle) - 0.25 * all * here;
            sum += here / all * (all * own_middle - own * middle).powi(2) / weight;
            before += here;
            own_before += mine;
        }
        sum
    }

    /// First Wasserstein distance, the area between the distribution functions, in the unit of
    /// the values (on logarithms: a factor); infinite when it exceeds the range of `f64`.
    #[must_use]
    pub fn wasserstein(&self) -> f64 {
        self.integral(f64::abs)
    }

    /// Energy distance `sqrt(2 E|X-Y| - E|X-X'| - E|Y-Y'|)`, that is `sqrt(2 integral (F-G)^2)`
    /// (Szekely, Rizzo 2013), in the root of the unit of the values.
    #[must_use]
    pub fn energy(&self) -> f64 {
        (2.0 * self.integral(|difference| difference * difference)).sqrt()
    }

    /// Integral of a function of `F - G`.
    fn integral(&self, of: impl Fn(f64) -> f64) -> f64 {
        let (mut seen_a, mut seen_b, mut sum) = (0, 0, 0.0);
        for pair in self.steps.windows(2) {
            let [(low, of_a, of_b), (high, ..)] = pair else {
                continue;
            };
            seen_a += of_a;
            seen_b += of_b;
            let difference = count(seen_a) / count(self.n) - count(seen_b) / count(self.m);
            // Halved so that the width of the whole range of f64 exists.
            sum += of(difference) * (high / 2.0 - low / 2.0) * 2.0;
        }
        sum
    }

    /// `n m` times the Kolmogorov-Smirnov distance.
    fn ks_scaled(&self) -> usize {
        let (mut seen_a, mut seen_b, mut most) = (0, 0, 0);
        for (_, of_a, of_b) in &self.steps {
            seen_a += of_a;
            seen_b += of_b;
            most = most.max((seen_a * self.m).abs_diff(seen_b * self.n));
        }
        most
    }

    /// `N^2 n m` times the Cramer-von Mises distance: over all values the sum of `(i m - j n)^2`,
    /// with `i` and `j` the values of each side up to there.
    fn cramer_scaled(&self) -> usize {
        let (mut seen_a, mut seen_b, mut sum) = (0, 0, 0);
        for (_, of_a, of_b) in &self.steps {
            seen_a += of_a;
            seen_b += of_b;
            let gap = (seen_a * self.m).abs_diff(seen_b * self.n);
            sum += gap * gap * (of_a + of_b);
        }
        sum
    }

    /// Share of all orders of the sides whose scaled distance is at least the one seen.
    fn exact_cramer_p(&self) -> f64 {
        let (n, m) = (self.n, self.m);
        // Values up to each end of a group of equal ones count as often as the group is large.
        let mut weights = vec![0; n + m + 1];
        let mut before = 0;
        for (_, of_a, of_b) in &self.steps {
            before += of_a + of_b;
            if let Some(weight) = weights.get_mut(before) {
                *weight = of_a + of_b;
            }
        }
        let mut row: Vec<BTreeMap<usize, f64>> = vec![BTreeMap::new(); m + 1];
        for i in 0..=n {
            let mut left = BTreeMap::new();
            for (j, slot) in row.iter_mut().enumerate() {
                let weight = weights.get(i + j).copied().unwrap_or(0);
                let cost = (i * m).abs_diff(j * n).pow(2) * weight;
                let mut here: BTreeMap<usize, f64> = BTreeMap::new();
                if i + j == 0 {
                    here.insert(0, 1.0);
                } else {
                    let from_a = count(i) / count(i + j);
                    for (from, share) in [(&*slot, from_a), (&left, 1.0 - from_a)] {
                        for (sum, mass) in from {
                            *here.entry(sum + cost).or_insert(0.0) += share * mass;
                        }
                    }
                }
                slot.clone_from(&here);
                left = here;
            }
        }
        let own = self.cramer_scaled();
        let tail = row.last().into_iter().flat_map(|sums| sums.range(own..));
        tail.map(|(_, mass)| mass).sum::<f64>().clamp(0.0, 1.0)
    }
}

/// Limiting distribution function of the Cramer-von Mises statistic (Anderson, Darling 1952,
/// equation 4.35).
fn cramer_limit(x: f64) -> f64 {
    let (mut sum, mut ratio) = (0.0, 1.0);
    for k in 0..40 {
        let k = f64::from(k);
        let y = 4.0 * k + 1.0;
        let q = y * y / (16.0 * x);
        // e^-q K_1/4(q) = integral of e^(-q (1 + cosh t)) cosh(t/4).
        let bessel = {
            let step = 0.02;
            let height = |i: i32| {
                let t = step * f64::from(i);
                (-q * (1.0 + t.cosh())).exp() * (0.25 * t).cosh()
            };
            step * (0.5 * height(0) + (1..500).map(height).sum::<f64>())
        };
        let term = ratio * y.sqrt() * bessel;
        sum += term;
        if term < 1e-17 * sum {
            break;
        }
        ratio *= (k + 0.5) / (k + 1.0);
    }
    sum / (std::f64::consts::PI * x.sqrt())
}

/// Variance of the Anderson-Darling statistic of two samples (Scholz, Stephens 1987, equation 4).
fn anderson_variance(n: usize, m: usize) -> f64 {
    let total = n + m;
    let all = count(total);
    let inverse = 1.0 / count(n) + 1.0 / count(m);
    // g = sum over i < j < N of 1 / ((N - i) j), from the tails of the harmonic sum.
    let (mut harmonic, mut g) = (0.0, 0.0);
    for i in (1..total).rev() {
        g += harmonic / count(total - i);
        harmonic += 1.0 / count(i);
    }
    let h = harmonic;
    let a = 4.0 * g - 6.0 + (10.0 - 6.0 * g) * inverse;
    let b = 4.0 * (2.0 * g - 4.0) + 16.0 * h + (2.0 * g - 14.0 * h - 4.0) * inverse - 8.0 * h
        + 4.0 * g
        - 6.0;
    let c = 4.0 * (6.0 * h + 2.0 * g - 2.0)
        + 2.0 * (4.0 * h - 4.0 * g + 6.0)
        + (2.0 * h - 6.0) * inverse
        + 4.0 * h;
    let d = 4.0 * (2.0 * h + 6.0) - 8.0 * h;
    (((a * all + b) * all + c) * all + d) / ((all - 1.0) * (all - 2.0) * (all - 3.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn separated_samples() {
        let s = TwoSamples::new(&[1.0, 2.0, 3.0], &[11.0, 12.0, 13.0]).expect("samples");
        assert_eq!((s.ks(), s.wasserstein()), (1.0, 10.0));
        // Two of the 20 orders are separated.
        assert!((s.ks_p().expect("p") - 0.1).abs() < 1e-14);
        assert!((s.cramer_von_mises_p() - 0.1).abs() < 1e-14);
    }

    #[test]
    fn equal_samples() {
        let s = TwoSamples::new(&[2.0; 4], &[2.0; 4]).expect("samples");
        assert_eq!((s.ks(), s.wasserstein(), s.energy()), (0.0, 0.0, 0.0));
        assert_eq!((s.ks_p(), s.anderson_darling()), (Some(1.0), None));
        assert_eq!(s.cramer_von_mises_p(), 1.0);
        assert!(TwoSamples::new(&[], &[1.0]).is_none());
        assert!(TwoSamples::new(&[f64::NAN], &[1.0]).is_none());
    }

    #[test]
    fn the_limit_agrees_with_its_table() {
        // Anderson and Darling (1952), table 1.
        assert!((cramer_limit(0.461_36) - 0.95).abs() < 1e-5);
        assert!((cramer_limit(0.743_46) - 0.99).abs() < 1e-5);
    }

    proptest! {
        #[test]
        fn exact_p_agrees_with_enumeration(
            a in prop::collection::vec(0..4_i32, 1..5), b in prop::collection::vec(0..4_i32, 1..5)
        ) {
            let pooled: Vec<f64> = a.iter().chain(&b).map(|v| f64::from(*v)).collect();
            let split = |labels: &[bool]| {
                let side = |b: bool| -> Vec<f64> {
                    pooled.iter().zip(labels).filter(|(_, l)| **l == b).map(|(v, _)| *v).collect()
                };
                TwoSamples::new(&side(false), &side(true))
            };
            let statistic = |labels: &[bool]| Some(count(split(labels)?.cramer_scaled()));
            let all = crate::permutation::permute(a.len(), b.len(), 0, statistic).expect("test");
            let labels: Vec<bool> = (0..pooled.len()).map(|i| i >= a.len()).collect();
            let own = split(&labels).expect("samples").cramer_von_mises_p();
            prop_assert!((own - all.p).abs() < 1e-12, "{own} {}", all.p);
        }

        #[test]
        fn any_input(a in prop::collection::vec(any::<f64>(), 1..8), b in prop::collection::vec(any::<f64>(), 1..8)) {
            if let Some(s) = TwoSamples::new(&a, &b) {
                prop_assert!((0.0..=1.0).contains(&s.ks()));
                for p in [s.ks_p().expect("p"), s.cramer_von_mises_p()] {
                    prop_assert!(p > 0.0 && p <= 1.0 + 1e-12, "{p}");
                }
                prop_assert!(s.wasserstein() >= 0.0 && s.energy() >= 0.0);
            }
        }
    }
}
