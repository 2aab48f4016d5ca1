use super::activity::Snapshot;
use super::*;
use std::collections::HashSet;
use std::fs;

/// A made-up machine, its state directory and its home.
struct Machine {
    dir: tempfile::TempDir,
}

/// Between the two snapshots of a made-up machine.
const SECOND_NS: u64 = 1_000_000_000;

impl Machine {
    /// Nothing but what every machine has.
    fn new() -> Self {
        let machine = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        machine.put("/proc/sys/kernel/osrelease", "6.1.0-made-up\n");
        machine.put("/proc/self/status", "Cpus_allowed_list:\t0-3\n");
        machine.put(
            "/proc/meminfo",
            "MemTotal: 8388608 kB\nMemAvailable: 8000000 kB\nDirty: 64 kB\nWriteback: 0 kB\n\
             SwapTotal: 0 kB\nSwapFree: 0 kB\n",
        );
        machine.put("/proc/stat", "cpu 100 0 100 800 0 0 0 0 0 0\ncpu0 1\n");
        machine
    }

    fn put(&self, path: &str, text: &str) -> &Self {
        let path = self.dir.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// A process with so many ticks of CPU time.
    fn process(&self, pid: i32, name: &str, ticks: u64) -> &Self {
        let stat = format!("{pid} ({name}) R 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 55 0 0");
        self.put(&format!("/proc/{pid}/stat"), &stat)
    }

    fn look(&self, meanwhile: impl FnOnce(&Self)) -> Vec<Finding> {
        let root = SysRoot::at(self.dir.path());
        let before = Snapshot::at(&root, 0);
        meanwhile(self);
        let after = Snapshot::at(&root, SECOND_NS);
        let home = self.dir.path().join("home/of/runs");
        let places = Places {
            root: &root,
            state_dir: &self.dir.path().join("state"),
            home: Some(&home),
        };
        let facts = read_facts(&root, None).unwrap();
        findings(&places, &facts, &before, &after)
    }

    /// What one check says, if it says anything.
    fn says(&self, check: &str) -> Option<Finding> {
        let mut found = self.look(|_| {});
        found.retain(|finding| finding.check == check);
        assert!(found.len() < 2, "{found:?}");
        found.pop()
    }

    #[track_caller]
    fn is(&self, check: &str, level: Level, what: &str) -> Finding {
        let found = self.says(check).unwrap_or_else(|| panic!("{check}"));
        assert_eq!((found.level, found.what.as_str()), (level, what));
        let advised = found.hint.is_some();
        assert_eq!(advised, level > Level::Ok, "advice is for what is not well");
        found
    }
}

#[test]
fn what_a_machine_does_not_have_is_not_talked_about() {
    let machine = Machine::new();
    for check in [
        "load",
        "steal",
        "power",
        "throttling",
        "temperature",
        "governor",
        "boost",
        "smt",
        "virtual",
        "thp",
        "numa-balancing",
        "clock",
        "aslr",
        "perf",
        "nmi-watchdog",
        "ksm",
    ] {
        assert_eq!(machine.says(check), None, "{check}");
    }
}

#[test]
fn a_machine_that_cannot_be_read_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let places = Places {
        root: &SysRoot::at(dir.path()),
        state_dir: dir.path(),
        home: None,
    };
    assert!(examine(&places).is_err());
}

#[test]
fn processes_that_compute_are_named_with_their_share() {
    let machine = Machine::new();
    for (pid, name) in [
        (20, "cc1plus"),
        (21, "a) b (c"),
        (22, "sleeps"),
        (23, "little"),
    ] {
        machine.process(pid, name, 100);
    }
    let own = i32::try_from(std::process::id()).unwrap();
    machine.process(own, "us", 0);
    let found = machine.look(|machine| {
        machine.process(20, "cc1plus", 100 + 150);
        machine.process(21, "a) b (c", 100 + 20);
        machine.process(23, "little", 100 + 5);
        // One that came meanwhile has no share of this sample.
        machine.process(24, "new", 500);
        machine.process(own, "us", 100);
    });
    let found = found.iter().find(|f| f.check == "process").unwrap();
    assert_eq!(found.level, Level::Warning);
    assert_eq!(
        found.what,
        "computing now, of one CPU: cc1plus (pid 20) 150 %, a) b (c (pid 21) 20 %"
    );
    machine.is("process", Level::Ok, "no process computes");
}

