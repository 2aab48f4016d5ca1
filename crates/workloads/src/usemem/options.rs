//! The command line of `usemem`: a table of options, and a parser that reads it as GNU `getopt`
//! does.
//!
//! It is parsed by hand since its surface is that of an existing tool: short options in
//! clusters, values attached or separate, operands anywhere. Abbreviated long options are not
//! understood. A number is read strictly: `2x` is refused, not taken for 2.

mod table;

use std::ffi::OsString;
use std::fmt::Write;
use table::{Effect, MOST_NODES, Spec, TABLE};

pub use table::{AfterSignal, Options};

impl Options {
    /// Bytes of one piece of memory: the unit, but no more than the size.
    #[must_use]
    pub fn unit_bytes(&self) -> u64 {
        match self.unit {
            0 => self.size,
            unit => unit.min(self.size),
        }
    }

    /// Whether anybody writes words, so that a file must be open for writing.
    #[must_use]
    pub fn writes(&self) -> bool {
        !self.readonly || self.after_signal.write || self.main_write_data
    }

    /// Whether each process has a file of its own, or all have one.
    #[must_use]
    pub fn has_file(&self) -> bool {
        self.file.is_some() || self.each_file.is_some() || self.memfd
    }
}

/// What the arguments ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// The help text.
    Help,
    /// A run.
    Run(Box<Options>),
}

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
    /// There is not exactly one operand.
    #[error(
        "{count} sizes are given, one is needed\nhint: the size comes last, as in `usemem -O 1g`"
    )]
    Operands {
        /// How many there are.
        count: usize,
    },
    /// Huge pages were asked for in a mapping of a file.
    #[error("`-U` needs anonymous memory\nhint: add `-O`")]
    HugetlbNeedsAnonymous,
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

/// The help text.
#[must_use]
pub fn help() -> String {
    let mut text = String::from(
        "Usage: usemem [OPTIONS] SIZE\n\n\
         Makes tasks that each pass over SIZE bytes of memory, one 8-byte word at a time, and\n\
         prints a line for each: `BYTES bytes / TIME usecs = RATE KB/s`. The time includes\n\
         obtaining the memory and making the tasks. SIZE takes a suffix k, m, g or t.\n\n\
         Options:\n",
    );
    for spec in TABLE {
        let short = spec.short.map_or("    ".to_owned(), |c| format!("-{c}, "));
        let long = format!("--{} {}", spec.long, spec.metavar);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {short}{long:<24} {}", spec.help);
    }
    text.push_str(
        "\nExamples:\n  \
         usemem -n 2 -O 1g                          two processes fault and write 1 GiB each\n  \
         usemem -n 2 --prealloc --prefault -O 1g    each copies on write what the parent mapped\n  \
         usemem -t 4 -R --runtime 30 -O 2g          four threads, random order, 30 s at most\n  \
         usemem -n 2 -P -F -O -U 512m               with huge pages; the pool needs 768 of them\n  \
         usemem -n 4 -o --each-file /mnt/f 1g       four processes read sparse files of their own\n  \
         usemem -O --madv-pageout -W --no-signal 1g push pages out and read them back\n",
    );
    text
}

/// Reads the arguments after the tool's name.
///
/// # Errors
/// [`UsageError`], at the first argument that is wrong; `--help` wins over what follows it.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Invocation, UsageError> {
    let mut args = args.into_iter().map(|argument| {
        argument.into_string().map_err(|raw| UsageError::NotText {
            argument: raw.to_string_lossy().into_owned(),
        })
    });
    let mut options = Options::default();
    let mut operands = Vec::new();
    while let Some(argument) = args.next().transpose()? {
        if argument == "--" {
            for rest in args.by_ref() {
                operands.push(rest?);
            }
        } else if let Some(long) = argument.strip_prefix("--") {
            let (name, attached) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let option = format!("--{name}");
            let spec = TABLE
                .iter()
                .find(|spec| spec.long == name || !name.is_empty() && spec.alias == name)
                .ok_or_else(|| unknown_long(name))?;
            if attached.is_some() && !spec.takes_value() {
                return Err(UsageError::UnexpectedValue { option });
            }
            if apply(spec, option, attached, &mut args, &mut options)? {
                return Ok(Invocation::Help);
            }
        } else if argument.len() > 1 && argument.starts_with('-') {
            if cluster(&argument, &mut args, &mut options)? {
                return Ok(Invocation::Help);
            }
        } else {
            operands.push(argument);
        }
    }
    match operands.as_slice() {
        [_] if options.size > 0 => {
            return Err(UsageError::Together {
                what: "the size is given twice",
                hint: "leave -m or the operand out",
            });
        }
        [size] => options.size = number("size", size, true, 0, u64::MAX)?,
        [] if options.size > 0 || options.pool_cycles > 0 => {}
        other => return Err(UsageError::Operands { count: other.len() }),
    }
    check(&options)?;
    Ok(Invocation::Run(Box::new(options)))
}

