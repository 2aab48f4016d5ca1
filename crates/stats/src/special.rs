//! Special functions that the distributions are made of: gamma, erf, incomplete gamma and beta.
//!
//! Our own code, since the crates at hand lose digits in the tails. Both tails of an incomplete
//! function are computed together and without cancellation. Like the functions of `f64`, these
//! give NaN for NaN and outside their domain; callers that hand figures to people check first.
//! No distribution has its home here, see [`crate::dist`].

use std::f64::consts::{LN_2, PI};

/// `ln sqrt(2 pi)`.
const LN_SQRT_2PI: f64 = 0.918_938_533_204_672_8;
/// From here on the Stirling series is exact to the last digit with the terms below.
const STIRLING_FROM: f64 = 15.0;
/// Where a continued fraction replaces 0, so that it can go on (Thompson and Barnett 1986).
const TINY: f64 = 1e-300;

/// The mass below and above a point; each is exact to its own last digits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tails {
    /// Mass at or below the point.
    pub lower: f64,
    /// Mass above the point.
    pub upper: f64,
}

impl Tails {
    /// The tails seen from the other end.
    #[must_use]
    pub fn swapped(self) -> Self {
        Self {
            lower: self.upper,
            upper: self.lower,
        }
    }

    fn from_lower(lower: f64) -> Self {
        let lower = lower.clamp(0.0, 1.0);
        Self {
            lower,
            upper: 1.0 - lower,
        }
    }
}

/// What Stirling's formula leaves out of `ln gamma(x)` for `x > 0`: `ln gamma(x) - ((x - 1/2) ln x
/// - x + ln sqrt(2 pi))`, by its asymptotic series (Abramowitz and Stegun 6.1.41).
#[must_use]
pub fn stirling_error(x: f64) -> f64 {
    if x >= STIRLING_FROM {
        let inverse = 1.0 / (x * x);
        let terms = [
            1.0 / 12.0,
            -1.0 / 360.0,
            1.0 / 1260.0,
            -1.0 / 1680.0,
            1.0 / 1188.0,
            -691.0 / 360_360.0,
            1.0 / 156.0,
        ];
        return terms.iter().rev().fold(0.0, |sum, t| sum * inverse + t) / x;
    }
    ln_gamma(x) - ((x - 0.5) * x.ln() - x + LN_SQRT_2PI)
}

/// Natural logarithm of the gamma function for `x > 0`; infinite at 0, NaN below. Absolute error
/// about 1e-15 near its zeros at 1 and 2 (Stirling series after the recurrence, Abramowitz and
/// Stegun 6.1.15, 6.1.41).
#[must_use]
pub fn ln_gamma(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 || x.is_infinite() {
        return f64::INFINITY;
    }
    let (mut above, mut product) = (x, 1.0);
    while above < STIRLING_FROM {
        product *= above;
        above += 1.0;
    }
    (above - 0.5) * above.ln() - above + LN_SQRT_2PI + stirling_error(above) - product.ln()
}

/// `ln (n over k)` for real `0 <= k <= n`.
#[must_use]
pub fn ln_choose(n: f64, k: f64) -> f64 {
    ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0)
}

/// Digamma, the derivative of `ln gamma`, for `x > 0` (Abramowitz and Stegun 6.3.5, 6.3.18).
#[must_use]
pub fn digamma(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    let (mut above, mut sum) = (x, 0.0);
    while above < STIRLING_FROM {
        sum -= 1.0 / above;
        above += 1.0;
    }
    let inverse = 1.0 / (above * above);
    let terms = [
        1.0 / 12.0,
        -1.0 / 120.0,
        1.0 / 252.0,
        -1.0 / 240.0,
        1.0 / 132.0,
        -691.0 / 32_760.0,
        1.0 / 12.0,
    ];
    let series = terms.iter().rev().fold(0.0, |s, t| (s + t) * inverse);
    sum + above.ln() - 0.5 / above - series
}