#[test]
fn work_of_the_system_is_seen_and_daemons_that_wait_are_not() {
    let machine = Machine::new();
    machine.process(30, "unattended-upgr", 1).put(
        "/proc/30/cmdline",
        "python3\0/usr/share/unattended-upgrade-shutdown\0--wait-for-signal\0",
    );
    let ok = "no package manager or other timer of the system is at work";
    machine.is("maintenance", Level::Ok, ok);
    machine.process(31, "dpkg", 1);
    machine
        .process(32, "unattended-upgr", 1)
        .put("/proc/32/cmdline", "python3\0/usr/bin/unattended-upgrade\0");
    let what = "at work now: dpkg (pid 31), unattended-upgr (pid 32)";
    machine.is("maintenance", Level::Warning, what);
}

#[test]
fn load_counts_per_cpu() {
    let machine = Machine::new();
    for (load, level) in [
        ("0.90", Level::Ok),
        ("1.00", Level::Note),
        ("4.00", Level::Warning),
    ] {
        machine.put("/proc/loadavg", &format!("{load} 0.1 0.1 1/100 4\n"));
        let found = machine.says("load").unwrap();
        assert_eq!(found.level, level, "{}", found.what);
    }
}

#[test]
fn steal_is_what_was_taken_in_the_sample() {
    let machine = Machine::new();
    let stolen = |now: &str| {
        machine.put("/proc/stat", "cpu 100 0 100 800 0 0 0 10 0 0\n");
        let found = machine.look(|machine| {
            machine.put("/proc/stat", now);
        });
        found.into_iter().find(|f| f.check == "steal").unwrap()
    };
    let found = stolen("cpu 150 0 100 845 0 0 0 15 50 0\n");
    assert_eq!(found.level, Level::Warning);
    assert!(found.what.contains("5.0 % of the CPUs"), "{}", found.what);
    let found = stolen("cpu 150 0 100 850 0 0 0 10 50 0\n");
    assert_eq!(found.level, Level::Note, "since boot");
}

#[test]
fn processors() {
    let machine = Machine::new();
    let cpu = "/sys/devices/system/cpu";
    machine.put(
        &format!("{cpu}/cpufreq/policy4/scaling_governor"),
        "powersave\n",
    );
    machine.put(
        &format!("{cpu}/cpufreq/policy4/scaling_driver"),
        "made-up\n",
    );
    let found = machine.is(
        "governor",
        Level::Warning,
        "frequency governor powersave (made-up)",
    );
    let setting = format!("sysfs.{cpu}/cpufreq/policy4/scaling_governor=performance");
    assert_eq!(found.setting, Some(setting));
    machine.put(
        &format!("{cpu}/cpufreq/policy4/scaling_governor"),
        "performance\n",
    );
    machine.is(
        "governor",
        Level::Ok,
        "frequency governor performance (made-up)",
    );
    machine.put(&format!("{cpu}/cpufreq/boost"), "1\n");
    machine.is("boost", Level::Note, "turbo is on");
    machine.put(&format!("{cpu}/intel_pstate/no_turbo"), "1\n");
    machine.is("boost", Level::Ok, "turbo is off");
    machine.put(&format!("{cpu}/smt/active"), "1\n");
    machine.is("smt", Level::Note, "SMT is on: CPUs share cores");
    machine.put("/proc/cpuinfo", "flags : fpu hypervisor\n");
    machine.put("/sys/class/dmi/id/sys_vendor", "QEMU\n");
    machine.is("virtual", Level::Note, "a virtual machine (QEMU)");
    machine.put("/proc/cpuinfo", "flags : fpu\n");
    machine.is("virtual", Level::Ok, "no virtual machine");
}

