//! SIGUSR1, counted, and waiting for a number to change.

use super::check;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often SIGUSR1 came to this process.
static SIGNALS: AtomicU32 = AtomicU32::new(0);

/// Sleeps while the number is `seen`; may return early.
pub(crate) fn wait_while(number: &AtomicU32, seen: u32) {
    let none = std::ptr::null::<libc::timespec>();
    // SAFETY: the word is aligned and outlives the call, which only reads it.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            number.as_ptr(),
            libc::FUTEX_WAIT,
            seen,
            none,
        )
    };
}

/// Wakes all that sleep in [`wait_while`], also in other processes.
pub(crate) fn wake_all(number: &AtomicU32) {
    // SAFETY: the word is aligned and outlives the call, which does not access it.
    unsafe { libc::syscall(libc::SYS_futex, number.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

extern "C" fn count(_signal: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::SeqCst);
    wake_all(&SIGNALS);
}

/// From now on SIGUSR1 is counted, in this process and its children, instead of ending them.
///
/// # Errors
/// What `sigaction` says.
pub(crate) fn count_usr1() -> io::Result<()> {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = count as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler only changes an atomic and makes a system call.
    check(unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) })
}

/// Waits until SIGUSR1 came to this process more often than `seen`; gives how often it did. Each
/// thread that waits sees each signal.
pub(crate) fn wait_for_usr1(seen: u32) -> u32 {
    loop {
        match SIGNALS.load(Ordering::SeqCst) {
            same if same == seen => wait_while(&SIGNALS, seen),
            more => return more,
        }
    }
}

/// Does something during which SIGINT and SIGTERM wait.
pub(crate) fn uninterrupted<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: all-zero is an empty set.
    let mut both: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is valid, and so are the signals' numbers; these calls then cannot fail.
    unsafe {
        libc::sigaddset(&raw mut both, libc::SIGINT);
        libc::sigaddset(&raw mut both, libc::SIGTERM);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const both, std::ptr::null_mut());
    }
    let result = act();
    // SAFETY: as above.
    unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &raw const both, std::ptr::null_mut()) };
    result
}
