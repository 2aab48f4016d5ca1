//! What was measured, as lines that people and kdyno's catalog read.

use super::counters::Counters;
use super::{Mode, Options};
use crate::sys;
use kdyno_stats::Summary;
use kdyno_stats::hist::{Buckets, LogLinear};
use std::fmt::Write;

/// Nanoseconds of a microsecond.
const US: f64 = 1000.0;

/// What was measured.
pub(super) enum Measured {
    Timer(Timer),
    HugePages(HugePages),
}

/// Lateness by CPU.
pub(super) struct Timer {
    pub(super) cpus: Vec<Cpu>,
    pub(super) slack_ns: u64,
}

/// The lateness of one CPU's thread.
pub(super) struct Cpu {
    pub(super) cpu: usize,
    pub(super) late: LogLinear,
}

/// How long huge pages took.
pub(super) struct HugePages {
    pub(super) samples: Vec<Sample>,
    /// How often the page cache was filled.
    pub(super) rounds: u64,
}

/// One huge page, nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    pub(super) wall_ns: u64,
    pub(super) cpu_ns: u64,
}

/// All lines.
pub(super) fn report(
    options: &Options,
    measured: &Measured,
    counted: &Counters,
    notes: &[String],
) -> String {
    let mut out = String::new();
    for note in notes {
        let _ = writeln!(out, "# {note}");
    }
    match measured {
        Measured::Timer(timer) => of_timer(options, timer, &mut out),
        Measured::HugePages(pages) => of_huge_pages(options, pages, counted, &mut out),
    }
    for (name, value) in &counted.0 {
        let _ = writeln!(out, "{name}: {value}");
    }
    out
}

fn of_timer(options: &Options, timer: &Timer, out: &mut String) {
    let policy = match options.priority {
        0 => "other".to_owned(),
        priority => format!("fifo {priority}"),
    };
    let _ = writeln!(
        out,
        "# timer wake-ups: interval {} us, policy {policy}, timer slack {} ns",
        options.interval_ns / 1000,
        timer.slack_ns
    );
    let mut all: Option<LogLinear> = None;
    for cpu in &timer.cpus {
        let buckets = cpu.late.buckets();
        if let Some((min, max)) = cpu.late.extremes() {
            let _ = writeln!(
                out,
                "cpu {}: {} wake-ups, min {:.3} median {:.3} mean {:.3} max {:.3} us",
                cpu.cpu,
                cpu.late.count(),
                float(min) / US,
                quantile(&buckets, 0.5) / US,
                mean(&cpu.late) / US,
                float(max) / US,
            );
        }
        match &mut all {
            None => all = Some(cpu.late.clone()),
            Some(all) => all.merge(&cpu.late),
        }
    }
    let Some((late, (min, max))) = all.and_then(|late| Some((late.clone(), late.extremes()?)))
    else {
        let _ = writeln!(
            out,
            "# nothing was measured: the interval is longer than the time"
        );
        return;
    };
    let mean = mean(&late);
    let buckets = late.buckets();
    row(
        out,
        &Row {
            n: late.count(),
            min: float(min),
            max: float(max),
            median: quantile(&buckets, 0.5),
            mean,
            sd: deviation(&buckets, mean),
        },
    );
    let figures = [
        ("wakeup_median", quantile(&buckets, 0.5)),
        ("wakeup_mean", mean),
        ("wakeup_p99", quantile(&buckets, 0.99)),
        ("wakeup_max", float(max)),
        ("wakeup_min", float(min)),
    ];
    for (name, ns) in figures {
        let _ = writeln!(out, "{name}: {:.3} us", ns / US);
    }
    let _ = writeln!(out, "wakeups: {}", late.count());
    let _ = writeln!(out, "timer_slack: {} ns", timer.slack_ns);
    if options.igt {
        igt(timer, out);
    }
    histogram(out, "late", &late);
}

