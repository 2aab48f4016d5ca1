//! The machine that kdyno runs on, as a [`Testbox`].

use crate::around;
use crate::cgroup::TrialCgroups;
use crate::facts::{KernelLog, read_facts};
use crate::functions::{Functions, function_file};
use crate::guardian::Guardian;
use crate::interrupt::Interrupt;
use crate::journal::{self, Change, Journal};
use crate::lock::{MachineLock, boot_id};
use crate::monitors::{
    self, MonitorThread,
    clock::{monotonic_ns, raw_ns, thread_cpu_ns},
};
use crate::root::SysRoot;
use crate::runner::{self, Ended, Environment};
use crate::scratch::Scratch;
use crate::settings::{self, Settings, Target, target};
use crate::strays::{self, Trials};
use crate::sys;
use kdyno_model::{
    BoxFacts, ClockKind, FailReason, Measurement, MonitorOverhead, Outcome, Preparation, Recovery,
    SeriesSet, Stage, Testbox, TestboxError, Trial, Window,
};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often monitors look.
const MONITOR_PERIOD: Duration = Duration::from_secs(1);

/// What a local testbox is told.
#[derive(Clone, Debug)]
pub struct LocalOptions {
    /// Where `/proc` and `/sys` are.
    pub root: SysRoot,
    /// Where journal and lock are.
    pub state_dir: PathBuf,
    /// kdyno itself: for its workloads and as guardian.
    pub program: PathBuf,
    /// The machine's name in tables; its host name when absent.
    pub name: Option<String>,
    /// What ends a trial early.
    pub interrupt: Option<Interrupt>,
}

/// This machine.
#[derive(Debug)]
pub struct LocalTestbox {
    options: LocalOptions,
    name: String,
    held: Option<Held>,
    kernel_log: Option<KernelLog>,
}

/// What holding the machine consists of.
#[derive(Debug)]
struct Held {
    lock: MachineLock,
    journal: Journal,
    guardian: Guardian,
    settings: Settings,
    /// Children that we had before, which are none of our trials'.
    children: HashSet<i32>,
    /// Why trials get no cgroup.
    no_cgroup: Option<String>,
}

impl LocalTestbox {
    /// Looks at the machine; takes and changes nothing.
    ///
    /// # Errors
    /// When the machine cannot be read at all.
    pub fn new(options: LocalOptions) -> Result<Self, TestboxError> {
        let facts = read_facts(&options.root, options.name.as_deref())?;
        Ok(Self {
            options,
            name: facts.testbox,
            held: None,
            kernel_log: None,
        })
    }

    fn held(&mut self) -> Result<&mut Held, TestboxError> {
        self.held
            .as_mut()
            .ok_or_else(|| TestboxError::new("the testbox was not prepared"))
    }

    /// Cgroups that a trial can have: tried once, since a start that fails for want of one would
    /// look like a failed program.
    fn probe_cgroup(&mut self) -> Result<(), TestboxError> {
        let root = self.options.root.clone();
        let name = format!("kdyno-probe-{}", std::process::id());
        let held = self.held()?;
        held.no_cgroup = match make_cgroups(&root, &name, &[], &mut held.journal) {
            Ok(mut cgroups) => {
                let mut command = std::process::Command::new("/bin/true");
                let setup = crate::sys::ChildSetup {
                    cgroups: cgroups.joiners()?,
                    ..Default::default()
                };
                crate::sys::set_up_child(&mut command, setup);
                let joined = command.status();
                // What stays is in the journal, and removed with it.
                let removed = cgroups.remove().err().map(|error| error.to_string());
                let refused = joined
                    .err()
                    .map(|error| format!("a process cannot join one: {error}"));
                refused.or(removed)
            }
            Err(error) => Some(error.to_string()),
        };
        Ok(())
    }

    /// The part of a trial in which settings are made, or the outcome that ends it.
    fn set_up(&mut self, trial: &Trial) -> Result<Option<Outcome>, TestboxError> {
        let root = self.options.root.clone();
        let held = self.held()?;
        match held
            .settings
            .make(&root, &trial.work.settings, &mut held.journal)
        {
            Ok(()) => Ok(None),
            Err(error) => Ok(Some(setting_failed(&error))),
        }
    }

    /// What the trial has of its own, or the outcome that ends it.
    fn make_scratch(
        &mut self,
        trial: &Trial,
        run: &str,
    ) -> Result<(Scratch, Option<Outcome>), TestboxError> {
        let root = self.options.root.clone();
        let held = self.held()?;
        let (scratch, failed) = Scratch::make(&root, &trial.work.settings, run, &mut held.journal)?;
        Ok((scratch, failed.as_ref().map(setting_failed)))
    }