/// Trigamma, the second derivative of `ln gamma`, for `x > 0` (Abramowitz and Stegun 6.4.6,
/// 6.4.12).
#[must_use]
pub fn trigamma(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    let (mut above, mut sum) = (x, 0.0);
    while above < STIRLING_FROM {
        sum += 1.0 / (above * above);
        above += 1.0;
    }
    let inverse = 1.0 / (above * above);
    let terms = [
        1.0 / 6.0,
        -1.0 / 30.0,
        1.0 / 42.0,
        -1.0 / 30.0,
        5.0 / 66.0,
        -691.0 / 2730.0,
        7.0 / 6.0,
    ];
    let series = terms.iter().rev().fold(0.0, |s, t| (s + t) * inverse);
    sum + 1.0 / above + 0.5 * inverse + series / above
}

/// The `x > 0` whose trigamma is `y > 0`, by Newton's method on `1 / trigamma`, which is nearly
/// linear (Smyth 2004, appendix).
#[must_use]
pub fn trigamma_inverse(y: f64) -> f64 {
    if y.is_nan() || y <= 0.0 {
        return f64::NAN;
    }
    if y > 1e7 {
        return 1.0 / y.sqrt();
    }
    if y < 1e-6 {
        return 1.0 / y;
    }
    let mut x = 0.5 + 1.0 / y;
    for _ in 0..60 {
        let value = trigamma(x);
        let step = value * (1.0 - value / y) / tetragamma(x);
        x += step;
        if (step / x).abs() < 1e-15 {
            break;
        }
    }
    x
}

/// The derivative of [`trigamma`]; enough digits for Newton steps.
fn tetragamma(x: f64) -> f64 {
    let (mut above, mut sum) = (x, 0.0);
    while above < STIRLING_FROM {
        sum -= 2.0 / above.powi(3);
        above += 1.0;
    }
    let inverse = 1.0 / (above * above);
    let tail = 0.5 * inverse - inverse * inverse / 6.0 + inverse.powi(3) / 6.0;
    sum - inverse - inverse / above - tail * inverse
}

/// Pentagamma, the fourth derivative of `ln gamma`, for `x > 0` (Abramowitz and Stegun 6.4.6,
/// 6.4.11).
#[must_use]
pub fn pentagamma(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    let (mut above, mut sum) = (x, 0.0);
    while above < STIRLING_FROM {
        sum += 6.0 / above.powi(4);
        above += 1.0;
    }
    let inverse = 1.0 / (above * above);
    let terms = [2.0, -1.0, 4.0 / 3.0, -3.0, 10.0];
    let series = terms.iter().rev().fold(0.0, |s, t| (s + t) * inverse);
    sum + (2.0 / above + 3.0 * inverse + series / above) * inverse
}

/// Error function (series of Abramowitz and Stegun 7.1.6 near 0, else by [`erfc`]).
#[must_use]
pub fn erf(x: f64) -> f64 {
    if x.abs() >= 0.5 {
        let far = 1.0 - erfc(x.abs());
        return far.copysign(x);
    }
    // 2/sqrt(pi) e^-x^2 sum 2^n x^(2n+1) / (1 3 5 ... (2n+1)): only positive terms.
    let square = x * x;
    let (mut term, mut sum, mut n) = (1.0, 1.0, 1.0);
    while term > sum * 1e-17 {
        term *= 2.0 * square / (2.0 * n + 1.0);
        sum += term;
        n += 1.0;
    }
    2.0 / PI.sqrt() * x * (-square).exp() * sum
}

