//! Distributions: normal, Student t, noncentral t, F, chi squared, beta and binomial.
//!
//! Each has the mass below (`cdf`) and above (`sf`) a point, without cancellation in either tail,
//! and the point for a mass (`quantile`, from below; `upper_quantile`, from above). Constructors
//! refuse parameters outside their range; an argument that is NaN gives NaN, as functions of
//! `f64` do. Random numbers are not made here.

pub use crate::noncentral::NoncentralT;
use crate::numeric::find_root;
use crate::special::{Tails, beta_tails, beta_weight, erfc, gamma_tails};
use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

/// Degrees of freedom from which Student t is a normal distribution of a bent argument.
const WALLACE_FROM: f64 = 1e8;
/// Degrees of freedom from which a distribution and its limit agree to the last digit.
const NORMAL_FROM: f64 = 1e17;

/// Mass of the standard normal distribution at or below `z`.
#[must_use]
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * erfc(-z * FRAC_1_SQRT_2)
}

/// Mass of the standard normal distribution above `z`.
#[must_use]
pub fn normal_sf(z: f64) -> f64 {
    normal_cdf(-z)
}

/// Density of the standard normal distribution at `z`.
#[must_use]
pub fn normal_pdf(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

/// The `z` with mass `p` below it; infinite at 0 and 1, `None` outside.
#[must_use]
pub fn normal_quantile(p: f64) -> Option<f64> {
    if p <= 0.5 {
        normal_upper_quantile(p).map(|z| -z)
    } else {
        normal_upper_quantile(1.0 - p)
    }
}

/// The `z` with mass `q` above it; infinite at 0 and 1, `None` outside (start of Abramowitz and
/// Stegun 26.2.23, then Halley's method).
#[must_use]
pub fn normal_upper_quantile(q: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&q) {
        return None;
    }
    if q > 0.5 {
        return normal_upper_quantile(1.0 - q).map(|z| -z);
    }
    if q == 0.0 || q >= 0.5 {
        return Some(if q == 0.0 { f64::INFINITY } else { 0.0 });
    }
    let t = (-2.0 * q.ln()).sqrt();
    let top = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let bottom = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let mut z = t - top / bottom;
    for _ in 0..4 {
        let step = (normal_sf(z) - q) / normal_pdf(z);
        if !step.is_finite() {
            break;
        }
        z += step / (1.0 - 0.5 * z * step);
    }
    Some(z)
}

/// Student's t distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StudentT {
    df: f64,
}

impl StudentT {
    /// With `df > 0` degrees of freedom, which need not be whole and may be infinite (the normal
    /// distribution); `None` otherwise.
    #[must_use]
    pub fn new(df: f64) -> Option<Self> {
        (df > 0.0).then_some(Self { df })
    }

    /// Mass at or below `t`.
    #[must_use]
    pub fn cdf(&self, t: f64) -> f64 {
        self.sf(-t)
    }

    /// Mass above `t` (Abramowitz and Stegun 26.7.1; from 1e8 degrees of freedom the
    /// transformation of Wallace 1959, whose error is of the order `1 / df^2`).
    #[must_use]
    pub fn sf(&self, t: f64) -> f64 {
        if self.df >= NORMAL_FROM {
            return normal_sf(t);
        }
        if self.df >= WALLACE_FROM {
            let bent = (self.df * (t / self.df * t).ln_1p()).sqrt();
            let shrink = 1.0 - 2.0 / (8.0 * self.df + 3.0);
            return normal_sf((shrink * bent).copysign(t));
        }
        if t < 0.0 {
            return 1.0 - self.sf(-t);
        }
        if t == f64::INFINITY {
            return 0.0;
        }
        let ratio = t / self.df.sqrt();
        let square = ratio * ratio;
        // 1 / (1 + t^2/df) and its complement.
        let (x, y) = if square > 1.0 {
            let inverse = 1.0 / square;
            (inverse / (1.0 + inverse), 1.0 / (1.0 + inverse))
        } else {
            (1.0 / (1.0 + square), square / (1.0 + square))
        };
        0.5 * beta_tails(0.5 * self.df, 0.5, x, y).lower
    }

