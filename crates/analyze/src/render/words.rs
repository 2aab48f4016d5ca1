//! Words and figures of verdicts, shared by all forms.

use crate::comparison::{Cell, Judged};
use crate::number::{general, general_signed};
use kdyno_stats::Change;
use kdyno_stats::judge::{Reason, Scale};

/// p-values below this are only said to be below it.
const SMALLEST_P: f64 = 0.001;

/// A change as the tables show it: the judged estimate, else the change of the means.
pub(super) fn change_text(cell: &Cell) -> String {
    let effect = cell.judged.as_ref().and_then(|j| j.effect.as_ref());
    match (effect, cell.change) {
        (Some(effect), _) if effect.shown().is_finite() => {
            signed(effect.shown(), mark(effect.scale))
        }
        (_, Some(Change::Percent(percent))) => signed(percent, "%"),
        (_, Some(Change::Absolute(difference))) => signed(difference, " "),
        (_, None) => String::new(),
    }
}

/// A percent sign, or a blank in its place.
fn mark(scale: Scale) -> &'static str {
    match scale {
        Scale::Ratio => "%",
        Scale::Points | Scale::Difference => " ",
    }
}

fn signed(amount: f64, mark: &str) -> String {
    let small = mark == " " && amount != 0.0 && amount.abs() < 1.0;
    if small || amount.abs() >= 100_000.0 {
        format!("{}{mark}", general_signed(amount, 2))
    } else {
        format!("{amount:+.1}{mark}")
    }
}

/// `-21.9..-18.7%`: an interval of a change; blank where there is none.
pub(super) fn interval_text(judged: &Judged) -> String {
    let (Some((low, high)), Some(effect)) = (judged.interval, &judged.effect) else {
        return String::new();
    };
    let decimals = decimals((high - low).abs());
    let end = |at: f64| {
        if at.abs() >= 100_000.0 {
            general_signed(at, 2)
        } else if decimals > 4 {
            general_signed(at, 3)
        } else {
            format!("{at:+.decimals$}")
        }
    };
    format!("{}..{}{}", end(low), end(high), mark(effect.scale))
}

/// Decimals that show an interval of this width to two digits.
fn decimals(width: f64) -> usize {
    match width {
        w if w >= 20.0 => 0,
        w if w >= 2.0 => 1,
        w if w >= 0.2 => 2,
        w if w >= 0.02 => 3,
        0.0 => 1,
        w if w >= 0.002 => 4,
        _ => 5,
    }
}

/// An adjusted p-value in five characters.
pub(super) fn p_text(p: Option<f64>) -> String {
    match p {
        Some(p) if p < SMALLEST_P => "<.001".to_owned(),
        Some(p) => format!("{p:.3}"),
        None => "-".to_owned(),
    }
}

/// A size without its sign, as `31 %`, `2.5 percentage points`, `3 us`.
pub(super) fn size_text(size: f64, scale: Scale, unit: &str) -> String {
    let size = size.abs();
    let number = if (10.0..100_000.0).contains(&size) {
        format!("{size:.0}")
    } else {
        general(size, 2)
    };
    let unit = match scale {
        Scale::Ratio => "%",
        Scale::Points => "percentage points",
        Scale::Difference => unit,
    };
    format!("{number} {unit}").trim_end().to_owned()
}

/// Reasons for programs, separated by blanks.
pub(super) fn reasons_text(reasons: &[Reason]) -> String {
    let words: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    words.join(" ")
}

/// A verdict with its first reason, as `unclear (one-boot)`.
pub(super) fn verdict_text(judged: &Judged) -> String {
    let verdict = judged.judgement.verdict;
    let needs = |reason: &&Reason| !matches!(reason, Reason::NeedsRuns { .. });
    match judged.judgement.reasons.iter().find(needs) {
        Some(reason) => format!("{} ({reason})", verdict.word()),
        None => verdict.word().to_owned(),
    }
}

/// Why, in words for people.
pub(super) fn reason_words(reason: Reason) -> String {
    match reason {
        Reason::Small => "the change is real but below the margin".to_owned(),
        Reason::NeedsRuns { more, at_most } => match at_most {
            Some(most) if most > more => {
                format!("about {more} to {most} more runs a side would tell")
            }
            Some(_) => format!("about {more} more runs a side would tell"),
            None => format!("at least {more} more runs a side would be needed"),
        },
        Reason::SpreadChanged => "the spread differs".to_owned(),
        Reason::ShapeChanged => "the shape differs: mean and middle disagree".to_owned(),
        Reason::NewFailures => "runs fail that did not".to_owned(),
        Reason::FixedFailures => "runs do not fail any more".to_owned(),
        Reason::Flaky => "runs fail on both sides".to_owned(),
        Reason::ExactChange => "no run of a side differs from another".to_owned(),
        Reason::Identical => "all runs give the same figure".to_owned(),
        Reason::TooFewRuns => "too few runs".to_owned(),
        Reason::OutOfRange => "the figures are beyond the range of numbers".to_owned(),
        Reason::OneBoot => "one boot on a side, another boot may differ as much".to_owned(),
        Reason::Drift => "the sides were not run in turn and the figure drifts".to_owned(),
        Reason::Alias => "one side came first in every block".to_owned(),
        Reason::Throttled => "the machine was throttled".to_owned(),
        Reason::EnvironmentDiffers => "the machine differs in more than the variant".to_owned(),
        Reason::PartialFix => "a part of the regression is left".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_decide_on_decimals() {
        assert_eq!([50.0, 5.0, 0.5, 0.05, 0.005].map(decimals), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn p_values_are_short() {
        let shown = [Some(0.000_1), Some(0.049_9), Some(1.0), None].map(p_text);
        assert_eq!(shown, ["<.001", "0.050", "1.000", "-"]);
    }
}
