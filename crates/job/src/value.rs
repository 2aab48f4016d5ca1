//! Sizes, times, counts and percentages as jobs write them.
//!
//! A typed option asks for its kind of value; only then text becomes a number.

/// Why a text is not a value of the kind asked for: the reason and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue {
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub hint: &'static str,
}

impl BadValue {
    fn new(message: impl Into<String>, hint: &'static str) -> Self {
        Self {
            message: message.into(),
            hint,
        }
    }
}

const SIZE_HINT: &str = "write a size as 512K, 256M, 4G or 50% of memory (powers of 1024)";
const TIME_HINT: &str = "write a time as 300s, 5m, 1h or 200ms (a bare number is seconds)";
const COUNT_HINT: &str = "write a whole number, such as 4";
const TASKS_HINT: &str = "write a number of tasks (4 or 32t) or a share of the CPUs (50%, 100%)";

/// What shares are taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// CPUs of the testbox.
    pub cpus: u32,
    /// Memory of the testbox, bytes.
    pub memory_bytes: u64,
}

/// Splits a number (digits with an optional fraction) from the unit behind it.
fn split_number(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let well_formed = !number.is_empty()
        && number.matches('.').count() <= 1
        && !number.starts_with('.')
        && !number.ends_with('.');
    well_formed.then_some((number, unit.trim_start()))
}

/// `number x scale`, exact for whole numbers, rounded down for fractions; `None` on overflow.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    if fraction.is_empty() {
        return Some(whole);
    }
    let digits = &fraction[..fraction.len().min(9)];
    let part = digits.parse::<u128>().ok()? * u128::from(scale)
        / 10u128.pow(u32::try_from(digits.len()).ok()?);
    whole.checked_add(u64::try_from(part).ok()?)
}

fn percent_of(number: &str, whole: u64) -> Option<u64> {
    // Three more digits than percent keep `12.5%` exact.
    let permyriad = scaled(number, 1000)?;
    let share = u128::from(permyriad) * u128::from(whole) / 100_000;
    u64::try_from(share).ok()
}

/// Bytes: `512K`, `16G`, `8T` in powers of 1024, plain bytes, or a share of memory.
///
/// # Errors
/// Not a size, an unknown unit, or more than 64 bits.
pub fn size_bytes(text: &str, of: Whole) -> Result<u64, BadValue> {
    let not = || BadValue::new(format!("`{text}` is not a size"), SIZE_HINT);
    let (number, unit) = split_number(text).ok_or_else(not)?;
    let overflow = || BadValue::new(format!("`{text}` is more than 64 bits can hold"), SIZE_HINT);
    let shift = match unit
        .trim_end_matches("iB")
        .trim_end_matches('B')
        .to_ascii_lowercase()
        .as_str()
    {
        "%" => return percent_of(number, of.memory_bytes).ok_or_else(overflow),
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        "p" => 50,
        _ => {
            return Err(BadValue::new(
                format!("`{unit}` is not a unit of size"),
                SIZE_HINT,
            ));
        }
    };
    scaled(number, 1 << shift).ok_or_else(overflow)
}

/// Milliseconds: `300s`, `5m`, `1h`, `200ms`; a bare number is seconds.
///
/// # Errors
/// Not a time, an unknown unit, or more than 64 bits.
pub fn time_ms(text: &str) -> Result<u64, BadValue> {
    let not = || BadValue::new(format!("`{text}` is not a time"), TIME_HINT);
    let (number, unit) = split_number(text).ok_or_else(not)?;
    let scale = match unit {
        "ms" => 1,
        "" | "s" | "sec" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => {
            return Err(BadValue::new(
                format!("`{unit}` is not a unit of time"),
                TIME_HINT,
            ));
        }
    };
    scaled(number, scale)
        .ok_or_else(|| BadValue::new(format!("`{text}` is more than 64 bits can hold"), TIME_HINT))
}

/// A whole number; `3x` (times) is one too.
///
/// # Errors
/// Not a whole number, or more than 64 bits.
pub fn count(text: &str) -> Result<u64, BadValue> {
    let digits = text.strip_suffix('x').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(BadValue::new(
            format!("`{text}` is not a whole number"),
            COUNT_HINT,
        ));
    }
    digits.parse().map_err(|_| {
        BadValue::new(
            format!("`{text}` is more than 64 bits can hold"),
            COUNT_HINT,
        )
    })
}

