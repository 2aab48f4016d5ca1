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

fn one(name: &str, dir: &Path) -> Box<dyn Monitor> {
    let (mut monitors, notes) = available(&[name.to_owned()], &SysRoot::at(dir)).unwrap();
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
    for file in files("psi").unwrap() {
        put(dir.path(), file, text);
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

    let error = available(&names(&["vmstaat"]), &root).err().unwrap();
    assert!(error.message.contains("`vmstaat`"), "{error}");
    assert!(error.hint.unwrap().contains("there are: proc-vmstat"));

    let (monitors, notes) = available(&names(&["psi", "vmstat", "proc-vmstat"]), &root).unwrap();
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
    for name in DEFAULT_MONITORS {
        let dir = tempfile::tempdir().unwrap();
        let paths = files(name).unwrap();
        paths.iter().for_each(|path| put(dir.path(), path, ""));
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
        assert_eq!(set.t_ns.len(), 200);
        for column in &set.columns {
            assert_eq!(column.values.len(), 200);
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
    let names: Vec<String> = DEFAULT_MONITORS.iter().map(|n| (*n).to_owned()).collect();
    let (mut monitors, notes) = available(&names, &SysRoot::real()).unwrap();
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
        assert_eq!(column.values.len(), 5);
        // The kernel does not promise that idle and iowait never go back.
        let steady = !column.metric.as_str().ends_with("idle")
            && !column.metric.as_str().ends_with("iowait");
        if column.kind == Counter && steady {
            assert!(column.values.is_sorted(), "{column:?}");
        }
    }
}
