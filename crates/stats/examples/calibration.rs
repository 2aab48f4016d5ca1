//! How often each rule is right and wrong on made-up sessions: the tables of docs/statistics.md.
//!
//! `cargo run --release -p kdyno-stats --example calibration [-- TRIALS [SEED]]`
#![expect(
    clippy::print_stdout,
    reason = "it prints tables; that is what it is for"
)]
#![expect(
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a simulation of small, known sizes"
)]

#[path = "../tests/calibration/noise.rs"]
mod noise;
#[path = "../tests/calibration/rules.rs"]
mod rules;
#[path = "../tests/calibration/study.rs"]
mod study;

use noise::{ALL, Noise};
use rules::{Order, RULES};
use std::thread;
use study::{FAMILIES, LOOKINGS};

const SIZES: [usize; 4] = [3, 5, 10, 20];

fn main() {
    let mut words = std::env::args().skip(1);
    let mut number = |default: u64| words.next().and_then(|w| w.parse().ok()).unwrap_or(default);
    let trials = usize::try_from(number(20_000)).unwrap_or(20_000);
    let seed = number(1);
    println!("{trials} sessions per figure, seed {seed}, coefficient of variation 2 %\n");
    println!("Percent of unchanged metrics in which a rule sees a change, order of kdyno's plan");
    for noise in ALL {
        rates(noise, Order::Blocks, 0.0, trials, seed);
    }
    println!("The same with all runs of one variant before all of the other");
    rates(Noise::Drift, Order::OneAfterTheOther, 0.0, trials, seed);
    println!(
        "The same with a disturbance in every second run, A and B by turns, then kdyno's plan"
    );
    rates(Noise::Period, Order::Alternating, 0.0, trials, seed);
    rates(Noise::Period, Order::Blocks, 0.0, trials, seed);
    println!("Percent of changes of 3 % (1.5 standard deviations) that a rule sees");
    for noise in [Noise::Normal, Noise::T3, Noise::Ar1] {
        rates(noise, Order::Blocks, 0.03, trials, seed);
    }
    families(trials / 200, seed);
    looks(trials / 4, seed);
    println!("Percent of changes of just the margin (1 %) that are called unchanged");
    for n in SIZES {
        print!(
            "  n={n} {:.1}",
            100.0 * study::wrongly_unchanged(n, trials / 4, seed)
        );
    }
    println!("\n");
    println!("Percent of unchanged kernels that differ, boots spread by 0.3 standard deviations");
    for (boots, runs) in [(4, 5), (10, 5), (4, 20)] {
        let (by_boot, by_run) = study::boots(boots, runs, trials, seed);
        let (by_boot, by_run) = (100.0 * by_boot, 100.0 * by_run);
        println!(
            "  {boots} boots of {runs} runs: boots as replicates {by_boot:.1}, runs {by_run:.1}"
        );
    }
    let claims = study::claims_of_three(trials, seed);
    println!("\nclaims from three runs a side without history: {claims} of {trials}");
}

/// One table: rules by numbers of runs.
fn rates(noise: Noise, order: Order, change: f64, trials: usize, seed: u64) {
    println!(
        "\n{:<18}{:>8}{:>8}{:>8}{:>8}",
        noise.name(),
        "n=3",
        "n=5",
        "n=10",
        "n=20"
    );
    thread::scope(|scope| {
        let rows: Vec<_> = RULES
            .into_iter()
            .map(|rule| {
                scope.spawn(move || {
                    let rate = |n| study::rate(rule, noise, order, n, change, trials, seed);
                    (rule, SIZES.map(rate))
                })
            })
            .collect();
        for row in rows {
            if let Ok((rule, rates)) = row.join() {
                print!("{:<18}", rule.name());
                for rate in rates {
                    print!("{:>8.1}", 100.0 * rate);
                }
                println!();
            }
        }
    });
    println!();
}

fn families(trials: usize, seed: u64) {
    println!(
        "3000 metrics, 60 changed by 3 standard deviations, false discovery rate 5 %: found / false"
    );
    println!("{:<22}{:>16}{:>16}{:>16}", "", "n=3", "n=5", "n=10");
    let sizes = [3, 5, 10];
    let found = sizes.map(|n| study::family(n, trials.max(5), seed));
    for (place, family) in FAMILIES.into_iter().enumerate() {
        print!("{:<22}", family.name());
        for of_size in &found {
            let (_, found, wrong) = of_size[place];
            print!("{:>16}", format!("{found:.1} / {wrong:.1}"));
        }
        println!();
    }
    println!();
}

fn looks(trials: usize, seed: u64) {
    println!(
        "Looking while runs grow, at most 40 pairs: percent that end with a finding, mean pairs"
    );
    println!("{:<18}{:>22}{:>22}", "", "no change", "3 %");
    for how in LOOKINGS {
        print!("{:<18}", how.name());
        for change in [0.0, 0.03] {
            let (found, pairs) = study::looking(how, change, trials, seed);
            print!("{:>22}", format!("{:.1} %, {pairs:.1}", 100.0 * found));
        }
        println!();
    }
    println!();
}