/// The line of the original benchmark: the mean over CPUs of their means, and of their maxima an
/// estimate that one CPU does not decide. Its cycles are those of a graphics processor: none here.
fn igt(timer: &Timer, out: &mut String) {
    let means: Vec<f64> = timer.cpus.iter().map(|cpu| mean(&cpu.late) / US).collect();
    let maxima: Vec<f64> = timer
        .cpus
        .iter()
        .filter_map(|cpu| Some(float(cpu.late.extremes()?.1) / US))
        .collect();
    let mean = kdyno_stats::summary::mean(&means).unwrap_or(0.0);
    let _ = writeln!(
        out,
        "gem_syslatency: cycles=0, latency mean={mean:.3}us max={:.0}us",
        estimate(&maxima)
    );
}

/// The benchmark's estimate of a location: the trimean of more than nine values (with Tukey's
/// hinges), the median of more than five, else the mean.
fn estimate(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = |part: &[f64]| Summary::of(part).map_or(0.0, |summary| summary.median);
    match sorted.len() {
        0 => 0.0,
        1..=5 => kdyno_stats::summary::mean(&sorted).unwrap_or(0.0),
        6..=9 => median(&sorted),
        n => {
            let half = n.div_ceil(2);
            let low = median(sorted.get(..half).unwrap_or_default());
            let high = median(sorted.get(n - half..).unwrap_or_default());
            (low + 2.0 * median(&sorted) + high) / 4.0
        }
    }
}

fn of_huge_pages(options: &Options, pages: &HugePages, counted: &Counters, out: &mut String) {
    let _ = writeln!(
        out,
        "# huge pages: {} per {} MiB of page cache, {}",
        options.pages,
        options.fill >> 20,
        if options.unaligned {
            "unaligned"
        } else {
            "aligned"
        }
    );
    for warning in warnings(options, pages, counted) {
        let _ = writeln!(out, "# warning: {warning}");
    }
    let wall: Vec<f64> = pages.samples.iter().map(|s| float(s.wall_ns)).collect();
    let cpu: Vec<f64> = pages.samples.iter().map(|s| float(s.cpu_ns)).collect();
    for (values, name) in [(&wall, "thp"), (&cpu, "thp_cpu")] {
        let Some(summary) = Summary::of(values) else {
            continue;
        };
        if name == "thp" {
            row(
                out,
                &Row {
                    n: pages.samples.len() as u64,
                    min: summary.min,
                    max: summary.max,
                    median: summary.median,
                    mean: summary.mean,
                    sd: summary.sample_sd.unwrap_or(0.0),
                },
            );
        }
        let figures = [
            ("mean", summary.mean),
            ("median", summary.median),
            ("max", summary.max),
            ("min", summary.min),
        ];
        for (figure, ns) in figures {
            let _ = writeln!(out, "{name}_{figure}: {:.3} us", ns / US);
        }
    }
    let _ = writeln!(out, "thp_pages: {}", pages.samples.len());
    let _ = writeln!(out, "rounds: {}", pages.rounds);
    let (mut of_wall, mut of_cpu) = (LogLinear::of_nanoseconds(), LogLinear::of_nanoseconds());
    for sample in &pages.samples {
        of_wall.record(sample.wall_ns);
        of_cpu.record(sample.cpu_ns);
    }
    if options.igt && options.mode == Mode::HugePages {
        let mean = kdyno_stats::summary::mean(&wall).unwrap_or(0.0) / US;
        let max = wall.iter().copied().fold(0.0, f64::max) / US;
        let _ = writeln!(
            out,
            "gem_syslatency: cycles={}, latency mean={mean:.3}us max={max:.0}us",
            pages.rounds
        );
    }
    histogram(out, "wall", &of_wall);
    histogram(out, "cpu", &of_cpu);
}

/// Why an effect that is expected may be missing.
fn warnings(options: &Options, pages: &HugePages, counted: &Counters) -> Vec<String> {
    let mut warnings = Vec::new();
    if !sys::has_swap() {
        warnings.push(
            "there is no swap: the kernel does not look for anonymous pages, so that pinned ones \
             cannot be in its way"
                .to_owned(),
        );
    }
    let refaults: i64 = counted
        .0
        .iter()
        .filter(|(name, _)| name.starts_with("workingset_refault"))
        .map(|(_, value)| value)
        .sum();
    if refaults <= 0 {
        warnings.push(
            "no page came back to the page cache (no refaults): reclaim had no reason to look for \
             anonymous pages"
                .to_owned(),
        );
    }
    let wanted = i64::try_from(pages.samples.len()).unwrap_or(i64::MAX);
    let got = counted.get("thp_fault_alloc").unwrap_or(0);
    if got < wanted / 2 && !options.unaligned {
        warnings.push(format!(
            "of {wanted} huge pages the kernel gave {got}: small ones were measured \
             (/sys/kernel/mm/transparent_hugepage/enabled must be madvise or always)"
        ));
    }
    warnings
}

