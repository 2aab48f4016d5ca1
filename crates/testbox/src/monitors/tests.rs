use super::*;
use kdyno_model::{Column, ColumnKind, SeriesSet};
use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

fn put(dir: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = dir.join(path.trim_start_matches('/'));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Without a cgroup.
fn watched(root: &SysRoot) -> Watched<'_> {
    Watched { root, cgroups: &[] }
}

fn one(name: &str, dir: &Path) -> Box<dyn Monitor> {
    let (mut monitors, notes) = available(&[name.to_owned()], watched(&SysRoot::at(dir))).unwrap();
    assert_eq!(notes, Vec::<String>::new());
    monitors.pop().unwrap()
}

/// Samples a file first with one text, then with another.
fn sampled(name: &str, path: &str, texts: &[&str]) -> SeriesSet {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), path, texts[0]);
    let mut monitor = one(name, dir.path());
    for (t_ns, text) in texts.iter().enumerate() {
        put(dir.path(), path, text);
        monitor.sample(t_ns as u64).unwrap();
    }
    monitor.finish()
}

fn column<'a>(set: &'a SeriesSet, metric: &str) -> &'a Column {
    let found = set.columns.iter().find(|c| c.metric.as_str() == metric);
    found.unwrap_or_else(|| panic!("no {metric} in {:?}", names(set)))
}

fn names(set: &SeriesSet) -> Vec<&str> {
    set.columns.iter().map(|c| c.metric.as_str()).collect()
}

#[track_caller]
fn check(set: &SeriesSet, metric: &str, unit: &str, kind: ColumnKind, values: &[Option<f64>]) {
    let column = column(set, metric);
    assert_eq!(column.values, values, "{metric}");
    assert_eq!(
        (column.unit.as_str(), column.kind),
        (unit, kind),
        "{metric}"
    );
}

use ColumnKind::{Counter, Gauge};

#[test]
fn vmstat_tells_states_from_totals() {
    let set = sampled(
        "proc-vmstat",
        "/proc/vmstat",
        &[
            "nr_free_pages 80\nnr_dirtied 5\npgfault 100\npgpgin 7\nworkingset_nodes 3\nodd 18446744073709551615\n",
            "nr_free_pages 70\nnr_dirtied 6\npgfault 150\nnew_event 4\n",
        ],
    );
    check(
        &set,
        "proc-vmstat.nr_free_pages",
        "",
        Gauge,
        &[Some(80.0), Some(70.0)],
    );
    check(
        &set,
        "proc-vmstat.nr_dirtied",
        "",
        Counter,
        &[Some(5.0), Some(6.0)],
    );
    check(
        &set,
        "proc-vmstat.pgfault",
        "",
        Counter,
        &[Some(100.0), Some(150.0)],
    );
    check(
        &set,
        "proc-vmstat.pgpgin",
        "kB",
        Counter,
        &[Some(7.0), None],
    );
    check(
        &set,
        "proc-vmstat.workingset_nodes",
        "",
        Gauge,
        &[Some(3.0), None],
    );
    check(
        &set,
        "proc-vmstat.new_event",
        "",
        Counter,
        &[None, Some(4.0)],
    );
    assert_eq!(set.columns.len(), 6, "a negative number is no datum");
    assert_eq!(set.t_ns, [0, 1]);
}

#[test]
fn meminfo_has_sizes_and_counts() {
    let text =
        "MemTotal:       2048 kB\nActive(anon):     12 kB\nHugePages_Total:       3\nbroken\n";
    let set = sampled("meminfo", "/proc/meminfo", &[text]);
    check(&set, "meminfo.MemTotal", "kB", Gauge, &[Some(2048.0)]);
    check(&set, "meminfo.Active(anon)", "kB", Gauge, &[Some(12.0)]);
    check(&set, "meminfo.HugePages_Total", "", Gauge, &[Some(3.0)]);
    assert_eq!(set.columns.len(), 3);
}

