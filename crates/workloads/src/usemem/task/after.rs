//! What follows the passes: system calls that are timed by themselves, and what SIGUSR1 starts.

use super::{Access, RunError, Task, result_line, say, say_timed};
use crate::sys::{self, Ending, Fork, Region};
use crate::usemem::ksm;
use std::io;
use std::time::Duration;

/// Pages that are pushed out are looked at so often, until none has gone for so long.
const OUT_POLL: Duration = Duration::from_millis(10);
const OUT_PATIENCE: Duration = Duration::from_millis(500);

/// What to do about a node that is not there.
const NODES: &str = "see /sys/devices/system/node/online for the nodes that there are";

/// What the words of a task's memory hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Index,
    Value(u64),
    Unknown,
}

impl Task<'_> {
    /// Everything that was asked for after the passes of the task with this index.
    pub(super) fn after_passes(&mut self, index: u64) -> Result<(), RunError> {
        let options = self.job.options;
        if options.madv_pageout {
            self.page_out()?;
        }
        if options.punch_holes {
            self.of_each_region("give pages back", Region::punch_holes)?;
        }
        if options.fallocate_punch_holes {
            self.punch_file()?;
        }
        if let Some(node) = options.mbind {
            let before = self.pages_on(node)?;
            let began = sys::now();
            for region in self.regions() {
                let bound = region.bind(node);
                bound.map_err(RunError::call("bind memory to a node", NODES))?;
            }
            let took = sys::now().saturating_sub(began);
            self.say_moved(before, node, "bound", took)?;
        }
        if let Some((from, to)) = options.migrate {
            let before = self.pages_on(to)?;
            let began = sys::now();
            sys::migrate(from, to).map_err(RunError::call("migrate pages", NODES))?;
            let took = sys::now().saturating_sub(began);
            self.say_moved(before, to, "migrated", took)?;
        }
        if options.ksm {
            let (bytes, took) = ksm::merge(self.regions(), || self.expired())?;
            say_timed(bytes, "merged", took)?;
        }
        match options.after_signal.is_any() {
            true => self.signals(index),
            false => Ok(()),
        }
    }

    fn pages_on(&self, node: u64) -> Result<u64, RunError> {
        let counts = self.regions().map(|region| region.pages_on(node));
        let all: io::Result<u64> = counts.sum();
        all.map_err(RunError::call("ask where pages are", NODES))
    }

    /// The line of a call that has moved pages to a node.
    fn say_moved(
        &self,
        before: u64,
        node: u64,
        what: &str,
        took: Duration,
    ) -> Result<(), RunError> {
        let moved = self.pages_on(node)?.saturating_sub(before);
        say_timed(moved.saturating_mul(sys::page_bytes() as u64), what, took)
    }

    /// Pushes pages out until none is left or no more go: the first call only begins to write
    /// them, and until they are written they can still be had without reading.
    fn page_out(&self) -> Result<(), RunError> {
        let what = "push pages out";
        let left = || -> Result<usize, RunError> {
            let counts = self.regions().map(Region::resident_pages);
            let all: io::Result<usize> = counts.sum();
            all.map_err(RunError::call(
                "ask for pages in memory",
                "leave --madv-pageout out",
            ))
        };
        let (mut fewest, mut changed) = (left()?, sys::now());
        while fewest > 0 && sys::now().saturating_sub(changed) < OUT_PATIENCE {
            self.of_each_region(what, |region| region.advise(libc::MADV_PAGEOUT))?;
            std::thread::sleep(OUT_POLL);
            let now = left()?;
            if now < fewest {
                (fewest, changed) = (now, sys::now());
            }
        }
        // Of tasks that share a limit one may keep what others lose; without swap nobody loses any.
        match fewest > 0 && !sys::has_swap() {
            true => Err(RunError::NoSwap),
            false => Ok(()),
        }
    }

    fn of_each_region(
        &self,
        what: &'static str,
        call: impl Fn(&Region) -> io::Result<()>,
    ) -> Result<(), RunError> {
        let hint = "the kernel may lack it, or this kind of memory";
        let mut regions = self.regions();
        regions.try_for_each(|region| call(region).map_err(RunError::call(what, hint)))
    }

    /// Gives every other page of the file back.
    fn punch_file(&self) -> Result<(), RunError> {
        let Some(file) = self.job.file else {
            return Ok(());
        };
        let page = sys::page_bytes() as u64;
        let hint = "the file system may not know holes";
        let end = self.options().offset + self.options().size;
        for offset in (self.options().offset..end).step_by(2 * sys::page_bytes()) {
            let punched = sys::punch(file, offset, page);
            punched.map_err(RunError::call("punch a hole into the file", hint))?;
        }
        Ok(())
    }

    /// Waits for signals and does what each starts.
    fn signals(&mut self, index: u64) -> Result<(), RunError> {
        let after = &self.job.options.after_signal;
        if after.read_random {
            self.order = self.job.order(index, true);
        }
        // Of passes that were cut off nobody knows what they have written.
        let mut content = match self.timed_out {
            true => Content::Unknown,
            false => Content::Index,
        };
        let mut seen = 0;
        loop {
            if !after.at_once {
                seen = sys::wait_for_usr1(seen);
            }
            match after.fork {
                true => self.in_a_child(content)?,
                false => self.act(content)?,
            }
            if let Some(value) = after.write_data.filter(|_| after.write && !after.fork) {
                content = Content::Value(value);
            }
            if !after.again {
                return Ok(());
            }
        }
    }

    /// Lets a child do it, and waits for that.
    fn in_a_child(&mut self, content: Content) -> Result<(), RunError> {
        let hint = "raise the limit of processes (ulimit -u)";
        let pid = match sys::fork().map_err(RunError::call("fork", hint))? {
            Fork::Child => sys::exit_now(match self.act(content) {
                Ok(()) => 0,
                Err(error) => {
                    sys::complain(crate::usemem::NAME, &error);
                    1
                }
            }),
            Fork::Parent(pid) => pid,
        };
        match sys::wait(pid).map_err(RunError::Wait)? {
            (_, Ending::Exited(0)) => Ok(()),
            (_, Ending::Exited(status)) => Err(RunError::ChildFailed { status }),
            (_, Ending::Signalled(signal)) => Err(RunError::ChildKilled { signal }),
        }
    }

    /// What one signal starts, and its line.
    fn act(&mut self, content: Content) -> Result<(), RunError> {
        let after = &self.job.options.after_signal;
        (self.begun, self.bytes, self.timed_out) = (sys::now(), 0, false);
        if after.madv_thp {
            self.of_each_region("ask for huge pages", |region| {
                region.advise(libc::MADV_HUGEPAGE)
            })?;
        }
        if after.punch_holes {
            self.of_each_region("give pages back", Region::punch_holes)?;
        }
        let read = match (after.verify, content) {
            (false, _) | (true, Content::Unknown) => Access::Read,
            (true, Content::Index) => Access::CheckIndex,
            (true, Content::Value(value)) => Access::CheckValue(value),
        };
        let write = after.write_data.map_or(Access::Write, Access::Fill);
        for (wanted, times, access) in [
            (after.read, after.read_count, read),
            (after.write, after.write_times, write),
        ] {
            if wanted {
                self.all_over(times.max(1), access)?;
            }
        }
        match after.read || after.write {
            true => say(&result_line(
                self.bytes,
                sys::now().saturating_sub(self.begun),
            )),
            false => Ok(()),
        }
    }

    /// Passes over all of the task's memory so often, or until the time is over.
    fn all_over(&mut self, times: u64, access: Access) -> Result<(), RunError> {
        let own = std::mem::take(&mut self.own);
        let size = self.options().size;
        let mut result = Ok(());
        let mut done = 0;
        while done < times && result.is_ok() && !self.timed_out {
            for region in self.job.shared.into_iter().chain(&own) {
                if result.is_ok() && !self.timed_out {
                    result = self.pass(region, size, access).map(drop);
                }
            }
            done += 1;
        }
        self.own = own;
        result
    }
}
