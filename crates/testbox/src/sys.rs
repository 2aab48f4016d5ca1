//! The system calls that the standard library has no safe face for: what a child does between
//! fork and exec, waiting with resource usage, signals to groups.
#![expect(
    unsafe_code,
    reason = "fork/exec hooks, wait4, poll and kill have no safe face"
)]

use crate::monitors::clock::raw_ns;
use kdyno_model::Usage;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a trial's process does before it becomes the program.
#[derive(Debug, Default)]
pub(crate) struct ChildSetup {
    /// `cgroup.procs` files to join, opened for writing.
    pub cgroups: Vec<File>,
    /// CPUs to be bound to.
    pub cpus: Vec<usize>,
    /// The journal, and the text around the pid with which the process enters itself.
    pub journal: Option<(File, Vec<u8>, Vec<u8>)>,
    /// Where it notes the moment in which it is set up and about to become the program.
    pub started: Option<StartStamp>,
}

/// A moment that a child notes for us: memory that both see.
///
/// Joining a cgroup takes the kernel milliseconds, so that a start stamped before the fork would
/// count them as the program's.
#[derive(Clone, Debug)]
pub(crate) struct StartStamp(Arc<SharedWord>);

#[derive(Debug)]
struct SharedWord(*mut AtomicU64);

// SAFETY: the pointer is to memory that is only ever accessed atomically and is unmapped when the
// last owner is gone.
unsafe impl Send for SharedWord {}
// SAFETY: as above.
unsafe impl Sync for SharedWord {}

impl StartStamp {
    /// Memory for one moment.
    pub(crate) fn new() -> io::Result<Self> {
        let length = size_of::<AtomicU64>();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh anonymous mapping touches no memory of ours.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), length, access, kind, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(Arc::new(SharedWord(memory.cast()))))
    }

    fn word(&self) -> &AtomicU64 {
        // SAFETY: page-aligned, zeroed by the kernel, mapped as long as `self` lives.
        unsafe { &*self.0.0 }
    }

    fn note(&self) {
        self.word().store(raw_ns(), Ordering::Release);
    }

    /// The moment on `CLOCK_MONOTONIC_RAW`; `None` before it was noted.
    pub(crate) fn raw_ns(&self) -> Option<u64> {
        Some(self.word().load(Ordering::Acquire)).filter(|ns| *ns > 0)
    }
}

impl Drop for SharedWord {
    fn drop(&mut self) {
        // SAFETY: mapped in `StartStamp::new` with this length and not unmapped elsewhere.
        unsafe { libc::munmap(self.0.cast(), size_of::<AtomicU64>()) };
    }
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The process ended; it is not reaped yet.
    Ended,
    /// We were told to stop.
    Interrupted,
    /// The deadline passed.
    TimedOut,
}

/// Makes the command set itself up: own process group, entered in the journal, in its cgroups,
/// on its CPUs. A cgroup that cannot be joined fails the start.
pub(crate) fn set_up_child(command: &mut Command, setup: ChildSetup) {
    let hook = move || {
        // SAFETY: setpgid on ourselves.
        check(unsafe { libc::setpgid(0, 0) })?;
        if let Some((journal, before, after)) = &setup.journal {
            enter_journal(journal.as_raw_fd(), before, after)?;
        }
        for cgroup in &setup.cgroups {
            write_all(cgroup.as_raw_fd(), b"0\n")?;
        }
        bind_to(&setup.cpus)?;
        if let Some(started) = &setup.started {
            started.note();
        }
        Ok(())
    };
    // SAFETY: the hook makes only async-signal-safe calls (setpgid, getpid, write,
    // sched_setaffinity, clock_gettime) and allocates nothing, so it may run between fork and exec.
    unsafe { command.pre_exec(hook) };
}

