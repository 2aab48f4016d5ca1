//! From distributions to bytes, in each format.

use super::source::Distribution;
use crate::cli::{HistArgs, HistFormat};
use crate::context::UsageError;
use kdyno_analyze::render::hist::{
    Printed, Series, bcc, bpftrace, list, perf, quantiles, shares, steps::Steps, table, unit,
};
use kdyno_analyze::render::page::{self, Page, Stretch};
use kdyno_formats::hdr::{self, HdrError, Interval};
use kdyno_model::{Bucket, Histogram};
use kdyno_stats::hist::Buckets;
use std::time::Duration;

/// What goes out.
#[derive(Default)]
pub struct Output {
    /// The text or file.
    pub bytes: Vec<u8>,
    /// What a reader must know of it.
    pub notes: Vec<String>,
}

/// Prints all distributions in the format that is asked for.
pub fn print(found: &[Distribution], args: &HistArgs) -> anyhow::Result<Output> {
    let mut out = Output::default();
    match args.format {
        HistFormat::Html => {
            let one = only(found, "a page has one metric")?;
            let (_, shown) = in_unit(one, args.unit.as_deref())?;
            out.bytes = page::render(&page_of(shown)).into_bytes();
        }
        HistFormat::Csv => {
            let one = only(found, "a list has one metric")?;
            let (unit, shown) = in_unit(one, args.unit.as_deref())?;
            out.bytes = list::csv(&shown.series, &unit).into_bytes();
        }
        HistFormat::Json => out.bytes = json(found, args)?,
        HistFormat::Hdr => {
            let one = only(found, "an HDR file has one metric")?;
            let [series] = one.series.as_slice() else {
                let hint = "choose one with --section or a selection, or take --format hlog";
                let message = format!(
                    "an HDR file holds one histogram, here are {}",
                    one.series.len()
                );
                return Err(UsageError::new(message, hint).into());
            };
            out.bytes = hdr::write(&encodable(one, series, args)?).map_err(unfit)?;
        }
        HistFormat::Hlog => {
            let one = only(found, "a log has one metric")?;
            out.bytes = hlog(one, args)?;
        }
        _ => {
            for distribution in found {
                text(distribution, found.len() > 1, args, &mut out)?;
            }
        }
    }
    Ok(out)
}

/// The one distribution of a format that holds no more.
fn only<'f>(found: &'f [Distribution], why: &str) -> Result<&'f Distribution, UsageError> {
    match found {
        [one] => Ok(one),
        _ => {
            let titles: Vec<&str> = found.iter().map(|one| one.title.as_str()).collect();
            Err(UsageError::new(
                format!("{why}, here are {}", found.len()),
                format!("choose with --metric: {}", titles.join("; ")),
            ))
        }
    }
}

/// The same in the unit that is asked for.
fn in_unit(
    distribution: &Distribution,
    wanted: Option<&str>,
) -> Result<(String, Distribution), UsageError> {
    let to = wanted.unwrap_or(&distribution.unit);
    let factor = unit::factor(&distribution.unit, to).or_else(|| {
        // Nobody knows the unit: the user does.
        distribution.unit.is_empty().then_some(1.0)
    });
    let factor = factor.ok_or_else(|| {
        UsageError::new(
            format!("--unit {to}: values in {} are not in it", distribution.unit),
            "units of time are ns, us, ms and s",
        )
    })?;
    let scaled = |series: &Series| Series {
        name: series.name.clone(),
        runs: series.runs.iter().map(|run| run.scaled(factor)).collect(),
    };
    let stretch = |stretch: &Stretch| Stretch {
        buckets: stretch.buckets.scaled(factor),
        ..stretch.clone()
    };
    let shown = Distribution {
        title: distribution.title.clone(),
        unit: to.to_owned(),
        series: distribution.series.iter().map(scaled).collect(),
        alternatives: distribution.alternatives,
        over_time: distribution.over_time.iter().map(stretch).collect(),
    };
    Ok((to.to_owned(), shown))
}

