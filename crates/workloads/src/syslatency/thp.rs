//! How long huge pages take under memory pressure: one thread fills the page cache, then allocates
//! and touches aligned huge pages, each timed, and gives them back.

use super::report::{HugePages, Sample};
use super::{Options, RunError};
use crate::sys::{self, HUGE_PAGE_BYTES, Mapping, Region, Source};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of the file that are mapped at once, and the grain of `--fill` and `--cycle`.
const CHUNK_BYTES: u64 = 1 << 20;
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// What `statfs` calls a file system in memory: its pages are no page cache of a disk.
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Memory under pressure: a file whose pages come and go.
pub(super) struct Pressure<'o> {
    options: &'o Options,
    file: File,
    /// What the file is read into.
    buffer: Vec<u8>,
    /// Where its next part begins.
    filled: u64,
}

impl<'o> Pressure<'o> {
    /// Opens the file.
    pub(super) fn new(options: &'o Options) -> Result<Self, RunError> {
        let name = options.file.as_deref().unwrap_or_default();
        let file = filler(name, options.cycle).map_err(RunError::at("--file"))?;
        if sys::file_system(&file).map_err(RunError::at("--file"))? == TMPFS_MAGIC {
            return Err(RunError::Refused {
                reason: format!("{name} is in memory: reading it fills no page cache"),
                hint: "name a file on a disk's file system",
            });
        }
        Ok(Self {
            options,
            file,
            buffer: vec![0; READ_BYTES],
            filled: 0,
        })
    }

    /// Rounds for so long, each of so many huge pages. The kernel weighs what to reclaim by what came
    /// back before: without such rounds in front the first figures would be those of another state.
    pub(super) fn rounds(&mut self, time_ns: u64) -> Result<HugePages, RunError> {
        let mut measured = HugePages {
            samples: Vec::new(),
            rounds: 0,
        };
        let end = sys::monotonic_ns().saturating_add(time_ns);
        while sys::monotonic_ns() < end {
            self.fill()
                .map_err(RunError::at("--file: filling the page cache"))?;
            let mut regions = Vec::new();
            for _ in 0..self.options.pages {
                let (sample, region) =
                    allocate(self.options).map_err(RunError::at("a huge page"))?;
                measured.samples.push(sample);
                regions.push(region);
            }
            let mut regions = regions.into_iter();
            regions
                .try_for_each(Region::unmap)
                .map_err(RunError::at("giving huge pages back"))?;
            measured.rounds += 1;
        }
        Ok(measured)
    }

    /// Reads the next part of the file, from its start again after `cycle` bytes: pages that were
    /// reclaimed come back, which lets the kernel look for others.
    fn fill(&mut self) -> io::Result<()> {
        let mut left = self.options.fill;
        while left > 0 {
            if self.filled + CHUNK_BYTES > self.options.cycle {
                self.filled = 0;
            }
            match self.options.map {
                true => self.map_chunk()?,
                false => self.read_chunk()?,
            }
            self.filled += CHUNK_BYTES;
            left = left.saturating_sub(CHUNK_BYTES);
        }
        Ok(())
    }

    fn read_chunk(&mut self) -> io::Result<()> {
        let mut at = self.filled;
        while at < self.filled + CHUNK_BYTES {
            self.file.read_exact_at(&mut self.buffer, at)?;
            at += READ_BYTES as u64;
        }
        Ok(())
    }

    fn map_chunk(&self) -> io::Result<()> {
        Region::map(CHUNK_BYTES, Mapping::read_whole(&self.file, self.filled))?.unmap()
    }
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
            advise_huge: true,
            ..Mapping::of(Source::Anonymous)
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