#[test]
fn stat_has_machine_totals_in_seconds() {
    let text = "cpu  150 0 50 900 1 0 2 3\ncpu0 150 0 50 900 1 0 2 3\nintr 77 1 2 3\nctxt 9\nbtime 5\n\
                processes 4\nprocs_running 2\nprocs_blocked 0\nsoftirq 44 0 44\n";
    let set = sampled("proc-stat", "/proc/stat", &[text]);
    let hz = clock::user_hz();
    check(
        &set,
        "proc-stat.cpu.user",
        "s",
        Counter,
        &[Some(150.0 / hz)],
    );
    check(&set, "proc-stat.cpu.steal", "s", Counter, &[Some(3.0 / hz)]);
    check(&set, "proc-stat.intr", "", Counter, &[Some(77.0)]);
    check(&set, "proc-stat.softirq", "", Counter, &[Some(44.0)]);
    check(&set, "proc-stat.procs_running", "", Gauge, &[Some(2.0)]);
    assert!(
        !names(&set).contains(&"proc-stat.cpu.guest"),
        "an old kernel shows eight times"
    );
    assert_eq!(set.columns.len(), 8 + 6);
}

#[test]
fn diskstats_has_whole_devices_that_did_something() {
    let dir = tempfile::tempdir().unwrap();
    let text = " 7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n 254 0 vda 10 0 4 1 2 0 8 1 3 2 2\n 254 1 vda1 10 0 4 1 2 0 8 1 0 2 2\n\
                104 0 cciss/c0d0p1 1 0 4 1 2 0 8 1 0 2 2\n";
    put(dir.path(), "/proc/diskstats", text);
    put(dir.path(), "/sys/class/block/vda1/partition", "1\n");
    put(dir.path(), "/sys/class/block/cciss!c0d0p1/partition", "1\n");
    let mut monitor = one("diskstats", dir.path());
    monitor.sample(0).unwrap();
    let set = monitor.finish();
    check(&set, "diskstats.vda.reads", "", Counter, &[Some(10.0)]);
    check(
        &set,
        "diskstats.vda.read_bytes",
        "B",
        Counter,
        &[Some(2048.0)],
    );
    check(
        &set,
        "diskstats.vda.write_bytes",
        "B",
        Counter,
        &[Some(4096.0)],
    );
    check(&set, "diskstats.vda.in_flight", "", Gauge, &[Some(3.0)]);
    check(
        &set,
        "diskstats.vda.weighted_io_time",
        "ms",
        Counter,
        &[Some(2.0)],
    );
    assert_eq!(set.columns.len(), 11, "{:?}", names(&set));
}

#[test]
fn interrupts_are_summed_and_named_after_devices() {
    let text = "           CPU0       CPU1\n 24:          1          2  IO-APIC   5-edge      ACPI:Ged\n \
                25:   3  4  IO-APIC   6-edge      ACPI:Ged\n 26:  5 0  IO-APIC   7-edge\n\
                LOC:      13139      14575   Local timer interrupts\nERR:          6\n";
    let hot_unplugged = "     CPU1\nLOC:      20000   Local timer interrupts\nERR:    6\n";
    let set = sampled("interrupts", "/proc/interrupts", &[text, hot_unplugged]);
    check(&set, "interrupts.ACPI:Ged", "", Counter, &[Some(3.0), None]);
    check(
        &set,
        "interrupts.ACPI:Ged-25",
        "",
        Counter,
        &[Some(7.0), None],
    );
    check(&set, "interrupts.irq26", "", Counter, &[Some(5.0), None]);
    check(
        &set,
        "interrupts.LOC",
        "",
        Counter,
        &[Some(27714.0), Some(20000.0)],
    );
    check(&set, "interrupts.ERR", "", Counter, &[Some(6.0), Some(6.0)]);
    assert_eq!(set.columns.len(), 5);
}

#[test]
fn pressure_has_totals_and_means() {
    let dir = tempfile::tempdir().unwrap();
    let text = "some avg10=12.34 avg60=0.02 avg300=0.08 total=999\nfull avg10=0.00 avg60=0.02 avg300=0.07 total=5\n";
    for resource in ["cpu", "memory", "io"] {
        put(dir.path(), &format!("/proc/pressure/{resource}"), text);
    }
    let mut monitor = one("psi", dir.path());
    monitor.sample(0).unwrap();
    let set = monitor.finish();
    check(&set, "psi.cpu.some.total", "us", Counter, &[Some(999.0)]);
    check(&set, "psi.cpu.some.avg10", "%", Gauge, &[Some(12.34)]);
    check(&set, "psi.io.full.total", "us", Counter, &[Some(5.0)]);
    assert!(!names(&set).contains(&"psi.cpu.full.total"));
    assert_eq!(set.columns.len(), 10);
}

