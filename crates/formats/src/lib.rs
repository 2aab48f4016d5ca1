//! From raw output to readings.
//!
//! [`extract()`] follows the rules that a catalog entry holds; importers of other tools' files
//! join it here. Pure: bytes in, readings out, and no input makes it panic.

pub mod extract;
pub mod functions;
pub mod hdr;
pub mod hist;
pub mod long;
pub mod threads;

pub use extract::{Extracted, RawOutput, RulesError, extract};
pub use long::{LongError, read_long};
