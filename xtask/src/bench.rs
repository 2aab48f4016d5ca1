//! Ratios measured side by side in one run: nothing here is compared with a number from another
//! day or machine.

use crate::layers::root;
use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Alternations of each pair.
const ROUNDS: usize = 7;

/// Everything that docs/performance.md reports.
pub fn all(usemem: Option<&Path>) -> anyhow::Result<()> {
    let kdyno = release_kdyno()?;
    start_up(&kdyno)?;
    println!();
    cargo(&[
        "run",
        "--release",
        "--quiet",
        "--package",
        "kdyno-testbox",
        "--example",
        "monitor_cost",
    ])?;
    println!();
    match usemem {
        Some(usemem) => against_usemem(&kdyno, usemem),
        None => {
            println!("usemem against upstream's: not measured, no path was given");
            Ok(())
        }
    }
}

/// 10,000 metrics x 10 runs x 2 variants through `kdyno compare --csv`, beside benchstat where a
/// build of it is given. kdyno itself measures both.
pub fn values(benchstat: Option<&Path>) -> anyhow::Result<()> {
    let kdyno = release_kdyno()?;
    let dir = std::env::temp_dir().join(format!("kdyno-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let csv = dir.join("values.csv");
    let sides = [dir.join("old.txt"), dir.join("new.txt")];
    write_values(&csv, &sides)?;
    let out = dir.join("out");
    let ours = format!("{} compare --csv {}", kdyno.display(), csv.display());
    let mut commands = vec![format!("{ours} > {}", out.display())];
    if let Some(benchstat) = benchstat {
        let [old, new] = &sides;
        let theirs = [benchstat, old, new].map(|path| path.display().to_string());
        commands.push(format!("{} > {}", theirs.join(" "), out.display()));
    }
    let run = |words: &[&str]| -> anyhow::Result<()> {
        let status = Command::new(&kdyno)
            .args(words)
            .env("KDYNO_HOME", dir.join("home"))
            .env_remove("KDYNO_INDEX")
            .env("KDYNO_RUNTIME_DIR", dir.join("state"))
            .status()?;
        ensure!(status.success(), "kdyno {} failed", words.join(" "));
        Ok(())
    };
    let mut words = vec!["run", "-n", "10", "--label", "kdyno"];
    words.extend(commands.iter().map(String::as_str));
    run(&words)?;
    run(&[
        "stat",
        "--metric",
        "*.time.user_time",
        "--metric",
        "*.time.system_time",
    ])?;
    run(&["stat", "--metric", "*.time.maximum_resident_set_size"])?;
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

/// The same made-up values in both tools' forms: every fiftieth metric is 5 % higher.
fn write_values(csv: &Path, sides: &[PathBuf; 2]) -> anyhow::Result<()> {
    let mut state = 1_u64;
    // A sum of twelve uniform numbers is nearly normal.
    let mut normal = || {
        let mut uniform = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    };
    let mut text = "metric,variant,value\n".to_owned();
    let mut of_sides = [String::new(), String::new()];
    for metric in 0..10_000 {
        let level = (5.0 + 2.0 * normal()).exp();
        for (side, name) in ["old", "new"].into_iter().enumerate() {
            let change = if side == 1 && metric % 50 == 0 {
                1.05
            } else {
                1.0
            };
            for _ in 0..10 {
                let value = level * change * (1.0 + 0.02 * normal());
                text.push_str(&format!("m{metric},{name},{value:.6}\n"));
                of_sides[side].push_str(&format!("Benchmarkm{metric} 1 {value:.6} ns/op\n"));
            }
        }
    }
    std::fs::write(csv, text)?;
    for (path, text) in sides.iter().zip(of_sides) {
        std::fs::write(path, text)?;
    }
    Ok(())
}

/// Builds what users run, and says where it is.
pub(crate) fn release_kdyno() -> anyhow::Result<PathBuf> {
    cargo(&["build", "--release", "--package", "kdyno"])?;
    Ok(root().join("target/release/kdyno"))
}

fn cargo(words: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("cargo")
        .args(words)
        .current_dir(root())
        .status()?;
    ensure!(status.success(), "cargo {} failed", words.join(" "));
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// `kdyno --version` beside `/bin/true`, alternating.
fn start_up(kdyno: &Path) -> anyhow::Result<()> {
    let time = |program: &Path| -> anyhow::Result<f64> {
        let begun = Instant::now();
        Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .status()?;
        Ok(begun.elapsed().as_secs_f64() * 1e3)
    };
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..5 * ROUNDS {
        ours.push(time(kdyno)?);
        bare.push(time(Path::new("/bin/true"))?);
    }
    println!(
        "kdyno --version: median {:.2} ms; /bin/true: {:.2} ms",
        median(ours),
        median(bare)
    );
    Ok(())
}

/// What one execution gave.
struct Execution {
    lines: usize,
    bytes: u64,
    kbps: f64,
    minor_faults: f64,
    cpu_seconds: f64,
}

/// The cases of the two tools, their arguments being the same.
const CASES: [(&str, &[&str]); 8] = [
    ("anon-w-seq", &["-n", "2", "512m"]),
    ("anon-w-seq-mt", &["-t", "2", "512m"]),
    ("anon-w-rand", &["-n", "2", "--random", "128m"]),
    (
        "anon-cow-seq",
        &["-n", "2", "--prealloc", "--prefault", "512m"],
    ),
    (
        "anon-cow-rand",
        &["-n", "2", "--prealloc", "--prefault", "--random", "128m"],
    ),
    (
        "anon-cow-seq-mt",
        &["-t", "2", "--prealloc", "--prefault", "512m"],
    ),
    ("anon-w-seq-hugetlb", &["-n", "2", "-O", "-U", "1073741824"]),
    (
        "anon-cow-seq-hugetlb",
        &[
            "-n",
            "2",
            "--prealloc",
            "--prefault",
            "-O",
            "-U",
            "1073741824",
        ],
    ),
];

/// Both tools, alternating, on the same arguments: kdyno's figures over upstream's. The huge-page
/// cases need pages in the pool.
fn against_usemem(kdyno: &Path, usemem: &Path) -> anyhow::Result<()> {
    println!("usemem: kdyno's over upstream's, medians of {ROUNDS} alternations");
    println!(
        "{:<22}{:>8}{:>8}{:>10}{:>12}{:>8}",
        "case", "lines", "bytes", "faults", "throughput", "CPU"
    );
    for (case, arguments) in CASES {
        let ours = [kdyno.as_os_str(), "workload".as_ref(), "usemem".as_ref()];
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let first = execute(&ours, arguments);
            let second = execute(&[usemem.as_os_str()], arguments);
            let (Ok(first), Ok(second)) = (first, second) else {
                println!("{case:<22} does not run here (huge pages in the pool?)");
                break;
            };
            // The first alternation warms the memory up.
            if round > 0 {
                a.push(first);
                b.push(second);
            }
        }
        if a.is_empty() {
            continue;
        }
        let ratio = |of: fn(&Execution) -> f64| {
            median(a.iter().map(of).collect()) / median(b.iter().map(of).collect())
        };
        println!(
            "{case:<22}{:>8.3}{:>8.3}{:>10.4}{:>12.2}{:>8.2}",
            ratio(|e| e.lines as f64),
            ratio(|e| e.bytes as f64),
            ratio(|e| e.minor_faults),
            ratio(|e| e.kbps),
            ratio(|e| e.cpu_seconds),
        );
    }
    Ok(())
}

/// One execution, measured by `kdyno run` in a home of its own, the same way for both tools.
fn execute(program: &[&std::ffi::OsStr], arguments: &[&str]) -> anyhow::Result<Execution> {
    let home = std::env::temp_dir().join(format!("kdyno-bench-{}", std::process::id()));
    let kdyno: PathBuf = root().join("target/release/kdyno");
    let run = Command::new(&kdyno)
        .env("KDYNO_HOME", &home)
        .env_remove("KDYNO_INDEX")
        .args(["run", "-n", "1", "--warm-up", "0", "--"])
        .args(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let show = |what: &str| -> anyhow::Result<String> {
        let output = Command::new(&kdyno)
            .env("KDYNO_HOME", &home)
            .env_remove("KDYNO_INDEX")
            .args(["show", what])
            .output()?;
        Ok(String::from_utf8(output.stdout)?)
    };
    let (stdout, record) = (show("--stdout"), show("--json"));
    std::fs::remove_dir_all(&home).context("the bench's home")?;
    ensure!(run?.success(), "it failed");
    let (stdout, record) = (stdout?, record?);
    let tasks: Vec<Vec<&str>> = stdout
        .lines()
        .filter(|line| line.contains(" bytes / "))
        .map(|line| line.trim_start_matches('.').split(' ').collect())
        .collect();
    let column = |place: usize| -> Vec<u64> {
        tasks
            .iter()
            .filter_map(|words| words.get(place)?.parse().ok())
            .collect()
    };
    let metric = |name: &str| -> f64 {
        let behind = record
            .split(&format!("time.{name}\""))
            .nth(1)
            .unwrap_or_default();
        let value = behind.split("\"scalar\":").nth(1).unwrap_or_default();
        value
            .split(['}', ','])
            .next()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(f64::NAN)
    };
    Ok(Execution {
        lines: tasks.len(),
        bytes: column(0).iter().sum(),
        kbps: column(6).iter().sum::<u64>() as f64,
        minor_faults: metric("minor_page_faults"),
        cpu_seconds: metric("user_time") + metric("system_time"),
    })
}
