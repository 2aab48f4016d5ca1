//! The table for people at a terminal: sentences first, then figures with their number of runs.
//!
//! More than two columns are shown as pairs with the first, so that lines stay short whatever
//! the number of variants. Names of metrics are never cut; long names of variants are, and stand
//! whole in CSV and JSON. What stands behind the figures is estimate, interval, verdict and
//! adjusted p of each change.

use super::CHANGE;
use super::figure::{cut, mean_and_spread, printable, shortened, spread_text, value_text};
use super::sentence::{boots, sentence};
use super::words::{change_text, interval_text, p_text, reason_words, verdict_text};
use crate::compare::runs;
use crate::comparison::{
    CaseTable, Cell, Column, Comparison, Counts, Design, FailureRow, Group, GroupKind, Replicate,
    Row,
};
use crate::distribution::{DistributionCell, DistributionRow};
use crate::noise::History;
use crate::number::general;
use kdyno_model::Better;
use kdyno_stats::judge::Verdict;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Prose is wrapped here; lines of figures are as long as their names need.
const PROSE_WIDTH: usize = 90;
const CELL_WIDTH: usize = 20;
const CHANGE_WIDTH: usize = 9;
const INTERVAL_WIDTH: usize = 18;
const VERDICT_WIDTH: usize = 26;
/// Metrics named in a note before the rest is only counted.
const NAMED: usize = 3;

/// What the caller wants beside the usual.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextOptions {
    /// A column with what lkp-tests would have said.
    pub lkp_rule: bool,
}

/// All tables, each with heading, sentences, figures and notes.
#[must_use]
pub fn render(comparison: &Comparison, options: &TextOptions) -> String {
    let mut out = String::new();
    for (place, table) in comparison.tables.iter().enumerate() {
        if place > 0 {
            out.push('\n');
        }
        out.push_str(&section(table, &comparison.columns, options));
    }
    if comparison.tables.is_empty() {
        out.push_str("no run to compare\n");
    }
    let notes = comparison.notes.iter();
    let notes: String = notes
        .map(|note| wrapped(&format!("note: {}", with_titles(note, &comparison.columns))))
        .collect();
    out.push_str(&after_blank_line(&notes));
    out
}

/// A paragraph with a blank line before it, or nothing when it is empty.
fn after_blank_line(paragraph: &str) -> String {
    if paragraph.is_empty() {
        String::new()
    } else {
        format!("\n{paragraph}")
    }
}

/// Later columns that have figures here; the others are told by the heading.
fn later_columns(table: &CaseTable) -> Vec<usize> {
    let counts = table.counts.iter().enumerate().skip(1);
    counts
        .filter(|(_, counts)| counts.runs > 0)
        .map(|(place, _)| place)
        .collect()
}

fn section(table: &CaseTable, columns: &[Column], options: &TextOptions) -> String {
    let mut out = heading(table, columns);
    out.push_str(&after_blank_line(&prose(table, columns)));
    if table.rows().next().is_some() {
        let mut pairs: Vec<Vec<usize>> = later_columns(table)
            .into_iter()
            .map(|later| vec![0, later])
            .collect();
        if pairs.is_empty() {
            pairs.push(vec![0]);
        }
        for pair in pairs {
            out.push('\n');
            out.push_str(&figures(table, columns, &pair, options));
        }
    }
    out.push_str(&hidden(table.hidden));
    out.push_str(&notes(table, columns));
    out.push_str(&after_blank_line(&grounds(table, columns)));
    out
}

/// What the verdicts rest on beside the runs of the table.
fn grounds(table: &CaseTable, columns: &[Column]) -> String {
    let mut out = String::new();
    let name = |place: usize| {
        columns
            .get(place)
            .map_or(String::new(), |c| shortened(c.name.as_str()))
    };
    for (place, design) in table.designs.iter().enumerate() {
        if design.as_ref().is_some_and(|design| !design.in_turn) {
            out.push_str(&wrapped(&format!(
                "note: {} and {} were not run in turn: slow drift would look like a change",
                name(0),
                name(place)
            )));
        }
    }
    if let Some((row, history)) = first_history(table) {
        out.push_str(&wrapped(&format!(
            "noise memory: {} earlier run set{} ({}) tell how much {} varies; --no-history \
             leaves them out",
            history.sets,
            if history.sets == 1 { "" } else { "s" },
            runs(history.runs),
            row.metric
        )));
    }
    for (row, place, cell) in distribution_cells(table) {
        let is_boot = |design: &Design| design.replicate == Replicate::Boot;
        let design = table.designs.get(place).and_then(Option::as_ref);
        out.push_str(&wrapped(&format!(
            "{} as a whole: {}",
            row.metric,
            distribution(cell, &name(place), &name(0), design.is_some_and(is_boot))
        )));
    }
    for control in &table.controls {
        let share = |(differing, tested): (u64, u64)| format!("{differing} of {tested}");
        out.push_str(&wrapped(&format!(
            "A/A control {}: {} headline and {} other metrics differ at p <= 0.05; by chance \
             5 % do",
            name(control.column),
            share(control.headline),
            share(control.other)
        )));
    }
    out
}

