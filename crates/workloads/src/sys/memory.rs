//! Memory: how it is obtained, what the kernel is asked to do with it, how it is given back.

use super::{check, page_bytes};

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// The size of the huge pages used, from the pool or transparent.
pub(crate) const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// Numbers of the kernel's interface (include/uapi/linux/shm.h).
const SHM_LOCK: libc::c_int = 11;
const SHM_UNLOCK: libc::c_int = 12;

/// Where memory comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    /// An anonymous mapping.
    Anonymous,
    /// A private mapping of this file.
    Private(&'a File),
    /// A shared mapping of this file.
    Shared {
        /// Open for reading, and for writing where words are written.
        file: &'a File,
        /// Where the mapping begins: a multiple of a page.
        offset: u64,
        /// Whether words can be written.
        writable: bool,
    },
    /// The C library's allocator.
    Malloc,
    /// A System V segment of shared memory, removed when nothing is attached to it.
    SystemV,
}

/// How memory is obtained.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping<'a> {
    /// From where.
    pub(crate) source: Source<'a>,
    /// All pages are faulted in by the call.
    pub(crate) populate: bool,
    /// From the pool of 2 MB pages.
    pub(crate) hugetlb: bool,
    /// Transparent huge pages are asked for, after the mapping is made.
    pub(crate) advise_huge: bool,
}

impl<'a> Mapping<'a> {
    /// Of small pages, each faulted in when it is touched.
    pub(crate) const fn of(source: Source<'a>) -> Self {
        Self {
            source,
            populate: false,
            hugetlb: false,
            advise_huge: false,
        }
    }

    /// Of a file that is read, with all its pages.
    pub(crate) const fn read_whole(file: &'a File, offset: u64) -> Self {
        let source = Source::Shared {
            file,
            offset,
            writable: false,
        };
        Self {
            populate: true,
            ..Self::of(source)
        }
    }

    /// Whether the call that maps also faults the pages in: huge ones only come after the advice.
    fn is_populated_at_once(&self) -> bool {
        let is_mapped = !matches!(self.source, Source::Malloc | Source::SystemV);
        is_mapped && !self.advise_huge
    }
}

/// What gives a region back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Mapped,
    Allocated,
    /// With the segment's id.
    SystemV(libc::c_int),
}

/// Readable memory of at least the bytes that were asked for, writable unless it is a file's that
/// is only read. It is given back by [`Region::unmap`] or with the process.
#[derive(Debug)]
pub(crate) struct Region {
    start: NonNull<u64>,
    bytes: usize,
    kind: Kind,
}

// SAFETY: a region is plain memory without thread-local state.
unsafe impl Send for Region {}
// SAFETY: all accesses through a shared region are the atomic single-word ones of `sweep`, and the
// kernel's own in system calls.
unsafe impl Sync for Region {}

/// Pages that the kernel is asked about at once.
const MOST_PAGES: usize = 1 << 16;

fn no_memory() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOMEM)
}

impl Region {
    /// Obtains `bytes` bytes, rounded up to whole huge pages where these are asked for.
    ///
    /// # Errors
    /// What the kernel says; also when `bytes` is 0 or cannot be rounded up.
    pub(crate) fn map(bytes: u64, how: Mapping<'_>) -> io::Result<Self> {
        let rounded = match how.hugetlb {
            true => bytes.checked_next_multiple_of(HUGE_PAGE_BYTES),
            false => Some(bytes),
        };
        let bytes = rounded
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or_else(no_memory)?;
        let region = match how.source {
            Source::Malloc => Self::allocate(bytes)?,
            Source::SystemV => Self::attach(bytes)?,
            _ => Self::map_pages(bytes, how)?,
        };
        if how.advise_huge {
            region.advise(libc::MADV_HUGEPAGE)?;
        }
        if how.populate && !how.is_populated_at_once() {
            region.populate()?;
        }
        Ok(region)
    }

