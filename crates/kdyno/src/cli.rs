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

Exit status: 0 done, 2 usage, bad input, or kdyno could not do its work, 3 a run failed,
4 cannot tell or everything skipped, 130 interrupted.

Files: runs are kept below $KDYNO_HOME, else $XDG_DATA_HOME/kdyno, else ~/.local/share/kdyno.";

const RUN_EXAMPLES: &str = "\
Examples:
  kdyno run jobs/quickstart.yaml
  kdyno run -n 10 'sleep 0.1' 'sleep 0.11'
  kdyno run -n 10 -- ls -l /usr
  kdyno run job.yaml -V on:thp.enabled=always -V off:thp.enabled=never
  kdyno run --dry-run job.yaml               what would run, change and be missing
  kdyno run --resume                         finish the newest unfinished plan";

const COMPARE_EXAMPLES: &str = "\
Examples:
  kdyno compare                              the variants of the newest plan
  kdyno compare --format lkp                 the block that goes into a mail
  kdyno compare --metric 'vm-scalability.*' --metric 'proc-vmstat.pg*'
  kdyno compare 'vm-scalability/*-anon-w-*'  by case name
  kdyno compare 3f0c5e1d b7d2e94c            two plans, by the ids that `kdyno list` shows

A selection names plans, runs, variants, testboxes, or globs of case names
(testcase/params) or metrics. Words of one kind add up, kinds narrow each other.";

const SHOW_EXAMPLES: &str = "\
Examples:
  kdyno show                                 the newest run
  kdyno show 3f0c5e1d                        one run, by the id that `kdyno list` shows
  kdyno show --stdout 3f0c5e1d               its raw output, whole";

const STAT_EXAMPLES: &str = "\
Examples:
  kdyno stat                                 headline metrics of the newest plan
  kdyno stat --metric time.elapsed_time      one metric
  kdyno stat before.txt after.txt            two columns of numbers from files";

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
    List(ListArgs),
    /// Show everything about one run
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Print N, Min, Max, Median, Avg, Stddev as ministat does
    #[command(after_help = STAT_EXAMPLES)]
    Stat(StatArgs),
    /// Look after the index of runs
    Index(IndexArgs),
    /// Put back what a run that died has left changed
    Restore,
    /// Run a built-in workload by itself: usemem
    Workload {
        /// usemem; see `kdyno workload usemem --help`
        #[arg(value_parser = ["usemem"])]
        name: String,
        /// Its own options
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write man pages into a directory
    Man {
        /// Where to
        directory: PathBuf,
    },
}

#[derive(Debug, Args)]
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
    /// Print the plan, what would change and what is missing; run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Run a plan of more than 1000 trials
    #[arg(long)]
    pub yes: bool,
    /// Run although another run holds this machine: they will disturb each other
    #[arg(long)]
    pub force: bool,
    /// Finish the newest unfinished plan
    #[arg(
        long,
        conflicts_with_all = ["what", "exec", "runs", "warm_up", "variants", "label", "seed", "testbox", "dry_run", "yes"]
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
    /// Show every metric, also diagnostics that did not move
    #[arg(long)]
    pub all: bool,
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
pub struct IndexArgs {
    #[command(subcommand)]
    pub command: IndexCommand,
}

#[derive(Debug, Subcommand)]
pub enum IndexCommand {
    /// Build the index anew from the run directories
    Rebuild,
}