#[test]
fn heat() {
    let machine = Machine::new();
    let count = "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count";
    machine.put(count, "7\n");
    let note = "CPUs have slowed down for heat 7 times since boot";
    machine.is("throttling", Level::Note, note);
    let found = machine.look(|machine| {
        machine.put(count, "8\n");
    });
    let found = found.iter().find(|f| f.check == "throttling").unwrap();
    assert_eq!(found.level, Level::Warning);
    let zones = "/sys/class/thermal/thermal_zone";
    machine
        .put(&format!("{zones}0/type"), "acpitz\n")
        .put(&format!("{zones}0/temp"), "60000\n");
    machine.is("temperature", Level::Ok, "acpitz is at 60 degrees Celsius");
    machine.put(&format!("{zones}1/type"), "x86_pkg_temp\n");
    machine.put(&format!("{zones}1/temp"), "71000\n");
    machine.put(&format!("{zones}1/trip_point_0_type"), "passive\n");
    machine.put(&format!("{zones}1/trip_point_0_temp"), "75000\n");
    machine.is(
        "temperature",
        Level::Warning,
        "x86_pkg_temp is at 71 degrees Celsius",
    );
}

#[test]
fn batteries_of_the_machine_and_not_of_its_mouse() {
    let machine = Machine::new();
    let supply = "/sys/class/power_supply";
    machine.put(&format!("{supply}/hid/type"), "Battery\n");
    machine.put(&format!("{supply}/hid/scope"), "Device\n");
    machine.put(&format!("{supply}/hid/status"), "Discharging\n");
    assert_eq!(machine.says("power"), None);
    machine.put(&format!("{supply}/BAT0/type"), "Battery\n");
    machine.put(&format!("{supply}/BAT0/status"), "Full\n");
    machine.is("power", Level::Ok, "does not run on its battery");
    machine.put(&format!("{supply}/BAT0/status"), "Discharging\n");
    machine.is("power", Level::Warning, "runs on its battery");
}

#[test]
fn memory() {
    let machine = Machine::new();
    machine.is(
        "memory",
        Level::Ok,
        "7.6 GiB of 8.0 GiB memory are available",
    );
    machine.is("swap", Level::Ok, "no swap");
    machine.is("dirty", Level::Ok, "0 MiB wait to be written to disks");
    machine.put(
        "/proc/meminfo",
        "MemTotal: 8388608 kB\nMemAvailable: 500000 kB\nDirty: 300000 kB\nWriteback: 65536 kB\n\
         SwapTotal: 2097152 kB\nSwapFree: 1048576 kB\n",
    );
    machine.is(
        "memory",
        Level::Warning,
        "488 MiB of 8.0 GiB memory are available",
    );
    machine.is(
        "dirty",
        Level::Warning,
        "356 MiB wait to be written to disks",
    );
    machine.is("swap", Level::Warning, "1.0 GiB of swap are in use");
    machine.put(
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "[always] madvise never\n",
    );
    let found = machine.is(
        "thp",
        Level::Note,
        "transparent huge pages always, defrag unknown",
    );
    assert_eq!(found.setting.as_deref(), Some("thp.enabled=madvise"));
    machine.put("/proc/sys/kernel/numa_balancing", "1\n");
    machine.is("numa-balancing", Level::Ok, "NUMA balancing is on, 1 node");
    machine.put("/sys/devices/system/node/online", "0-1\n");
    machine.is(
        "numa-balancing",
        Level::Note,
        "NUMA balancing is on, 2 nodes",
    );
    machine.put("/sys/kernel/mm/ksm/run", "1\n");
    machine.is(
        "ksm",
        Level::Note,
        "KSM merges equal pages in the background",
    );
}

#[test]
fn the_disk_is_that_of_the_home_which_need_not_exist() {
    let machine = Machine::new();
    let found = machine.says("disk").unwrap();
    assert!(found.what.ends_with("home/of/runs"), "{}", found.what);
    assert!(!machine.dir.path().join("home").exists());
}

