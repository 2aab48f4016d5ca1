//! How long functions of the kernel take, without BPF: a probe where a function begins and one where
//! it returns (kprobe events), an event made of the two (synthetic events), and counts of that one
//! by the kernel itself (hist triggers). All of it lives in a tracing instance of the trial's own, so
//! that nobody else's tracing is touched, and in the undo journal.
//!
//! Documentation/trace/kprobetrace.rst, events.rst and histogram.rst of the kernel.

use crate::journal::{Change, Journal};
use crate::root::SysRoot;
use kdyno_model::{FunctionProbe, TestboxError};
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Where tracefs is, or where it was before it had a place of its own.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The group of our probes in `events/`.
const GROUP: &str = "kdyno";
/// Calls of one function that may be under way at once; more of them are not seen, which is told.
const PENDING: u32 = 512;
/// Different buckets that a table can hold.
const ENTRIES: u32 = 16384;
/// Width of the linear buckets, nanoseconds.
pub const LINEAR_NS: u64 = 10_000;

/// What tracing a function leaves behind if nobody removes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Traced {
    /// Where tracefs is.
    pub(crate) tracefs: PathBuf,
    /// Our instance in it.
    pub(crate) instance: PathBuf,
    /// What all names of it end in.
    pub(crate) id: String,
    /// The function.
    pub(crate) probe: FunctionProbe,
}

/// Functions that are timed now.
#[derive(Debug, Default)]
pub(crate) struct Functions(Vec<Traced>);

/// The name of the file in `raw/` that holds the counts of the n-th function of a trial.
#[must_use]
pub fn function_file(place: usize) -> String {
    format!("function-{place}.hist")
}

/// Whether this machine can time a kernel's functions.
///
/// # Errors
/// What is missing, with what to do about it.
pub fn check(root: &SysRoot, probes: &[FunctionProbe]) -> Result<(), TestboxError> {
    if probes.is_empty() {
        return Ok(());
    }
    let tracefs = tracefs(root)?;
    for (file, option) in [
        ("kprobe_events", "CONFIG_KPROBE_EVENTS"),
        ("synthetic_events", "CONFIG_SYNTH_EVENTS"),
        ("instances", "CONFIG_TRACING"),
    ] {
        if !tracefs.join(file).exists() {
            return Err(lacks(&tracefs.join(file), option));
        }
    }
    let help = std::fs::read_to_string(tracefs.join("README")).unwrap_or_default();
    if !help.contains("hist trigger") {
        return Err(lacks(&tracefs.join("README"), "CONFIG_HIST_TRIGGERS"));
    }
    probes.iter().try_for_each(|probe| is_there(root, probe))
}

fn lacks(file: &Path, option: &str) -> TestboxError {
    TestboxError::at(file, format!("this kernel is built without {option}")).hint(
        "boot a kernel that has it, as distributions' kernels do; tracing tools with BPF do without, \
         and `kdyno hist -` reads what they print",
    )
}

/// Where tracefs is mounted.
fn tracefs(root: &SysRoot) -> Result<PathBuf, TestboxError> {
    let places = PLACES.iter().map(|place| root.path(place));
    let mut found = places.filter(|place| place.join("trace").exists());
    if let Some(found) = found.next() {
        return Ok(found);
    }
    let place = root.path(PLACES[0]);
    let error = match std::fs::read_dir(&place) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            TestboxError::at(place, "only root may trace").hint("run as root")
        }
        _ => TestboxError::at(place, "tracefs is not mounted")
            .hint("mount it: mount -t tracefs tracefs /sys/kernel/tracing"),
    };
    Err(error)
}