/// Tasks: `4`, `32t`, or a share of the testbox's CPUs, rounded down but at least 1.
///
/// # Errors
/// Not a number of tasks, zero, or more than a machine can have.
pub fn tasks(text: &str, of: Whole) -> Result<u64, BadValue> {
    const MOST: u64 = 1 << 22;
    let not = || BadValue::new(format!("`{text}` is not a number of tasks"), TASKS_HINT);
    let (number, unit) = split_number(text).ok_or_else(not)?;
    let tasks = match unit {
        "%" => percent_of(number, u64::from(of.cpus))
            .map(|n| n.max(u64::from(number.parse() != Ok(0.0)))),
        "" | "t" if !number.contains('.') => number.parse().ok(),
        _ => return Err(not()),
    };
    match tasks {
        Some(0) => Err(BadValue::new(
            format!("`{text}` is no task at all"),
            TASKS_HINT,
        )),
        Some(n) if n <= MOST => Ok(n),
        _ => Err(BadValue::new(
            format!("`{text}` is more tasks than Linux can have"),
            TASKS_HINT,
        )),
    }
}

/// `true`/`yes`/`on`/`1` or `false`/`no`/`off`/`0`.
///
/// # Errors
/// Anything else.
pub fn flag(text: &str) -> Result<bool, BadValue> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err(BadValue::new(
            format!("`{text}` is neither true nor false"),
            "write true or false",
        )),
    }
}

/// A CPU list in the kernel's form (`0-3,8`), checked and returned without blanks.
///
/// # Errors
/// As [`cpus`].
pub fn cpu_list(text: &str) -> Result<String, BadValue> {
    cpus(text)?;
    Ok(text.chars().filter(|c| !c.is_whitespace()).collect())
}

/// The CPUs of a list in the kernel's form, in the order of the list.
///
/// # Errors
/// Not such a list, a range that runs backwards, or a CPU beyond 4095.
pub fn cpus(list: &str) -> Result<Vec<u32>, BadValue> {
    let bad = |why: &str| {
        BadValue::new(
            format!("`{list}` is not a list of CPUs: {why}"),
            "write CPUs as 0, 0-3 or 0-3,8",
        )
    };
    let cpu = |part: &str| part.trim().parse::<u32>().ok().filter(|n| *n < 4096);
    let mut all = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (cpu(first), cpu(last)) {
            (Some(first), Some(last)) if first <= last => all.extend(first..=last),
            (Some(_), Some(_)) => return Err(bad("a range runs backwards")),
            _ => return Err(bad("it holds something that is no CPU number below 4096")),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: Whole = Whole {
        cpus: 8,
        memory_bytes: 28 << 30,
    };

    #[test]
    fn sizes_are_powers_of_1024_or_shares_of_memory() {
        assert_eq!(size_bytes("8T", BOX), Ok(8 << 40));
        assert_eq!(size_bytes("512K", BOX), Ok(512 << 10));
        assert_eq!(size_bytes("1.5g", BOX), Ok(3 << 29));
        assert_eq!(size_bytes("256MiB", BOX), Ok(256 << 20));
        assert_eq!(size_bytes("50%", BOX), Ok(14 << 30));
        assert_eq!(size_bytes("4096", BOX), Ok(4096));
        for bad in [
            "",
            "M",
            "-1",
            "1X",
            "1..2",
            "0x10",
            "99999999999999999999",
            "17000000T",
        ] {
            assert!(size_bytes(bad, BOX).is_err(), "{bad}");
        }
    }

    #[test]
    fn tasks_are_numbers_or_shares_rounded_down() {
        assert_eq!(tasks("50%", BOX), Ok(4));
        assert_eq!(tasks("1600%", BOX), Ok(128));
        assert_eq!(tasks("32t", BOX), Ok(32));
        assert_eq!(tasks("1%", BOX), Ok(1));
        assert_eq!(tasks("12.5%", BOX), Ok(1));
        for bad in ["0", "0%", "1.5", "x", "99999999999"] {
            assert!(tasks(bad, BOX).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_counts_flags_and_cpu_lists() {
        assert_eq!(time_ms("300s"), Ok(300_000));
        assert_eq!(time_ms("5m"), Ok(300_000));
        assert_eq!(time_ms("20"), Ok(20_000));
        assert_eq!(time_ms("0.5s"), Ok(500));
        assert!(time_ms("5 parsecs").is_err());
        assert_eq!(count("3x"), Ok(3));
        assert!(count("08x9").is_err());
        assert_eq!(count("08"), Ok(8));
        assert_eq!(flag("Yes"), Ok(true));
        assert!(flag("maybe").is_err());
        assert_eq!(cpu_list("0-3, 8").as_deref(), Ok("0-3,8"));
        assert!(cpu_list("3-1").is_err());
        assert!(cpu_list("").is_err());
    }
}
