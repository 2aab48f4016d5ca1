//! The clocks that the standard library does not offer.
//!
//! Sleeping is not here: a parked thread of the standard library waits on `CLOCK_MONOTONIC` and
//! can be woken early, which an absolute `clock_nanosleep` cannot.
#![expect(unsafe_code, reason = "clock_gettime and sysconf have no safe face")]

/// Now on `CLOCK_MONOTONIC_RAW`, nanoseconds: steady, and not slewed by time synchronisation.
#[must_use]
pub fn raw_ns() -> u64 {
    now(libc::CLOCK_MONOTONIC_RAW)
}

/// Now on `CLOCK_MONOTONIC`, nanoseconds: the clock that timers are set on.
#[must_use]
pub fn monotonic_ns() -> u64 {
    now(libc::CLOCK_MONOTONIC)
}

/// CPU time that the calling thread has used so far, nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    now(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Ticks per second of the times in `/proc/stat`.
pub(crate) fn user_hz() -> f64 {
    // SAFETY: sysconf takes a number, returns a number and touches no memory of ours.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if ticks > 0 { ticks as f64 } else { 100.0 }
}

fn now(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec that outlives the call, which writes nothing else. Both
    // clocks exist on every kernel that kdyno runs on; should the call fail, `time` stays zero.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}
