//! Clocks, and waiting for a moment on one.

use super::check;
use std::io;

fn of(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` outlives the call; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    let part = |part: i64| u64::try_from(part).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

/// Now on the monotonic clock, nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    of(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread, nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    of(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Sleeps until a moment on the monotonic clock.
///
/// # Errors
/// What `clock_nanosleep` says, interruptions apart.
pub(crate) fn sleep_until(at_ns: u64) -> io::Result<()> {
    const SECOND: u64 = 1_000_000_000;
    let part = |part: u64| i64::try_from(part).unwrap_or(i64::MAX);
    let time = libc::timespec {
        tv_sec: part(at_ns / SECOND),
        tv_nsec: part(at_ns % SECOND),
    };
    loop {
        // SAFETY: `time` outlives the call, and no remaining time is asked for.
        let error = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const time,
                std::ptr::null_mut(),
            )
        };
        match error {
            0 => return Ok(()),
            libc::EINTR => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// How much later than asked the kernel may wake the calling thread, nanoseconds.
///
/// # Errors
/// What `prctl` says.
pub(crate) fn timer_slack_ns() -> io::Result<u64> {
    // SAFETY: the call takes no memory.
    let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
    u64::try_from(slack).map_err(|_| io::Error::last_os_error())
}

/// Sets that; threads that the caller starts later inherit it.
///
/// # Errors
/// What `prctl` says.
pub(crate) fn set_timer_slack(ns: u64) -> io::Result<()> {
    // SAFETY: the call takes no memory.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns) })
}

/// Runs the calling thread first in, first out at a real-time priority from 1 to 99.
///
/// # Errors
/// What `sched_setscheduler` says.
pub(crate) fn run_first_in_first_out(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the parameters outlive the call; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) })
}

/// Keeps all memory that the process has, and gets, in place.
///
/// # Errors
/// What `mlockall` says.
pub(crate) fn lock_everything() -> io::Result<()> {
    // SAFETY: changes no content.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) })
}
