//! The parent: it maps what is shared, makes the tasks, starts them together, and waits.

use super::options::Options;
use super::task::{self, Job};
use super::{files, hugetlb};
use crate::sys::{self, Ending, Fork, Mapping, Meeting, Region, Source};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often the parent looks for a task that died before the start.
const PATIENCE: Duration = Duration::from_millis(100);

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Memory could not be mapped.
    #[error("cannot map {bytes} bytes: {source}\nhint: {hint}")]
    Map {
        /// What was asked for.
        bytes: u64,
        /// What the kernel said.
        source: io::Error,
        /// What can be done.
        hint: &'static str,
    },
    /// The pool of 2 MB pages is too small for all tasks.
    #[error(
        "{needed} huge pages of 2 MB are needed, but {available} are free\n\
         hint: raise /proc/sys/vm/nr_hugepages by {}", needed - available
    )]
    HugePages {
        /// Pages that all tasks and the parent take together.
        needed: u64,
        /// Pages that the pool can hand out now.
        available: u64,
    },
    /// A task has no memory to pass over.
    #[error("a task has no memory")]
    NoMemory,
    /// Memory could not be given back.
    #[error("cannot unmap memory: {0}")]
    Unmap(io::Error),
    /// A word did not hold what an earlier pass had written.
    #[error("Data wrong at offset {offset:#x}")]
    DataWrong {
        /// Byte offset in the unit.
        offset: u64,
    },
    /// A system call failed that tasks need or an option asks for.
    #[error("cannot {what}: {source}\nhint: {hint}")]
    Call {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
        /// What can be done.
        hint: &'static str,
    },
    /// A file could not be used.
    #[error("{}: {source}\nhint: {hint}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
        /// What can be done.
        hint: &'static str,
    },
    /// The kernel merges no pages.
    #[error("KSM does not run\nhint: echo 1 > /sys/kernel/mm/ksm/run")]
    KsmStopped,
    /// The kernel merges pages, but none of these.
    #[error("no page was merged\nhint: raise /sys/kernel/mm/ksm/pages_to_scan, or --runtime")]
    NothingMerged,
    /// Pages stay in memory that were to be pushed out.
    #[error("pages cannot be pushed out: there is no swap\nhint: make some, see swapon(8)")]
    NoSwap,
    /// A thread ended by itself, which is a fault of this program.
    #[error("a thread panicked")]
    Panicked,
    /// The pool of 2 MB pages did not grow as far as was asked for.
    #[error(
        "the pool has {got} of {wanted} huge pages of 2 MB\n\
         hint: ask for less, or free memory that is in one piece"
    )]
    PoolSize {
        /// Pages asked for.
        wanted: u64,
        /// Pages that it then had.
        got: u64,
    },
    /// A child that does what a signal started failed; it said why itself.
    #[error("the child that a signal started failed with exit status {status}")]
    ChildFailed {
        /// Its exit status.
        status: i32,
    },
    /// A child that does what a signal started was killed.
    #[error("the child that a signal started was killed by signal {signal}")]
    ChildKilled {
        /// The signal's number.
        signal: i32,
    },
    /// The parent could not follow its tasks.
    #[error("cannot wait for the tasks: {0}")]
    Wait(io::Error),
    /// A line could not be written.
    #[error("cannot write to standard output: {0}")]
    Write(io::Error),
    /// The parent or another task is gone before the start.
    #[error("a task ended before all were ready; nothing was measured")]
    NotStarted,
    /// A task failed; it said why itself.
    #[error("process {process} of {processes} failed with exit status {status}")]
    TaskFailed {
        /// Its number, from 1.
        process: usize,
        /// How many there were.
        processes: usize,
        /// Its exit status.
        status: i32,
    },
    /// A task was killed.
    #[error("process {process} of {processes} was killed by signal {signal}{hint}")]
    TaskKilled {
        /// Its number, from 1.
        process: usize,
        /// How many there were.
        processes: usize,
        /// The signal's number.
        signal: i32,
        /// What can be done, on a line of its own; empty where nothing is known.
        hint: &'static str,
    },
}

impl RunError {
    /// Makes the error of a system call that fails, for `map_err`.
    pub(super) fn call(what: &'static str, hint: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Call { what, source, hint }
    }
}

/// The two ends of the start: tasks report to the parent and wait until it opens the gate; and the
/// end of their passes, which they report as well.
struct Gate {
    ready: (PipeReader, PipeWriter),
    open: (PipeReader, PipeWriter),
    reported: (PipeReader, PipeWriter),
}

