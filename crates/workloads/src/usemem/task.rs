//! One task: it obtains its memory, passes over it, and reports one line.

mod after;
mod unmapped;

use super::options::Options;
use super::random::Lrand48;
use super::run::RunError;
use super::sweep::{Access, Order, Pass, Plan, sweep};
use crate::sys::{self, Mapping, Meeting, Region};
use std::fs::File;
use std::io::{self, PipeWriter, Read, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const WORD_BYTES: u64 = size_of::<u64>() as u64;

/// So often a mapping is moved at each pass.
const MOVES: u64 = 10;

/// Waits shorter than this are spent spinning: a sleep takes this much longer than it should.
const TIMER_SLACK: Duration = Duration::from_micros(100);

/// What all tasks have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<'a> {
    /// What was asked for.
    pub(super) options: &'a Options,
    /// When the clock started: before any memory was obtained and any task was made.
    pub(super) start: Duration,
    /// How memory is obtained.
    pub(super) mapping: Mapping<'a>,
    /// The file that is mapped, read or written, of all processes or of this one.
    pub(super) file: Option<&'a File>,
    /// The memory that the parent obtained for all.
    pub(super) shared: Option<&'a Region>,
    /// Where tasks meet between two passes.
    pub(super) between_passes: Option<&'a Meeting>,
    /// Where tasks meet before they give memory back.
    pub(super) before_free: Option<&'a Meeting>,
    /// Where tasks say that their passes are done and told.
    pub(super) reported: Option<&'a PipeWriter>,
}

/// Where a task still meets others. However it ends, nobody waits for it any more.
struct Meetings<'a> {
    between_passes: Option<&'a Meeting>,
    before_free: Option<&'a Meeting>,
}

impl Meetings<'_> {
    fn no_more_passes(&mut self) {
        if let Some(meeting) = self.between_passes.take() {
            meeting.leave();
        }
    }
}

impl Drop for Meetings<'_> {
    fn drop(&mut self) {
        self.no_more_passes();
        if let Some(meeting) = self.before_free.take() {
            meeting.leave();
        }
    }
}

/// A task at work.
struct Task<'a> {
    job: &'a Job<'a>,
    order: Order,
    /// Memory that is not shared.
    own: Vec<Region>,
    /// When what is being done has begun: `--runtime` and result lines count from here.
    begun: Duration,
    /// Bytes that the result line accounts for.
    bytes: u64,
    timed_out: bool,
    /// How long obtaining memory took.
    obtaining: Duration,
    /// Bytes accessed in first passes, and how long these took.
    first: (u64, Duration),
    /// Bytes of mappings that were moved, and how long that took.
    moved: (u64, Duration),
    /// Bytes read once more, and how long that took.
    again: (u64, Duration),
}

/// Memory that is passed over.
enum Memory<'m> {
    Own(&'m mut Region),
    Shared(&'m Region),
}

impl Memory<'_> {
    fn region(&self) -> &Region {
        match self {
            Self::Own(region) => region,
            Self::Shared(region) => region,
        }
    }
}

