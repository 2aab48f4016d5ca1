//! Numerical tools that several tests share: roots, quadrature.
//!
//! Plain numerical analysis without a notion of statistics. Nothing here allocates per call
//! except the nodes of a rule, which callers may keep.

/// A root of `f` between `low` and `high`, where `f` changes its sign, to the last digits, by
/// inverse quadratic interpolation safeguarded by bisection (Chandrupatla 1997); `None` when the
/// signs are equal or a value is NaN.
#[must_use]
pub fn find_root(low: f64, high: f64, f: impl Fn(f64) -> f64) -> Option<f64> {
    let (mut a, mut b) = (low, high);
    let (mut fa, mut fb) = (f(a), f(b));
    if fa == 0.0 {
        return Some(a);
    }
    if fb == 0.0 {
        return Some(b);
    }
    if fa.is_nan() || fb.is_nan() || (fa > 0.0) == (fb > 0.0) {
        return None;
    }
    let mut share = 0.5;
    for _ in 0..400 {
        let x = a + share * (b - a);
        let fx = f(x);
        if fx.is_nan() {
            return None;
        }
        let (c, fc) = if (fx > 0.0) == (fa > 0.0) {
            (a, fa)
        } else {
            let old = (b, fb);
            (b, fb) = (a, fa);
            old
        };
        (a, fa) = (x, fx);
        let (best, f_best) = if fa.abs() < fb.abs() {
            (a, fa)
        } else {
            (b, fb)
        };
        let smallest = (2.0 * f64::EPSILON * best.abs() + f64::MIN_POSITIVE) / (b - a).abs();
        if f_best == 0.0 || smallest > 0.5 {
            return Some(best);
        }
        share = next_share((a, fa), (b, fb), (c, fc)).clamp(smallest, 1.0 - smallest);
    }
    Some(a)
}

/// Where to look next between `a` and `b`, as a share of their distance.
fn next_share((a, fa): (f64, f64), (b, fb): (f64, f64), (c, fc): (f64, f64)) -> f64 {
    let xi = (a - b) / (c - b);
    let phi = (fa - fb) / (fc - fb);
    if phi * phi < xi && (1.0 - phi) * (1.0 - phi) < 1.0 - xi {
        fa / (fb - fa) * (fc / (fb - fc)) + (c - a) / (b - a) * (fa / (fc - fa)) * (fb / (fc - fb))
    } else {
        0.5
    }
}

/// A Gauss-Legendre rule: nodes and weights on `-1..1`.
#[derive(Clone, Debug)]
pub struct GaussLegendre {
    points: Vec<(f64, f64)>,
}

impl GaussLegendre {
    /// The rule with `n` nodes (at least 1), exact for polynomials below degree `2 n`; the nodes
    /// are the roots of the Legendre polynomial by Newton's method (Abramowitz and Stegun
    /// 25.4.29).
    #[must_use]
    pub fn new(n: u32) -> Self {
        let n = n.max(1);
        let degree = f64::from(n);
        let points = (0..n)
            .map(|i| {
                let mut x = (std::f64::consts::PI * (f64::from(i) + 0.75) / (degree + 0.5)).cos();
                let mut slope = 1.0;
                for _ in 0..100 {
                    let (value, derivative) = legendre(n, x);
                    slope = derivative;
                    let step = value / derivative;
                    x -= step;
                    if step.abs() < 1e-16 {
                        break;
                    }
                }
                (x, 2.0 / ((1.0 - x * x) * slope * slope))
            })
            .collect();
        Self { points }
    }

    /// The integral of `f` from `low` to `high`.
    #[must_use]
    pub fn integrate(&self, low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
        let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
        let sum: f64 = self
            .points
            .iter()
            .map(|(x, w)| w * f(middle + half * x))
            .sum();
        half * sum
    }

    /// The integral of `f` over all stretches between consecutive `breaks` (ascending).
    #[must_use]
    pub fn integrate_pieces(&self, breaks: &[f64], f: impl Fn(f64) -> f64) -> f64 {
        breaks
            .windows(2)
            .map(|pair| match pair {
                [low, high] => self.integrate(*low, *high, &f),
                _ => 0.0,
            })
            .sum()
    }

    /// Nodes and weights for `low..high`.
    #[must_use]
    pub fn nodes(&self, low: f64, high: f64) -> Vec<(f64, f64)> {
        let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
        self.points
            .iter()
            .map(|(x, w)| (middle + half * x, half * w))
            .collect()
    }
}

/// Legendre polynomial of degree `n` and its derivative at `x`.
fn legendre(n: u32, x: f64) -> (f64, f64) {
    let (mut before, mut value) = (1.0, x);
    for k in 2..=n {
        let k = f64::from(k);
        (before, value) = (
            value,
            ((2.0 * k - 1.0) * x * value - (k - 1.0) * before) / k,
        );
    }
    let derivative = f64::from(n) * (x * value - before) / (x * x - 1.0);
    (value, derivative)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots() {
        let root = find_root(0.0, 2.0, |x| x * x - 2.0).expect("root");
        assert!((root - 2.0_f64.sqrt()).abs() < 1e-15);
        let steep = find_root(-1.0, 1e6, |x| (x - 1e-3).powi(9)).expect("root");
        assert!((steep - 1e-3).abs() < 1e-9);
        assert_eq!(find_root(1.0, 2.0, |x| x), None);
        assert_eq!(find_root(0.0, 2.0, |_| f64::NAN), None);
    }

    #[test]
    fn quadrature() {
        let rule = GaussLegendre::new(20);
        assert!((rule.integrate(0.0, 2.0, |x| x.powi(7)) - 32.0).abs() < 1e-12);
        let bell = rule.integrate_pieces(&[-9.0, -3.0, 0.0, 3.0, 9.0], |x| (-x * x / 2.0).exp());
        assert!((bell - (2.0 * std::f64::consts::PI).sqrt()).abs() < 1e-10);
        let weight: f64 = rule.nodes(3.0, 5.0).iter().map(|(_, w)| w).sum();
        assert!((weight - 2.0).abs() < 1e-13);
        assert!((GaussLegendre::new(1).integrate(0.0, 1.0, |x| x) - 0.5).abs() < 1e-15);
    }
}
