//! The system calls, each behind a safe function.
//!
//! What the standard library offers without loss (pipes, threads, files) is used from there.
#![expect(
    unsafe_code,
    reason = "fork, poll, waitpid and the calls about memory have no safe form in the standard library"
)]

mod clock;
mod files;
mod meeting;
mod memory;
mod numa;
mod pin;
mod signal;

pub(crate) use clock::{
    lock_everything, monotonic_ns, run_first_in_first_out, set_timer_slack, sleep_until,
    thread_cpu_ns, timer_slack_ns,
};
pub(crate) use files::{file_system, memory_file, punch, will_be_needed, write_from};
pub(crate) use meeting::Meeting;
pub(crate) use memory::{HUGE_PAGE_BYTES, Mapping, Region, Source};
pub(crate) use numa::{allowed_cpus, migrate, run_on, take_memory_from};
pub(crate) use pin::{Pin, pin};
pub(crate) use signal::{count_usr1, uninterrupted, wait_for_usr1};

use std::fmt::Display;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// The descriptor of result lines.
pub(crate) const STDOUT: RawFd = 1;
const STDERR: RawFd = 2;

/// The size of a page of this machine.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: takes nothing and cannot fail.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Whether anonymous pages can leave memory.
pub(crate) fn has_swap() -> bool {
    std::fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1)
}

/// What a call that gives 0 or -1 says.
fn check(result: impl Into<i64>) -> io::Result<()> {
    match result.into() {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Which side of a fork we are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fork {
    /// The new process.
    Child,
    /// The old one, with the new one's id.
    Parent(libc::pid_t),
}

/// Forks. In a process with several threads the child has only the calling one, and must take no
/// lock but those of the C library, which keeps them usable.
///
/// # Errors
/// What `fork` says.
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: the child accesses mapped memory, writes lines and ends without unwinding.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid)),
    }
}

/// Lets the calling process be killed when its parent, which has this id, ends; false when it has
/// ended already.
pub(crate) fn end_with_parent(parent: libc::pid_t) -> bool {
    // SAFETY: both calls touch no memory.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::getppid() == parent
    }
}

/// This process's id.
pub(crate) fn own_pid() -> libc::pid_t {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::getpid() }
}

/// Ends the process at once: no destructors, no exit handlers of the parent run in a child.
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: never returns and touches no memory.
    unsafe { libc::_exit(status) }
}

/// Waits until `fd` can be read; `false` when the time is over or its other end is closed.
///
/// # Errors
/// What `poll` says, interruptions apart.
pub(crate) fn readable(fd: &impl AsRawFd, timeout: Option<Duration>) -> io::Result<bool> {
    let mut poll = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let milliseconds = timeout.map_or(-1, |time| {
        i32::try_from(time.as_millis()).unwrap_or(i32::MAX)
    });
    loop {
        // SAFETY: one `pollfd` that outlives the call.
        match unsafe { libc::poll(&raw mut poll, 1, milliseconds) } {
            0 => return Ok(false),
            1.. => return Ok(poll.revents & libc::POLLIN != 0),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
}

/// Waits for any child to end, and takes it off the process table.
///
/// # Errors
/// What `waitpid` says, interruptions apart.
pub(crate) fn wait_any() -> io::Result<(libc::pid_t, Ending)> {
    wait(-1)
}

/// Waits for this child to end, or for any (-1), and takes it off the process table.
///
/// # Errors
/// What `waitpid` says, interruptions apart.
pub(crate) fn wait(child: libc::pid_t) -> io::Result<(libc::pid_t, Ending)> {
    loop {
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        let pid = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if pid > 0 {
            let ending = match libc::WIFSIGNALED(status) {
                true => Ending::Signalled(libc::WTERMSIG(status)),
                false => Ending::Exited(libc::WEXITSTATUS(status)),
            };
            return Ok((pid, ending));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Whether a child has ended that nobody waited for yet; it stays on the process table.
pub(crate) fn a_child_has_ended() -> bool {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` outlives the call; with WNOWAIT nothing is consumed.
    let rc = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, options) };
    // SAFETY: the call filled in the fields of a SIGCHLD, or left the zeroes.
    rc == 0 && unsafe { info.si_pid() } != 0
}

/// Kills a child of this process that was not waited for yet.
pub(crate) fn kill(child: libc::pid_t) {
    // SAFETY: a signal to a process of our own; an ended one ignores it.
    unsafe { libc::kill(child, libc::SIGKILL) };
}

/// The time since some fixed moment, on the monotonic clock.
pub(crate) fn now() -> Duration {
    Duration::from_nanos(monotonic_ns())
}

/// The id of the calling thread.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::gettid() }.unsigned_abs()
}

/// Writes `bytes` with one call, so that lines of several tasks never mix.
///
/// # Errors
/// What `write` says; `WriteZero` when the kernel took only a part.
pub(crate) fn write_once(fd: RawFd, bytes: &[u8]) -> io::Result<()> {
    loop {
        // SAFETY: the buffer is valid for its length.
        let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
        if usize::try_from(written).is_ok_and(|written| written == bytes.len()) {
            return Ok(());
        }
        if written >= 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Writes an error as one line of standard error, behind the name of the tool.
pub(crate) fn complain(tool: &str, error: &dyn Display) {
    let line = format!("{tool}: {error}\n");
    // There is nowhere left to say that standard error is closed; the exit status still tells.
    let _closed = write_once(STDERR, line.as_bytes());
}
