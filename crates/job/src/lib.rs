//! The job language.
//!
//! A job file is data, never a program: YAML events become [`node::Node`] trees, documents and
//! axes become cases, cases and variants become resolved work, and an interleaved plan orders
//! it. Nothing here executes anything or reads the machine: what a plan needs to know of it is
//! an argument.

mod axes;
pub mod catalog;
pub mod error;
pub mod expr;
pub mod include;
mod increment;
pub mod jobfile;
mod keys;
mod name;
pub mod node;
pub mod plan;
mod read;
pub mod resolve;
pub mod setting;
pub mod spec;
pub mod value;

pub use read::read_documents;