fn distribution_cells(
    table: &CaseTable,
) -> impl Iterator<Item = (&DistributionRow, usize, &DistributionCell)> {
    table.distributions.iter().flat_map(|row| {
        let cells = row.cells.iter().enumerate();
        cells.filter_map(move |(place, cell)| Some((row, place, cell.as_ref()?)))
    })
}

/// Where a distribution lies to that of the base, and whether runs tell.
fn distribution(cell: &DistributionCell, name: &str, base: &str, by_boot: bool) -> String {
    let ratio = cell.shift_octaves.exp2();
    let place = if (0.5..2.0).contains(&ratio) {
        let side = if ratio < 1.0 { "below" } else { "above" };
        let percent = 100.0 * (ratio - 1.0).abs();
        format!("lie {} % {side} those of {base}", general(percent, 3))
    } else {
        format!("are {} times those of {base}", general(ratio, 3))
    };
    let (n, m) = cell.runs;
    let ground = match by_boot {
        true => "runs of one boot are no replicates: no p".to_owned(),
        false if cell.smallest_p > 0.05 => {
            format!(
                "too few runs: no p below {} could come out",
                p_text(Some(cell.smallest_p))
            )
        }
        false => format!(
            "p {}, labels of {n} and {m} runs exchanged",
            p_text(Some(cell.p))
        ),
    };
    format!(
        "values of {name} {place} on geometric average, largest gap of shares {} ({ground})",
        general(cell.ks, 2)
    )
}

/// The first row that borrowed from its history, headline metrics first.
fn first_history(table: &CaseTable) -> Option<(&Row, &History)> {
    table.rows().find_map(|row| {
        let judged = row
            .cells
            .iter()
            .flatten()
            .filter_map(|c| c.judged.as_deref());
        let history = judged
            .into_iter()
            .find_map(|judged| judged.history.as_ref())?;
        Some((row, history))
    })
}

/// Sentences up to which every headline metric has one; beyond, only changes do.
const ALL_SENTENCES: usize = 40;
/// Sentences beyond which the rest is only counted.
const MOST_SENTENCES: usize = 20;

/// What the headline metrics say, then what failed.
fn prose(table: &CaseTable, columns: &[Column]) -> String {
    let is_control = |place: &usize| columns.get(*place).is_some_and(|c| c.control);
    let places: Vec<usize> = later_columns(table)
        .into_iter()
        .filter(|place| !is_control(place))
        .collect();
    let is_headline = |group: &&Group| group.kind == GroupKind::Headline;
    let headline = table.groups.iter().filter(is_headline);
    let said: Vec<(&Row, usize)> = headline
        .flat_map(|group| &group.rows)
        .flat_map(|row| places.iter().map(move |place| (row, *place)))
        .collect();
    let changed = |(row, place): &(&Row, usize)| {
        let verdict = row.cell(*place).and_then(Cell::verdict);
        verdict.is_some_and(Verdict::is_change)
    };
    let mut out = String::new();
    if said.len() <= ALL_SENTENCES {
        for (row, place) in said {
            out.extend(sentence(row, columns, place).map(|text| wrapped(&text)));
        }
    } else {
        let changes: Vec<(&Row, usize)> = said.iter().copied().filter(changed).collect();
        for (row, place) in changes.iter().take(MOST_SENTENCES) {
            out.extend(sentence(row, columns, *place).map(|text| wrapped(&text)));
        }
        let _ = writeln!(
            out,
            "{} of {} headline figures changed",
            changes.len(),
            said.len()
        );
    }
    for row in &table.failures {
        out.push_str(&wrapped(&failure(row, columns)));
    }
    out
}

