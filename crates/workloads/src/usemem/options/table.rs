//! The options: what each is called, what it takes, what it sets.

use crate::arguments::{Effect, Spec, also, flag, value};

/// What a run of `usemem` is asked to do. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `-n`: processes; 0 as 1.
    pub processes: u64,
    /// `-t`: threads in each process; 0 as 1.
    pub threads: u64,
    /// `-b`: each task is bound to a CPU, in turn.
    pub bind: bool,
    /// `--numa-cpu`: tasks run on the CPUs of this node.
    pub numa_cpu: Option<u64>,
    /// `--numa-memory`: memory is taken from this node.
    pub numa_memory: Option<u64>,
    /// `-a`: memory comes from malloc and not from mmap.
    pub malloc: bool,
    /// `-f`: the file that is mapped, shared; `None` for a private mapping of `/dev/zero`.
    pub file: Option<String>,
    /// `--each-file`: process i maps the file of this name with `-i` behind it, made sparse.
    pub each_file: Option<String>,
    /// `--memfd`: a file in memory is mapped, shared.
    pub memfd: bool,
    /// `-B`: where in the file the mapping begins.
    pub offset: u64,
    /// `-w`: the file is opened for writing also where words are only read.
    pub open_rw: bool,
    /// `-F`: all pages are faulted in when memory is obtained.
    pub prefault: bool,
    /// `-P`: the parent obtains the memory, for all.
    pub prealloc: bool,
    /// `--touch-alloc`: each page is touched when memory was obtained, before the passes.
    pub touch_alloc: bool,
    /// `--init-time`: says how long obtaining memory took.
    pub init_time: bool,
    /// `--main-write-data`: the parent writes the memory that it obtained for all.
    pub main_write_data: bool,
    /// `--show-addr`: says where memory is.
    pub show_addr: bool,
    /// `-u`: memory is obtained in pieces of this size; 0 for one piece.
    pub unit: u64,
    /// `-j`: distance of two accesses, cut to whole words; 0 for each word.
    pub step: u64,
    /// `-r`: passes over the memory, at least 1.
    pub repeat: u64,
    /// `-o`: words are read instead of written.
    pub readonly: bool,
    /// `-R`: words are accessed in random order.
    pub random: bool,
    /// `--random-seed`: makes the random order the same in each run.
    pub random_seed: Option<u64>,
    /// `-e`: nanoseconds that a task waits after each page.
    pub delay_ns: u64,
    /// `-y`: all tasks wait for each other between two passes.
    pub sync_rw: bool,
    /// `-x`: all tasks wait for each other before memory is given back.
    pub sync_free: bool,
    /// `--first-access-speed`: a line for the first pass by itself.
    pub first_access_speed: bool,
    /// `-Z`: words are read once more after the passes.
    pub read_again: bool,
    /// `-M`: pages are locked in memory.
    pub mlock: bool,
    /// `-L`: System V shared memory, locked and unlocked at each pass.
    pub shm_lock: bool,
    /// `-S`: changed pages of the file are written back at each pass, and waited for.
    pub msync: bool,
    /// `-A`: the same without waiting.
    pub msync_async: bool,
    /// `-D`: the kernel is told at each pass that the file will be needed.
    pub advise: bool,
    /// `-E`: the mapping is moved ten times at each pass.
    pub remap: bool,
    /// `-N`: the kernel is asked at each pass which pages are in memory.
    pub mincore: bool,
    /// `-H`: the same of transparent huge pages.
    pub mincore_huge: bool,
    /// `--madv-thp`: transparent huge pages are asked for.
    pub madv_thp: bool,
    /// `--madv-pageout`: pages are pushed out after the passes.
    pub madv_pageout: bool,
    /// `--punch-holes`: every other page is given back after the passes.
    pub punch_holes: bool,
    /// `--fallocate-punch-holes`: every other page of the file is given back after the passes.
    pub fallocate_punch_holes: bool,
    /// What happens when SIGUSR1 comes, after the passes; nothing is waited for when absent.
    pub after_signal: AfterSignal,
    /// `--read-file`: files are read(2) in 4 KiB pieces and not mapped.
    pub read_file: bool,
    /// `--direct-write`: files are written past the page cache and not mapped.
    pub direct_write: bool,
    /// `--fresh`: files are cut to nothing before the clock starts.
    pub fresh: bool,
    /// `--truncate`: files are cut to nothing after the passes, and that is timed.
    pub truncate: bool,
    /// `--migrate`: nodes between which pages are moved after the passes.
    pub migrate: Option<(u64, u64)>,
    /// `--mbind`: node to which pages are bound and moved after the passes.
    pub mbind: Option<u64>,
    /// `--ksm`: the kernel merges equal pages, and that is timed.
    pub ksm: bool,
    /// `--pool-cycles`: so often the pool of 2 MB pages is emptied and filled to its size.
    pub pool_cycles: u64,
    /// `-T`: whole seconds after which a task stops early; 0 for never.
    pub runtime: u64,
    /// `-d`: the tool ends after the passes and its tasks go on.
    pub detach: bool,
    /// `-s`: seconds that a task sleeps before it ends.
    pub sleep: u64,
    /// `-g`: a task waits for a byte on standard input before it ends.
    pub getchar: bool,
    /// `-p`: a file for the pids of the tasks.
    pub pid_file: Option<String>,
    /// `-O`: anonymous memory, not a private mapping of /dev/zero.
    pub anonymous: bool,
    /// `-U`: memory of 2 MB pages from the pool.
    pub hugetlb: bool,
    /// `-q`: no dot for each repetition.
    pub quiet: bool,
    /// The operand: how much memory each task passes over.
    pub size: u64,
}

