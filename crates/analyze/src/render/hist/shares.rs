//! Two distributions beside each other as shares of their events, with their modes named.

use super::{Series, bar, unit::range};
use crate::number::general;
use kdyno_stats::hist::{Buckets, Mode, Regrouped, modes};
use std::fmt::Write;

/// Rows per octave that are tried, finest first.
const PER_OCTAVE: [i32; 3] = [4, 2, 1];
/// Most rows, where coarser ones can avoid more.
const MOST_ROWS: usize = 26;
/// Of more events than this share it must be known in which row they are.
const MOST_ACROSS: f64 = 0.05;
/// Characters of the longest bar.
const BAR: f64 = 21.0;
/// A mode whose share differs by less is as it was.
const SAME_SHARE: f64 = 0.01;

/// The shares of `base` and `other` per row, their modes by number, and what became of each.
#[must_use]
pub fn shares(base: &Series, other: &Series, unit: &str) -> String {
    let pools = [base.pooled(), other.pooled()];
    let Some(rows) = Rows::over(&pools) else {
        return "There is no event.\n".to_owned();
    };
    let sides: Vec<Side> = [base, other]
        .iter()
        .zip(&pools)
        .map(|(series, pool)| Side::of(series, pool, &rows))
        .collect();
    let [left, right] = sides.as_slice() else {
        return String::new();
    };
    let mut text = head(left, right);
    text.push_str(&lines(&rows, left, right, unit));
    text.push('\n');
    for side in [left, right] {
        let _ = writeln!(text, "{}", side.in_words(&rows, unit));
    }
    text.push_str(&changes(&rows, left, right, unit));
    text
}

/// Ends of rows, geometric but for a first one from 0 on.
struct Rows {
    edges: Vec<f64>,
    per_octave: i32,
}

impl Rows {
    /// The finest that both can be shown in; `None` without an event in a bucket.
    fn over(pools: &[Buckets; 2]) -> Option<Self> {
        let candidates = PER_OCTAVE
            .iter()
            .filter_map(|per_octave| Self::with(pools, *per_octave));
        let mut coarsest = None;
        for rows in candidates {
            let known = pools.iter().all(|pool| {
                let across = share(pool.regrouped(&rows.edges).across, pool.count());
                across <= MOST_ACROSS
            });
            if known && rows.edges.len() <= MOST_ROWS {
                return Some(rows);
            }
            coarsest = Some(rows);
        }
        coarsest
    }

    fn with(pools: &[Buckets; 2], per_octave: i32) -> Option<Self> {
        let filled = || {
            let all = pools.iter().flat_map(|pool| &pool.buckets);
            all.filter(|bucket| bucket.count > 0 && bucket.high > 0.0)
        };
        let from_zero = filled().any(|bucket| bucket.low <= 0.0);
        let lows = filled().map(|b| if b.low > 0.0 { b.low } else { b.high });
        let low = lows.reduce(f64::min)?;
        let high = filled().map(|bucket| bucket.high).reduce(f64::max)?;
        let row_of = |value: f64| value.log2() * f64::from(per_octave);
        // A value that is an edge but for rounding is that edge.
        let first = (row_of(low) + 1e-9).floor();
        let last = (row_of(high) - 1e-9).ceil().max(first + 1.0);
        let mut edges = if from_zero { vec![0.0] } else { Vec::new() };
        let mut row = first;
        while row <= last {
            edges.push(2_f64.powf(row / f64::from(per_octave)));
            row += 1.0;
        }
        (low.is_finite() && high.is_finite()).then_some(Self { edges, per_octave })
    }

    /// The ends of a row.
    fn ends(&self, row: usize) -> (f64, f64) {
        let edge = |place: usize| self.edges.get(place).copied().unwrap_or(0.0);
        (edge(row), edge(row + 1))
    }
}