/// How many diagnostics were left out: by choice, or since they did not stand out, which is a
/// display filter and no verdict.
fn hidden(metrics: usize) -> String {
    let plural = if metrics == 1 { "" } else { "s" };
    match metrics {
        0 => String::new(),
        n => format!("\n{n} diagnostic{plural} not shown; `kdyno compare --all` shows them\n"),
    }
}

/// The case, then each column with its runs and boots.
fn heading(table: &CaseTable, columns: &[Column]) -> String {
    let mut out = format!("{}\n", printable(&table.name()));
    let names: Vec<String> = columns.iter().map(|c| shortened(c.name.as_str())).collect();
    let widths = names.iter().map(|name| name.chars().count());
    let width = widths.max().unwrap_or(0);
    for ((column, name), counts) in columns.iter().zip(&names).zip(&table.counts) {
        let _ = write!(out, "  {name:<width$}  {}", counted(table, counts));
        if let Some(description) = &column.description {
            let _ = write!(out, "  {}", printable(description));
        }
        out.push('\n');
    }
    out
}

fn counted(table: &CaseTable, counts: &Counts) -> String {
    let mut text = runs(counts.runs);
    if counts.runs > 0 && !table.is_of_values() {
        let _ = write!(text, ", {}", boots(counts.boots.len()));
    }
    match counts.warm_ups {
        0 => {}
        1 => text.push_str(", 1 warm-up dropped"),
        n => {
            let _ = write!(text, ", {n} warm-ups dropped");
        }
    }
    text
}

fn failure(row: &FailureRow, columns: &[Column]) -> String {
    let parts: Vec<String> = row
        .cells
        .iter()
        .zip(columns)
        .map(|(cell, column)| {
            let name = shortened(column.name.as_str());
            let share = format!("{name} {} of {}", cell.failed, runs_of(cell.runs));
            match (cell.difference, &cell.judged) {
                (Some(points), Some(judged)) => {
                    let interval = judged
                        .interval
                        .map(|(low, high)| format!(", {low:+.0}..{high:+.0}"));
                    let reasons = &judged.judgement.reasons;
                    let why = reasons.iter().map(|r| format!(", {}", reason_words(*r)));
                    format!(
                        "{share} ({points:+.0} percentage points{}; {}{})",
                        interval.unwrap_or_default(),
                        judged.judgement.verdict.word(),
                        why.collect::<String>()
                    )
                }
                _ => share,
            }
        })
        .collect();
    format!("{}: {}", row.name, parts.join(", "))
}

fn runs_of(n: u64) -> String {
    usize::try_from(n).map_or_else(|_| format!("{n} runs"), runs)
}

/// The lines of figures for the columns at `places`.
fn figures(
    table: &CaseTable,
    columns: &[Column],
    places: &[usize],
    options: &TextOptions,
) -> String {
    let (mut names, mut titles) = (String::new(), String::new());
    for (position, place) in places.iter().enumerate() {
        if position > 0 {
            let _ = write!(names, " {:CHANGE_WIDTH$}", "");
            let _ = write!(titles, " {CHANGE:>CHANGE_WIDTH$}");
        }
        let name = columns
            .get(*place)
            .map_or("", |column| column.name.as_str());
        let _ = write!(names, "{:>CELL_WIDTH$}", cut(name, CELL_WIDTH - 1));
        let _ = write!(titles, "{:>10}{:>6}{:>4}", "mean", "%sd", "n");
    }
    if places.len() > 1 {
        let interval = interval_title(table, places);
        let _ = write!(
            titles,
            " {interval:>INTERVAL_WIDTH$}  {:<VERDICT_WIDTH$}{:>6}",
            "verdict", "q"
        );
        if options.lkp_rule {
            titles.push_str("  LKP    ");
        }
    }
    let mut out = format!("{names}\n{titles}  metric\n");
    let mut in_diagnostics = false;
    for group in &table.groups {
        if matches!(group.kind, GroupKind::Diagnostic(_)) && !in_diagnostics {
            in_diagnostics = true;
            out.push('\n');
        }
        for row in &group.rows {
            out.push_str(&figure_line(row, places, options));
        }
    }
    out
}