#[test]
fn files_longer_than_the_buffer_are_read_to_their_end() {
    let text: String = (0..6000)
        .map(|i| format!("event_number_{i} {i}\n"))
        .collect();
    let set = sampled("proc-vmstat", "/proc/vmstat", &[&text, &text]);
    assert_eq!(set.columns.len(), 6000);
    let last = &column(&set, "proc-vmstat.event_number_5999").values;
    assert_eq!(last, &[Some(5999.0), Some(5999.0)]);
}

#[test]
fn names_unknown_absent_and_doubled() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "/proc/vmstat", "pgfault 1\n");
    let root = SysRoot::at(dir.path());
    let names = |list: &[&str]| list.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();

    let error = available(&names(&["vmstaat"]), watched(&root))
        .err()
        .unwrap();
    assert!(error.message.contains("`vmstaat`"), "{error}");
    assert!(error.hint.unwrap().contains("there are: proc-vmstat"));

    let (monitors, notes) =
        available(&names(&["psi", "vmstat", "proc-vmstat"]), watched(&root)).unwrap();
    assert_eq!(
        monitors.iter().map(|m| m.name()).collect::<Vec<_>>(),
        ["proc-vmstat"]
    );
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].contains("psi") && notes[0].contains("pressure"),
        "{notes:?}"
    );
}

#[test]
fn garbage_is_an_error_or_a_gap_but_no_panic() {
    let mut seed = 1u64;
    let alphabet = b"cpu0 \n:=.19some\xff\0avgintr-,";
    for name in ALL_MONITORS.iter().filter(|name| **name != "cgroup") {
        let dir = machine();
        let paths: Vec<&str> = FILES.iter().map(|(path, _)| *path).collect();
        paths.iter().for_each(|path| put(dir.path(), path, ""));
        // Names of states and sensors are read when a monitor is opened.
        let mut monitor = one(name, dir.path());
        assert!(
            monitor.sample(0).is_err(),
            "{name}: nothing to read is no sample"
        );
        for t_ns in 1..200 {
            let text: Vec<u8> = (0..300)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    alphabet[(seed >> 33) as usize % alphabet.len()]
                })
                .collect();
            paths.iter().for_each(|path| put(dir.path(), path, &text));
            // Either is right for a given text; what is tested is that it ends.
            drop(monitor.sample(t_ns));
        }
        let set = monitor.finish();
        for column in &set.columns {
            assert_eq!(column.values.len(), set.t_ns.len());
            assert!(column.values.iter().flatten().all(|v| v.is_finite()));
        }
    }
}

/// Fails from its `good`-th sample on.
struct Failing {
    good: usize,
    set: SeriesSet,
}

impl Monitor for Failing {
    fn name(&self) -> &str {
        "failing"
    }
    fn sample(&mut self, t_ns: u64) -> Result<(), TestboxError> {
        if self.set.t_ns.len() == self.good {
            return Err(TestboxError::at("/proc/gone", "no longer there"));
        }
        self.set.t_ns.push(t_ns);
        Ok(())
    }
    fn finish(self: Box<Self>) -> SeriesSet {
        self.set
    }
}

fn failing(good: usize) -> Box<dyn Monitor> {
    let set = SeriesSet::default();
    Box::new(Failing { good, set })
}

#[test]
fn the_thread_samples_both_ends_and_drops_what_fails() {
    let monitors = vec![failing(usize::MAX), failing(1)];
    let thread = MonitorThread::start(monitors, Duration::from_secs(3600)).unwrap();
    let begin = thread.start_raw_ns();
    let (series, overhead, notes) = thread.stop().unwrap();
    let end = clock::raw_ns();
    assert_eq!(series.len(), 1);
    let [first, last] = series[0].t_ns[..] else {
        panic!("{series:?}");
    };
    assert!(first < last && last <= end - begin);
    assert_eq!((overhead.samples, overhead.wakeups), (4, 0));
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].contains("failing") && notes[0].contains("/proc/gone"),
        "{notes:?}"
    );
}

