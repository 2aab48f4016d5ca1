//! What is made anew for each trial and removed after it: a directory on a file system of its own,
//! swap, empty caches.
//!
//! Everything lies below one directory, which the journal names before it is made. Whoever undoes
//! it ends the swap, the mounts and the tree below it, whichever of them there are.

use crate::journal::{Change, Journal};
use crate::root::SysRoot;
use crate::settings::{Dropped, ScratchKind, SwapKind, Target, target};
use crate::strays::PATIENCE;
use crate::sys;
use kdyno_model::{Setting, TestboxError};
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What the name of each directory of ours begins with; nothing else is ever removed.
const PREFIX: &str = "kdyno-scratch-";

/// Swap of a trial goes before whatever the machine has.
const FIRST_PRIORITY: &str = "32767";

const ZRAM_CONTROL: &str = "/sys/class/zram-control";

/// Where directories of trials are: `KDYNO_SCRATCH_DIR`, else `/var/tmp`, which is on a disk. The
/// path is the kernel's own, without links and dots, since mounts and swap below it are looked for
/// in the kernel's lists, and absolute, since whoever undoes things stands elsewhere.
#[must_use]
pub fn base() -> PathBuf {
    let named = std::env::var_os("KDYNO_SCRATCH_DIR")
        .filter(|dir| !dir.is_empty())
        .map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    named
        .canonicalize()
        .or_else(|_| std::path::absolute(&named))
        .unwrap_or(named)
}

/// What a trial has of its own.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The directory that all is below.
    tree: Option<PathBuf>,
    zram: Option<Zram>,
}

impl Scratch {
    /// Makes what the settings ask for.
    ///
    /// # Errors
    /// The first that cannot be made; the journal has what was.
    pub(crate) fn make(
        root: &SysRoot,
        settings: &[Setting],
        run: &str,
        journal: &mut Journal,
    ) -> Result<(Self, Option<TestboxError>), TestboxError> {
        let mut made = Self::default();
        let mut dropped = None;
        for setting in settings {
            let result = match target(root, setting)? {
                Target::Scratch(kind) => made.directory(kind, run, journal),
                Target::Swap(SwapKind::File(bytes)) => made.swap_file(bytes, run, journal),
                Target::Swap(SwapKind::Zram(bytes)) => made.swap_zram(bytes, root, journal),
                Target::Drop(what) => {
                    dropped = Some(what);
                    Ok(())
                }
                Target::Files(_) | Target::DmaLatency(_) | Target::Cgroup { .. } => Ok(()),
            };
            if let Err(error) = result {
                return Ok((made, Some(error)));
            }
        }
        // Last, since making the others fills caches.
        let failed = dropped.and_then(|what| drop_caches(root, what).err());
        Ok((made, failed))
    }

    /// The directory that the trial's programs are told.
    pub(crate) fn directory_path(&self) -> Option<PathBuf> {
        let dir = self.tree.as_ref()?.join("dir");
        dir.is_dir().then_some(dir)
    }

    fn tree(&mut self, run: &str, journal: &mut Journal) -> Result<PathBuf, TestboxError> {
        if let Some(tree) = &self.tree {
            return Ok(tree.clone());
        }
        let tree = base().join(format!("{PREFIX}{run}"));
        journal.note(&Change::Scratch { path: tree.clone() })?;
        DirBuilder::new()
            .mode(0o755)
            .create(&tree)
            .map_err(|error| TestboxError::at(&tree, error))?;
        self.tree = Some(tree.clone());
        Ok(tree)
    }

    fn directory(
        &mut self,
        kind: ScratchKind,
        run: &str,
        journal: &mut Journal,
    ) -> Result<(), TestboxError> {
        let tree = self.tree(run, journal)?;
        let dir = tree.join("dir");
        if !dir.is_dir() {
            std::fs::create_dir(&dir).map_err(|error| TestboxError::at(&dir, error))?;
        }
        match kind {
            ScratchKind::Dir => {}
            ScratchKind::Tmpfs(bytes) => {
                let options = format!("size={bytes}");
                let words = ["-t", "tmpfs", "-o", &options, "kdyno"].map(OsStr::new);
                tool("mount", words.into_iter().chain([dir.as_os_str()]))?;
            }
            ScratchKind::Ext4(bytes) => {
                let image = tree.join("disk");
                sparse(&image, bytes)?;
                let options = ["-q", "-F", "-E", "lazy_itable_init=0"].map(OsStr::new);
                tool("mkfs.ext4", options.into_iter().chain([image.as_os_str()]))?;
                // mount(8) makes the loop device, and the kernel frees it with the mount.
                let words = ["-t", "ext4", "-o", "loop"].map(OsStr::new);
                let paths = [image.as_os_str(), dir.as_os_str()];
                tool("mount", words.into_iter().chain(paths))?;
            }
        }
        // As /tmp: a server may run as a user of its own.
        std::fs::set_permissions(&dir, Permissions::from_mode(0o1777))
            .map_err(|error| TestboxError::at(&dir, error))
    }

