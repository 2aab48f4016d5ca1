//! The loop under the clock: one pass over the words of a region.
//!
//! Each kind of access and each order is its own compiled loop, since an option that is tested
//! per word would cost more than the access. Accesses are relaxed atomic ones: each is made, at its
//! full width, by the same instruction as a plain one, and tasks may share words. There is no bounds
//! check; the one check is made before the pass.
#![expect(
    unsafe_code,
    reason = "a word is accessed through a raw pointer, without a bounds check"
)]

use super::random::Lrand48;
use crate::sys::Region;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The deadline is looked at when the word index is a multiple of this.
const WORDS_BETWEEN_CHECKS: usize = 1 << 16;

/// What is done to each word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// It is read.
    Read,
    /// Its index is written.
    Write,
    /// It is read, must hold its index as written by an earlier pass, and is written again.
    Verify,
    /// This value is written.
    Fill(u64),
    /// It is read, and must hold its index.
    CheckIndex,
    /// It is read, and must hold this value.
    CheckValue(u64),
}

/// In which order words are accessed.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// From the first to the last.
    Sequential,
    /// As often as in sequence, but anywhere.
    Random(Lrand48),
}

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// At the last word.
    Complete,
    /// Early, since the time was over.
    TimedOut,
    /// At the word with this index, which held another value than was written.
    Wrong(usize),
}

/// One pass, or a part of one: which words, how far apart, and what for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Words of the region that take part, from its start; cut to the region's length.
    pub(super) words: usize,
    /// Positions that this part of a pass takes: a multiple of the step, and the first that it
    /// does not take. All of `words` for a whole pass.
    pub(super) part: (usize, usize),
    /// Distance of two accesses in words, at least 1.
    pub(super) step: usize,
    /// What is done to each.
    pub(super) access: Access,
}

/// Makes one pass over `region` and returns how it ended and how many words were accessed;
/// `expired` is asked now and then whether to stop.
pub(super) fn sweep(
    region: &Region,
    plan: Plan,
    order: &mut Order,
    expired: impl Fn() -> bool,
) -> (Pass, u64) {
    let words = plan.words.min(region.word_count());
    let plan = Plan {
        words,
        part: (plan.part.0.min(words), plan.part.1.min(words)),
        // Keeps the sum of a position and a step far from overflow.
        step: plan.step.clamp(1, usize::MAX / 4),
        access: plan.access,
    };
    match order {
        Order::Sequential => each(region, plan, |at| at, expired),
        Order::Random(random) => {
            let access = match plan.access {
                // At random not every word was written before, so there is nothing to verify.
                Access::Verify => Access::Write,
                access => access,
            };
            let plan = Plan { access, ..plan };
            each(region, plan, |_| random.below(words), expired)
        }
    }
}

/// The loop that the kind of access has.
fn each(
    region: &Region,
    plan: Plan,
    pick: impl FnMut(usize) -> usize,
    expired: impl Fn() -> bool,
) -> (Pass, u64) {
    match plan.access {
        Access::Read => pass(region, plan, Read, pick, expired),
        Access::Write => pass(region, plan, Write, pick, expired),
        Access::Verify => pass(region, plan, Verify, pick, expired),
        Access::Fill(value) => pass(region, plan, Fill(value), pick, expired),
        Access::CheckIndex => pass(region, plan, CheckIndex, pick, expired),
        Access::CheckValue(value) => pass(region, plan, CheckValue(value), pick, expired),
    }
}

/// The loop itself; `pick` maps a position below `plan.words` to the index of a word below it.
fn pass(
    region: &Region,
    plan: Plan,
    access: impl Touch,
    mut pick: impl FnMut(usize) -> usize,
    expired: impl Fn() -> bool,
) -> (Pass, u64) {
    let (from, words) = plan.part;
    let step = plan.step;
    let first = region.words();
    let accesses = |at: usize| ((at - from) / step) as u64;
    let mut at = from;
    while at < words {
        let checkpoint = at.is_multiple_of(WORDS_BETWEEN_CHECKS);
        let end = match checkpoint {
            true => at + 1,
            false => words.min(at.next_multiple_of(WORDS_BETWEEN_CHECKS)),
        };
        while at < end {
            let index = pick(at);
            // SAFETY: `index` < `plan.words` <= the words of the region, which is mapped as long
            // as it is borrowed; words are aligned since the region is at least as its words are.
            if !unsafe { access.touch(first.add(index), index) } {
                return (Pass::Wrong(index), accesses(at) + 1);
            }
            at += step;
        }
        if checkpoint && expired() {
            return (Pass::TimedOut, accesses(at));
        }
    }
    (Pass::Complete, accesses(at))
}

