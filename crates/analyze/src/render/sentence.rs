//! One plain sentence per headline metric and column.
//!
//! A sentence says the verdict, the size of the change with its interval, and how many runs and
//! boots stand behind it. That nothing was shown is said as such, with what it would take; it is
//! never said to mean that nothing changed.

use super::figure::{printable, shortened};
use super::words::{interval_text, reason_words, size_text};
use crate::compare::runs;
use crate::comparison::{Cell, Column, Judged, Replicate, Row};
use crate::number::plain;
use kdyno_stats::Change;
use kdyno_stats::judge::{Effect, Reason, Scale, Verdict};

/// The sentence for the column at `place` against the first; `None` when there is no such column.
pub(super) fn sentence(row: &Row, columns: &[Column], place: usize) -> Option<String> {
    let base_name = shortened(columns.first()?.name.as_str());
    let name = shortened(columns.get(place)?.name.as_str());
    let metric = &row.metric;
    let Some(base) = row.base() else {
        return Some(format!(
            "{metric} of {name}: not compared, {base_name} has no figure of it"
        ));
    };
    let Some(cell) = row.cell(place) else {
        return Some(format!(
            "{metric} of {base_name}: not compared, {name} has no figure of it"
        ));
    };
    if cell.change.is_none() {
        return Some(format!(
            "{metric} of {name} and {base_name}: not compared, see the notes"
        ));
    }
    let judged = cell.judged.as_deref()?;
    let Some(effect) = &judged.effect else {
        let figures = few_runs(cell, base, row);
        return Some(format!("{metric} of {name} and {base_name}: {figures}"));
    };
    let of = Compared {
        row,
        cell,
        base,
        judged,
        effect,
    };
    Some(match judged.judgement.verdict {
        Verdict::Unchanged => format!(
            "{metric} of {name} and {base_name}: unchanged{}, {}{}",
            of.within(),
            of.grounds(),
            of.why()
        ),
        Verdict::Unclear => format!(
            "{metric} of {name} and {base_name}: unclear{}: {}, {}{}",
            of.first_reason(),
            of.estimate(),
            of.grounds(),
            of.rest()
        ),
        verdict => format!(
            "{metric} of {name} is {} than {base_name}{}: {}, {}{}",
            of.size_and_direction(),
            of.bracketed_interval(),
            verdict.word(),
            of.grounds(),
            of.why()
        ),
    })
}

/// Two cells and what is said of them.
struct Compared<'a> {
    row: &'a Row,
    cell: &'a Cell,
    base: &'a Cell,
    judged: &'a Judged,
    effect: &'a Effect,
}

impl Compared<'_> {
    fn unit(&self) -> String {
        printable(self.row.unit.as_str())
    }

    /// The change as it is shown: the judged estimate, where it is a number.
    fn shown(&self) -> (f64, Scale) {
        let shown = self.effect.shown();
        match self.cell.change {
            Some(Change::Percent(percent)) if !shown.is_finite() => (percent, Scale::Ratio),
            _ => (shown, self.effect.scale),
        }
    }

    fn size_and_direction(&self) -> String {
        let (shown, scale) = self.shown();
        let direction = if shown > 0.0 { "higher" } else { "lower" };
        format!("{} {direction}", size_text(shown, scale, &self.unit()))
    }

    fn estimate(&self) -> String {
        let (shown, scale) = self.shown();
        let sign = if shown < 0.0 {
            "-"
        } else if shown > 0.0 {
            "+"
        } else {
            ""
        };
        let size = size_text(shown, scale, &self.unit());
        format!("{sign}{size}{}", self.bracketed_interval())
    }

    fn bracketed_interval(&self) -> String {
        let interval = interval_text(self.judged);
        let interval = interval.trim_end();
        match interval.strip_suffix('%') {
            Some(ends) => format!(" ({ends} %)"),
            None if interval.is_empty() => String::new(),
            None => format!(" ({interval})"),
        }
    }

    fn within(&self) -> String {
        let interval = self.bracketed_interval();
        if self.judged.interval.is_some_and(|(low, high)| low < high) {
            format!(", the change is within{interval}")
                .replace('(', "")
                .replace(')', "")
        } else {
            String::new()
        }
    }

    /// `10 runs each, 1 boot`, or boots where they count.
    fn grounds(&self) -> String {
        let (n, base_n) = (self.cell.n(), self.base.n());
        let of_runs = if n == base_n {
            format!("{} each", runs(n))
        } else {
            format!("{} against {}", runs(n), runs(base_n))
        };
        if self.judged.replicate == Replicate::Boot {
            let (own, of_base) = (boots(self.cell.boots), boots(self.base.boots));
            return if own == of_base {
                format!("{of_runs} in {own} each")
            } else {
                format!("{of_runs} in {own} against {of_base}")
            };
        }
        match self.cell.boots.max(self.base.boots) {
            0 => of_runs,
            n => format!("{of_runs}, {}", boots(n)),
        }
    }

    fn first_reason(&self) -> String {
        let is_plan = |reason: &&Reason| matches!(reason, Reason::NeedsRuns { .. });
        let reasons = &self.judged.judgement.reasons;
        let first = reasons.iter().find(|reason| !is_plan(reason));
        first.map_or_else(String::new, |reason| {
            format!(" ({})", reason_words(*reason))
        })
    }

    /// Further reasons, then the smallest change that would have shown.
    fn rest(&self) -> String {
        let mut out = String::new();
        let reasons = &self.judged.judgement.reasons;
        for reason in reasons {
            if matches!(reason, Reason::NeedsRuns { .. }) {
                out.push_str(&format!("; {}", reason_words(*reason)));
            }
        }
        if let (Some(visible), false) = (self.judged.smallest_visible, self.is_barred()) {
            let size = size_text(visible, self.effect.scale, &self.unit());
            out.push_str(&format!("; a change of {size} would have shown"));
        }
        out
    }

    /// Whether more of the same runs would not help.
    fn is_barred(&self) -> bool {
        let reasons = &self.judged.judgement.reasons;
        reasons.iter().any(|reason| {
            matches!(
                reason,
                Reason::OneBoot
                    | Reason::Drift
                    | Reason::Alias
                    | Reason::Throttled
                    | Reason::EnvironmentDiffers
                    | Reason::TooFewRuns
            )
        })
    }

    fn why(&self) -> String {
        let reasons = &self.judged.judgement.reasons;
        let words = reasons.iter().map(|reason| reason_words(*reason));
        words.map(|word| format!("; {word}")).collect()
    }
}

/// The figures of two sides, one of which has too few runs.
fn few_runs(cell: &Cell, base: &Cell, row: &Row) -> String {
    let unit = printable(row.unit.as_str());
    let figure = |cell: &Cell| {
        let figure = format!("{} {unit}", plain(cell.summary.mean));
        figure.trim_end().to_owned()
    };
    let source = |cell: &Cell| match cell.n() {
        1 => "one run".to_owned(),
        n => format!("mean of {}", runs(n)),
    };
    let (own, of_base) = (figure(cell), figure(base));
    let figures = match (cell.n(), base.n()) {
        (1, 1) => format!("measured once each: {own} against {of_base}"),
        _ => format!(
            "{own} ({}) against {of_base} ({})",
            source(cell),
            source(base)
        ),
    };
    format!("unclear, {figures}; too few runs to tell a difference")
}

/// `1 boot`, `3 boots`; a number of 0 means that nobody recorded them.
pub(super) fn boots(n: usize) -> String {
    match n {
        0 => "boots unknown".to_owned(),
        1 => "1 boot".to_owned(),
        n => format!("{n} boots"),
    }
}