/// Refuses what does not go together.
fn check(o: &Options) -> Result<(), UsageError> {
    if o.hugetlb && !o.anonymous {
        return Err(UsageError::HugetlbNeedsAnonymous);
    }
    let wrong = conflicts(o).into_iter().find(|(wrong, ..)| *wrong);
    match wrong {
        Some((_, what, hint)) => Err(UsageError::Together { what, hint }),
        None => Ok(()),
    }
}

/// A rule: whether it is broken, what is wrong then, and what to do.
type Rule = (bool, &'static str, &'static str);

fn conflicts(o: &Options) -> Vec<Rule> {
    [sources(o), passes(o), follow_up(o)].concat()
}

/// Rules about where memory comes from.
fn sources(o: &Options) -> Vec<Rule> {
    let kinds = [
        o.file.is_some(),
        o.each_file.is_some(),
        o.memfd,
        o.anonymous,
        o.malloc,
        o.shm_lock,
    ];
    let end = o.offset.checked_add(o.size);
    vec![
        (
            kinds.iter().filter(|kind| **kind).count() > 1,
            "memory is asked for in two ways",
            "give one of -f, --each-file, --memfd, -O, -a, -L",
        ),
        (
            (o.read_file || o.direct_write) && (o.memfd || !o.has_file()),
            "--read-file and --direct-write are about a file",
            "add -f FILE or --each-file PREFIX",
        ),
        (
            o.read_file && o.direct_write,
            "a file is either read or written",
            "leave --read-file or --direct-write out",
        ),
        (
            !o.offset.is_multiple_of(super::sys::page_bytes() as u64),
            "the offset is not that of a page",
            "give a multiple of 4k, or of the pages that this machine has",
        ),
        (
            o.has_file() && end.is_none_or(|end| i64::try_from(end).is_err()),
            "no file is so long",
            "give a smaller size or offset",
        ),
        (
            o.each_file.is_some() && o.prealloc,
            "each process has a file of its own and -P maps one",
            "give -f FILE, or leave -P out",
        ),
        (
            o.fresh && (o.memfd || !o.has_file()),
            "--fresh is about files",
            "add -f FILE or --each-file PREFIX",
        ),
        (
            o.main_write_data && !o.prealloc,
            "--main-write-data is about what the parent mapped",
            "add -P",
        ),
    ]
}

/// Rules about the passes and the calls at each.
fn passes(o: &Options) -> Vec<Rule> {
    let of_a_mapping = o.prealloc
        || o.prefault
        || o.mlock
        || o.msync
        || o.msync_async
        || o.remap
        || o.mincore
        || o.mincore_huge
        || o.madv_thp
        || o.touch_alloc
        || o.read_again
        || o.first_access_speed
        || o.delay_ns > 0
        || o.step > 0
        || o.unit > 0
        || o.init_time
        || o.show_addr
        || o.after_signal.is_any()
        || follows(o);
    vec![
        (
            (o.msync || o.msync_async || o.advise || o.fallocate_punch_holes) && !o.has_file(),
            "-S, -A, -D and --fallocate-punch-holes are about a file",
            "add -f FILE, --each-file PREFIX or --memfd",
        ),
        (
            (o.read_file || o.direct_write) && of_a_mapping,
            "a file that is not mapped is no memory",
            "leave out what is about memory: -P -F -M -E -N -H -u -j -e -Z, --madv-..., -W, ...",
        ),
        (
            o.remap && (o.prealloc || o.malloc || o.shm_lock),
            "-E moves a mapping that others use, or that is not ours to move",
            "leave -P, -a and -L out",
        ),
    ]
}

/// Whether a call about memory follows the passes.
fn follows(o: &Options) -> bool {
    o.madv_pageout
        || o.punch_holes
        || o.fallocate_punch_holes
        || o.migrate.is_some()
        || o.mbind.is_some()
        || o.ksm
}