/// One access to one word; false when the word holds a value that nobody wrote.
///
/// Tasks may share a region and touch a word at the same time.
trait Touch: Copy {
    /// # Safety
    /// `word` is aligned, mapped, readable and, where the access writes, writable.
    unsafe fn touch(self, word: *mut u64, index: usize) -> bool;
}

#[derive(Clone, Copy)]
struct Read;
#[derive(Clone, Copy)]
struct Write;
#[derive(Clone, Copy)]
struct Verify;
#[derive(Clone, Copy)]
struct Fill(u64);
#[derive(Clone, Copy)]
struct CheckIndex;
#[derive(Clone, Copy)]
struct CheckValue(u64);

impl Touch for Read {
    #[inline(always)]
    unsafe fn touch(self, word: *mut u64, _index: usize) -> bool {
        // SAFETY: the caller's promise.
        std::hint::black_box(unsafe { AtomicU64::from_ptr(word) }.load(Relaxed));
        true
    }
}

impl Touch for Write {
    #[inline(always)]
    unsafe fn touch(self, word: *mut u64, index: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { AtomicU64::from_ptr(word) }.store(index as u64, Relaxed);
        true
    }
}

impl Touch for Verify {
    #[inline(always)]
    unsafe fn touch(self, word: *mut u64, index: usize) -> bool {
        // SAFETY: the caller's promise.
        let word = unsafe { AtomicU64::from_ptr(word) };
        let right = word.load(Relaxed) == index as u64;
        word.store(index as u64, Relaxed);
        right
    }
}

impl Touch for Fill {
    #[inline(always)]
    unsafe fn touch(self, word: *mut u64, _index: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { AtomicU64::from_ptr(word) }.store(self.0, Relaxed);
        true
    }
}

impl Touch for CheckIndex {
    #[inline(always)]
    unsafe fn touch(self, word: *mut u64, index: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { AtomicU64::from_ptr(word) }.load(Relaxed) == index as u64
    }
}

