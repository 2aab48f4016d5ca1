//! Tasks of kdyno's developers; `cargo xtask` lists them.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool that prints is what it is"
)]

mod bench;
mod layers;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask layers                 check the crates' dependencies against docs/architecture.md
cargo xtask bench [USEMEM]         measure what docs/performance.md reports, side by side;
                                   USEMEM is a build of upstream's tool to compare with
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["layers"] => layers::check(),
        ["bench"] => bench::all(None),
        ["bench", usemem] => bench::all(Some(usemem.as_ref())),
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
