//! `kdyno program`: the catalog, built in and of the user.
//!
//! A user's programs are folders below `./programs` and below `programs` in kdyno's configuration
//! directory; they work as the built-in ones do, and one of the same name takes their place.

use crate::cli::{ProgramArgs, ProgramCommand};
use crate::context::{Context, Status, UsageError};
use anyhow::Context as _;
use kdyno_analyze::number::exact;
use kdyno_analyze::row::scalars_of;
use kdyno_formats::{RawOutput, extract};
use kdyno_job::catalog::{Catalog, OptionKind, OptionSpec, Program};
use kdyno_job::error::Source;
use kdyno_model::{
    Better, BoxFacts, ClockKind, ExtractRules, Measurement, MetricRule, MonitorOverhead, Outcome,
    Reading, Role, Round, Value, Window, nearest,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// An entry of the catalog in its folder.
const ENTRY: &str = "program.yaml";

/// `kdyno program list|show|check`.
pub fn command(args: &ProgramArgs, context: &mut Context) -> anyhow::Result<Status> {
    let text = match &args.command {
        ProgramCommand::List => list(&catalog(context)?),
        ProgramCommand::Show { name } => show(&catalog(context)?, name)?,
        ProgramCommand::Check { folders } => check(folders)?,
    };
    context.out.write_all(text.as_bytes())?;
    context.out.flush()?;
    Ok(Status::Done)
}

/// The built-in programs and the user's. A broken entry of the user is told and left out, so that
/// it stands in the way of no other program.
///
/// # Errors
/// A broken built-in entry, which tests exclude.
pub fn catalog(context: &mut Context) -> anyhow::Result<Catalog> {
    let mut catalog = Catalog::built_in()?;
    for folder in user_folders() {
        if let Err(error) = add(&mut catalog, &folder) {
            context.note(&format!("left out: {error:#}"));
        }
    }
    Ok(catalog)
}

/// Adds the entry of a folder and gives its name.
fn add(catalog: &mut Catalog, folder: &Path) -> anyhow::Result<String> {
    let path = folder.join(ENTRY);
    let name = path.display().to_string();
    let text = std::fs::read_to_string(&path).with_context(|| name.clone())?;
    Ok(catalog.add(Source::new(&name, &text))?)
}

/// Folders with an entry, those of the working directory last, so that they win.
fn user_folders() -> Vec<PathBuf> {
    let config = std::env::var_os("XDG_CONFIG_HOME")
        .filter(|dir| !dir.is_empty())
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".config")));
    let places = [
        config.map(|dir| dir.join("kdyno/programs")),
        Some(PathBuf::from("programs")),
    ];
    places
        .into_iter()
        .flatten()
        .flat_map(|place| entries(&place))
        .collect()
}

fn entries(place: &Path) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(place).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = listed
        .map(|entry| entry.path())
        .filter(|folder| folder.join(ENTRY).is_file())
        .collect();
    folders.sort();
    folders
}

fn list(catalog: &Catalog) -> String {
    let width = catalog.names().map(str::len).max().unwrap_or(0);
    let mut out = String::new();
    for program in catalog.names().filter_map(|name| catalog.get(name)) {
        let _ = writeln!(
            out,
            "{:<width$}  {:<13}  {}",
            program.name,
            state(program),
            first_sentence(&program.about)
        );
    }
    out.push_str("\n`kdyno program show NAME` shows options and metrics\n");
    out
}

fn first_sentence(about: &str) -> &str {
    about
        .split_inclusive(['.', ':'])
        .next()
        .unwrap_or(about)
        .trim_end_matches(':')
}

/// Whether its executable is here.
fn state(program: &Program) -> &'static str {
    match &program.tool {
        None => "any",
        Some(tool) if tool.builtin.is_some() => "built in",
        Some(tool) if tool.name.contains('{') => "by options",
        Some(tool) if in_path(&tool.name) => "installed",
        Some(_) => "not installed",
    }
}

fn in_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}

fn show(catalog: &Catalog, name: &str) -> anyhow::Result<String> {
    let program = catalog.get(name).ok_or_else(|| {
        let names: Vec<&str> = catalog.names().collect();
        let hint = match nearest(name, &names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`kdyno program list` shows all".to_owned(),
        };
        UsageError::new(format!("there is no program `{name}`"), hint)
    })?;
    let mut out = format!("{}: {}\n", program.name, program.about);
    if let Some(upstream) = &program.upstream {
        let _ = writeln!(out, "upstream: {upstream}");
    }
    if let Some(tool) = &program.tool {
        let _ = match state(program) {
            "installed" => writeln!(out, "{} is installed", tool.name),
            "by options" => writeln!(out, "the options say which executable: {}", tool.hint),
            state => writeln!(out, "{} {state}: {}", tool.name, tool.hint),
        };
    }
    if !program.options.is_empty() {
        out.push_str("\noptions\n");
    }
    for option in &program.options {
        out.push_str(&wrapped(&option_line(option)));
    }
    if !program.rules.metrics.is_empty() {
        out.push_str("\nmetrics\n");
    }
    for rule in &program.rules.metrics {
        out.push_str(&wrapped(&metric_line(rule)));
    }
    Ok(out)
}

