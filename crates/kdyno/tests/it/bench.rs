//! What the tests share: a home of their own, the binary, and turns on the machine.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A home and a state directory that no other test sees.
pub struct Bench {
    dir: tempfile::TempDir,
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub struct Printed {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Printed {
    #[track_caller]
    pub fn ok(self) -> Self {
        self.with_status(0)
    }

    #[track_caller]
    pub fn with_status(self, status: i32) -> Self {
        assert_eq!(
            self.status,
            Some(status),
            "stdout:\n{}\nstderr:\n{}",
            self.out,
            self.err
        );
        self
    }

    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        let found = self.out.contains(text) || self.err.contains(text);
        assert!(
            found,
            "`{text}` is not in\nstdout:\n{}\nstderr:\n{}",
            self.out, self.err
        );
        self
    }
}

impl From<Output> for Printed {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

pub fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_kdyno")
}

impl Bench {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// Writes a file and gives its path as an argument.
    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file in the temporary directory");
        path.display().to_string()
    }

    pub fn command(&self, words: &[&str]) -> Command {
        self.command_of(Path::new(binary()), words)
    }

    pub fn command_of(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(words)
            .current_dir(self.dir.path())
            .env("KDYNO_HOME", self.home())
            .env_remove("KDYNO_INDEX")
            .env("KDYNO_RUNTIME_DIR", self.path("state"))
            .env("TERM", "dumb")
            .stdin(Stdio::null());
        command
    }

    pub fn kdyno(&self, words: &[&str]) -> Printed {
        self.command(words).output().expect("kdyno starts").into()
    }

    /// All run directories, complete or not.
    pub fn run_dirs(&self) -> Vec<PathBuf> {
        let list = |dir: &Path| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
            let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
            paths.sort();
            paths
        };
        list(&self.home().join("plans"))
            .iter()
            .flat_map(|plan| list(&plan.join("runs")))
            .collect()
    }

    /// Those that are sealed.
    pub fn sealed(&self) -> Vec<PathBuf> {
        self.run_dirs()
            .into_iter()
            .filter(|run| run.join("MANIFEST").exists())
            .collect()
    }

    /// The newest run's record.
    pub fn record(&self) -> serde_json::Value {
        let printed = self.kdyno(&["show", "--json"]).ok();
        serde_json::from_str(&printed.out).expect("a record")
    }

    /// All finished runs as `list --json` has them.
    pub fn listed(&self) -> Vec<serde_json::Value> {
        let printed = self.kdyno(&["list", "--json"]).ok();
        printed
            .out
            .lines()
            .map(|line| serde_json::from_str(line).expect("a row"))
            .collect()
    }
}

/// A turn on the machine's settings; `None`, said aloud, without the privilege to change them.
pub fn machine_turn(test: &str) -> Option<File> {
    let swappiness = File::options().write(true).open("/proc/sys/vm/swappiness");
    if swappiness.is_err() {
        eprintln!("skipped {test}: no privilege to change settings of this machine");
        return None;
    }
    let path = std::env::temp_dir().join("kdyno-tests-machine.lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .expect("a lock file");
    file.lock().expect("a turn on the machine");
    Some(file)
}

/// The settings that tests change, as they are now.
pub fn settings_now() -> String {
    let mut all = String::new();
    for path in [
        "/proc/sys/vm/swappiness",
        "/proc/sys/vm/nr_hugepages",
        "/proc/sys/vm/nr_overcommit_hugepages",
        "/proc/sys/vm/max_map_count",
        "/sys/kernel/mm/ksm/run",
        "/sys/kernel/mm/ksm/pages_to_scan",
        "/sys/kernel/mm/ksm/sleep_millisecs",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/kernel/mm/transparent_hugepage/defrag",
    ] {
        let mut text = String::new();
        if File::open(path)
            .and_then(|mut file| file.read_to_string(&mut text))
            .is_ok()
        {
            all.push_str(&format!("{path}: {}\n", text.trim()));
        }
    }
    all
}

/// cgroups of kdyno that are still there.
pub fn cgroups_left() -> Vec<PathBuf> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>, depth: usize) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with("kdyno-") {
                    found.push(entry.path());
                }
                walk(&entry.path(), found, depth - 1);
            }
        }
    }
    let mut found = Vec::new();
    walk(Path::new("/sys/fs/cgroup"), &mut found, 6);
    found
}

/// Those that runs of this bench have left; other tests run at the same time and have their own.
pub fn cgroups_of(bench: &Bench) -> Vec<PathBuf> {
    let rows = bench.listed();
    let is_ours = |dir: &PathBuf| {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        rows.iter().any(|row| {
            let plan = row["plan"].as_str().unwrap_or_default();
            name.contains(&plan[plan.len() - 8..])
        })
    };
    cgroups_left().into_iter().filter(is_ours).collect()
}

/// Waits until something is so; 10 seconds are more than any of it takes.
#[track_caller]
pub fn wait_until(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "it never came to it"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