/// Reports each sample.
struct Reporting(mpsc::Sender<u64>);

impl Monitor for Reporting {
    fn name(&self) -> &str {
        "reporting"
    }
    fn sample(&mut self, t_ns: u64) -> Result<(), TestboxError> {
        self.0.send(t_ns).unwrap();
        Ok(())
    }
    fn finish(self: Box<Self>) -> SeriesSet {
        SeriesSet::default()
    }
}

#[test]
fn the_thread_samples_on_its_grid() {
    let period = Duration::from_millis(2);
    let (sender, samples) = mpsc::channel();
    let thread = MonitorThread::start(vec![Box::new(Reporting(sender))], period).unwrap();
    let mut times: Vec<u64> = samples.iter().take(6).collect();
    let (_, overhead, _) = thread.stop().unwrap();
    times.extend(samples.iter());
    assert!(times.is_sorted(), "{times:?}");
    assert!(
        times[5] >= 5 * 2_000_000,
        "no sample before its time: {times:?}"
    );
    assert_eq!(overhead.samples, times.len() as u64);
    assert!(overhead.wakeups >= 1 && overhead.cpu_ns > 0, "{overhead:?}");
}

#[test]
fn the_thread_refuses_absurd_periods_and_ends_when_dropped() {
    for period in [Duration::ZERO, Duration::MAX] {
        let error = MonitorThread::start(Vec::new(), period).unwrap_err();
        assert!(error.hint.is_some());
    }
    drop(MonitorThread::start(Vec::new(), Duration::from_secs(1)).unwrap());
    let thread = MonitorThread::start(vec![failing(0)], Duration::from_secs(1)).unwrap();
    let (series, overhead, notes) = thread.stop().unwrap();
    assert_eq!((series.len(), overhead.samples, notes.len()), (0, 1, 1));
}

#[test]
fn the_real_proc() {
    let (mut monitors, notes) = available(&["all".to_owned()], watched(&SysRoot::real())).unwrap();
    for note in notes {
        eprintln!("skipped: {note}");
    }
    for t_ns in 0..5 {
        for monitor in &mut monitors {
            monitor.sample(t_ns).unwrap();
        }
    }
    let sets: Vec<SeriesSet> = monitors.into_iter().map(Monitor::finish).collect();
    let all: Vec<&Column> = sets.iter().flat_map(|set| &set.columns).collect();
    for key in [
        "proc-vmstat.pgfault",
        "meminfo.MemTotal",
        "proc-stat.cpu.user",
        "proc-stat.ctxt",
    ] {
        let column = all.iter().find(|c| c.metric.as_str() == key).expect(key);
        assert!(
            column.values.iter().all(|v| v.is_some_and(|v| v > 0.0)),
            "{column:?}"
        );
    }
    for column in all {
        let seldom = column.metric.as_str().starts_with("slabinfo.");
        assert_eq!(column.values.len(), if seldom { 3 } else { 5 });
        // The kernel does not promise that idle and iowait never go back.
        let steady = !column.metric.as_str().ends_with("idle")
            && !column.metric.as_str().ends_with("iowait");
        if column.kind == Counter && steady {
            assert!(column.values.is_sorted(), "{column:?}");
        }
    }
}