/// What a task does each time SIGUSR1 comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AfterSignal {
    /// `-W`: words are read.
    pub read: bool,
    /// `--signal-read-count`: so often; 0 as once.
    pub read_count: u64,
    /// `--signal-read-random`: in random order.
    pub read_random: bool,
    /// `--write-signal-write`: words are written.
    pub write: bool,
    /// `--signal-write-times`: so often; 0 as once.
    pub write_times: u64,
    /// `--signal-write-data`: with this value instead of their index.
    pub write_data: Option<u64>,
    /// `--signal-verify`: words must hold what was written.
    pub verify: bool,
    /// `--write-signal-madv-thp`: transparent huge pages are asked for.
    pub madv_thp: bool,
    /// `--signal-punch-holes`: every other page is given back.
    pub punch_holes: bool,
    /// `--signal-fork`: a child does it.
    pub fork: bool,
    /// `--signal-loop`: it is waited for again.
    pub again: bool,
    /// `--no-signal`: nothing is waited for, all happens at once.
    pub at_once: bool,
}

impl AfterSignal {
    /// Whether anything waits for the signal.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.read || self.write || self.madv_thp || self.punch_holes
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            processes: 0,
            threads: 0,
            bind: false,
            numa_cpu: None,
            numa_memory: None,
            malloc: false,
            file: None,
            each_file: None,
            memfd: false,
            offset: 0,
            open_rw: false,
            prefault: false,
            prealloc: false,
            touch_alloc: false,
            init_time: false,
            main_write_data: false,
            show_addr: false,
            unit: 0,
            step: 0,
            repeat: 1,
            readonly: false,
            random: false,
            random_seed: None,
            delay_ns: 0,
            sync_rw: false,
            sync_free: false,
            first_access_speed: false,
            read_again: false,
            mlock: false,
            shm_lock: false,
            msync: false,
            msync_async: false,
            advise: false,
            remap: false,
            mincore: false,
            mincore_huge: false,
            madv_thp: false,
            madv_pageout: false,
            punch_holes: false,
            fallocate_punch_holes: false,
            after_signal: AfterSignal::default(),
            read_file: false,
            direct_write: false,
            fresh: false,
            truncate: false,
            migrate: None,
            mbind: None,
            ksm: false,
            pool_cycles: 0,
            runtime: 0,
            detach: false,
            sleep: 0,
            getchar: false,
            pid_file: None,
            anonymous: false,
            hugetlb: false,
            quiet: false,
            size: 0,
        }
    }
}

/// The kernel's upper limit of process ids (PID_MAX_LIMIT on 64-bit machines).
const MOST_TASKS: u64 = 1 << 22;
/// Nodes that the kernel can be built for (MAX_NUMNODES).
const MOST_NODES: u64 = 1023;

