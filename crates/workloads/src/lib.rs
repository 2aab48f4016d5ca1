//! Built-in workloads: the measured code, small and alone.
//!
//! Each workload is a module with one `run`, which the binary calls with the arguments after the
//! workload's name. A workload is a program of its own: it writes its result lines to standard
//! output and its errors to standard error. It knows nothing of jobs, plans or run directories;
//! what it prints is read by whoever started it, as the output of any other program is. It
//! stands apart so that the code under the clock drags no other dependency in.

mod arguments;
mod sys;
pub mod syslatency;
pub mod usemem;