/// A small machine: each file that some monitor reads.
const FILES: [(&str, &str); 24] = [
    ("/proc/vmstat", "pgfault 1\n"),
    ("/proc/meminfo", "MemTotal: 4 kB\n"),
    ("/proc/stat", "cpu 1 2 3 4\n"),
    ("/proc/diskstats", " 254 0 vda 10 0 4 1 2 0 8 1 3 2 2\n"),
    ("/proc/interrupts", "  CPU0 CPU1\nLOC: 1 2\n"),
    (
        "/proc/softirqs",
        "          CPU0       CPU2\n  TIMER:   5   7\n  RCU:     1   0\n",
    ),
    ("/proc/pressure/cpu", "some avg10=0.00 total=1\n"),
    ("/proc/pressure/memory", "some avg10=0.00 total=1\n"),
    ("/proc/pressure/io", "some avg10=0.00 total=1\n"),
    (
        "/proc/schedstat",
        "version 17\ntimestamp 9\ncpu0 1 2 3 4 5 6 1000000 2000000 9\ndomain0 3 0 0\ncpu1 0 0 0 0 0 0 3000000 500000 1\n",
    ),
    (
        "/proc/buddyinfo",
        "Node 0, zone      DMA      0      3\nNode 1, zone   Normal   1313    134    556\n",
    ),
    (
        "/proc/zoneinfo",
        "Node 0, zone      DMA\n  per-node stats\n      nr_free_pages 9\n  pages free     3840\n        boost    0\n        min      21\n        low      26\n        high     31\n        spanned  4095\n        managed  3840\nNode 0, zone   Normal\n  pages free     7\n        min      1\n        low      2\n        high     3\n        managed  4\n",
    ),
    (
        "/proc/slabinfo",
        "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize>\ndentry  900 1000 192 21 1 : tunables 0\nidle 0 0 64 1 1\n",
    ),
    (
        "/sys/devices/system/node/node0/numastat",
        "numa_hit 5\nnuma_miss 1\n",
    ),
    (
        "/sys/devices/system/node/node1/numastat",
        "numa_hit 6\nnuma_miss 0\n",
    ),
    (
        "/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq",
        "1000000\n",
    ),
    (
        "/sys/devices/system/cpu/cpufreq/policy1/scaling_cur_freq",
        "3000000\n",
    ),
    ("/sys/devices/system/cpu/cpu0/cpuidle/state0/time", "1000\n"),
    ("/sys/devices/system/cpu/cpu0/cpuidle/state0/usage", "4\n"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state0/time", "3000\n"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state0/usage", "6\n"),
    ("/sys/class/thermal/thermal_zone0/temp", "41000\n"),
    ("/sys/class/thermal/thermal_zone1/temp", "57500\n"),
    ("/sys/class/thermal/thermal_zone2/temp", "30000\n"),
];

fn machine() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in FILES {
        put(dir.path(), path, text);
    }
    for cpu in 0..2 {
        let name = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state0/name");
        put(dir.path(), &name, "C1 ACPI\n");
    }
    for (zone, kind) in ["x86_pkg_temp", "x86_pkg_temp", "acpitz"]
        .iter()
        .enumerate()
    {
        put(
            dir.path(),
            &format!("/sys/class/thermal/thermal_zone{zone}/type"),
            kind,
        );
    }
    dir
}

/// One sample of that machine.
fn of_machine(name: &str) -> SeriesSet {
    let dir = machine();
    let mut monitor = one(name, dir.path());
    monitor.sample(0).unwrap();
    monitor.finish()
}

#[test]
fn deferred_work_is_summed_over_cpus_unless_each_is_asked_for() {
    let set = of_machine("softirqs");
    check(&set, "softirqs.TIMER", "", Counter, &[Some(12.0)]);
    assert_eq!(set.columns.len(), 2);
    let set = of_machine("softirqs:each");
    check(&set, "softirqs.TIMER.cpu0", "", Counter, &[Some(5.0)]);
    check(&set, "softirqs.TIMER.cpu2", "", Counter, &[Some(7.0)]);
    check(&set, "softirqs.RCU.cpu2", "", Counter, &[Some(0.0)]);
    assert_eq!(set.columns.len(), 4);
}

#[test]
fn interrupts_of_each_cpu_and_those_that_have_none() {
    let text = "      CPU0       CPU3\n 24:   1   2  IO-APIC   5-edge      ttyS0\nLOC: 3 4 Local timer interrupts\nERR:  6\n";
    let other = "      CPU0\n 24:   9  IO-APIC   5-edge      ttyS0\nLOC: 9 Local timer interrupts\nERR:  7\n";
    let set = sampled("interrupts:each", "/proc/interrupts", &[text, other]);
    check(
        &set,
        "interrupts.ttyS0.cpu3",
        "",
        Counter,
        &[Some(2.0), None],
    );
    check(&set, "interrupts.LOC.cpu0", "", Counter, &[Some(3.0), None]);
    check(&set, "interrupts.ERR", "", Counter, &[Some(6.0), Some(7.0)]);
    assert_eq!(set.columns.len(), 5);
}

