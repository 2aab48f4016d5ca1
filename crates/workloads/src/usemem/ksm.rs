//! Merging of equal pages by the kernel (Documentation/admin-guide/mm/ksm.rst).

use super::run::RunError;
use crate::sys::{self, Region};
use std::path::Path;
use std::time::Duration;

/// How often the count of merged pages is looked at.
const POLL: Duration = Duration::from_millis(5);
/// When it has not grown for so many scans of all memory, nothing more is merged: the first scan of
/// a page only notes what it holds.
const PATIENCE_SCANS: u64 = 3;
const FULL_SCANS: &str = "/sys/kernel/mm/ksm/full_scans";

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
    let scans = || number(Path::new(FULL_SCANS));
    let mut grown_at = scans()?;
    while merged < wanted && scans()?.saturating_sub(grown_at) < PATIENCE_SCANS && !expired() {
        std::thread::sleep(POLL);
        let count = number(Path::new("/proc/self/ksm_merging_pages"))?;
        if count > merged {
            (merged, grown, grown_at) = (count, sys::now(), scans()?);
        }
    }
    if merged == 0 && wanted > 0 {
        return Err(RunError::NothingMerged);
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
