//! The command line: every option, its help and its examples.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

const MAIN_EXAMPLES: &str = "\
Examples:
  kdyno run jobs/quickstart.yaml             run a job and compare its variants
  kdyno run -n 10 'cmd1' 'cmd2'              compare two commands
  kdyno compare --format lkp                 the newest plan as an LKP table
  kdyno list                                 every finished run

Exit status: 0 done, 1 a regression was found (only with --fail-on or --bisect-exit), 2 usage, bad
input, or kdyno could not do its work, 3 a run failed, 4 cannot tell or everything skipped, 125 and
128 for `git bisect run` (--bisect-exit), 130 interrupted.

Files: runs are kept below $KDYNO_HOME, else $XDG_DATA_HOME/kdyno, else ~/.local/share/kdyno; their
index beside them, or on the PostgreSQL server that $KDYNO_INDEX names (kdyno index --help). Lock and
undo journal: $KDYNO_RUNTIME_DIR, else /run/kdyno for root; all runs of a machine must share it.";

const RUN_EXAMPLES: &str = "\
Examples:
  kdyno run jobs/quickstart.yaml
  kdyno run -n 10 'sleep 0.1' 'sleep 0.11'
  kdyno run -n 10 -- ls -l /usr
  kdyno run job.yaml -V on:thp.enabled=always -V off:thp.enabled=never
  kdyno run --until-decided job.yaml         as many runs as the question takes, at most 40
  kdyno run --aa job.yaml                    the first variant twice: what is noise here?
  kdyno run --dry-run job.yaml               what would run, change and be missing
  kdyno run --json job.yaml                  events as JSON lines, for dashboards and CI
  kdyno run --json job.yaml | jq -r 'select(.event == \"trial-ended\") | .outcome'
  kdyno run --resume                         finish the newest unfinished plan";

const COMPARE_EXAMPLES: &str = "\
Examples:
  kdyno compare                              the variants of the newest plan
  kdyno compare --format lkp                 the block that goes into a mail
  kdyno compare --format lkp --verdicts      the same with verdicts beside it
  kdyno compare --fail-on regression         exit status 1 when a headline metric regressed
  kdyno compare --recover good bad fixed     how much of a regression a fix takes back
  kdyno compare --across testbox             variants x machines, and which machine disagrees
  kdyno compare --csv results.csv            values from a file: metric,variant,value[,block]
  kdyno compare --metric 'vm-scalability.*' --metric 'proc-vmstat.pg*'
  kdyno compare 'vm-scalability/*-anon-w-*'  by case name
  kdyno compare 3f0c5e1d b7d2e94c            two plans, by the ids that `kdyno list` shows

A selection names plans, runs, variants, testboxes, or globs of case names
(testcase/params) or metrics. Words of one kind add up, kinds narrow each other.";

const LIST_EXAMPLES: &str = "\
Examples:
  kdyno list                                 every finished run, the newest last
  kdyno list 'vm-scalability/*'              those of some cases
  kdyno list --json | jq -r .run_id          for programs";

const WORKLOAD_EXAMPLES: &str = "\
Examples:
  kdyno workload usemem --help               its options
  kdyno workload usemem -n 2 16M             two processes that fill 16 MiB each, once
  kdyno workload syslatency -t 1             how late threads wake up from a timer";

const INDEX_EXAMPLES: &str = "\
Examples:
  kdyno index rebuild                        whatever the old one is

The index is derived from the run directories. It is a file in the home directory, or, when
KDYNO_INDEX is set, a schema of a PostgreSQL database, one for each home:
KDYNO_INDEX=postgres://user@host/database or postgres:///database?host=/run/postgresql. What the
address leaves out comes from PGUSER, PGPASSWORD, ~/.pgpass and their like. Connections are not
encrypted.";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  kdyno completions bash > ~/.local/share/bash-completion/completions/kdyno
  kdyno completions fish > ~/.config/fish/completions/kdyno.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  kdyno man ~/.local/share/man/man1          then `man kdyno-run` shows its page";

