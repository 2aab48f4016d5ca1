//! `kdyno list`: a line per finished run.

use crate::cli::ListArgs;
use crate::context::{Context, Status};
use crate::index;
use kdyno_analyze::Selection;
use kdyno_analyze::number::plain;
use kdyno_model::{MetricName, Role, RunRow, Unit};
use kdyno_store::{RunFilter, Scalars};

/// Prints the list, oldest first, so that the newest stands above the prompt.
pub fn command(args: &ListArgs, context: &mut Context) -> anyhow::Result<Status> {
    // A line needs the headline only; the JSON of many runs with all figures would fill memory.
    let filter = RunFilter {
        scalars: Scalars::Headline,
        ..RunFilter::default()
    };
    let rows = index::ask(context, |index| Ok(index.runs_select(&filter)?))?;
    let rows: Vec<&RunRow> = if args.select.is_empty() {
        rows.iter().collect()
    } else {
        Selection::parse(&args.select, &rows)?.rows(&rows)
    };
    if rows.is_empty() && !args.json {
        context.note("no run yet; begin with `kdyno run jobs/quickstart.yaml`");
    }
    let lines = if args.json {
        json_lines(&rows)?
    } else {
        table(&rows)
    };
    context.out.write_all(lines.as_bytes())?;
    context.out.flush()?;
    Ok(Status::Done)
}

fn json_lines(rows: &[&RunRow]) -> anyhow::Result<String> {
    let mut out = String::new();
    for row in rows {
        out.push_str(&serde_json::to_string(row)?);
        out.push('\n');
    }
    Ok(out)
}

fn table(rows: &[&RunRow]) -> String {
    const WIDEST: usize = 48;
    let cut = |text: String| -> String {
        if text.chars().count() <= WIDEST {
            text
        } else {
            text.chars().take(WIDEST - 3).chain("...".chars()).collect()
        }
    };
    let lines: Vec<[String; 7]> = rows.iter().map(|row| line(row).map(cut)).collect();
    let mut out = String::new();
    for line in &lines {
        for (place, cell) in line.iter().enumerate() {
            if place + 1 == line.len() {
                out.push_str(cell);
            } else {
                let width = lines
                    .iter()
                    .map(|line| line[place].chars().count())
                    .max()
                    .unwrap_or_default();
                out.push_str(&format!("{cell:width$}  "));
            }
        }
        out.push('\n');
    }
    out
}

fn line(row: &RunRow) -> [String; 7] {
    let outcome = if row.warm_up {
        format!("{} (warm-up)", row.outcome.word())
    } else {
        row.outcome.word().to_owned()
    };
    [
        row.case.name_on(&row.testbox),
        row.variant.to_string(),
        outcome,
        headline(row).unwrap_or_default(),
        time_text(row.start_unix_ns),
        row.run_id.short(),
        format!("plan {}", row.plan.short()),
    ]
}

/// The first headline figure.
fn headline(row: &RunRow) -> Option<String> {
    let scalar = row
        .scalars
        .iter()
        .find(|scalar| scalar.role == Role::Headline)?;
    Some(figure_text(&scalar.metric, scalar.value, &scalar.unit))
}

/// A figure without its program's name, as `median 2904312 KB/s`.
pub fn figure_text(metric: &MetricName, value: f64, unit: &Unit) -> String {
    let name = metric.as_str();
    let name = name.split_once('.').map_or(name, |(_, name)| name);
    let text = format!("{name} {} {}", plain(value), unit.as_str());
    text.trim_end().to_owned()
}

/// A moment in the machine's time zone, to the second.
pub fn time_text(unix_ns: i64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(unix_ns)).map_or_else(
        |_| "?".to_owned(),
        |time| {
            time.to_zoned_datetime(jiff::tz::TimeZone::system())
                .strftime("%Y-%m-%d %H:%M:%S")
                .to_string()
        },
    )
}