    /// Mass beyond `-|t|` and `|t|` together: the two-sided p-value.
    #[must_use]
    pub fn two_sided(&self, t: f64) -> f64 {
        2.0 * self.sf(t.abs())
    }

    /// Density at `t`.
    #[must_use]
    pub fn pdf(&self, t: f64) -> f64 {
        if self.df >= NORMAL_FROM {
            return normal_pdf(t);
        }
        let square = t * t / self.df;
        let x = 1.0 / (1.0 + square);
        if t == 0.0 {
            let ratio = crate::special::ln_gamma(0.5 * (self.df + 1.0))
                - crate::special::ln_gamma(0.5 * self.df);
            return ratio.exp() / (self.df * PI).sqrt();
        }
        beta_weight(0.5 * self.df, 0.5, x, square * x) / t.abs()
    }

    /// The point with mass `p` below it; infinite at 0 and 1, `None` outside.
    #[must_use]
    pub fn quantile(&self, p: f64) -> Option<f64> {
        if p <= 0.5 {
            self.upper_quantile(p).map(|t| -t)
        } else {
            self.upper_quantile(1.0 - p)
        }
    }

    /// The point with mass `q` above it; infinite at 0 and 1, `None` outside. Newton's method on
    /// the logarithm of the tail, inside a bracket.
    #[must_use]
    pub fn upper_quantile(&self, q: f64) -> Option<f64> {
        if !(0.0..=1.0).contains(&q) {
            return None;
        }
        if self.df >= NORMAL_FROM {
            return normal_upper_quantile(q);
        }
        if q > 0.5 {
            return self.upper_quantile(1.0 - q).map(|t| -t);
        }
        if q == 0.0 || q >= 0.5 {
            return Some(if q == 0.0 { f64::INFINITY } else { 0.0 });
        }
        let z = normal_upper_quantile(q)?;
        // Cornish-Fisher start (Abramowitz and Stegun 26.7.5).
        let mut t = z * (1.0 + (z * z + 1.0) / (4.0 * self.df));
        let (mut low, mut high) = (0.0, f64::INFINITY);
        for _ in 0..400 {
            let tail = self.sf(t);
            if tail > q {
                low = t;
            } else {
                high = t;
            }
            let step = tail / self.pdf(t) * (tail / q).ln();
            let mut next = t + step;
            if !(next > low && next < high) {
                next = if high.is_finite() {
                    0.5 * (low + high)
                } else {
                    2.0 * t
                };
            }
            if next.is_infinite() || (next - t).abs() <= 4.0 * f64::EPSILON * t {
                return Some(next);
            }
            t = next;
        }
        Some(t)
    }
}

/// Fisher's F distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FisherF {
    top: f64,
    bottom: f64,
}

impl FisherF {
    /// With `top > 0` degrees of freedom in the numerator and `bottom > 0` in the denominator
    /// (`bottom` may be infinite); `None` otherwise.
    #[must_use]
    pub fn new(top: f64, bottom: f64) -> Option<Self> {
        (top > 0.0 && bottom > 0.0 && top.is_finite()).then_some(Self { top, bottom })
    }

    /// Mass at or below `f`; 0 below 0.
    #[must_use]
    pub fn cdf(&self, f: f64) -> f64 {
        self.tails(f).lower
    }

    /// Mass above `f`; 1 below 0.
    #[must_use]
    pub fn sf(&self, f: f64) -> f64 {
        self.tails(f).upper
    }

    /// The point with mass `p` below it; `None` unless `0 <= p < 1`.
    #[must_use]
    pub fn quantile(&self, p: f64) -> Option<f64> {
        positive_quantile(p, 1.0 - p, |f| self.tails(f))
    }

    /// The point with mass `q` above it; `None` unless `0 < q <= 1`.
    #[must_use]
    pub fn upper_quantile(&self, q: f64) -> Option<f64> {
        positive_quantile(1.0 - q, q, |f| self.tails(f))
    }

    /// Both tails (Abramowitz and Stegun 26.6.2).
    fn tails(&self, f: f64) -> Tails {
        let f = if f < 0.0 { 0.0 } else { f };
        if self.bottom >= NORMAL_FROM {
            return gamma_tails(0.5 * self.top, 0.5 * self.top * f);
        }
        let ratio = self.top / self.bottom * f;
        let (x, y) = if ratio > 1.0 {
            let inverse = 1.0 / ratio;
            (1.0 / (1.0 + inverse), inverse / (1.0 + inverse))
        } else {
            (ratio / (1.0 + ratio), 1.0 / (1.0 + ratio))
        };
        beta_tails(0.5 * self.top, 0.5 * self.bottom, x, y)
    }
}