    /// A guardian that somebody ended is replaced before anything is changed.
    fn guard(&mut self, notes: &mut Vec<String>) -> Result<(), TestboxError> {
        let program = self.options.program.clone();
        let held = self.held()?;
        if !held.guardian.is_alive() {
            notes.push("the guardian was gone and was started anew".to_owned());
            held.guardian = Guardian::start(&program, &held.journal, &held.lock)?;
        }
        Ok(())
    }

    /// Our children that no trial left behind.
    fn spared(&mut self) -> Result<HashSet<i32>, TestboxError> {
        let held = self.held()?;
        Ok(held
            .children
            .iter()
            .copied()
            .chain([held.guardian.pid()])
            .collect())
    }

    /// The cgroups of a trial, entered in the journal like the trial itself.
    fn enter(
        &mut self,
        run: &str,
        limits: &[String],
        notes: &mut Vec<String>,
    ) -> Result<TrialCgroups, TestboxError> {
        let root = self.options.root.clone();
        let held = self.held()?;
        held.journal.note(&Change::Run {
            run: run.to_owned(),
        })?;
        match &held.no_cgroup {
            None => make_cgroups(&root, &format!("kdyno-{run}"), limits, &mut held.journal),
            Some(why) => {
                notes.push(format!("no cgroup: {why}"));
                Ok(TrialCgroups::default())
            }
        }
    }

    fn measure(
        &mut self,
        trial: &Trial,
        raw_dir: &Path,
        run: &str,
        scratch: &Scratch,
        notes: &mut Vec<String>,
    ) -> Result<Measured, TestboxError> {
        let options = self.options.clone();
        let limits = limits_of(&options.root, trial)?;
        let files: Vec<String> = limits.iter().map(|(file, _)| file.clone()).collect();
        let cgroups = self.enter(run, &files, notes)?;
        let spared = self.spared()?;
        let refused = limits
            .iter()
            .find_map(|(file, value)| cgroups.limit(file, value).err());
        if let Some(error) = refused {
            end_leftovers(run, None, &spared, cgroups, notes);
            return Ok(Measured::nothing(setting_failed(&error)));
        }
        let directory = scratch.directory_path();
        let Held {
            guardian, journal, ..
        } = self.held()?;
        let environment = Environment {
            work: &trial.work,
            run,
            program: &options.program,
            scratch: directory.as_deref(),
            cgroups: &cgroups,
            guardian,
            interrupt: options.interrupt.as_ref(),
        };
        let server = match around::begin(&trial.work, &environment, raw_dir)? {
            Ok(server) => server,
            Err(outcome) => {
                end_leftovers(run, None, &spared, cgroups, notes);
                return Ok(Measured::nothing(outcome));
            }
        };
        let begun = Functions::begin(&options.root, &trial.work.functions, run, journal);
        let functions = match begun {
            Ok(functions) => functions,
            Err(error) => {
                if let Some(server) = server {
                    notes.extend(server.end()?);
                }
                end_leftovers(run, None, &spared, cgroups, notes);
                return Ok(Measured::nothing(setting_failed(&error)));
            }
        };
        let watched = monitors::Watched {
            root: &options.root,
            cgroups: cgroups.dirs(),
        };
        let (watchers, lost) = monitors::available(&trial.work.monitors, watched)?;
        notes.extend(lost);
        let oom_before = oom_kills(&options.root);
        let watch = match watchers.is_empty() {
            true => None,
            false => Some(MonitorThread::start(watchers, MONITOR_PERIOD)?),
        };
        let start_unix_ns = unix_ns();
        let start_raw_ns = watch
            .as_ref()
            .map_or_else(raw_ns, MonitorThread::start_raw_ns);
        let start_monotonic_ns =
            monotonic_ns().saturating_sub(raw_ns().saturating_sub(start_raw_ns));
        let clock_before = ahead_of_monotonic_ns();
        let cpu_before = thread_cpu_ns();
        let ended = runner::run_rounds(&environment, raw_dir, start_raw_ns);
        let end_raw_ns = raw_ns();
        let runner_cpu_ns = thread_cpu_ns().saturating_sub(cpu_before);
        let window_ns = end_raw_ns.saturating_sub(start_raw_ns);
        notes.extend(clock_jump(clock_before, ahead_of_monotonic_ns(), window_ns));
        let (series, overhead, lost) =
            watch.map_or_else(|| Ok(Default::default()), MonitorThread::stop)?;
        notes.extend(lost);
        keep_counts(functions, raw_dir)?;
        if let Some(server) = server {
            notes.extend(server.end()?);
        }
        let mut ended = ended?;
        let killed = cgroups.oom_kills().unwrap_or_default() > 0;
        end_leftovers(run, ended.group, &spared, cgroups, notes);
        let killed =
            killed || (oom_kills(&options.root) > oom_before && was_killed(&ended.outcome));
        if killed && ended.outcome != Outcome::Interrupted {
            ended.outcome = Outcome::OutOfMemory;
        }
        Ok(Measured {
            ended,
            window: Window {
                start_raw_ns,
                end_raw_ns,
                start_unix_ns,
                start_monotonic_ns: Some(start_monotonic_ns),
            },
            series,
            overhead: MonitorOverhead {
                runner_cpu_ns,
                ..overhead
            },
        })
    }
}

