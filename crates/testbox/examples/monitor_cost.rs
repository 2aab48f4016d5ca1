//! What the default monitors cost, beside a bare `pread` loop over the same files.
//!
//! Both are run in turn in one process, each after a pause of its own that lets caches cool as
//! they do between real samples. Then the monitor thread runs as in a trial.
//!
//! `cargo run --release -p kdyno-testbox --example monitor_cost -- [SAMPLES] [PAUSE_MS] [SECONDS]`

use kdyno_model::TestboxError;
use kdyno_testbox::monitors::{
    self, ALL_MONITORS, DEFAULT_MONITORS, MonitorThread, Monitors, Watched,
};
use kdyno_testbox::root::SysRoot;
use std::error::Error;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u64>());
    let samples = arguments.next().transpose()?.unwrap_or(500);
    let pause = Duration::from_millis(arguments.next().transpose()?.unwrap_or(20));
    let seconds = arguments.next().transpose()?.unwrap_or(10);
    let mut out = io::stdout();

    let (bare, ours) = interleaved(samples, pause)?;
    writeln!(
        out,
        "{samples} samples each, {pause:?} apart, CPU per sample of the default monitors"
    )?;
    writeln!(
        out,
        "  bare pread loop  mean {:>7.1} us  median {:>7.1} us",
        mean(&bare),
        median(&bare)
    )?;
    writeln!(
        out,
        "  monitors         mean {:>7.1} us  median {:>7.1} us",
        mean(&ours),
        median(&ours)
    )?;
    let means = mean(&ours) / mean(&bare);
    let medians = median(&ours) / median(&bare);
    writeln!(
        out,
        "  ratio            mean {means:>7.2}     median {medians:>7.2}"
    )?;

    let without_slabinfo: Vec<&str> = ALL_MONITORS
        .iter()
        .copied()
        .filter(|name| *name != "slabinfo")
        .collect();
    for (what, names) in [
        ("default monitors", DEFAULT_MONITORS),
        ("all but slabinfo", &without_slabinfo),
        ("all", ALL_MONITORS),
    ] {
        let thread = MonitorThread::start(open(names)?, Duration::from_secs(1))?;
        std::thread::sleep(Duration::from_secs(seconds));
        let (series, overhead, notes) = thread.stop()?;
        let columns: usize = series.iter().map(|set| set.columns.len()).sum();
        let per_second = overhead.cpu_ns as f64 / 1e6 / seconds as f64;
        writeln!(
            out,
            "{what}, {seconds} s at 1 s: {per_second:.3} ms CPU per second, {} wake-ups, {columns} columns",
            overhead.wakeups
        )?;
        for note in notes {
            writeln!(out, "  note: {note}")?;
        }
    }
    Ok(())
}

/// What the default monitors read, below `/proc`.
const DEFAULT_FILES: [&str; 9] = [
    "vmstat",
    "meminfo",
    "stat",
    "diskstats",
    "interrupts",
    "softirqs",
    "pressure/cpu",
    "pressure/memory",
    "pressure/io",
];

fn open(names: &[&str]) -> Result<Monitors, TestboxError> {
    let names: Vec<String> = names.iter().map(|&n| n.to_owned()).collect();
    let watched = Watched {
        root: &SysRoot::real(),
        cgroups: &[],
    };
    Ok(monitors::available(&names, watched)?.0)
}

/// CPU microseconds of each sample: of the bare loop, of the monitors.
fn interleaved(samples: u64, pause: Duration) -> Result<(Vec<f64>, Vec<f64>), Box<dyn Error>> {
    let mut monitors = open(DEFAULT_MONITORS)?;
    let files: Vec<File> = DEFAULT_FILES
        .iter()
        .map(|file| File::open(format!("/proc/{file}")))
        .collect::<Result<_, _>>()?;
    let mut buffer = vec![0; 32 << 10];
    let mut bare = Vec::new();
    let mut ours = Vec::new();
    for _ in 0..samples {
        std::thread::sleep(pause);
        let begin = monitors::clock::thread_cpu_ns();
        read_all(&files, &mut buffer)?;
        bare.push(microseconds_since(begin));

        std::thread::sleep(pause);
        let begin = monitors::clock::thread_cpu_ns();
        for monitor in &mut monitors {
            monitor.sample(monitors::clock::raw_ns())?;
        }
        ours.push(microseconds_since(begin));
    }
    Ok((bare, ours))
}

fn microseconds_since(begin: u64) -> f64 {
    (monitors::clock::thread_cpu_ns() - begin) as f64 / 1e3
}

fn read_all(files: &[File], buffer: &mut [u8]) -> io::Result<()> {
    for file in files {
        let mut offset = 0;
        loop {
            match file.read_at(buffer, offset)? {
                0 => break,
                n => offset += n as u64,
            }
        }
    }
    Ok(())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
