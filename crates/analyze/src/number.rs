//! Numbers as C's printf prints them.
//!
//! Kernel people compare our tables with those of tools written in C and Ruby, down to the last
//! column, so `%g` is needed exactly; Rust has no counterpart. Both libraries round the exact
//! binary value, so digits agree.

/// `%.{precision}g` of a finite number; `-` for one that is not, since NaN is never shown.
#[must_use]
pub fn general(value: f64, precision: usize) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let digits = precision.max(1);
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = split_exponent(&scientific);
    // C99 7.19.6.1: fixed when precision > X >= -4, with precision - 1 - X decimals.
    match usize::try_from(i64::try_from(digits).unwrap_or(i64::MAX) - 1 - exponent) {
        Ok(decimals) if exponent >= -4 => trimmed(&format!("{value:.decimals$}")).to_owned(),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
        }
    }
}

/// The same with a sign in front of what is not negative, `%+.{precision}g`.
#[must_use]
pub fn general_signed(value: f64, precision: usize) -> String {
    let text = general(value, precision);
    if text.starts_with('-') {
        text
    } else {
        format!("+{text}")
    }
}

/// A figure for people, outside tables: its integer part from 1000 on, else four digits.
#[must_use]
pub fn plain(value: f64) -> String {
    const WIDEST: f64 = 1e15;
    if (1000.0..WIDEST).contains(&value.abs()) {
        format!("{value:.0}")
    } else {
        general(value, 4)
    }
}

/// The shortest text that reads back as the same number, for machine-readable forms: decimal
/// notation between 1e-5 and 1e16, scientific outside.
#[must_use]
pub fn exact(value: f64) -> String {
    if !value.is_finite() {
        return String::new();
    }
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-5..1e16).contains(&magnitude) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

fn split_exponent(scientific: &str) -> (&str, i64) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    (mantissa, exponent.parse().unwrap_or(0))
}

/// Without trailing zeros behind a decimal point.
fn trimmed(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Printed by the C library's printf.
    #[test]
    fn agrees_with_the_c_library() {
        for (value, precision, expected) in [
            (0.0, 4, "0"),
            (-0.0, 4, "-0"),
            (1.0, 4, "1"),
            (0.0001, 4, "0.0001"),
            (0.00001234, 4, "1.234e-05"),
            (9999.4, 4, "9999"),
            (9999.5, 4, "1e+04"),
            (1.053e9, 4, "1.053e+09"),
            (1.05e9, 4, "1.05e+09"),
            (123_456.0, 2, "1.2e+05"),
            (100_000.0, 2, "1e+05"),
            (1.3e102, 2, "1.3e+102"),
            (23_826.612_012, 8, "23826.612"),
            (81_572.087_37, 8, "81572.087"),
            (3_537_057.6, 8, "3537057.6"),
            (11_887_346.0, 8, "11887346"),
            (118_873_461.0, 8, "1.1887346e+08"),
            (2.5, 1, "2"),
            (3.5, 1, "4"),
            (0.5, 0, "0.5"),
            (5e-324, 4, "4.941e-324"),
            (1e300, 4, "1e+300"),
            (f64::MAX, 8, "1.7976931e+308"),
            (-1.5e-7, 3, "-1.5e-07"),
        ] {
            assert_eq!(
                general(value, precision),
                expected,
                "%.{precision}g of {value}"
            );
        }
    }

    #[test]
    fn signs() {
        assert_eq!(general_signed(123_456.0, 2), "+1.2e+05");
        assert_eq!(general_signed(-123_456.0, 2), "-1.2e+05");
        assert_eq!(general_signed(0.0, 2), "+0");
    }

    #[test]
    fn never_nan() {
        assert_eq!(general(f64::NAN, 4), "-");
        assert_eq!(general(f64::NEG_INFINITY, 4), "-");
        assert_eq!(exact(f64::NAN), "");
    }

    proptest! {
        #[test]
        fn seventeen_digits_read_back(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
            prop_assert_eq!(general(value, 17).parse::<f64>().expect("number"), value);
            prop_assert_eq!(exact(value).parse::<f64>().expect("number"), value);
        }

        #[test]
        fn the_error_is_half_a_unit_of_the_last_digit(
            value in any::<f64>().prop_filter("normal", |v| v.is_normal()),
            precision in 1_usize..12,
        ) {
            let text = general(value, precision);
            let read: f64 = text.parse().expect("number");
            let half = 0.5 * 10_f64.powi(1 - i32::try_from(precision).expect("small"));
            if read.is_finite() {
                prop_assert!(((read - value) / value).abs() <= half * (1.0 + 1e-9), "{}", text);
            }
            let mantissa = text.split('e').next().expect("mantissa");
            prop_assert!(!mantissa.contains('.') || !mantissa.ends_with(['0', '.']), "{}", text);
        }
    }
}