/// Writes the counts of each function beside the raw output, as the kernel printed them, and removes
/// the probes.
fn keep_counts(functions: Functions, raw_dir: &Path) -> Result<(), TestboxError> {
    let texts = functions.read();
    functions.end()?;
    for (place, text) in texts?.into_iter().enumerate() {
        let path = raw_dir.join(function_file(place));
        std::fs::write(&path, text).map_err(|error| TestboxError::at(&path, error))?;
    }
    Ok(())
}

/// Ends whatever a program left behind, by cgroup, group, environment and descent.
fn end_leftovers(
    run: &str,
    group: Option<i32>,
    spared: &HashSet<i32>,
    mut cgroups: TrialCgroups,
    notes: &mut Vec<String>,
) {
    let members = cgroups.remove().unwrap_or_else(|error| {
        // It is in the journal, which removes it at the end.
        notes.push(format!("the cgroup stays for now: {error}"));
        0
    });
    let carrying = Trials {
        group,
        ..Trials::of_run(run)
    }
    .end()
    .len();
    // They are seen from several sides: who was killed in the cgroup is reaped as an orphan.
    let left = carrying.max(members).max(strays::end_orphans(spared).len());
    if left > 0 {
        let processes = if left == 1 { "process" } else { "processes" };
        notes.push(format!(
            "{left} {processes} that the program left behind were ended"
        ));
    }
}

/// A setting that cannot be made fails the trial.
fn setting_failed(error: &TestboxError) -> Outcome {
    let hint = error.hint.as_ref().map(|hint| format!(" ({hint})"));
    Outcome::Failed {
        stage: Stage::Setup,
        reason: FailReason::Setting(format!("{error}{}", hint.unwrap_or_default())),
    }
}

/// The limits of the trial's cgroup that its settings ask for.
fn limits_of(root: &SysRoot, trial: &Trial) -> Result<Vec<(String, String)>, TestboxError> {
    let mut limits = Vec::new();
    for setting in &trial.work.settings {
        if let Target::Cgroup { file, value } = target(root, setting)? {
            limits.push((file, value));
        }
    }
    Ok(limits)
}

struct Measured {
    ended: Ended,
    window: Window,
    series: Vec<SeriesSet>,
    overhead: MonitorOverhead,
}

impl Measured {
    /// Of a trial that ended before its program was started.
    fn nothing(outcome: Outcome) -> Self {
        Self {
            ended: Ended {
                rounds: Vec::new(),
                group: None,
                outcome,
            },
            window: Window {
                start_unix_ns: unix_ns(),
                ..Window::default()
            },
            series: Vec::new(),
            overhead: MonitorOverhead::default(),
        }
    }
}

fn was_killed(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Failed {
            reason: FailReason::Signal(9) | FailReason::ExitCode(137),
            ..
        }
    )
}

fn make_cgroups(
    root: &SysRoot,
    name: &str,
    limits: &[String],
    journal: &mut Journal,
) -> Result<TrialCgroups, TestboxError> {
    let mut made = TrialCgroups::default();
    let mut failure = None;
    for dir in TrialCgroups::planned(root, name, limits) {
        journal.note(&Change::Cgroup { path: dir.clone() })?;
        if let Err(error) = made.make(dir) {
            failure = Some(error);
        }
    }
    match failure {
        Some(error) if made.is_empty() => Err(error),
        None if made.is_empty() => Err(TestboxError::new("no cgroup hierarchy is mounted")),
        _ => Ok(made),
    }
}

/// Kills of the out-of-memory killer on the whole machine since boot.
fn oom_kills(root: &SysRoot) -> u64 {
    let text = root.read("/proc/vmstat").unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or_default()
}

/// How far the time of day is ahead of the monotonic clock.
fn ahead_of_monotonic_ns() -> i64 {
    unix_ns().saturating_sub(i64::try_from(raw_ns()).unwrap_or(i64::MAX))
}

/// Says so when somebody set the time of day during the window. Times are measured on the
/// monotonic clock and right all the same; what reads the time of day may have been misled. Up to
/// a second and one in a thousand is what keeping time does by itself (adjtimex(2)).
fn clock_jump(before: i64, after: i64, window_ns: u64) -> Option<String> {
    let jump = after.saturating_sub(before);
    (jump.unsigned_abs() > 1_000_000_000 + window_ns / 1000).then(|| {
        format!(
            "the time of day was set {:.1} s {} during the trial",
            jump.unsigned_abs() as f64 / 1e9,
            if jump < 0 { "back" } else { "forward" }
        )
    })
}

