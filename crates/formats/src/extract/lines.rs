//! Lines to numbers: every rule over every line of every round.

use super::{RawOutput, RulesError};
use kdyno_model::{ExtractRules, LineRule, Measurement, OutputStream};
use regex::bytes::{Captures, Regex};
use std::collections::HashMap;

/// More metrics than this are a program's log taken for figures.
const MOST_KEYS: usize = 2000;

/// What the lines of a run gave.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Numbers by stream, one list per round.
    pub streams: HashMap<String, Vec<Vec<f64>>>,
    /// Numbers by key in order of first appearance.
    pub keys: Vec<Keyed>,
    /// Where a key stands in `keys`.
    places: HashMap<String, usize>,
    /// The first figure that is no finite number, with its line.
    pub bad_figure: Option<String>,
}

/// All values of one key.
#[derive(Debug)]
pub(super) struct Keyed {
    pub key: String,
    pub unit: String,
    pub values: Vec<f64>,
}

struct Rule {
    regex: Regex,
    /// What is looked for in the lines that `regex` matches, as often as it is there.
    each: Option<Regex>,
    from: OutputStream,
    names: Vec<String>,
    after: Vec<Regex>,
    until: Option<Regex>,
}

/// Where a rule with a beginning is in the lines of a round.
struct Section<'a> {
    rule: &'a Rule,
    /// How many of `after` have matched.
    matched: usize,
}

impl Section<'_> {
    /// Whether the rule is looked for in this line.
    fn holds(&mut self, line: &[u8]) -> bool {
        match self.rule.after.get(self.matched) {
            Some(next) => {
                self.matched += usize::from(next.is_match(line));
                false
            }
            None => {
                let ends = self.rule.until.as_ref().is_some_and(|u| u.is_match(line));
                if ends {
                    self.matched = 0;
                }
                !ends
            }
        }
    }
}

/// Applies all rules.
pub(super) fn scan(
    rules: &ExtractRules,
    raw: RawOutput<'_>,
    measurement: &Measurement,
) -> Result<Found, RulesError> {
    let compiled = rules.lines.iter().map(|line| compile(rules, line));
    let compiled = compiled.collect::<Result<Vec<_>, _>>()?;
    let mut found = Found::default();
    for (number, round) in measurement.rounds.iter().enumerate() {
        let stdout = slice(raw.stdout, round.stdout_from, round.stdout_to);
        let stderr = slice(raw.stderr, round.stderr_from, round.stderr_to);
        for rule in &compiled {
            let text = if rule.from == OutputStream::Stdout {
                stdout
            } else {
                stderr
            };
            found.take_round(number, rule, text);
        }
    }
    Ok(found)
}

fn compile(rules: &ExtractRules, line: &LineRule) -> Result<Rule, RulesError> {
    let regex = |pattern: &str| {
        Regex::new(pattern).map_err(|error| RulesError {
            prefix: rules.prefix.clone(),
            pattern: pattern.to_owned(),
            reason: error.to_string(),
        })
    };
    let after = line.after.iter().map(|pattern| regex(pattern));
    let of_line = regex(&line.pattern)?;
    let each = line.each.as_deref().map(regex).transpose()?;
    Ok(Rule {
        names: each
            .as_ref()
            .unwrap_or(&of_line)
            .capture_names()
            .flatten()
            .map(str::to_owned)
            .collect(),
        regex: of_line,
        each,
        from: line.from,
        after: after.collect::<Result<_, _>>()?,
        until: line.until.as_deref().map(regex).transpose()?,
    })
}

/// A round's part of the output, as far as there is one: of a flood only the beginning is given.
fn slice(bytes: &[u8], from: u64, to: u64) -> &[u8] {
    let within = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(bytes.len());
    bytes.get(within(from)..within(to)).unwrap_or_default()
}

impl Found {
    /// Applies a rule to the output of round `number`; rules may share a stream.
    fn take_round(&mut self, number: usize, rule: &Rule, text: &[u8]) {
        let keyed = rule.names.iter().any(|name| name == "key");
        if !keyed {
            for name in &rule.names {
                let rounds = self.streams.entry(name.clone()).or_default();
                rounds.resize(number + 1, Vec::new());
            }
        }
        let mut section = Section { rule, matched: 0 };
        for line in text.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !section.holds(line) {
                continue;
            }
            let Some(captures) = rule.regex.captures(line) else {
                continue;
            };
            let several = rule.each.as_ref().map(|each| each.captures_iter(line));
            let whole = several.is_none().then_some(captures);
            for captures in several.into_iter().flatten().chain(whole) {
                if keyed {
                    self.take_key(&captures, line);
                } else {
                    self.take_streams(rule, &captures, line);
                }
            }
        }
    }

    fn take_streams(&mut self, rule: &Rule, captures: &Captures<'_>, line: &[u8]) {
        for name in &rule.names {
            let Some(capture) = captures.name(name) else {
                continue;
            };
            let Some(number) = self.number(capture.as_bytes(), line) else {
                continue;
            };
            if let Some(round) = self
                .streams
                .get_mut(name)
                .and_then(|rounds| rounds.last_mut())
            {
                round.push(number);
            }
        }
    }

    fn take_key(&mut self, captures: &Captures<'_>, line: &[u8]) {
        let text = |name: &str| {
            captures
                .name(name)
                .map(|m| String::from_utf8_lossy(m.as_bytes()).into_owned())
        };
        let (Some(key), Some(value)) = (text("key"), captures.name("value")) else {
            return;
        };
        let Some(number) = self.number(value.as_bytes(), line) else {
            return;
        };
        match self.places.get(&key).copied() {
            Some(place) => self.keys[place].values.push(number),
            None if self.keys.len() == MOST_KEYS => {
                let flood = format!("printed more than {MOST_KEYS} different keys");
                self.bad_figure.get_or_insert(flood);
            }
            None => {
                self.places.insert(key.clone(), self.keys.len());
                let unit = text("unit").unwrap_or_default();
                self.keys.push(Keyed {
                    key,
                    unit,
                    values: vec![number],
                });
            }
        }
    }

    fn number(&mut self, text: &[u8], line: &[u8]) -> Option<f64> {
        const SHOWN: usize = 120;
        let number = std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse::<f64>().ok());
        let number = number.filter(|number| number.is_finite());
        if number.is_none() && self.bad_figure.is_none() {
            let line: String = String::from_utf8_lossy(line).chars().take(SHOWN).collect();
            self.bad_figure = Some(format!(
                "printed a figure that is no finite number: `{}`",
                line.trim()
            ));
        }
        number
    }
}
