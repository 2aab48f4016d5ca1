//! Settings of the machine: from the key that a job writes to the file of the kernel, checked,
//! journalled, written and read back.

mod target;

use crate::journal::{Change, Journal};
use crate::root::SysRoot;
use crate::{cgroup, scratch};
use kdyno_model::{Setting, TestboxError, nearest};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

pub(crate) use target::{
    DROP_CACHES, Dropped, KernelFile, Scratch as ScratchKind, Swap as SwapKind, Target, target,
};

/// The value that a file of the kernel holds: the chosen word where it lists them all
/// (`always [madvise] never`), else its text with single blanks.
#[must_use]
pub(crate) fn value_in(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let chosen = words
        .iter()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    match chosen {
        Some(chosen) if words.len() > 1 => chosen.to_owned(),
        _ => words.join(" "),
    }
}

/// The words that a file offers, when it is one that lists them.
fn offered(text: &str) -> Option<Vec<String>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let lists = words.len() > 1 && words.iter().any(|w| w.starts_with('[') && w.ends_with(']'));
    lists.then(|| {
        words
            .iter()
            .map(|w| w.trim_matches(['[', ']']).to_owned())
            .collect()
    })
}

/// The settings of one machine as we have made them.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    made: BTreeMap<PathBuf, Made>,
    /// The kernel keeps the wished latency as long as its device is open, so that a crash of ours
    /// leaves nothing to undo.
    latency: Option<(i32, File)>,
}

impl Settings {
    /// Makes exactly these settings: those made before and not asked for any more go back to
    /// what was found.
    ///
    /// # Errors
    /// The first that cannot be made; earlier ones stay, the journal has them.
    pub(crate) fn make(
        &mut self,
        root: &SysRoot,
        wanted: &[Setting],
        journal: &mut Journal,
    ) -> Result<(), TestboxError> {
        let (files, latency) = lasting(root, wanted)?;
        self.go_back_except(&files, journal)?;
        for KernelFile {
            path,
            value,
            may_refuse,
        } in files
        {
            if let Some(partner) =
                partner(&path).filter(|_| read_value(&path).ok().as_ref() != Some(&value))
            {
                self.enter_partner(&partner, journal)?;
            }
            match self.set(&path, &value, journal) {
                Err(_) if may_refuse => {}
                made => made?,
            }
        }
        self.hold_latency(root, latency)
    }

    fn hold_latency(&mut self, root: &SysRoot, wanted: Option<i32>) -> Result<(), TestboxError> {
        if self.latency.as_ref().map(|(held, _)| *held) == wanted {
            return Ok(());
        }
        self.latency = None;
        let Some(microseconds) = wanted else {
            return Ok(());
        };
        let path = root.path(target::DMA_LATENCY);
        let opened = File::options().write(true).open(&path);
        let held = opened.and_then(|mut device| {
            device.write_all(&microseconds.to_ne_bytes())?;
            Ok(device)
        });
        let device =
            held.map_err(|error| cannot_write(&path, &microseconds.to_string(), &error))?;
        self.latency = Some((microseconds, device));
        Ok(())
    }

    /// Puts back what was made before and is not asked for any more. Zeros come last: the kernel
    /// refuses them for one of a pair and sets them itself when the other is put back, or set.
    fn go_back_except(
        &mut self,
        wanted: &[KernelFile],
        journal: &mut Journal,
    ) -> Result<(), TestboxError> {
        let is_wanted = |path: &Path| wanted.iter().any(|wanted| wanted.path == path);
        let sets_itself = |path: &Path, made: &Made| {
            made.found == "0" && partner(path).is_some_and(|partner| is_wanted(&partner))
        };
        let mut stale: Vec<(PathBuf, String)> = self
            .made
            .iter()
            .filter(|(path, made)| !is_wanted(path) && !sets_itself(path, made))
            .map(|(path, made)| (path.clone(), made.found.clone()))
            .collect();
        stale.sort_by_key(|(_, found)| found == "0");
        stale
            .iter()
            .try_for_each(|(path, found)| self.set(path, found, journal))
    }

    /// The other one of a pair, which the kernel is about to set to 0.
    fn enter_partner(&mut self, path: &Path, journal: &mut Journal) -> Result<(), TestboxError> {
        let now = read_value(path)?;
        let made = self
            .made
            .entry(path.to_owned())
            .or_insert_with(|| Made::first(path, &now, journal));
        let before = made.found.clone();
        journal.note(&Change::File {
            path: path.to_owned(),
            before,
            set: "0".to_owned(),
        })
    }

