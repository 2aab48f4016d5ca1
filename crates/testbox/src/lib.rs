//! The machine kdyno runs on, as a testbox: facts, settings with an undo journal, a guardian,
//! monitors and the runner.
//!
//! Readers of `/proc`, `/sys` and cgroup files take a root path, so that they are tested on a
//! made-up tree and on the real one. Synchronous: one trial at a time, since two would disturb
//! each other.

mod around;
mod cgroup;
pub mod doctor;
pub mod facts;
pub mod functions;
mod guardian;
mod interrupt;
mod journal;
mod local;
mod lock;
pub mod monitors;
pub mod needs;
pub mod root;
mod runner;
pub mod scratch;
pub mod settings;
mod strays;
mod sys;

pub use guardian::main as guardian_main;
pub use interrupt::Interrupt;
pub use local::{LocalOptions, LocalTestbox};
pub use lock::{root_has_something_to_restore, state_dir};