/// One distribution in a format of lines.
fn text(
    distribution: &Distribution,
    titled: bool,
    args: &HistArgs,
    out: &mut Output,
) -> anyhow::Result<()> {
    let wanted = args
        .unit
        .as_deref()
        .or_else(|| own_unit(args.format, &distribution.unit));
    let (unit, shown) = in_unit(distribution, wanted)?;
    if !out.bytes.is_empty() {
        out.bytes.push(b'\n');
    }
    let of_runs = shown.series.iter().any(|series| series.runs.len() > 1);
    if titled || of_runs {
        out.bytes.extend(format!("{}\n", shown.title).bytes());
    }
    let series = &shown.series;
    let edges = args
        .steps
        .as_ref()
        .map(|steps| edges(steps, &unit))
        .transpose()?;
    let edges = edges.as_deref();
    match args.format {
        HistFormat::Quantiles => out.say(&quantiles::quantiles(series, &unit)),
        HistFormat::Table => {
            let posted = Steps::of_waits();
            let rows = edges.map_or_else(|| self::edges(&posted, &unit), |e| Ok(e.to_vec()))?;
            out.take(table::table(series, &rows, &unit), "the table");
        }
        HistFormat::Shares => {
            let [base, others @ ..] = series.as_slice() else {
                return Ok(());
            };
            if others.is_empty() {
                let hint = "name two inputs, or a plan with two variants";
                return Err(UsageError::new("shares are of two series, here is one", hint).into());
            }
            side_by_side(base, others, &unit, out);
        }
        HistFormat::Text => match series.as_slice() {
            [base, others @ ..] if shown.alternatives && !others.is_empty() => {
                side_by_side(base, others, &unit, out);
                out.bytes.push(b'\n');
                out.say(&quantiles::quantiles(series, &unit));
            }
            _ => {
                each(series, edges, &unit, args.format, out);
                out.bytes.push(b'\n');
                out.say(&quantiles::quantiles(series, &unit));
            }
        },
        format => each(series, edges, &unit, format, out),
    }
    Ok(())
}

/// The unit in which a tool prints times: microseconds.
fn own_unit(format: HistFormat, unit: &str) -> Option<&'static str> {
    let of_times = matches!(
        format,
        HistFormat::Text
            | HistFormat::Bcc
            | HistFormat::Bpftrace
            | HistFormat::PerfFtrace
            | HistFormat::Table
    );
    (of_times && unit::nanoseconds(unit).is_some()).then_some("us")
}

fn edges(steps: &Steps, unit: &str) -> Result<Vec<f64>, UsageError> {
    let edges = steps.edges(unit);
    edges.map_err(|error| UsageError::new(format!("--steps: {error}"), error.hint()))
}

fn side_by_side(base: &Series, others: &[Series], unit: &str, out: &mut Output) {
    for (place, other) in others.iter().enumerate() {
        if place > 0 {
            out.bytes.push(b'\n');
        }
        out.say(&shares::shares(base, other, unit));
    }
}

/// Each series by itself.
fn each(
    series: &[Series],
    edges: Option<&[f64]>,
    unit: &str,
    format: HistFormat,
    out: &mut Output,
) {
    for one in series {
        let pooled = one.pooled();
        if format != HistFormat::Bpftrace && (series.len() > 1 || one.runs.len() > 1) {
            let runs = match one.runs.len() {
                1 => String::new(),
                runs => format!(", {runs} runs together"),
            };
            out.say(&format!("\n{}{runs}\n", one.name));
        }
        let printed = match (format, edges) {
            (HistFormat::Bpftrace, None) => bpftrace::hist(&map_name(&one.name, unit), &pooled),
            (HistFormat::Bpftrace, Some(edges)) => {
                bpftrace::lhist(&map_name(&one.name, unit), &pooled, edges)
            }
            (HistFormat::PerfFtrace, _) => perf::latency(&pooled, unit == "ns"),
            (_, None) => bcc::log2(&pooled, unit),
            (_, Some(edges)) => bcc::linear(&pooled, unit, edges),
        };
        out.take(printed, &one.name);
    }
}