/// With how much certainty the intervals of these columns hold.
fn interval_title(table: &CaseTable, places: &[usize]) -> String {
    let cells = table
        .rows()
        .flat_map(|row| places.iter().skip(1).filter_map(|place| row.cell(*place)));
    let level = cells
        .filter_map(|cell| cell.judged.as_ref())
        .map(|judged| judged.level)
        .next();
    level.map_or_else(
        || "interval".to_owned(),
        |level| match level {
            level if level > 0.999_99 => ">99.999% interval".to_owned(),
            level => format!("{}% interval", general(100.0 * level, 5)),
        },
    )
}

fn figure_line(row: &Row, places: &[usize], options: &TextOptions) -> String {
    let mut out = String::new();
    let mut verdict = String::new();
    for (position, place) in places.iter().enumerate() {
        let cell = row.cell(*place);
        if position > 0 {
            let change = cell.map(change_text).unwrap_or_default();
            let _ = write!(out, " {change:>CHANGE_WIDTH$}");
            verdict = verdict_columns(cell, options);
        }
        let figure = cell.map_or_else(|| format!("{:>10}{:10}", "-", ""), figure);
        // A figure as wide as its column would stand against the change before it.
        let gap = if position > 0 && !figure.starts_with(' ') {
            " "
        } else {
            ""
        };
        let _ = write!(out, "{gap}{figure}");
    }
    out.push_str(&verdict);
    let direction = match row.better {
        Better::Higher => "higher is better",
        Better::Lower => "lower is better",
        Better::Neither => "",
    };
    let meaning: Vec<&str> = [row.unit.as_str(), direction]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    let _ = write!(out, "  {}  {}", row.metric, printable(&meaning.join(", ")));
    format!("{}\n", out.trim_end())
}

/// Interval, verdict and adjusted p of a cell.
fn verdict_columns(cell: Option<&Cell>, options: &TextOptions) -> String {
    let judged = cell.and_then(|cell| cell.judged.as_deref());
    let (interval, verdict, p) = judged.map_or_else(Default::default, |judged| {
        (
            interval_text(judged),
            verdict_text(judged),
            p_text(judged.adjusted_p),
        )
    });
    let mut out = format!(" {interval:>INTERVAL_WIDTH$}  {verdict:<VERDICT_WIDTH$}{p:>6}");
    if options.lkp_rule {
        let said = if judged.is_some_and(|judged| judged.lkp_rule) {
            "changed"
        } else {
            "-"
        };
        let _ = write!(out, "  {said:<7}");
    }
    out
}

fn figure(cell: &Cell) -> String {
    let (mean, spread) = mean_and_spread(cell);
    let value = if mean != 0.0 && mean.abs() < 1.0 {
        general(mean, 4)
    } else {
        value_text(mean)
    };
    let spread = spread_text(spread.map(f64::abs));
    format!("{value:>10}{spread}{:>4}", cell.n())
}

/// Notes of the table, then those of its rows by what they say.
fn notes(table: &CaseTable, columns: &[Column]) -> String {
    let mut out = String::new();
    for note in &table.notes {
        out.push_str(&wrapped(&format!("note: {}", with_titles(note, columns))));
    }
    let mut by_text: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in table.rows() {
        for note in row.notes.iter().filter(|note| !table.notes.contains(note)) {
            by_text.entry(note).or_default().push(row.metric.as_str());
        }
    }
    for (note, metrics) in by_text {
        let named = metrics
            .iter()
            .take(NAMED)
            .copied()
            .collect::<Vec<_>>()
            .join(", ");
        let rest = match metrics.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let note = with_titles(note, columns);
        out.push_str(&wrapped(&format!("note: {named}{rest}: {note}")));
    }
    after_blank_line(&out)
}

/// A note with the variants' names as the heading has them.
fn with_titles(note: &str, columns: &[Column]) -> String {
    let mut names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
    // A name may be the beginning of a longer one.
    names.sort_by_key(|name| Reverse(name.len()));
    names.into_iter().fold(note.to_owned(), |note, name| {
        note.replace(name, &shortened(name))
    })
}

/// Prose broken at blanks, further lines indented by two; a long word stands whole.
fn wrapped(text: &str) -> String {
    let text = printable(text);
    let (mut out, mut used) = (String::new(), 0);
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > PROSE_WIDTH {
            out.push_str("\n  ");
            used = 2;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out.push('\n');
    out
}