/// Rules about what follows the passes.
fn follow_up(o: &Options) -> Vec<Rule> {
    let after = &o.after_signal;
    let holes = o.punch_holes || o.fallocate_punch_holes || after.punch_holes;
    let shared = o.has_file() || o.shm_lock || o.prealloc && o.threads > 1;
    let detailed = after.read_count > 0
        || after.read_random
        || after.write_times > 0
        || after.write_data.is_some()
        || after.fork
        || after.again
        || after.at_once;
    vec![
        (
            o.truncate && o.each_file.is_none(),
            "--truncate is about files of the processes",
            "add --each-file PREFIX",
        ),
        (
            (o.punch_holes || after.punch_holes) && (o.has_file() || o.shm_lock || o.hugetlb),
            "only private pages of the usual size can be given back one by one",
            "give --fallocate-punch-holes for a file; leave -L and -U out",
        ),
        (
            o.migrate.is_some_and(|(from, to)| from == to),
            "pages are to be migrated to the node that they are on",
            "give two nodes, as --migrate 0:1",
        ),
        (
            (o.ksm || o.migrate.is_some()) && o.threads > 1,
            "the kernel merges and migrates by process",
            "give -n instead of -t",
        ),
        (
            o.ksm && (o.readonly || o.has_file() || o.shm_lock || o.hugetlb),
            "only private pages that are written can be merged",
            "leave -o, files, -L and -U out",
        ),
        (
            detailed && !after.is_any(),
            "nothing is done when the signal comes",
            "add -W, --write-signal-write, --write-signal-madv-thp or --signal-punch-holes",
        ),
        (
            after.at_once && after.again,
            "without a signal there is nothing to wait for again",
            "leave --signal-loop or --no-signal out",
        ),
        (
            after.verify && (o.readonly || o.random || o.step >= 16 || o.ksm || holes),
            "not every word holds what --signal-verify looks for",
            "leave -o, -R, -j, --ksm and holes out",
        ),
        (
            after.verify && o.prealloc && o.unit_bytes() < o.size,
            "of what the parent mapped only the first unit is written",
            "leave -u out",
        ),
        (
            after.verify && shared && after.write_data.is_some(),
            "one task writes what another verifies",
            "leave --signal-write-data out, or give each task its own memory",
        ),
        (
            after.verify && !after.read,
            "--signal-verify is about words that are read",
            "add -W",
        ),
    ]
}

/// Reads short options written together, such as `-FPn4`; true when one asks for help.
fn cluster(
    argument: &str,
    args: &mut impl Iterator<Item = Result<String, UsageError>>,
    options: &mut Options,
) -> Result<bool, UsageError> {
    let mut letters = argument.chars();
    letters.next();
    while let Some(letter) = letters.next() {
        let spec = TABLE
            .iter()
            .find(|spec| spec.short == Some(letter))
            .ok_or_else(|| unknown_short(letter))?;
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
fn apply(
    spec: &Spec,
    option: String,
    attached: Option<String>,
    args: &mut impl Iterator<Item = Result<String, UsageError>>,
    options: &mut Options,
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
            let hint = "a time such as 500ns, 20us or 1ms";
            set(
                options,
                time(&option, &text).map_err(|e| e.with_hint(hint))?,
            );
        }
        Effect::Pair(set) => {
            let (first, second) = text.split_once(':').unwrap_or((&text, ""));
            let of = |part: &str| {
                let read = number(&option, part, false, 0, MOST_NODES);
                read.map_err(|e| e.with_hint("two nodes such as 0:1"))
            };
            set(options, of(first)?, of(second)?);
        }
        Effect::Text(set) => set(options, text),
        Effect::Flag(_) | Effect::Help => {}
    }
    Ok(false)
}

/// Nanoseconds: a number with ns, us or ms behind it, or nothing.
fn time(what: &str, text: &str) -> Result<u64, UsageError> {
    let (digits, scale) = [("ns", 1), ("us", 1000), ("ms", 1_000_000)]
        .into_iter()
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))
        .unwrap_or((text, 1));
    Ok(number(what, digits, false, 0, u64::MAX / scale)? * scale)
}