const SHOW_EXAMPLES: &str = "\
Examples:
  kdyno show                                 the newest run
  kdyno show 3f0c5e1d                        one run, by the id that `kdyno list` shows
  kdyno show --stdout 3f0c5e1d               its raw output, whole";

const STAT_EXAMPLES: &str = "\
Examples:
  kdyno stat                                 headline metrics of the newest plan
  kdyno stat --metric '*.time.elapsed_time'  one metric, of whatever program
  kdyno stat before.txt after.txt            two columns of numbers from files";

const NORMALIZE_EXAMPLES: &str = "\
Examples:
  kdyno normalize --zero idle --one loaded            every other variant, newest plan
  kdyno normalize --zero idle --one loaded ivb byt    on these machines

Rows are `name N Min Max Median Avg Stddev` on the scale; below, per machine: eliminated, reduced,
none or worse, by an interval that the ends' own uncertainty is part of. Exit status 4 when no
machine has a scale since its ends do not clearly differ.";

const HIST_EXAMPLES: &str = "\
Examples:
  kdyno hist 'syslatency/*'                  histograms of runs, variants beside each other
  kdyno hist old.hist new.hist               of what bcc, bpftrace, perf, cyclictest, ... printed
  kdyno hist - < new.hist                    from a pipe: whatever it is, it is recognised
  kdyno hist --format table old.hist new.hist     a row per bucket, a column per input
  kdyno hist --format table --steps 5us..100us,1ms..20ms old.hist
  kdyno hist --format html -o latency.html old.hist new.hist     drawings, for a mail or a browser
  kdyno hist --format bpftrace new.hist      as another tool would have printed it
  kdyno hist --func vfs_read -n 100 -- ls    time a function of the kernel over 100 runs, without BPF

Read are bcc and libbpf-tools, bpftrace, perf ftrace latency, cyclictest, rtla, hist triggers of
ftrace, fio, HDR histograms and bucket tables, also out of mails (docs/histograms.md).";

const PROGRAM_EXAMPLES: &str = "\
Examples:
  kdyno program list                         all programs, and which are installed here
  kdyno program show hackbench               its options and metrics
  kdyno program check programs/mine          whether an entry of yours reads its recorded output

Programs of yours: folders with a program.yaml below ./programs or ~/.config/kdyno/programs.";

const IMPORT_EXAMPLES: &str = "\
Examples:
  kdyno import box2                          a copy of another machine's home
  kdyno compare --across testbox             then: variants x machines

PATH is a copy of another home, of one plan in it (HOME/plans/PLAN) or of one run
(HOME/plans/PLAN/runs/RUN). Everything is verified, copied, and changed nowhere.";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  kdyno doctor                               all checks, and two seconds of measuring
  kdyno doctor --quick                       a look of 200 ms, as `kdyno run` takes it
  kdyno doctor --quick --json                for programs (docs/doctor.md)

Nothing is changed. Exit status 0 whatever is found.";

/// kdyno puts a kernel on the dyno: did a change make the system slower, by how much, and is it
/// real?
#[derive(Debug, Parser)]
#[command(name = "kdyno", version, after_help = MAIN_EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a job or commands on this machine, keep everything, compare
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Compare variants in a table
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// List finished runs, one per line
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Show everything about one run
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Print N, Min, Max, Median, Avg, Stddev as ministat does
    #[command(after_help = STAT_EXAMPLES)]
    Stat(StatArgs),
    /// Put figures on a scale where one variant is 0 and another is 1, per machine
    #[command(after_help = NORMALIZE_EXAMPLES)]
    Normalize(NormalizeArgs),
    /// Show distributions: of runs, or of what tracing tools printed
    #[command(after_help = HIST_EXAMPLES)]
    Hist(HistArgs),
    /// The programs that a job can name: list, show, check
    #[command(after_help = PROGRAM_EXAMPLES)]
    Program(ProgramArgs),
    /// Say what makes noise on this machine
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Take in runs that were measured on another machine
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportArgs),
    /// Look after the index of runs
    #[command(after_help = INDEX_EXAMPLES)]
    Index(IndexArgs),
    /// Put back what a run that died has left changed
    Restore,
    /// Run a built-in workload by itself: usemem, syslatency
    #[command(after_help = WORKLOAD_EXAMPLES)]
    Workload {
        /// usemem or syslatency; see `kdyno workload usemem --help`
        #[arg(value_parser = ["usemem", "syslatency"])]
        name: String,
        /// Its own options
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write man pages into a directory
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// Where to
        directory: PathBuf,
    },
}

