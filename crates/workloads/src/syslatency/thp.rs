//! How long huge pages take under memory pressure: one thread fills the page cache, then allocates
//! and touches aligned huge pages, each timed, and gives them back.

use super::report::{HugePages, Measured, Sample};
use super::{Options, RunError};
use crate::sys::{self, HUGE_PAGE_BYTES, Mapping, Region, Source};
use std::fs::{File, OpenOptions};
use std::io;

/// Bytes of the file that are mapped at once.
const CHUNK_BYTES: u64 = 1 << 20;
/// What `statfs` calls a file system in memory: its pages are no page cache of a disk.
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Measures until the time is over.
pub(super) fn measure(options: &Options) -> Result<Measured, RunError> {
    let name = options.file.as_deref().unwrap_or_default();
    let file = filler(name, options.cycle).map_err(RunError::at("--file"))?;
    if sys::file_system(&file).map_err(RunError::at("--file"))? == TMPFS_MAGIC {
        return Err(RunError::Refused {
            reason: format!("{name} is in memory: reading it fills no page cache"),
            hint: "name a file on a disk's file system",
        });
    }
    let mut filled = 0;
    let mut samples = Vec::new();
    let end = sys::monotonic_ns().saturating_add(options.time_ns);
    let mut rounds = 0;
    while sys::monotonic_ns() < end {
        fill(&file, options, &mut filled)
            .map_err(RunError::at("--file: filling the page cache"))?;
        let mut regions = Vec::new();
        for _ in 0..options.pages {
            let (sample, region) = allocate(options).map_err(RunError::at("a huge page"))?;
            samples.push(sample);
            regions.push(region);
        }
        let mut regions = regions.into_iter();
        regions
            .try_for_each(Region::unmap)
            .map_err(RunError::at("giving huge pages back"))?;
        rounds += 1;
    }
    Ok(Measured::HugePages(HugePages { samples, rounds }))
}

/// The file, made of holes where there is none: they fill the page cache without the disk.
fn filler(name: &str, bytes: u64) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(name)?;
    if file.metadata()?.len() < bytes {
        file.set_len(bytes)?;
    }
    Ok(file)
}

/// Reads the next part of the file, from its start again after `cycle` bytes: pages that were
/// reclaimed come back, which lets the kernel look for others.
fn fill(file: &File, options: &Options, filled: &mut u64) -> io::Result<()> {
    let mut left = options.fill;
    while left > 0 {
        if *filled + CHUNK_BYTES > options.cycle {
            *filled = 0;
        }
        let bytes = CHUNK_BYTES.min(left);
        let how = Mapping {
            source: Source::Shared {
                file,
                offset: *filled,
                writable: false,
            },
            populate: true,
            hugetlb: false,
            advise_huge: false,
        };
        Region::map(bytes, how)?.unmap()?;
        *filled += CHUNK_BYTES;
        left -= bytes;
    }
    Ok(())
}

/// Maps a huge page and writes a word of each of its small ones.
fn allocate(options: &Options) -> io::Result<(Sample, Region)> {
    let page = sys::page_bytes();
    // Twice as much, so that one lies in it whole.
    let bytes = match options.unaligned {
        true => HUGE_PAGE_BYTES,
        false => 2 * HUGE_PAGE_BYTES,
    };
    let (wall, cpu) = (sys::monotonic_ns(), sys::thread_cpu_ns());
    let region = Region::map(
        bytes,
        Mapping {
            source: Source::Anonymous,
            populate: false,
            hugetlb: false,
            advise_huge: true,
        },
    )?;
    let huge = usize::try_from(HUGE_PAGE_BYTES).unwrap_or(2 << 20);
    let offset = match options.unaligned {
        true => 0,
        false => region.words().cast::<u8>().align_offset(huge),
    };
    region.touch(offset, huge, page);
    let sample = Sample {
        wall_ns: sys::monotonic_ns().saturating_sub(wall),
        cpu_ns: sys::thread_cpu_ns().saturating_sub(cpu),
    };
    Ok((sample, region))
}