/// A decimal or `0x` number between `min` and `max`, with a suffix k, m, g or t (powers of 1024)
/// if `sized`.
fn number(what: &str, text: &str, sized: bool, min: u64, max: u64) -> Result<u64, UsageError> {
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

fn unknown_long(name: &str) -> UsageError {
    let nearest = TABLE
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

fn unknown_short(letter: char) -> UsageError {
    let twin = TABLE
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

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn run(line: &str) -> Options {
        match parse(words(line)) {
            Ok(Invocation::Run(options)) => *options,
            other => panic!("`{line}` gave {other:?}"),
        }
    }

    fn refused(line: &str) -> UsageError {
        parse(words(line)).expect_err(line)
    }

    #[test]
    fn the_lines_of_the_suite_are_understood() {
        let cow = run("--runtime 300 -n 2 --prealloc --prefault -O -U 1073741824");
        let expected = Options {
            runtime: 300,
            processes: 2,
            prealloc: true,
            prefault: true,
            anonymous: true,
            hugetlb: true,
            size: 1 << 30,
            ..Options::default()
        };
        assert_eq!(cow, expected);
        let random = run("--runtime=5 -t 4 --random --random-seed 9 --readonly 64m");
        let expected = Options {
            runtime: 5,
            threads: 4,
            random: true,
            random_seed: Some(9),
            readonly: true,
            size: 64 << 20,
            ..Options::default()
        };
        assert_eq!(random, expected);
    }

    #[test]
    fn clusters_attached_separate_and_long_forms_are_the_same() {
        let expected = Options {
            processes: 4,
            prefault: true,
            prealloc: true,
            quiet: true,
            repeat: 3,
            unit: 4096,
            step: 64,
            anonymous: true,
            madv_thp: true,
            size: 1 << 20,
            ..Options::default()
        };
        for line in [
            "-FPqOn4 -r3 -u4k -j64 --madv-thp 1m",
            "-F -P -q -O -n 4 -r 3 -u 4k -j 64 --madv-thp 1m",
            "1m --prefault --prealloc --quiet --anonymous --nproc=4 --repeat 3 --unit=0x1000 \
             --step 64 --madv-thp",
            "-qFPO -n 4 -u 4K --madv-thp -r 3 -j 64 -- 1024k",
        ] {
            assert_eq!(run(line), expected, "{line}");
        }
    }

    #[test]
    fn sizes_take_suffixes_and_hexadecimal_but_never_overflow() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("0x10", 16),
            ("0X10k", 16 << 10),
            ("1K", 1 << 10),
            ("3m", 3 << 20),
            ("2G", 2 << 30),
            ("1t", 1 << 40),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(run(text).size, bytes, "{text}");
        }
        for text in [
            "18446744073709551616",
            "16777216t",
            "0xfffffffffffffffffk",
            "k",
            "0x",
            "0xk",
            "16mb",
            "1.5g",
            "010",
            "+1",
            "1é",
            "é",
        ] {
            assert!(
                matches!(refused(text), UsageError::BadNumber { what, .. } if what == "size"),
                "{text}"
            );
        }
    }

    #[test]
    fn numbers_are_read_strictly_and_name_the_option() {
        for (line, option, reason) in [
            ("-n 2x 1m", "-n", "is not a number"),
            ("-n2k 1m", "-n", "is not a number"),
            ("--repeat 0 1m", "--repeat", "is less than 1"),
            ("-r -1 1m", "-r", "is not a number"),
            ("-t 4194305 1m", "-t", "is more than 4194304"),
            (
                "--random-seed=4294967296 1m",
                "--random-seed",
                "is more than 4294967295",
            ),
            ("--unit= 1m", "--unit", "is not a number"),
        ] {
            match refused(line) {
                UsageError::BadNumber {
                    what, reason: said, ..
                } => assert_eq!((what.as_str(), said.as_str()), (option, reason), "{line}"),
                other => panic!("`{line}` gave {other:?}"),
            }
        }
    }

    #[test]
    fn unknown_options_are_refused_with_the_nearest_known_one() {
        for (line, text) in [
            (
                "--prealoc 1m",
                "unknown option `--prealoc`\nhint: did you mean `--prealloc`?",
            ),
            (
                "--frobnicate 1m",
                "unknown option `--frobnicate`\nhint: `--help` lists the options",
            ),
            (
                "-OK 1m",
                "unknown option `-K`\nhint: `--help` lists the options",
            ),
            (
                "-X 1m",
                "unknown option `-X`\nhint: did you mean `-x` (--sync-free)?",
            ),
        ] {
            assert_eq!(refused(line).to_string(), text);
        }
    }

    #[test]
    fn misplaced_values_and_operands_are_refused() {
        assert_eq!(
            refused("-O 1m -n"),
            UsageError::MissingValue {
                option: "-n".to_owned(),
                metavar: "N"
            }
        );
        assert_eq!(
            refused("--prealloc=yes 1m"),
            UsageError::UnexpectedValue {
                option: "--prealloc".to_owned()
            }
        );
        assert_eq!(refused("-O"), UsageError::Operands { count: 0 });
        assert_eq!(refused("1m 2m"), UsageError::Operands { count: 2 });
        assert_eq!(refused("-U 1m"), UsageError::HugetlbNeedsAnonymous);
        assert!(matches!(refused("-"), UsageError::BadNumber { .. }));
    }

    #[test]
    fn help_wins_over_what_follows_and_names_every_option() {
        for line in ["--help", "-h", "-Oh --bogus", "-n 2 -h"] {
            assert_eq!(parse(words(line)), Ok(Invocation::Help), "{line}");
        }
        let text = help();
        for spec in TABLE {
            assert!(text.contains(&format!("--{}", spec.long)), "{}", spec.long);
        }
        assert!(text.lines().all(|line| line.len() <= 92), "{text}");
    }

    #[test]
    fn options_of_the_suite_are_understood_by_all_their_names() {
        assert_eq!(run("-L 1m"), run("--Lock 1m"));
        assert_eq!(run("--lock 1m"), run("--Lock 1m"));
        assert_eq!(run("-H 1m"), run("--mncr_hgpgs 1m"));
        assert_eq!(run("-D -f x 1m"), run("--advice --file=x 1m"));
        assert_eq!(run("-m 3"), run("3m"));
        assert!(matches!(refused("-m 3 3m"), UsageError::Together { .. }));
        for (text, nanoseconds) in [
            ("7", 7),
            ("500ns", 500),
            ("20us", 20_000),
            ("3ms", 3_000_000),
        ] {
            assert_eq!(
                run(&format!("-e {text} 1m")).delay_ns,
                nanoseconds,
                "{text}"
            );
        }
        assert!(matches!(refused("-e 3s 1m"), UsageError::BadNumber { .. }));
        assert_eq!(run("--migrate 0:1 1m").migrate, Some((0, 1)));
        assert!(matches!(
            refused("--migrate 0 1m"),
            UsageError::BadNumber { .. }
        ));
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_a_hint() {
        for line in [
            "-O -f x 1m",
            "-a -L 1m",
            "-S 1m",
            "--fallocate-punch-holes -O 1m",
            "--read-file 1m",
            "--read-file --memfd 1m",
            "--direct-write --read-file -f x 1m",
            "--truncate -f x 1m",
            "--read-file -f x -P 1m",
            "-B 100 -f x 1m",
            "--each-file x -P 1m",
            "--main-write-data 1m",
            "-E -P 1m",
            "--ksm -t 2 1m",
            "--ksm -o 1m",
            "-W --signal-loop --no-signal 1m",
            "-W --signal-verify -R 1m",
            "--signal-verify 1m",
            "-O --punch-holes -W --no-signal --signal-verify 1m",
            "-O -P -u 512k -W --signal-verify 1m",
            "-t 4 -P -O -W --signal-verify --write-signal-write --signal-write-data 7 1m",
            "--memfd -W --signal-verify --write-signal-write --signal-write-data 7 1m",
            "--memfd --punch-holes 1m",
            "-O -U --punch-holes 4m",
            "--migrate 0:0 1m",
            "--migrate 0:1 -t 2 1m",
            "--signal-read-count 3 1m",
            "--no-signal 1m",
            "--fresh -O 1m",
            "-f x -B 0xffffffffffff0000 1m",
            "--read-file -f x -e 5us 1m",
            "--direct-write -f x -M 1m",
        ] {
            assert!(
                matches!(refused(line), UsageError::Together { .. }),
                "{line}"
            );
        }
    }

    #[test]
    fn an_argument_that_is_no_text_is_refused() {
        use std::os::unix::ffi::OsStringExt;
        let raw = OsString::from_vec(vec![b'-', 0xff]);
        assert!(matches!(parse([raw]), Err(UsageError::NotText { .. })));
    }

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
    fn a_unit_is_no_more_than_the_size() {
        assert_eq!(run("1m").unit_bytes(), 1 << 20);
        assert_eq!(run("-u 4k 1m").unit_bytes(), 4 << 10);
        assert_eq!(run("-u 2m 1m").unit_bytes(), 1 << 20);
    }
}
