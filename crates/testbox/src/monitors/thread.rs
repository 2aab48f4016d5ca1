//! The one thread that samples all monitors during a measured window.
//!
//! It takes the first sample before `start` returns and the last one when `stop` is called, so
//! that totals span the whole window. Between them it wakes on a fixed grid of
//! `CLOCK_MONOTONIC`, hence does not drift, and a sample that came late is not made up for. The
//! stamps are of `CLOCK_MONOTONIC_RAW`. It prints nothing and decides nothing about the trial.

use super::Monitors;
use super::clock::{raw_ns, thread_cpu_ns};
use kdyno_model::{Monitor, MonitorOverhead, SeriesSet, TestboxError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Anything faster would measure the monitors.
const SHORTEST_PERIOD: Duration = Duration::from_millis(1);

/// Longer than any window, and small enough to be added to any time.
const LONGEST_PERIOD: Duration = Duration::from_hours(24);

/// Running monitors; dropping it ends them, their samples lost.
#[derive(Debug)]
pub struct MonitorThread {
    stop: Arc<AtomicBool>,
    handle: Option<JoinHandle<Collected>>,
    start_raw_ns: u64,
}

type Collected = (Vec<SeriesSet>, MonitorOverhead, Vec<String>);

impl MonitorThread {
    /// Starts the thread and waits until each monitor was sampled once.
    ///
    /// # Errors
    /// When `period` is not between a millisecond and a day, or no thread can be had.
    pub fn start(monitors: Monitors, period: Duration) -> Result<Self, TestboxError> {
        if !(SHORTEST_PERIOD..=LONGEST_PERIOD).contains(&period) {
            let error = TestboxError::new(format!("cannot sample monitors every {period:?}"));
            return Err(error.hint("take a period between 1ms and 1 day; a usual one is 1s"));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let (ready, started) = mpsc::sync_channel(1);
        let handle = thread::Builder::new()
            .name("kdyno-monitor".to_owned())
            .spawn(move || {
                let mut sampler = Sampler::new(monitors);
                sampler.sample();
                sampler.open_window();
                if ready.send(sampler.start_raw_ns).is_ok() {
                    sampler.watch(&seen, period);
                }
                sampler.close_window();
                sampler.sample();
                sampler.finish()
            })
            .map_err(|error| TestboxError::new(format!("cannot start the monitors: {error}")))?;
        let mut thread = Self {
            stop,
            handle: Some(handle),
            start_raw_ns: 0,
        };
        thread.start_raw_ns = started.recv().map_err(|_| died())?;
        Ok(thread)
    }

    /// When sampling began, on `CLOCK_MONOTONIC_RAW`: the zero of all `t_ns`, slightly before
    /// [`start`](Self::start) returned.
    #[must_use]
    pub fn start_raw_ns(&self) -> u64 {
        self.start_raw_ns
    }

    /// Takes the last samples and hands over everything: the series, what watching cost between
    /// the first and the last samples, and notes about monitors that were lost.
    ///
    /// # Errors
    /// When the thread died.
    pub fn stop(mut self) -> Result<Collected, TestboxError> {
        self.end().unwrap_or_else(|| Err(died()))
    }

    fn end(&mut self) -> Option<Result<Collected, TestboxError>> {
        let handle = self.handle.take()?;
        self.stop.store(true, Ordering::Release);
        handle.thread().unpark();
        Some(handle.join().map_err(|_| died()))
    }
}

impl Drop for MonitorThread {
    fn drop(&mut self) {
        drop(self.end());
    }
}

fn died() -> TestboxError {
    TestboxError::new("the monitor thread died").hint("run without monitors, and report this")
}

/// What the thread owns.
struct Sampler {
    monitors: Monitors,
    start_raw_ns: u64,
    overhead: MonitorOverhead,
    notes: Vec<String>,
}

impl Sampler {
    fn new(monitors: Monitors) -> Self {
        Self {
            monitors,
            start_raw_ns: raw_ns(),
            overhead: MonitorOverhead::default(),
            notes: Vec::new(),
        }
    }

    /// Samples each monitor; one that fails is dropped, its series as well, since totals over a
    /// part of the window would pass for totals over all of it.
    fn sample(&mut self) {
        let Self {
            monitors,
            start_raw_ns,
            overhead,
            notes,
        } = self;
        monitors.retain_mut(|monitor| {
            let t_ns = raw_ns().saturating_sub(*start_raw_ns);
            overhead.samples += 1;
            let result = monitor.sample(t_ns);
            if let Err(error) = &result {
                let seconds = t_ns as f64 / 1e9;
                let name = monitor.name();
                notes.push(format!(
                    "monitor {name} dropped after {seconds:.1} s: {error}"
                ));
            }
            result.is_ok()
        });
    }

    fn open_window(&mut self) {
        self.overhead.cpu_ns = thread_cpu_ns();
    }

    fn close_window(&mut self) {
        self.overhead.cpu_ns = thread_cpu_ns().saturating_sub(self.overhead.cpu_ns);
    }

    /// Samples at each multiple of `period` until `stop` is set.
    fn watch(&mut self, stop: &AtomicBool, period: Duration) {
        let mut next = Instant::now() + period;
        while !stop.load(Ordering::Acquire) {
            if self.monitors.is_empty() {
                thread::park();
                continue;
            }
            let now = Instant::now();
            if now < next {
                thread::park_timeout(next - now);
                self.overhead.wakeups += u64::from(!stop.load(Ordering::Acquire));
                continue;
            }
            self.sample();
            while next <= now {
                next += period;
            }
        }
    }

    fn finish(self) -> Collected {
        let series = self.monitors.into_iter().map(Monitor::finish).collect();
        (series, self.overhead, self.notes)
    }
}
