//! Modes: the heaps that a distribution consists of.

use crate::dist::whole;

/// A heap of events between two valleys, over rows of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Its first row.
    pub first: usize,
    /// Its highest row.
    pub peak: usize,
    /// Its last row.
    pub last: usize,
    /// The events in it.
    pub count: u64,
}

/// A heap with fewer than this share of all events is a tail, not a mode.
const LEAST_SHARE: f64 = 0.01;
/// Between two modes there is a valley below this share of the lower peak ...
const VALLEY: f64 = 0.5;
/// ... and by more than so many standard deviations of the lower peak's count, which counting
/// alone makes as large as its root.
const DEVIATIONS: f64 = 4.0;

/// The modes of counts over rows of one width, in the order of the rows: heaps are joined over
/// shallow valleys, shallowest first, until each valley is deep; small heaps then go to their higher
/// neighbour's side.
#[must_use]
pub fn modes(counts: &[u64]) -> Vec<Mode> {
    let mut heaps = heaps(counts);
    while let Some(place) = shallowest(&heaps, counts) {
        join(&mut heaps, place, counts);
    }
    let total: f64 = counts.iter().map(|count| whole(*count)).sum();
    while let Some(place) = heaps
        .iter()
        .position(|mode| whole(mode.count) < LEAST_SHARE * total)
        .filter(|_| heaps.len() > 1)
    {
        // To the side where the valley is higher; the first and the last have one side only.
        let valley_at = |place: usize| valley(&heaps, place, counts);
        let left = place.checked_sub(1).and_then(valley_at);
        let right = valley_at(place);
        let before = match (left, right) {
            (Some(left), Some(right)) => left >= right,
            (left, _) => left.is_some(),
        };
        join(
            &mut heaps,
            if before {
                place.saturating_sub(1)
            } else {
                place
            },
            counts,
        );
    }
    heaps
}

/// One heap per local maximum; the next begins in the first row that rises again.
fn heaps(counts: &[u64]) -> Vec<Mode> {
    let mut heaps: Vec<Mode> = Vec::new();
    let mut falling = false;
    let mut before = 0;
    for (row, count) in counts.iter().copied().enumerate() {
        let rises_again = falling && count > before;
        match heaps.last_mut().filter(|_| !rises_again) {
            Some(heap) => {
                falling |= count < before;
                if Some(&count) > counts.get(heap.peak) {
                    heap.peak = row;
                }
                if count > 0 {
                    heap.last = row;
                }
                heap.count = heap.count.saturating_add(count);
            }
            None if count == 0 => {}
            None => {
                falling = false;
                heaps.push(Mode {
                    first: row,
                    peak: row,
                    last: row,
                    count,
                });
            }
        }
        before = count;
    }
    heaps
}

/// The valley behind a heap that is not deep enough to be one, the highest first.
fn shallowest(heaps: &[Mode], counts: &[u64]) -> Option<usize> {
    let filled = |place: usize| {
        let (left, right) = (heaps.get(place)?, heaps.get(place + 1)?);
        let lower = whole(counts.get(left.peak).min(counts.get(right.peak)).copied()?);
        let valley = whole(valley(heaps, place, counts)?);
        let deep = valley < VALLEY * lower && lower - valley > DEVIATIONS * lower.sqrt();
        (!deep).then_some((place, valley / lower))
    };
    let shallow = (0..heaps.len()).filter_map(filled);
    shallow
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(place, _)| place)
}

/// The lowest count between the peak of a heap and that of the next.
fn valley(heaps: &[Mode], place: usize, counts: &[u64]) -> Option<u64> {
    let (left, right) = (heaps.get(place)?, heaps.get(place + 1)?);
    counts.get(left.peak..=right.peak)?.iter().min().copied()
}

/// Makes one heap of a heap and the next.
fn join(heaps: &mut Vec<Mode>, place: usize, counts: &[u64]) {
    if place + 1 >= heaps.len() {
        return;
    }
    let right = heaps.remove(place + 1);
    if let Some(left) = heaps.get_mut(place) {
        if counts.get(right.peak) > counts.get(left.peak) {
            left.peak = right.peak;
        }
        left.last = right.last;
        left.count = left.count.saturating_add(right.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(counts: &[u64]) -> Vec<(usize, usize, usize, u64)> {
        let modes = modes(counts);
        modes
            .iter()
            .map(|m| (m.first, m.peak, m.last, m.count))
            .collect()
    }

    #[test]
    fn two_heaps_with_an_empty_stretch_between() {
        assert_eq!(
            found(&[0, 40, 900, 300, 0, 0, 200, 1000, 30]),
            [(1, 2, 3, 1240), (6, 7, 8, 1230)]
        );
    }

    #[test]
    fn a_shallow_valley_and_the_noise_of_counting_make_no_mode() {
        assert_eq!(found(&[10, 100, 80, 110, 5]), [(0, 3, 4, 305)]);
        assert_eq!(found(&[3, 0, 2, 1, 3]), [(0, 0, 4, 9)]);
    }

    #[test]
    fn a_thin_tail_belongs_to_the_heap_before_it() {
        assert_eq!(
            found(&[5000, 20_000, 100, 0, 0, 40, 0, 3]),
            [(0, 1, 7, 25_143)]
        );
        assert_eq!(found(&[40, 0, 0, 5000, 20_000]), [(0, 4, 4, 25_040)]);
    }

    #[test]
    fn one_row_and_none() {
        assert_eq!(found(&[7]), [(0, 0, 0, 7)]);
        assert_eq!(found(&[]), []);
        assert_eq!(found(&[0, 0]), []);
    }

    proptest! {
        #[test]
        fn modes_are_apart_in_order_and_hold_every_event(
            counts in prop::collection::vec(prop_oneof![Just(0_u64), 0..2000_u64], 0..60)
        ) {
            let modes = modes(&counts);
            let total: u64 = counts.iter().sum();
            prop_assert_eq!(modes.iter().map(|mode| mode.count).sum::<u64>(), total);
            for mode in &modes {
                prop_assert!(mode.first <= mode.peak && mode.peak <= mode.last);
                let inside: u64 = counts[mode.first..=mode.last].iter().sum();
                prop_assert_eq!(inside, mode.count);
            }
            for pair in modes.windows(2) {
                prop_assert!(pair[0].last < pair[1].first);
            }
        }
    }
}
