//! The noncentral t distribution, by quadrature.
//!
//! For power and sample sizes; reached as [`crate::dist::NoncentralT`]. No quantiles.

use crate::dist::{normal_cdf, normal_sf};
use crate::numeric::GaussLegendre;
use crate::special::gamma_weight;

/// The noncentral t distribution of `(Z + delta) / sqrt(chi^2 / df)`.
#[derive(Clone, Debug)]
pub struct NoncentralT {
    df: f64,
    delta: f64,
    rule: GaussLegendre,
}

impl NoncentralT {
    /// With `df >= 1` degrees of freedom (may be infinite) and a finite noncentrality `delta`;
    /// `None` otherwise.
    #[must_use]
    pub fn new(df: f64, delta: f64) -> Option<Self> {
        (df >= 1.0 && delta.is_finite()).then(|| Self {
            df,
            delta,
            rule: GaussLegendre::new(24),
        })
    }

    /// Mass at or below `t`: the normal mass below `t s - delta`, averaged over the distribution
    /// of `s = sqrt(chi^2 / df)` (Johnson, Kotz, Balakrishnan 1995, 31.3); error about 1e-12.
    #[must_use]
    pub fn cdf(&self, t: f64) -> f64 {
        self.average(t, |s| normal_cdf(t * s - self.delta))
    }

    /// Mass above `t`.
    #[must_use]
    pub fn sf(&self, t: f64) -> f64 {
        self.average(t, |s| normal_sf(t * s - self.delta))
    }

    fn average(&self, t: f64, mass: impl Fn(f64) -> f64) -> f64 {
        if t.is_nan() || t.is_infinite() || self.df > 1e12 {
            return mass(1.0).clamp(0.0, 1.0);
        }
        let shape = 0.5 * self.df;
        let spread = 1.0 / (2.0 * self.df).sqrt();
        let low = (1.0 - 12.0 * spread).max(0.0);
        let high = 1.0 + 14.0 * spread;
        let mut breaks: Vec<f64> = (0..=16)
            .map(|i| low + (high - low) * f64::from(i) / 16.0)
            .collect();
        // The normal mass turns from 0 to 1 around delta / t, possibly within a narrow range.
        if t != 0.0 {
            let turns = [-8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0].map(|z| (self.delta + z) / t);
            breaks.extend(turns.iter().filter(|s| **s > low && **s < high));
        }
        breaks.sort_by(f64::total_cmp);
        let density = |s: f64| 2.0 / s * gamma_weight(shape, shape * s * s);
        self.rule
            .integrate_pieces(&breaks, |s| mass(s) * density(s))
            .clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::StudentT;
    use crate::testing::close;

    #[test]
    fn noncentral_points() {
        let central = NoncentralT::new(7.0, 0.0).expect("nct");
        let t = StudentT::new(7.0).expect("df");
        for x in [-3.0, -0.5, 0.0, 1.0, 4.0] {
            close(central.cdf(x), t.cdf(x), 1e-12);
        }
        // At 0 only the normal part decides; the others by mpmath with 30 digits.
        close(
            NoncentralT::new(3.0, 1.2).expect("nct").cdf(0.0),
            normal_cdf(-1.2),
            1e-12,
        );
        let tail = NoncentralT::new(12.0, 2.5).expect("nct");
        close(tail.cdf(1.5) + tail.sf(1.5), 1.0, 1e-12);
        for (df, delta, x, expected) in [
            (3.0, 1.2, 2.0, 0.688_983_557_114_840_7),
            (12.0, 2.5, 1.5, 0.161_904_667_093_175_65),
            (200.0, 60.0, 60.0, 0.487_698_514_273_722_8),
        ] {
            close(
                NoncentralT::new(df, delta).expect("nct").cdf(x),
                expected,
                1e-12,
            );
        }
        assert!(NoncentralT::new(0.5, 0.0).is_none());
    }
}