/// Columns of a line of options or metrics.
const WIDTH: usize = 96;

/// An indented line, broken between words, what follows further in.
fn wrapped(text: &str) -> String {
    let mut out = String::from(" ");
    let mut column = 1;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column + 1 + length > WIDTH && column > 6 {
            out.push_str("\n     ");
            column = 5;
        }
        out.push(' ');
        out.push_str(word);
        column += 1 + length;
    }
    out.push('\n');
    out
}

fn option_line(option: &OptionSpec) -> String {
    let kind = match &option.kind {
        OptionKind::Choice(words) => words.join(" | "),
        OptionKind::Size => "size".to_owned(),
        OptionKind::Time => "time".to_owned(),
        OptionKind::Tasks => "tasks".to_owned(),
        OptionKind::Count => "count".to_owned(),
        OptionKind::Flag => "true|false".to_owned(),
        OptionKind::Text => "text".to_owned(),
        OptionKind::Path => "path".to_owned(),
    };
    let default = match &option.default {
        Some(default) => format!(" [{default}]"),
        None if option.required => " (required)".to_owned(),
        None => String::new(),
    };
    format!("{}: {kind}{default}  {}", option.name, option.about)
}

fn metric_line(rule: &MetricRule) -> String {
    let direction = match rule.better {
        Better::Higher => ", higher is better",
        Better::Lower => ", lower is better",
        Better::Neither => "",
    };
    let role = if rule.role == Role::Headline {
        ", headline"
    } else {
        ""
    };
    let of = format!("{}{direction}{role}", rule.unit.as_str());
    let of = match of.trim_start_matches(", ") {
        "" => String::new(),
        of => format!(" ({of})"),
    };
    format!("{}{of}  {}", rule.name, rule.about)
}

/// Loads entries and reads their recorded output; without folders those of the user.
fn check(folders: &[PathBuf]) -> anyhow::Result<String> {
    let own = user_folders();
    let folders = if folders.is_empty() { &own } else { folders };
    let mut out = String::new();
    for folder in folders {
        let mut catalog = Catalog::built_in()?;
        let name = add(&mut catalog, folder)?;
        let program = catalog.get(&name).context("the entry was added")?;
        let (figures, checked) = check_fixtures(program, &folder.join("fixtures"))?;
        let names = program.rules.metrics.iter().map(|rule| &rule.name);
        let is_unchecked = |name: &&String| {
            let whole = format!("{}.{name}", program.name);
            !checked.contains(&whole)
        };
        let unchecked: Vec<&str> = names.filter(is_unchecked).map(String::as_str).collect();
        let unchecked = match unchecked.is_empty() {
            true => String::new(),
            false => format!("; no fixture has {}", unchecked.join(", ")),
        };
        let _ = writeln!(
            out,
            "{}: {} of recorded output {}{unchecked}",
            program.name,
            counted(figures),
            if figures == 1 {
                "is right"
            } else {
                "are right"
            }
        );
    }
    if out.is_empty() {
        out.push_str("no program of yours; give folders, as `kdyno program check programs/mine`\n");
    }
    Ok(out)
}

fn counted(figures: usize) -> String {
    match figures {
        1 => "1 figure".to_owned(),
        figures => format!("{figures} figures"),
    }
}

/// Each `NAME.out` (and `NAME.err`) must give what `NAME.expected` says. How many figures are
/// right, and which metrics they are of.
fn check_fixtures(program: &Program, fixtures: &Path) -> anyhow::Result<(usize, BTreeSet<String>)> {
    let listed = std::fs::read_dir(fixtures)
        .map_err(|error| {
            UsageError::new(
                format!("{}: {error}", fixtures.display()),
                "record a run's output there: fixtures/NAME.out, and what it says in fixtures/NAME.expected, a line `METRIC VALUE` per figure",
            )
        })?
        .flatten();
    let mut outputs: Vec<PathBuf> = listed
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "out"))
        .collect();
    outputs.sort();
    let (mut figures, mut checked) = (0, BTreeSet::new());
    for output in outputs {
        let metrics = check_fixture(program, &output)?;
        figures += metrics.len();
        checked.extend(metrics);
    }
    if figures == 0 {
        let message = format!("{}: no recorded figure", fixtures.display());
        return Err(UsageError::new(message, "see docs/catalog.md").into());
    }
    Ok((figures, checked))
}

