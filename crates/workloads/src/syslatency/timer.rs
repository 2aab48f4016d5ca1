//! How late threads wake up: one per CPU sleeps to moments a fixed time apart.

use super::report::{Cpu, Measured, Timer};
use super::{Options, RunError};
use crate::sys;
use kdyno_stats::hist::LogLinear;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::{Arc, Barrier};

/// Buckets per octave: a width of one in two thousand, so that medians are as good as exact.
const BITS: u32 = 11;
/// Lateness above this is counted apart, nanoseconds.
const HIGHEST: u64 = 60_000_000_000;

/// Lets the threads measure.
pub(super) fn measure(options: &Options, notes: &mut Vec<String>) -> Result<Measured, RunError> {
    let mut cpus = sys::allowed_cpus().map_err(RunError::at("CPUs"))?;
    if options.one_cpu {
        cpus.truncate(1);
    }
    let _latency = wide_awake(notes);
    // What is not in memory when it is needed would be measured as well. The memory of loads is not
    // to be locked with it.
    match options.touch > 0 && !options.idle {
        true => notes.push("memory is not locked, as that of --touch is not to be".to_owned()),
        false => {
            if let Err(error) = sys::lock_everything() {
                notes.push(format!("memory is not locked: {error}"));
            }
        }
    }
    if let Some(slack) = options.slack_ns {
        sys::set_timer_slack(slack).map_err(RunError::at("--slack"))?;
    }
    let slack_ns = sys::timer_slack_ns().map_err(RunError::at("timer slack"))?;
    let together = Arc::new(Barrier::new(cpus.len()));
    let started: io::Result<Vec<_>> = cpus
        .into_iter()
        .map(|cpu| {
            let (together, options) = (Arc::clone(&together), options.clone());
            std::thread::Builder::new()
                .name(format!("timer {cpu}"))
                .spawn(move || on_cpu(cpu, &options, &together))
        })
        .collect();
    let mut measured = Vec::new();
    let mut failure = None;
    // All of them, before one is waited for: they wait for each other.
    for thread in started.map_err(RunError::at("a thread"))? {
        match thread.join() {
            Ok(Ok(cpu)) => measured.push(cpu),
            Ok(Err(error)) => failure = Some(error),
            Err(_) => failure = Some(io::Error::other("a thread has panicked")),
        }
    }
    match failure {
        Some(error) if error.raw_os_error() == Some(libc::EPERM) => Err(RunError::Refused {
            reason: "real-time priority is not allowed".to_owned(),
            hint: "run as root, or leave --priority out",
        }),
        Some(error) => Err(RunError::at("a measuring thread")(error)),
        None => Ok(Measured::Timer(Timer {
            cpus: measured,
            slack_ns,
        })),
    }
}

/// Keeps CPUs from sleeping deeply as long as the file is open, as the usual tools do.
fn wide_awake(notes: &mut Vec<String>) -> Option<File> {
    let file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency");
    let opened = file.and_then(|mut file| file.write_all(&0_i32.to_ne_bytes()).map(|()| file));
    opened
        .inspect_err(|error| notes.push(format!("CPUs may sleep deeply: {error}")))
        .ok()
}

fn on_cpu(cpu: usize, options: &Options, together: &Barrier) -> io::Result<Cpu> {
    let ready = sys::run_on(&[cpu]).and_then(|()| match i32::try_from(options.priority) {
        Ok(priority @ 1..) => sys::run_first_in_first_out(priority),
        _ => Ok(()),
    });
    let mut late = LogLinear::new(BITS, HIGHEST).unwrap_or_else(LogLinear::of_nanoseconds);
    together.wait();
    ready?;
    let start = sys::monotonic_ns();
    let end = start.saturating_add(options.time_ns);
    let mut target = start;
    loop {
        target = target.saturating_add(options.interval_ns);
        if target > end {
            return Ok(Cpu { cpu, late });
        }
        sys::sleep_until(target)?;
        let now = sys::monotonic_ns();
        late.record(now.saturating_sub(target));
        // Moments that passed meanwhile are left out: they would all be late for one reason.
        while target.saturating_add(options.interval_ns) < now {
            target = target.saturating_add(options.interval_ns);
        }
    }
}