/// Whether the kernel has the function.
fn is_there(root: &SysRoot, probe: &FunctionProbe) -> Result<(), TestboxError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.:+".contains(c);
    let name = &probe.function;
    if name.is_empty() || !name.chars().all(plain) {
        return Err(TestboxError::new(format!(
            "`{name}` is no name of a function"
        )));
    }
    if probe
        .filter
        .as_ref()
        .is_some_and(|filter| filter.contains('\n'))
    {
        return Err(TestboxError::new("a filter is one line"));
    }
    let symbols = root.read("/proc/kallsyms").unwrap_or_default();
    let mut known = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2));
    // Where symbols cannot be read, or an offset or a module is named, the kernel will tell.
    if symbols.is_empty() || name.contains(['+', ':']) || known.any(|known| known == name) {
        return Ok(());
    }
    let similar = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .filter(|known| known.contains(name.as_str()) || name.contains(known))
        .filter(|known| known.len() > 3)
        .take(5);
    let similar: Vec<&str> = similar.collect();
    let hint = match similar.is_empty() {
        true => "/proc/kallsyms lists them; an inlined function cannot be probed".to_owned(),
        false => format!("it has {}", similar.join(", ")),
    };
    Err(TestboxError::new(format!("the kernel has no function `{name}`")).hint(hint))
}

impl Functions {
    /// Begins to time them; what was begun before a failure is removed again.
    pub(crate) fn begin(
        root: &SysRoot,
        probes: &[FunctionProbe],
        run: &str,
        journal: &mut Journal,
    ) -> Result<Self, TestboxError> {
        let mut begun = Self::default();
        if probes.is_empty() {
            return Ok(begun);
        }
        let tracefs = tracefs(root)?;
        for (place, probe) in probes.iter().enumerate() {
            let traced = Traced {
                tracefs: tracefs.clone(),
                instance: tracefs.join(format!("instances/kdyno-{run}-{place}")),
                id: format!("{}_{place}", run.replace('-', "_")),
                probe: probe.clone(),
            };
            journal.note(&Change::Traced(traced.clone()))?;
            begun.0.push(traced.clone());
            if let Err(error) = traced.make() {
                // The first error is the one to tell; what stays is in the journal.
                let _ = begun.end();
                return Err(error);
            }
        }
        Ok(begun)
    }

    /// Takes the counts: a text per function, in the order in which they were named, with what went
    /// wrong on the way.
    pub(crate) fn read(&self) -> Result<Vec<String>, TestboxError> {
        self.0.iter().map(Traced::read).collect()
    }

    /// Removes everything.
    pub(crate) fn end(self) -> Result<(), TestboxError> {
        let ended: Vec<Result<bool, TestboxError>> = self.0.iter().map(Traced::remove).collect();
        ended.into_iter().try_for_each(|ended| ended.map(|_| ()))
    }
}

impl Traced {
    fn make(&self) -> Result<(), TestboxError> {
        append(&self.tracefs.join("kprobe_events"), &self.entry_probe())?;
        append(&self.tracefs.join("kprobe_events"), &self.return_probe())?;
        append(&self.tracefs.join("synthetic_events"), &self.synthetic())?;
        std::fs::create_dir(&self.instance)
            .map_err(|error| TestboxError::at(&self.instance, error))?;
        self.triggers()
            .iter()
            .try_for_each(|(file, trigger)| append(file, trigger))
    }

    /// `p:kdyno/in_ID FUNCTION`, with the first arguments where a filter asks for them.
    fn entry_probe(&self) -> String {
        let filter = self.probe.filter.as_deref().unwrap_or_default();
        let arguments: String = (1..=6)
            .filter(|number| filter.contains(&format!("arg{number}")))
            .map(|number| format!(" arg{number}=$arg{number}"))
            .collect();
        format!(
            "p:{GROUP}/in_{} {}{arguments}",
            self.id, self.probe.function
        )
    }

    fn return_probe(&self) -> String {
        format!("r{PENDING}:{GROUP}/out_{} {}", self.id, self.probe.function)
    }

    fn synthetic(&self) -> String {
        format!("{} u64 lat", self.event())
    }

