//! The index as its users see it.

#[path = "it/faults.rs"]
mod faults;
#[path = "it/queries.rs"]
mod queries;
#[path = "it/run_sets.rs"]
mod run_sets;
#[path = "it/sample.rs"]
mod sample;
#[path = "it/writers.rs"]
mod writers;
