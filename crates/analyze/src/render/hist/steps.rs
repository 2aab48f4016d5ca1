//! Rows of one width, as `10us..500us` or `10us..500us,500us..10ms`: steps of 10 us up to 500 us,
//! then of 500 us up to 10 ms.

use super::unit::factor;

/// Most rows there may be.
const MOST_ROWS: usize = 100_000;

/// Ascending ends of rows, the first of them 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    parts: Vec<Part>,
}

/// Steps of one width.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    step: f64,
    end: f64,
    /// The unit of both; as the values when empty.
    unit: String,
}

/// Why a text describes no rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StepsError(String);

impl StepsError {
    /// What would be right.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        "write STEP..END with the same unit or none, as 10us..500us,500us..10ms"
    }
}

impl Steps {
    /// The rows of the table that kernel people post: 10 us up to 500 us, then 500 us up to 10 ms.
    #[must_use]
    pub fn of_waits() -> Self {
        let part = |step, end| Part {
            step,
            end,
            unit: "us".to_owned(),
        };
        Self {
            parts: vec![part(10.0, 500.0), part(500.0, 10_000.0)],
        }
    }

    /// The ends of all rows in `unit`, from 0 on.
    ///
    /// # Errors
    /// [`StepsError`] when the steps are times and the unit is none, or there are too many rows.
    pub fn edges(&self, unit: &str) -> Result<Vec<f64>, StepsError> {
        let mut edges = vec![0.0];
        for part in &self.parts {
            let own = if part.unit.is_empty() {
                unit
            } else {
                &part.unit
            };
            let factor = factor(own, unit).ok_or_else(|| {
                let values = if unit.is_empty() {
                    "without a unit"
                } else {
                    unit
                };
                StepsError(format!("steps in {own} do not fit values {values}"))
            })?;
            let from = edges.last().copied().unwrap_or(0.0);
            let rows = ((part.end * factor - from) / (part.step * factor)).round();
            if rows > 0.0 {
                // Multiples of the step, so that no rounding adds up.
                let first = (from / (part.step * factor)).round();
                let rows = (1..=MOST_ROWS).take_while(|row| rows_of(*row) <= rows);
                edges.extend(rows.map(|row| (first + rows_of(row)) * part.step * factor));
            }
        }
        match edges.len() {
            2..=MOST_ROWS => Ok(edges),
            rows => Err(StepsError(format!("{} rows", rows - 1))),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "at most a hundred thousand")]
fn rows_of(row: usize) -> f64 {
    row as f64
}

impl std::str::FromStr for Steps {
    type Err = StepsError;

    fn from_str(text: &str) -> Result<Self, StepsError> {
        let mut parts: Vec<Part> = Vec::new();
        for word in text.split(',') {
            let bad = |reason: &str| StepsError(format!("`{word}`: {reason}"));
            let (step, end) = word
                .split_once("..")
                .ok_or_else(|| bad("there is no `..`"))?;
            let (step, step_unit) = quantity(step).ok_or_else(|| bad("the step is no number"))?;
            let (end, end_unit) = quantity(end).ok_or_else(|| bad("the end is no number"))?;
            let unit = if end_unit.is_empty() {
                step_unit
            } else {
                end_unit
            };
            let scale = |own: &str| match own {
                "" => Some(1.0),
                own => factor(own, unit),
            };
            let unknown = || bad("step and end are in units that do not go into each other");
            let step = step * scale(step_unit).ok_or_else(unknown)?;
            let end = end * scale(end_unit).ok_or_else(unknown)?;
            if !(step > 0.0 && step.is_finite() && end.is_finite() && end >= step) {
                return Err(bad("a step is above 0 and not above its end"));
            }
            parts.push(Part {
                step,
                end,
                unit: unit.to_owned(),
            });
        }
        Ok(Self { parts })
    }
}

/// A number and what stands behind it.
fn quantity(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_posted_table_has_fifty_rows_and_nineteen() {
        let edges = Steps::of_waits().edges("us").expect("a time");
        assert_eq!(edges.len(), 50 + 19 + 1);
        assert_eq!(edges[..3], [0.0, 10.0, 20.0]);
        assert_eq!(edges[49..53], [490.0, 500.0, 1000.0, 1500.0]);
        assert_eq!(edges.last(), Some(&10_000.0));
        let in_ns = Steps::of_waits().edges("ns").expect("a time");
        assert_eq!(in_ns[51], 1e6);
    }

    #[test]
    fn units_stand_on_either_end_or_on_none() {
        let edges = |text: &str, unit: &str| text.parse::<Steps>().and_then(|s| s.edges(unit));
        assert_eq!(edges("1..3", "us"), Ok(vec![0.0, 1.0, 2.0, 3.0]));
        assert_eq!(edges("1..3us", "us"), edges("1us..3us", "us"));
        assert_eq!(edges("500us..1ms", "us"), Ok(vec![0.0, 500.0, 1000.0]));
        assert_eq!(edges("2..4", ""), Ok(vec![0.0, 2.0, 4.0]));
    }

    #[test]
    fn what_is_no_row_is_refused() {
        for text in ["", "10us", "0..5", "x..5", "5..1", "1us..5KB", "inf..inf"] {
            assert!(text.parse::<Steps>().is_err(), "{text}");
        }
        let edges = |text: &str, unit: &str| text.parse::<Steps>().and_then(|s| s.edges(unit));
        assert!(edges("1us..3us", "KB").is_err());
        assert!(edges("0.000001..1000", "").is_err());
    }
}