/// A task's side of the gate, without the ends that would keep it from seeing the parent die.
#[derive(Debug)]
struct Seat {
    ready: PipeWriter,
    open: PipeReader,
    reported: PipeWriter,
}

impl Gate {
    fn new() -> Result<Self, RunError> {
        let hint = "raise the limit of open files (ulimit -n)";
        let pipe = || io::pipe().map_err(RunError::call("make a pipe", hint));
        Ok(Self {
            ready: pipe()?,
            open: pipe()?,
            reported: pipe()?,
        })
    }

    fn seat(self) -> Seat {
        Seat {
            ready: self.ready.1,
            open: self.open.0,
            reported: self.reported.1,
        }
    }

    /// Waits until `tasks` tasks are ready, then starts them.
    fn start(&mut self, tasks: u64) -> Result<(), RunError> {
        marks(&self.ready.0, tasks, || match sys::a_child_has_ended() {
            true => Err(RunError::NotStarted),
            false => Ok(()),
        })?;
        self.open.1.write_all(b"*").map_err(RunError::Wait)
    }

    /// Waits until `tasks` tasks have told of their passes; one that fails before is the error.
    fn wait_for_reports(&self, tasks: u64, children: &[i32]) -> Result<(), RunError> {
        let mut living = Living::new(children);
        marks(&self.reported.0, tasks, || {
            while sys::a_child_has_ended() {
                let (pid, ending) = sys::wait_any().map_err(RunError::Wait)?;
                living.ended(pid, ending, false, false)?;
            }
            Ok(())
        })
    }
}

/// Reads a mark for each of `tasks` tasks; `meanwhile` is asked when none comes for a while.
fn marks(
    mut pipe: &PipeReader,
    tasks: u64,
    mut meanwhile: impl FnMut() -> Result<(), RunError>,
) -> Result<(), RunError> {
    let mut waiting = tasks;
    while waiting > 0 {
        if sys::readable(pipe, Some(PATIENCE)).map_err(RunError::Wait)? {
            let mut marks = [0; 512];
            let most = usize::try_from(waiting).map_or(512, |left| left.min(512));
            let (chunk, _) = marks.split_at_mut(most);
            waiting -= pipe.read(chunk).map_err(RunError::Wait)? as u64;
        } else {
            meanwhile()?;
        }
    }
    Ok(())
}

impl Seat {
    /// Reports ready, and returns when the gate opens.
    fn wait(&self) -> Result<(), RunError> {
        (&self.ready).write_all(b"*").map_err(RunError::Write)?;
        match sys::readable(&self.open, None) {
            Ok(true) => Ok(()),
            _ => Err(RunError::NotStarted),
        }
    }
}

/// Runs all tasks, and returns when the last has ended.
///
/// # Errors
/// [`RunError`]: of the parent's own work, or else of the first task that failed.
pub(super) fn run(options: &Options) -> Result<(), RunError> {
    if options.pool_cycles > 0 {
        return hugetlb::cycle(options.size, options.pool_cycles, Path::new("/"));
    }
    check_huge_pages(options, Path::new("/"))?;
    use_nodes(options, Path::new("/"))?;
    if options.after_signal.is_any() && !options.after_signal.at_once {
        sys::count_usr1().map_err(RunError::call("handle SIGUSR1", "give --no-signal"))?;
    }
    if options.fresh {
        files::cut_all(options)?;
    }
    let start = sys::now();
    let file = files::of_all(options)?;
    let needs_zero =
        !(options.anonymous || options.malloc || options.shm_lock || options.has_file());
    let zero = match needs_zero {
        true => Some(File::open("/dev/zero").map_err(RunError::call(
            "open /dev/zero",
            "-O takes anonymous memory instead",
        ))?),
        false => None,
    };
    let meeting = |wanted| meeting_of(options, wanted);
    let (between_passes, before_free) = (meeting(options.sync_rw)?, meeting(options.sync_free)?);
    let mut job = Job {
        options,
        start,
        mapping: Mapping {
            source: source(options, file.as_ref(), zero.as_ref()),
            populate: options.prefault,
            hugetlb: options.hugetlb,
            advise_huge: options.madv_thp || options.mincore_huge,
        },
        file: file.as_ref(),
        shared: None,
        between_passes: between_passes.as_ref(),
        before_free: before_free.as_ref(),
        reported: None,
    };
    let shared: Option<Region> = match options.prealloc {
        true if options.size > 0 => Some(prealloc(&job)?),
        _ => None,
    };
    job.shared = shared.as_ref();
    run_processes(&job)
}

