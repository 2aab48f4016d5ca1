//! The index as its users see it.

#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]

#[path = "it/engines.rs"]
mod engines;
#[path = "it/faults.rs"]
mod faults;
#[path = "it/postgres.rs"]
mod postgres;
#[path = "it/queries.rs"]
mod queries;
#[path = "it/run_sets.rs"]
mod run_sets;
#[path = "it/sample.rs"]
mod sample;
#[path = "it/writers.rs"]
mod writers;
