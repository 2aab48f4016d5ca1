//! CPUs and memory nodes of the calling task.

use super::check;
use std::io;

/// Nodes that a mask has room for (MAX_NUMNODES is at most this), and one more, since the kernel
/// takes one bit less than it is told.
pub(crate) const MASK_BITS: u64 = 1025;

/// A mask of nodes as the kernel takes it.
pub(crate) fn mask(node: u64) -> [u64; 17] {
    let mut words = [0; 17];
    let place = usize::try_from(node / 64).unwrap_or(usize::MAX);
    if let Some(word) = words.get_mut(place) {
        *word = 1 << (node % 64);
    }
    words
}

/// The CPUs that the calling thread may run on.
///
/// # Errors
/// What `sched_getaffinity` says.
pub(crate) fn allowed_cpus() -> io::Result<Vec<usize>> {
    // SAFETY: all-zero is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set has the size that is told.
    check(unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) })?;
    let most = 8 * size_of::<libc::cpu_set_t>();
    // SAFETY: the index is below the number of bits.
    Ok((0..most)
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
        .collect())
}

/// Lets the calling thread run on these CPUs only.
///
/// # Errors
/// What `sched_setaffinity` says.
pub(crate) fn run_on(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: all-zero is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let most = 8 * size_of_val(&set);
    for cpu in cpus.iter().filter(|cpu| **cpu < most) {
        // SAFETY: the index is below the number of bits.
        unsafe { libc::CPU_SET(*cpu, &mut set) };
    }
    // SAFETY: the set has the size that is told.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) })
}

/// Lets the calling thread, and what it makes, take memory from this node only.
///
/// # Errors
/// What `set_mempolicy` says.
pub(crate) fn take_memory_from(node: u64) -> io::Result<()> {
    let nodes = mask(node);
    let call = libc::SYS_set_mempolicy;
    // SAFETY: the mask outlives the call and has as many bits as are told.
    check(unsafe { libc::syscall(call, libc::MPOL_BIND, nodes.as_ptr(), MASK_BITS) })
}

/// Moves this process's pages from one node to another; gives how many pages stayed.
///
/// # Errors
/// What `migrate_pages` says.
pub(crate) fn migrate(from: u64, to: u64) -> io::Result<u64> {
    let (from, to) = (mask(from), mask(to));
    let call = libc::SYS_migrate_pages;
    // SAFETY: the masks outlive the call and have as many bits as are told.
    let left = unsafe { libc::syscall(call, 0, MASK_BITS, from.as_ptr(), to.as_ptr()) };
    u64::try_from(left).map_err(|_| io::Error::last_os_error())
}
