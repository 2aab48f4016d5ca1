//! The options of `syslatency`.

use crate::arguments::{self, Effect, Given, Invocation, Spec, UsageError, flag, value};
use std::ffi::OsString;

/// What is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// How late threads wake up.
    #[default]
    Timer,
    /// How long it takes to get a huge page.
    HugePages,
}

/// What one run does; times in nanoseconds, sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What is measured.
    pub mode: Mode,
    /// How long.
    pub time_ns: u64,
    /// From one wake-up to the next.
    pub interval_ns: u64,
    /// Real-time priority (SCHED_FIFO) of the measuring threads; 0 for normal ones.
    pub priority: u64,
    /// Timer slack of the measuring threads; what they inherit when absent.
    pub slack_ns: Option<u64>,
    /// One CPU instead of all that are allowed.
    pub one_cpu: bool,
    /// No load, whatever else is given: the idle anchor.
    pub idle: bool,
    /// A busy thread per CPU.
    pub busy: bool,
    /// Files are read without end.
    pub background: bool,
    /// Whose files.
    pub background_path: String,
    /// Bytes of shared memory that are pinned as a driver does.
    pub pin: u64,
    /// Bytes that are pinned and locked.
    pub lock: u64,
    /// Bytes of a segment that is locked as a whole.
    pub shmlock: u64,
    /// Bytes of objects that are pinned anew all the time.
    pub churn: u64,
    /// Bytes of shared memory that are written and left alone.
    pub touch: u64,
    /// A load on a graphics device.
    pub gpu: bool,
    /// The file that fills the page cache while huge pages are measured.
    pub file: Option<String>,
    /// Bytes of it that are read before each measurement.
    pub fill: u64,
    /// Bytes after which it is read from its beginning again.
    pub cycle: u64,
    /// Huge pages per measurement.
    pub pages: u64,
    /// It is mapped instead of read, as the original benchmark does with files.
    pub map: bool,
    /// How long rounds go on before they are measured.
    pub warm_up_ns: u64,
    /// Mappings are not aligned to huge pages, as in the original benchmark.
    pub unaligned: bool,
    /// The line of the original benchmark as well.
    pub igt: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Timer,
            time_ns: 10_000_000_000,
            interval_ns: 1_000_000,
            priority: 0,
            slack_ns: None,
            one_cpu: false,
            idle: false,
            busy: false,
            background: false,
            background_path: "/usr".to_owned(),
            pin: 0,
            lock: 0,
            shmlock: 0,
            churn: 0,
            touch: 0,
            gpu: false,
            file: None,
            fill: 6 << 20,
            cycle: 40 << 20,
            pages: 1,
            map: false,
            warm_up_ns: 0,
            unaligned: false,
            igt: false,
        }
    }
}

impl Options {
    /// Bytes of memory that the loads keep.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        let parts = [self.pin, self.lock, self.shmlock, self.churn, self.touch];
        match self.idle {
            true => 0,
            false => parts
                .iter()
                .fold(0, |sum, part| u64::saturating_add(sum, *part)),
        }
    }
}

/// Milliseconds of a second and nanoseconds of both.
const SECOND: u64 = 1_000_000_000;
const MICROSECOND: u64 = 1_000;

const TABLE: &[Spec<Options>] = &[
    value(
        Some('t'),
        "time",
        "TIME",
        Effect::Span(SECOND, |o, n| o.time_ns = n),
        "how long it measures, 10s",
    ),
    flag(
        Some('m'),
        "memory",
        |o| o.mode = Mode::HugePages,
        "huge pages under memory pressure instead of timers",
    ),
    flag(
        Some('n'),
        "no-load",
        |o| o.idle = true,
        "leave all loads out: the idle anchor",
    ),
    value(
        Some('i'),
        "interval",
        "TIME",
        Effect::Span(MICROSECOND, |o, n| o.interval_ns = n),
        "from one wake-up to the next, 1ms; plain numbers are us",
    ),
    value(
        Some('p'),
        "priority",
        "N",
        Effect::Number(0, 99, |o, n| o.priority = n),
        "SCHED_FIFO at this priority; 0, normal threads",
    ),
    value(
        None,
        "slack",
        "TIME",
        Effect::Time(|o, n| o.slack_ns = Some(n)),
        "timer slack of normal threads; what they inherit",
    ),
    flag(
        Some('1'),
        "one",
        |o| o.one_cpu = true,
        "one CPU only; all that are allowed",
    ),
    flag(None, "busy", |o| o.busy = true, "a busy thread on each CPU"),
    flag(
        Some('b'),
        "background",
        |o| o.background = true,
        "read files into the page cache all the time",
    ),
    value(
        None,
        "background-path",
        "DIR",
        Effect::Text(|o, text| o.background_path = text),
        "of this directory, /usr",
    ),
    value(
        None,
        "pin",
        "SIZE",
        Effect::Size(|o, n| o.pin = n),
        "pin shared memory, as a driver does",
    ),
    value(
        None,
        "lock",
        "SIZE",
        Effect::Size(|o, n| o.lock = n),
        "pin and mlock it: out of reclaim's sight at once",
    ),
    value(
        None,
        "shmlock",
        "SIZE",
        Effect::Size(|o, n| o.shmlock = n),
        "SHM_LOCK a segment: out of sight once reclaim meets it",
    ),
    value(
        None,
        "churn",
        "SIZE",
        Effect::Size(|o, n| o.churn = n),
        "pin new objects of 16 MiB all the time",
    ),
    value(
        None,
        "touch",
        "SIZE",
        Effect::Size(|o, n| o.touch = n),
        "write shared memory once, and leave it alone",
    ),
    flag(None, "gpu", |o| o.gpu = true, "load a graphics device"),
    value(
        Some('f'),
        "file",
        "FILE",
        Effect::Text(|o, text| o.file = Some(text)),
        "fills the page cache with -m; made of holes if missing",
    ),
    value(
        None,
        "fill",
        "SIZE",
        Effect::Size(|o, n| o.fill = n),
        "of it that are read before each measurement, 6m",
    ),
    value(
        None,
        "cycle",
        "SIZE",
        Effect::Size(|o, n| o.cycle = n),
        "after which it is read from its start again, 40m",
    ),
    value(
        Some('k'),
        "pages",
        "N",
        Effect::Number(1, 4096, |o, n| o.pages = n),
        "huge pages per measurement, 1",
    ),
    flag(
        None,
        "map",
        |o| o.map = true,
        "map the file instead of reading it",
    ),
    value(
        None,
        "warm-up",
        "TIME",
        Effect::Span(SECOND, |o, n| o.warm_up_ns = n),
        "rounds of -m before it measures, 0",
    ),
    flag(
        None,
        "unaligned",
        |o| o.unaligned = true,
        "map huge pages anywhere, as the original benchmark",
    ),
    flag(
        None,
        "igt",
        |o| o.igt = true,
        "print the original benchmark's line as well",
    ),
    value(Some('h'), "help", "", Effect::Help, "this text"),
];

