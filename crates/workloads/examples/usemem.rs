//! `usemem` alone, to measure it without the rest of the product.

use std::process::ExitCode;

fn main() -> ExitCode {
    kdyno_workloads::usemem::run(std::env::args_os().skip(1))
}
