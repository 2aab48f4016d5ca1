//! The random order of accesses.
//!
//! Neither a good generator nor a secret one: the linear congruence of `lrand48`, which is cheap
//! beside a cache miss. The calls of the C library are not used since their state would be
//! shared or their cost be paid per word.

/// The 48-bit linear congruential generator of `drand48(3)` (POSIX.1-2017).
#[derive(Clone, Debug)]
pub(super) struct Lrand48 {
    state: u64,
}

impl Lrand48 {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const INCREMENT: u64 = 0xB;
    const MASK: u64 = (1 << 48) - 1;

    /// Seeded as `srand48` does.
    pub(super) fn new(seed: u32) -> Self {
        Self {
            state: (u64::from(seed) << 16) | 0x330E,
        }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.state = self
            .state
            .wrapping_mul(Self::MULTIPLIER)
            .wrapping_add(Self::INCREMENT)
            & Self::MASK;
        self.state
    }

    /// An index below `limit` (0 when `limit` is 0), by multiplying instead of dividing since the
    /// low bits of a linear congruence are the poor ones (Lemire 2019, without the rejection).
    #[inline]
    pub(super) fn below(&mut self, limit: usize) -> usize {
        // The product is below `limit` x 2^48, so the shifted value is below `limit`.
        ((u128::from(self.next()) * limit as u128) >> 48) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_state_follows_the_published_congruence() {
        // First values of lrand48() after srand48(1), from the C library.
        let mut generator = Lrand48::new(1);
        let drawn: Vec<u64> = (0..3).map(|_| generator.next() >> 17).collect();
        assert_eq!(drawn, [89_400_484, 976_015_093, 1_792_756_325]);
    }

    #[test]
    fn every_index_is_below_its_limit() {
        let mut generator = Lrand48::new(7);
        for limit in [1, 2, 3, 511, 1 << 20, 1 << 40] {
            for _ in 0..1000 {
                assert!(generator.below(limit) < limit);
            }
        }
        assert_eq!(generator.below(0), 0);
    }

    #[test]
    fn a_small_range_is_covered_and_seeds_differ() {
        let draw = |seed| {
            let mut generator = Lrand48::new(seed);
            (0..400).map(|_| generator.below(16)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1).into_iter().collect::<BTreeSet<_>>().len(), 16);
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