    fn swap_file(
        &mut self,
        bytes: u64,
        run: &str,
        journal: &mut Journal,
    ) -> Result<(), TestboxError> {
        let path = self.tree(run, journal)?.join("swap");
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| TestboxError::at(&path, error))?;
        sys::allocate(&file, bytes).map_err(|error| {
            TestboxError::at(&path, format!("no {} MiB for swap: {error}", bytes >> 20))
                .hint("set KDYNO_SCRATCH_DIR to a directory on a disk with room")
        })?;
        drop(file);
        swap_on(&path)
    }

    fn swap_zram(
        &mut self,
        bytes: u64,
        root: &SysRoot,
        journal: &mut Journal,
    ) -> Result<(), TestboxError> {
        let zram = Zram::add(root, journal)?;
        let device = zram.device();
        let size = root.path(format!("/sys/block/zram{}/disksize", zram.number));
        self.zram = Some(zram);
        std::fs::write(&size, bytes.to_string()).map_err(|error| TestboxError::at(&size, error))?;
        swap_on(&device)
    }

    /// Removes it all.
    ///
    /// # Errors
    /// What cannot be removed; the journal still has it.
    pub(crate) fn remove(&mut self) -> Result<(), TestboxError> {
        if let Some(zram) = self.zram.take() {
            remove_zram(&SysRoot::real(), zram.number)?;
        }
        if let Some(tree) = self.tree.take() {
            remove_tree(&tree)?;
        }
        Ok(())
    }
}

/// A zram device that we added.
#[derive(Debug)]
struct Zram {
    number: u32,
}

impl Zram {
    /// Reading `hot_add` makes a device and tells its number only then: the journal holds who was
    /// there before, so that one that we died over is found.
    fn add(root: &SysRoot, journal: &mut Journal) -> Result<Self, TestboxError> {
        let known = zram_numbers(root);
        journal.note(&Change::ZramAfter { known })?;
        let path = root.path(format!("{ZRAM_CONTROL}/hot_add"));
        let text =
            std::fs::read_to_string(&path).map_err(|error| TestboxError::at(&path, error))?;
        let number = text
            .trim()
            .parse()
            .map_err(|_| TestboxError::at(&path, format!("`{}` is no number", text.trim())))?;
        journal.note(&Change::Zram { number })?;
        Ok(Self { number })
    }

    fn device(&self) -> PathBuf {
        PathBuf::from(format!("/dev/zram{}", self.number))
    }
}

fn zram_numbers(root: &SysRoot) -> Vec<u32> {
    let names = root.names("/sys/block");
    let numbers = names
        .iter()
        .filter_map(|name| name.strip_prefix("zram")?.parse().ok());
    numbers.collect()
}

/// Devices without a size that were not there before.
pub(crate) fn zram_added_since(root: &SysRoot, known: &[u32]) -> Vec<u32> {
    let mut numbers = zram_numbers(root);
    numbers.retain(|number| {
        let size = root.line(format!("/sys/block/zram{number}/disksize"));
        !known.contains(number) && size.as_deref() == Some("0")
    });
    numbers
}

/// Ends the swap on a zram device and removes it; `false` when it is not there.
///
/// # Errors
/// When the kernel keeps it.
pub(crate) fn remove_zram(root: &SysRoot, number: u32) -> Result<bool, TestboxError> {
    let block = root.path(format!("/sys/block/zram{number}"));
    if !block.is_dir() {
        return Ok(false);
    }
    let device = PathBuf::from(format!("/dev/zram{number}"));
    swaps_off(|path| path == device)?;
    let write = |path: PathBuf, text: &str| {
        std::fs::write(&path, text).map_err(|error| TestboxError::at(&path, error))
    };
    // udev may look at a device that has just changed.
    patiently(|| write(block.join("reset"), "1"))?;
    let remove = root.path(format!("{ZRAM_CONTROL}/hot_remove"));
    patiently(|| write(remove.clone(), &number.to_string()))?;
    Ok(true)
}