    fn set(&mut self, path: &Path, value: &str, journal: &mut Journal) -> Result<(), TestboxError> {
        let now = read_value(path)?;
        let made = self
            .made
            .entry(path.to_owned())
            .or_insert_with(|| Made::first(path, &now, journal));
        if now == value || (now == made.shown && made.written == value) {
            return Ok(());
        }
        let entry = |made: &Made, set: &str| Change::File {
            path: path.to_owned(),
            before: made.found.clone(),
            set: set.to_owned(),
        };
        journal.note(&entry(made, value))?;
        write_value(path, value).map_err(|error| cannot_write(path, value, &error))?;
        made.written = value.to_owned();
        made.shown = read_value(path)?;
        if made.shown == value {
            return Ok(());
        }
        journal.note(&entry(made, &made.shown))?;
        if made.shown == now || is_pool(path) {
            // Half of a setting is none: the next trial must not run with it.
            let got = std::mem::replace(&mut made.shown, made.found.clone());
            made.written = made.found.clone();
            write_value(path, &made.found)
                .map_err(|error| cannot_write(path, &made.found, &error))?;
            return Err(TestboxError::at(path, format!("`{value}` was written and `{got}` is there"))
                .hint("the kernel could not give that much or does not take it; write it as the kernel shows it"));
        }
        // Otherwise the kernel has a spelling of its own: `Y` for 1, `0x0007` for y.
        Ok(())
    }
}

/// The settings that stay while trials come and go: files, and the latency to hold.
fn lasting(
    root: &SysRoot,
    wanted: &[Setting],
) -> Result<(Vec<KernelFile>, Option<i32>), TestboxError> {
    let (mut files, mut latency) = (Vec::new(), None);
    for setting in wanted {
        match target(root, setting)? {
            Target::Files(more) => files.extend(more),
            Target::DmaLatency(microseconds) => latency = Some(microseconds),
            // They are made anew for each trial.
            Target::Cgroup { .. } | Target::Drop(_) | Target::Scratch(_) | Target::Swap(_) => {}
        }
    }
    Ok((files, latency))
}

/// A setting as we have made it.
#[derive(Debug)]
struct Made {
    /// The value as it was found.
    found: String,
    /// What we wrote last.
    written: String,
    /// What the kernel then showed.
    shown: String,
}

impl Made {
    /// Nothing was written yet: what is there was found, unless a run that shares the machine with
    /// us (`--force`) has set it.
    fn first(path: &Path, now: &str, journal: &Journal) -> Self {
        let found = journal
            .elder_original(path, now)
            .unwrap_or_else(|| now.to_owned());
        Self {
            written: found.clone(),
            shown: found.clone(),
            found,
        }
    }
}

/// Settings of which the kernel keeps one at 0: setting one sets the other.
const PAIRS: [(&str, &str); 3] = [
    ("dirty_bytes", "dirty_ratio"),
    ("dirty_background_bytes", "dirty_background_ratio"),
    ("overcommit_kbytes", "overcommit_ratio"),
];

/// The other one of a pair.
fn partner(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let other = PAIRS.iter().find_map(|(a, b)| match name {
        _ if name == *a => Some(*b),
        _ if name == *b => Some(*a),
        _ => None,
    });
    Some(path.with_file_name(other?))
}

/// Whether a file is a pool of huge pages, which may give less than was asked for.
pub(crate) fn is_pool(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "nr_hugepages")
}

/// Writes a value; an empty one needs a line end, or nothing would be written.
pub(crate) fn write_value(path: &Path, value: &str) -> std::io::Result<()> {
    std::fs::write(path, if value.is_empty() { "\n" } else { value })
}

fn read_value(path: &Path) -> Result<String, TestboxError> {
    std::fs::read_to_string(path)
        .map(|text| value_in(&text))
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                TestboxError::at(path, "this kernel has no such setting").hint(near_hint(path))
            }
            _ => TestboxError::at(path, error),
        })
}

/// What is beside a file that is not there.
fn near_hint(path: &Path) -> String {
    let beside = path
        .parent()
        .and_then(|dir| std::fs::read_dir(dir).ok())
        .into_iter()
        .flatten()
        .flatten();
    let names: Vec<String> = beside
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match nearest(&name, &names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "see what it offers below /sys and /proc/sys".to_owned(),
    }
}

fn cannot_write(path: &Path, value: &str, error: &std::io::Error) -> TestboxError {
    let failed = TestboxError::at(path, format!("cannot set `{value}`: {error}"));
    match error.kind() {
        ErrorKind::PermissionDenied if crate::sys::effective_user() == 0 => {
            failed.hint("nobody may write it on this kernel")
        }
        ErrorKind::PermissionDenied => failed.hint("settings of the machine need root"),
        ErrorKind::ReadOnlyFilesystem => {
            failed.hint("it is mounted read-only here, as in a container; run on the host")
        }
        _ => failed.hint("the kernel does not take this value"),
    }
}

