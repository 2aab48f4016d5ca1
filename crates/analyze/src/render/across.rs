//! The grid of machines by variants, and what the machines say together.

use super::figure::{cut, printable, shortened};
use super::words::{change_text, interval_text, p_text, size_text, verdict_text};
use crate::across::{Grid, Together, grids};
use crate::comparison::{Cell, Column, Comparison, Row};
use kdyno_model::Better;
use kdyno_stats::judge::Scale;
use std::collections::BTreeMap;
use std::fmt::Write;

const CELL: usize = 54;

/// Every grid; `commands` are what to run on a machine that disagrees, by its name.
#[must_use]
pub fn render(comparison: &Comparison, commands: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    for grid in grids(comparison) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&title(&grid));
        out.push_str(&table(&grid, &comparison.columns));
        for together in &grid.together {
            let lines = lines(&grid, together, &comparison.columns, commands);
            out.push_str(&lines);
        }
    }
    if out.is_empty() {
        out.push_str("no run to compare\n");
    }
    for note in &comparison.notes {
        let _ = writeln!(out, "note: {}", printable(note));
    }
    out
}

fn title(grid: &Grid<'_>) -> String {
    let direction = match grid.row.better {
        Better::Higher => "higher is better",
        Better::Lower => "lower is better",
        Better::Neither => "",
    };
    let meaning: Vec<&str> = [grid.row.unit.as_str(), direction]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    let title = format!("{} {}", grid.case, grid.row.metric);
    let meaning = meaning.join(", ");
    format!("{}  {}\n", printable(&title), printable(&meaning)).replace("  \n", "\n")
}

fn table(grid: &Grid<'_>, columns: &[Column]) -> String {
    let names = grid
        .boxes
        .iter()
        .map(|(table, _)| printable(&table.testbox));
    let width = names
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0)
        .max(7);
    let base = columns.first().map_or("", |column| column.name.as_str());
    let mut out = format!("{:<width$}  {:>16}", "testbox", cut(base, 16));
    for column in columns.iter().skip(1) {
        let _ = write!(out, "  {:<CELL$}", cut(column.name.as_str(), CELL));
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    for (of_box, row) in &grid.boxes {
        let line = line(&printable(&of_box.testbox), width, row);
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

fn line(name: &str, width: usize, row: &Row) -> String {
    let base = row.base().map_or_else(
        || "-".to_owned(),
        |cell| format!("{} n {}", crate::number::plain(cell.summary.mean), cell.n()),
    );
    let mut out = format!("{name:<width$}  {base:>16}");
    for cell in row.cells.iter().skip(1) {
        let text = cell.as_ref().map_or_else(|| "-".to_owned(), cell_text);
        let _ = write!(out, "  {text:<CELL$}");
    }
    out
}

fn cell_text(cell: &Cell) -> String {
    let judged = cell.judged.as_deref();
    format!(
        "{:>9} {:>18} n {:<3} {}",
        change_text(cell),
        judged.map(interval_text).unwrap_or_default(),
        cell.n(),
        judged.map_or_else(String::new, verdict_text)
    )
}

/// Who confirms, who disagrees and what to run there, and the common figure.
fn lines(
    grid: &Grid<'_>,
    together: &Together,
    columns: &[Column],
    commands: &BTreeMap<String, String>,
) -> String {
    let name = columns
        .get(together.column)
        .map_or_else(String::new, |column| shortened(column.name.as_str()));
    let mut out = String::new();
    let all = grid.boxes.len();
    if let Some(majority) = together.majority {
        let confirming = together.confirming.len();
        let _ = write!(
            out,
            "{name}: {confirming} of {all} confirm ({})",
            majority.word()
        );
        if !together.disagreeing.is_empty() {
            let _ = write!(out, "; {} disagree", together.disagreeing.join(", "));
        }
        if !together.unclear.is_empty() {
            let _ = write!(out, "; {} unclear", together.unclear.join(", "));
        }
        out.push('\n');
    } else {
        let why = if together.disagreeing.is_empty() {
            "no machine shows anything"
        } else {
            "the machines contradict each other"
        };
        let _ = writeln!(out, "{name}: {why}");
    }
    for odd in together
        .disagreeing
        .iter()
        .filter(|_| together.majority.is_some())
    {
        if let Some(command) = commands.get(odd) {
            let _ = writeln!(out, "recheck {odd}: {command}");
        }
    }
    out.push_str(&common(grid, together, &name));
    out
}

fn common(grid: &Grid<'_>, together: &Together, name: &str) -> String {
    let Some(h) = together.heterogeneity else {
        let few = "fewer than three machines with an error: no common figure";
        return format!("{name}: {few}\n");
    };
    let spread = format!("I^2 {:.0} %, Q {:.1} (p {})", h.i2, h.q, p_text(h.p));
    match (together.pooled, &together.farthest) {
        (Some((estimate, (low, high), scale)), _) => {
            let unit = printable(grid.row.unit.as_str());
            let sign = if estimate < 0.0 { "-" } else { "+" };
            let ends = match scale {
                Scale::Ratio => format!("{low:+.1}..{high:+.1} %"),
                _ => format!("{low:+.3}..{high:+.3}"),
            };
            format!(
                "{name}: over machines {sign}{} ({ends}); {spread}\n",
                size_text(estimate, scale, &unit)
            )
        }
        (None, Some(farthest)) => format!(
            "{name}: the machines disagree, no common figure; {spread}; farthest is {farthest}\n"
        ),
        (None, None) => format!("{name}: no common figure; {spread}\n"),
    }
}
