//! Passes over a file that is not mapped: with read(2), or with writes past the page cache.

use super::{Order, RunError, Task, say};
use crate::sys::{self, Mapping, Region, Source};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes of one read, as `dd` has them in the suite.
const READ_BYTES: u64 = 4 << 10;
/// Bytes of one write.
const WRITE_BYTES: u64 = 1 << 20;
/// The deadline is looked at once in so many reads or writes.
const BETWEEN_LOOKS: u64 = 128;

impl Task<'_> {
    /// Reads or writes the file as often as there are passes.
    pub(super) fn unmapped(&mut self) -> Result<(), RunError> {
        let Some(file) = self.job.file else {
            return Ok(());
        };
        let piece = match self.options().direct_write {
            true => WRITE_BYTES,
            false => READ_BYTES,
        };
        let buffer = Region::map(
            piece,
            Mapping {
                populate: true,
                ..Mapping::of(Source::Anonymous)
            },
        );
        let buffer = buffer.map_err(RunError::call("map a buffer", "ask for less"))?;
        for round in 0..self.options().repeat {
            if round > 0 && !self.options().quiet {
                say(".")?;
            }
            if let Some(meeting) = self.job.between_passes.filter(|_| round > 0) {
                meeting.meet();
            }
            if !self.file_pass(file, &buffer, piece)? {
                self.timed_out = true;
                break;
            }
        }
        Ok(())
    }

    /// One pass over the file; false when the time was over.
    fn file_pass(&mut self, file: &File, buffer: &Region, piece: u64) -> Result<bool, RunError> {
        let pieces = self.options().size.div_ceil(piece);
        let mut bytes = vec![0; usize::try_from(READ_BYTES).unwrap_or(0)];
        for turn in 0..pieces {
            let at = match &mut self.order {
                Order::Sequential => turn,
                Order::Random(random) => random.below(super::clamp(pieces)) as u64,
            };
            let begin = at * piece;
            let left = self.options().size - begin;
            let length = match self.options().direct_write {
                // Writes past the page cache are of whole pages.
                true => piece.min(left.next_multiple_of(4096)),
                false => piece.min(left),
            };
            let offset = self.options().offset + begin;
            let done = match self.options().direct_write {
                true => sys::write_from(buffer, super::clamp(length), file, offset).map_err(
                    RunError::call("write the file", "see that the disk has room"),
                ),
                false => file
                    .read_exact_at(bytes.split_at_mut(super::clamp(length)).0, offset)
                    .map_err(RunError::call("read the file", "see -f and --each-file")),
            };
            done?;
            self.bytes += length;
            if turn.is_multiple_of(BETWEEN_LOOKS) && self.expired() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