/// One of the two.
struct Side {
    name: String,
    runs: usize,
    counts: Regrouped,
    modes: Vec<Mode>,
}

impl Side {
    fn of(series: &Series, pool: &Buckets, rows: &Rows) -> Self {
        let counts = pool.regrouped(&rows.edges);
        Self {
            name: series.name.clone(),
            runs: series.runs.len(),
            modes: modes(&counts.counts),
            counts,
        }
    }

    fn share_of(&self, count: u64) -> f64 {
        share(count, self.counts.total())
    }

    /// The share of events between two rows, both included.
    fn share_between(&self, first: usize, last: usize) -> f64 {
        let counts = self.counts.counts.get(first..=last).unwrap_or_default();
        self.share_of(counts.iter().sum())
    }

    /// Where most of a mode is: the rows around its peak with at least half as many events.
    fn core(&self, mode: &Mode, rows: &Rows, unit: &str) -> String {
        let count = |row: usize| self.counts.counts.get(row).copied().unwrap_or(0);
        let high = |row: &usize| count(*row).saturating_mul(2) >= count(mode.peak);
        let first = (mode.first..=mode.peak).rev().take_while(high).last();
        let last = (mode.peak..=mode.last).take_while(high).last();
        let low = rows.ends(first.unwrap_or(mode.peak)).0;
        range(low, rows.ends(last.unwrap_or(mode.peak)).1, unit)
    }

    fn in_words(&self, rows: &Rows, unit: &str) -> String {
        let told: Vec<String> = self
            .modes
            .iter()
            .map(|mode| {
                let core = self.core(mode, rows, unit);
                format!("{core} ({})", percent(self.share_of(mode.count)))
            })
            .collect();
        let number = match told.len() {
            1 => "1 mode".to_owned(),
            number => format!("{number} modes"),
        };
        format!("{}: {number}: {}", self.name, told.join(", "))
    }
}

fn head(left: &Side, right: &Side) -> String {
    let title = |side: &Side| {
        let runs = if side.runs == 1 { "run" } else { "runs" };
        let counted = format!(", {} events, {} {runs}", side.counts.total(), side.runs);
        let room = 30_usize.saturating_sub(counted.len());
        let name: String = side.name.chars().take(room.max(8)).collect();
        format!("{name}{counted}")
    };
    let mut out = format!("{:>16}   {:<30} | ", "", title(left));
    out.push_str(title(right).trim_end());
    out.push('\n');
    out
}

fn lines(rows: &Rows, left: &Side, right: &Side, unit: &str) -> String {
    let both = || left.counts.counts.iter().zip(&right.counts.counts);
    let shown = both().map(|(l, r)| left.share_of(*l).max(right.share_of(*r)));
    let most = shown.fold(0.0, f64::max);
    let mut text = String::new();
    let mut line = |label: String, row: Option<usize>, counts: [u64; 2]| {
        let side = |side: &Side, count: u64| {
            let share = side.share_of(count);
            let peak = side.modes.iter().position(|mode| Some(mode.peak) == row);
            let mark = peak.map_or(" ".to_owned(), |place| (place + 1).to_string());
            let length = if most > 0.0 { share / most * BAR } else { 0.0 };
            #[expect(clippy::cast_sign_loss, reason = "a share is not negative")]
            let bar = bar('*', (length.min(BAR) + 1e-9) as usize);
            let percent = if count == 0 {
                ".".to_owned()
            } else {
                percent(share)
            };
            format!("{mark:>1} {percent:>6} {bar:<21}")
        };
        let [l, r] = counts;
        let whole = format!("{label:>16} {} | {}", side(left, l), side(right, r));
        text.push_str(whole.trim_end());
        text.push('\n');
    };
    let outside = |side: &Side| [side.counts.below, side.counts.above];
    let ([below_l, above_l], [below_r, above_r]) = (outside(left), outside(right));
    if below_l + below_r > 0 {
        line("below".to_owned(), None, [below_l, below_r]);
    }
    for (row, (l, r)) in both().enumerate() {
        let (low, high) = rows.ends(row);
        line(range(low, high, unit), Some(row), [*l, *r]);
    }
    if above_l + above_r > 0 {
        line("above".to_owned(), None, [above_l, above_r]);
    }
    text
}

