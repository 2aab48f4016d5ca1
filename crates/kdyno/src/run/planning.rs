//! From the command line to a plan.

use crate::cli::RunArgs;
use crate::context::UsageError;
use anyhow::Context as _;
use kdyno_job::catalog::Catalog;
use kdyno_job::error::Source;
use kdyno_job::include::{Included, expand};
use kdyno_job::jobfile::{Case, CaseList, JobFile};
use kdyno_job::node::{Kind, Node, Place};
use kdyno_job::plan::{Looks, Plan, PlanOptions, PlannedCase, draw};
use kdyno_job::resolve::{ResolveError, resolve};
use kdyno_job::value::cpus;
use kdyno_model::{BoxFacts, PlanId, Work};
use kdyno_testbox::monitors::{DEFAULT_MONITORS, Watched};
use kdyno_testbox::needs::unmet;
use kdyno_testbox::root::SysRoot;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

const DEFAULT_RUNS: u32 = 5;
const DEFAULT_WARM_UP: u32 = 1;
/// More trials than this need `--yes`: they are rather a mistake than a wish.
const MANY_TRIALS: u64 = 1000;
/// No plan file beyond this many trials.
const MOST_TRIALS: u64 = 100_000;
/// No job file is larger.
const MOST_JOB_BYTES: u64 = 16 << 20;

/// The name of a case that this machine cannot run, and which need is not met.
pub(super) type SkippedCase = (String, String);

/// A plan and what belongs to it.
pub(super) struct Planned {
    pub plan: Plan,
    /// The job file's bytes.
    pub job_source: Option<Vec<u8>>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// The cases that this machine cannot run.
    pub skipped: Vec<SkippedCase>,
}

/// Makes the plan; nothing is executed.
pub(super) fn plan(
    id: PlanId,
    args: &RunArgs,
    host: &str,
    facts: &BoxFacts,
    catalog: &Catalog,
) -> anyhow::Result<Planned> {
    let (mut job, name, job_source) = job(args, catalog)?;
    for option in &args.variants {
        job.add_variant_option(option, catalog)?;
    }
    let looks = looks(args)?;
    let runs = match looks {
        Some(looks) => looks.most,
        None => args.runs.or(job.runs).unwrap_or(DEFAULT_RUNS),
    };
    let warm_up = args.warm_up.or(job.warm_up).unwrap_or(DEFAULT_WARM_UP);
    if runs == 0 {
        return Err(UsageError::new(
            "0 runs measure nothing",
            "use -n 5, say; --dry-run shows a plan",
        )
        .into());
    }
    check_size(&job, runs, warm_up, args.yes)?;
    check_names(args)?;
    let label = args.label.as_deref().unwrap_or(&facts.kernel_release);
    let mut notes = job.notes.clone();
    if args.label.is_some() && !job.variants.is_empty() {
        notes.push("--label has no effect: the variants have names".to_owned());
    }
    let list = job.cases(label, catalog)?;
    if looks.is_some() && list.variants.len() < 2 {
        return Err(UsageError::new(
            "--until-decided: there is one variant, so that nothing can be decided",
            "add variants with -V NAME:KEY=VALUE, or give two commands",
        )
        .into());
    }
    let (planned, skipped) = resolve_cases(&list, facts, catalog, &name)?;
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let options = PlanOptions {
        id,
        created_unix_ns: i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX),
        job: name,
        host: host.to_owned(),
        seed: args.seed.or(job.seed).unwrap_or_else(fresh_seed),
        runs,
        warm_up,
        control: args.aa,
        looks,
    };
    let described = skipped.iter().map(|(case, need)| format!("{case}: {need}"));
    let plan = draw(&list, &planned, described.collect(), facts, &options);
    Ok(Planned {
        plan,
        job_source,
        notes,
        skipped,
    })
}

/// Runs between two looks.
const LOOK_EVERY: u32 = 5;
/// Most runs with looks.
const MOST_RUNS: u32 = 40;

/// The looks that `--until-decided` wants.
fn looks(args: &RunArgs) -> Result<Option<Looks>, UsageError> {
    if !args.until_decided {
        return Ok(None);
    }
    let most = args.max_runs.unwrap_or(MOST_RUNS);
    // More looks than a thousand have no levels.
    if !(LOOK_EVERY..=LOOK_EVERY * 1000).contains(&most) {
        return Err(UsageError::new(
            format!("--max-runs {most}: runs are looked at every {LOOK_EVERY}"),
            format!("give {LOOK_EVERY} to {}", LOOK_EVERY * 1000),
        ));
    }
    let most_seconds = args.max_time.as_deref().map(seconds).transpose()?;
    Ok(Some(Looks {
        every: LOOK_EVERY,
        most,
        most_seconds,
    }))
}

/// `90s`, `30m`, `2h` or plain seconds.
fn seconds(text: &str) -> Result<u64, UsageError> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) => (number, text.as_bytes().last().copied()),
        None => (text, None),
    };
    let each = match unit {
        Some(b'm') => 60,
        Some(b'h') => 3600,
        _ => 1,
    };
    let seconds = number.parse::<u64>().ok().and_then(|n| n.checked_mul(each));
    seconds.filter(|seconds| *seconds > 0).ok_or_else(|| {
        UsageError::new(
            format!("--max-time {text} is no time"),
            "give seconds, minutes or hours, as 90s, 30m or 2h",
        )
    })
}

