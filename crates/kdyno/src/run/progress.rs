//! Where a plan stands, told between trials only: a progress bar that is redrawn while a trial
//! is measured would be part of what is measured.

use crate::context::Context;
use crate::list::headline;
use kdyno_model::{RunRow, Trial};
use std::time::{Duration, Instant};

/// Progress of one session.
pub(super) struct Progress {
    total: usize,
    finished: usize,
    begun: Instant,
    expected: Option<Duration>,
    last: String,
}

impl Progress {
    /// Begins with `todo` still to be run.
    pub fn begin(todo: &[&Trial]) -> Self {
        let expected = expected(todo.iter().copied());
        Self {
            total: todo.len(),
            finished: 0,
            begun: Instant::now(),
            expected,
            last: String::new(),
        }
    }

    /// Before a trial: where a terminal can redraw, one line that stays while it is measured.
    pub fn before(&self, trial: &Trial, context: &mut Context) {
        if !context.redraw {
            return;
        }
        let last = if self.last.is_empty() {
            String::new()
        } else {
            format!("; last: {}", self.last)
        };
        let line = format!(
            "trial {} of {}  {}{}  {}{last}",
            self.finished + 1,
            self.total,
            trial.variant,
            if trial.warm_up { " (warm-up)" } else { "" },
            self.times(),
        );
        context.draw(&line);
    }

    /// After a trial: in a pipe, one line that stays for good.
    pub fn after(&mut self, row: &RunRow, context: &mut Context) {
        self.finished += 1;
        let value = if row.outcome.is_done() {
            headline(row).unwrap_or_default()
        } else {
            row.outcome.to_string()
        };
        self.last = format!("{} {value}", row.variant);
        // A failure stays on the screen.
        if context.redraw && row.outcome.is_done() {
            return;
        }
        let warm_up = if row.warm_up { " (warm-up)" } else { "" };
        context.note(&format!(
            "trial {} of {}  {}  {}{warm_up}  {value}  {}",
            self.finished,
            self.total,
            row.case.name(),
            row.variant,
            self.times(),
        ));
    }

    fn times(&self) -> String {
        let elapsed = self.begun.elapsed();
        let left = if self.finished == 0 {
            self.expected
        } else {
            let each = elapsed / u32::try_from(self.finished).unwrap_or(u32::MAX);
            each.checked_mul(u32::try_from(self.total - self.finished).unwrap_or(u32::MAX))
        };
        match left {
            Some(left) => format!(
                "{} elapsed, about {} left",
                duration_text(elapsed),
                duration_text(left)
            ),
            None => format!("{} elapsed", duration_text(elapsed)),
        }
    }
}

/// How long trials should take, where each says how long it runs and they end in this age.
pub(super) fn expected<'a>(trials: impl IntoIterator<Item = &'a Trial>) -> Option<Duration> {
    trials.into_iter().try_fold(Duration::ZERO, |sum, trial| {
        sum.checked_add(Duration::from_millis(trial.work.rounds.until_ms?))
    })
}

/// `1:07` or `2:03:59`.
pub(super) fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}
