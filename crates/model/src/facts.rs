//! What a testbox is and how it is set up.

use crate::BootId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Facts of one machine at one moment.
///
/// The typed fields are what plans are derived from. Everything else is `entries`: dotted names
/// (`cpu.model`, `memory.thp.enabled`, `kernel.cmdline`) to text, so that two environments can
/// be laid side by side and only what differs be shown. A fact that cannot be read is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BoxFacts {
    /// The machine's name in tables.
    pub testbox: String,
    /// `uname -r`.
    pub kernel_release: String,
    /// The current boot, where the kernel tells it.
    pub boot_id: Option<BootId>,
    /// CPUs that this process may use; percentages of CPUs are taken of it.
    pub cpus: u32,
    /// `MemTotal` in bytes; percentages of memory are taken of it.
    pub memory_bytes: u64,
    /// Number of NUMA nodes, at least 1.
    pub numa_nodes: u32,
    /// All other facts by dotted name.
    pub entries: BTreeMap<String, String>,
}
