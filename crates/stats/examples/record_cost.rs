//! What recording one event costs, beside the hdrhistogram crate: `cargo run --release -p
//! kdyno-stats --example record_cost`. Rounds alternate; the fastest of each is shown, since
//! whatever disturbs a round only adds to it.
#![expect(
    clippy::print_stdout,
    reason = "it prints a table; that is what it is for"
)]

use hdrhistogram::Histogram;
use kdyno_stats::hist::LogLinear;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use std::hint::black_box;
use std::time::Instant;

const EVENTS: usize = 1 << 16;
const PASSES: usize = 400;
const ROUNDS: usize = 7;

/// Nanoseconds from 256 to about 8 ms, every octave as often, as latencies spread.
fn events() -> Vec<u64> {
    let mut random = Pcg64::seed_from_u64(1);
    (0..EVENTS)
        .map(|_| {
            let octave = 8 + random.next_u64() % 15;
            (1 << octave) | (random.next_u64() & ((1 << octave) - 1))
        })
        .collect()
}

/// Nanoseconds per event of passing over all of them so often.
fn cost(events: &[u64], mut record: impl FnMut(u64)) -> f64 {
    let begun = Instant::now();
    for _ in 0..PASSES {
        for event in black_box(events) {
            record(*event);
        }
    }
    begun.elapsed().as_secs_f64() * 1e9 / (EVENTS * PASSES) as f64
}

fn main() {
    let events = events();
    let mut ours = LogLinear::of_nanoseconds();
    // Two digits are the precision next to 32 buckets per octave.
    let mut theirs =
        Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 2).expect("bounds of a minute");
    let (mut own, mut other) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        own = own.min(cost(&events, |event| ours.record(event)));
        other = other.min(cost(&events, |event| theirs.saturating_record(event)));
    }
    assert_eq!(ours.count(), theirs.len(), "both counted every event");
    println!("LogLinear     {own:.2} ns per event");
    println!(
        "hdrhistogram  {other:.2} ns per event, {:.2} times as much",
        other / own
    );
}