/// Complementary error function, exact also far in the tail: the trapezoid rule with step 1/2 on
/// the integral of Abramowitz and Stegun 7.4.11, corrected for the pole (Hunter and Regan 1972).
#[must_use]
pub fn erfc(x: f64) -> f64 {
    /// `exp(-(n/2)^2)` for n = 1..=13.
    const WEIGHTS: [f64; 13] = [
        0.778_800_783_071_404_9,
        0.367_879_441_171_442_3,
        0.105_399_224_561_864_3,
        1.831_563_888_873_418e-2,
        1.930_454_136_227_709_2e-3,
        1.234_098_040_866_795_5e-4,
        4.785_117_392_129_009e-6,
        1.125_351_747_192_591_1e-7,
        1.605_228_055_185_611_6e-9,
        1.388_794_386_496_402_1e-11,
        7.287_724_095_819_692e-14,
        2.319_522_830_243_569_4e-16,
        4.477_732_441_718_302e-19,
    ];
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    if x < 0.5 {
        return 1.0 - erf(x);
    }
    if x > 28.0 {
        return 0.0;
    }
    let square = x * x;
    let rounding = x.mul_add(x, -square);
    let mut node = 0.0;
    let sum: f64 = WEIGHTS.iter().fold(0.0, |sum, weight| {
        node += 0.5;
        sum + weight / (node * node + square)
    });
    let bell = (-square).exp() * (1.0 - rounding);
    let pole = if x < 6.0 {
        2.0 / (1.0 - (4.0 * PI * x).exp())
    } else {
        0.0
    };
    0.5 * x / PI * bell * (1.0 / square + 2.0 * sum) + pole
}

/// `a ln(a / m) + m - a` for `a, m > 0` without cancellation where they are close (the deviance
/// of Loader 2000).
fn deviance(a: f64, m: f64) -> f64 {
    let difference = a - m;
    if difference.abs() > 0.1 * (a + m) {
        return a * (a / m).ln() - difference;
    }
    let v = difference / (a + m);
    let square = v * v;
    let mut sum = difference * v;
    let (mut power, mut odd) = (2.0 * a * v, 1.0);
    for _ in 0..100 {
        power *= square;
        odd += 2.0;
        let next = sum + power / odd;
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// `x^a e^-x / gamma(a)`, the density of the gamma distribution times `x`, for `a > 0`, `x >= 0`
/// (saddle-point form of Loader 2000).
#[must_use]
pub fn gamma_weight(a: f64, x: f64) -> f64 {
    if x <= 0.0 || x.is_infinite() {
        return if x.is_nan() { f64::NAN } else { 0.0 };
    }
    let exponent = -stirling_error(a) - deviance(a, x);
    (a / (2.0 * PI)).sqrt() * exponent.exp()
}

/// `x^a y^b / beta(a, b)` with `y = 1 - x` given for itself, for `a, b > 0` (saddle-point form of
/// Loader 2000).
#[must_use]
pub fn beta_weight(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    if x <= 0.0 || y <= 0.0 {
        return 0.0;
    }
    let n = a + b;
    let correction = stirling_error(n) - stirling_error(a) - stirling_error(b);
    let exponent = correction - deviance(a, n * x) - deviance(b, n * y);
    (a / (2.0 * PI) * (b / n)).sqrt() * exponent.exp()
}

/// The regularised incomplete gamma functions `P(a, x)` (lower) and `Q(a, x)` (upper), for
/// `a > 0`, `x >= 0` (series and continued fraction, Abramowitz and Stegun 6.5.29, 6.5.31).
#[must_use]
pub fn gamma_tails(a: f64, x: f64) -> Tails {
    if a.is_nan() || a <= 0.0 || x.is_nan() || x < 0.0 || a.is_infinite() {
        return Tails {
            lower: f64::NAN,
            upper: f64::NAN,
        };
    }
    if x == 0.0 || x.is_infinite() {
        return Tails::from_lower(if x == 0.0 { 0.0 } else { 1.0 });
    }
    let weight = gamma_weight(a, x);
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        for _ in 0..iterations(a) {
            n += 1.0;
            term *= x / n;
            sum += term;
            if term < sum * 1e-17 {
                break;
            }
        }
        return Tails::from_lower(weight * sum);
    }
    let fraction = lentz(x + 1.0 - a, iterations(a), |i| {
        (-i * (i - a), x + 2.0 * i + 1.0 - a)
    });
    Tails::from_lower(weight / fraction).swapped()
}

/// The regularised incomplete beta function `I_x(a, b)` (lower) and its complement (upper), for
/// `a, b > 0`, with `y = 1 - x` given for itself so that neither end loses digits (continued
/// fraction of Abramowitz and Stegun 26.5.8).
#[must_use]
pub fn beta_tails(a: f64, b: f64, x: f64, y: f64) -> Tails {
    let outside = |v: f64| v.is_nan() || v <= 0.0 || v.is_infinite();
    if outside(a) || outside(b) || x.is_nan() || y.is_nan() {
        return Tails {
            lower: f64::NAN,
            upper: f64::NAN,
        };
    }
    if x <= 0.0 {
        return Tails::from_lower(0.0);
    }
    if y <= 0.0 {
        return Tails::from_lower(1.0);
    }
    if x * (a + b + 2.0) <= a + 1.0 {
        Tails::from_lower(beta_fraction(a, b, x, y))
    } else {
        Tails::from_lower(beta_fraction(b, a, y, x)).swapped()
    }
}

fn beta_fraction(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let fraction = lentz(1.0, iterations(a.max(b)), |i| {
        let m = (i / 2.0).floor();
        let numerator = if m * 2.0 == i {
            m * (b - m) / ((a + i - 1.0) * (a + i))
        } else {
            -(a + m) * (a + b + m) / ((a + i - 1.0) * (a + i))
        };
        (numerator * x, 1.0)
    });
    beta_weight(a, b, x, y) / (a * fraction)
}

/// Terms that a continued fraction or a series may take: they grow with the root of the shape.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 500 and 2,000,000"
)]
fn iterations(shape: f64) -> u32 {
    (500.0 + 20.0 * shape.sqrt()).min(2e6) as u32
}