/// Lets a helper outlive us: a session of its own, deaf to the terminal's signals.
pub(crate) fn detach(command: &mut Command) {
    let hook = || {
        // SAFETY: setsid and signal are async-signal-safe and touch no memory of ours.
        unsafe {
            check(libc::setsid())?;
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
        Ok(())
    };
    // SAFETY: as said inside the hook.
    unsafe { command.pre_exec(hook) };
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn write_all(fd: RawFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        // SAFETY: `bytes` is valid for its length.
        let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
        let written = usize::try_from(written).map_err(|_| io::Error::last_os_error())?;
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// One write, so that the line is whole: `before`, our pid, `after`. On the stack, since nothing
/// may be allocated here.
fn enter_journal(fd: RawFd, before: &[u8], after: &[u8]) -> io::Result<()> {
    // SAFETY: getpid always succeeds.
    let mut pid = unsafe { libc::getpid() };
    let mut line = [0u8; 256];
    let mut digits = [0u8; 12];
    let mut count = 0;
    loop {
        digits[count] = b'0' + u8::try_from(pid % 10).unwrap_or(0);
        pid /= 10;
        count += 1;
        if pid == 0 {
            break;
        }
    }
    let reversed = digits[..count].iter().rev();
    let text = before.iter().chain(reversed).chain(after);
    let mut length = 0;
    for (slot, byte) in line.iter_mut().zip(text) {
        *slot = *byte;
        length += 1;
    }
    write_all(fd, &line[..length])
}

fn bind_to(cpus: &[usize]) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    // SAFETY: an all-zero cpu_set_t is the empty set; CPU_SET stays inside it for the numbers
    // below its size, which are checked; the call reads as many bytes as it is told.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let most = 8 * size_of::<libc::cpu_set_t>();
        for cpu in cpus.iter().copied().filter(|cpu| *cpu < most) {
            libc::CPU_SET(cpu, &mut set);
        }
        check(libc::sched_setaffinity(
            0,
            size_of::<libc::cpu_set_t>(),
            &raw const set,
        ))
    }
}

/// Waits until the process ends, `interrupt` becomes readable or the deadline passes.
///
/// # Errors
/// When the kernel refuses to watch the process.
pub(crate) fn wait_for_end(
    pid: i32,
    interrupt: Option<RawFd>,
    deadline: Option<Instant>,
) -> io::Result<Waited> {
    let process = pidfd(pid)?;
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Ok(Waited::TimedOut);
        }
        // One millisecond more, so that a wait that rounds down does not spin.
        let timeout = left.map_or(-1, |left| {
            i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX)
        });
        let entry = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut entries = [entry(process.as_raw_fd()), entry(interrupt.unwrap_or(-1))];
        // SAFETY: `entries` holds two valid pollfd and outlives the call.
        let ready = unsafe { libc::poll(entries.as_mut_ptr(), 2, timeout) };
        if ready < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        } else if entries[0].revents != 0 {
            return Ok(Waited::Ended);
        } else if entries[1].revents != 0 {
            return Ok(Waited::Interrupted);
        }
    }
}

fn pidfd(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes a pid and flags and gives a new descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd)
        .ok()
        .filter(|fd| *fd >= 0)
        .ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the descriptor is new and ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Reaps a child that has ended or will: its raw wait status and what it and its reaped children
/// used.
///
/// # Errors
/// When it is no child of ours.
pub(crate) fn reap(pid: i32) -> io::Result<(i32, Usage)> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which all zeros is a value; both pointers are valid.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        while libc::wait4(pid, &raw mut status, 0, &raw mut usage) < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        usage
    };
    let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
    let nanos = |t: libc::timeval| count(t.tv_sec) * 1_000_000_000 + count(t.tv_usec) * 1000;
    let usage = Usage {
        user_ns: nanos(usage.ru_utime),
        system_ns: nanos(usage.ru_stime),
        max_rss_bytes: count(usage.ru_maxrss) * 1024,
        minor_faults: count(usage.ru_minflt),
        major_faults: count(usage.ru_majflt),
        voluntary_switches: count(usage.ru_nvcsw),
        involuntary_switches: count(usage.ru_nivcsw),
    };
    Ok((status, usage))
}

/// Sends a signal to a process group; one that is gone is no error.
pub(crate) fn signal_group(group: i32, signal: i32) {
    if group > 1 {
        // SAFETY: kill takes numbers; group 0 and 1, which would hit others, are excluded.
        unsafe { libc::kill(-group, signal) };
    }
}

/// Ends a process at once; one that is gone is no error.
pub(crate) fn kill_process(pid: i32) {
    if pid > 1 {
        // SAFETY: kill takes numbers; 0, 1 and negative pids, which would hit others, are excluded.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}

/// Whether a process of this number exists.
pub(crate) fn process_exists(pid: i32) -> bool {
    // SAFETY: signal 0 only asks.
    pid > 0
        && (unsafe { libc::kill(pid, 0) } == 0
            || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM))
}

/// Our effective user.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: geteuid always succeeds.
    unsafe { libc::geteuid() }
}