/// What a setting would change, for `--dry-run` and for checks before a plan begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingCheck {
    /// The file.
    pub path: PathBuf,
    /// Its value now; `None` for what is made anew for each trial.
    pub now: Option<String>,
    /// Its value as asked for.
    pub wanted: String,
    /// Why it cannot be made, as far as that can be told without trying.
    pub problem: Option<TestboxError>,
}

/// Looks at a setting without changing anything: one entry for each thing that it changes.
///
/// # Errors
/// A key that is no setting, or a file that this kernel does not have.
pub fn check(root: &SysRoot, setting: &Setting) -> Result<Vec<SettingCheck>, TestboxError> {
    let made_anew = |path: PathBuf, problem| {
        vec![SettingCheck {
            path,
            now: None,
            wanted: setting.value.clone(),
            problem,
        }]
    };
    Ok(match target(root, setting)? {
        Target::Files(files) => files
            .into_iter()
            .map(|file| check_file(root, file))
            .collect::<Result<_, _>>()?,
        Target::DmaLatency(_) => {
            let path = root.path(target::DMA_LATENCY);
            let problem = unwritable(&path, &setting.value);
            made_anew(path, problem)
        }
        Target::Drop(_) => {
            let path = root.path(target::DROP_CACHES);
            let problem = unwritable(&path, &setting.value);
            made_anew(path, problem)
        }
        Target::Cgroup { file, .. } => {
            let problem = cgroup::unlimited(root, &file);
            made_anew(
                PathBuf::from(format!("the trial's cgroup: {file}")),
                problem,
            )
        }
        Target::Scratch(kind) => made_anew(scratch::base(), scratch::problem(kind)),
        Target::Swap(kind) => made_anew(scratch::base(), scratch::swap_problem(root, kind)),
    })
}

fn unwritable(path: &Path, value: &str) -> Option<TestboxError> {
    let opened = File::options().write(true).open(path);
    opened.err().map(|error| cannot_write(path, value, &error))
}

/// What the files of settings hold now; what is made anew for each trial has none, and a file that
/// cannot be read is left out.
pub(crate) fn values(root: &SysRoot, settings: &[Setting]) -> BTreeMap<PathBuf, String> {
    let checks = settings
        .iter()
        .filter_map(|setting| check(root, setting).ok());
    checks
        .flatten()
        .filter_map(|check| Some((check.path, check.now?)))
        .collect()
}

/// Says which settings were another at the end than at the start: somebody else has changed them,
/// and the trial was of neither.
pub(crate) fn changes(
    before: &BTreeMap<PathBuf, String>,
    after: &BTreeMap<PathBuf, String>,
) -> Vec<String> {
    let change = |(path, was): (&PathBuf, &String)| {
        let is = after.get(path).filter(|is| *is != was)?;
        let path = path.display();
        Some(format!(
            "{path} was {was} at the start of the trial and {is} at its end"
        ))
    };
    before.iter().filter_map(change).collect()
}

/// Why a pool of huge pages cannot be so large: the kernel would take all the memory that it finds
/// before it gives up.
fn too_large_pool(root: &SysRoot, path: &Path, now: &str, wanted: &str) -> Option<TestboxError> {
    let meminfo = root.read("/proc/meminfo").ok()?;
    let kib = |name: &str| -> Option<u64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    };
    let named = path.parent()?.file_name()?.to_str()?;
    let of_name = named
        .strip_prefix("hugepages-")
        .and_then(|size| size.strip_suffix("kB"))
        .and_then(|size| size.parse().ok());
    let page_kib = of_name.or_else(|| kib("Hugepagesize:"))?;
    let (now, wanted): (u64, u64) = (now.parse().ok()?, wanted.parse().ok()?);
    let free = kib("MemAvailable:")?.saturating_add(now.saturating_mul(page_kib));
    (wanted.saturating_mul(page_kib) > free).then(|| {
        let most = free / page_kib.max(1);
        TestboxError::at(
            path,
            format!("{wanted} pages are more than there is memory for"),
        )
        .hint(format!("there is memory for {most} at most"))
    })
}