fn drop_caches(root: &SysRoot, what: Dropped) -> Result<(), TestboxError> {
    // Dirty pages cannot be dropped.
    sys::sync_disks();
    let path = root.path(crate::settings::DROP_CACHES);
    std::fs::write(&path, (what as u8).to_string())
        .map_err(|error| TestboxError::at(&path, error).hint("emptying caches needs root"))
}

fn sparse(path: &Path, bytes: u64) -> Result<(), TestboxError> {
    let file = File::create_new(path).map_err(|error| TestboxError::at(path, error))?;
    file.set_len(bytes)
        .map_err(|error| TestboxError::at(path, format!("no file of {} MiB: {error}", bytes >> 20)))
}

fn swap_on(path: &Path) -> Result<(), TestboxError> {
    tool("mkswap", [path.as_os_str()])?;
    let words = ["-p", FIRST_PRIORITY].map(OsStr::new);
    tool("swapon", words.into_iter().chain([path.as_os_str()]))
}

/// Runs one of the system's own tools, which administrators have also where users' paths lack
/// them.
fn tool<'a>(name: &str, words: impl IntoIterator<Item = &'a OsStr>) -> Result<(), TestboxError> {
    let output = Command::new(tool_path(name))
        .args(words)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| {
            TestboxError::new(format!("{name}: {error}"))
                .hint("it is part of mount, util-linux or e2fsprogs")
        })?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    Err(TestboxError::new(format!(
        "{name}: {}",
        line.unwrap_or("failed without a word").trim()
    )))
}

fn tool_path(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    places
        .map(|place| place.join(name))
        .find(|path| path.is_file())
        .unwrap_or_else(|| PathBuf::from(name))
}

/// Why such a directory cannot be made, as far as that can be told without trying.
pub(crate) fn problem(kind: ScratchKind) -> Option<TestboxError> {
    let wanted: &[&str] = match kind {
        ScratchKind::Dir => return no_base(),
        ScratchKind::Tmpfs(_) => &["mount"],
        ScratchKind::Ext4(_) => &["mount", "mkfs.ext4"],
    };
    needs_root("a file system of a trial's own")
        .or_else(|| missing_tool(wanted))
        .or_else(no_base)
}

/// Says so when nothing can be made in [`base`].
fn no_base() -> Option<TestboxError> {
    let base = base();
    let hint = "set KDYNO_SCRATCH_DIR to a directory that this user may write";
    let problem = match (base.is_dir(), sys::is_writable(&base)) {
        (true, true) => return None,
        (true, false) => "nothing can be made there",
        (false, _) => "there is no such directory",
    };
    Some(TestboxError::at(base, problem).hint(hint))
}

/// Why such swap cannot be made, as far as that can be told without trying.
pub(crate) fn swap_problem(root: &SysRoot, kind: SwapKind) -> Option<TestboxError> {
    let beyond = match kind {
        SwapKind::Zram(_) => {
            let control = root.path(ZRAM_CONTROL);
            (!control.is_dir()).then(|| {
                TestboxError::at(control, "this kernel has no zram now")
                    .hint("load its module: modprobe zram; or swap to a file: swap: {file: SIZE}")
            })
        }
        SwapKind::File(bytes) => no_base().or_else(|| no_room(bytes)),
    };
    needs_root("swap")
        .or_else(|| missing_tool(&["mkswap", "swapon"]))
        .or(beyond)
}

fn needs_root(what: &str) -> Option<TestboxError> {
    (sys::effective_user() != 0)
        .then(|| TestboxError::new(format!("{what} needs root")).hint("run kdyno as root"))
}

fn missing_tool(names: &[&str]) -> Option<TestboxError> {
    let missing = names.iter().find(|name| !tool_path(name).is_file())?;
    let error = TestboxError::new(format!("the program `{missing}` is not there"));
    Some(error.hint("it is part of mount, util-linux or e2fsprogs"))
}

/// Says so when the disk of [`base`] has fewer free bytes.
pub(crate) fn no_room(bytes: u64) -> Option<TestboxError> {
    let base = base();
    match sys::free_bytes(&base) {
        Ok(free) if free >= bytes => None,
        Ok(free) => {
            let message = format!("{} MiB are needed; {} are free", bytes >> 20, free >> 20);
            let hint = "make room, or set KDYNO_SCRATCH_DIR to a directory on another disk";
            Some(TestboxError::at(base, message).hint(hint))
        }
        Err(error) => Some(TestboxError::at(base, error)),
    }
}