    fn event(&self) -> String {
        format!("kdyno_{}", self.id)
    }

    /// The triggers with their files, in the order in which they depend on each other. Times are
    /// nanoseconds.
    fn triggers(&self) -> [(PathBuf, String); 4] {
        let (id, event) = (&self.id, self.event());
        let events = self.instance.join("events");
        let of = |event: &str| events.join(event).join("trigger");
        let filter = match &self.probe.filter {
            Some(filter) => format!(" if {filter}"),
            None => String::new(),
        };
        let counts = |key: &str| format!("hist:keys={key}:size={ENTRIES}");
        [
            (
                of(&format!("{GROUP}/in_{id}")),
                format!("hist:keys=common_pid:ts0=common_timestamp{filter}"),
            ),
            (
                of(&format!("{GROUP}/out_{id}")),
                format!(
                    "hist:keys=common_pid:lat=common_timestamp-$ts0:\
                     onmatch({GROUP}.in_{id}).{event}($lat)"
                ),
            ),
            (of(&format!("synthetic/{event}")), counts("lat.log2")),
            (
                of(&format!("synthetic/{event}")),
                counts(&format!("lat.buckets={LINEAR_NS}")),
            ),
        ]
    }

    /// The tables of both triggers, and the calls that were missed.
    fn read(&self) -> Result<String, TestboxError> {
        let table = self
            .instance
            .join(format!("events/synthetic/{}/hist", self.event()));
        let mut text =
            std::fs::read_to_string(&table).map_err(|error| TestboxError::at(&table, error))?;
        let profile = std::fs::read_to_string(self.tracefs.join("kprobe_profile"));
        let wanted = format!("out_{}", self.id);
        for line in profile.unwrap_or_default().lines() {
            let mut words = line.split_whitespace();
            if words.next() == Some(&wanted) {
                let missed = words.nth(1).unwrap_or("0");
                text.push_str(&format!("# missed calls: {missed}\n"));
            }
        }
        Ok(text)
    }

    /// Removes whatever is there of it; whether there was anything.
    pub(crate) fn remove(&self) -> Result<bool, TestboxError> {
        let mut there = false;
        if self.instance.is_dir() {
            there = true;
            for (file, trigger) in self
                .triggers()
                .iter()
                .rev()
                .filter(|(file, _)| file.exists())
            {
                // A trigger that is not there cannot be removed; one that stays keeps the instance.
                let _ = append(file, &format!("!{trigger}"));
            }
            std::fs::remove_dir(&self.instance)
                .map_err(|error| TestboxError::at(&self.instance, error))?;
        }
        let listed = |file: &str, name: &str| {
            let text = std::fs::read_to_string(self.tracefs.join(file)).unwrap_or_default();
            text.contains(name)
        };
        if listed("synthetic_events", &self.event()) {
            there = true;
            append(
                &self.tracefs.join("synthetic_events"),
                &format!("!{}", self.synthetic()),
            )?;
        }
        for side in ["out", "in"] {
            let name = format!("{GROUP}/{side}_{}", self.id);
            if listed("kprobe_events", &name) {
                there = true;
                append(&self.tracefs.join("kprobe_events"), &format!("-:{name}"))?;
            }
        }
        Ok(there)
    }
}