impl Job<'_> {
    /// Maps `bytes` bytes as the options say.
    ///
    /// # Errors
    /// [`RunError::Map`].
    pub(super) fn map(&self, bytes: u64) -> Result<Region, RunError> {
        Region::map(bytes, self.mapping).map_err(|source| RunError::Map {
            bytes,
            hint: match (self.mapping.hugetlb, source.raw_os_error()) {
                (_, Some(libc::EINVAL)) => "the kernel lacks this kind of memory, or huge pages",
                (true, _) => "raise /proc/sys/vm/nr_hugepages (pages of 2 MB)",
                (false, _) => "ask for less, or set /proc/sys/vm/overcommit_memory to 1",
            },
            source,
        })
    }

    /// Does the work of the task with this index: passes over all units, writes the result line,
    /// does what is to follow, and frees what it mapped.
    ///
    /// # Errors
    /// Memory cannot be had, a word changed between two passes, a system call that was asked for
    /// fails, or a line cannot be written.
    pub(super) fn work(&self, index: u64) -> Result<(), RunError> {
        let mut meetings = Meetings {
            between_passes: self.between_passes,
            before_free: self.before_free,
        };
        self.bind(index)?;
        let mut task = Task {
            job: self,
            order: self.order(index, self.options.random),
            own: Vec::new(),
            begun: self.start,
            bytes: match self.shared {
                Some(_) => self.options.size / WORD_BYTES,
                None => 0,
            },
            timed_out: false,
            obtaining: Duration::ZERO,
            first: (0, Duration::ZERO),
            moved: (0, Duration::ZERO),
            again: (0, Duration::ZERO),
        };
        match self.options.read_file || self.options.direct_write {
            true => task.unmapped()?,
            false => task.all_units()?,
        }
        meetings.no_more_passes();
        task.report()?;
        if let Some(mut parent) = self.reported {
            parent.write_all(b"*").map_err(RunError::Write)?;
        }
        task.after_passes(index)?;
        self.hold()?;
        if let Some(meeting) = self.before_free {
            meeting.meet();
        }
        free(task.own)
    }

    /// Binds the calling task to the CPU whose turn it is.
    fn bind(&self, index: u64) -> Result<(), RunError> {
        if !self.options.bind {
            return Ok(());
        }
        let bound = sys::allowed_cpus().and_then(|cpus| {
            let turn = usize::try_from(index).unwrap_or(0) % cpus.len().max(1);
            cpus.get(turn).map_or(Ok(()), |cpu| sys::run_on(&[*cpu]))
        });
        bound.map_err(RunError::call("bind to a CPU", "leave -b out"))
    }

    /// The order of accesses of the task with this index. With a given seed each task has its
    /// own order, but the same one in each run.
    fn order(&self, index: u64, random: bool) -> Order {
        if !random {
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

    /// Keeps the memory for as long as was asked for.
    fn hold(&self) -> Result<(), RunError> {
        std::thread::sleep(Duration::from_secs(self.options.sleep));
        if self.options.getchar {
            let read = io::stdin().lock().read(&mut [0]);
            read.map_err(RunError::call("read standard input", "leave -g out"))?;
        }
        Ok(())
    }
}

impl Task<'_> {
    fn options(&self) -> &Options {
        self.job.options
    }

    /// Whether more whole seconds than `--runtime` have begun since this has.
    fn expired(&self) -> bool {
        let limit = self.options().runtime;
        limit != 0 && sys::now().as_secs() - self.begun.as_secs() > limit
    }

    /// The memory that this task passes over.
    fn regions(&self) -> impl Iterator<Item = &Region> {
        self.job.shared.into_iter().chain(&self.own)
    }

    /// Obtains memory piece by piece and passes over each piece.
    fn all_units(&mut self) -> Result<(), RunError> {
        let mut left = self.options().size;
        while left > 0 && !self.timed_out {
            let unit = self.options().unit_bytes().min(left);
            left -= unit;
            match self.job.shared {
                Some(region) => self.passes(&mut Memory::Shared(region), unit)?,
                None => {
                    let mut region = self.obtain(unit)?;
                    self.bytes += unit / WORD_BYTES;
                    self.passes(&mut Memory::Own(&mut region), unit)?;
                    self.own.push(region);
                }
            }
        }
        Ok(())
    }

    /// One piece of memory, ready for its passes.
    fn obtain(&mut self, bytes: u64) -> Result<Region, RunError> {
        let began = sys::now();
        let region = self.job.map(bytes)?;
        self.obtaining += sys::now().saturating_sub(began);
        prepare(self.options(), &region, bytes)?;
        Ok(region)
    }

    /// Makes all passes over the first `bytes` of a piece of memory.
    fn passes(&mut self, memory: &mut Memory<'_>, bytes: u64) -> Result<(), RunError> {
        for round in 0..self.options().repeat {
            if round > 0 {
                if !self.options().quiet {
                    say(".")?;
                }
                if let Some(meeting) = self.job.between_passes {
                    meeting.meet();
                }
            }
            let began = sys::now();
            let access = match (self.options().readonly, self.options().ksm, round) {
                (true, ..) => Access::Read,
                // Pages are equal when all their words are.
                (false, true, _) => Access::Fill(1),
                (false, false, 0) => Access::Write,
                (false, false, _) => Access::Verify,
            };
            let accessed = self.pass(memory.region(), bytes, access)?;
            if round == 0 {
                self.first.0 += accessed;
                self.first.1 += sys::now().saturating_sub(began);
            }
            if self.timed_out {
                return Ok(());
            }
            self.after_pass(memory, bytes)?;
        }
        if self.options().read_again {
            let (began, before) = (sys::now(), self.bytes);
            self.again.0 += self.pass(memory.region(), bytes, Access::Read)?;
            self.again.1 += sys::now().saturating_sub(began);
            self.bytes = before;
        }
        Ok(())
    }

    /// Makes one pass over the first `bytes` of a region and gives the bytes accessed.
    fn pass(&mut self, region: &Region, bytes: u64, access: Access) -> Result<u64, RunError> {
        let words = clamp(bytes / WORD_BYTES).min(region.word_count());
        let step = clamp(self.options().step / WORD_BYTES).max(1);
        let delay = Duration::from_nanos(self.options().delay_ns);
        let part = match delay {
            Duration::ZERO => words,
            _ => (sys::page_bytes() / size_of::<u64>()).next_multiple_of(step),
        };
        let mut order = std::mem::replace(&mut self.order, Order::Sequential);
        let mut accessed = 0;
        let mut end = Pass::Complete;
        for from in (0..words).step_by(part.max(1)) {
            let plan = Plan {
                words,
                part: (from, from.saturating_add(part)),
                step,
                access,
            };
            let count;
            (end, count) = sweep(region, plan, &mut order, || self.expired());
            accessed += count * WORD_BYTES;
            if end != Pass::Complete {
                break;
            }
            wait(delay);
        }
        self.order = order;
        self.bytes += accessed;
        match end {
            Pass::Complete => {}
            Pass::TimedOut => self.timed_out = true,
            Pass::Wrong(index) => {
                return Err(RunError::DataWrong {
                    offset: index as u64 * WORD_BYTES,
                });
            }
        }
        Ok(accessed)
    }

    /// The system calls that were asked for at each pass.
    fn after_pass(&mut self, memory: &mut Memory<'_>, bytes: u64) -> Result<(), RunError> {
        let options = self.job.options;
        let region = memory.region();
        for (wanted, wait) in [(options.msync, true), (options.msync_async, false)] {
            if wanted {
                let written = region.write_back(wait);
                written.map_err(RunError::call("write a mapping back", "see -S and -A"))?;
            }
        }
        if let Some(file) = self.job.file.filter(|_| options.advise) {
            let told = sys::will_be_needed(file, options.offset, bytes);
            told.map_err(RunError::call("advise about the file", "leave -D out"))?;
        }
        if options.mincore || options.mincore_huge {
            // The answer is not of interest, asking is what is measured.
            let asked = region.resident_pages();
            asked.map_err(RunError::call(
                "ask for pages in memory",
                "leave -N and -H out",
            ))?;
        }
        if options.shm_lock {
            let hint = "raise the limit of locked memory (ulimit -l), or ask for less";
            let locked = region.lock_and_unlock();
            locked.map_err(RunError::call("lock a shared segment", hint))?;
        }
        if let (true, Memory::Own(region)) = (options.remap, memory) {
            let began = sys::now();
            for _ in 0..MOVES {
                let moved = region.move_elsewhere();
                moved.map_err(RunError::call("move a mapping", "leave -E out"))?;
            }
            self.moved.0 += bytes * MOVES;
            self.moved.1 += sys::now().saturating_sub(began);
        }
        Ok(())
    }

    /// The lines of what was done so far. What only prepares for a signal has no result line.
    fn report(&self) -> Result<(), RunError> {
        if self.options().init_time && !self.options().prealloc {
            let usecs = self.obtaining.as_micros();
            say(&format!("{usecs} usecs to obtain memory\n"))?;
        }
        if self.options().first_access_speed {
            say(&format!(
                "first access: {}",
                result_line(self.first.0, self.first.1)
            ))?;
        }
        let after = &self.options().after_signal;
        if self.bytes > 0 && !after.read && !after.write {
            let elapsed = sys::now().saturating_sub(self.begun);
            say(&result_line(
                self.bytes,
                elapsed.saturating_sub(self.again.1),
            ))?;
        }
        if self.again.0 > 0 {
            let line = result_line(self.again.0, self.again.1);
            say(&format!("read again: {line}"))?;
        }
        if self.moved.0 > 0 {
            say_timed(self.moved.0, "remapped", self.moved.1)?;
        }
        Ok(())
    }
}

