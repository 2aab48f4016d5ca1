//! Where tasks of several processes and threads wait for each other.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A barrier for tasks of several processes, which a task may leave for good: the barriers of the
/// C library would then never open again.
#[derive(Debug)]
pub(crate) struct Meeting {
    state: NonNull<State>,
}

/// Lies in memory that the processes share; all zeros are a value of it.
#[derive(Debug)]
struct State {
    /// Tasks that take part in the upper half, those that have arrived in the lower.
    tasks: AtomicU64,
    /// Changes whenever all have arrived.
    generation: AtomicU32,
}

// SAFETY: all that it points to are atomics in memory that lives as long as the process.
unsafe impl Send for Meeting {}
// SAFETY: as above.
unsafe impl Sync for Meeting {}

const ARRIVED: u64 = u32::MAX as u64;

impl Meeting {
    /// For so many tasks, which are made afterwards by fork or as threads. Its page lives as long
    /// as the process.
    ///
    /// # Errors
    /// What `mmap` says.
    pub(crate) fn of(tasks: u32) -> io::Result<Self> {
        let bytes = size_of::<State>();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: no address is asked for, so no existing mapping is touched.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let state = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let meeting = Self { state };
        let tasks = u64::from(tasks) << 32;
        meeting.state().tasks.store(tasks, Ordering::SeqCst);
        Ok(meeting)
    }

    fn state(&self) -> &State {
        // SAFETY: it points to a page of zeros that is never unmapped, and the atomics within are
        // only used as such.
        unsafe { self.state.as_ref() }
    }

    /// Waits until all others that take part have arrived as well.
    pub(crate) fn meet(&self) {
        let generation = self.state().generation.load(Ordering::SeqCst);
        if !self.change(|tasks, arrived| (tasks, arrived + 1)) {
            while self.state().generation.load(Ordering::SeqCst) == generation {
                super::signal::wait_while(&self.state().generation, generation);
            }
        }
    }

    /// Takes part no more; the others do not wait for this task.
    pub(crate) fn leave(&self) {
        self.change(|tasks, arrived| (tasks - 1, arrived));
    }

    /// Changes the numbers of tasks and of those that have arrived. When all have, they go on and
    /// this is true.
    fn change(&self, how: impl Fn(u64, u64) -> (u64, u64)) -> bool {
        let mut all_here = false;
        let update = |old: u64| {
            let (tasks, arrived) = how(old >> 32, old & ARRIVED);
            all_here = tasks == arrived;
            Some(tasks << 32 | if all_here { 0 } else { arrived })
        };
        let order = Ordering::SeqCst;
        // The closure never refuses.
        let _before = self.state().tasks.fetch_update(order, order, update);
        if all_here {
            self.state().generation.fetch_add(1, order);
            super::signal::wake_all(&self.state().generation);
        }
        all_here
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_a_round_ahead_and_leaving_holds_nobody_up() {
        let meeting = Meeting::of(4).expect("a meeting");
        let rounds: Vec<AtomicU32> = (0..4).map(|_| AtomicU32::new(0)).collect();
        std::thread::scope(|scope| {
            for (task, mine) in rounds.iter().enumerate() {
                let (meeting, rounds) = (&meeting, &rounds);
                // Task 3 takes part in 3 rounds of 50 only.
                let most = if task == 3 { 3 } else { 50 };
                scope.spawn(move || {
                    for round in 1..=most {
                        mine.store(round, Ordering::SeqCst);
                        meeting.meet();
                        for other in rounds.iter().take(3) {
                            let seen = other.load(Ordering::SeqCst);
                            assert!((round..=round + 1).contains(&seen));
                        }
                    }
                    if most == 3 {
                        meeting.leave();
                    }
                });
            }
        });
        assert_eq!(rounds.first().map(|r| r.load(Ordering::SeqCst)), Some(50));
    }
}