/// Adds a line to a file of tracefs.
fn append(path: &Path, line: &str) -> Result<(), TestboxError> {
    let written = OpenOptions::new()
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    written.map_err(|error| {
        let error = TestboxError::at(path, format!("`{line}`: {error}"));
        match path.ends_with("kprobe_events") {
            true => error.hint("the function may be inlined or not to be probed"),
            false => error.hint("a filter compares fields, as `arg1 > 100` or `comm == \"cat\"`"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(function: &str, filter: Option<&str>) -> FunctionProbe {
        FunctionProbe {
            function: function.to_owned(),
            filter: filter.map(str::to_owned),
        }
    }

    fn made_up(files: &[(&str, &str)]) -> (tempfile::TempDir, SysRoot) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = SysRoot::at(dir.path());
        (dir, root)
    }

    #[test]
    fn what_a_kernel_lacks_is_named() {
        let wanted = [probe("vfs_read", None)];
        let told = |files: &[(&str, &str)]| {
            let (_dir, root) = made_up(files);
            check(&root, &wanted).unwrap_err().to_string()
        };
        assert!(told(&[]).contains("tracefs is not mounted"));
        let trace = ("sys/kernel/tracing/trace", "");
        assert!(told(&[trace]).contains("CONFIG_KPROBE_EVENTS"));
        let kprobes = ("sys/kernel/tracing/kprobe_events", "");
        assert!(told(&[trace, kprobes]).contains("CONFIG_SYNTH_EVENTS"));
        let synthetic = ("sys/kernel/tracing/synthetic_events", "");
        let instances = ("sys/kernel/tracing/instances/x", "");
        let all = [trace, kprobes, synthetic, instances];
        assert!(told(&all).contains("CONFIG_HIST_TRIGGERS"));
        let help = ("sys/kernel/tracing/README", "hist trigger\t- If set");
        let symbols = ("proc/kallsyms", "0 T vfs_readv\n0 t __vfs_read [mod]\n");
        let all = [trace, kprobes, synthetic, instances, help, symbols];
        let told = told(&all);
        assert!(told.contains("no function `vfs_read`"), "{told}");
        let (_dir, root) = made_up(&all);
        assert!(check(&root, &[probe("vfs_readv", None)]).is_ok());
        assert!(check(&root, &[probe("vfs; rm", None)]).is_err());
        assert!(check(&root, &[]).is_ok());
    }

    #[test]
    fn probes_and_triggers_are_those_of_the_kernels_documents() {
        let traced = Traced {
            tracefs: "/t".into(),
            instance: "/t/instances/kdyno-r-0".into(),
            id: "r_0".to_owned(),
            probe: probe("vfs_read", Some("arg3 > 100")),
        };
        assert_eq!(traced.entry_probe(), "p:kdyno/in_r_0 vfs_read arg3=$arg3");
        assert_eq!(traced.return_probe(), "r512:kdyno/out_r_0 vfs_read");
        assert_eq!(traced.synthetic(), "kdyno_r_0 u64 lat");
        let triggers = traced.triggers();
        assert_eq!(
            triggers[0].1,
            "hist:keys=common_pid:ts0=common_timestamp if arg3 > 100"
        );
        assert_eq!(
            triggers[1].1,
            "hist:keys=common_pid:lat=common_timestamp-$ts0:onmatch(kdyno.in_r_0).kdyno_r_0($lat)"
        );
        assert_eq!(
            triggers[2].0,
            Path::new("/t/instances/kdyno-r-0/events/synthetic/kdyno_r_0/trigger")
        );
    }

    /// On a kernel that can: a function that is called is timed, and nothing stays.
    #[test]
    fn root_a_function_is_timed_and_nothing_stays() {
        let root = SysRoot::real();
        let wanted = [probe("vfs_read", None)];
        if let Err(error) = check(&root, &wanted) {
            println!("skipped: {error}");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let session = kdyno_model::SessionId::new();
        let mut journal = Journal::begin(dir.path(), session, None).unwrap();
        let functions = Functions::begin(&root, &wanted, "test-run", &mut journal).unwrap();
        for _ in 0..10 {
            std::fs::read("/proc/self/stat").unwrap();
        }
        let texts = functions.read().unwrap();
        assert!(texts[0].contains("hitcount:"), "{}", texts[0]);
        functions.end().unwrap();
        let place = tracefs(&root).unwrap();
        let probes = std::fs::read_to_string(place.join("kprobe_events")).unwrap();
        assert!(!probes.contains("test_run"), "{probes}");
    }
}
