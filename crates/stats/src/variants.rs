//! Three and more variants: is there any difference, and which differ from the base.
//!
//! Welch's analysis of variance is the gate; then Dunnett's comparison with the base (equal
//! variances assumed), or Holm over whatever pairwise test the caller has. Comparisons of all
//! pairs are not offered.

use crate::dist::{ChiSquared, FisherF, normal_cdf, normal_pdf};
use crate::numeric::GaussLegendre;
use crate::rank::Ranks;
use crate::special::gamma_weight;
use crate::summary::{Summary, count};

/// A test of the hypothesis that all variants are equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gate {
    /// F, or H for Kruskal and Wallis.
    pub statistic: f64,
    /// Degrees of freedom between the variants.
    pub df_between: f64,
    /// Degrees of freedom of the error; `None` for Kruskal and Wallis.
    pub df_error: Option<f64>,
    /// Upper tail.
    pub p: f64,
}

/// One variant against the base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgainstBase {
    /// Difference of the means, variant minus base, in the values' unit.
    pub difference: f64,
    /// Its t statistic with the variance pooled over all variants.
    pub t: f64,
    /// Two-sided p, adjusted for all variants compared.
    pub p: f64,
}

/// Dunnett's comparison of all variants with the base.
#[derive(Clone, Debug, PartialEq)]
pub struct Dunnett {
    /// Degrees of freedom of the pooled variance.
    pub df: f64,
    /// One entry per variant after the base, in the order given.
    pub comparisons: Vec<AgainstBase>,
}

/// Analysis of variance of `groups` under equal variances (Fisher 1925); `None` for fewer than
/// two groups, no degree of freedom for the error, a value that is not finite, or no variance
/// within the groups.
#[must_use]
pub fn anova(groups: &[Vec<f64>]) -> Option<Gate> {
    let pooled = Pooled::of(groups)?;
    let all: f64 = pooled.groups.iter().map(|g| count(g.n)).sum();
    let mean = pooled
        .groups
        .iter()
        .map(|g| g.mean * (count(g.n) / all))
        .sum::<f64>();
    let between: f64 = pooled
        .groups
        .iter()
        .map(|g| count(g.n) * ((g.mean - mean) / pooled.sd).powi(2))
        .sum();
    let df_between = count(groups.len()) - 1.0;
    f_gate(between / df_between, df_between, pooled.df)
}

/// Welch's analysis of variance of `groups` (Welch 1951), which allows unequal variances; `None`
/// for fewer than two groups, a group of fewer than two values or without variance, or a value
/// that is not finite.
#[must_use]
pub fn welch_anova(groups: &[Vec<f64>]) -> Option<Gate> {
    let k = count(groups.len());
    if k < 2.0 {
        return None;
    }
    let mut parts = Vec::with_capacity(groups.len());
    for group in groups {
        let summary = Summary::of(group)?;
        let error = summary.standard_error().filter(|e| *e > 0.0)?;
        parts.push((count(summary.n), summary.mean, error));
    }
    // Weights relative to the largest, so that squares of small errors cannot overflow.
    let least = parts.iter().map(|(_, _, e)| *e).fold(f64::MAX, f64::min);
    let weight = |error: f64| (least / error).powi(2);
    let weights: f64 = parts.iter().map(|(_, _, e)| weight(*e)).sum();
    let mean: f64 = parts
        .iter()
        .map(|(_, m, e)| m * (weight(*e) / weights))
        .sum();
    let between: f64 = parts.iter().map(|(_, m, e)| ((m - mean) / e).powi(2)).sum();
    let lack: f64 = parts
        .iter()
        .map(|(n, _, e)| (1.0 - weight(*e) / weights).powi(2) / (n - 1.0))
        .sum();
    let squares = k * k - 1.0;
    let f = between / (k - 1.0) / (1.0 + 2.0 * (k - 2.0) / squares * lack);
    f_gate(f, k - 1.0, squares / (3.0 * lack))
}

fn f_gate(f: f64, df_between: f64, df_error: f64) -> Option<Gate> {
    let p = FisherF::new(df_between, df_error)?.sf(f);
    (f.is_finite() && p.is_finite()).then_some(Gate {
        statistic: f,
        df_between,
        df_error: Some(df_error),
        p,
    })
}