impl Touch for CheckValue {
    #[inline(always)]
    unsafe fn touch(self, word: *mut u64, _index: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { AtomicU64::from_ptr(word) }.load(Relaxed) == self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{Mapping, Source};
    use std::cell::Cell;

    const PLAIN: Mapping<'static> = Mapping::of(Source::Anonymous);

    fn region(words: usize) -> Region {
        Region::map(words as u64 * 8, PLAIN).expect("memory for a test")
    }

    fn plan(words: usize, step: usize, access: Access) -> Plan {
        Plan {
            words,
            part: (0, words),
            step,
            access,
        }
    }

    fn contents(region: &Region) -> Vec<u64> {
        (0..region.word_count())
            // SAFETY: below the region's length.
            .map(|index| unsafe { region.words().add(index).read_volatile() })
            .collect()
    }

    #[test]
    fn a_write_pass_leaves_each_index_in_its_word() {
        let region = region(1000);
        let (end, count) = sweep(
            &region,
            plan(1000, 1, Access::Write),
            &mut Order::Sequential,
            || false,
        );
        assert_eq!((end, count), (Pass::Complete, 1000));
        assert_eq!(contents(&region), (0..1000).collect::<Vec<u64>>());
    }

    #[test]
    fn a_step_skips_words_and_a_read_changes_none() {
        let region = region(20);
        let mut order = Order::Sequential;
        assert_eq!(
            sweep(&region, plan(20, 3, Access::Write), &mut order, || false),
            (Pass::Complete, 7)
        );
        let written = contents(&region);
        assert_eq!(written.iter().filter(|word| **word != 0).count(), 6);
        assert_eq!(written.get(18), Some(&18));
        assert_eq!(
            sweep(&region, plan(20, 1, Access::Read), &mut order, || false),
            (Pass::Complete, 20)
        );
        assert_eq!(contents(&region), written);
    }

    #[test]
    fn a_wrong_word_is_found_and_a_right_pass_is_not_blamed() {
        let region = region(100);
        let mut order = Order::Sequential;
        let verify = plan(100, 1, Access::Verify);
        sweep(&region, plan(100, 1, Access::Write), &mut order, || false);
        assert_eq!(
            sweep(&region, verify, &mut order, || false),
            (Pass::Complete, 100)
        );
        // SAFETY: below the region's length.
        unsafe { region.words().add(42).write_volatile(7) };
        assert_eq!(
            sweep(&region, verify, &mut order, || false),
            (Pass::Wrong(42), 43)
        );
    }

    #[test]
    fn the_deadline_is_looked_at_once_in_65536_words() {
        let words = 3 * WORDS_BETWEEN_CHECKS + 5;
        let region = region(words);
        for (step, looks) in [(1, 4), (8, 4), (3, 2), (WORDS_BETWEEN_CHECKS, 4)] {
            let asked = Cell::new(0);
            let (end, count) = sweep(
                &region,
                plan(words, step, Access::Write),
                &mut Order::Sequential,
                || {
                    asked.set(asked.get() + 1);
                    false
                },
            );
            assert_eq!((end, count), (Pass::Complete, words.div_ceil(step) as u64));
            assert_eq!(asked.get(), looks, "step {step}");
        }
    }

    #[test]
    fn an_expired_pass_stops_just_after_the_access_at_the_checkpoint() {
        let region = region(2 * WORDS_BETWEEN_CHECKS);
        let asked = Cell::new(0);
        let result = sweep(
            &region,
            plan(usize::MAX, 8, Access::Write),
            &mut Order::Sequential,
            || asked.replace(asked.get() + 1) == 1,
        );
        let accessed = WORDS_BETWEEN_CHECKS as u64 / 8 + 1;
        assert_eq!(result, (Pass::TimedOut, accessed));
    }

    #[test]
    fn a_random_pass_makes_as_many_accesses_and_stays_inside() {
        let region = region(4096);
        let mut order = Order::Random(Lrand48::new(1));
        let result = sweep(&region, plan(512, 1, Access::Write), &mut order, || false);
        assert_eq!(result, (Pass::Complete, 512));
        let written = contents(&region);
        assert!(written.iter().take(512).any(|word| *word != 0));
        assert!(written.iter().skip(512).all(|word| *word == 0));
    }

    #[test]
    fn parts_of_a_pass_make_the_accesses_of_the_whole() {
        let region = region(1000);
        let mut order = Order::Sequential;
        let mut accesses = 0;
        for from in (0..1000).step_by(300) {
            let part = Plan {
                part: (from, from + 300),
                ..plan(1000, 3, Access::Write)
            };
            let (end, count) = sweep(&region, part, &mut order, || false);
            assert_eq!(end, Pass::Complete);
            accesses += count;
        }
        assert_eq!(accesses, 334);
        let written: Vec<u64> = contents(&region).into_iter().step_by(3).collect();
        assert_eq!(written, (0..1000).step_by(3).collect::<Vec<u64>>());
    }

    #[test]
    fn what_was_filled_is_checked_by_value_and_what_was_written_by_index() {
        let region = region(100);
        let mut order = Order::Sequential;
        let mut end = |access| sweep(&region, plan(100, 1, access), &mut order, || false).0;
        assert_eq!(end(Access::Fill(7)), Pass::Complete);
        assert_eq!(end(Access::CheckValue(7)), Pass::Complete);
        assert_eq!(end(Access::CheckValue(8)), Pass::Wrong(0));
        assert_eq!(end(Access::CheckIndex), Pass::Wrong(0));
        assert_eq!(end(Access::Write), Pass::Complete);
        assert_eq!(end(Access::CheckIndex), Pass::Complete);
        assert_eq!(end(Access::CheckValue(7)), Pass::Wrong(0));
    }

    #[test]
    fn a_step_beyond_the_region_touches_one_word_and_no_words_none() {
        let region = region(16);
        let mut order = Order::Sequential;
        assert_eq!(
            sweep(
                &region,
                plan(16, usize::MAX, Access::Write),
                &mut order,
                || true
            ),
            (Pass::TimedOut, 1)
        );
        assert_eq!(
            sweep(&region, plan(0, 1, Access::Write), &mut order, || true),
            (Pass::Complete, 0)
        );
    }
}
