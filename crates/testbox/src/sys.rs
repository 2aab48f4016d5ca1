//! The system calls that the standard library has no safe face for: what a child does between
//! fork and exec, waiting with resource usage, signals to groups.
#![expect(
    unsafe_code,
    reason = "fork/exec hooks, wait4, poll and kill have no safe face"
)]

use crate::monitors::clock::raw_ns;
use kdyno_model::Usage;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
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
    pub cpus: Vec<u32>,
    /// Where it tells its process group, for the guardian.
    pub guardian: Option<OwnedFd>,
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

/// Makes the command set itself up: it ends with us, has a session of its own whose group the
/// guardian knows, is in its cgroups and on its CPUs. A cgroup that cannot be joined fails the
/// start.
pub(crate) fn set_up_child(command: &mut Command, setup: ChildSetup) {
    let cpus = CpuMask::of(&setup.cpus);
    let parent = std::process::id();
    let hook = move || {
        end_with(parent)?;
        // A session and not only a group: a program that asks the terminal something would be
        // stopped and never heard of again; without a terminal it fails at once.
        // SAFETY: setsid takes nothing; a child is never a group leader yet.
        check(unsafe { libc::setsid() })?;
        if let Some(guardian) = &setup.guardian {
            tell_group(guardian.as_raw_fd());
        }
        for cgroup in &setup.cgroups {
            write_all(cgroup.as_raw_fd(), b"0\n")?;
        }
        cpus.bind()?;
        if let Some(started) = &setup.started {
            started.note();
        }
        Ok(())
    };
    // SAFETY: the hook makes only async-signal-safe calls (prctl, getppid, setsid, getpid,
    // signal, write, sched_setaffinity, clock_gettime) and allocates nothing, so it may run between fork and exec.
    unsafe { command.pre_exec(hook) };
}

/// Lets a helper outlive us: a session of its own, deaf to the terminal's signals, with the
/// descriptors `kept` inherited.
pub(crate) fn detach(command: &mut Command, kept: Vec<File>) {
    let hook = move || {
        // SAFETY: setsid, signal and fcntl are async-signal-safe and touch no memory of ours.
        unsafe {
            check(libc::setsid())?;
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
                libc::signal(signal, libc::SIG_IGN);
            }
            for file in &kept {
                check(libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0))?;
            }
        }
        Ok(())
    };
    // SAFETY: as said inside the hook.
    unsafe { command.pre_exec(hook) };
}

/// The kernel ends us when our parent ends: between fork and exec nothing else would know of us.
fn end_with(parent: u32) -> io::Result<()> {
    // SAFETY: prctl with a signal number; getppid always succeeds.
    unsafe {
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        if u32::try_from(libc::getppid()) != Ok(parent) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
    }
    Ok(())
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

/// Tells the guardian our pid, which is our group: decimal, a line, in one write. On the stack,
/// since nothing may be allocated here. A guardian that is gone is replaced before the next
/// trial; its broken pipe must not end us.
fn tell_group(fd: RawFd) {
    // SAFETY: getpid always succeeds.
    let mut pid = unsafe { libc::getpid() };
    let mut line = [b'\n'; 12];
    let mut first = line.len() - 1;
    loop {
        first -= 1;
        line[first] = b'0' + u8::try_from(pid % 10).unwrap_or(0);
        pid /= 10;
        if pid == 0 {
            break;
        }
    }
    // SAFETY: signal takes numbers; the default is what a program starts with.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let _ = write_all(fd, &line[first..]);
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// A set of CPUs as the kernel reads it, of any size.
struct CpuMask(Vec<u64>);

impl CpuMask {
    fn of(cpus: &[u32]) -> Self {
        let mut words = Vec::new();
        for cpu in cpus {
            let (word, bit) = (*cpu as usize / 64, cpu % 64);
            if words.len() <= word {
                words.resize(word + 1, 0);
            }
            words[word] |= 1 << bit;
        }
        Self(words)
    }

    /// Binds the calling process; the empty set binds to nothing.
    fn bind(&self) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        // SAFETY: the call reads as many bytes as it is told, and the words are that long.
        check(unsafe {
            libc::sched_setaffinity(0, size_of_val(self.0.as_slice()), self.0.as_ptr().cast())
        })
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

/// Reaps a child if it has ended; `true` when it was.
pub(crate) fn try_reap(pid: i32) -> bool {
    let mut status = 0;
    // SAFETY: the pointer is valid; WNOHANG never waits.
    unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) == pid }
}

/// Children are waited for: whoever started us may have said that nobody does.
pub(crate) fn wait_for_children() {
    // SAFETY: signal takes numbers.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Whether a signal was ignored when we were started, as nohup(1) and shells do for their
/// background jobs.
pub(crate) fn is_ignored(signal: i32) -> bool {
    // SAFETY: with no new action sigaction only writes the old one, for which zeros are a value.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut old) == 0
            && old.sa_sigaction == libc::SIG_IGN
    }
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

/// Processes below us that lose their parent become our children instead of the system's.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    // SAFETY: prctl with numbers.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) })
}

/// Whether a process of this number exists.
pub(crate) fn process_exists(pid: i32) -> bool {
    // SAFETY: signal 0 only asks.
    pid > 0
        && (unsafe { libc::kill(pid, 0) } == 0
            || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM))
}

/// Ends swap on a file or device.
pub(crate) fn swap_off(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path is a C string that outlives the call.
    check(unsafe { libc::swapoff(path.as_ptr()) })
}

/// Unmounts what is mounted there.
pub(crate) fn unmount(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: as above.
    check(unsafe { libc::umount2(path.as_ptr(), libc::UMOUNT_NOFOLLOW) })
}

/// Gives a file blocks on the disk for so many bytes: swap must have no holes.
pub(crate) fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: the descriptor is open as long as `file` lives.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Bytes that an unprivileged user can still write to the file system of a directory.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: statvfs is plain numbers, for which zeros are a value; both pointers are valid.
    let stat = unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        check(libc::statvfs(path.as_ptr(), &raw mut stat))?;
        stat
    };
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Writes everything that is dirty to the disks.
pub(crate) fn sync_disks() {
    // SAFETY: sync takes nothing and always succeeds.
    unsafe { libc::sync() };
}

/// Whether we may make something in a directory.
pub(crate) fn is_writable(dir: &Path) -> bool {
    CString::new(dir.as_os_str().as_bytes()).is_ok_and(|dir| {
        // SAFETY: the path is a C string that outlives the call.
        unsafe { libc::access(dir.as_ptr(), libc::W_OK) == 0 }
    })
}

/// Our effective user.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: geteuid always succeeds.
    unsafe { libc::geteuid() }
}

/// Sleeps until a moment of `CLOCK_MONOTONIC`, nanoseconds; a signal may wake it before.
pub(crate) fn sleep_until_ns(moment: u64) {
    let time = libc::timespec {
        tv_sec: libc::time_t::try_from(moment / 1_000_000_000).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::try_from(moment % 1_000_000_000).unwrap_or(0),
    };
    // SAFETY: `time` is a valid timespec; with an absolute time nothing is written back.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        );
    }
}