/// Ends swap and mounts below a directory of ours and removes it; `false` when it is not there.
///
/// # Errors
/// When something of it stays, or it is none of ours.
pub(crate) fn remove_tree(tree: &Path) -> Result<bool, TestboxError> {
    let name = tree.file_name().unwrap_or_default().as_bytes();
    if !tree.is_absolute() || !name.starts_with(PREFIX.as_bytes()) {
        return Err(TestboxError::at(tree, "this is no directory of kdyno's"));
    }
    if !tree.is_dir() {
        return Ok(false);
    }
    // The kernel's lists have no links; a journal may.
    let resolved = tree.parent().and_then(|above| above.canonicalize().ok());
    let tree = &resolved.map_or_else(
        || tree.to_owned(),
        |above| above.join(OsStr::from_bytes(name)),
    );
    swaps_off(|path| path.starts_with(tree))?;
    patiently(|| unmount_below(tree))?;
    // A mount that somebody adds meanwhile must not be emptied: it is another device.
    patiently(|| {
        std::fs::remove_dir_all(tree)
            .or_else(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })
            .map_err(|error| TestboxError::at(tree, error))
    })?;
    Ok(true)
}

fn unmount_below(tree: &Path) -> Result<(), TestboxError> {
    for point in mounts_below(tree)?.into_iter().rev() {
        sys::unmount(&point).map_err(|error| TestboxError::at(&point, error))?;
    }
    match mounts_below(tree)?.first() {
        None => Ok(()),
        Some(point) => Err(TestboxError::at(point, "is still mounted")),
    }
}

/// Mount points below a directory, in the order in which they were mounted.
fn mounts_below(tree: &Path) -> Result<Vec<PathBuf>, TestboxError> {
    let text = SysRoot::real().read("/proc/self/mountinfo")?;
    let points = text
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(unescaped)
        .filter(|point| point.starts_with(tree));
    Ok(points.collect())
}

/// Ends swap on the files and devices that are `meant`.
fn swaps_off(meant: impl Fn(&Path) -> bool) -> Result<(), TestboxError> {
    let text = SysRoot::real().read("/proc/swaps").unwrap_or_default();
    for line in text.lines().skip(1) {
        let path = unescaped(line.split(' ').next().unwrap_or_default());
        if meant(&path) {
            sys::swap_off(&path).map_err(|error| TestboxError::at(&path, error))?;
        }
    }
    Ok(())
}

/// The kernel writes blanks in its lists of mounts and swaps as `\040`.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let octal = (*first == b'\\')
            .then(|| tail.get(..3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match octal {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// Tries again for a while: what was just used may be looked at by others.
fn patiently(act: impl Fn() -> Result<(), TestboxError>) -> Result<(), TestboxError> {
    let begun = Instant::now();
    loop {
        match act() {
            Err(_) if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(20)),
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_in_lists_of_the_kernel() {
        assert_eq!(unescaped("/a\\040b\\134"), Path::new("/a b\\"));
        assert_eq!(unescaped("/a\\0"), Path::new("/a\\0"));
        assert_eq!(unescaped(""), Path::new(""));
    }

    #[test]
    fn nothing_but_our_own_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("data")).unwrap();
        assert!(remove_tree(&dir.path().join("data")).is_err());
        assert!(dir.path().join("data").is_dir());
        assert!(remove_tree(Path::new("kdyno-scratch-relative")).is_err());
        let ours = dir.path().join("kdyno-scratch-x");
        assert!(!remove_tree(&ours).unwrap());
        std::fs::create_dir_all(ours.join("dir/deep")).unwrap();
        assert!(remove_tree(&ours).unwrap());
        assert!(!ours.exists());
    }

    #[test]
    fn room_is_told() {
        assert!(no_room(1).is_none());
        let error = no_room(u64::MAX).unwrap();
        assert!(error.message.contains("are free"), "{error}");
    }

    #[test]
    fn devices_of_zram_that_came_since() {
        let dir = tempfile::tempdir().unwrap();
        for (number, size) in [(0, "0"), (1, "4096"), (2, "0")] {
            let block = dir.path().join(format!("sys/block/zram{number}"));
            std::fs::create_dir_all(&block).unwrap();
            std::fs::write(block.join("disksize"), size).unwrap();
        }
        let root = SysRoot::at(dir.path());
        assert_eq!(zram_added_since(&root, &[0]), [2]);
    }
}
