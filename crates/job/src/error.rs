//! Errors that show the place: file, line, column, the line itself and what to do.

use crate::node::Place;
use kdyno_model::nearest;
use std::fmt;

/// A text to read with the name that messages give it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// File name, or what stands for one (`-V a:key=value`).
    pub name: &'a str,
    /// The whole text.
    pub text: &'a str,
    /// Where each line came from, when some of them are included; empty when all are its own.
    pub origins: &'a [Origin],
}

/// Where a line of a job came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file.
    pub name: String,
    /// Its line in that file, from 1.
    pub line: usize,
    /// Which taking-in of a file it belongs to; a file may be included twice.
    pub instance: usize,
}

impl<'a> Source<'a> {
    /// A text all of whose lines are its own.
    #[must_use]
    pub fn new(name: &'a str, text: &'a str) -> Self {
        Self {
            name,
            text,
            origins: &[],
        }
    }

    /// Where a line came from, when that is known.
    #[must_use]
    pub fn origin(&self, line: usize) -> Option<&'a Origin> {
        self.origins.get(line.checked_sub(1)?)
    }
}

/// Something is wrong with a job file, a catalog entry or a variant option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct JobError {
    /// File name or option.
    pub source_name: String,
    /// Where, when it is about one place.
    pub place: Option<Place>,
    /// The line at that place.
    pub line_text: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What the user can do.
    pub hint: Option<String>,
}

impl JobError {
    /// An error about the source as a whole.
    #[must_use]
    pub fn whole(source: Source<'_>, message: impl Into<String>) -> Self {
        Self {
            source_name: source.name.to_owned(),
            place: None,
            line_text: None,
            message: message.into(),
            hint: None,
        }
    }

    /// An error at a place of the source.
    #[must_use]
    pub fn at(source: Source<'_>, place: Place, message: impl Into<String>) -> Self {
        let mut error = Self::whole(source, message);
        if place.line > 0 {
            error.place = Some(place);
            error.line_text = source.text.lines().nth(place.line - 1).map(shorten);
            if let Some(origin) = source.origin(place.line) {
                error.source_name.clone_from(&origin.name);
                error.place = Some(Place {
                    line: origin.line,
                    ..place
                });
            }
        }
        error
    }

    /// With advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With the nearest of `known` as advice, or the list of them when none is near.
    #[must_use]
    pub fn hint_nearest<'a>(self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let mut known: Vec<&str> = known.into_iter().collect();
        known.sort_unstable();
        known.dedup();
        match nearest(word, &known) {
            Some(near) => self.hint(format!("did you mean `{near}`?")),
            None if known.is_empty() => self,
            None => self.hint(format!("known here: {}", known.join(", "))),
        }
    }
}

/// A line is shown whole up to a width that a terminal can hold.
fn shorten(line: &str) -> String {
    const WIDEST: usize = 160;
    line.chars()
        .map(|c| if c == '\t' { ' ' } else { c })
        .take(WIDEST)
        .collect()
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source_name)?;
        if let Some(place) = self.place {
            write!(f, ":{}:{}", place.line, place.column)?;
        }
        write!(f, ": {}", self.message)?;
        if let (Some(place), Some(line)) = (self.place, &self.line_text) {
            let gutter = place.line.to_string();
            write!(f, "\n  {gutter} | {line}")?;
            if place.column <= line.chars().count() + 1 {
                write!(
                    f,
                    "\n  {:w$} | {:c$}^",
                    "",
                    "",
                    w = gutter.len(),
                    c = place.column - 1
                )?;
            }
        }
        Ok(())
    }
}