/// A row as ministat has it, nanoseconds.
struct Row {
    n: u64,
    min: f64,
    max: f64,
    median: f64,
    mean: f64,
    sd: f64,
}

fn row(out: &mut String, row: &Row) {
    let _ = writeln!(
        out,
        "    N           Min           Max        Median           Avg        Stddev"
    );
    let _ = writeln!(
        out,
        "x {:>3} {:>13.3} {:>13.3} {:>13.3} {:>13.3} {:>13.3}",
        row.n,
        row.min / US,
        row.max / US,
        row.median / US,
        row.mean / US,
        row.sd / US
    );
}

/// A line per bucket: where it begins in nanoseconds, and how many.
fn histogram(out: &mut String, name: &str, values: &LogLinear) {
    const BITS: u32 = 5;
    let coarse = values.coarsened(BITS);
    if let Some((min, max)) = coarse.extremes() {
        let _ = writeln!(out, "{name}_min_ns: {min}\n{name}_max_ns: {max}");
        let _ = writeln!(out, "{name}_events: {}", coarse.count());
    }
    for bucket in &coarse.buckets().buckets {
        let _ = writeln!(out, "{name}_ns {} {}", bucket.low, bucket.count);
    }
}

fn quantile(buckets: &Buckets, p: f64) -> f64 {
    let middle = buckets.quantile(p).and_then(|bounds| bounds.middle());
    middle.unwrap_or(0.0)
}

/// Sample standard deviation, every value in the middle of its bucket, which is at most one in two
/// thousand wide.
fn deviation(buckets: &Buckets, mean: f64) -> f64 {
    let n = float(buckets.count());
    let squares = buckets.buckets.iter().map(|bucket| {
        let distance = bucket.middle() - mean;
        float(bucket.count) * distance * distance
    });
    (squares.sum::<f64>() / (n - 1.0).max(1.0)).sqrt()
}

fn mean(values: &LogLinear) -> f64 {
    let count = float(values.count());
    #[expect(clippy::cast_precision_loss, reason = "a mean is rounded anyway")]
    let sum = values.sum() as f64;
    if count > 0.0 { sum / count } else { 0.0 }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds of minutes stay below 2^53"
)]
pub(super) fn float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_of_the_original_benchmark() {
        assert!((estimate(&[1.0, 2.0, 6.0]) - 3.0).abs() < 1e-12);
        assert!((estimate(&[9.0, 1.0, 2.0, 3.0, 4.0, 5.0]) - 3.5).abs() < 1e-12);
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        assert!((estimate(&ten) - 5.5).abs() < 1e-12);
        assert!(estimate(&[]).abs() < 1e-12);
    }

    #[test]
    fn a_run_of_huge_pages_has_its_figures_and_warnings() {
        let pages = HugePages {
            samples: (1..=10)
                .map(|n| Sample {
                    wall_ns: n * 100_000,
                    cpu_ns: n * 50_000,
                })
                .collect(),
            rounds: 3,
        };
        let options = Options {
            mode: Mode::HugePages,
            igt: true,
            ..Options::default()
        };
        let text = report(
            &options,
            &Measured::HugePages(pages),
            &Counters::default(),
            &["a note".to_owned()],
        );
        assert!(text.starts_with("# a note\n"), "{text}");
        for line in [
            "thp_mean: 550.000 us",
            "thp_median: 550.000 us",
            "thp_cpu_max: 500.000 us",
            "thp_pages: 10",
            "wall_events: 10",
            "wall_max_ns: 1000000",
            "gem_syslatency: cycles=3, latency mean=550.000us max=1000us",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.contains("no refaults"), "{text}");
        assert!(
            text.contains("of 10 huge pages the kernel gave 0"),
            "{text}"
        );
    }
}