fn unix_ns() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

impl Testbox for LocalTestbox {
    fn name(&self) -> &str {
        &self.name
    }

    fn facts(&mut self) -> Result<BoxFacts, TestboxError> {
        read_facts(&self.options.root, Some(&self.name))
    }

    fn prepare(&mut self, preparation: &Preparation) -> Result<(), TestboxError> {
        for setting in &preparation.settings {
            for check in settings::check(&self.options.root, setting)? {
                if let Some(problem) = check.problem {
                    return Err(problem);
                }
            }
        }
        let state_dir = &self.options.state_dir;
        let boot = boot_id(&self.options.root);
        let lock = MachineLock::take(state_dir, preparation.force)?;
        if !preparation.force && journal::is_living(state_dir) {
            return Err(TestboxError::new(
                "a run that was started with --force still uses this machine",
            )
            .hint("two runs disturb each other: wait for it, end it, or use --force"));
        }
        if lock.exclusive {
            // Whatever a run that died with its guardian left behind.
            journal::undo_all(state_dir, boot.as_ref())?;
        }
        let session = preparation.session.unwrap_or_default();
        let journal = Journal::begin(state_dir, session, boot)?;
        sys::wait_for_children();
        let children = strays::children();
        let guardian = Guardian::start(&self.options.program, &journal, &lock)?;
        let settings = Settings::default();
        self.held = Some(Held {
            lock,
            journal,
            guardian,
            settings,
            children,
            no_cgroup: None,
        });
        self.kernel_log = KernelLog::open(&self.options.root);
        sys::adopt_orphans()
            .map_err(|error| TestboxError::new(format!("cannot adopt orphans: {error}")))?;
        self.probe_cgroup()
    }

    fn run(&mut self, trial: &Trial, raw_dir: &Path) -> Result<Measurement, TestboxError> {
        // The session makes it ours alone: two processes may run one plan (`--force`).
        let session = trial
            .session
            .map(|session| session.short())
            .unwrap_or_default();
        let run = format!("{}-{}-{session}", trial.plan.short(), trial.index);
        let mut notes = Vec::new();
        self.guard(&mut notes)?;
        let refused = self.set_up(trial)?;
        let (mut scratch, refused) = match refused {
            None => self.make_scratch(trial, &run)?,
            refused => (Scratch::default(), refused),
        };
        if let Some(log) = &mut self.kernel_log {
            // What was logged between trials belongs to none of them.
            log.new_warnings();
        }
        let facts_before = self.facts()?;
        let set = settings::values(&self.options.root, &trial.work.settings);
        let measured = match refused {
            None => self.measure(trial, raw_dir, &run, &scratch, &mut notes)?,
            Some(outcome) => Measured::nothing(outcome),
        };
        let facts_after = self.facts()?;
        let still = settings::values(&self.options.root, &trial.work.settings);
        notes.extend(settings::changes(&set, &still));
        if let Err(error) = scratch.remove() {
            // It is in the journal, which removes it at the end.
            notes.push(format!("the trial's directory stays for now: {error}"));
        }
        let kernel_log = self
            .kernel_log
            .as_mut()
            .map(KernelLog::new_warnings)
            .unwrap_or_default();
        Ok(Measurement {
            outcome: measured.ended.outcome,
            window: measured.window,
            clock: ClockKind::Wall,
            rounds: measured.ended.rounds,
            facts_before,
            facts_after,
            kernel_log,
            series: measured.series,
            overhead: measured.overhead,
            notes,
        })
    }

    fn recover(&mut self) -> Result<Recovery, TestboxError> {
        let boot = boot_id(&self.options.root);
        match self.held.take() {
            Some(held) => {
                let recovery = journal::undo(held.journal.path(), boot.as_ref(), None)?;
                held.guardian.dismiss();
                drop(held.lock);
                Ok(recovery)
            }
            None => {
                let _lock = MachineLock::take(&self.options.state_dir, false)?;
                journal::undo_all(&self.options.state_dir, boot.as_ref())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_is_told() {
        const SECOND: i64 = 1_000_000_000;
        let hour = 3_600_000_000_000;
        assert_eq!(clock_jump(5, 5, 0), None);
        assert_eq!(clock_jump(0, SECOND, 0), None);
        assert_eq!(clock_jump(0, 4 * SECOND, hour), None, "slewed");
        let told = clock_jump(7 * SECOND, -3 * SECOND, 0).unwrap();
        assert!(told.contains("10.0 s back"), "{told}");
        let told = clock_jump(i64::MIN, i64::MAX, 0).unwrap();
        assert!(told.contains("forward"), "{told}");
    }
}