/// Names that stand in tables hold nothing that would break a line.
fn check_names(args: &RunArgs) -> Result<(), UsageError> {
    let testbox = args.testbox.as_deref().filter(|name| {
        name.is_empty()
            || name
                .chars()
                .any(|c| c.is_control() || c.is_whitespace() || c == '/')
    });
    let label = args
        .label
        .as_deref()
        .filter(|name| name.is_empty() || name.chars().any(char::is_control));
    match testbox.or(label) {
        Some(name) => Err(UsageError::new(
            format!("{name:?} cannot be a name in a table"),
            "use letters, digits and `-`",
        )),
        None => Ok(()),
    }
}

/// Monitors that nobody knows are found before anything is planned.
fn check_monitors(work: &Work, job: &str) -> anyhow::Result<()> {
    let watched = Watched {
        root: &SysRoot::real(),
        cgroups: &[],
    };
    kdyno_testbox::monitors::available(&work.monitors, watched)
        .map(drop)
        .with_context(|| format!("{job}: monitors"))
}

/// A CPU that the machine does not have would fail every trial, or silently be left out.
fn check_affinity(work: &Work, facts: &BoxFacts, job: &str) -> Result<(), UsageError> {
    let Some(online) = facts
        .entries
        .get("cpu.online")
        .and_then(|list| cpus(list).ok())
    else {
        return Ok(());
    };
    let wanted = work
        .affinity
        .as_deref()
        .and_then(|list| cpus(list).ok())
        .unwrap_or_default();
    match wanted.iter().find(|cpu| !online.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => {
            let message = format!(
                "{job}: affinity: CPU {cpu} is not online on {}",
                facts.testbox
            );
            Err(UsageError::new(
                message,
                format!("online are {}", facts.entries["cpu.online"]),
            ))
        }
    }
}

/// A seed that differs from run to run; it is recorded, so any 32 bits will do.
fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) & 0xffff_ffff
}

fn job(args: &RunArgs, catalog: &Catalog) -> anyhow::Result<(JobFile, String, Option<Vec<u8>>)> {
    let is_job = |word: &String| {
        Path::new(word)
            .extension()
            .is_some_and(|ext| ext == "yaml" || ext == "yml")
            && !word.contains(' ')
    };
    match (args.what.as_slice(), args.exec.as_slice()) {
        ([], []) => Err(UsageError::new(
            "nothing to run",
            "give a job file or a command: `kdyno run job.yaml`, `kdyno run -n 10 'cmd1' 'cmd2'`",
        )
        .into()),
        ([file], []) if is_job(file) => {
            let bytes = read_job(file)?;
            let expanded = expand(file, text_of(file, &bytes)?, &included)?;
            let source = Source {
                origins: &expanded.origins,
                ..Source::new(file, &expanded.text)
            };
            let job = JobFile::read(source, catalog)?;
            Ok((job, file.clone(), Some(expanded.text.into_bytes())))
        }
        (words, []) if words.iter().any(is_job) => Err(UsageError::new(
            "a job file stands alone",
            "run job files one after the other; variants are added with -V NAME:KEY=VALUE",
        )
        .into()),
        (commands, []) => of_commands(
            commands.iter().map(|line| Node::quoted(line)).collect(),
            catalog,
        ),
        ([], words) => of_commands(vec![list_of(words)], catalog),
        _ => Err(UsageError::new(
            "commands before and behind `--` do not mix",
            "quote each command for the shell, or give one behind `--`",
        )
        .into()),
    }
}

/// Folders above the including file's that an included file is looked for in.
const FOLDERS_ABOVE: usize = 3;

/// A file that a job includes: its path is taken from the folder of the including file, from those
/// above it (where jobs of one suite share parts), then from the working directory.
fn included(name: &str, from: &str) -> Included {
    let folders = Path::new(from).ancestors().skip(1).take(1 + FOLDERS_ABOVE);
    let mut paths = folders.map(|folder| folder.join(name));
    let path = paths
        .find(|path| path.is_file())
        .unwrap_or_else(|| PathBuf::from(name));
    let path = path.display().to_string();
    let bytes = read_job(&path).map_err(|error| error.to_string())?;
    let text = text_of(&path, &bytes).map_err(|error| error.to_string())?;
    Ok((path.clone(), text.to_owned()))
}

/// Reads a job file. Anything but a regular file might never end.
fn read_job(file: &str) -> anyhow::Result<Vec<u8>> {
    let handle = File::options()
        .read(true)
        .custom_flags(O_NONBLOCK)
        .open(file)
        .map_err(|error| {
            UsageError::new(
                format!("{file}: {error}"),
                "give the path of a job file, or a command in quotes",
            )
        })?;
    let mut bytes = Vec::new();
    let regular = handle
        .metadata()
        .with_context(|| file.to_owned())?
        .is_file();
    if regular {
        handle
            .take(MOST_JOB_BYTES + 1)
            .read_to_end(&mut bytes)
            .with_context(|| file.to_owned())?;
    }
    if !regular || bytes.len() as u64 > MOST_JOB_BYTES {
        return Err(UsageError::new(
            format!("{file} is no job file: it is not a text of a few lines"),
            "is it the right file?",
        )
        .into());
    }
    Ok(bytes)
}

