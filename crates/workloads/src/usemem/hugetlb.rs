//! Whether the pool of 2 MB huge pages suffices.
//!
//! A task that faults when the pool is empty is killed by SIGBUS, and says nothing; so the pages
//! are counted beforehand. The kernel has the last word: another process may take pages between
//! the look and the use, and a cgroup may hold fewer.

use super::run::RunError;
use super::task;
use crate::sys;
use std::path::{Path, PathBuf};

pub(super) use crate::sys::HUGE_PAGE_BYTES as PAGE_BYTES;

/// Pages that `bytes` take, the last one counted in full.
pub(super) fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE_BYTES)
}

/// How many more pages the pool under `root` (normally `/`) can hand out, overcommitted ones
/// included; `None` where the kernel does not tell.
pub(super) fn available(root: &Path) -> Option<u64> {
    let pool = root.join("sys/kernel/mm/hugepages/hugepages-2048kB");
    let count = |name: &str| -> Option<u64> {
        let text = std::fs::read_to_string(pool.join(name)).ok()?;
        text.trim().parse().ok()
    };
    let free = count("free_hugepages")?;
    let reserved = count("resv_hugepages")?;
    let surplus = count("surplus_hugepages")?;
    let overcommit = count("nr_overcommit_hugepages")?;
    Some(
        free.saturating_sub(reserved)
            .saturating_add(overcommit.saturating_sub(surplus)),
    )
}

/// Empties the pool under `root` and fills it with pages for `bytes` bytes so often, says how long
/// that took, and gives the pool its size back.
///
/// # Errors
/// [`RunError::File`] when the pool cannot be changed, [`RunError::PoolSize`] when it stays small.
pub(super) fn cycle(bytes: u64, times: u64, root: &Path) -> Result<(), RunError> {
    let path = root.join("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
    let before = pool_size(&path)?;
    let began = sys::now();
    let (cycled, took, restored) = sys::uninterrupted(|| {
        let cycled = (0..times).try_for_each(|_| {
            set_pool_size(&path, 0)?;
            set_pool_size(&path, pages(bytes))
        });
        let took = sys::now().saturating_sub(began);
        (cycled, took, set_pool_size(&path, before))
    });
    cycled.and(restored)?;
    task::say(&format!(
        "{times} pool cycles in {} usecs\n",
        took.as_micros()
    ))
}

fn pool_error(path: &Path) -> impl Fn(std::io::Error) -> RunError {
    let path: PathBuf = path.to_owned();
    move |source| RunError::File {
        path: path.clone(),
        source,
        hint: "run it as root, on a kernel with huge pages",
    }
}

fn pool_size(path: &Path) -> Result<u64, RunError> {
    let text = std::fs::read_to_string(path).map_err(pool_error(path))?;
    text.trim()
        .parse()
        .map_err(|_| pool_error(path)(std::io::ErrorKind::InvalidData.into()))
}

fn set_pool_size(path: &Path, wanted: u64) -> Result<(), RunError> {
    std::fs::write(path, format!("{wanted}\n")).map_err(pool_error(path))?;
    match pool_size(path)? {
        // Pages in use stay in the pool, whatever is asked for.
        got if got < wanted => Err(RunError::PoolSize { wanted, got }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(counts: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary directory");
        let pool = root.path().join("sys/kernel/mm/hugepages/hugepages-2048kB");
        std::fs::create_dir_all(&pool).expect("a fake pool");
        for (name, value) in counts {
            std::fs::write(pool.join(name), value).expect("a fake count");
        }
        root
    }

    #[test]
    fn reserved_pages_are_not_available_and_overcommit_is() {
        let root = pool(&[
            ("free_hugepages", "100\n"),
            ("resv_hugepages", "30\n"),
            ("surplus_hugepages", "5\n"),
            ("nr_overcommit_hugepages", "12\n"),
        ]);
        assert_eq!(available(root.path()), Some(77));
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_unknown_and_not_zero() {
        assert_eq!(available(pool(&[]).path()), None);
        let broken = pool(&[
            ("free_hugepages", "many\n"),
            ("resv_hugepages", "0\n"),
            ("surplus_hugepages", "0\n"),
            ("nr_overcommit_hugepages", "0\n"),
        ]);
        assert_eq!(available(broken.path()), None);
    }

    #[test]
    fn after_cycles_the_pool_is_what_it_was() {
        let root = pool(&[("nr_hugepages", "3\n")]);
        cycle(10 * PAGE_BYTES, 2, root.path()).expect("cycles");
        let path = root
            .path()
            .join("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
        assert_eq!(pool_size(&path).expect("a size"), 3);
        assert!(cycle(1, 1, pool(&[]).path()).is_err());
    }

    #[test]
    fn a_started_page_is_a_whole_page() {
        assert_eq!(pages(0), 0);
        assert_eq!(pages(1), 1);
        assert_eq!(pages(PAGE_BYTES), 1);
        assert_eq!(pages(PAGE_BYTES + 1), 2);
    }
}
