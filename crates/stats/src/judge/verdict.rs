//! The words: verdicts and their reasons.

use std::fmt;

/// What is said of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// A real change for the worse, at least as large as the margin.
    Regressed,
    /// A real change for the better.
    Improved,
    /// A real change of a figure of which nobody said which direction is good.
    Changed,
    /// Shown to be smaller than the margin.
    Unchanged,
    /// None of these was shown.
    Unclear,
}

impl Verdict {
    /// The word in tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Regressed => "regressed",
            Self::Improved => "improved",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Unclear => "unclear",
        }
    }

    /// Whether a change was shown.
    #[must_use]
    pub fn is_change(self) -> bool {
        matches!(self, Self::Regressed | Self::Improved | Self::Changed)
    }
}

/// Why a verdict is what it is; its text is one word for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Real, but below the margin.
    Small,
    /// About so many more runs a side (boots, blocks) would show something.
    NeedsRuns {
        /// If the spread is what was estimated.
        more: u64,
        /// If it is at its upper limit; `None` beyond ten million.
        at_most: Option<u64>,
    },
    /// The spread differs between the sides.
    SpreadChanged,
    /// The shape of the distribution differs, or its mean and its middle disagree.
    ShapeChanged,
    /// Runs fail that did not.
    NewFailures,
    /// Runs failed that do not any more.
    FixedFailures,
    /// Runs fail now and then on both sides.
    Flaky,
    /// Neither side varies and they differ.
    ExactChange,
    /// Neither side varies and they are equal.
    Identical,
    /// Fewer replicates than a claim needs.
    TooFewRuns,
    /// The figures, or the change between them, are beyond the range of numbers.
    OutOfRange,
    /// A side stands on one boot, and boots are what differs.
    OneBoot,
    /// The sides were not run in turn and the figure drifts.
    Drift,
    /// The order of runs falls in step with the variants.
    Alias,
    /// The machine was throttled during runs of a side.
    Throttled,
    /// The sides differ in more than the variant.
    EnvironmentDiffers,
    /// A fix takes back a part of a regression.
    PartialFix,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Small => "small",
            Self::NeedsRuns { more, at_most } => {
                write!(f, "needs-runs:+{more}")?;
                return match at_most {
                    Some(most) if most > more => write!(f, "..{most}"),
                    Some(_) => Ok(()),
                    None => f.write_str("..many"),
                };
            }
            Self::SpreadChanged => "spread-changed",
            Self::ShapeChanged => "shape-changed",
            Self::NewFailures => "new-failures",
            Self::FixedFailures => "fixed-failures",
            Self::Flaky => "flaky",
            Self::ExactChange => "exact-change",
            Self::Identical => "identical",
            Self::TooFewRuns => "too-few-runs",
            Self::OutOfRange => "out-of-range",
            Self::OneBoot => "one-boot",
            Self::Drift => "drift",
            Self::Alias => "alias",
            Self::Throttled => "throttled",
            Self::EnvironmentDiffers => "environment-differs",
            Self::PartialFix => "partial-fix",
        })
    }
}