    fn map_pages(bytes: usize, how: Mapping<'_>) -> io::Result<Self> {
        let writable = libc::PROT_READ | libc::PROT_WRITE;
        let (mut flags, protection, fd, offset) = match how.source {
            Source::Private(file) => (libc::MAP_PRIVATE, writable, file.as_raw_fd(), 0),
            Source::Shared {
                file,
                offset,
                writable: true,
            } => (libc::MAP_SHARED, writable, file.as_raw_fd(), offset),
            Source::Shared { file, offset, .. } => {
                (libc::MAP_SHARED, libc::PROT_READ, file.as_raw_fd(), offset)
            }
            _ => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, writable, -1, 0),
        };
        if how.populate && how.is_populated_at_once() {
            flags |= libc::MAP_POPULATE;
        }
        if how.hugetlb {
            flags |= libc::MAP_HUGETLB | libc::MAP_HUGE_2MB;
        }
        let offset = libc::off_t::try_from(offset).map_err(|_| no_memory())?;
        // SAFETY: no address is asked for, so no existing mapping is touched; the kernel checks
        // the rest.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Self::new(start, bytes, Kind::Mapped)
    }

    fn allocate(bytes: usize) -> io::Result<Self> {
        // SAFETY: any size may be asked for.
        Self::new(unsafe { libc::malloc(bytes) }, bytes, Kind::Allocated)
    }

    /// A segment that is marked to be removed at once, so that none outlives its processes.
    fn attach(bytes: usize) -> io::Result<Self> {
        // SAFETY: a new segment; the kernel checks the size.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, bytes, libc::IPC_CREAT | 0o600) };
        if id < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: no address is asked for, so no existing mapping is touched.
        let start = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        let attached = match start as isize {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        };
        // SAFETY: the segment is ours; it lives on until the last process has detached it.
        let removed = check(unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) });
        attached.and(removed)?;
        Self::new(start, bytes, Kind::SystemV(id))
    }

    fn new(start: *mut libc::c_void, bytes: usize, kind: Kind) -> io::Result<Self> {
        let start = NonNull::new(start.cast()).ok_or_else(no_memory)?;
        Ok(Self { start, bytes, kind })
    }

    /// The first word.
    pub(crate) fn words(&self) -> *mut u64 {
        self.start.as_ptr()
    }

    /// How many whole words it holds.
    pub(crate) fn word_count(&self) -> usize {
        self.bytes / size_of::<u64>()
    }

    /// The whole pages within it: where they begin and how many bytes they are. Only what malloc
    /// gives does not begin at a page.
    fn pages(&self) -> (*mut libc::c_void, usize) {
        let start = self.start.as_ptr().cast::<u8>();
        let before = start.align_offset(page_bytes()).min(self.bytes);
        let after = match self.kind {
            Kind::Allocated => (self.bytes - before) % page_bytes(),
            _ => 0,
        };
        // SAFETY: `before` is at most the length of this memory.
        let start = unsafe { start.add(before) };
        (start.cast(), self.bytes - before - after)
    }

    /// Tells the kernel something about all of it that changes no content, or gives pages back.
    ///
    /// # Errors
    /// What `madvise` says.
    pub(crate) fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        let (start, bytes) = self.pages();
        // SAFETY: the range is within this memory, of which no Rust value is made.
        check(unsafe { libc::madvise(start, bytes, advice) })
    }

    /// Faults all pages in, for writing.
    fn populate(&self) -> io::Result<()> {
        match self.advise(libc::MADV_POPULATE_WRITE) {
            // Before Linux 5.14.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                for at in (0..self.word_count()).step_by(page_bytes() / size_of::<u64>()) {
                    // SAFETY: `at` is below the number of words; nobody else has this memory yet.
                    unsafe { self.words().add(at).write_volatile(0) };
                }
                Ok(())
            }
            other => other,
        }
    }

    /// Writes a byte of each page of `bytes` bytes from `offset` on, as far as they lie within it.
    pub(crate) fn touch(&self, offset: usize, bytes: usize, page: usize) {
        let end = offset.saturating_add(bytes).min(self.bytes);
        for at in (offset..end).step_by(page.max(1)) {
            // SAFETY: `at` is below the length of this memory, of which no Rust value is made.
            unsafe { self.start.as_ptr().cast::<u8>().add(at).write_volatile(1) };
        }
    }

    /// Gives every other page back; it reads as zeros, or as the file, afterwards.
    ///
    /// # Errors
    /// What `madvise` says.
    pub(crate) fn punch_holes(&self) -> io::Result<()> {
        let (start, bytes) = self.pages();
        for at in (0..bytes).step_by(2 * page_bytes()) {
            let length = page_bytes().min(bytes - at);
            // SAFETY: the page is within this memory, of which no Rust value is made.
            check(unsafe { libc::madvise(start.byte_add(at), length, libc::MADV_DONTNEED) })?;
        }
        Ok(())
    }

    /// Faults all pages in and keeps them in memory.
    ///
    /// # Errors
    /// What `mlock` says.
    pub(crate) fn lock(&self) -> io::Result<()> {
        // SAFETY: the range is this memory; its content does not change.
        check(unsafe { libc::mlock(self.start.as_ptr().cast(), self.bytes) })
    }

    /// Locks a System V segment in memory and unlocks it.
    ///
    /// # Errors
    /// What `shmctl` says; of other memory that it is no segment.
    pub(crate) fn lock_and_unlock(&self) -> io::Result<()> {
        self.control_segment(SHM_LOCK)?;
        self.control_segment(SHM_UNLOCK)
    }

    /// Locks a System V segment: its mapping is marked, and its pages are moved to the list of those
    /// that cannot be reclaimed when reclaim meets them.
    ///
    /// # Errors
    /// What `shmctl` says; of other memory that it is no segment.
    pub(crate) fn lock_segment(&self) -> io::Result<()> {
        self.control_segment(SHM_LOCK)
    }

    fn control_segment(&self, command: libc::c_int) -> io::Result<()> {
        let Kind::SystemV(id) = self.kind else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        // SAFETY: both commands take no buffer.
        check(unsafe { libc::shmctl(id, command, std::ptr::null_mut()) })
    }

    /// Writes changed pages of a file back.
    ///
    /// # Errors
    /// What `msync` says.
    pub(crate) fn write_back(&self, wait: bool) -> io::Result<()> {
        let flag = match wait {
            true => libc::MS_SYNC,
            false => libc::MS_ASYNC,
        };
        // SAFETY: the range is this mapping; its content does not change.
        check(unsafe { libc::msync(self.start.as_ptr().cast(), self.bytes, flag) })
    }

    /// Moves the mapping to another address.
    ///
    /// # Errors
    /// What `mmap` or `mremap` say.
    pub(crate) fn move_elsewhere(&mut self) -> io::Result<()> {
        // Aligned as huge pages are, so that those of a mapping can move whole.
        let align = usize::try_from(HUGE_PAGE_BYTES).unwrap_or(usize::MAX);
        let room = self.bytes.checked_add(2 * align).ok_or_else(no_memory)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: no address is asked for, so no existing mapping is touched.
        let reserved =
            unsafe { libc::mmap(std::ptr::null_mut(), room, libc::PROT_NONE, flags, -1, 0) };
        if reserved == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let skip = reserved.cast::<u8>().align_offset(align).min(align);
        // SAFETY: `skip` is at most `align`, and the room is larger.
        let target = unsafe { reserved.byte_add(skip) };
        let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let old = self.start.as_ptr().cast();
        // SAFETY: the old range is this mapping and the new one lies within the room reserved
        // above; by `&mut self` nobody accesses it meanwhile.
        let moved = unsafe { libc::mremap(old, self.bytes, self.bytes, how, target) };
        let result = match moved {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            start => NonNull::new(start.cast())
                .ok_or_else(no_memory)
                .map(|start| self.start = start),
        };
        // After a failure the room may be somebody else's already, and the task ends anyway.
        result?;
        let end = skip + self.bytes.next_multiple_of(page_bytes());
        if skip > 0 {
            // SAFETY: the part of the room that lies before the mapping.
            check(unsafe { libc::munmap(reserved, skip) })?;
        }
        if end < room {
            // SAFETY: the part of the room that lies behind the mapping.
            check(unsafe { libc::munmap(reserved.byte_add(end), room - end) })?;
        }
        Ok(())
    }

    /// How many of its pages are in memory.
    ///
    /// # Errors
    /// What `mincore` says.
    pub(crate) fn resident_pages(&self) -> io::Result<usize> {
        let (start, bytes) = self.pages();
        let mut flags = vec![0_u8; MOST_PAGES.min(bytes.div_ceil(page_bytes()))];
        let mut count = 0;
        for at in (0..bytes).step_by(MOST_PAGES * page_bytes()) {
            let part = (bytes - at).min(MOST_PAGES * page_bytes());
            // SAFETY: the range is within this memory, and there is a byte for each of its pages.
            check(unsafe { libc::mincore(start.byte_add(at), part, flags.as_mut_ptr()) })?;
            let told = flags.iter().take(part.div_ceil(page_bytes()));
            count += told.filter(|flag| **flag & 1 == 1).count();
        }
        Ok(count)
    }

    /// How many of its pages are on this node.
    ///
    /// # Errors
    /// What `move_pages` says.
    pub(crate) fn pages_on(&self, node: u64) -> io::Result<u64> {
        let (start, bytes) = self.pages();
        let node = libc::c_int::try_from(node).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut found = 0;
        let all: Vec<usize> = (0..bytes).step_by(page_bytes()).collect();
        for part in all.chunks(MOST_PAGES) {
            // SAFETY: every offset lies within this memory.
            let pages: Vec<_> = part
                .iter()
                .map(|at| unsafe { start.byte_add(*at) })
                .collect();
            let mut nodes = vec![-1; part.len()];
            let none = std::ptr::null::<libc::c_int>();
            // SAFETY: there are as many addresses and places for answers as are told; without
            // nodes to move to, the call only asks.
            check(unsafe {
                libc::syscall(
                    libc::SYS_move_pages,
                    0,
                    pages.len(),
                    pages.as_ptr(),
                    none,
                    nodes.as_mut_ptr(),
                    0,
                )
            })?;
            found += nodes.iter().filter(|on| **on == node).count() as u64;
        }
        Ok(found)
    }

    /// Binds its pages to a node, and moves those that are elsewhere.
    ///
    /// # Errors
    /// What `mbind` says.
    pub(crate) fn bind(&self, node: u64) -> io::Result<()> {
        /// Flags of the kernel's interface (include/uapi/linux/mempolicy.h).
        const STRICT: libc::c_int = 1;
        const MOVE: libc::c_int = 2;
        let (start, bytes) = self.pages();
        let nodes = super::numa::mask(node);
        // SAFETY: the mask outlives the call and has as many bits as are told.
        check(unsafe {
            libc::syscall(
                libc::SYS_mbind,
                start,
                bytes,
                libc::MPOL_BIND,
                nodes.as_ptr(),
                super::numa::MASK_BITS,
                MOVE | STRICT,
            )
        })
    }

    /// Gives the memory back.
    ///
    /// # Errors
    /// What `munmap` or `shmdt` say.
    pub(crate) fn unmap(self) -> io::Result<()> {
        let start = self.start.as_ptr().cast();
        match self.kind {
            // SAFETY: the range is this mapping, and by taking `self` no access can follow.
            Kind::Mapped => check(unsafe { libc::munmap(start, self.bytes) }),
            Kind::Allocated => {
                // SAFETY: it came from malloc, and by taking `self` no access can follow.
                unsafe { libc::free(start) };
                Ok(())
            }
            // SAFETY: it was attached there, and by taking `self` no access can follow.
            Kind::SystemV(_) => check(unsafe { libc::shmdt(start) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(source: Source<'_>) -> Mapping<'_> {
        Mapping {
            source,
            populate: false,
            hugetlb: false,
            advise_huge: false,
        }
    }

    fn region(source: Source<'_>, pages: usize) -> Region {
        Region::map((pages * page_bytes()) as u64, mapping(source)).expect("memory for a test")
    }

    fn write(region: &Region, index: usize, value: u64) {
        assert!(index < region.word_count());
        // SAFETY: within the region.
        unsafe { region.words().add(index).write_volatile(value) };
    }

    fn read(region: &Region, index: usize) -> u64 {
        assert!(index < region.word_count());
        // SAFETY: within the region.
        unsafe { region.words().add(index).read_volatile() }
    }

    #[test]
    fn each_source_gives_memory_that_holds_what_is_written() {
        let file = tempfile::tempfile().expect("a temporary file");
        file.set_len(1 << 20).expect("a length");
        let shared = Source::Shared {
            file: &file,
            offset: page_bytes() as u64,
            writable: true,
        };
        for source in [Source::Anonymous, shared, Source::Malloc, Source::SystemV] {
            let region = region(source, 4);
            for index in [0, 511, region.word_count() - 1] {
                write(&region, index, 7);
                assert_eq!(read(&region, index), 7, "{source:?}");
            }
            region.advise(libc::MADV_NORMAL).expect("advice");
            region.lock().expect("a lock");
            region.unmap().expect("given back");
        }
        let mut word = [0; 8];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut word, page_bytes() as u64)
            .expect("the file");
        assert_eq!(u64::from_ne_bytes(word), 7);
    }

    #[test]
    fn moving_keeps_the_content_and_leaves_no_room_behind() {
        // Of a size that no other test has, so that its room can be told from other mappings.
        let mut region = region(Source::Anonymous, 4999);
        write(&region, 2000, 42);
        let before = region.words();
        for _ in 0..10 {
            region.move_elsewhere().expect("moved");
        }
        assert_ne!(region.words(), before);
        assert_eq!(read(&region, 2000), 42);
        let room = 4999 * page_bytes() + usize::try_from(HUGE_PAGE_BYTES).expect("few");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let left = maps.lines().filter(|line| {
            let ends = line
                .split_whitespace()
                .next()
                .and_then(|r| r.split_once('-'));
            let (low, high) = ends.expect("a range");
            let end = |hex| usize::from_str_radix(hex, 16).expect("an address");
            line.contains("---p") && (room..room + (2 << 20)).contains(&(end(high) - end(low)))
        });
        assert_eq!(left.count(), 0, "{maps}");
        region.unmap().expect("given back");
    }

    #[test]
    fn holes_are_every_other_page_and_not_in_memory() {
        let region = region(Source::Anonymous, 8);
        for page in 0..8 {
            write(&region, page * page_bytes() / 8, 1);
        }
        assert_eq!(region.resident_pages().expect("a count"), 8);
        region.punch_holes().expect("holes");
        assert_eq!(region.resident_pages().expect("a count"), 4);
        assert_eq!(read(&region, 0), 0);
        assert_eq!(read(&region, page_bytes() / 8), 1);
    }

    #[test]
    fn only_a_segment_can_be_locked_as_one() {
        region(Source::SystemV, 2)
            .lock_and_unlock()
            .expect("locked");
        assert!(region(Source::Anonymous, 2).lock_and_unlock().is_err());
    }

    #[test]
    fn no_bytes_and_too_many_are_errors() {
        for source in [Source::Anonymous, Source::SystemV] {
            assert!(Region::map(0, mapping(source)).is_err());
        }
        for source in [Source::Anonymous, Source::SystemV, Source::Malloc] {
            assert!(Region::map(u64::MAX - 4096, mapping(source)).is_err());
        }
    }
}