/// `first + a1 / (b1 + a2 / (b2 + ...))` with `term(i)` giving `(a_i, b_i)`, by the modified Lentz
/// method (Thompson and Barnett 1986).
fn lentz(first: f64, limit: u32, term: impl Fn(f64) -> (f64, f64)) -> f64 {
    let keep = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut value = keep(first);
    let (mut c, mut d) = (value, 0.0);
    for i in 1..=limit {
        let (a, b) = term(f64::from(i));
        d = 1.0 / keep(b + a * d);
        c = keep(b + a / c);
        let factor = c * d;
        value *= factor;
        if (factor - 1.0).abs() < 1e-16 {
            break;
        }
    }
    value
}

/// Binary entropy of `p` in bits; 0 at 0 and 1.
#[must_use]
pub fn binary_entropy(p: f64) -> f64 {
    let part = |p: f64| if p > 0.0 { -p * p.ln() / LN_2 } else { 0.0 };
    part(p) + part(1.0 - p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::close;
    use proptest::prelude::*;

    #[test]
    fn gamma_of_known_points() {
        close(ln_gamma(0.5), 0.5 * PI.ln(), 1e-14);
        close(ln_gamma(10.0), 362_880.0_f64.ln(), 1e-15);
        close(ln_gamma(101.0), 363.739_375_555_563_5, 1e-14);
        close(ln_gamma(1e-10), 23.025_850_929_882_733, 1e-14);
        assert!(ln_gamma(1.0).abs() < 1e-14 && ln_gamma(2.0).abs() < 1e-14);
        assert!(ln_gamma(-1.0).is_nan());
        close(ln_choose(10.0, 5.0), 252.0_f64.ln(), 1e-14);
    }

    #[test]
    fn digamma_and_trigamma_of_known_points() {
        close(digamma(1.0), -0.577_215_664_901_532_9, 1e-14);
        close(digamma(0.5), -1.963_510_026_021_423_5, 1e-14);
        close(trigamma(1.0), PI * PI / 6.0, 1e-14);
        close(trigamma(0.5), PI * PI / 2.0, 1e-14);
        close(pentagamma(1.0), PI.powi(4) / 15.0, 1e-13);
        close(pentagamma(0.5), PI.powi(4), 1e-13);
        // Each step takes away 6 / x^4, from the series too.
        close(
            pentagamma(15.5),
            pentagamma(14.5) - 6.0 / 14.5_f64.powi(4),
            1e-12,
        );
        close(
            pentagamma(40.0),
            pentagamma(2.0) - (2..40).map(|x| 6.0 / f64::from(x).powi(4)).sum::<f64>(),
            1e-11,
        );
        for x in [1e-3, 0.3, 1.0, 4.0, 17.0, 3000.0] {
            close(trigamma_inverse(trigamma(x)), x, 1e-12);
        }
    }

    #[test]
    fn error_function_of_known_points() {
        close(erf(0.1), 0.112_462_916_018_284_9, 1e-15);
        close(erf(0.5), 0.520_499_877_813_046_5, 1e-15);
        close(erf(-1.0), -0.842_700_792_949_714_9, 1e-15);
        close(erfc(2.0), 4.677_734_981_047_266e-3, 1e-14);
        close(erfc(5.0), 1.537_459_794_428_035e-12, 1e-14);
        close(erfc(10.0), 2.088_487_583_762_545e-45, 1e-13);
        close(erfc(26.0), 5.663_192_408_856_142e-296, 1e-13);
        assert_eq!(
            (erfc(f64::INFINITY), erfc(f64::NEG_INFINITY), erf(0.0)),
            (0.0, 2.0, 0.0)
        );
        assert!(erfc(f64::NAN).is_nan());
    }

    #[test]
    fn incomplete_gamma_of_known_points() {
        for x in [0.01, 0.5, 1.0, 3.0, 30.0] {
            close(gamma_tails(1.0, x).upper, (-x).exp(), 1e-13);
            close(gamma_tails(0.5, x * x).upper, erfc(x), 1e-12);
        }
        // By mpmath with 30 digits.
        close(gamma_tails(1e6, 1e6).lower, 0.500_132_980_760_872_6, 1e-12);
    }

    #[test]
    fn incomplete_beta_of_known_points() {
        // I_x(a, 1) = x^a, I_x(1, b) = 1 - (1-x)^b, the arcsine law for a = b = 1/2.
        for x in [1e-6, 0.1, 0.5, 0.9, 0.999] {
            close(beta_tails(7.0, 1.0, x, 1.0 - x).lower, x.powi(7), 1e-13);
            close(
                beta_tails(1.0, 7.0, x, 1.0 - x).upper,
                (1.0 - x).powi(7),
                1e-13,
            );
            close(
                beta_tails(0.5, 0.5, x, 1.0 - x).lower,
                2.0 / PI * x.sqrt().asin(),
                1e-12,
            );
        }
        close(beta_tails(1e6, 1e6, 0.5, 0.5).lower, 0.5, 1e-12);
    }

    proptest! {
        #[test]
        fn tails_are_shares(a in 1e-3..1e5_f64, b in 1e-3..1e5_f64, x in 0.0..=1.0_f64) {
            for tails in [beta_tails(a, b, x, 1.0 - x), gamma_tails(a, b)] {
                prop_assert!((0.0..=1.0).contains(&tails.lower));
                prop_assert!((tails.lower + tails.upper - 1.0).abs() < 1e-15);
            }
        }

        #[test]
        fn beta_is_symmetric(a in 0.1..1e3_f64, b in 0.1..1e3_f64, x in 0.001..0.999_f64) {
            let (one, other) = (beta_tails(a, b, x, 1.0 - x), beta_tails(b, a, 1.0 - x, x));
            prop_assert!((one.lower - other.upper).abs() <= 1e-12 * one.lower.max(1e-280));
        }
    }
}