pub(super) const TABLE: &[Spec<Options>] = &[
    value(
        Some('n'),
        "nproc",
        "N",
        Effect::Number(0, MOST_TASKS, |o, v| o.processes = v),
        "run N processes",
    ),
    value(
        Some('t'),
        "thread",
        "M",
        Effect::Number(0, MOST_TASKS, |o, v| o.threads = v),
        "run M threads in each process",
    ),
    flag(
        Some('b'),
        "bind",
        |o| o.bind = true,
        "bind each task to a CPU, in turn",
    ),
    value(
        None,
        "numa-cpu",
        "NODE",
        Effect::Number(0, MOST_NODES, |o, v| o.numa_cpu = Some(v)),
        "run on the CPUs of NODE",
    ),
    value(
        None,
        "numa-memory",
        "NODE",
        Effect::Number(0, MOST_NODES, |o, v| o.numa_memory = Some(v)),
        "take memory from NODE",
    ),
    flag(
        Some('a'),
        "malloc",
        |o| o.malloc = true,
        "obtain memory with malloc",
    ),
    value(
        Some('f'),
        "file",
        "PATH",
        Effect::Text(|o, v| o.file = Some(v)),
        "map this file, shared; made of holes if missing",
    ),
    value(
        None,
        "each-file",
        "PREFIX",
        Effect::Text(|o, v| o.each_file = Some(v)),
        "process i maps PREFIX-i, which is made",
    ),
    flag(
        None,
        "memfd",
        |o| o.memfd = true,
        "map a file in memory, shared",
    ),
    value(
        Some('B'),
        "offset",
        "SIZE",
        Effect::Size(|o, v| o.offset = v),
        "begin the mapping there in the file",
    ),
    flag(
        Some('w'),
        "open-rw",
        |o| o.open_rw = true,
        "open the file for writing even to read",
    ),
    flag(
        Some('F'),
        "prefault",
        |o| o.prefault = true,
        "fault all pages in when memory is mapped",
    ),
    flag(
        Some('P'),
        "prealloc",
        |o| o.prealloc = true,
        "map once, before the tasks are made",
    ),
    flag(
        None,
        "touch-alloc",
        |o| o.touch_alloc = true,
        "touch each page when memory was obtained",
    ),
    flag(
        None,
        "init-time",
        |o| o.init_time = true,
        "say how long obtaining memory took",
    ),
    flag(
        None,
        "main-write-data",
        |o| o.main_write_data = true,
        "the parent writes what it mapped; needs -P",
    ),
    flag(
        None,
        "show-addr",
        |o| o.show_addr = true,
        "say where memory is",
    ),
    value(
        Some('u'),
        "unit",
        "SIZE",
        Effect::Size(|o, v| o.unit = v),
        "map in pieces of SIZE",
    ),
    value(
        Some('j'),
        "step",
        "SIZE",
        Effect::Size(|o, v| o.step = v),
        "access one word in each SIZE bytes",
    ),
    value(
        Some('r'),
        "repeat",
        "N",
        Effect::Number(1, u64::MAX, |o, v| o.repeat = v),
        "pass over the memory N times; writes are verified",
    ),
    flag(
        Some('o'),
        "readonly",
        |o| o.readonly = true,
        "read words instead of writing them",
    ),
    flag(
        Some('R'),
        "random",
        |o| o.random = true,
        "access words in random order",
    ),
    value(
        None,
        "random-seed",
        "N",
        Effect::Number(0, u32::MAX as u64, |o, v| o.random_seed = Some(v)),
        "the same random order in each run",
    ),
    value(
        Some('e'),
        "delay",
        "TIME",
        Effect::Time(|o, v| o.delay_ns = v),
        "wait after each page: 500ns, 20us, 1ms",
    ),
    flag(
        Some('y'),
        "sync-rw",
        |o| o.sync_rw = true,
        "all tasks meet between two passes",
    ),
    flag(
        Some('x'),
        "sync-free",
        |o| o.sync_free = true,
        "all tasks meet before memory is freed",
    ),
    flag(
        None,
        "first-access-speed",
        |o| o.first_access_speed = true,
        "a line for the first pass by itself",
    ),
    flag(
        Some('Z'),
        "read-again",
        |o| o.read_again = true,
        "read words once more after the passes, timed",
    ),
    flag(
        Some('M'),
        "mlock",
        |o| o.mlock = true,
        "lock pages in memory",
    ),
    also(
        Some('L'),
        "lock",
        "Lock",
        |o| o.shm_lock = true,
        "System V memory, locked and unlocked at each pass",
    ),
    flag(
        Some('S'),
        "msync",
        |o| o.msync = true,
        "write changed pages back at each pass, and wait",
    ),
    flag(
        Some('A'),
        "msync-async",
        |o| o.msync_async = true,
        "the same without waiting",
    ),
    also(
        Some('D'),
        "advise",
        "advice",
        |o| o.advise = true,
        "say at each pass that the file will be needed",
    ),
    flag(
        Some('E'),
        "remap",
        |o| o.remap = true,
        "move the mapping ten times at each pass",
    ),
    flag(
        Some('N'),
        "mincore",
        |o| o.mincore = true,
        "ask at each pass which pages are in memory",
    ),
    also(
        Some('H'),
        "mincore-hgpg",
        "mncr_hgpgs",
        |o| o.mincore_huge = true,
        "the same of transparent huge pages",
    ),
    flag(
        None,
        "madv-thp",
        |o| o.madv_thp = true,
        "ask for transparent huge pages",
    ),
    flag(
        None,
        "madv-pageout",
        |o| o.madv_pageout = true,
        "push pages out after the passes",
    ),
    flag(
        None,
        "punch-holes",
        |o| o.punch_holes = true,
        "give every other page back after the passes",
    ),
    flag(
        None,
        "fallocate-punch-holes",
        |o| o.fallocate_punch_holes = true,
        "the same in the file",
    ),
    flag(
        Some('W'),
        "write-signal-read",
        |o| o.after_signal.read = true,
        "read words when SIGUSR1 comes after the passes",
    ),
    value(
        None,
        "signal-read-count",
        "N",
        Effect::Number(1, u64::MAX, |o, v| o.after_signal.read_count = v),
        "so often",
    ),
    flag(
        None,
        "signal-read-random",
        |o| o.after_signal.read_random = true,
        "in random order",
    ),
    flag(
        None,
        "write-signal-write",
        |o| o.after_signal.write = true,
        "write words when SIGUSR1 comes",
    ),
    value(
        None,
        "signal-write-times",
        "N",
        Effect::Number(1, u64::MAX, |o, v| o.after_signal.write_times = v),
        "so often",
    ),
    value(
        None,
        "signal-write-data",
        "N",
        Effect::Number(0, u64::MAX, |o, v| o.after_signal.write_data = Some(v)),
        "write this value then",
    ),
    flag(
        None,
        "signal-verify",
        |o| o.after_signal.verify = true,
        "words must then hold what was written",
    ),
    flag(
        None,
        "write-signal-madv-thp",
        |o| o.after_signal.madv_thp = true,
        "ask for huge pages when SIGUSR1 comes",
    ),
    flag(
        None,
        "signal-punch-holes",
        |o| o.after_signal.punch_holes = true,
        "give every other page back when SIGUSR1 comes",
    ),
    flag(
        None,
        "signal-fork",
        |o| o.after_signal.fork = true,
        "let a child do it",
    ),
    flag(
        None,
        "signal-loop",
        |o| o.after_signal.again = true,
        "wait for the signal again and again",
    ),
    flag(
        None,
        "no-signal",
        |o| o.after_signal.at_once = true,
        "do at once what SIGUSR1 would start",
    ),
    flag(
        None,
        "read-file",
        |o| o.read_file = true,
        "read(2) the file in 4 KiB pieces",
    ),
    flag(
        None,
        "direct-write",
        |o| o.direct_write = true,
        "write the file past the page cache",
    ),
    flag(
        None,
        "fresh",
        |o| o.fresh = true,
        "cut files to nothing before the clock starts",
    ),
    flag(
        None,
        "truncate",
        |o| o.truncate = true,
        "cut the file to nothing after the passes, timed",
    ),
    value(
        None,
        "migrate",
        "FROM:TO",
        Effect::Pair(|o, from, to| o.migrate = Some((from, to))),
        "move pages between nodes after the passes, timed",
    ),
    value(
        None,
        "mbind",
        "NODE",
        Effect::Number(0, MOST_NODES, |o, v| o.mbind = Some(v)),
        "bind pages to NODE after the passes, timed",
    ),
    flag(
        None,
        "ksm",
        |o| o.ksm = true,
        "let the kernel merge equal pages, timed",
    ),
    value(
        None,
        "pool-cycles",
        "N",
        Effect::Number(1, 1 << 32, |o, v| o.pool_cycles = v),
        "empty and fill the 2 MB pool N times; kill -9 leaves it as is",
    ),
    value(
        Some('T'),
        "runtime",
        "SECONDS",
        Effect::Number(0, u64::MAX, |o, v| o.runtime = v),
        "stop each task after SECONDS",
    ),
    flag(
        Some('d'),
        "detach",
        |o| o.detach = true,
        "end after the passes; the tasks go on",
    ),
    value(
        Some('s'),
        "sleep",
        "SECONDS",
        Effect::Number(0, 1 << 32, |o, v| o.sleep = v),
        "sleep before ending",
    ),
    flag(
        Some('g'),
        "getchar",
        |o| o.getchar = true,
        "wait for a byte on standard input before ending",
    ),
    value(
        Some('p'),
        "pid-file",
        "PATH",
        Effect::Text(|o, v| o.pid_file = Some(v)),
        "write the pids of the tasks there",
    ),
    flag(
        Some('O'),
        "anonymous",
        |o| o.anonymous = true,
        "map anonymous memory, not /dev/zero",
    ),
    flag(
        Some('U'),
        "hugetlb",
        |o| o.hugetlb = true,
        "map 2 MB pages of the pool; needs -O",
    ),
    flag(
        Some('q'),
        "quiet",
        |o| o.quiet = true,
        "print no dot for each repetition",
    ),
    value(
        Some('m'),
        "megabytes",
        "N",
        Effect::Number(0, 1 << 40, |o, v| o.size = v << 20),
        "the size in MiB, instead of the operand",
    ),
    value(Some('h'), "help", "", Effect::Help, "print this help"),
];
