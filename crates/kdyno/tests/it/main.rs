//! The program from the outside: the real binary on the real machine.
//!
//! Tests whose names begin with `root_` change settings of the machine; they take turns, are
//! skipped aloud without privilege, and check that everything is back.

#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]

mod around;
mod bad_input;
mod bench;
mod catalog;
mod compare;
mod docs;
mod doctor;
mod events;
mod extremes;
mod faults;
mod help;
mod hist;
mod import;
mod manual;
mod postgres;
mod run;
mod settings;
mod syslatency;
mod usemem;
mod verdicts;
