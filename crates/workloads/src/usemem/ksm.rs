//! Merging of equal pages by the kernel (Documentation/admin-guide/mm/ksm.rst).

use super::run::RunError;
use crate::sys::{self, Region};
use std::path::Path;
use std::time::Duration;

/// How often the count of merged pages is looked at.
const POLL: Duration = Duration::from_millis(5);
/// When it has not grown for so long, nothing more is merged.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lets the kernel merge the pages of these regions, and gives how many bytes it merged until
/// nothing more was, and how long that took.
pub(super) fn merge<'r>(
    regions: impl Iterator<Item = &'r Region>,
    expired: impl Fn() -> bool,
) -> Result<(u64, Duration), RunError> {
    let running = number(Path::new("/sys/kernel/mm/ksm/run"))?;
    if running != 1 {
        return Err(RunError::KsmStopped);
    }
    let mut wanted = 0;
    for region in regions {
        let hint = "the kernel is built without KSM";
        let told = region.advise(libc::MADV_MERGEABLE);
        told.map_err(RunError::call("let pages be merged", hint))?;
        wanted += (region.word_count() * size_of::<u64>() / sys::page_bytes()) as u64;
    }
    let began = sys::now();
    let mut merged = 0;
    let mut grown = began;
    while merged < wanted && sys::now().saturating_sub(grown) < PATIENCE && !expired() {
        std::thread::sleep(POLL);
        let count = number(Path::new("/proc/self/ksm_merging_pages"))?;
        if count > merged {
            (merged, grown) = (count, sys::now());
        }
    }
    let bytes = merged.saturating_mul(sys::page_bytes() as u64);
    Ok((bytes, grown.saturating_sub(began)))
}

fn number(path: &Path) -> Result<u64, RunError> {
    let failed = |source| RunError::File {
        path: path.to_owned(),
        source,
        hint: "this needs a kernel with KSM, 5.19 or later",
    };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    text.trim()
        .parse()
        .map_err(|_| failed(std::io::ErrorKind::InvalidData.into()))
}