/// The chi squared distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChiSquared {
    df: f64,
}

impl ChiSquared {
    /// With finite `df > 0` degrees of freedom; `None` otherwise.
    #[must_use]
    pub fn new(df: f64) -> Option<Self> {
        (df > 0.0 && df.is_finite()).then_some(Self { df })
    }

    /// Mass at or below `x`; 0 below 0.
    #[must_use]
    pub fn cdf(&self, x: f64) -> f64 {
        self.tails(x).lower
    }

    /// Mass above `x`; 1 below 0.
    #[must_use]
    pub fn sf(&self, x: f64) -> f64 {
        self.tails(x).upper
    }

    /// The point with mass `p` below it; `None` unless `0 <= p < 1`.
    #[must_use]
    pub fn quantile(&self, p: f64) -> Option<f64> {
        positive_quantile(p, 1.0 - p, |x| self.tails(x))
    }

    /// The point with mass `q` above it; `None` unless `0 < q <= 1`.
    #[must_use]
    pub fn upper_quantile(&self, q: f64) -> Option<f64> {
        positive_quantile(1.0 - q, q, |x| self.tails(x))
    }

    /// Both tails (Abramowitz and Stegun 26.4.19).
    fn tails(&self, x: f64) -> Tails {
        let x = if x < 0.0 { 0.0 } else { x };
        gamma_tails(0.5 * self.df, 0.5 * x)
    }
}

/// The beta distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beta {
    a: f64,
    b: f64,
}

impl Beta {
    /// With finite shapes `a, b > 0`; `None` otherwise.
    #[must_use]
    pub fn new(a: f64, b: f64) -> Option<Self> {
        (a > 0.0 && b > 0.0 && a.is_finite() && b.is_finite()).then_some(Self { a, b })
    }

    /// Mass at or below `x`.
    #[must_use]
    pub fn cdf(&self, x: f64) -> f64 {
        beta_tails(self.a, self.b, x, 1.0 - x).lower
    }

    /// Mass above `x`.
    #[must_use]
    pub fn sf(&self, x: f64) -> f64 {
        beta_tails(self.a, self.b, x, 1.0 - x).upper
    }

    /// The point with mass `p` below it; `None` unless `0 <= p <= 1`.
    #[must_use]
    pub fn quantile(&self, p: f64) -> Option<f64> {
        self.solve(p, 1.0 - p)
    }

    /// The point with mass `q` above it; `None` unless `0 <= q <= 1`.
    #[must_use]
    pub fn upper_quantile(&self, q: f64) -> Option<f64> {
        self.solve(1.0 - q, q)
    }

    fn solve(&self, p: f64, q: f64) -> Option<f64> {
        // x = odds / (1 + odds), with odds that have the quantile of an F distribution's form.
        if p >= 1.0 && (0.0..=1.0).contains(&q) {
            return Some(1.0);
        }
        let odds = positive_quantile(p, q, |odds| {
            beta_tails(self.a, self.b, odds / (1.0 + odds), 1.0 / (1.0 + odds))
        })?;
        Some(odds / (1.0 + odds))
    }
}

/// The binomial distribution of the number of successes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Binomial {
    n: u64,
    p: f64,
}

impl Binomial {
    /// With `n` trials that each succeed with probability `p`; `None` unless `0 <= p <= 1` and
    /// `n < 2^53`.
    #[must_use]
    pub fn new(n: u64, p: f64) -> Option<Self> {
        ((0.0..=1.0).contains(&p) && n < (1 << 53)).then_some(Self { n, p })
    }

    /// Probability of exactly `k` successes (Loader 2000).
    #[must_use]
    pub fn pmf(&self, k: u64) -> f64 {
        if k > self.n {
            return 0.0;
        }
        let (n, x) = (whole(self.n), whole(k));
        let q = 1.0 - self.p;
        if k == 0 {
            return (n * (-self.p).ln_1p()).exp();
        }
        if k == self.n {
            return self.p.powf(n);
        }
        // C(n, k) = n / (k (n-k) B(k, n-k)).
        beta_weight(x, n - x, self.p, q) * n / (x * (n - x))
    }