/// The metrics that the fixture has right.
fn check_fixture(program: &Program, output: &Path) -> anyhow::Result<Vec<String>> {
    let expected = Expected::read(&output.with_extension("expected"))?;
    let stdout = std::fs::read(output).with_context(|| output.display().to_string())?;
    let stderr = std::fs::read(output.with_extension("err")).unwrap_or_default();
    let name = |rule: &MetricRule| format!("{}.{}", program.name, rule.name);
    let mut rules = ExtractRules {
        prefix: program.name.clone(),
        ..program.rules.clone()
    };
    // Which metrics a run gives depends on its options: the fixture knows.
    rules.metrics.retain(|rule| expected.names(&name(rule)));
    let raw = RawOutput {
        stdout: &stdout,
        stderr: &stderr,
    };
    let extracted = extract(&rules, raw, &measurement_of(stdout.len(), stderr.len()))?;
    let figures = figures_of(&extracted.readings);
    for (number, metric, text) in &expected.figures {
        let reason = match figures.get(metric) {
            None => format!("{metric} is not read from {}", output.display()),
            Some(found) if !is_told_by(*found, text) => {
                format!("{metric} is {}, not {text}", exact(*found))
            }
            Some(_) => continue,
        };
        return Err(expected.wrong(*number, reason).into());
    }
    if let Some(problem) = extracted.problem {
        let message = format!("{}: {problem}", output.display());
        return Err(UsageError::new(message, "see the rules below `extract`").into());
    }
    let figures = expected.figures.into_iter();
    Ok(figures.map(|(_, metric, _)| metric).collect())
}

/// Whether a number, rounded to as many decimals as the text has, is the text's.
fn is_told_by(found: f64, text: &str) -> bool {
    let Ok(told) = text.parse::<f64>() else {
        return false;
    };
    if found == told {
        return true;
    }
    let decimals = text
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len());
    let is_plain = text
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-'));
    is_plain && decimals > 0 && format!("{found:.decimals$}") == text
}

/// One number for each metric: its value, or how many observations a histogram has.
fn figures_of(readings: &[Reading]) -> BTreeMap<String, f64> {
    let scalars = scalars_of(readings);
    let mut figures: BTreeMap<String, f64> = scalars
        .iter()
        .map(|scalar| (scalar.metric.to_string(), scalar.value))
        .collect();
    for reading in readings {
        if let Value::Histogram(histogram) = &reading.value {
            let count: u64 = histogram.buckets.iter().map(|bucket| bucket.count).sum();
            figures.insert(reading.metric.to_string(), count as f64);
        }
    }
    figures
}

/// What a fixture says, line by line.
struct Expected {
    path: PathBuf,
    /// Line, metric, value as it is written.
    figures: Vec<(usize, String, String)>,
}

impl Expected {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let mut expected = Self {
            path: path.to_owned(),
            figures: Vec::new(),
        };
        for (number, line) in (1..).zip(text.lines()) {
            let figure = line
                .rsplit_once(' ')
                .filter(|(_, value)| value.parse::<f64>().is_ok())
                .map(|(metric, value)| (number, metric.to_owned(), value.to_owned()));
            let wrong = || expected.wrong(number, format!("`{line}` is no metric and value"));
            let figure = figure.ok_or_else(wrong)?;
            expected.figures.push(figure);
        }
        Ok(expected)
    }

    fn names(&self, metric: &str) -> bool {
        self.figures.iter().any(|(_, named, _)| named == metric)
    }

    fn wrong(&self, number: usize, reason: String) -> UsageError {
        UsageError::new(
            format!("{}:{number}: {reason}", self.path.display()),
            "a line is `METRIC VALUE`, with decimals as many as you like",
        )
    }
}

/// One round whose output is the whole fixture.
fn measurement_of(stdout: usize, stderr: usize) -> Measurement {
    let round = Round {
        stdout_to: stdout as u64,
        stderr_to: stderr as u64,
        ..Round::default()
    };
    Measurement {
        outcome: Outcome::Done,
        window: Window::default(),
        clock: ClockKind::Wall,
        rounds: vec![round],
        facts_before: BoxFacts::default(),
        facts_after: BoxFacts::default(),
        kernel_log: Vec::new(),
        series: Vec::new(),
        overhead: MonitorOverhead::default(),
        notes: Vec::new(),
    }
}