#[test]
fn run_and_wait_times_are_summed_over_cpus() {
    let set = of_machine("schedstat");
    check(&set, "schedstat.run_time", "ms", Counter, &[Some(4.0)]);
    check(&set, "schedstat.wait_time", "ms", Counter, &[Some(2.5)]);
    check(&set, "schedstat.timeslices", "", Counter, &[Some(10.0)]);
    let set = of_machine("schedstat:each");
    check(&set, "schedstat.cpu1.run_time", "ms", Counter, &[Some(3.0)]);
    assert_eq!(set.columns.len(), 6);
}

#[test]
fn zones_have_free_blocks_and_marks() {
    let set = of_machine("buddyinfo");
    check(&set, "buddyinfo.node0.DMA.order1", "", Gauge, &[Some(3.0)]);
    check(
        &set,
        "buddyinfo.node1.Normal.order2",
        "",
        Gauge,
        &[Some(556.0)],
    );
    assert_eq!(set.columns.len(), 5, "{:?}", names(&set));
    let set = of_machine("zoneinfo");
    check(
        &set,
        "zoneinfo.node0.DMA.free",
        "pages",
        Gauge,
        &[Some(3840.0)],
    );
    check(
        &set,
        "zoneinfo.node0.DMA.low",
        "pages",
        Gauge,
        &[Some(26.0)],
    );
    check(
        &set,
        "zoneinfo.node0.Normal.managed",
        "pages",
        Gauge,
        &[Some(4.0)],
    );
    assert_eq!(set.columns.len(), 10);
}

#[test]
fn slabs_are_read_seldom() {
    let dir = machine();
    let mut monitor = one("slabinfo", dir.path());
    for t_ns in 0..25 {
        monitor.sample(t_ns).unwrap();
    }
    let set = monitor.finish();
    assert_eq!(set.t_ns, [0, 1, 2, 10, 20]);
    let column = column(&set, "slabinfo.dentry.size");
    assert_eq!(column.values, [Some(187.5); 5]);
    assert_eq!((column.unit.as_str(), column.kind), ("kB", Gauge));
    assert_eq!(set.columns.len(), 2, "what is never used is no column");
}

#[test]
fn what_sys_has_of_nodes_cpus_and_sensors() {
    let set = of_machine("numa");
    check(&set, "numa.node1.numa_hit", "pages", Counter, &[Some(6.0)]);
    assert_eq!(set.columns.len(), 4);
    let set = of_machine("cpufreq");
    check(&set, "cpufreq.mean", "MHz", Gauge, &[Some(2000.0)]);
    check(&set, "cpufreq.min", "MHz", Gauge, &[Some(1000.0)]);
    check(&set, "cpufreq.max", "MHz", Gauge, &[Some(3000.0)]);
    let set = of_machine("cpufreq:each");
    check(&set, "cpufreq.policy1", "MHz", Gauge, &[Some(3000.0)]);
    assert_eq!(set.columns.len(), 2);
    let set = of_machine("cpuidle");
    check(&set, "cpuidle.C1_ACPI.time", "ms", Counter, &[Some(4.0)]);
    check(&set, "cpuidle.C1_ACPI.usage", "", Counter, &[Some(10.0)]);
    let set = of_machine("thermal");
    check(&set, "thermal.x86_pkg_temp", "C", Gauge, &[Some(57.5)]);
    check(&set, "thermal.acpitz", "C", Gauge, &[Some(30.0)]);
    assert_eq!(set.columns.len(), 2);
}

