//! How often each rule is right and wrong on made-up sessions: the tables of docs/statistics.md.
//!
//! `cargo run --release -p kdyno-stats --example calibration [-- --trials N --seed S]`
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
use study::{Boots, FAMILIES, LOOKINGS};

const SIZES: [usize; 4] = [3, 5, 10, 20];

fn main() -> Result<(), String> {
    let (trials, seed) = asked(std::env::args().skip(1))?;
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
    equivalence(trials / 4, seed);
    boots(trials, seed);
    let claims = study::claims_of_three(trials, seed);
    println!("Claims from three runs a side without history: {claims} of {trials}");
    Ok(())
}

/// Sessions per figure and seed, from the words of the command line.
fn asked(mut words: impl Iterator<Item = String>) -> Result<(usize, u64), String> {
    let (mut trials, mut seed) = (20_000, 1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word}: no number follows"))?;
        let wrong = |error: std::num::ParseIntError| format!("{word} {value}: {error}");
        match word.as_str() {
            "--trials" => trials = value.parse().map_err(wrong)?,
            "--seed" => seed = value.parse().map_err(wrong)?,
            _ => return Err(format!("{word}: only --trials N and --seed S are known")),
        }
    }
    if trials < 1000 {
        return Err(format!("--trials {trials}: fewer than 1000 tell nothing"));
    }
    Ok((trials, seed))
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
        let rows = RULES.map(|rule| {
            let rate = move |n| study::rate(rule, noise, order, n, change, trials, seed);
            (rule, scope.spawn(move || SIZES.map(rate)))
        });
        for (rule, row) in rows {
            print!("{:<18}", rule.name());
            for rate in row.join().expect("no rule panics") {
                print!("{:>8.1}", 100.0 * rate);
            }
            println!();
        }
    });
    println!();
}

fn families(trials: usize, seed: u64) {
    println!(
        "3000 metrics, 60 changed by 3 standard deviations, false discovery rate 5 %: found / false"
    );
    println!("{:<22}{:>16}{:>16}{:>16}", "", "n=3", "n=5", "n=10");
    thread::scope(|scope| {
        let rows = FAMILIES.map(|rule| {
            let of_size = move |n| study::family(rule, n, trials, seed);
            (rule, scope.spawn(move || [3, 5, 10].map(of_size)))
        });
        for (rule, row) in rows {
            print!("{:<22}", rule.name());
            for (found, wrong) in row.join().expect("no rule panics") {
                print!("{:>16}", format!("{found:.1} / {wrong:.1}"));
            }
            println!();
        }
    });
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

fn equivalence(trials: usize, seed: u64) {
    println!("Percent of changes that are called unchanged at a margin of 1 %");
    println!("{:<18}{:>8}{:>8}{:>8}", "change", "n=20", "n=40", "n=80");
    for change in [0.0, 0.005, 0.01] {
        print!("{:<18}", format!("{:.1} %", 100.0 * change));
        for n in [20, 40, 80] {
            print!(
                "{:>8.1}",
                100.0 * study::called_unchanged(n, change, trials, seed)
            );
        }
        println!();
    }
    println!();
}

fn boots(trials: usize, seed: u64) {
    println!(
        "Percent of unchanged kernels that are said to differ, boots spread by 0.3 standard deviations"
    );
    println!(
        "{:<42}{:>8}{:>8}{:>8}",
        "replicate:", "run", "boot", "history"
    );
    for (boots, runs, earlier_runs) in [
        (4, 5, 5),
        (10, 5, 5),
        (4, 20, 20),
        (4, 5, 20),
        (4, 20, 5),
        (2, 50, 2),
    ] {
        let plan = Boots {
            boots,
            runs,
            earlier_runs,
        };
        let seen = study::boots(plan, trials, seed);
        print!(
            "{:<42}",
            format!("{boots} boots of {runs} runs, earlier boots of {earlier_runs}")
        );
        for rate in [seen.run, seen.boot, seen.boot_with_history] {
            print!("{:>8.1}", 100.0 * rate);
        }
        println!();
    }
    println!();
}
