//! Units of time, and values with them.

use crate::number::general;

/// Units of time, each with how many nanoseconds it has.
const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// Nanoseconds of a unit of time; `None` for another unit.
#[must_use]
pub fn nanoseconds(unit: &str) -> Option<f64> {
    TIMES
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, scale)| *scale)
}

/// By what a value in one unit is multiplied to be in another: 1 for the same, `None` where the two
/// do not go into each other.
#[must_use]
pub fn factor(from: &str, to: &str) -> Option<f64> {
    if from == to {
        return Some(1.0);
    }
    Some(nanoseconds(from)? / nanoseconds(to)?)
}

/// The name that bcc's tools give a unit of time: `usecs`; any other unit as it is.
#[must_use]
pub fn in_seconds(unit: &str) -> String {
    match nanoseconds(unit) {
        Some(_) if unit == "s" => "secs".to_owned(),
        Some(_) => format!("{}secs", unit.trim_end_matches('s')),
        None => unit.to_owned(),
    }
}

/// A value with its unit; times in the unit that suits them.
#[must_use]
pub fn label(value: f64, unit: &str) -> String {
    let (number, unit) = suited(value, unit);
    let number = general(number, 4);
    match unit {
        "" => number,
        unit => format!("{number} {unit}"),
    }
}

/// From `low` to `high` in the unit that suits the lower end, or, where that is much smaller, the
/// other.
#[must_use]
pub fn range(low: f64, high: f64, unit: &str) -> String {
    const FAR: f64 = 100.0;
    let suiting = if low * FAR >= high { low } else { high };
    let to = suited(suiting, unit).1;
    let factor = factor(unit, to).unwrap_or(1.0);
    let (low, high) = (general(low * factor, 4), general(high * factor, 4));
    let number = match low == high {
        true => high,
        false => format!("{low}..{high}"),
    };
    match to {
        "" => number,
        to => format!("{number} {to}"),
    }
}

/// The value in the largest unit of time in which it is at least 1.
fn suited(value: f64, unit: &str) -> (f64, &str) {
    let Some(scale) = nanoseconds(unit) else {
        return (value, unit);
    };
    // A rounding must not make 1 ms of 1000 us less than one.
    let in_ns = value * scale * (1.0 + 1e-12);
    let fitting = TIMES.iter().rev().find(|(_, size)| in_ns >= *size);
    let (name, size) = fitting.unwrap_or(&TIMES[0]);
    (value * scale / size, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_unit_that_suits_them() {
        for (value, unit, text) in [
            (0.0, "ns", "0 ns"),
            (999.0, "ns", "999 ns"),
            (1500.0, "ns", "1.5 us"),
            (2e6, "us", "2 s"),
            (0.25, "ms", "250 us"),
            (12.0, "KB", "12 KB"),
            (12.0, "", "12"),
        ] {
            assert_eq!(label(value, unit), text);
        }
        assert_eq!(range(500.0, 1000.0, "us"), "500..1000 us");
        assert_eq!(range(0.0, 1000.0, "us"), "0..1 ms");
        assert_eq!(range(3.0, 4.0, "s"), "3..4 s");
        assert_eq!(range(3.0, 4.0, ""), "3..4");
        assert_eq!(range(3.0, 3.0, "us"), "3 us");
    }

    #[test]
    fn units_go_into_each_other_where_they_are_times() {
        assert_eq!(factor("ms", "us"), Some(1000.0));
        assert_eq!(factor("KB", "KB"), Some(1.0));
        assert_eq!(factor("KB", "us"), None);
        assert_eq!(in_seconds("us"), "usecs");
        assert_eq!(in_seconds("s"), "secs");
        assert_eq!(in_seconds("pages"), "pages");
    }
}
