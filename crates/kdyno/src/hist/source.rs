//! Where distributions come from: files, standard input, runs.

use crate::cli::HistArgs;
use crate::compare;
use crate::context::{Context, UsageError};
use anyhow::Context as _;
use kdyno_analyze::MetricGlobs;
use kdyno_analyze::distribution::{buckets_of, distributions};
use kdyno_analyze::render::hist::Series;
use kdyno_analyze::render::hist::unit::factor;
use kdyno_analyze::render::page::Stretch;
use kdyno_formats::hist::{self, HistError, Report, Section};
use kdyno_model::VariantName;
use kdyno_stats::hist::Buckets;
use std::io::Read;
use std::path::Path;

/// Most bytes of a file that are read.
const MOST_BYTES: u64 = 1 << 30;

/// Series of one kind in one unit.
pub struct Distribution {
    /// What they are of.
    pub title: String,
    /// The unit of the values; empty when nobody knows.
    pub unit: String,
    /// In the order of the inputs.
    pub series: Vec<Series>,
    /// Whether they are alternatives: variants, or an input each; not keys of one input.
    pub alternatives: bool,
    /// What was counted when, where the source tells; of the first series that does.
    pub over_time: Vec<Stretch>,
}

/// What the arguments name.
pub fn find(args: &HistArgs, context: &mut Context) -> anyhow::Result<Vec<Distribution>> {
    // Also a pipe, as a shell's `<(command)` makes it.
    let is_file = |word: &String| {
        let path = Path::new(word);
        word == "-" || (path.exists() && !path.is_dir())
    };
    if !args.what.is_empty() && args.what.iter().all(is_file) {
        if !args.metric.is_empty() {
            let hint = "of files give --section GLOB";
            return Err(UsageError::new("--metric is for runs", hint).into());
        }
        return of_files(args, context);
    }
    if args.what.iter().any(is_file) {
        let word = args.what.iter().find(|word| !is_file(word));
        return Err(UsageError::new(
            format!("{}: there is no such file", word.map_or("", String::as_str)),
            "name files only, or a selection of runs only",
        )
        .into());
    }
    if args.from.is_some() || !args.section.is_empty() {
        let hint = "--from and --section are for files; of runs choose with --metric GLOB";
        return Err(UsageError::new("no file is named", hint).into());
    }
    of_runs(args, context)
}

fn of_runs(args: &HistArgs, context: &mut Context) -> anyhow::Result<Vec<Distribution>> {
    let selected = compare::selected(&args.what, context)?;
    let metrics = match args.metric.as_slice() {
        [] => selected.metrics,
        globs => Some(MetricGlobs::new(globs)?),
    };
    let variants: Vec<VariantName> = selected.columns.into_iter().map(|(name, _)| name).collect();
    let found = distributions(&selected.rows, &variants, metrics.as_ref());
    if found.is_empty() {
        let (message, hint) = match selected.rows.is_empty() {
            true => (
                "no run yet",
                "name a file, or begin with `kdyno run jobs/syslatency.yaml`",
            ),
            false => (
                "no run has such a histogram",
                "`kdyno show --all` lists the readings of a run; fio and syslatency have histograms",
            ),
        };
        return Err(UsageError::new(message, hint).into());
    }
    let distribution = |found: kdyno_analyze::distribution::Distribution| Distribution {
        title: format!("{} {}", found.case.name_on(&found.testbox), found.metric),
        unit: found.unit.as_str().to_owned(),
        series: found.series,
        alternatives: true,
        over_time: Vec::new(),
    };
    Ok(found.into_iter().map(distribution).collect())
}

fn of_files(args: &HistArgs, context: &mut Context) -> anyhow::Result<Vec<Distribution>> {
    let wanted = match args.section.as_slice() {
        [] => None,
        globs => Some(MetricGlobs::new(globs)?),
    };
    let mut found: Option<Distribution> = None;
    for file in &args.what {
        let report = read(file, args)?;
        for note in &report.notes {
            context.note(&format!("note: {file}: {note}"));
        }
        let sections: Vec<&Section> = report
            .sections
            .iter()
            .filter(|section| {
                wanted
                    .as_ref()
                    .is_none_or(|globs| globs.is_match(&section.name))
            })
            .collect();
        if sections.is_empty() {
            let names: Vec<&str> = report.sections.iter().map(|s| s.name.as_str()).collect();
            return Err(UsageError::new(
                format!("{file}: no section matches --section"),
                format!("it has {}", names.join(", ")),
            )
            .into());
        }
        let alone = args.what.len() == 1;
        take_in(file, alone, &sections, &mut found, context)?;
    }
    Ok(found.into_iter().collect())
}

