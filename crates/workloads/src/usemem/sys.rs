//! The system calls, each behind a safe function.
//!
//! What the standard library offers without loss (pipes, threads, files) is used from there.
#![expect(
    unsafe_code,
    reason = "mmap, fork, poll and waitpid have no safe form in the standard library"
)]

use super::hugetlb::PAGE_BYTES;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::NonNull;
use std::time::Duration;

/// The descriptor of result lines.
pub(super) const STDOUT: RawFd = 1;
const STDERR: RawFd = 2;

/// How memory is obtained.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapping<'a> {
    /// `None`: anonymous memory; else a private mapping of this file.
    pub(super) file: Option<&'a File>,
    /// All pages are faulted in by the call.
    pub(super) populate: bool,
    /// From the pool of 2 MB pages.
    pub(super) hugetlb: bool,
    /// Transparent huge pages are asked for, after the mapping is made.
    pub(super) advise_huge: bool,
}

/// Private, readable and writable memory of at least `bytes` bytes, aligned to a page. It is
/// given back by [`Region::unmap`] or with the process.
#[derive(Debug)]
pub(super) struct Region {
    start: NonNull<u64>,
    bytes: usize,
}

// SAFETY: a region is plain memory without thread-local state.
unsafe impl Send for Region {}
// SAFETY: all accesses through a shared region are the volatile single-word ones of `sweep`.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `bytes` bytes, rounded up to whole huge pages where these are asked for.
    ///
    /// # Errors
    /// What `mmap` or `madvise` say; also when `bytes` is 0 or cannot be rounded up.
    pub(super) fn map(bytes: u64, how: Mapping<'_>) -> io::Result<Self> {
        let too_large = || io::Error::from_raw_os_error(libc::ENOMEM);
        let rounded = match how.hugetlb {
            true => bytes.checked_next_multiple_of(PAGE_BYTES),
            false => Some(bytes),
        };
        let bytes = rounded
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or_else(too_large)?;
        let mut flags = libc::MAP_PRIVATE;
        if how.file.is_none() {
            flags |= libc::MAP_ANONYMOUS;
        }
        if how.populate {
            flags |= libc::MAP_POPULATE;
        }
        if how.hugetlb {
            flags |= libc::MAP_HUGETLB | libc::MAP_HUGE_2MB;
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let fd = how.file.map_or(-1, AsRawFd::as_raw_fd);
        // SAFETY: no address is asked for, so no existing mapping is touched; the kernel checks
        // the rest.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(too_large)?;
        let region = Self { start, bytes };
        if how.advise_huge {
            // SAFETY: the range is the mapping just made; the advice changes no content.
            let rc =
                unsafe { libc::madvise(region.start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
            if rc != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(region)
    }

    /// The first word.
    pub(super) fn words(&self) -> *mut u64 {
        self.start.as_ptr()
    }

    /// How many whole words it holds.
    pub(super) fn word_count(&self) -> usize {
        self.bytes / size_of::<u64>()
    }

    /// Gives the memory back.
    ///
    /// # Errors
    /// What `munmap` says.
    pub(super) fn unmap(self) -> io::Result<()> {
        // SAFETY: the range is this mapping, and by taking `self` no access can follow.
        match unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Which side of a fork we are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fork {
    /// The new process.
    Child,
    /// The old one, with the new one's id.
    Parent(libc::pid_t),
}

/// Forks a process that has one thread.
///
/// # Errors
/// What `fork` says.
pub(super) fn fork() -> io::Result<Fork> {
    // SAFETY: the caller has one thread, so no lock can be left held in the child.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid)),
    }
}

/// Ends the process at once: no destructors, no exit handlers of the parent run in a child.
pub(super) fn exit_now(status: i32) -> ! {
    // SAFETY: never returns and touches no memory.
    unsafe { libc::_exit(status) }
}

/// Waits until `fd` can be read; `false` when the time is over or its other end is closed.
///
/// # Errors
/// What `poll` says, interruptions apart.
pub(super) fn readable(fd: &impl AsRawFd, timeout: Option<Duration>) -> io::Result<bool> {
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
pub(super) enum Ending {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
}

/// Waits for any child to end, and takes it off the process table.
///
/// # Errors
/// What `waitpid` says, interruptions apart.
pub(super) fn wait_any() -> io::Result<(libc::pid_t, Ending)> {
    loop {
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, 0) };
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
pub(super) fn a_child_has_ended() -> bool {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` outlives the call; with WNOWAIT nothing is consumed.
    let rc = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, options) };
    // SAFETY: the call filled in the fields of a SIGCHLD, or left the zeroes.
    rc == 0 && unsafe { info.si_pid() } != 0
}

/// Kills a child of this process that was not waited for yet.
pub(super) fn kill(child: libc::pid_t) {
    // SAFETY: a signal to a process of our own; an ended one ignores it.
    unsafe { libc::kill(child, libc::SIGKILL) };
}

/// The time since some fixed moment, on the monotonic clock.
pub(super) fn now() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` outlives the call, and this clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}

/// The id of the calling thread.
pub(super) fn thread_id() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::gettid() }.unsigned_abs()
}

/// Writes `bytes` with one call, so that lines of several tasks never mix.
///
/// # Errors
/// What `write` says; `WriteZero` when the kernel took only a part.
pub(super) fn write_once(fd: RawFd, bytes: &[u8]) -> io::Result<()> {
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

/// Writes an error as one line of standard error.
pub(super) fn complain(error: &dyn Display) {
    let line = format!("usemem: {error}\n");
    // There is nowhere left to say that standard error is closed; the exit status still tells.
    let _closed = write_once(STDERR, line.as_bytes());
}
