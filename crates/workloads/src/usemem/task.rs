//! One task: it obtains its memory, passes over it, and reports one line.

use super::options::Options;
use super::random::Lrand48;
use super::run::RunError;
use super::sweep::{Access, Order, Pass, Plan, sweep};
use super::sys::{self, Mapping, Region};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const WORD_BYTES: u64 = size_of::<u64>() as u64;

/// What all tasks have in common.
#[derive(Debug)]
pub(super) struct Job<'a> {
    /// What was asked for.
    pub(super) options: &'a Options,
    /// When the clock started: before any memory was obtained and any task was made.
    pub(super) start: Duration,
    /// How memory is obtained.
    pub(super) mapping: Mapping<'a>,
    /// The memory that the parent obtained for all.
    pub(super) shared: Option<&'a Region>,
}

impl Job<'_> {
    /// Maps `bytes` bytes as the options say.
    ///
    /// # Errors
    /// [`RunError::Map`].
    pub(super) fn map(&self, bytes: u64) -> Result<Region, RunError> {
        Region::map(bytes, self.mapping).map_err(|source| RunError::Map {
            bytes,
            source,
            hint: match self.mapping.hugetlb {
                true => "raise /proc/sys/vm/nr_hugepages (pages of 2 MB)",
                false => "ask for less, or set /proc/sys/vm/overcommit_memory to 1",
            },
        })
    }

    /// Whether more whole seconds than `--runtime` have begun since the start.
    fn expired(&self) -> bool {
        let limit = self.options.runtime;
        limit != 0 && sys::now().as_secs() - self.start.as_secs() > limit
    }

    /// Does the work of the task with this index: passes over all units, writes the result line,
    /// and frees what it mapped.
    ///
    /// # Errors
    /// Memory cannot be had, a word changed between two passes, or a line cannot be written.
    pub(super) fn work(&self, index: u64) -> Result<(), RunError> {
        let mut order = self.order(index);
        let mut own = Vec::new();
        let mut bytes = match self.shared {
            Some(_) => self.options.size / WORD_BYTES,
            None => 0,
        };
        let mut left = self.options.size;
        let mut timed_out = false;
        while left > 0 && !timed_out {
            let unit = self.options.unit_bytes().min(left);
            left -= unit;
            let accessed;
            (accessed, timed_out) = match self.shared {
                Some(region) => self.passes(region, unit, &mut order)?,
                None => {
                    own.push(self.map(unit)?);
                    bytes += unit / WORD_BYTES;
                    let region = own.last().ok_or(RunError::NoMemory)?;
                    self.passes(region, unit, &mut order)?
                }
            };
            bytes += accessed * WORD_BYTES;
        }
        if bytes > 0 {
            say(&result_line(bytes, sys::now().saturating_sub(self.start)))?;
        }
        if !self.options.prealloc {
            free(own)?;
        }
        Ok(())
    }

    /// Makes all passes over the first `bytes` of a region; returns the accesses made and
    /// whether the time was over.
    fn passes(
        &self,
        region: &Region,
        bytes: u64,
        order: &mut Order,
    ) -> Result<(u64, bool), RunError> {
        let mut accessed = 0;
        for round in 0..self.options.repeat {
            if round > 0 && !self.options.quiet {
                say(".")?;
            }
            let plan = Plan {
                words: clamp(bytes / WORD_BYTES),
                step: clamp(self.options.step / WORD_BYTES),
                access: match (self.options.readonly, round) {
                    (true, _) => Access::Read,
                    (false, 0) => Access::Write,
                    (false, _) => Access::Verify,
                },
            };
            let (end, count) = sweep(region, plan, order, || self.expired());
            accessed += count;
            match end {
                Pass::Complete => {}
                Pass::TimedOut => return Ok((accessed, true)),
                Pass::Wrong(index) => {
                    return Err(RunError::DataWrong {
                        offset: index as u64 * WORD_BYTES,
                    });
                }
            }
        }
        Ok((accessed, false))
    }

    /// The order of accesses of the task with this index. With a given seed each task has its
    /// own order, but the same one in each run.
    fn order(&self, index: u64) -> Order {
        if !self.options.random {
            return Order::Sequential;
        }
        let seed = match self.options.random_seed {
            Some(seed) => seed.wrapping_add(index),
            None => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                now.unwrap_or_default().as_secs() ^ u64::from(sys::thread_id())
            }
        };
        Order::Random(Lrand48::new((seed & u64::from(u32::MAX)) as u32))
    }
}

fn clamp(words: u64) -> usize {
    usize::try_from(words).unwrap_or(usize::MAX)
}

/// Gives the memory back and says how long that took.
fn free(regions: Vec<Region>) -> Result<(), RunError> {
    let start = sys::now();
    for region in regions {
        region.unmap().map_err(RunError::Unmap)?;
    }
    let took = sys::now().saturating_sub(start).as_micros();
    say(&format!("{took} usecs to free memory\n"))
}

/// The result line of a task that accounts for `bytes` bytes in `elapsed`; KB are of 1024 bytes.
fn result_line(bytes: u64, elapsed: Duration) -> String {
    let usecs = elapsed.as_micros();
    let kb_per_s = ((u128::from(bytes) * 1_000_000) >> 10) / usecs.max(1);
    format!("{bytes} bytes / {usecs} usecs = {kb_per_s} KB/s\n")
}

fn say(text: &str) -> Result<(), RunError> {
    sys::write_once(sys::STDOUT, text.as_bytes()).map_err(RunError::Write)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_cut_to_whole_kb_of_1024_bytes() {
        let line = result_line(1_207_959_552, Duration::from_micros(379_465));
        assert_eq!(line, "1207959552 bytes / 379465 usecs = 3108713 KB/s\n");
    }

    #[test]
    fn no_time_and_huge_counts_still_make_a_line() {
        assert_eq!(
            result_line(2048, Duration::ZERO),
            "2048 bytes / 0 usecs = 2000000 KB/s\n"
        );
        assert_eq!(
            result_line(u64::MAX, Duration::from_secs(1)),
            "18446744073709551615 bytes / 1000000 usecs = 18014398509481983 KB/s\n"
        );
    }
}
