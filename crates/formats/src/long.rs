//! Values in long form: one line per value, `metric,variant,value[,block]`.
//!
//! The form that every table program can write and that needs nothing of ours. The header is
//! demanded, so that columns in another order are noticed. An empty field, `NA`, `NaN`,
//! infinities and what is too small to be held are missing values, which are counted and never zero; anything else that is no
//! number is an error. Fields may be quoted as RFC 4180 has it; a line break inside quotes is not
//! taken.

use kdyno_model::{BlockValue, MetricName, ValueRow, ValueTable};
use std::collections::HashMap;
use std::io::{BufRead, Read};

const HEADER: [&str; 3] = ["metric", "variant", "value"];
const BLOCK: &str = "block";
/// No line is longer; the file may have no line breaks at all.
const MOST_LINE: u64 = 1 << 16;
/// More variants than this are a mistake, such as columns in the wrong order.
const MOST_VARIANTS: usize = 1000;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum LongError {
    /// It could not be read on.
    #[error("line {line}: {source}")]
    Read {
        /// The line after the last one read.
        line: usize,
        /// What the system says.
        source: std::io::Error,
    },
    /// A line is wrong.
    #[error("line {line}: {reason}")]
    Line {
        /// Which, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl LongError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Read { .. } => None,
            Self::Line { .. } => Some(
                "lines are `metric,variant,value` or `metric,variant,value,block`, below a header of these names",
            ),
        }
    }
}

/// Reads a file to its end.
///
/// # Errors
/// [`LongError`] with the line: no or another header, too few or too many fields, a value or
/// block that is no number, a name that cannot be a metric's, quotes that do not close.
pub fn read_long(mut input: impl BufRead) -> Result<ValueTable, LongError> {
    let mut reader = Reader::default();
    let mut bytes = Vec::new();
    let mut line = 0;
    loop {
        line += 1;
        bytes.clear();
        let got = (&mut input).take(MOST_LINE).read_until(b'\n', &mut bytes);
        if got.map_err(|source| LongError::Read { line, source })? == 0 {
            break;
        }
        let taken = text_of(&bytes).and_then(|text| reader.take_line(text));
        taken.map_err(|reason| LongError::Line { line, reason })?;
    }
    if reader.fields == 0 {
        let reason = "the file is empty".to_owned();
        return Err(LongError::Line { line: 1, reason });
    }
    Ok(reader.table)
}

