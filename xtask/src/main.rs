//! Tasks of kdyno's developers; `cargo xtask` lists them.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool that prints is what it is"
)]

mod bench;
mod fuzz;
mod fuzz_rundir;
mod layers;
mod soak;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask layers                 check the crates' dependencies against docs/architecture.md
cargo xtask bench [USEMEM]         measure what docs/performance.md reports, side by side;
                                   USEMEM is a build of upstream's tool to compare with
cargo xtask bench-values [BENCHSTAT]
                                   10,000 metrics through `compare --csv`, beside a build of
                                   benchstat
cargo xtask soak [KILLS [SEED]]    kill -9 at random moments with every kind of setting in play;
                                   needs root and a machine of your own
cargo xtask fuzz [INPUTS [SEED]]   mutated jobs, catalog entries, outputs and values through the
                                   parsers
cargo xtask fuzz-rundir [INPUTS [SEED]]
                                   mutated files of a run directory through its reader
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["layers"] => layers::check(),
        ["bench"] => bench::all(None),
        ["bench", usemem] => bench::all(Some(usemem.as_ref())),
        ["bench-values"] => bench::values(None),
        ["bench-values", benchstat] => bench::values(Some(benchstat.as_ref())),
        ["soak"] => soak::all(200, 1),
        ["soak", kills] => parsed(kills).and_then(|kills| soak::all(kills, 1)),
        ["soak", kills, seed] => parsed(kills).and_then(|kills| soak::all(kills, parsed(seed)?)),
        ["fuzz-rundir"] => fuzz_rundir::all(100_000, 1),
        ["fuzz-rundir", inputs] => parsed(inputs).and_then(|inputs| fuzz_rundir::all(inputs, 1)),
        ["fuzz-rundir", inputs, seed] => {
            parsed(inputs).and_then(|inputs| fuzz_rundir::all(inputs, parsed(seed)?))
        }
        ["fuzz"] => fuzz::all(100_000, 1),
        ["fuzz", inputs] => parsed(inputs).and_then(|inputs| fuzz::all(inputs, 1)),
        ["fuzz", inputs, seed] => {
            parsed(inputs).and_then(|inputs| fuzz::all(inputs, parsed(seed)?))
        }
        _ => {
            print!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn parsed(word: &str) -> anyhow::Result<u64> {
    word.parse()
        .map_err(|_| anyhow::anyhow!("`{word}` is no number"))
}