fn read(file: &str, args: &HistArgs) -> anyhow::Result<Report> {
    let mut bytes = Vec::new();
    let read = if file == "-" {
        std::io::stdin().take(MOST_BYTES).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|f| f.take(MOST_BYTES).read_to_end(&mut bytes))
    };
    read.with_context(|| file.to_owned())?;
    hist::read(&bytes, args.from).map_err(|error| of_input(file, &error).into())
}

/// An error of an input's text, with its place.
pub fn of_input(file: &str, error: &HistError) -> UsageError {
    let file = if file == "-" { "standard input" } else { file };
    let place = match error.line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    };
    UsageError::new(format!("{place}: {}", error.reason), error.hint.clone())
}

/// Adds the sections of a file: those of one name are stretches of one series.
fn take_in(
    file: &str,
    alone: bool,
    sections: &[&Section],
    found: &mut Option<Distribution>,
    context: &mut Context,
) -> anyhow::Result<()> {
    let mut names: Vec<&str> = Vec::new();
    for section in sections {
        if !names.contains(&section.name.as_str()) {
            names.push(&section.name);
        }
    }
    let unit = sections.first().map_or("", |section| section.unit.as_str());
    let distribution = found.get_or_insert_with(|| Distribution {
        title: if alone {
            file.to_owned()
        } else {
            "distributions".to_owned()
        },
        unit: unit.to_owned(),
        series: Vec::new(),
        alternatives: !alone,
        over_time: Vec::new(),
    });
    let stem = Path::new(file)
        .file_name()
        .map_or(file.into(), |name| name.to_string_lossy());
    for name in &names {
        let own = || sections.iter().filter(|section| section.name == **name);
        let mut parts = Vec::new();
        for section in own() {
            let factor = factor(section.unit.as_str(), &distribution.unit).ok_or_else(|| {
                UsageError::new(
                    format!(
                        "{file}: values are in `{}`, those before in `{}`",
                        section.unit.as_str(),
                        distribution.unit
                    ),
                    "show them apart",
                )
            })?;
            parts.push(buckets_of(&section.histogram).scaled(factor));
        }
        if parts.len() > 1 && own().any(|section| section.span.is_none()) {
            let label = if name.is_empty() {
                "the histogram"
            } else {
                name
            };
            context.note(&format!(
                "{file}: {label} was printed {} times: put together",
                parts.len()
            ));
        }
        if distribution.over_time.is_empty() && parts.len() > 1 {
            distribution.over_time = stretches(own().copied(), &parts);
        }
        let label = match (alone, name.is_empty()) {
            (true, true) => stem.to_string(),
            (true, false) => (*name).to_owned(),
            (false, true) => stem.to_string(),
            (false, false) if names.len() == 1 => stem.to_string(),
            (false, false) => format!("{stem}:{name}"),
        };
        distribution.series.push(Series {
            name: label,
            runs: vec![Buckets::pooled(&parts)],
        });
    }
    Ok(())
}

/// What was counted when; nothing unless every section tells.
fn stretches<'s>(sections: impl Iterator<Item = &'s Section>, parts: &[Buckets]) -> Vec<Stretch> {
    let told = sections.zip(parts).map(|(section, buckets)| {
        let span = section.span?;
        Some(Stretch {
            start_s: span.start_s,
            length_s: span.length_s,
            buckets: buckets.clone(),
        })
    });
    let mut stretches: Vec<Stretch> = told.collect::<Option<_>>().unwrap_or_default();
    let first = stretches
        .iter()
        .map(|stretch| stretch.start_s)
        .reduce(f64::min);
    for stretch in &mut stretches {
        stretch.start_s -= first.unwrap_or(0.0);
    }
    stretches
}