/// Kruskal and Wallis's rank test (1952) with the correction for ties and the chi-squared
/// approximation; `None` for fewer than two groups, an empty one, a value that is not finite, or
/// all values equal.
#[must_use]
pub fn kruskal_wallis(groups: &[Vec<f64>]) -> Option<Gate> {
    if groups.len() < 2 || groups.iter().any(Vec::is_empty) {
        return None;
    }
    let ranks = Ranks::of(groups.iter().flatten())?;
    let cube = |t: f64| t * t * t - t;
    let n = count(ranks.doubled.len());
    let ties: f64 = ranks.groups.iter().map(|t| cube(count(*t))).sum();
    let (mut sum, mut start) = (0.0, 0);
    for group in groups {
        let own = ranks.doubled.get(start..start + group.len())?;
        start += group.len();
        let mean = 0.5 * count(own.iter().sum()) / count(own.len()) - (n + 1.0) / 2.0;
        sum += count(own.len()) * mean * mean;
    }
    let statistic = 12.0 / (n * (n + 1.0)) * sum / (1.0 - ties / cube(n));
    let df_between = count(groups.len()) - 1.0;
    let p = ChiSquared::new(df_between)?.sf(statistic);
    statistic.is_finite().then_some(Gate {
        statistic,
        df_between,
        df_error: None,
        p,
    })
}

/// Dunnett's two-sided comparison (1955) of each group after the first with the first, p by the
/// multivariate t distribution of the actual group sizes; `None` as for [`anova`].
#[must_use]
pub fn dunnett(groups: &[Vec<f64>]) -> Option<Dunnett> {
    let pooled = Pooled::of(groups)?;
    let (base, others) = pooled.groups.split_first()?;
    let loadings: Vec<f64> = others
        .iter()
        .map(|g| (count(g.n) / (count(g.n) + count(base.n))).sqrt())
        .collect();
    let largest = LargestT::new(&loadings, pooled.df)?;
    let against = |group: &Summary| {
        let difference = group.mean - base.mean;
        let error = (1.0 / count(group.n) + 1.0 / count(base.n)).sqrt();
        let t = difference / pooled.sd / error;
        let p = largest.beyond(t.abs());
        (difference.is_finite() && t.is_finite()).then_some(AgainstBase { difference, t, p })
    };
    Some(Dunnett {
        df: pooled.df,
        comparisons: others.iter().map(against).collect::<Option<_>>()?,
    })
}

/// The critical value of Dunnett's comparison at `alpha` for the sizes of the groups, the base
/// first; the half-width of a simultaneous interval is this times the standard error. `None`
/// as for [`dunnett`] or unless `0 < alpha < 1`.
#[must_use]
pub fn dunnett_critical(sizes: &[usize], alpha: f64) -> Option<f64> {
    let (base, others) = sizes.split_first()?;
    let df = sizes.iter().map(|n| count(*n) - 1.0).sum::<f64>();
    let loading = |n: &usize| (count(*n) / (count(*n) + count(*base))).sqrt();
    let loadings: Vec<f64> = others.iter().map(loading).collect();
    let usable = sizes.iter().all(|n| *n > 0) && alpha > 0.0 && alpha < 1.0;
    let largest = LargestT::new(&loadings, df).filter(|_| usable)?;
    let gap = |t: f64| largest.beyond(t) - alpha;
    let mut high = 4.0;
    while gap(high) > 0.0 && high < 1e9 {
        high *= 2.0;
    }
    crate::numeric::find_root(0.0, high, gap)
}

struct Pooled {
    groups: Vec<Summary>,
    df: f64,
    sd: f64,
}

impl Pooled {
    fn of(groups: &[Vec<f64>]) -> Option<Self> {
        let groups: Vec<Summary> = groups
            .iter()
            .map(|g| Summary::of(g))
            .collect::<Option<_>>()?;
        let df: f64 = groups.iter().map(|g| count(g.n) - 1.0).sum();
        let scale = groups
            .iter()
            .filter_map(|g| g.population_sd)
            .fold(0.0, f64::max);
        let squares: Option<f64> = groups
            .iter()
            .map(|g| Some(count(g.n) * (g.population_sd? / scale).powi(2)))
            .sum();
        let sd = scale * (squares? / df).sqrt();
        (groups.len() > 1 && df > 0.0 && sd > 0.0 && sd.is_finite()).then_some(Self {
            groups,
            df,
            sd,
        })
    }
}

/// The largest absolute value among t statistics with a common error and correlations
/// `l_i l_j`.
struct LargestT {
    /// Pairs of correlation loading and its complement `sqrt(1 - l^2)`.
    loadings: Vec<(f64, f64)>,
    /// Values of the error's `s / sigma` with their probability.
    scales: Vec<(f64, f64)>,
    /// Values of the common normal factor with their probability.
    factor: Vec<(f64, f64)>,
}

