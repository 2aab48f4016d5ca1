//! From runs to tables: select, compare, render.
//!
//! [`row_of`] flattens a record, [`select`] picks runs, [`compare()`] builds the one table of
//! figures, and the modules of [`render`] print it. All of it is pure: no file, no terminal, no
//! clock, so that every table can be tested byte for byte and a server can use the same code.
//! Statistics come from `kdyno-stats`; no formula is written here.

pub mod across;
pub mod compare;
pub mod comparison;
mod design;
pub mod distribution;
pub mod judge;
pub mod looks;
pub mod noise;
pub mod normalize;
pub mod number;
pub mod recover;
pub mod render;
pub mod row;
pub mod select;
mod values;

pub use compare::{CompareOptions, Diagnostics, Doubt, compare};
pub use comparison::Comparison;
pub use judge::Strictness;
pub use row::row_of;
pub use select::{MetricGlobs, SelectError, Selection, set_apart};
pub use values::compare_values;