#[test]
fn kernels_that_debug_themselves() {
    let machine = Machine::new();
    let none = "no debugging of the kernel is on that can be seen";
    machine.put("/proc/cmdline", "quiet slub_debugger\n");
    machine.put("/sys/kernel/slab/kmalloc-64/poison", "0\n");
    machine.put(
        "/boot/config-6.1.0-made-up",
        "# CONFIG_KASAN is not set\nCONFIG_KASAN_SW=y\nCONFIG_PROVE_LOCKING=n\n",
    );
    machine.is("debug-kernel", Level::Ok, none);
    machine.put("/proc/cmdline", "quiet slub_debug=FZ\n");
    machine.put("/boot/config-6.1.0-made-up", "CONFIG_X=y\nCONFIG_KASAN=y\n");
    machine.put("/proc/lockdep", "");
    machine.put("/sys/kernel/slab/kmalloc-64/poison", "1\n");
    let what = "the kernel debugs itself: KASAN, lockdep, slub_debug";
    machine.is("debug-kernel", Level::Warning, what);
}

#[test]
fn the_kernel_and_what_we_may_do() {
    let machine = Machine::new();
    let clock = "/sys/devices/system/clocksource/clocksource0";
    machine.put(&format!("{clock}/available_clocksource"), "hpet acpi_pm \n");
    for (source, level) in [
        ("tsc", Level::Ok),
        ("kvm-clock", Level::Note),
        ("hpet", Level::Warning),
    ] {
        machine.put(&format!("{clock}/current_clocksource"), source);
        let what = format!("clock source {source} (there are: hpet acpi_pm)");
        machine.is("clock", level, &what);
    }
    machine.put("/proc/sys/kernel/randomize_va_space", "2\n");
    let aslr = "addresses are drawn anew for each process (ASLR 2)";
    machine.is("aslr", Level::Note, aslr);
    machine.put("/proc/sys/kernel/randomize_va_space", "0\n");
    machine.is("aslr", Level::Ok, "addresses are the same in each run");
    machine.put("/proc/sys/kernel/perf_event_paranoid", "4\n");
    machine.is("perf", Level::Note, "perf_event_paranoid is 4");
    machine.put("/proc/sys/kernel/perf_event_paranoid", "-1\n");
    machine.is("perf", Level::Ok, "perf_event_paranoid is -1");
    let unset = "settings (thp, hugepages, sysctl, sysfs) cannot be made";
    machine.is("privilege", Level::Note, unset);
    machine.put("/proc/sys/vm/swappiness", "60\n");
    machine.is(
        "privilege",
        Level::Ok,
        "settings of the machine can be made",
    );
    let kept = fs::read_to_string(machine.dir.path().join("proc/sys/vm/swappiness")).unwrap();
    assert_eq!(kept, "60\n", "it is opened and never written");
    machine.put("/proc/sys/kernel/perf_event_paranoid", "4\n");
    machine.is("perf", Level::Ok, "perf_event_paranoid is 4");
    machine.is("kernel-log", Level::Note, "the kernel log cannot be read");
    machine.put("/dev/kmsg", "");
    machine.is("kernel-log", Level::Ok, "the kernel log can be read");
    machine.put("/proc/sys/kernel/nmi_watchdog", "1\n");
    machine.is("nmi-watchdog", Level::Note, "the NMI watchdog is on");
}

