//! Doubts that travel with a result.
//!
//! A warning is data: whoever shows the result decides on its words. Nothing here says whether a
//! change is a regression.

/// Why a result deserves less trust than its figures suggest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warning {
    /// A side has fewer runs than the method needs to be believed.
    TooFewRuns {
        /// Runs per side that it needs.
        need: usize,
    },
    /// Neither side varies: a difference is exact, and a t statistic does not exist.
    NoSpread,
    /// One of the sides does not vary, which real noise hardly does.
    OneSideConstant,
    /// Equal values between the sides: ranks were averaged.
    Ties,
    /// Pairs without a difference were left out of the signed ranks.
    ZeroDifferences,
    /// The p-value is an approximation, since the exact one would take too long.
    Approximate,
    /// The p-value rests on random relabellings.
    MonteCarlo {
        /// Relabellings drawn.
        draws: u32,
    },
    /// The interval has no end on at least one side.
    Unbounded,
    /// The sample cannot reach the level asked for; the interval is the widest it has.
    LevelNotReached,
    /// The sides do not overlap, so that a variance of ranks is 0.
    Separated,
    /// A value is 0 or below, so that logarithms and ratios do not exist.
    NotPositive,
    /// The degrees of freedom of the prior were cut to this.
    PriorCapped {
        /// What they were cut to.
        df: f64,
    },
    /// The variances do not differ by more than chance: the prior is infinitely strong.
    PriorInfinite,
}