fn text_of(bytes: &[u8]) -> Result<&str, String> {
    if bytes.len() as u64 == MOST_LINE {
        return Err(format!("it is longer than {MOST_LINE} bytes"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "it is no UTF-8 text".to_owned())?;
    Ok(text.trim_end_matches(['\n', '\r']))
}

#[derive(Default)]
struct Reader {
    table: ValueTable,
    /// Fields per line, as the header has them; 0 before it.
    fields: usize,
    places: HashMap<String, usize>,
    /// The metric and the variant of the line before: neighbours mostly share them.
    last_metric: Option<(String, usize)>,
    last_variant: usize,
}

impl Reader {
    fn take_line(&mut self, line: &str) -> Result<(), String> {
        if self.fields == 0 {
            return self.header(line.trim_start_matches('\u{feff}'));
        }
        if line.is_empty() {
            return Ok(());
        }
        if line.contains('"') {
            let fields = quoted(line)?;
            let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
            self.fields(fields.into_iter())
        } else {
            self.fields(line.split(','))
        }
    }

    fn header(&mut self, line: &str) -> Result<(), String> {
        let names = quoted(line)?;
        let known = HEADER.iter().chain([&BLOCK]);
        let fine = names
            .iter()
            .zip(known)
            .all(|(name, known)| name.trim() == *known);
        if !fine || !(HEADER.len()..=HEADER.len() + 1).contains(&names.len()) {
            return Err(format!(
                "the header is `{}`, not `metric,variant,value[,block]`",
                shown(line)
            ));
        }
        self.fields = names.len();
        Ok(())
    }

    fn fields<'a>(&mut self, mut fields: impl Iterator<Item = &'a str>) -> Result<(), String> {
        let mut next = |name: &str| fields.next().ok_or_else(|| format!("no {name} in it"));
        let (metric, variant) = (next("metric")?, next("variant")?);
        let value = next("value")?.trim();
        let block = match self.fields {
            4 => Some(next("block")?.trim()),
            _ => None,
        };
        if fields.next().is_some() {
            return Err(format!("more than {} fields", self.fields));
        }
        let block = block
            .map(|text| {
                let bad = |_| format!("block `{}` is no whole number", shown(text));
                text.parse::<u32>().map_err(bad)
            })
            .transpose()?;
        let metric = self.metric(metric)?;
        let variant = self.variant(variant)?;
        let Some(value) = number(value)? else {
            self.table.missing += 1;
            return Ok(());
        };
        if let Some(row) = self.table.metrics.get_mut(metric) {
            if row.values.len() <= variant {
                row.values.resize(variant + 1, Vec::new());
            }
            if let Some(values) = row.values.get_mut(variant) {
                values.push(BlockValue { value, block });
            }
        }
        Ok(())
    }

    fn metric(&mut self, name: &str) -> Result<usize, String> {
        if let Some((last, place)) = &self.last_metric
            && last == name
        {
            return Ok(*place);
        }
        let place = match self.places.get(name) {
            Some(place) => *place,
            None => {
                check_name("metric", name)?;
                // Tables are split at blanks.
                let flat: String = name.split_whitespace().collect::<Vec<_>>().join("_");
                if self
                    .table
                    .metrics
                    .iter()
                    .any(|row| row.metric.as_str() == flat)
                {
                    return Err(format!(
                        "metric `{}` prints as another: `{flat}`",
                        shown(name)
                    ));
                }
                let metric = MetricName::new(flat).map_err(|error| error.to_string())?;
                self.table.metrics.push(ValueRow {
                    metric,
                    values: Vec::new(),
                });
                let place = self.table.metrics.len() - 1;
                self.places.insert(name.to_owned(), place);
                place
            }
        };
        self.last_metric = Some((name.to_owned(), place));
        Ok(place)
    }

    fn variant(&mut self, name: &str) -> Result<usize, String> {
        let name = name.trim();
        let variants = &mut self.table.variants;
        if variants
            .get(self.last_variant)
            .is_some_and(|last| last == name)
        {
            return Ok(self.last_variant);
        }
        if name.is_empty() {
            return Err("the variant is empty".to_owned());
        }
        check_name("variant", name)?;
        self.last_variant = match variants.iter().position(|known| known == name) {
            Some(place) => place,
            None if variants.len() >= MOST_VARIANTS => {
                return Err(format!("more than {MOST_VARIANTS} variants"));
            }
            None => {
                variants.push(name.to_owned());
                variants.len() - 1
            }
        };
        Ok(self.last_variant)
    }
}

/// A finite number; nothing for what is missing.
fn number(text: &str) -> Result<Option<f64>, String> {
    if text.is_empty() || text.eq_ignore_ascii_case("na") {
        return Ok(None);
    }
    match text.parse::<f64>() {
        // Too small to be held, which is not zero.
        Ok(0.0) if has_digit_above_zero(text) => Ok(None),
        Ok(value) if value.is_finite() => Ok(Some(value)),
        Ok(_) => Ok(None),
        Err(_) => Err(format!("value `{}` is no number", shown(text))),
    }
}

fn has_digit_above_zero(number: &str) -> bool {
    let mantissa = number.split(['e', 'E']).next().unwrap_or(number);
    mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte))
}

/// Refuses what would break a table or turn a terminal's text around.
fn check_name(what: &str, name: &str) -> Result<(), String> {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    match name.chars().find(|c| c.is_control() || turns(*c)) {
        None => Ok(()),
        Some(c) => Err(format!(
            "the {what} holds the control character U+{:04X}",
            u32::from(c)
        )),
    }
}

/// The fields of a line, some of which may be in quotes.
fn quoted(line: &str) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            Some(inside) => unquoted(inside)?,
            None => match rest.split_once(',') {
                Some((field, after)) => (field.to_owned(), Some(after)),
                None => (rest.to_owned(), None),
            },
        };
        fields.push(field);
        match after {
            Some(after) => rest = after,
            None => return Ok(fields),
        }
    }
}

