//! The command lines of workloads: a table of options, and a reader that takes arguments as GNU
//! `getopt` does.
//!
//! They are read by hand since their surfaces are those of existing tools: short options in
//! clusters, values attached or separate, operands anywhere. Abbreviated long options are not
//! understood. A number is read strictly: `2x` is refused, not taken for 2.

use crate::sys;
use std::ffi::OsString;
use std::fmt::Write;
use std::process::ExitCode;

/// Why the arguments were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// There is no such option.
    #[error("unknown option `{option}`\nhint: {hint}")]
    UnknownOption {
        /// As it was given.
        option: String,
        /// The nearest known one, or where to look.
        hint: String,
    },
    /// An option that needs a value stands last.
    #[error("option `{option}` needs a value\nhint: {option} {metavar}")]
    MissingValue {
        /// As it was given.
        option: String,
        /// What kind of value.
        metavar: &'static str,
    },
    /// A value was given to an option that takes none.
    #[error("option `{option}` takes no value\nhint: write `{option}` alone")]
    UnexpectedValue {
        /// As it was given.
        option: String,
    },
    /// A value or the size is no number that can be used.
    #[error("{what}: `{value}` {reason}\nhint: {hint}")]
    BadNumber {
        /// The option, or `size`.
        what: String,
        /// As it was given.
        value: String,
        /// What is wrong with it.
        reason: String,
        /// What would be right.
        hint: &'static str,
    },
    /// There are more or fewer operands than the tool takes.
    #[error("{message}\nhint: {hint}")]
    Operands {
        /// What is wrong.
        message: String,
        /// What would be right.
        hint: &'static str,
    },
    /// Options that do not go together, or one that needs another.
    #[error("{what}\nhint: {hint}")]
    Together {
        /// Which.
        what: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// An argument is not valid text.
    #[error("argument `{argument}` is not UTF-8\nhint: `--help` lists the options")]
    NotText {
        /// With replacement characters.
        argument: String,
    },
}

impl UsageError {
    /// The same with another hint, where it is about a number.
    fn with_hint(self, better: &'static str) -> Self {
        match self {
            Self::BadNumber {
                what,
                value,
                reason,
                ..
            } => Self::BadNumber {
                what,
                value,
                reason,
                hint: better,
            },
            other => other,
        }
    }
}

/// What the arguments of a tool ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation<O> {
    /// The help text.
    Help,
    /// A run.
    Run(Box<O>),
}

/// Exit status of a tool whose arguments are wrong.
pub(crate) const USAGE: u8 = 2;
/// Exit status of a tool that could not do its work.
pub(crate) const FAILED: u8 = 1;

/// The options of a run; where there is none the help text or what is wrong is told, and this is
/// how to end.
pub(crate) fn options_or_end<O>(
    tool: &str,
    asked: Result<Invocation<O>, UsageError>,
    help: fn() -> String,
) -> Result<Box<O>, ExitCode> {
    match asked {
        Ok(Invocation::Run(options)) => Ok(options),
        Ok(Invocation::Help) => Err(match sys::write_once(sys::STDOUT, help().as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(FAILED),
        }),
        Err(error) => {
            sys::complain(tool, &error);
            Err(ExitCode::from(USAGE))
        }
    }
}

/// What an option does with its value.
pub(crate) enum Effect<O> {
    Help,
    Flag(fn(&mut O)),
    /// A plain number within these bounds.
    Number(u64, u64, fn(&mut O, u64)),
    /// A number of bytes, with a suffix.
    Size(fn(&mut O, u64)),
    /// A time with a suffix ns, us or ms; nanoseconds without one.
    Time(fn(&mut O, u64)),
    /// A time with a suffix ns, us, ms or s, in nanoseconds; without one in units of so many
    /// nanoseconds.
    Span(u64, fn(&mut O, u64)),
    /// Two numbers with a colon between them.
    Pair(fn(&mut O, u64, u64)),
    Text(fn(&mut O, String)),
}

/// One line of the table of options.
pub(crate) struct Spec<O> {
    pub short: Option<char>,
    pub long: &'static str,
    /// Another spelling of `long`.
    pub alias: &'static str,
    pub metavar: &'static str,
    pub effect: Effect<O>,
    pub help: &'static str,
}

impl<O> Spec<O> {
    pub fn takes_value(&self) -> bool {
        !matches!(self.effect, Effect::Flag(_) | Effect::Help)
    }
}

pub(crate) const fn flag<O>(
    short: Option<char>,
    long: &'static str,
    set: fn(&mut O),
    help: &'static str,
) -> Spec<O> {
    value(short, long, "", Effect::Flag(set), help)
}

pub(crate) const fn value<O>(
    short: Option<char>,
    long: &'static str,
    metavar: &'static str,
    effect: Effect<O>,
    help: &'static str,
) -> Spec<O> {
    Spec {
        short,
        long,
        alias: "",
        metavar,
        effect,
        help,
    }
}

