//! Events for people, on standard error: a line that is redrawn on a terminal, lines that stay in
//! a pipe. Where a plan stands is told between trials only: a progress bar that is redrawn while a
//! trial is measured would be part of what is measured.

use super::event::{Ending, Event, Failure, TrialEnded, TrialPlace};
use crate::context::Context;
use crate::list::figure_text;
use kdyno_model::Trial;
use kdyno_testbox::doctor::{Finding, Level};
use std::time::{Duration, Instant};

/// Progress of one session.
#[derive(Default)]
pub(super) struct Progress {
    finished: usize,
    begun: Option<Instant>,
    expected: Option<Duration>,
    last: String,
}

impl Progress {
    /// Shows an event; some are for programs only.
    pub fn take(&mut self, event: &Event, context: &mut Context) {
        match event {
            Event::Note { text } => context.note(&format!("note: {text}")),
            Event::Warning { text } => context.note(&format!("warning: {text}")),
            Event::Skipped { case, reason } => context.note(&format!("skipped: {case}: {reason}")),
            Event::Doctor { findings } => warn_of(findings, context),
            Event::PlanBegun(plan) => {
                self.begun = Some(Instant::now());
                self.expected = plan
                    .expected_seconds
                    .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            }
            Event::TrialBegun(place) => self.before(place, context),
            Event::TrialEnded(ended) => self.after(ended, context),
            Event::Look(look) => context.note(&format!(
                "look after {} runs a side: {} of {} headline metrics settled",
                look.runs, look.settled, look.metrics
            )),
            Event::Decision { text, .. } => context.note(text),
            Event::Failure(failure) => describe(failure, context),
            Event::PlanEnded(plan) if plan.ending == Ending::Interrupted => context.note(
                "interrupted; everything is put back. `kdyno run --resume` finishes the plan.",
            ),
            // An error is shown when the program ends with it.
            Event::StreamBegun { .. }
            | Event::PlanEnded(_)
            | Event::Error { .. }
            | Event::StreamEnded { .. } => {}
        }
    }

    /// Before a trial: where a terminal can redraw, one line that stays while it is measured.
    fn before(&self, place: &TrialPlace, context: &mut Context) {
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
            place.number,
            place.of,
            place.variant,
            if place.warm_up { " (warm-up)" } else { "" },
            self.times(place.of),
        );
        context.draw(&line);
    }

    /// After a trial: in a pipe, one line that stays for good.
    fn after(&mut self, ended: &TrialEnded, context: &mut Context) {
        let place = &ended.place;
        self.finished = place.number;
        let value = match &ended.reason {
            None => ended.headline.first().map_or_else(String::new, |figure| {
                figure_text(&figure.metric, figure.value, &figure.unit)
            }),
            Some(reason) => reason.clone(),
        };
        self.last = format!("{} {value}", place.variant);
        // A failure stays on the screen.
        if context.redraw && ended.reason.is_none() {
            return;
        }
        let warm_up = if place.warm_up { " (warm-up)" } else { "" };
        context.note(&format!(
            "trial {} of {}  {}  {}{warm_up}  {value}  {}",
            place.number,
            place.of,
            place.case,
            place.variant,
            self.times(place.of),
        ));
    }

    fn times(&self, total: usize) -> String {
        let elapsed = self.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        let left = if self.finished == 0 {
            self.expected
        } else {
            let each = elapsed / u32::try_from(self.finished).unwrap_or(u32::MAX);
            let trials = total.saturating_sub(self.finished);
            each.checked_mul(u32::try_from(trials).unwrap_or(u32::MAX))
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

/// Warnings of the machine's noise that are shown; `kdyno doctor` shows all.
const SHOWN_WARNINGS: usize = 3;

fn warn_of(findings: &[Finding], context: &mut Context) {
    let warnings = findings.iter().filter(|f| f.level == Level::Warning);
    let warnings: Vec<&Finding> = warnings.collect();
    for finding in warnings.iter().take(SHOWN_WARNINGS) {
        context.note(&format!("warning: {}: {}", finding.check, finding.what));
    }
    match warnings.len() {
        0 => {}
        shown if shown <= SHOWN_WARNINGS => context.note("`kdyno doctor` says what to do about it"),
        all => context.note(&format!(
            "and {} more warnings: `kdyno doctor` shows all, and what to do",
            all - SHOWN_WARNINGS
        )),
    }
}

/// What failed and why, with the end of what the first of equal failures said.
fn describe(failure: &Failure, context: &mut Context) {
    let runs = if failure.runs == 1 {
        "1 run".to_owned()
    } else {
        format!("{} runs", failure.runs)
    };
    context.note(&format!(
        "{runs} of {} ({}) {}",
        failure.variant, failure.case, failure.reason
    ));
    if let Some(hint) = &failure.hint {
        context.note(&format!("  hint: {hint}"));
    }
    for line in &failure.last_words {
        // A tab is no character to print, and no reason to hide what it separates.
        context.note(&format!("  | {}", line.replace('\t', " ")));
    }
    context.note(&format!(
        "  `kdyno show {}` shows everything about it",
        failure.run.short()
    ));
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::io::Write;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    struct Screen(Rc<RefCell<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn shown(event: &Event) -> String {
        let screen = Screen::default();
        let mut context = Context::from_environment();
        context.err = Box::new(screen.clone());
        Progress::default().take(event, &mut context);
        String::from_utf8_lossy(&screen.0.borrow()).into_owned()
    }

    fn finding(level: Level, what: &str) -> Finding {
        Finding {
            check: "load",
            level,
            what: what.to_owned(),
            why: "",
            hint: None,
            setting: None,
        }
    }

    #[test]
    fn a_run_shows_few_warnings_and_no_notes() {
        let doctor = |warnings: usize| Event::Doctor {
            findings: (0..warnings)
                .map(|n| finding(Level::Warning, &format!("w{n}")))
                .chain([finding(Level::Note, "n")])
                .collect(),
        };
        assert_eq!(shown(&doctor(0)), "");
        assert_eq!(
            shown(&doctor(1)),
            "warning: load: w0\n`kdyno doctor` says what to do about it\n"
        );
        assert_eq!(
            shown(&doctor(5)),
            "warning: load: w0\nwarning: load: w1\nwarning: load: w2\n\
             and 2 more warnings: `kdyno doctor` shows all, and what to do\n"
        );
    }

    #[test]
    fn durations() {
        let text = |seconds| duration_text(Duration::from_secs(seconds));
        assert_eq!(text(67), "1:07");
        assert_eq!(text(2 * 3600 + 3 * 60 + 59), "2:03:59");
    }
}