/// A name as maps have it, which tells the unit at its end.
fn map_name(name: &str, unit: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    match unit {
        "" => name,
        unit => format!("{name}_{unit}"),
    }
}

impl Output {
    fn say(&mut self, text: &str) {
        self.bytes.extend(text.bytes());
    }

    fn take(&mut self, printed: Printed, name: &str) {
        self.say(&printed.text);
        if printed.across > 0 {
            self.notes.push(format!(
                "note: {name}: buckets with {} lie across two rows: each is in the row of its middle",
                events(printed.across)
            ));
        }
        if printed.outside > 0 {
            self.notes.push(format!(
                "note: {name}: {} outside of all rows",
                events(printed.outside)
            ));
        }
    }
}

fn events(count: u64) -> String {
    match count {
        1 => "1 event".to_owned(),
        count => format!("{count} events"),
    }
}

fn page_of(distribution: Distribution) -> Page {
    Page {
        title: distribution.title,
        unit: distribution.unit,
        series: distribution.series,
        over_time: distribution.over_time,
    }
}

fn json(found: &[Distribution], args: &HistArgs) -> anyhow::Result<Vec<u8>> {
    let run = |buckets: &Buckets| {
        let parts: Vec<serde_json::Value> = buckets
            .buckets
            .iter()
            .map(|bucket| serde_json::json!([bucket.low, bucket.high, bucket.count]))
            .collect();
        serde_json::json!({
            "buckets": parts,
            "below": buckets.below,
            "above": buckets.above,
            "min": buckets.min,
            "max": buckets.max,
        })
    };
    let mut all = Vec::new();
    for distribution in found {
        let (unit, shown) = in_unit(distribution, args.unit.as_deref())?;
        let series: Vec<serde_json::Value> = shown
            .series
            .iter()
            .map(|series| {
                let runs: Vec<serde_json::Value> = series.runs.iter().map(run).collect();
                serde_json::json!({"name": series.name, "runs": runs})
            })
            .collect();
        all.push(serde_json::json!({"title": shown.title, "unit": unit, "series": series}));
    }
    let mut bytes = serde_json::to_vec_pretty(&all)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// A series as HDR files have them: whole nanoseconds where the values are times.
fn encodable(
    distribution: &Distribution,
    series: &Series,
    args: &HistArgs,
) -> Result<Histogram, UsageError> {
    let is_time = unit::nanoseconds(&distribution.unit).is_some();
    let to = args.unit.as_deref().or(is_time.then_some("ns"));
    let to = to.unwrap_or(&distribution.unit);
    let factor = unit::factor(&distribution.unit, to).unwrap_or(1.0);
    Ok(histogram_of(&series.pooled().scaled(factor)))
}

fn histogram_of(buckets: &Buckets) -> Histogram {
    let bucket = |b: &kdyno_stats::hist::Bucket| Bucket {
        low: b.low,
        high: b.high,
        count: b.count,
    };
    Histogram {
        buckets: buckets.buckets.iter().map(bucket).collect(),
        underflow: buckets.below,
        overflow: buckets.above,
        min: buckets.min,
        max: buckets.max,
        sum: None,
    }
}

fn hlog(distribution: &Distribution, args: &HistArgs) -> anyhow::Result<Vec<u8>> {
    let mut intervals = Vec::new();
    for series in &distribution.series {
        let tag: String = series
            .name
            .chars()
            .map(|c| {
                if c == ',' || c.is_whitespace() {
                    '_'
                } else {
                    c
                }
            })
            .collect();
        intervals.push(Interval {
            tag: Some(tag),
            start: Duration::ZERO,
            length: Duration::ZERO,
            histogram: encodable(distribution, series, args)?,
        });
    }
    Ok(hdr::write_log(&intervals).map_err(unfit)?)
}

fn unfit(error: HdrError) -> UsageError {
    let hint = error.hint();
    UsageError::new(error.to_string(), hint)
}
