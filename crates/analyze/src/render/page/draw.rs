//! The drawings: shares, tails, and events over time.

use super::axis::Axis;
use super::{Stretch, px};
use crate::number::general;
use crate::render::hist::{Series, unit::label};
use kdyno_stats::hist::Buckets;
use std::fmt::Write;

/// Colours and dash patterns that there are; further series begin anew.
pub(super) const STYLES: usize = 6;

/// The size of a drawing and its margins.
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 42.0;

/// Steps of the share drawing per octave: as wide as to be seen, narrower than a mode.
const STEPS: f64 = 8.0;
/// Rows of the heat map per octave.
const ROWS: f64 = 4.0;

/// The share of the events in each step, every series in its colour.
pub(super) fn shares(series: &[Series], axis: &Axis, unit: &str) -> String {
    let lines: Vec<Vec<f64>> = series.iter().map(|s| mean(s, axis, STEPS)).collect();
    let most = lines.iter().flatten().copied().fold(0.0, f64::max);
    let top = if most > 0.0 { most } else { 1.0 };
    let mut out = begin(
        "Where the events are",
        "share of the events in each eighth of an octave; every run weighs the same",
    );
    out.push_str(&value_axis(axis, unit));
    for part in 0..=4 {
        let share = f64::from(part) / 4.0;
        let percent = format!("{} %", general(100.0 * share * top / STEPS, 3));
        out.push_str(&level(share, &percent));
    }
    for (place, line) in lines.iter().enumerate() {
        let mut path = format!("M{} {}", px(x(0.0)), px(y(0.0)));
        for (step, share) in (0_u32..).zip(line) {
            let ends = [f64::from(step), f64::from(step) + 1.0].map(|s| {
                let at = axis.from + s / STEPS;
                px(x(axis.place(at).min(1.0)))
            });
            let _ = write!(path, "L{} {h}H{}", ends[0], ends[1], h = px(y(share / top)));
        }
        let _ = write!(path, "L{} {}", px(x(1.0)), px(y(0.0)));
        out.push_str(&stroke(place, &path));
    }
    out.push_str("</g></svg>\n");
    out
}

/// The share of the events above each value, on a logarithmic scale downwards, so that one event
/// in a million can be seen.
pub(super) fn tails(series: &[Series], axis: &Axis, unit: &str) -> String {
    let lines: Vec<Vec<(f64, f64)>> = series.iter().map(tail).collect();
    let smallest = lines
        .iter()
        .flatten()
        .map(|(_, share)| *share)
        .filter(|share| *share > 0.0)
        .fold(0.1, f64::min);
    let decades = -smallest.log10().floor();
    let height = |share: f64| match share > 0.0 {
        true => 1.0 + (share.log10() / decades).max(-1.0),
        false => 0.0,
    };
    let mut out = begin(
        "How far the tail reaches",
        "share of the events above a value, both axes logarithmic",
    );
    out.push_str(&value_axis(axis, unit));
    let mut decade = 0.0;
    while decade <= decades {
        let share = 10_f64.powf(-decade);
        let text = format!("{} %", general(100.0 * share, 3));
        out.push_str(&level(height(share), &text));
        decade += 1.0;
    }
    for (place, line) in lines.iter().enumerate() {
        let mut path = format!("M{} {}", px(x(0.0)), px(y(1.0)));
        for (at, share) in line {
            let _ = write!(
                path,
                "H{}V{}",
                px(x(axis.place(*at))),
                px(y(height(*share)))
            );
        }
        out.push_str(&stroke(place, &path));
    }
    out.push_str("</g></svg>\n");
    out
}

/// Events over time: a column per stretch, a row per quarter of an octave, the darker the larger
/// the share of the stretch's events.
pub(super) fn heat(stretches: &[Stretch], axis: &Axis, unit: &str) -> String {
    let end = stretches
        .iter()
        .map(|stretch| stretch.start_s + stretch.length_s)
        .fold(0.0, f64::max);
    let span = if end > 0.0 { end } else { 1.0 };
    let mut out = begin(
        "Over time",
        "a column per interval; the darker, the larger the share of its events (square root)",
    );
    for (value, labelled) in axis.marks() {
        if labelled {
            out.push_str(&level(axis.place(value.log2()), &label(value, unit)));
        }
    }
    for part in 0..=5 {
        let at = f64::from(part) / 5.0;
        let text = format!("{} s", general(at * span, 3));
        out.push_str(&below(x(at), &text));
    }
    for stretch in stretches {
        let left = x(stretch.start_s / span);
        let width = (x((stretch.start_s + stretch.length_s) / span) - left).max(0.5);
        let shares = spread(&stretch.buckets, axis, ROWS);
        for (row, share) in (0_u32..).zip(&shares) {
            if *share <= 0.0 {
                continue;
            }
            let low = axis.place(axis.from + f64::from(row) / ROWS);
            let high = axis.place(axis.from + f64::from(row + 1) / ROWS).min(1.0);
            let _ = writeln!(
                out,
                "<rect class=\"heat\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" \
                 opacity=\"{}\"/>",
                px(left),
                px(y(high)),
                px(width),
                px(y(low) - y(high)),
                general((share / ROWS).min(1.0).sqrt().max(0.04), 3)
            );
        }
    }
    out.push_str("</g></svg>\n");
    out
}

