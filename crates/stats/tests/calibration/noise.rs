//! Noise of made-up sessions, standard deviation 1 along the order of the runs.
#![allow(
    dead_code,
    reason = "the example and the test use different parts of it"
)]

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Where noise comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    Normal,
    /// Student's t with three degrees of freedom: a few runs are far off.
    T3,
    /// Lognormal with shape 0.5: long runs to one side.
    Lognormal,
    /// Three runs in ten are in a second mode.
    Bimodal,
    /// Neighbours correlate by 0.7.
    Ar1,
    /// Normal, with two standard deviations of drift over the session.
    Drift,
    /// Normal, and two standard deviations more in every second run.
    Period,
}

pub const ALL: [Noise; 6] = [
    Noise::Normal,
    Noise::T3,
    Noise::Lognormal,
    Noise::Bimodal,
    Noise::Ar1,
    Noise::Drift,
];

impl Noise {
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::T3 => "t3",
            Self::Lognormal => "lognormal",
            Self::Bimodal => "bimodal",
            Self::Ar1 => "AR(1) 0.7",
            Self::Drift => "drift 2 sd",
            Self::Period => "every second run",
        }
    }

    /// The noise of `length` runs in order.
    pub fn session(self, rng: &mut Dice, length: usize) -> Vec<f64> {
        let mut before = rng.normal();
        let span = length.max(2) as f64 - 1.0;
        (0..length)
            .map(|place| match self {
                Self::Normal => rng.normal(),
                Self::T3 => {
                    let chi: f64 = (0..3).map(|_| rng.normal().powi(2)).sum();
                    rng.normal() / (chi / 3.0).sqrt() / 3_f64.sqrt()
                }
                Self::Lognormal => {
                    let shape: f64 = 0.5;
                    let mean = (shape * shape / 2.0).exp();
                    let sd = mean * ((shape * shape).exp() - 1.0).sqrt();
                    ((shape * rng.normal()).exp() - mean) / sd
                }
                Self::Bimodal => {
                    // Modes 3 apart; variance 9 * 0.3 * 0.7 + 1.
                    let mode = if rng.uniform() < 0.3 { 3.0 } else { 0.0 };
                    (mode - 0.9 + rng.normal()) / 2.89_f64.sqrt()
                }
                Self::Ar1 => {
                    before = 0.7 * before + 0.51_f64.sqrt() * rng.normal();
                    before
                }
                Self::Drift => rng.normal() + 2.0 * (place as f64 / span - 0.5),
                Self::Period => rng.normal() + 2.0 * (place % 2) as f64,
            })
            .collect()
    }
}

/// A seeded source.
pub struct Dice(Pcg64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(Pcg64::seed_from_u64(seed))
    }

    /// Above 0, at most 1.
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64
    }

    /// Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    pub fn coin(&mut self) -> bool {
        self.0.next_u64() & 1 == 1
    }
}
