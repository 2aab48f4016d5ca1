//! Files that memory is a mapping of.

use super::{Region, check};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

fn off(bytes: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

/// A new file in memory, which is gone with its last descriptor and mapping.
///
/// # Errors
/// What `memfd_create` says.
pub(crate) fn memory_file() -> io::Result<File> {
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(c"kdyno".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Gives a part of a file back to its file system; it reads as zeros afterwards.
///
/// # Errors
/// What `fallocate` says.
pub(crate) fn punch(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the descriptor is open as long as `file` lives.
    check(unsafe { libc::fallocate(file.as_raw_fd(), mode, off(offset)?, off(bytes)?) })
}

/// Writes the first `bytes` bytes of a region, at least a page, into a file.
///
/// # Errors
/// What `pwrite` says; `WriteZero` when the kernel took only a part.
pub(crate) fn write_from(
    region: &Region,
    bytes: usize,
    file: &File,
    offset: u64,
) -> io::Result<()> {
    let bytes = bytes.min(region.word_count() * size_of::<u64>());
    let start = region.words().cast_const().cast();
    // SAFETY: the range lies within the region, which is mapped as long as it is borrowed.
    let written = unsafe { libc::pwrite(file.as_raw_fd(), start, bytes, off(offset)?) };
    match usize::try_from(written) {
        Ok(written) if written == bytes => Ok(()),
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// The magic number of a file's file system (statfs(2)).
///
/// # Errors
/// What `fstatfs` says.
pub(crate) fn file_system(file: &File) -> io::Result<i64> {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `found` outlives the call.
    check(unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut found) })?;
    Ok(found.f_type)
}

/// Says that a part of a file will be read soon.
///
/// # Errors
/// What `posix_fadvise` says.
pub(crate) fn will_be_needed(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    let advice = libc::POSIX_FADV_WILLNEED;
    // SAFETY: the descriptor is open as long as `file` lives.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), off(offset)?, off(bytes)?, advice) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