/// A flag with a second long name.
pub(crate) const fn also<O>(
    short: Option<char>,
    long: &'static str,
    alias: &'static str,
    set: fn(&mut O),
    help: &'static str,
) -> Spec<O> {
    Spec {
        short,
        long,
        alias,
        metavar: "",
        effect: Effect::Flag(set),
        help,
    }
}

/// What was read besides options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// One asks for help.
    Help,
    /// What is no option, in order.
    Operands(Vec<String>),
}

/// Lets the arguments after a tool's name take effect on its options.
///
/// # Errors
/// [`UsageError`], at the first argument that is wrong; `--help` wins over what follows it.
pub(crate) fn read<O>(
    table: &[Spec<O>],
    args: impl IntoIterator<Item = OsString>,
    options: &mut O,
) -> Result<Given, UsageError> {
    let mut args = args.into_iter().map(|argument| {
        argument.into_string().map_err(|raw| UsageError::NotText {
            argument: raw.to_string_lossy().into_owned(),
        })
    });
    let mut operands = Vec::new();
    while let Some(argument) = args.next().transpose()? {
        if argument == "--" {
            for rest in args.by_ref() {
                operands.push(rest?);
            }
        } else if let Some(long) = argument.strip_prefix("--") {
            if apply_long(table, long, &mut args, options)? {
                return Ok(Given::Help);
            }
        } else if argument.len() > 1 && argument.starts_with('-') {
            if cluster(table, &argument, &mut args, options)? {
                return Ok(Given::Help);
            }
        } else {
            operands.push(argument);
        }
    }
    Ok(Given::Operands(operands))
}

/// A line for each option, for a help text; `width` is that of the longest name with its value.
pub(crate) fn listed<O>(table: &[Spec<O>], width: usize) -> String {
    let mut text = String::new();
    for spec in table {
        let short = spec.short.map_or("    ".to_owned(), |c| format!("-{c}, "));
        let long = format!("--{} {}", spec.long, spec.metavar);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {short}{long:<width$} {}", spec.help);
    }
    text
}

/// Lets `NAME` or `NAME=VALUE`, which stood behind `--`, take effect; true when it asks for help.
fn apply_long<O>(
    table: &[Spec<O>],
    long: &str,
    args: &mut impl Iterator<Item = Result<String, UsageError>>,
    options: &mut O,
) -> Result<bool, UsageError> {
    let (name, attached) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (long, None),
    };
    let option = format!("--{name}");
    let spec = table
        .iter()
        .find(|spec| spec.long == name || !name.is_empty() && spec.alias == name)
        .ok_or_else(|| unknown_long(table, name))?;
    if attached.is_some() && !spec.takes_value() {
        return Err(UsageError::UnexpectedValue { option });
    }
    apply(spec, option, attached, args, options)
}

/// Reads short options written together, such as `-FPn4`; true when one asks for help.
fn cluster<O>(
    table: &[Spec<O>],
    argument: &str,
    args: &mut impl Iterator<Item = Result<String, UsageError>>,
    options: &mut O,
) -> Result<bool, UsageError> {
    let mut letters = argument.chars();
    letters.next();
    while let Some(letter) = letters.next() {
        let spec = table
            .iter()
            .find(|spec| spec.short == Some(letter))
            .ok_or_else(|| unknown_short(table, letter))?;
        let rest = letters.as_str();
        let attached = (spec.takes_value() && !rest.is_empty()).then(|| rest.to_owned());
        if apply(spec, format!("-{letter}"), attached, args, options)? {
            return Ok(true);
        }
        if spec.takes_value() {
            break;
        }
    }
    Ok(false)
}

/// Lets one option take effect; true when it asks for help.
fn apply<O>(
    spec: &Spec<O>,
    option: String,
    attached: Option<String>,
    args: &mut impl Iterator<Item = Result<String, UsageError>>,
    options: &mut O,
) -> Result<bool, UsageError> {
    if !spec.takes_value() {
        if let Effect::Flag(set) = spec.effect {
            set(options);
        }
        return Ok(matches!(spec.effect, Effect::Help));
    }
    let text = match attached {
        Some(text) => text,
        None => args
            .next()
            .transpose()?
            .ok_or_else(|| UsageError::MissingValue {
                option: option.clone(),
                metavar: spec.metavar,
            })?,
    };
    match spec.effect {
        Effect::Number(min, max, set) => set(options, number(&option, &text, false, min, max)?),
        Effect::Size(set) => set(options, number(&option, &text, true, 0, u64::MAX)?),
        Effect::Time(set) => {
            let read = time(&option, &text, &UNITS[..3], 1);
            set(
                options,
                read.map_err(|e| e.with_hint("a time such as 500ns, 20us or 1ms"))?,
            );
        }
        Effect::Span(unit, set) => {
            let read = time(&option, &text, &UNITS, unit);
            set(
                options,
                read.map_err(|e| e.with_hint("a time such as 20us, 1ms or 3s"))?,
            );
        }
        Effect::Pair(set) => {
            let (first, second) = text.split_once(':').unwrap_or((&text, ""));
            let of = |part: &str| {
                let read = number(&option, part, false, 0, 1023);
                read.map_err(|error| error.with_hint("two nodes such as 0:1"))
            };
            set(options, of(first)?, of(second)?);
        }
        Effect::Text(set) => set(options, text),
        Effect::Flag(_) | Effect::Help => {}
    }
    Ok(false)
}