#[derive(Debug, Default, Args)]
pub struct RunArgs {
    /// A job file (*.yaml), or commands for /bin/sh, each a variant
    #[arg(value_name = "JOB.yaml|COMMAND")]
    pub what: Vec<String>,
    /// A command and its arguments, executed without a shell
    #[arg(last = true, value_name = "CMD ARGS")]
    pub exec: Vec<String>,
    /// Measured runs per case and variant [default: the job's `runs`, else 5]
    #[arg(
        short = 'n',
        long = "runs",
        short_alias = 'r',
        visible_short_alias = 'r',
        value_name = "N"
    )]
    pub runs: Option<u32>,
    /// Warm-up runs per case and variant, kept and shown but never compared [default: the job's
    /// `warm_up`, else 1]
    #[arg(long, value_name = "N")]
    pub warm_up: Option<u32>,
    /// A variant, or one more setting of it (repeatable; the same NAME adds up)
    #[arg(short = 'V', long = "variant", value_name = "NAME:KEY=VALUE")]
    pub variants: Vec<String>,
    /// Name of the one variant when there are no others [default: the running kernel]
    #[arg(long, value_name = "NAME")]
    pub label: Option<String>,
    /// Seed of the order of runs [default: random; always recorded]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Name of this machine in tables [default: its host name]
    #[arg(long, value_name = "NAME")]
    pub testbox: Option<String>,
    /// Look at the runs every 5 and stop when each headline metric is regressed, improved or
    /// unchanged
    #[arg(long, conflicts_with = "runs")]
    pub until_decided: bool,
    /// Most measured runs per case and variant with --until-decided [default: 40]
    #[arg(long, value_name = "N", requires = "until_decided")]
    pub max_runs: Option<u32>,
    /// Longest time with --until-decided, as 90s, 30m or 2h; the block that runs is finished
    #[arg(long, value_name = "TIME", requires = "until_decided")]
    pub max_time: Option<String>,
    /// Run the first variant once more in every block, under the name NAME.aa: an A/A control
    #[arg(long)]
    pub aa: bool,
    /// Print the plan, what would change and what is missing; run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Run a plan of more than 1000 trials
    #[arg(long)]
    pub yes: bool,
    /// Run although another run holds this machine: they will disturb each other
    #[arg(long)]
    pub force: bool,
    /// Time a function of the kernel meanwhile, without BPF (repeatable)
    #[arg(long = "func", value_name = "FUNCTION")]
    pub functions: Vec<String>,
    /// Which calls of --func count, as the kernel's event filters say it: `arg3 > 100`
    #[arg(long = "filter", value_name = "FILTER", requires = "functions")]
    pub function_filter: Option<String>,
    /// Do not look for what makes noise on this machine before measuring
    #[arg(long)]
    pub no_doctor: bool,
    /// Events as JSON lines on standard output (docs/events.md); the table goes to standard error
    #[arg(long, conflicts_with = "dry_run")]
    pub json: bool,
    /// Finish the newest unfinished plan
    #[arg(
        long,
        conflicts_with_all = ["what", "exec", "runs", "warm_up", "variants", "label", "seed", "testbox", "dry_run", "yes", "until_decided", "aa", "functions"]
    )]
    pub resume: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Sentences and figures with their number of runs
    #[default]
    Text,
    /// The published LKP block, to the column
    Lkp,
    /// The LKP layout with one row per case and GEO-MEAN
    LkpCases,
    /// One line per case, metric and variant, all values
    Csv,
    /// Everything, for programs
    Json,
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Plans, runs, variants, testboxes, globs of case names [default: the newest plan]
    pub select: Vec<String>,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Show only metrics that match (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub metric: Vec<String>,
    /// Show every metric, also diagnostics of which no change was shown
    #[arg(long)]
    pub all: bool,
    /// Read values from FILE (`-` is standard input) instead of runs: lines
    /// `metric,variant,value[,block]` below a header of these names
    #[arg(long, value_name = "FILE", conflicts_with_all = ["select", "recover", "across", "aa"])]
    pub csv: Option<String>,
    /// Which direction is good for the metrics of --csv
    #[arg(long, value_enum, requires = "csv")]
    pub better: Option<BetterWord>,
    /// Change of a headline metric that is too small to matter, percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub margin: f64,
    /// Exact rank tests and spread for every metric, not only for headline ones
    #[arg(long)]
    pub exact: bool,
    /// Do not borrow variance from earlier runs of the same case on the same machine
    #[arg(long)]
    pub no_history: bool,
    /// Exit with 1 when a headline metric regressed or new failures are real, with 4 when one is
    /// unclear (a list, as `regression,unclear`)
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
    /// Exit as `git bisect run` reads it: 0 good, 1 bad, 125 cannot tell, 128 an error
    #[arg(long, conflicts_with = "fail_on")]
    pub bisect_exit: bool,
    /// Also say what the rule of lkp-tests would have said
    #[arg(long)]
    pub lkp_rule: bool,
    /// Verdict, interval, adjusted p and runs beside the LKP block
    #[arg(long)]
    pub verdicts: bool,
    /// How much of the regression from GOOD to BAD the variant FIXED takes back
    #[arg(long, num_args = 3, value_names = ["GOOD", "BAD", "FIXED"])]
    pub recover: Vec<String>,
    /// One grid over machines instead of a table each
    #[arg(long, value_name = "AXIS", value_enum, conflicts_with = "recover")]
    pub across: Option<Across>,
    /// How often A/A controls differ, over all plans on this index that have one
    #[arg(long, conflicts_with_all = ["recover", "across"])]
    pub aa: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BetterWord {
    /// More is better
    Higher,
    /// Less is better
    Lower,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A headline metric regressed: exit status 1
    Regression,
    /// A headline metric is unclear: exit status 4
    Unclear,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Across {
    /// Variants by machines
    Testbox,
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Plans, runs, variants, testboxes, globs of case names [default: everything]
    pub select: Vec<String>,
    /// One JSON object per line, with the headline figures
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// A run's id or its last digits [default: the newest run]
    pub run: Option<String>,
    /// The record as JSON
    #[arg(long, conflicts_with_all = ["stdout", "stderr", "facts"])]
    pub json: bool,
    /// Its standard output, whole and unedited
    #[arg(long, conflicts_with_all = ["stderr", "facts"])]
    pub stdout: bool,
    /// Its standard error, whole and unedited
    #[arg(long, conflicts_with = "facts")]
    pub stderr: bool,
    /// What the machine was
    #[arg(long)]
    pub facts: bool,
    /// Also what monitors saw
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct StatArgs {
    /// Files with one number per line (`-` is standard input), or a selection as in `compare`
    pub what: Vec<String>,
    /// Metrics that match instead of the headline ones (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub metric: Vec<String>,
}

#[derive(Debug, Args)]
pub struct NormalizeArgs {
    /// Plans, runs, variants, testboxes, globs of case names [default: the newest plan]
    pub select: Vec<String>,
    /// The variant whose median is 0
    #[arg(long, value_name = "VARIANT")]
    pub zero: String,
    /// The variant whose median is 1
    #[arg(long, value_name = "VARIANT")]
    pub one: String,
    /// Metrics that match instead of the headline ones (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub metric: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum HistFormat {
    /// What suits: rows of powers of two, or, of several, shares side by side; and quantiles
    #[default]
    Text,
    /// As bcc prints it: powers of two, or rows of --steps
    Bcc,
    /// As bpftrace prints maps: powers of two, or rows of --steps
    Bpftrace,
    /// As perf ftrace latency prints it
    PerfFtrace,
    /// A row per bucket of --steps, a column per series, `.` for none
    Table,
    /// Quantiles, each as the bounds of its bucket
    Quantiles,
    /// Each series beside the first, as shares, with what became of each mode
    Shares,
    /// A page with drawings
    Html,
    /// A line per bucket: series,run,low,high,count,unit
    Csv,
    /// Everything, for programs
    Json,
    /// An HDR histogram (V2, compressed)
    Hdr,
    /// An HDR interval log, a line per series
    Hlog,
}

#[derive(Debug, Args)]
pub struct HistArgs {
    /// Files (`-` is standard input), or a selection as in `compare` [default: the newest plan]
    #[arg(value_name = "FILE|SELECT")]
    pub what: Vec<String>,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    pub format: HistFormat,
    /// Which tool printed the files: bcc, bpftrace, perf-ftrace, cyclictest, rtla, hist-trigger,
    /// iolatency, fio, hdr or table [default: it is recognised]
    #[arg(long, value_name = "TOOL")]
    pub from: Option<kdyno_formats::hist::Tool>,
    /// Of runs: only metrics that match (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub metric: Vec<String>,
    /// Of files: only sections, keys or threads that match (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub section: Vec<String>,
    /// The unit of the rows: ns, us, ms or s [default: us for bcc, else that of the values]
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<String>,
    /// Rows of one width, as STEP..END or several with commas [default of the table:
    /// 10us..500us,500us..10ms]
    #[arg(long, value_name = "STEPS")]
    pub steps: Option<kdyno_analyze::render::hist::steps::Steps>,
    /// Where to write it instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Run a command and time a function of the kernel meanwhile, without BPF (repeatable)
    #[arg(
        long = "func",
        value_name = "FUNCTION",
        requires = "exec",
        conflicts_with_all = ["what", "from", "section", "metric"]
    )]
    pub functions: Vec<String>,
    /// Which calls of --func count, as the kernel's event filters say it: `arg3 > 100`
    #[arg(long = "filter", value_name = "FILTER", requires = "functions")]
    pub function_filter: Option<String>,
    /// How often the command is run with --func
    #[arg(
        short = 'n',
        long = "rounds",
        value_name = "ROUNDS",
        default_value_t = 1,
        requires = "functions"
    )]
    pub rounds: u32,
    /// The command of --func and its arguments
    #[arg(last = true, value_name = "CMD ARGS", requires = "functions")]
    pub exec: Vec<String>,
}

#[derive(Debug, Args)]
pub struct ProgramArgs {
    #[command(subcommand)]
    pub command: ProgramCommand,
}

#[derive(Debug, Subcommand)]
pub enum ProgramCommand {
    /// All programs, and whether they are installed
    List,
    /// What a program measures: its options and metrics
    Show {
        /// Its name
        name: String,
    },
    /// Read the recorded output of entries, and compare with what they expect
    Check {
        /// Folders with a program.yaml [default: all of yours]
        folders: Vec<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Only look, for 200 ms: measure nothing
    #[arg(long)]
    pub quick: bool,
    /// One JSON object, for programs (docs/doctor.md)
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Copies of homes, plans or runs
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct IndexArgs {
    #[command(subcommand)]
    pub command: IndexCommand,
}

#[derive(Debug, Subcommand)]
pub enum IndexCommand {
    /// Build the index anew from the run directories
    Rebuild,
}
