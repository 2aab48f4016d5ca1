//! The command line of `usemem`: what does not go together, and the help text.

mod table;

use crate::arguments::{self, Given, Invocation, UsageError, number};
use std::ffi::OsString;
use table::TABLE;

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
    text.push_str(&arguments::listed(TABLE, 24));
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
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Invocation<Options>, UsageError> {
    let mut options = Options::default();
    let operands = match arguments::read(TABLE, args, &mut options)? {
        Given::Help => return Ok(Invocation::Help),
        Given::Operands(operands) => operands,
    };
    match operands.as_slice() {
        [_] if options.size > 0 => {
            return Err(UsageError::Together {
                what: "the size is given twice",
                hint: "leave -m or the operand out",
            });
        }
        [size] => options.size = number("size", size, true, 0, u64::MAX)?,
        [] if options.size > 0 || options.pool_cycles > 0 => {}
        other => {
            return Err(UsageError::Operands {
                message: format!("{} sizes are given, one is needed", other.len()),
                hint: "the size comes last, as in `usemem -O 1g`",
            });
        }
    }
    check(&options)?;
    Ok(Invocation::Run(Box::new(options)))
}

/// Refuses what does not go together.
fn check(o: &Options) -> Result<(), UsageError> {
    if o.hugetlb && !o.anonymous {
        return Err(UsageError::Together {
            what: "`-U` needs anonymous memory",
            hint: "add `-O`",
        });
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
            !o.offset.is_multiple_of(crate::sys::page_bytes() as u64),
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
            o.detach && (o.sync_rw || o.sync_free),
            "nobody watches over detached tasks that wait for each other",
            "leave -d, or -y and -x, out",
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
        let count = |line| refused(line).to_string();
        assert!(count("-O").starts_with("0 sizes are given"));
        assert!(count("1m 2m").starts_with("2 sizes are given"));
        assert_eq!(
            count("-U 1m"),
            "`-U` needs anonymous memory\nhint: add `-O`"
        );
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
            "-d -x -O 1m",
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
    fn a_unit_is_no_more_than_the_size() {
        assert_eq!(run("1m").unit_bytes(), 1 << 20);
        assert_eq!(run("-u 4k 1m").unit_bytes(), 4 << 10);
        assert_eq!(run("-u 2m 1m").unit_bytes(), 1 << 20);
    }
}