/// Where memory comes from, as the options say.
fn source<'a>(options: &Options, file: Option<&'a File>, zero: Option<&'a File>) -> Source<'a> {
    match (file, zero) {
        (Some(file), _) => Source::Shared {
            file,
            offset: options.offset,
            writable: options.writes(),
        },
        _ if options.shm_lock => Source::SystemV,
        _ if options.malloc => Source::Malloc,
        (None, Some(zero)) => Source::Private(zero),
        (None, None) => Source::Anonymous,
    }
}

/// Memory that the parent obtains for all, and writes if that was asked for.
fn prealloc(job: &Job<'_>) -> Result<Region, RunError> {
    let began = sys::now();
    let region = job.map(job.options.size)?;
    task::prepare(job.options, &region, job.options.size)?;
    if job.options.main_write_data {
        task::fill(&region, job.options.size);
    }
    if job.options.init_time {
        let usecs = sys::now().saturating_sub(began).as_micros();
        task::say(&format!("{usecs} usecs to obtain memory\n"))?;
    }
    Ok(region)
}

/// Lets everything that follows run on, and take memory from, the nodes that were asked for.
fn use_nodes(options: &Options, root: &Path) -> Result<(), RunError> {
    if let Some(node) = options.numa_cpu {
        let path = root.join(format!("sys/devices/system/node/node{node}/cpulist"));
        let failed = |source| RunError::File {
            path: path.clone(),
            source,
            hint: "see /sys/devices/system/node/online for the nodes that there are",
        };
        let list = std::fs::read_to_string(&path).map_err(failed)?;
        let cpus = cpus_of(&list).ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
        let hint = "the node may have no CPU, or none that is allowed";
        sys::run_on(&cpus).map_err(RunError::call("run on the CPUs of a node", hint))?;
    }
    if let Some(node) = options.numa_memory {
        let hint = "see /sys/devices/system/node/has_memory for the nodes that have memory";
        let bound = sys::take_memory_from(node);
        bound.map_err(RunError::call("take memory from a node", hint))?;
    }
    Ok(())
}