/// The help text.
#[must_use]
pub fn help() -> String {
    let mut text = String::from(
        "Usage: syslatency [OPTIONS]\n\n\
         Measures how late threads wake up from a timer, one on each CPU, or with -m how long huge\n\
         pages take under memory pressure, while loads go on beside it.\n\n\
         Options:\n",
    );
    text.push_str(&arguments::listed(TABLE, 22));
    text.push_str(
        "\nExamples:\n  \
         syslatency -t 5 -p 80                 wake-ups of real-time threads, five seconds\n  \
         syslatency -t 5 --busy -b             beside busy CPUs and file-system traffic\n  \
         kdyno run jobs/syslatency.yaml        -m with its cgroup and swap: idle, pinned, locked\n\n\
         With -m it wants a memory limit of its own (a cgroup) and swap, which `kdyno run` makes.\n",
    );
    text
}

/// Reads the arguments.
///
/// # Errors
/// [`UsageError`] at the first that is wrong.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Invocation<Options>, UsageError> {
    let mut options = Options::default();
    let operands = match arguments::read(TABLE, args, &mut options)? {
        Given::Help => return Ok(Invocation::Help),
        Given::Operands(operands) => operands,
    };
    if let Some(operand) = operands.first() {
        return Err(UsageError::Operands {
            message: format!("`{operand}` is no option"),
            hint: "sizes and times belong to options: --pin 256m -t 5",
        });
    }
    if options.time_ns == 0 || options.interval_ns == 0 {
        return Err(UsageError::Together {
            what: "a time of 0 measures nothing",
            hint: "give -t 10 -i 1000, say",
        });
    }
    if options.cycle < options.fill {
        return Err(UsageError::Together {
            what: "--cycle is smaller than --fill",
            hint: "pages come back only if the file is read again: --fill 16m --cycle 40m",
        });
    }
    if options.mode == Mode::HugePages && options.file.is_none() {
        return Err(UsageError::Together {
            what: "`-m` needs a file that fills the page cache",
            hint: "give --file FILE on a disk's file system; `kdyno run jobs/syslatency.yaml` has all",
        });
    }
    Ok(Invocation::Run(Box::new(options)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn options(line: &str) -> Options {
        match parse(words(line)) {
            Ok(Invocation::Run(options)) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn times_and_sizes_have_their_units() {
        let read = options("-t 3 -i 500 --slack 1ns --pin 64m --lock 1g -p 80 -1");
        assert_eq!((read.time_ns, read.interval_ns), (3_000_000_000, 500_000));
        assert_eq!(read.slack_ns, Some(1));
        assert_eq!((read.pin, read.lock), (64 << 20, 1 << 30));
        assert_eq!(read.held_bytes(), (64 << 20) + (1 << 30));
        assert_eq!((read.priority, read.one_cpu), (80, true));
        assert_eq!(options("-t 250ms").time_ns, 250_000_000);
        assert_eq!(options("--pin 64m -n").held_bytes(), 0);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for line in [
            "5",
            "-t 0",
            "-m",
            "--pin much",
            "-p 100",
            "--fill 8m --cycle 4m",
            "--bogus",
        ] {
            assert!(parse(words(line)).is_err(), "{line}");
        }
        assert_eq!(options("-m -f x").mode, Mode::HugePages);
    }

    #[test]
    fn help_names_every_option_and_keeps_to_its_width() {
        assert_eq!(parse(words("-t 5 --help")), Ok(Invocation::Help));
        let text = help();
        for spec in TABLE {
            assert!(text.contains(&format!("--{}", spec.long)), "{}", spec.long);
        }
        assert!(text.lines().all(|line| line.len() <= 92), "{text}");
    }
}
