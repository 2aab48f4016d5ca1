//! Memory that the kernel must not move: registered with io_uring, as a driver's long-term pin.

use super::Region;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Most bytes of one registered buffer (`io_uring/rsrc.c`).
const MOST_BYTES: usize = 1 << 30;
/// `IORING_REGISTER_BUFFERS`, include/uapi/linux/io_uring.h.
const REGISTER_BUFFERS: libc::c_uint = 0;
/// Bytes of `struct io_uring_params` there.
const PARAMETER_BYTES: usize = 120;

/// Pins that end when this is dropped.
#[derive(Debug)]
pub(crate) struct Pin {
    _ring: OwnedFd,
}

/// Pins all pages of a region: they stay on the lists of pages that may be reclaimed, and cannot be.
///
/// # Errors
/// What `io_uring_setup` and `io_uring_register` say: there may be none (ENOSYS), it may be forbidden
/// (EPERM), or such memory cannot be registered (EOPNOTSUPP).
pub(crate) fn pin(region: &Region) -> io::Result<Pin> {
    let mut parameters = [0_u64; PARAMETER_BYTES / size_of::<u64>()];
    // SAFETY: the parameters have the size of the kernel's structure and outlive the call.
    let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
    let ring = i32::try_from(ring).unwrap_or(-1);
    if ring < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    let ring = unsafe { OwnedFd::from_raw_fd(ring) };
    let bytes = region.word_count() * size_of::<u64>();
    let start = region.words().cast::<u8>();
    let parts: Vec<libc::iovec> = (0..bytes)
        .step_by(MOST_BYTES)
        .map(|at| libc::iovec {
            iov_base: start.wrapping_add(at).cast(),
            iov_len: MOST_BYTES.min(bytes - at),
        })
        .collect();
    let count = libc::c_uint::try_from(parts.len()).unwrap_or(libc::c_uint::MAX);
    // SAFETY: the parts lie within the region; the kernel takes references to its pages and changes
    // no content.
    let registered = unsafe {
        libc::syscall(
            libc::SYS_io_uring_register,
            ring.as_raw_fd(),
            REGISTER_BUFFERS,
            parts.as_ptr(),
            count,
        )
    };
    match registered {
        0 => Ok(Pin { _ring: ring }),
        _ => Err(io::Error::last_os_error()),
    }
}
