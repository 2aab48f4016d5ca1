//! A fuzz driver for stable Rust: seeds are mutated, parsers must neither panic nor hang.
//!
//! Not coverage-guided; in exchange it needs no other toolchain and a failure is reproduced by
//! its seed. What it finds becomes a test of the crate.

use anyhow::{Context, ensure};
use kdyno_analyze::distribution::buckets_of;
use kdyno_analyze::render::hist::{Series, bcc, bpftrace, perf, quantiles, shares};
use kdyno_analyze::render::{self, text::TextOptions};
use kdyno_analyze::{CompareOptions, compare_values};
use kdyno_formats::{RawOutput, extract, hist, read_long};
use kdyno_job::catalog::Catalog;
use kdyno_job::error::Source;
use kdyno_job::include::expand;
use kdyno_job::jobfile::JobFile;
use kdyno_job::resolve::resolve;
use kdyno_model::{
    Better, BoxFacts, ClockKind, ExtractRules, Measurement, MonitorOverhead, Outcome, Round, Value,
    Window,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Longer than any input of this size may take.
const SLOW: Duration = Duration::from_secs(2);

/// What the parsers see in real life, and a dictionary of what is special to them.
const JOBS: [&str; 5] = [
    include_str!("../../jobs/quickstart.yaml"),
    include_str!("../../jobs/thp-setting.yaml"),
    include_str!("../../jobs/hackbench.yaml"),
    "a: &x {b: 1}\n<<: *x\n---\ntestcase: t\ncommand: [a, 'b']\nvariants: {v: {environment: {A: ~}}}\n",
    "<<: {file: b.yaml, ignore: [a]}\ntestcase: t\nenvironment.A+: 2\nsysctl-:\ncommand: |\n  echo 1\nhugepages: {2M: 5}\nsysctl: {vm.swappiness: [1, 2]}\nneed_memory: 1%\n",
];
const ENTRIES: [&str; 2] = [
    include_str!("../../crates/job/catalog/vm-scalability/program.yaml"),
    "program: served\nabout: x\ntool: {name: cat, hint: y}\ninstrument: {external: cat}\noptions:\n  size: {type: size, default: 1M, about: z}\nneeds:\n  - set: {memory: '{size}', path: /proc}\nsetup:\n  - words: [a, '{scratch}']\nserver:\n  command:\n    - when: root\n      words: [b]\n  ready: {port: size / 4096}\nload:\n  - words: [c]\nsettings:\n  - set: {scratch.tmpfs: '{size}'}\nextract: ['^v (?P<v>\\d+)']\nmetrics:\n  v: {about: a, role: headline, reduce: {stream: v, within: last, across: mean}}\n",
];
const OUTPUTS: [&str; 3] = [
    include_str!("../../crates/job/catalog/vm-scalability/fixtures/anon-w-seq.out"),
    include_str!("../../crates/job/catalog/hackbench/fixtures/process-pipe.out"),
    include_str!("../../crates/job/catalog/command/fixtures/keys.out"),
];
const VALUES: [&str; 2] = [
    "metric,variant,value\nx,a,1\nx,a,2\nx,a,1.5\nx,a,1.7\nx,b,3\nx,b,4\nx,b,3.5\nx,b,3.1\ny,a,0\ny,b,-1\n",
    "metric,variant,value,block\nx,a,1e300,0\nx,b,2e300,0\nx,a,5e-324,1\nx,b,0,1\n\"q,z%\",a,NaN,2\n\"q,z%\",b,7,2\n",
];
const HISTOGRAMS: [&str; 12] = [
    "disk = b'vda'\n     usecs               : count     distribution\n         0 -> 1          : 4        |*  |\n         4 -> 7          : 40       |***|\n\navg = 5 usecs, total: 220 usecs, count: 44\n",
    "@usecs[read]:\n(..., 0)   2 |@|\n[0]   1 |@|\n[512, 1K)   7 |@@@|\n[1K, ...)   1 |@|\n",
    "#   DURATION     |      COUNT | GRAPH |\n   512 - 1024 us |          3 | ## |\n     1 - 2    ms |          1 | # |\n     1 - ...   s |          1 | # |\n\n# statistics  (in usec)\n  total time:    14\n       count:     5\n",
    include_str!("../../crates/job/catalog/cyclictest/fixtures/priority-20.out"),
    "# RTLA timerlat histogram\n# Time unit is microseconds (us)\nIndex   IRQ-000   Thr-000\n0             5         0\n3             1         4\nover:         0         2\ncount:        6         6\nmin:          0         -\n",
    "# trigger info: hist:keys=comm,lat.log2:size=2048 [active]\n{ comm: cat, lat: ~ 2^6  } hitcount:   29\n{ comm: ls, lat: ~ 10-19 } hitcount:   1\nTotals:\n    Hits: 30\n    Dropped: 1\n",
    "{'ts': '', 'val_type': 'usecs', 'data': [{'interval-start': 0, 'interval-end': 1, 'count': 3}], 'flags': b'a\\x61'}\n",
    "{\"type\": \"hist\", \"data\": {\"@h\": {\"cat\": [{\"max\": -1, \"count\": 1}, {\"min\": 0, \"max\": 9, \"count\": 1}, {\"min\": 10, \"count\": 1}]}}}\n",
    "{\"resolution_in_ns\": 0, \"thread\": {\"0\": {\"histogram\": {\"13\": 39}, \"cycles\": 41, \"min\": 1, \"max\": 99}}}\n",
    "From: a\nContent-Type: multipart/mixed; boundary=\"b\"\n\n--b\nContent-Transfer-Encoding: quoted-printable\n\n> Time  a b  c=\n\n> N: 12 1001\n> 10us: . 1=0A> 490us: 2\n1000\n> 0.5us: 10 .\n--b\nContent-Transfer-Encoding: base64\n\nPjEwdXM6IDEgMgo=\n--b--\n",
    "Time a b\nN: 6 901\n10us: . 1\n20us: 5 900\n>10000us: 1 .\n",
    "{\"jobs\": [{\"jobname\": \"a\", \"read\": {\"clat_ns\": {\"min\": 1, \"max\": 900, \"N\": 10, \"bins\": {\"101\": 4, \"129\": 3}}, \"lat_ns\": {\"min\": 1, \"max\": 900, \"N\": 10, \"percentile\": {\"50.0\": 5}}}}]}\n",
];
const WORDS: [&str; 24] = [
    "<<",
    "*a",
    "&a",
    "---",
    "...",
    "~",
    "[",
    "]",
    "{",
    "}",
    "- ",
    ": ",
    "'",
    "\"",
    "\n",
    "\t",
    "|",
    "100%",
    "99999999999999999999",
    "1e999",
    "nan",
    "\u{feff}",
    "\u{0}",
    "\u{1f600}",
];

/// Marsaglia's xorshift64.
pub(crate) struct Random(u64);

impl Random {
    /// Zero would stay zero for ever.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    /// A seed with a few bytes changed, removed, doubled, or words put in.
    fn mutated(&mut self, seeds: &[&str]) -> Vec<u8> {
        let seed = seeds[self.below(seeds.len())];
        self.changed(seed.as_bytes())
    }

    pub(crate) fn changed(&mut self, seed: &[u8]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..=self.below(8) {
            let at = self.below(bytes.len());
            let end = (at + self.below(20)).min(bytes.len());
            match self.below(5) {
                0 if at < bytes.len() => bytes[at] = self.below(256) as u8,
                1 => drop(bytes.drain(at..end)),
                2 => {
                    let piece = bytes[at..end].repeat(1 + self.below(50));
                    bytes.splice(at..at, piece);
                }
                _ => {
                    let word = WORDS[self.below(WORDS.len())].repeat(1 + self.below(3));
                    bytes.splice(at..at, word.into_bytes());
                }
            }
        }
        bytes
    }
}

/// Mutates and parses; stops at the first panic or slow input and keeps it in a file.
pub fn all(iterations: u64, seed: u64) -> anyhow::Result<()> {
    let catalog = Catalog::built_in().context("the catalog")?;
    let mut random = Random::new(seed);
    println!("{iterations} inputs of each kind from seed {seed}");
    for n in 0..iterations {
        let job = random.mutated(&JOBS);
        watched("job", n, &job, || read_job(&job, &catalog))?;
        let entry = random.mutated(&ENTRIES);
        watched("entry", n, &entry, || read_entry(&entry, &catalog))?;
        let output = random.mutated(&OUTPUTS);
        watched("output", n, &output, || read_output(&output, &catalog))?;
        let values = random.mutated(&VALUES);
        watched("values", n, &values, || judge_values(&values))?;
        let histogram = random.mutated(&HISTOGRAMS);
        watched("histogram", n, &histogram, || read_histogram(&histogram))?;
    }
    println!("no panic and nothing slow");
    Ok(())
}

pub(crate) fn watched(
    kind: &str,
    n: u64,
    input: &[u8],
    parse: impl FnOnce(),
) -> anyhow::Result<()> {
    let begun = Instant::now();
    let survived = catch_unwind(AssertUnwindSafe(parse)).is_ok();
    if survived && begun.elapsed() < SLOW {
        return Ok(());
    }
    let path = std::env::temp_dir().join(format!("kdyno-fuzz-{kind}-{n}"));
    std::fs::write(&path, input)?;
    ensure!(
        survived,
        "{kind} {n} panicked; the input is {}",
        path.display()
    );
    ensure!(
        false,
        "{kind} {n} took {:?}; the input is {}",
        begun.elapsed(),
        path.display()
    );
    Ok(())
}

fn read_job(bytes: &[u8], catalog: &Catalog) {
    let text = String::from_utf8_lossy(bytes);
    let included = |name: &str, _: &str| Ok((name.to_owned(), JOBS[3].to_owned()));
    let Ok(expanded) = expand("fuzz.yaml", &text, &included) else {
        return;
    };
    let text = &expanded.text;
    let Ok(job) = JobFile::read(
        Source {
            origins: &expanded.origins,
            ..Source::new("fuzz.yaml", text)
        },
        catalog,
    ) else {
        return;
    };
    if job.case_count() > 2000 {
        return;
    }
    let Ok(list) = job.cases("k", catalog) else {
        return;
    };
    let facts = BoxFacts {
        cpus: 4,
        memory_bytes: 8 << 30,
        numa_nodes: 1,
        ..BoxFacts::default()
    };
    for spec in list.cases.iter().flat_map(|case| &case.variants) {
        // Whether it resolves is not the question.
        let _ = resolve(spec, &facts, &[], catalog);
    }
}

/// An entry that is read resolves or says why not.
fn read_entry(bytes: &[u8], catalog: &Catalog) {
    let text = String::from_utf8_lossy(bytes);
    let mut catalog = catalog.clone();
    if let Ok(name) = catalog.add(Source::new("program.yaml", &text)) {
        let job = format!("testcase: {name}\n");
        let option = format!("testcase: {name}\ntest: anon-w-seq\n");
        for job in [job, option] {
            read_job(job.as_bytes(), &catalog);
        }
    }
}

/// Values that are read are judged and printed in every form, without a number that is none.
fn judge_values(bytes: &[u8]) {
    let Ok(table) = read_long(bytes) else {
        return;
    };
    let comparison = compare_values(table, "fuzz", Better::Lower, &CompareOptions::default());
    for text in [
        render::text::render(&comparison, &TextOptions { lkp_rule: true }),
        render::csv::render(&comparison),
        render::json::render(&comparison),
    ] {
        let words = text.split(|c: char| !c.is_alphanumeric());
        let wrong = words.filter(|word| ["NaN", "inf"].contains(word)).count();
        let named = String::from_utf8_lossy(bytes);
        let own = ["NaN", "inf"].iter().any(|word| named.contains(word));
        assert!(own || wrong == 0, "a number that is none is printed");
    }
}

/// A histogram that is read can be stored, and printed in every form without a number that is none.
fn read_histogram(bytes: &[u8]) {
    let tools = hist::Tool::ALL.map(|(tool, _)| Some(tool));
    for tool in tools.into_iter().chain([None]) {
        let Ok(report) = hist::read(bytes, tool) else {
            continue;
        };
        let of = |section: &hist::Section| {
            let value = Value::Histogram(section.histogram.clone());
            assert!(value.check().is_ok(), "a histogram that cannot be stored");
            Series {
                name: "s".to_owned(),
                runs: vec![buckets_of(&section.histogram)],
            }
        };
        let series: Vec<Series> = report.sections.iter().take(4).map(of).collect();
        let mut texts = vec![quantiles::quantiles(&series, "us")];
        for one in &series {
            let pooled = one.pooled();
            texts.push(bcc::log2(&pooled, "us").text);
            texts.push(bpftrace::hist("s", &pooled).text);
            texts.push(perf::latency(&pooled, false).text);
            texts.push(shares::shares(&series[0], one, "us"));
        }
        let wrong = texts
            .iter()
            .any(|text| text.contains("NaN") || text.contains("inf "));
        assert!(!wrong, "a number that is none is printed");
    }
}

fn read_output(bytes: &[u8], catalog: &Catalog) {
    let round = Round {
        stdout_to: bytes.len() as u64,
        ..Round::default()
    };
    let measurement = Measurement {
        outcome: Outcome::Done,
        window: Window::default(),
        clock: ClockKind::Wall,
        rounds: vec![round],
        facts_before: BoxFacts::default(),
        facts_after: BoxFacts::default(),
        kernel_log: Vec::new(),
        series: Vec::new(),
        overhead: MonitorOverhead::default(),
        notes: Vec::new(),
    };
    for program in catalog.names().filter_map(|name| catalog.get(name)) {
        let rules = ExtractRules {
            prefix: program.name.clone(),
            ..program.rules.clone()
        };
        let extracted = extract(
            &rules,
            RawOutput {
                stdout: bytes,
                stderr: b"",
            },
            &measurement,
        );
        let finite = extracted.is_ok_and(|e| e.readings.iter().all(|r| r.value.check().is_ok()));
        assert!(finite, "a reading is not finite");
    }
}
