//! Kills kdyno again and again at random moments, with everything in play that it changes on a
//! machine, and looks whether the machine is as it was.
//!
//! Needs root and a machine of your own. A failure is told with what differs; the seed repeats the
//! moments as far as time does.

use crate::fuzz::Random;
use anyhow::{Context, bail, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a guardian may take to put things back: it waits for the kernel to free what it ends.
const PATIENCE: Duration = Duration::from_secs(40);

/// The longest that a run lives before it is killed: a trial and a half.
const LONGEST_LIFE_MS: usize = 2500;

/// Two variants that undo each other's settings, and programs that hide.
const JOB: &str = "\
testcase: soak
command: 'echo v: 1; setsid sleep 300 & (sleep 300 &) ; cat /dev/zero | head -c 20M > $KDYNO_SCRATCH/data; sleep 0.4'
runs: 40
warm_up: 0
cgroup: {memory.max: 300M}
variants:
  paged:
    sysctl: {vm.swappiness: 11, vm.dirty_bytes: 100000000}
    thp: {enabled: never}
    hugepages: {2M: 8}
    scratch: {ext4: 64M}
    swap: {file: 16M}
    irq: {affinity: 0}
  zram:
    sysctl: {vm.swappiness: 77, vm.dirty_ratio: 33}
    thp: {enabled: always}
    hugepages: {2M: 3}
    scratch: {tmpfs: 32M}
    swap: {zram: 32M}
    cpu: {dma_latency: 0}
    cache: {drop: slab}
";

/// Carries out the soak.
///
/// # Errors
/// What differs on the machine, or a run that was lost or done twice.
pub fn all(kills: u64, seed: u64) -> anyhow::Result<()> {
    ensure!(
        fs::OpenOptions::new()
            .write(true)
            .open("/proc/sys/vm/swappiness")
            .is_ok(),
        "the soak changes settings of this machine: run it as root"
    );
    let soak = Soak::begin()?;
    let before = machine();
    let mut dice = Random::new(seed);
    let begun = Instant::now();
    let mut plans = 0;
    for kill in 1..=kills {
        plans += u64::from(soak.kill_one(&mut dice)?);
        if let Err(difference) = settles(&before, &soak) {
            bail!("after kill {kill} of {kills} (seed {seed}):\n{difference:#}");
        }
        if kill % 20 == 0 {
            println!(
                "{kill} of {kills} kills, {:.0} s: the machine is as it was",
                begun.elapsed().as_secs_f64()
            );
        }
    }
    let runs = soak.finish()?;
    settles(&before, &soak).context("at the end")?;
    println!(
        "{kills} kills in {:.0} s, {} plans, {runs} runs, each trial once: \
         {} settings, mounts, swaps, loop devices, cgroups and processes are as they were",
        begun.elapsed().as_secs_f64(),
        plans + 1,
        before.len()
    );
    Ok(())
}

struct Soak {
    dir: PathBuf,
    kdyno: PathBuf,
}

impl Drop for Soak {
    fn drop(&mut self) {
        // What a failed soak leaves is looked at; it says where.
        if !std::thread::panicking() && self.dir.join("done").exists() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

impl Soak {
    fn begin() -> anyhow::Result<Self> {
        let dir = std::env::temp_dir().join(format!("kdyno-soak-{}", std::process::id()));
        fs::create_dir_all(&dir)?;
        fs::write(dir.join("job.yaml"), JOB)?;
        let kdyno = crate::bench::release_kdyno()?;
        println!("soaking {} in {}", kdyno.display(), dir.display());
        Ok(Self { dir, kdyno })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.kdyno);
        command
            .args(words)
            .current_dir(&self.dir)
            .env("KDYNO_HOME", self.dir.join("home"))
            .env_remove("KDYNO_INDEX")
            .env("KDYNO_RUNTIME_DIR", self.dir.join("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// Starts or resumes a plan and kills it; sometimes its guardian as well, and then the next
    /// start has to put things back. Whether a new plan was begun.
    fn kill_one(&self, dice: &mut Random) -> anyhow::Result<bool> {
        let begin = !self.dir.join("home").exists() || dice.below(10) == 0;
        let words: &[&str] = if begin {
            &["run", "job.yaml"]
        } else {
            &["run", "--resume"]
        };
        let mut child = self.command(words).spawn()?;
        std::thread::sleep(Duration::from_millis(dice.below(LONGEST_LIFE_MS) as u64));
        let with_guardian = dice.below(4) == 0;
        if with_guardian && let Some(guardian) = guardian_of(&child) {
            // First the one, then the other, as an out-of-memory killer might.
            kill(guardian)?;
        }
        if let Some(status) = child.try_wait()? {
            let told = child.wait_with_output()?;
            ensure!(
                status.success(),
                "a run ended by itself with {status}: {}",
                String::from_utf8_lossy(&told.stderr)
            );
            return Ok(begin);
        }
        child.kill()?;
        child.wait()?;
        if with_guardian {
            let restored = self.command(&["restore"]).output()?;
            ensure!(
                restored.status.success(),
                "restore: {}",
                String::from_utf8_lossy(&restored.stderr)
            );
        }
        Ok(begin)
    }

    /// Finishes every plan and counts its runs.
    fn finish(&self) -> anyhow::Result<usize> {
        loop {
            let told = self.command(&["run", "--resume"]).output()?;
            let text = String::from_utf8_lossy(&told.stderr).into_owned();
            ensure!(told.status.success(), "{text}");
            if text.contains("nothing to resume") {
                break;
            }
        }
        let listed = self
            .command(&["list", "--json"])
            .stdout(Stdio::piped())
            .output()?;
        let text = String::from_utf8(listed.stdout)?;
        let mut seen: BTreeMap<(String, String), usize> = BTreeMap::new();
        for line in text.lines() {
            let row: serde_json::Value = serde_json::from_str(line)?;
            let of = |key: &str| row[key].to_string();
            *seen.entry((of("plan"), of("index"))).or_default() += 1;
        }
        let twice = seen.iter().find(|(_, count)| **count != 1);
        ensure!(twice.is_none(), "a trial was run twice: {twice:?}");
        ensure!(
            seen.len().is_multiple_of(80),
            "{} trials, not 80 a plan",
            seen.len()
        );
        fs::write(self.dir.join("done"), "")?;
        Ok(seen.len())
    }
}

/// Waits until the machine is as it was.
fn settles(before: &BTreeMap<String, String>, soak: &Soak) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        let now = machine();
        if now == *before {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            let told: Vec<String> = differences(before, &now);
            bail!("{}\nlook into {}", told.join("\n"), soak.dir.display());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn differences(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<String> {
    let gone = before
        .iter()
        .filter(|(key, _)| !now.contains_key(*key))
        .map(|(key, _)| format!("{key} is gone"));
    let other = now.iter().filter_map(|(key, value)| match before.get(key) {
        None => Some(format!("{key} is new: {value}")),
        Some(was) if was != value => Some(format!("{key}: `{was}` is `{value}`")),
        Some(_) => None,
    });
    gone.chain(other).collect()
}

/// Everything of the machine that kdyno may change.
fn machine() -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for dir in [
        "/proc/sys/vm",
        "/sys/kernel/mm/transparent_hugepage",
        "/sys/kernel/mm/hugepages/hugepages-2048kB",
    ] {
        for path in entries(Path::new(dir)) {
            // Pages in use come and go with whoever uses them.
            let moves = ["free_hugepages", "resv_hugepages", "surplus_hugepages"];
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if !moves.contains(&name.as_ref()) {
                note(&mut all, &path);
            }
        }
    }
    for irq in entries(Path::new("/proc/irq")) {
        note(&mut all, &irq.join("smp_affinity_list"));
    }
    lines(&mut all, "mount", "/proc/self/mountinfo");
    lines(&mut all, "swap", "/proc/swaps");
    for block in entries(Path::new("/sys/block")) {
        note(&mut all, &block.join("disksize"));
        note(&mut all, &block.join("loop/backing_file"));
    }
    for dir in entries(Path::new("/var/tmp")) {
        if dir.to_string_lossy().contains("kdyno") {
            all.insert(dir.display().to_string(), "a directory".to_owned());
        }
    }
    cgroups(&mut all, Path::new("/sys/fs/cgroup"), 6);
    processes(&mut all);
    all
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(dir).into_iter().flatten().flatten();
    listed.map(|entry| entry.path()).collect()
}

fn note(all: &mut BTreeMap<String, String>, path: &Path) {
    // Some can only be written; they hold nothing to compare.
    if let Ok(text) = fs::read_to_string(path) {
        all.insert(path.display().to_string(), text.trim().to_owned());
    }
}

fn lines(all: &mut BTreeMap<String, String>, what: &str, path: &str) {
    for line in fs::read_to_string(path).unwrap_or_default().lines() {
        all.insert(format!("{what} {line}"), String::new());
    }
}

fn cgroups(all: &mut BTreeMap<String, String>, dir: &Path, depth: usize) {
    for path in entries(dir).into_iter().filter(|path| path.is_dir()) {
        if path.to_string_lossy().contains("/kdyno-") {
            all.insert(path.display().to_string(), "a cgroup".to_owned());
        }
        if depth > 0 {
            cgroups(all, &path, depth - 1);
        }
    }
}

/// Processes of trials, and guardians.
fn processes(all: &mut BTreeMap<String, String>) {
    for dir in entries(Path::new("/proc")) {
        let read = |name: &str| fs::read(dir.join(name)).unwrap_or_default();
        let carries = read("environ")
            .split(|byte| *byte == 0)
            .any(|variable| variable.starts_with(b"KDYNO_RUN_ID="));
        let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        if carries || line.starts_with("kdyno guardian") {
            all.insert(format!("process {}", dir.display()), line);
        }
    }
}

fn guardian_of(child: &Child) -> Option<u32> {
    let path = format!("/proc/{0}/task/{0}/children", child.id());
    let children = fs::read_to_string(path).ok()?;
    children.split_whitespace().find_map(|pid| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        line.starts_with("kdyno\0guardian")
            .then(|| pid.parse().ok())?
    })
}

fn kill(pid: u32) -> anyhow::Result<()> {
    let status = Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status()?;
    ensure!(status.success(), "kill -9 {pid}: {status}");
    Ok(())
}