/// Writes each word of what the parent obtained.
pub(super) fn fill(region: &Region, bytes: u64) {
    let words = clamp(bytes / WORD_BYTES);
    let plan = Plan {
        words,
        part: (0, words),
        step: 1,
        access: Access::Write,
    };
    sweep(region, plan, &mut Order::Sequential, || false);
}

/// What is done with new memory before its passes.
pub(super) fn prepare(options: &Options, region: &Region, bytes: u64) -> Result<(), RunError> {
    if options.show_addr {
        say(&format!("{bytes} bytes at {:p}\n", region.words()))?;
    }
    if options.mlock {
        let hint = "raise the limit of locked memory (ulimit -l), or ask for less";
        region.lock().map_err(RunError::call("lock memory", hint))?;
    }
    if options.touch_alloc {
        let access = match options.writes() {
            true => Access::Fill(0),
            false => Access::Read,
        };
        touch(region, bytes, access);
    }
    Ok(())
}

/// Accesses one word of each page.
fn touch(region: &Region, bytes: u64, access: Access) {
    let words = clamp(bytes / WORD_BYTES);
    let plan = Plan {
        words,
        part: (0, words),
        step: sys::page_bytes() / size_of::<u64>(),
        access,
    };
    sweep(region, plan, &mut Order::Sequential, || false);
}

/// Lets time pass.
fn wait(delay: Duration) {
    if delay > TIMER_SLACK {
        std::thread::sleep(delay);
    } else if !delay.is_zero() {
        let until = sys::now() + delay;
        while sys::now() < until {
            std::hint::spin_loop();
        }
    }
}

fn clamp(words: u64) -> usize {
    usize::try_from(words).unwrap_or(usize::MAX)
}

/// Gives the memory back and says how long that took.
fn free(regions: Vec<Region>) -> Result<(), RunError> {
    if regions.is_empty() {
        return Ok(());
    }
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

/// The line of a system call that was timed by itself, such as `4096 bytes truncated in 7 usecs`.
pub(super) fn say_timed(bytes: u64, what: &str, took: Duration) -> Result<(), RunError> {
    say(&format!(
        "{bytes} bytes {what} in {} usecs\n",
        took.as_micros()
    ))
}

/// Writes a line, or a part of one, to standard output.
pub(super) fn say(text: &str) -> Result<(), RunError> {
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