/// The CPUs of a list such as `0-3,8`.
fn cpus_of(list: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

fn meeting_of(options: &Options, wanted: bool) -> Result<Option<Meeting>, RunError> {
    if !wanted {
        return Ok(None);
    }
    let tasks = options
        .processes
        .max(1)
        .saturating_mul(options.threads.max(1));
    let tasks = u32::try_from(tasks).unwrap_or(u32::MAX);
    let meeting = Meeting::of(tasks);
    meeting.map(Some).map_err(RunError::call(
        "map a page for all tasks",
        "leave -y and -x out",
    ))
}

/// Forks the processes, starts their tasks together and waits for all.
fn run_processes(job: &Job<'_>) -> Result<(), RunError> {
    let threads = job.options.threads.max(1);
    let processes = job.options.processes.max(1);
    let mut gate = Gate::new()?;
    let parent = sys::own_pid();
    let mut children = Vec::new();
    for process in 0..processes {
        match sys::fork() {
            Ok(Fork::Parent(pid)) => children.push(pid),
            // Tasks that nobody waits for would keep their memory.
            Ok(Fork::Child) if !job.options.detach && !sys::end_with_parent(parent) => {
                sys::exit_now(1)
            }
            Ok(Fork::Child) => child(job, &gate.seat(), process),
            Err(source) => {
                abandon(&children);
                return Err(RunError::Call {
                    what: "fork",
                    source,
                    hint: "lower -n, or raise the limit of processes (ulimit -u, kernel.pid_max)",
                });
            }
        }
    }
    let tasks = processes * threads;
    let mut started = write_pids(job.options, &children).and_then(|()| gate.start(tasks));
    if job.options.detach {
        started = started.and_then(|()| gate.wait_for_reports(tasks, &children));
    }
    if let Err(error) = started {
        abandon(&children);
        return Err(error);
    }
    if job.options.detach {
        return Ok(());
    }
    wait_for(&children, job)?;
    match job.options.size {
        0 => {
            let usecs = sys::now().saturating_sub(job.start).as_micros();
            task::say(&format!("{processes} processes in {usecs} usecs\n"))
        }
        _ => Ok(()),
    }
}

/// Writes the pids of the processes into the file that was asked for, one on a line.
fn write_pids(options: &Options, children: &[i32]) -> Result<(), RunError> {
    let Some(path) = &options.pid_file else {
        return Ok(());
    };
    let lines: String = children.iter().map(|pid| format!("{pid}\n")).collect();
    std::fs::write(path, lines).map_err(|source| RunError::File {
        path: PathBuf::from(path),
        source,
        hint: "see that its directory can be written",
    })
}

/// The life of the child process with this index: its threads' tasks, or its one task.
fn child(job: &Job<'_>, seat: &Seat, process: u64) -> ! {
    match of_process(job, seat, process) {
        Ok(()) => sys::exit_now(0),
        Err(error) => {
            sys::complain(
                super::NAME,
                &format_args!("process {}: {error}", process + 1),
            );
            sys::exit_now(1)
        }
    }
}

/// All that the process with this index does, with its own file if it has one.
fn of_process(job: &Job<'_>, seat: &Seat, process: u64) -> Result<(), RunError> {
    let path = files::path_of(job.options, process);
    let file = match &path {
        Some(path) => Some(files::open(path, job.options, true)?),
        None => None,
    };
    let mut job = *job;
    job.reported = Some(&seat.reported);
    if let Some(file) = &file {
        job.mapping.source = source(job.options, Some(file), None);
        job.file = Some(file);
    }
    match job.options.threads {
        0 | 1 => seat.wait().and_then(|()| job.work(process))?,
        threads => run_threads(&job, seat, process * threads, threads)?,
    }
    match path.filter(|_| job.options.truncate) {
        Some(path) => {
            let bytes = files::bytes_in_memory(&path, job.options)?;
            task::say_timed(bytes, "truncated", files::truncate(&path)?)
        }
        None => Ok(()),
    }
}

/// Runs `threads` tasks as threads, and returns the first error.
fn run_threads(job: &Job<'_>, seat: &Seat, first: u64, threads: u64) -> Result<(), RunError> {
    std::thread::scope(|scope| {
        let mut tasks = Vec::new();
        for index in first..first + threads {
            let task = std::thread::Builder::new().spawn_scoped(scope, move || {
                seat.wait()
                    .and_then(|()| job.work(index))
                    .inspect_err(|error| {
                        // The others may wait for this one; it is over for all of them.
                        sys::complain(super::NAME, &format_args!("thread {}: {error}", index + 1));
                        sys::exit_now(1)
                    })
            });
            match task {
                Ok(task) => tasks.push(task),
                Err(source) => {
                    // Leaving the scope would join threads that wait for this one.
                    sys::complain(
                        super::NAME,
                        &RunError::Call {
                            what: "make a thread",
                            source,
                            hint: "lower -t, or raise kernel.threads-max and vm.max_map_count",
                        },
                    );
                    sys::exit_now(1)
                }
            }
        }
        let mut result = Ok(());
        for task in tasks {
            result = result.and(task.join().unwrap_or(Err(RunError::Panicked)));
        }
        result
    })
}

/// Kills the children of a run that cannot start.
fn abandon(children: &[i32]) {
    for child in children {
        sys::kill(*child);
    }
    for _ in children {
        // A child that is gone already is what is wanted.
        let _gone = sys::wait_any();
    }
}

/// Children that were not waited for yet, with their numbers from 1.
struct Living {
    numbers: BTreeMap<i32, usize>,
    processes: usize,
}

impl Living {
    fn new(children: &[i32]) -> Self {
        Self {
            numbers: children.iter().copied().zip(1..).collect(),
            processes: children.len(),
        }
    }

    /// Takes note of one that has ended; its failure is the error.
    fn ended(
        &mut self,
        pid: i32,
        ending: Ending,
        hugetlb: bool,
        has_file: bool,
    ) -> Result<(), RunError> {
        let process = self.numbers.remove(&pid).unwrap_or(0);
        let processes = self.processes;
        match ending {
            Ending::Exited(0) => Ok(()),
            Ending::Exited(status) => Err(RunError::TaskFailed {
                process,
                processes,
                status,
            }),
            Ending::Signalled(signal) => Err(RunError::TaskKilled {
                process,
                processes,
                signal,
                hint: match signal {
                    libc::SIGBUS if hugetlb => {
                        "\nhint: the pool of huge pages ran empty; raise /proc/sys/vm/nr_hugepages"
                    }
                    libc::SIGBUS if has_file => {
                        "\nhint: the file became shorter, or its file system is full"
                    }
                    libc::SIGKILL => "\nhint: see the kernel log; it may have been out of memory",
                    _ => "",
                },
            }),
        }
    }
}

/// Waits for all children; an error is that of the first one that failed.
fn wait_for(children: &[i32], job: &Job<'_>) -> Result<(), RunError> {
    let others_wait = job.between_passes.is_some() || job.before_free.is_some();
    let (hugetlb, has_file) = (job.options.hugetlb, job.options.has_file());
    let mut living = Living::new(children);
    let mut result = Ok(());
    while !living.numbers.is_empty() {
        let (pid, ending) = sys::wait_any().map_err(RunError::Wait)?;
        let ended = living.ended(pid, ending, hugetlb, has_file);
        if ended.is_err() && result.is_ok() && others_wait {
            // They would wait for the one that is gone for ever.
            living.numbers.keys().for_each(|child| sys::kill(*child));
        }
        result = result.and(ended);
    }
    result
}

/// Refuses to start when tasks would die of an empty pool; `root` is normally `/`.
fn check_huge_pages(options: &Options, root: &Path) -> Result<(), RunError> {
    if !options.hugetlb {
        return Ok(());
    }
    let needed = huge_pages_needed(options);
    match hugetlb::available(root) {
        Some(available) if available < needed => Err(RunError::HugePages { needed, available }),
        _ => Ok(()),
    }
}

/// Huge pages that all tasks take at the same time.
///
/// Memory that is shared by threads counts once per process; that of the parent is copied by
/// each child that writes to it, and is faulted in anew by each that reads unless the parent has
/// populated it.
fn huge_pages_needed(options: &Options) -> u64 {
    let processes = options.processes.max(1);
    if options.prealloc {
        let copies = match options.readonly && options.prefault {
            true => 1,
            false => processes.saturating_add(1),
        };
        return hugetlb::pages(options.size).saturating_mul(copies);
    }
    let per_task = match options.unit_bytes() {
        0 => 0,
        unit => (options.size / unit)
            .saturating_mul(hugetlb::pages(unit))
            .saturating_add(hugetlb::pages(options.size % unit)),
    };
    let tasks = processes.saturating_mul(options.threads.max(1));
    per_task.saturating_mul(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn huge(size: u64) -> Options {
        Options {
            size,
            anonymous: true,
            hugetlb: true,
            ..Options::default()
        }
    }

    #[test]
    fn each_child_that_writes_copies_what_the_parent_has() {
        let cow = Options {
            processes: 2,
            prealloc: true,
            prefault: true,
            ..huge(GIB)
        };
        assert_eq!(huge_pages_needed(&cow), 3 * 512);
        let reading = Options {
            readonly: true,
            ..cow.clone()
        };
        assert_eq!(huge_pages_needed(&reading), 512);
        let lazy = Options {
            prefault: false,
            ..reading
        };
        assert_eq!(huge_pages_needed(&lazy), 3 * 512);
    }

    #[test]
    fn tasks_that_map_for_themselves_round_each_unit_up() {
        let own = Options {
            processes: 2,
            threads: 3,
            unit: 3 << 20,
            ..huge(7 << 20)
        };
        // Units of 3, 3 and 1 MiB are 2 + 2 + 1 pages.
        assert_eq!(huge_pages_needed(&own), 6 * 5);
        assert_eq!(huge_pages_needed(&huge(0)), 0);
        assert_eq!(huge_pages_needed(&huge(1)), 1);
    }

    #[test]
    fn a_list_of_cpus_is_read_and_anything_else_is_none() {
        assert_eq!(cpus_of("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cpus_of("\n"), Some(Vec::new()));
        assert_eq!(cpus_of("0-x"), None);
    }

    #[test]
    fn a_node_that_is_not_there_is_an_error_with_its_path() {
        let options = Options {
            numa_cpu: Some(77),
            ..huge(0)
        };
        let root = tempfile::tempdir().expect("a temporary directory");
        let error = use_nodes(&options, root.path()).expect_err("no node");
        assert!(error.to_string().contains("node77/cpulist"));
    }

    #[test]
    fn too_few_pages_are_an_error_that_says_how_many() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let pool = root.path().join("sys/kernel/mm/hugepages/hugepages-2048kB");
        std::fs::create_dir_all(&pool).expect("a fake pool");
        for (name, value) in [
            ("free_hugepages", "511"),
            ("resv_hugepages", "0"),
            ("surplus_hugepages", "0"),
            ("nr_overcommit_hugepages", "0"),
        ] {
            std::fs::write(pool.join(name), value).expect("a fake count");
        }
        let error = check_huge_pages(&huge(GIB), root.path()).expect_err("one page is missing");
        let text = error.to_string();
        assert!(text.starts_with("512 huge pages of 2 MB are needed, but 511 are free"));
        assert!(text.ends_with("hint: raise /proc/sys/vm/nr_hugepages by 1"));
        assert!(check_huge_pages(&huge(GIB - (2 << 20)), root.path()).is_ok());
        let small = Options {
            hugetlb: false,
            ..huge(GIB)
        };
        assert!(check_huge_pages(&small, root.path()).is_ok());
    }
}