    /// Probability of at most `k` successes (Abramowitz and Stegun 26.5.24).
    #[must_use]
    pub fn cdf(&self, k: u64) -> f64 {
        self.tails(k).lower
    }

    /// Probability of more than `k` successes.
    #[must_use]
    pub fn sf(&self, k: u64) -> f64 {
        self.tails(k).upper
    }

    /// The smallest `k` with `cdf(k) >= p`; `None` unless `0 <= p <= 1`.
    #[must_use]
    pub fn quantile(&self, p: f64) -> Option<u64> {
        if !(0.0..=1.0).contains(&p) {
            return None;
        }
        let (mut low, mut high) = (0, self.n);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.cdf(middle) >= p {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(low)
    }

    fn tails(&self, k: u64) -> Tails {
        if k >= self.n {
            return Tails {
                lower: 1.0,
                upper: 0.0,
            };
        }
        let q = 1.0 - self.p;
        beta_tails(whole(self.n - k), whole(k) + 1.0, q, self.p)
    }
}

/// A count as a real number.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of runs and events stay below 2^53"
)]
pub(crate) fn whole(n: u64) -> f64 {
    n as f64
}

/// The `x >= 0` with mass `p` below and `q = 1 - p` above it, found on a logarithmic scale;
/// `None` when `p` or `q` is no share or the point is infinite.
fn positive_quantile(p: f64, q: f64, tails: impl Fn(f64) -> Tails) -> Option<f64> {
    let share = 0.0..=1.0;
    if !share.contains(&p) || !share.contains(&q) || q == 0.0 {
        return None;
    }
    if p == 0.0 {
        return Some(0.0);
    }
    let excess = |u: f64| {
        let at = tails(u.exp());
        if p < q {
            (at.lower / p).ln().max(-1e4)
        } else {
            (q / at.upper).ln().min(1e4)
        }
    };
    let mut reach = SQRT_2;
    while reach < 700.0 && (excess(-reach) > 0.0 || excess(reach) < 0.0) {
        reach *= 2.0;
    }
    let reach = reach.min(700.0);
    find_root(-reach, reach, excess).map(f64::exp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::close;
    use proptest::prelude::*;

    #[test]
    fn normal_points() {
        close(normal_cdf(1.959_963_984_540_054), 0.975, 1e-15);
        close(
            normal_quantile(0.975).expect("z"),
            1.959_963_984_540_054,
            1e-15,
        );
        close(normal_sf(6.0), 9.865_876_450_376_98e-10, 1e-13);
        close(
            normal_upper_quantile(1e-300).expect("z"),
            37.047_096_299_361_2,
            1e-12,
        );
        assert_eq!(normal_quantile(0.5), Some(0.0));
        assert_eq!(normal_quantile(0.0), Some(f64::NEG_INFINITY));
        assert_eq!(normal_quantile(1.5), None);
        assert_eq!(normal_quantile(f64::NAN), None);
    }

    #[test]
    fn student_points() {
        let t = |df| StudentT::new(df).expect("df");
        // Closed forms: df 1 is Cauchy, df 2 is algebraic.
        for x in [0.01, 0.5, 2.0, 50.0, 1e6, 1e12] {
            close(t(1.0).sf(x), (1.0 / x).atan() / PI, 1e-13);
            let root = (2.0 + x * x).sqrt();
            close(t(2.0).sf(x), 1.0 / (root * (root + x)), 1e-13);
        }
        close(
            t(10.0).quantile(0.975).expect("t"),
            2.228_138_851_986_275,
            1e-13,
        );
        close(
            t(3.0).quantile(0.9995).expect("t"),
            12.923_978_636_687_483,
            1e-12,
        );
        close(
            t(1e6).quantile(0.975).expect("t"),
            1.959_966_356_814_107,
            1e-11,
        );
        close(t(f64::INFINITY).sf(2.0), normal_sf(2.0), 1e-15);
        close(t(1e16).sf(2.0), normal_sf(2.0), 1e-12);
        close(t(1.0).quantile(1e-9).expect("t"), -1.0 / (PI * 1e-9), 1e-12);
        close(t(5.0).pdf(0.0), 0.379_606_689_822_494_4, 1e-13);
        assert_eq!(StudentT::new(0.0), None);
        assert_eq!(StudentT::new(f64::NAN), None);
        assert_eq!(t(3.0).sf(f64::INFINITY), 0.0);
        assert_eq!(t(3.0).quantile(0.5), Some(0.0));
        assert!(t(3.0).sf(f64::NAN).is_nan());
    }

    #[test]
    fn f_and_chi_squared_points() {
        let f = FisherF::new(1.0, 8.0).expect("f");
        let t = StudentT::new(8.0).expect("df");
        close(f.sf(4.0), t.two_sided(2.0), 1e-13);
        close(
            FisherF::new(2.0, 10.0).expect("f").sf(3.0),
            (1.0_f64 + 0.6).powf(-5.0),
            1e-13,
        );
        close(f.quantile(0.95).expect("f"), 5.317_655_071_578_714, 1e-12);
        assert!(f.sf(f64::NAN).is_nan() && f.cdf(f64::INFINITY) == 1.0);
        let chi = ChiSquared::new(2.0).expect("chi");
        close(chi.sf(9.0), (-4.5_f64).exp(), 1e-14);
        close(
            chi.quantile(0.95).expect("chi"),
            -2.0 * 0.05_f64.ln(),
            1e-13,
        );
        close(
            ChiSquared::new(10.0)
                .expect("chi")
                .quantile(0.95)
                .expect("q"),
            18.307_038_053_275_147,
            1e-13,
        );
        close(
            FisherF::new(3.0, f64::INFINITY).expect("f").sf(2.0),
            ChiSquared::new(3.0).expect("chi").sf(6.0),
            1e-13,
        );
        assert_eq!((chi.cdf(-1.0), chi.quantile(1.0)), (0.0, None));
    }

    #[test]
    fn binomial_points() {
        let b = Binomial::new(10, 0.5).expect("binomial");
        close(b.pmf(5), 252.0 / 1024.0, 1e-13);
        close(b.cdf(2), 56.0 / 1024.0, 1e-13);
        close(b.sf(8), 11.0 / 1024.0, 1e-13);
        assert_eq!((b.quantile(0.5), b.cdf(10), b.pmf(11)), (Some(5), 1.0, 0.0));
        close(b.pmf(0), 1.0 / 1024.0, 1e-13);
        let sure = Binomial::new(4, 1.0).expect("binomial");
        assert_eq!((sure.pmf(4), sure.pmf(3), sure.cdf(3)), (1.0, 0.0, 0.0));
    }

    #[test]
    fn beta_quantiles() {
        // Clopper-Pearson of 0 in 10: 1 - 0.025^(1/10).
        let upper = Beta::new(1.0, 10.0)
            .expect("beta")
            .quantile(0.975)
            .expect("q");
        close(upper, 1.0 - 0.025_f64.powf(0.1), 1e-13);
        assert_eq!(Beta::new(2.0, 3.0).expect("beta").quantile(1.0), Some(1.0));
    }

    proptest! {
        #[test]
        fn student_quantiles_invert(df in 0.5..1e7_f64, q in 1e-12..0.5_f64) {
            let t = StudentT::new(df).expect("df");
            let back = t.sf(t.upper_quantile(q).expect("quantile"));
            prop_assert!((back / q - 1.0).abs() < 1e-9, "{back} {q}");
        }

        #[test]
        fn f_quantiles_invert(a in 0.5..1e4_f64, b in 0.5..1e4_f64, p in 1e-9..1.0_f64) {
            let f = FisherF::new(a, b).expect("df");
            let x = f.quantile(p).expect("quantile");
            prop_assert!((f.cdf(x) - p).abs() < 1e-10);
        }

        #[test]
        fn binomial_sums(n in 1_u64..200, p in 0.0..=1.0_f64, k in 0_u64..200) {
            let b = Binomial::new(n, p).expect("binomial");
            let sum: f64 = (0..=k.min(n)).map(|i| b.pmf(i)).sum();
            prop_assert!((sum - b.cdf(k)).abs() < 1e-11);
        }
    }
}