/// A field whose opening quote is taken, and what stands behind its comma.
fn unquoted(inside: &str) -> Result<(String, Option<&str>), String> {
    let mut field = String::new();
    let mut rest = inside;
    loop {
        let (part, after) = rest.split_once('"').ok_or("a quote does not close")?;
        field.push_str(part);
        if let Some(after) = after.strip_prefix('"') {
            field.push('"');
            rest = after;
        } else if after.is_empty() {
            return Ok((field, None));
        } else if let Some(after) = after.strip_prefix(',') {
            return Ok((field, Some(after)));
        } else {
            return Err("something stands behind a closing quote".to_owned());
        }
    }
}

/// A piece of input for a message: printable and short.
fn shown(text: &str) -> String {
    let printable = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(printable).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<ValueTable, LongError> {
        read_long(text.as_bytes())
    }

    fn message(text: &str) -> String {
        read(text).expect_err("an error").to_string()
    }

    #[test]
    fn values_by_metric_and_variant() {
        let table = read(
            "metric,variant,value,block\r\nx,a,1,0\nx,b,2.5,0\n\"y, z\",b,-1e3,2\n\nx,a,3,1\n",
        )
        .expect("table");
        assert_eq!(table.variants, ["a", "b"]);
        let names: Vec<&str> = table.metrics.iter().map(|m| m.metric.as_str()).collect();
        assert_eq!(names, ["x", "y,_z"]);
        let of = |row: usize, variant: usize| -> Vec<(f64, Option<u32>)> {
            let values = table.metrics[row].values[variant].iter();
            values.map(|v| (v.value, v.block)).collect()
        };
        assert_eq!(of(0, 0), [(1.0, Some(0)), (3.0, Some(1))]);
        assert_eq!(of(0, 1), [(2.5, Some(0))]);
        assert_eq!(of(1, 1), [(-1000.0, Some(2))]);
        assert_eq!(of(1, 0), []);
    }

    #[test]
    fn missing_is_counted() {
        let table = read("metric,variant,value\nx,a,\nx,a,NaN\nx,a,inf\nx,a,NA\nx,a,1\n");
        let table = table.expect("table");
        assert_eq!(table.missing, 4);
        assert_eq!(table.metrics[0].values[0].len(), 1);
    }

    #[test]
    fn errors_name_the_line() {
        assert!(message("").contains("line 1: the file is empty"));
        let long = "x".repeat(1 << 17);
        assert!(message(&long).contains("line 1: it is longer than 65536 bytes"));
        assert!(message("a,b\n").contains("line 1: the header is `a,b`"));
        let body = |line: &str| message(&format!("metric,variant,value\nx,a,1\n{line}\n"));
        assert!(body("x,a").contains("line 3: no value in it"));
        assert!(body("x,a,fast").contains("line 3: value `fast` is no number"));
        assert!(body("x,a,1,2").contains("line 3: more than 3 fields"));
        assert!(body("x,,1").contains("line 3: the variant is empty"));
        assert!(body(",a,1").contains("line 3: "));
        assert!(body("\"x,a,1").contains("line 3: a quote does not close"));
        let block = message("metric,variant,value,block\nx,a,1,two\n");
        assert!(
            block.contains("line 2: block `two` is no whole number"),
            "{block}"
        );
        let bytes = read_long(&b"metric,variant,value\n\xff\xfe,a,1\n"[..]);
        assert!(bytes.expect_err("an error").to_string().contains("line 2"));
    }

    proptest! {
        #[test]
        fn any_input_is_read_or_refused(text in "(metric,variant,value(,block)?\n)?[\"a-c,0-9.e\n\r -]{0,80}") {
            if let Ok(table) = read(&text) {
                for value in table.metrics.iter().flat_map(|m| m.values.iter().flatten()) {
                    prop_assert!(value.value.is_finite());
                }
            }
        }

        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_long(bytes.as_slice());
        }
    }
}