/// Suffixes of times, and how many nanoseconds each is. `s` is last since others end in it.
const UNITS: [(&str, u64); 4] = [
    ("ns", 1),
    ("us", 1000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];

/// Nanoseconds: a number with one of these suffixes behind it, or nothing for `unit`.
fn time(what: &str, text: &str, units: &[(&str, u64)], unit: u64) -> Result<u64, UsageError> {
    let (digits, scale) = units
        .iter()
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)))
        .unwrap_or((text, unit));
    Ok(number(what, digits, false, 0, u64::MAX / scale)? * scale)
}

/// A decimal or `0x` number between `min` and `max`, with a suffix k, m, g or t (powers of 1024)
/// if `sized`.
pub(crate) fn number(
    what: &str,
    text: &str,
    sized: bool,
    min: u64,
    max: u64,
) -> Result<u64, UsageError> {
    let bad = |reason: String| UsageError::BadNumber {
        what: what.to_owned(),
        value: text.to_owned(),
        reason,
        hint: match sized {
            true => "a number of bytes such as 4096, 0x1000, 64k, 16m, 1g or 2t",
            false => "a whole number such as 4",
        },
    };
    let suffix = match text.chars().next_back() {
        Some(last) if sized => "kmgt".find(last.to_ascii_lowercase()),
        _ => None,
    };
    let (digits, shift) = match (suffix, text.split_at_checked(text.len().saturating_sub(1))) {
        (Some(place), Some((digits, _))) => (digits, 10 * (place + 1)),
        _ => (text, 0),
    };
    let hexadecimal = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    let (digits, radix) = match hexadecimal {
        Some(digits) => (digits, 16),
        None => (digits, 10),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(bad("is not a number".to_owned()));
    }
    if radix == 10 && digits.len() > 1 && digits.starts_with('0') {
        // C programs take it for octal; people do not.
        return Err(bad("begins with 0, which is ambiguous".to_owned()));
    }
    let number = u64::from_str_radix(digits, radix)
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| bad("is too large for 64 bits".to_owned()))?;
    match number {
        small if small < min => Err(bad(format!("is less than {min}"))),
        large if large > max => Err(bad(format!("is more than {max}"))),
        fits => Ok(fits),
    }
}

fn unknown_long<O>(table: &[Spec<O>], name: &str) -> UsageError {
    let nearest = table
        .iter()
        .map(|spec| (distance(name, spec.long), spec.long))
        .min()
        .filter(|(distance, long)| *distance <= long.len() / 3);
    UsageError::UnknownOption {
        option: format!("--{name}"),
        hint: match nearest {
            Some((_, long)) => format!("did you mean `--{long}`?"),
            None => "`--help` lists the options".to_owned(),
        },
    }
}

fn unknown_short<O>(table: &[Spec<O>], letter: char) -> UsageError {
    let twin = table
        .iter()
        .find(|spec| spec.short.is_some_and(|c| c.eq_ignore_ascii_case(&letter)));
    UsageError::UnknownOption {
        option: format!("-{letter}"),
        hint: match twin {
            Some(Spec {
                short: Some(c),
                long,
                ..
            }) => format!("did you mean `-{c}` (--{long})?"),
            _ => "`--help` lists the options".to_owned(),
        },
    }
}

/// The edit distance of two words (Levenshtein 1966), one row of the table at a time.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut left = i + 1;
        let mut diagonal = i;
        for (y, cell) in b.chars().zip(row.iter_mut().skip(1)) {
            let above = *cell;
            left = (diagonal + usize::from(x != y))
                .min(above + 1)
                .min(left + 1);
            diagonal = above;
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edit_distance_is_the_known_one() {
        for (a, b, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("repeat", "repeat", 0),
        ] {
            assert_eq!(distance(a, b), edits);
            assert_eq!(distance(b, a), edits);
        }
    }

    #[test]
    fn a_span_has_a_unit_of_its_own_or_a_suffix() {
        for (text, nanoseconds) in [
            ("2", 2_000_000_000),
            ("7ns", 7),
            ("500us", 500_000),
            ("250ms", 250_000_000),
            ("3s", 3_000_000_000),
        ] {
            assert_eq!(
                time("-t", text, &UNITS, 1_000_000_000),
                Ok(nanoseconds),
                "{text}"
            );
        }
        for text in ["", "s", "1.5s", "-1", "18446744074s"] {
            assert!(time("-t", text, &UNITS, 1_000_000_000).is_err(), "{text}");
        }
    }
}
