//! A case file and the book-keeping of what was compared.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// One case file.
pub struct Case {
    pub id: String,
    pub kind: String,
    pub input: Value,
    pub expected: Value,
    relative: f64,
    absolute: f64,
}

impl Case {
    pub fn read(file: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
        let value: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        let string = |pointer| {
            let found = value.pointer(pointer).and_then(Value::as_str);
            found.map(str::to_owned).ok_or(format!("no {pointer}"))
        };
        let number = |pointer, otherwise| {
            let found = value.pointer(pointer).and_then(Value::as_f64);
            found.unwrap_or(otherwise)
        };
        Ok(Self {
            id: string("/id")?,
            kind: string("/kind")?,
            input: value.get("input").cloned().ok_or("no input")?,
            expected: value.get("expected").cloned().ok_or("no expected")?,
            relative: number("/tol/rel", 1e-9),
            absolute: number("/tol/abs", 1e-12),
        })
    }

    /// The number at a JSON pointer into the input.
    pub fn float(&self, pointer: &str) -> f64 {
        let found = self.input.pointer(pointer).and_then(Value::as_f64);
        found.unwrap_or_else(|| panic!("{}: no number at input{pointer}", self.id))
    }

    /// The list of numbers at a JSON pointer into the input.
    pub fn floats(&self, pointer: &str) -> Vec<f64> {
        let found = self.input.pointer(pointer).and_then(floats);
        found.unwrap_or_else(|| panic!("{}: no numbers at input{pointer}", self.id))
    }

    /// The list of lists of numbers at a JSON pointer into the input.
    pub fn rows(&self, pointer: &str) -> Vec<Vec<f64>> {
        let rows = self.input.pointer(pointer).and_then(Value::as_array);
        let rows = rows.and_then(|rows| rows.iter().map(floats).collect());
        rows.unwrap_or_else(|| panic!("{}: no rows at input{pointer}", self.id))
    }
}

fn floats(value: &Value) -> Option<Vec<f64>> {
    value.as_array()?.iter().map(Value::as_f64).collect()
}

/// Compares what was computed with what is expected, by JSON pointers into the expected value.
pub struct Check<'a> {
    case: &'a Case,
    open: BTreeSet<String>,
    values: usize,
    problems: Vec<String>,
}

impl<'a> Check<'a> {
    pub fn new(case: &'a Case) -> Self {
        let mut open = BTreeSet::new();
        leaves(&case.expected, String::new(), &mut open);
        Self {
            case,
            open,
            values: 0,
            problems: Vec::new(),
        }
    }

    /// A number within the tolerances of the case; `None` where `null` is expected.
    pub fn number(&mut self, pointer: &str, got: Option<f64>) {
        self.number_within(pointer, got, self.case.relative, self.case.absolute);
    }

    /// A number within tolerances that the notes of the case give for it.
    pub fn number_within(&mut self, pointer: &str, got: Option<f64>, relative: f64, absolute: f64) {
        let Some(expected) = self.take(pointer) else {
            return;
        };
        let fits = match (expected.as_f64(), got) {
            (Some(e), Some(g)) => e == g || (e - g).abs() <= absolute + relative * e.abs(),
            (None, None) => expected.is_null(),
            _ => false,
        };
        self.judge(fits, pointer, &expected, &format!("{got:?}"));
    }

    /// Several numbers in a list.
    pub fn numbers(&mut self, pointer: &str, got: &[f64]) {
        let length = self
            .case
            .expected
            .pointer(pointer)
            .and_then(Value::as_array);
        if length.map(Vec::len) != Some(got.len()) {
            self.problems
                .push(format!("{pointer}: got {} numbers", got.len()));
        }
        for (i, number) in got.iter().enumerate() {
            self.number(&format!("{pointer}/{i}"), Some(*number));
        }
    }

    /// The two ends of an interval, as a list of two.
    pub fn interval(&mut self, pointer: &str, got: Option<(f64, f64)>) {
        self.number(&format!("{pointer}/0"), got.map(|(low, _)| low));
        self.number(&format!("{pointer}/1"), got.map(|(_, high)| high));
    }

    pub fn flag(&mut self, pointer: &str, got: bool) {
        if let Some(expected) = self.take(pointer) {
            self.judge(expected == got, pointer, &expected, &got.to_string());
        }
    }

    pub fn text(&mut self, pointer: &str, got: &str) {
        if let Some(expected) = self.take(pointer) {
            self.judge(expected == got, pointer, &expected, got);
        }
    }

    /// Anything else that must hold.
    pub fn holds(&mut self, what: &str, holds: bool) {
        self.values += 1;
        if !holds {
            self.problems.push(format!("{what} does not hold"));
        }
    }

    /// Leaves out an expected value that is no claim about numbers, and all below it.
    pub fn skip(&mut self, pointer: &str) {
        let below = format!("{pointer}/");
        self.open.retain(|p| p != pointer && !p.starts_with(&below));
    }

    /// Number of values compared and what is wrong.
    pub fn finish(mut self) -> (usize, Vec<String>) {
        let forgotten = self.open.iter().map(|p| format!("{p}: not looked at"));
        self.problems.extend(forgotten);
        (self.values, self.problems)
    }

    fn take(&mut self, pointer: &str) -> Option<Value> {
        self.open.remove(pointer);
        let expected = self.case.expected.pointer(pointer).cloned();
        if expected.is_none() {
            self.problems
                .push(format!("{pointer}: the case does not have it"));
        }
        expected
    }

    fn judge(&mut self, fits: bool, pointer: &str, expected: &Value, got: &str) {
        self.values += 1;
        if !fits {
            self.problems
                .push(format!("{pointer}: expected {expected}, got {got}"));
        }
    }
}

/// The pointers of everything below `value` that is no list and no map.
fn leaves(value: &Value, at: String, into: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                leaves(item, format!("{at}/{i}"), into);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                leaves(item, format!("{at}/{key}"), into);
            }
        }
        _ => {
            into.insert(at);
        }
    }
}