/// The text of a job file, which is UTF-8.
fn text_of<'a>(file: &str, bytes: &'a [u8]) -> Result<&'a str, UsageError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before
            .iter()
            .rev()
            .take_while(|byte| **byte != b'\n')
            .count()
            + 1;
        UsageError::new(
            format!("{file}:{line}:{column}: this byte is no UTF-8 text"),
            "save the job file as UTF-8",
        )
    })
}

/// `O_NONBLOCK` of Linux: opening a FIFO that nobody writes to must not hang.
const O_NONBLOCK: i32 = 0o4000;

fn list_of(words: &[String]) -> Node {
    let words = words.iter().map(|word| Node::quoted(word)).collect();
    Node {
        kind: Kind::List(words),
        place: Place::default(),
    }
}

fn of_commands(
    commands: Vec<Node>,
    catalog: &Catalog,
) -> anyhow::Result<(JobFile, String, Option<Vec<u8>>)> {
    if commands.iter().any(|command| {
        command.items().is_none() && command.text().is_none_or(|t| t.trim().is_empty())
    }) {
        return Err(
            UsageError::new("a command is empty", "give commands such as 'sleep 0.1'").into(),
        );
    }
    let shown: Vec<String> = commands.iter().map(first_word).collect();
    let testcase = shown.first().cloned().unwrap_or_default();
    let job = JobFile::of_commands(&commands, &testcase, catalog)
        .context("the catalog has no `command`")?;
    Ok((job, shown.join(", "), None))
}

/// The name of the program that a command starts, fit for a testcase.
fn first_word(command: &Node) -> String {
    let first = command
        .items()
        .and_then(|words| words.first())
        .unwrap_or(command);
    let word = first
        .text()
        .and_then(|text| text.split_whitespace().next())
        .unwrap_or("command");
    let name = word.rsplit('/').next().unwrap_or(word);
    let fine = |c: &char| c.is_ascii_alphanumeric() || "-_.+".contains(*c);
    let name: String = name.chars().filter(fine).take(40).collect();
    if name.is_empty() {
        "command".to_owned()
    } else {
        name
    }
}

/// An explosion of axes is counted before it is built.
fn check_size(job: &JobFile, runs: u32, warm_up: u32, yes: bool) -> anyhow::Result<()> {
    let cases = job.case_count();
    let variants = (job.variants.len() as u64).max(1);
    let each = u64::from(runs) + u64::from(warm_up);
    let trials = cases.saturating_mul(variants).saturating_mul(each);
    let made_of = format!("{cases} cases x {variants} variants x {each} runs");
    if trials > MOST_TRIALS {
        let message = format!(
            "{trials} trials ({made_of}) are more than the {MOST_TRIALS} that a plan can hold"
        );
        return Err(UsageError::new(message, "split the job").into());
    }
    if trials > MANY_TRIALS && !yes {
        let message = format!("the job makes {trials} trials ({made_of})");
        return Err(UsageError::new(message, "if you mean it, add --yes").into());
    }
    Ok(())
}

/// The cases that this machine can run, and why it cannot run the others.
fn resolve_cases(
    list: &CaseList,
    facts: &BoxFacts,
    catalog: &Catalog,
    name: &str,
) -> anyhow::Result<(Vec<PlannedCase>, Vec<SkippedCase>)> {
    let mut planned = Vec::new();
    let mut skipped = Vec::new();
    for (position, case) in list.cases.iter().enumerate() {
        match resolve_case(position, case, facts, catalog) {
            Ok(case) => {
                for work in &case.work {
                    check_monitors(work, name)?;
                    check_affinity(work, facts, name)?;
                }
                planned.push(case);
            }
            Err(ResolveError::Unmet(need)) => {
                skipped.push((case.reference.name(), need.to_string()));
            }
            Err(error) => {
                return Err(error).with_context(|| format!("{name}: {}", case.reference.name()));
            }
        }
    }
    Ok((planned, skipped))
}

fn resolve_case(
    position: usize,
    case: &Case,
    facts: &BoxFacts,
    catalog: &Catalog,
) -> Result<PlannedCase, ResolveError> {
    let mut work = Vec::new();
    for variant in &case.variants {
        let resolved = resolve(variant, facts, DEFAULT_MONITORS, catalog)?;
        let mut needs = resolved.needs.iter();
        if let Some(why) = needs.find_map(|(name, value)| unmet(&SysRoot::real(), name, value)) {
            return Err(ResolveError::Unmet(why));
        }
        work.push(resolved.work);
    }
    let rules = resolve(&case.base, facts, DEFAULT_MONITORS, catalog)?.rules;
    Ok(PlannedCase {
        case: position,
        work,
        rules,
    })
}