impl LargestT {
    fn new(loadings: &[f64], df: f64) -> Option<Self> {
        if loadings.is_empty() || df.is_nan() || df < 1.0 {
            return None;
        }
        let rule = GaussLegendre::new(16);
        let panels = |low: f64, high: f64, n: u32| {
            let width = (high - low) / f64::from(n);
            let panel = |i: u32| {
                let start = low + width * f64::from(i);
                rule.nodes(start, start + width)
            };
            (0..n).flat_map(panel).collect::<Vec<_>>()
        };
        let mut factor = panels(-8.5, 8.5, 5);
        for (z, weight) in &mut factor {
            *weight *= normal_pdf(*z);
        }
        // chi/sqrt(df) is within 9 of its deviations of 1; below 0 there is none.
        let reach = 9.0 / (2.0 * df).sqrt();
        let mut scales = panels((1.0 - reach).max(0.0), 1.0 + reach, 5);
        for (s, weight) in &mut scales {
            *weight *= 2.0 / *s * gamma_weight(0.5 * df, 0.5 * df * *s * *s);
        }
        Some(Self {
            loadings: loadings
                .iter()
                .map(|l| (*l, (1.0 - l * l).sqrt()))
                .collect(),
            scales,
            factor,
        })
    }

    /// Probability that one of them lies beyond `t` (Dunnett 1955, equation 1, two-sided; the
    /// product form of Dunnett and Sobel 1955).
    fn beyond(&self, t: f64) -> f64 {
        let outside = |s: f64, z: f64| {
            let inside: f64 = self
                .loadings
                .iter()
                .map(|(l, rest)| {
                    let (high, low) = ((t * s + l * z) / rest, (-t * s + l * z) / rest);
                    normal_cdf(high) - normal_cdf(low)
                })
                .product();
            1.0 - inside
        };
        let at_scale = |s: f64| {
            self.factor
                .iter()
                .map(|(z, w)| w * outside(s, *z))
                .sum::<f64>()
        };
        let p: f64 = self.scales.iter().map(|(s, w)| w * at_scale(*s)).sum();
        p.clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::StudentT;
    use proptest::prelude::*;

    #[test]
    fn one_variant_is_a_t_test() {
        for (df, t) in [(1.0, 3.0), (4.0, 2.5), (30.0, 2.1)] {
            let got = LargestT::new(&[0.6], df).expect("largest").beyond(t);
            let expected = StudentT::new(df).expect("t").two_sided(t);
            assert!((got - expected).abs() < 1e-8, "{df}: {got} {expected}");
        }
    }

    #[test]
    fn the_table_of_dunnett() {
        // Dunnett (1964), two-sided 5 %, equal sizes: variants without the base, df, value.
        let table = [
            (2, 5, 3.03),
            (3, 10, 2.76),
            (2, 20, 2.38),
            (9, 60, 2.78_f64),
        ];
        for (variants, df, expected) in table {
            let loadings = vec![0.5_f64.sqrt(); variants];
            let largest = LargestT::new(&loadings, f64::from(df)).expect("largest");
            let p = largest.beyond(expected);
            assert!((p - 0.05).abs() < 0.0015, "{variants} {df}: {p}");
        }
        let critical = dunnett_critical(&[6, 6, 6], 0.05).expect("critical");
        assert!((critical - 2.44).abs() < 0.006, "{critical}");
    }

    #[test]
    fn two_groups_are_a_squared_t() {
        let groups = [vec![1.0, 2.0, 3.0], vec![2.0, 4.0, 6.0, 8.0]];
        let gate = welch_anova(&groups).expect("gate");
        let (va, vb) = (1.0 / 3.0, 20.0 / 3.0 / 4.0);
        assert!((gate.statistic - 9.0 / (va + vb)).abs() < 1e-12);
    }

    #[test]
    fn degenerate_groups() {
        let flat = vec![vec![1.0; 3], vec![1.0; 3]];
        assert_eq!(anova(&flat), None);
        assert_eq!(welch_anova(&flat), None);
        assert_eq!(kruskal_wallis(&flat), None);
        assert_eq!(dunnett(&flat), None);
        assert_eq!(anova(&[]), None);
        assert_eq!(anova(&[vec![1.0], vec![2.0]]), None);
        assert_eq!(welch_anova(&[vec![1.0], vec![2.0, 3.0]]), None);
        assert_eq!(dunnett(&[vec![1.0, 2.0], vec![]]), None);
        assert_eq!(dunnett_critical(&[3], 0.05), None);
        let large = [vec![1e300, 1.1e300], vec![2e300, 2.1e300]];
        assert!(anova(&large).is_some_and(|g| g.p < 0.01));
        assert!(welch_anova(&large).is_some_and(|g| g.p < 0.01));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn finite_or_nothing(groups in prop::collection::vec(prop::collection::vec(any::<f64>(), 0..4), 0..4)) {
            for gate in [anova(&groups), welch_anova(&groups), kruskal_wallis(&groups)].into_iter().flatten() {
                prop_assert!(gate.statistic.is_finite() && (0.0..=1.0).contains(&gate.p));
            }
            for row in dunnett(&groups).into_iter().flat_map(|d| d.comparisons) {
                prop_assert!(row.t.is_finite() && (0.0..=1.0).contains(&row.p));
            }
        }
    }
}