#[test]
fn the_trials_own_cgroup() {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("v2/memory.current", "8192\n"),
        (
            "v2/memory.stat",
            "anon 4096\nfile 0\npgfault 12\nworkingset_refault_anon 3\n",
        ),
        (
            "v2/cpu.stat",
            "usage_usec 900\nuser_usec 600\nnr_throttled 2\n",
        ),
        (
            "v2/io.stat",
            "254:0 rbytes=512 wbytes=4096 rios=1 wios=2\n7:0 rbytes=512 wbytes=0 rios=1 wios=0\n",
        ),
        (
            "v2/memory.pressure",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0.00 total=5\n",
        ),
        ("v1/memory.usage_in_bytes", "1\n"),
        ("v1/memory.stat", "cache 9\n"),
    ] {
        put(dir.path(), file, text);
    }
    let dirs = ["v2", "v1"].map(|name| dir.path().join(name));
    let watched = Watched {
        root: &SysRoot::real(),
        cgroups: &dirs,
    };
    let (mut monitors, notes) = available(&["cgroup".to_owned()], watched).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    monitors[0].sample(0).unwrap();
    let set = monitors.remove(0).finish();
    check(&set, "cgroup.memory.current", "B", Gauge, &[Some(8192.0)]);
    check(&set, "cgroup.memory.anon", "B", Gauge, &[Some(4096.0)]);
    check(&set, "cgroup.memory.pgfault", "", Counter, &[Some(12.0)]);
    check(
        &set,
        "cgroup.memory.workingset_refault_anon",
        "",
        Counter,
        &[Some(3.0)],
    );
    check(&set, "cgroup.cpu.usage_usec", "us", Counter, &[Some(900.0)]);
    check(&set, "cgroup.cpu.nr_throttled", "", Counter, &[Some(2.0)]);
    check(&set, "cgroup.io.rbytes", "B", Counter, &[Some(1024.0)]);
    check(&set, "cgroup.io.wios", "", Counter, &[Some(2.0)]);
    check(
        &set,
        "cgroup.memory.some.total",
        "us",
        Counter,
        &[Some(77.0)],
    );
    let none = Watched {
        root: &SysRoot::real(),
        cgroups: &[],
    };
    let (monitors, notes) = available(&["cgroup".to_owned()], none).unwrap();
    assert!(monitors.is_empty() && notes.len() == 1, "{notes:?}");
}

/// The number of metrics does not grow with the machine.
#[test]
fn a_machine_of_256_cpus_has_no_more_metrics() {
    let dir = machine();
    let header: String = (0..256).map(|cpu| format!("  CPU{cpu}")).collect();
    let counts = "  1".repeat(256);
    put(
        dir.path(),
        "/proc/softirqs",
        format!("{header}\n TIMER:{counts}\n RCU:{counts}\n"),
    );
    put(
        dir.path(),
        "/proc/interrupts",
        format!("{header}\nLOC:{counts} Local\n"),
    );
    for cpu in 0..256 {
        let base = "/sys/devices/system/cpu";
        for (file, text) in [("time", "5\n"), ("usage", "1\n"), ("name", "C1 ACPI\n")] {
            put(
                dir.path(),
                &format!("{base}/cpu{cpu}/cpuidle/state0/{file}"),
                text,
            );
        }
        put(
            dir.path(),
            &format!("{base}/cpufreq/policy{cpu}/scaling_cur_freq"),
            "2000000\n",
        );
    }
    for name in ALL_MONITORS.iter().filter(|name| **name != "cgroup") {
        let mut monitor = one(name, dir.path());
        monitor.sample(0).unwrap();
        let large = monitor.finish();
        assert_eq!(
            large.columns.len(),
            of_machine(name).columns.len(),
            "{name}"
        );
    }
    let mut monitor = one("cpufreq", dir.path());
    monitor.sample(0).unwrap();
    check(
        &monitor.finish(),
        "cpufreq.mean",
        "MHz",
        Gauge,
        &[Some(2000.0)],
    );
}

#[test]
fn all_and_each_are_words_of_their_own() {
    let dir = machine();
    let root = SysRoot::at(dir.path());
    let (monitors, notes) =
        available(&["all".to_owned(), "meminfo".to_owned()], watched(&root)).unwrap();
    assert_eq!(monitors.len() + notes.len(), ALL_MONITORS.len());
    assert_eq!(notes.len(), 1, "only the cgroup: {notes:?}");
    let both = ["softirqs", "softirqs:each"].map(str::to_owned);
    let (monitors, _) = available(&both, watched(&root)).unwrap();
    assert_eq!(monitors.len(), 1);
    let error = available(&["meminfo:each".to_owned()], watched(&root))
        .err()
        .unwrap();
    assert!(error.message.contains("meminfo:each"), "{error}");
}