#[test]
fn cgroups() {
    let machine = Machine::new();
    machine.is("cgroup", Level::Note, "no cgroup that trials could have");
    machine.put("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    machine.put("/proc/self/cgroup", "0::/user\n");
    machine.put(
        "/proc/self/mountinfo",
        "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    );
    machine.is("cgroup", Level::Ok, "cgroup version 2");
}

#[test]
fn a_journal_of_a_run_that_died_waits() {
    let machine = Machine::new();
    let none = "no run that died left settings changed";
    machine.is("undo-journal", Level::Ok, none);
    machine.put("/state/journal.x", "");
    machine.is(
        "undo-journal",
        Level::Warning,
        "a run that died left an undo journal",
    );
}

#[test]
fn another_run_is_seen_by_the_kernels_list_of_locks() {
    use std::os::unix::fs::MetadataExt;
    let machine = Machine::new();
    machine.put("/state/lock", "4711\n");
    let inode = fs::metadata(machine.dir.path().join("state/lock"))
        .unwrap()
        .ino();
    let none = "no other run holds the machine";
    machine.is("other-run", Level::Ok, none);
    machine.put(
        "/proc/locks",
        &format!("1: FLOCK  ADVISORY  WRITE 4712 fe:00:{inode} 0 EOF\n"),
    );
    machine.is("other-run", Level::Ok, none);
    machine.put(
        "/proc/locks",
        &format!("1: FLOCK  ADVISORY  WRITE 4711 fe:00:{inode} 0 EOF\n"),
    );
    machine.is(
        "other-run",
        Level::Warning,
        "the run of pid 4711 holds the machine",
    );
}

#[test]
fn the_worst_comes_first() {
    let machine = Machine::new();
    machine.put("/state/journal.x", "");
    let levels: Vec<Level> = machine.look(|_| {}).iter().map(|f| f.level).collect();
    assert!(
        levels.is_sorted_by_key(|level| std::cmp::Reverse(*level)),
        "{levels:?}"
    );
    assert_eq!(levels.first(), Some(&Level::Warning));
}

#[test]
fn timing() {
    let ms = 1_000_000;
    let quiet = Timing::of(vec![3000, 1000, 60_000], &[], Duration::from_secs(1));
    assert_eq!((quiet.wake_up_median_us, quiet.wake_up_max_us), (3.0, 60.0));
    assert_eq!(
        (quiet.gaps, quiet.gap_share, quiet.gap_max_us),
        (0, 0.0, 0.0)
    );
    assert!(
        quiet
            .findings()
            .iter()
            .all(|found| found.level == Level::Ok)
    );
    let loud = Timing::of(vec![2 * ms; 3], &[15 * ms, 5 * ms], Duration::from_secs(1));
    assert_eq!((loud.gaps, loud.gap_max_us), (2, 15_000.0));
    assert!((loud.gap_share - 0.02).abs() < 1e-12);
    assert!(
        loud.findings()
            .iter()
            .all(|found| found.level == Level::Warning)
    );
    let nothing = Timing::of(Vec::new(), &[], Duration::from_secs(1));
    assert_eq!((nothing.wake_ups, nothing.wake_up_max_us), (0, 0.0));
}

#[test]
fn this_machine() {
    let dir = tempfile::tempdir().unwrap();
    let places = Places {
        root: &SysRoot::real(),
        state_dir: dir.path(),
        home: Some(dir.path()),
    };
    let found = examine(&places).unwrap();
    let names: HashSet<&str> = found.iter().map(|finding| finding.check).collect();
    assert_eq!(names.len(), found.len(), "each check speaks once");
    for check in [
        "process",
        "load",
        "memory",
        "dirty",
        "swap",
        "disk",
        "aslr",
        "other-run",
    ] {
        assert!(names.contains(check), "{check} is not in {names:?}");
    }
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        0,
        "nothing is left"
    );
    let (timing, findings) = measure();
    assert_eq!(timing.wake_ups, 1000);
    assert!(timing.wake_up_median_us <= timing.wake_up_max_us);
    assert!(timing.gap_share.is_finite() && timing.gap_share >= 0.0);
    assert_eq!(findings.len(), 2);
}

#[test]
fn every_check_is_in_the_document() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md");
    let document = fs::read_to_string(path).unwrap();
    let sources = [
        include_str!("activity.rs"),
        include_str!("cpu.rs"),
        include_str!("memory.rs"),
        include_str!("kernel.rs"),
        include_str!("timing.rs"),
    ];
    let mut names = HashSet::new();
    for source in sources {
        let made = source.split("Finding::new(\"").skip(1);
        names.extend(made.filter_map(|rest| rest.split('"').next()));
    }
    assert_eq!(names.len(), CHECKS.len() + 2, "{names:?}");
    for name in names {
        assert!(
            document.contains(&format!("`{name}`")),
            "docs/doctor.md lacks `{name}`"
        );
    }
}
