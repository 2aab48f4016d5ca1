//! What only a measurement shows: how late timers wake a thread, and what takes the CPU away from
//! one that computes.

use super::{Finding, Level};
use crate::monitors::clock::monotonic_ns;
use crate::sys;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Timers that are waited for, and how far they are apart.
const WAKE_UPS: u32 = 1000;
const PERIOD_NS: u64 = 1_000_000;

/// How long a thread spins.
const SPIN: Duration = Duration::from_secs(1);

/// Two readings of the clock further apart than this had something between them.
const GAP_NS: u64 = 10_000;

/// What was measured, on one thread, wherever the scheduler put it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// Timers that were waited for, a millisecond apart.
    pub wake_ups: u32,
    /// How late they woke, the median, microseconds.
    pub wake_up_median_us: f64,
    /// How late the latest did, microseconds.
    pub wake_up_max_us: f64,
    /// How long a thread read the clock without pause, seconds.
    pub spin_seconds: f64,
    /// Gaps between two of its readings, longer than `gap_threshold_us`.
    pub gaps: u32,
    /// Which gaps count, microseconds.
    pub gap_threshold_us: f64,
    /// The longest gap, microseconds; 0 without one.
    pub gap_max_us: f64,
    /// Share of the time that was in gaps, 0 to 1.
    pub gap_share: f64,
}

/// Measures both.
pub(super) fn measure() -> Timing {
    let late = wake_ups();
    let gaps = spin();
    Timing::of(late, &gaps, SPIN)
}

/// How late each timer woke, nanoseconds.
fn wake_ups() -> Vec<u64> {
    let mut late = Vec::with_capacity(WAKE_UPS as usize);
    let mut next = monotonic_ns() + PERIOD_NS;
    for _ in 0..WAKE_UPS {
        sys::sleep_until_ns(next);
        let now = monotonic_ns();
        late.push(now.saturating_sub(next));
        // From now on, so that one late timer makes no other late.
        next = now + PERIOD_NS;
    }
    late
}

/// Reads the clock without pause; the gaps, nanoseconds.
fn spin() -> Vec<u64> {
    let mut gaps = Vec::new();
    let begun = Instant::now();
    let mut last = begun;
    while last.duration_since(begun) < SPIN {
        let now = Instant::now();
        let gap = u64::try_from(now.duration_since(last).as_nanos()).unwrap_or(u64::MAX);
        if gap > GAP_NS {
            gaps.push(gap);
        }
        last = now;
    }
    gaps
}

impl Timing {
    /// From lateness and gaps in nanoseconds.
    pub(super) fn of(mut late: Vec<u64>, gaps: &[u64], spin: Duration) -> Self {
        late.sort_unstable();
        let us = |ns: u64| ns as f64 / 1e3;
        let at = |place: usize| us(late.get(place).copied().unwrap_or_default());
        let all: u64 = gaps.iter().sum();
        Self {
            wake_ups: u32::try_from(late.len()).unwrap_or(u32::MAX),
            wake_up_median_us: at(late.len() / 2),
            wake_up_max_us: at(late.len().saturating_sub(1)),
            spin_seconds: spin.as_secs_f64(),
            gaps: u32::try_from(gaps.len()).unwrap_or(u32::MAX),
            gap_threshold_us: us(GAP_NS),
            gap_max_us: us(gaps.iter().copied().max().unwrap_or_default()),
            gap_share: all as f64 / 1e9 / spin.as_secs_f64(),
        }
    }

    /// What the figures mean.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        vec![self.wake_up(), self.interference()]
    }

    fn wake_up(&self) -> Finding {
        let (median, max) = (self.wake_up_median_us, self.wake_up_max_us);
        let level = if median >= 1000.0 {
            Level::Warning
        } else if median >= 200.0 || max >= 5000.0 {
            Level::Note
        } else {
            Level::Ok
        };
        let what = format!(
            "timers wake {median:.0} us late in the median, {max:.0} us at most ({} timers)",
            self.wake_ups
        );
        let why = "short sleeps and hand-overs between tasks take longer by that";
        Finding::new("wake-up", level, what, why)
            .hint("look at deep idle states, and at what computes meanwhile")
    }

    fn interference(&self) -> Finding {
        let share = self.gap_share;
        let level = if share >= 0.01 {
            Level::Warning
        } else if share >= 0.001 || self.gap_max_us >= 5000.0 {
            Level::Note
        } else {
            Level::Ok
        };
        let what = format!(
            "a computing thread loses {:.2} % of its time, in {} gaps above {:.0} us, \
             the longest {:.0} us ({:.0} s)",
            100.0 * share,
            self.gaps,
            self.gap_threshold_us,
            self.gap_max_us,
            self.spin_seconds
        );
        let why =
            "interrupts, other tasks or the hypervisor take the CPU away from what is measured";
        Finding::new("interference", level, what, why).hint(
            "see /proc/interrupts, and the processes above; isolate CPUs (isolcpus, nohz_full)",
        )
    }
}