/// What became of each mode of the left side, and which came on the right.
fn changes(rows: &Rows, left: &Side, right: &Side, unit: &str) -> String {
    let pairs = pairs(left, right, usize::try_from(rows.per_octave).unwrap_or(1));
    let mut text = String::new();
    for (place, mode) in left.modes.iter().enumerate() {
        let name = match left.modes.len() {
            1 => "the mode".to_owned(),
            _ => format!("{} mode", ordinal(place)),
        };
        let here = left.share_of(mode.count);
        let core = left.core(mode, rows, unit);
        let partner = pairs.iter().find(|(l, _)| *l == place);
        let _ = match partner.and_then(|(_, r)| right.modes.get(*r)) {
            None => {
                let there = right.share_between(mode.first, mode.last);
                let (here, there) = (percent(here), percent(there));
                writeln!(text, "{name} gone ({core}): {here} of events -> {there}")
            }
            Some(other) => {
                let there = right.share_of(other.count);
                let to = right.core(other, rows, unit);
                let (from_share, to_share) = (percent(here), percent(there));
                if mode.peak != other.peak {
                    writeln!(
                        text,
                        "{name} moved from {core} to {to} ({from_share} -> {to_share})"
                    )
                } else if (here - there).abs() >= SAME_SHARE {
                    writeln!(
                        text,
                        "{name} ({core}): {from_share} of events -> {to_share}"
                    )
                } else {
                    writeln!(text, "{name} ({core}) as it was: {to_share} of events")
                }
            }
        };
    }
    for (place, mode) in right.modes.iter().enumerate() {
        if pairs.iter().all(|(_, r)| *r != place) {
            let before = percent(left.share_between(mode.first, mode.last));
            let now = percent(right.share_of(mode.count));
            let core = right.core(mode, rows, unit);
            let _ = writeln!(text, "new mode ({core}): {before} of events -> {now}");
        }
    }
    text
}

/// Modes that are the same one: their peaks lie at most an octave apart, the nearest first; a single
/// mode on either side is one that moved.
fn pairs(left: &Side, right: &Side, octave: usize) -> Vec<(usize, usize)> {
    if let ([_], [_]) = (left.modes.as_slice(), right.modes.as_slice()) {
        return vec![(0, 0)];
    }
    let mut near: Vec<(usize, usize, usize)> = Vec::new();
    for (l, mode) in left.modes.iter().enumerate() {
        for (r, other) in right.modes.iter().enumerate() {
            let apart = mode.peak.abs_diff(other.peak);
            if apart <= octave {
                near.push((apart, l, r));
            }
        }
    }
    near.sort_unstable();
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (_, l, r) in near {
        if pairs.iter().all(|(pl, pr)| *pl != l && *pr != r) {
            pairs.push((l, r));
        }
    }
    pairs
}

fn ordinal(place: usize) -> String {
    let words = ["first", "second", "third", "fourth", "fifth"];
    let word = words.get(place).map(|word| (*word).to_owned());
    word.unwrap_or_else(|| format!("{}th", place + 1))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of events stay below 2^53"
)]
fn share(count: u64, total: u64) -> f64 {
    if total == 0 {
        return 0.0;
    }
    count as f64 / total as f64
}

/// A share in percent; never 0 or 100 for what is not.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p > 0.0 && p < 0.1 => "<0.1 %".to_owned(),
        p if p > 99.9 && p < 100.0 => ">99.9 %".to_owned(),
        p if p >= 10.0 => format!("{} %", general(p, 3)),
        p => format!("{} %", general(p, 2)),
    }
}