fn check_file(root: &SysRoot, file: KernelFile) -> Result<SettingCheck, TestboxError> {
    let KernelFile {
        path,
        value: wanted,
        may_refuse,
    } = file;
    let text = std::fs::read_to_string(&path).or_else(|_| read_value(&path))?;
    let now = value_in(&text);
    let problem = if now == wanted || may_refuse {
        None
    } else if matches!(now.as_str(), "notsupported" | "notimplemented") {
        Some(TestboxError::at(&path, "this machine does not have it"))
    } else if let Some(error) = Some(&path)
        .filter(|path| is_pool(path))
        .and_then(|path| too_large_pool(root, path, &now, &wanted))
    {
        Some(error)
    } else if let Some(offered) = offered(&text).filter(|offered| !offered.contains(&wanted)) {
        let hint = format!("it offers: {}", offered.join(", "));
        Some(TestboxError::at(&path, format!("`{wanted}` is not offered")).hint(hint))
    } else {
        unwritable(&path, &wanted)
    };
    Ok(SettingCheck {
        path,
        now: Some(now),
        wanted,
        problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(key: &str, value: &str) -> Setting {
        Setting {
            key: key.to_owned(),
            value: value.to_owned(),
        }
    }

    fn machine() -> (tempfile::TempDir, SysRoot, Journal) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("proc/sys/vm/swappiness", "60\n"),
            ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "always [madvise] never\n",
            ),
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let journal = Journal::begin(dir.path(), kdyno_model::SessionId::new(), None).unwrap();
        let root = SysRoot::at(dir.path());
        (dir, root, journal)
    }

    #[test]
    fn the_chosen_word_is_the_value() {
        assert_eq!(value_in("always [madvise] never\n"), "madvise");
        assert_eq!(value_in("4096\t131072\t6291456\n"), "4096 131072 6291456");
        assert_eq!(value_in("[none]\n"), "[none]");
        assert_eq!(value_in(""), "");
    }

    #[test]
    fn a_setting_that_is_no_longer_asked_for_goes_back() {
        let (dir, root, mut journal) = machine();
        let mut settings = Settings::default();
        let swappiness = dir.path().join("proc/sys/vm/swappiness");
        settings
            .make(
                &root,
                &[setting("sysctl.vm.swappiness", "10")],
                &mut journal,
            )
            .unwrap();
        assert_eq!(std::fs::read_to_string(&swappiness).unwrap(), "10");
        settings.make(&root, &[], &mut journal).unwrap();
        assert_eq!(std::fs::read_to_string(&swappiness).unwrap(), "60");
        settings
            .make(
                &root,
                &[setting("sysctl.vm.swappiness", "20")],
                &mut journal,
            )
            .unwrap();
        std::fs::write(&swappiness, "20\n").unwrap();
        crate::journal::undo(journal.path(), None, None).unwrap();
        assert_eq!(std::fs::read_to_string(&swappiness).unwrap(), "60");
    }

    #[test]
    fn a_setting_that_is_there_already_is_not_written() {
        let (_dir, root, mut journal) = machine();
        let wanted = [setting("sysctl.net.ipv4.tcp_rmem", "4096 131072  6291456")];
        Settings::default()
            .make(&root, &wanted, &mut journal)
            .unwrap();
        let text = std::fs::read_to_string(journal.path()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
    }

    #[test]
    fn a_pool_goes_back_when_it_is_no_longer_asked_for() {
        let (dir, root, mut journal) = machine();
        let pool = dir.path().join("proc/sys/vm/nr_hugepages");
        std::fs::write(&pool, "3\n").unwrap();
        let mut settings = Settings::default();
        settings
            .make(&root, &[setting("hugepages.default", "5")], &mut journal)
            .unwrap();
        assert_eq!(std::fs::read_to_string(&pool).unwrap(), "5");
        settings.make(&root, &[], &mut journal).unwrap();
        assert_eq!(std::fs::read_to_string(&pool).unwrap(), "3");
    }

    #[test]
    fn checks_say_what_would_change_and_what_stands_in_the_way() {
        let (_dir, root, _journal) = machine();
        let only = |mut checks: Vec<SettingCheck>| checks.pop().unwrap();
        let ok = only(check(&root, &setting("sysctl.vm.swappiness", "10")).unwrap());
        assert_eq!(
            (ok.now.as_deref(), ok.wanted.as_str(), ok.problem),
            (Some("60"), "10", None)
        );
        let bad = only(check(&root, &setting("thp.enabled", "sometimes")).unwrap());
        assert_eq!(
            bad.problem.unwrap().hint.unwrap(),
            "it offers: always, madvise, never"
        );
        let gone = check(&root, &setting("sysctl.vm.colour", "1")).unwrap_err();
        assert!(gone.to_string().contains("no such setting"), "{gone}");
    }
}