/// The mean over runs of [`spread`].
fn mean(series: &Series, axis: &Axis, steps: f64) -> Vec<f64> {
    let mut sum: Vec<f64> = Vec::new();
    let runs = series.runs.iter().filter(|run| run.count() > 0);
    let mut count = 0.0;
    for run in runs {
        count += 1.0;
        let shares = spread(run, axis, steps);
        sum.resize(shares.len(), 0.0);
        for (slot, share) in sum.iter_mut().zip(shares) {
            *slot += share;
        }
    }
    sum.iter_mut().for_each(|slot| *slot /= count);
    sum
}

/// Shares of the events per octave in steps along the axis; a bucket's events are spread evenly
/// over it on the logarithmic scale.
fn spread(run: &Buckets, axis: &Axis, steps: f64) -> Vec<f64> {
    let places = ((axis.to - axis.from) * steps).ceil() as usize;
    let mut shares = vec![0.0; places];
    for (bucket, share) in run.buckets.iter().zip(run.shares()) {
        let (low, high) = bucket.octaves();
        let (from, to) = ((low - axis.from) * steps, (high - axis.from) * steps);
        let width = (to - from).max(1e-9);
        let first = from.max(0.0).floor() as usize;
        for (place, slot) in shares.iter_mut().enumerate().skip(first) {
            #[expect(clippy::cast_precision_loss, reason = "a few hundred steps")]
            let begin = place as f64;
            if begin >= to {
                break;
            }
            let overlap = (to.min(begin + 1.0) - from.max(begin)).max(0.0);
            *slot += share * steps * overlap / width;
        }
    }
    shares
}

/// Points of the tail: the end of a bucket in octaves, and the share of the events above it.
fn tail(series: &Series) -> Vec<(f64, f64)> {
    let runs: Vec<&Buckets> = series.runs.iter().filter(|run| run.count() > 0).collect();
    #[expect(clippy::cast_precision_loss, reason = "a few runs")]
    let weight = 1.0 / runs.len() as f64;
    let mut steps: Vec<(f64, f64)> = runs
        .iter()
        .flat_map(|run| {
            let ends = run.buckets.iter().map(|bucket| bucket.octaves().1);
            ends.zip(run.shares().into_iter().map(|share| share * weight))
        })
        .collect();
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let below: f64 = runs
        .iter()
        .map(|run| share_of(run.below, run) * weight)
        .sum();
    let above: f64 = runs
        .iter()
        .map(|run| share_of(run.above, run) * weight)
        .sum();
    let mut left = 1.0 - below;
    let mut points = Vec::new();
    for (at, share) in steps {
        left -= share;
        // What is left behind the last event is the error of the sums.
        let shown = if left - above < 1e-12 { above } else { left };
        points.push((at, shown));
    }
    points
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of events stay below 2^53"
)]
fn share_of(count: u64, run: &Buckets) -> f64 {
    count as f64 / run.count() as f64
}

fn x(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

fn y(share: f64) -> f64 {
    HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
}

fn begin(title: &str, about: &str) -> String {
    format!(
        "<h2>{title}</h2>\n<p>{about}</p>\n<svg class=\"plot\" viewBox=\"0 0 {} {}\" \
         role=\"img\" aria-label=\"{title}\"><g>\n<path class=\"axis\" d=\"M{} {}V{}H{}\"/>\n",
        px(WIDTH),
        px(HEIGHT),
        px(LEFT),
        px(TOP),
        px(y(0.0)),
        px(x(1.0))
    )
}

/// Marks and labels of the values along the lower edge.
fn value_axis(axis: &Axis, unit: &str) -> String {
    let mut out = String::new();
    for (value, labelled) in axis.marks() {
        let at = x(axis.place(value.log2()));
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{} {}V{}\"/>",
            px(at),
            px(y(0.0)),
            px(TOP)
        );
        if labelled {
            out.push_str(&below(at, &label(value, unit)));
        }
    }
    out
}

/// A label below the drawing.
fn below(at: f64, text: &str) -> String {
    format!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{text}</text>\n",
        px(at),
        px(HEIGHT - BOTTOM + 18.0)
    )
}

/// A line across with a label at its left.
fn level(share: f64, text: &str) -> String {
    format!(
        "<path class=\"grid\" d=\"M{} {at}H{}\"/>\n<text x=\"{}\" y=\"{}\" \
         text-anchor=\"end\">{text}</text>\n",
        px(LEFT),
        px(x(1.0)),
        px(LEFT - 8.0),
        px(y(share) + 4.0),
        at = px(y(share))
    )
}

fn stroke(place: usize, path: &str) -> String {
    format!("<path class=\"s{}\" d=\"{path}\"/>\n", place % STYLES)
}
