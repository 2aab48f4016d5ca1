//! Every example of the manual works: those of all help texts, which are those of the man pages,
//! and the commands of README.md and docs/. Each is given to a shell as it is written, in a sandbox
//! of its own that has the files, runs and commands that the examples name.

use crate::bench::{Bench, Printed, binary, machine_turn};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Examples that no test can run, and why.
const NOT_RUN: [(&str, &str); 5] = [
    ("./test", "it runs this test"),
    (
        "cargo xtask bench [PATH-TO-A-BUILD-OF-UPSTREAM-USEMEM]",
        "it takes minutes and needs a build of another program",
    ),
    (
        "cargo run --release -p kdyno-stats --example calibration -- --trials 20000 --seed 1",
        "it takes minutes of all CPUs",
    ),
    (
        "kdyno hist --func vfs_read -n 100 -- ls",
        "it needs root and a kernel with kprobes and hist triggers",
    ),
    (
        "kdyno run jobs/syslatency.yaml",
        "it needs root and a minute; a test of its own runs it shortened",
    ),
];

/// Exit statuses that are documented, where they are not 0.
const STATUS: [(&str, i32); 1] = [("kdyno compare --fail-on regression", 1)];

/// Words that mean that an example changes settings of the machine, or asks whether it could.
const SETTINGS: [&str; 3] = ["thp.", "sysctl.", "thp-setting"];

/// Ids that stand in examples for some run or plan.
const IDS: [&str; 2] = ["3f0c5e1d", "b7d2e94c"];

/// Variants that examples name, far enough apart to be told in few runs that vary a little.
const HISTORY: &str = "\
testcase: vm-scalability
command: 'n=$(date +%N); echo value: $((X * 1000 + 1${n#??????} % 10))'
metrics: {value: {unit: ops/s, better: higher}}
runs: 5
warm_up: 0
monitors: none
variants:
  good: {environment: {X: \"100\"}}
  bad: {environment: {X: \"80\"}}
  fixed: {environment: {X: \"99\"}}
  idle: {environment: {X: \"50\"}}
  loaded: {environment: {X: \"150\"}}
";

const JOB: &str = "\
testcase: mine
command: 'n=$(date +%N); echo value: $((1000 + 1${n#??????} % 10))'
metrics: {value: {unit: ops/s, better: higher}}
runs: 3
monitors: none
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text_of(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// A home with runs, and beside it the files and commands that examples name.
struct Sandbox {
    bench: Bench,
    /// What stands for [`IDS`]: plans, and runs.
    plans: Vec<String>,
    runs: Vec<String>,
}

impl Sandbox {
    fn new() -> Self {
        let bench = Bench::new();
        for dir in ["box/jobs", "box/programs/mine", "bin"] {
            std::fs::create_dir_all(bench.path(dir)).expect("a directory");
        }
        fill(&bench);
        measure(&bench);
        let rows = bench.listed();
        let short = |id: &serde_json::Value| -> String {
            let id = id.as_str().expect("an id");
            id[id.len() - 8..].to_owned()
        };
        let last = |field: &str| -> Vec<String> {
            let mut ids: Vec<String> = Vec::new();
            for row in rows.iter().rev() {
                let id = short(&row[field]);
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
            ids
        };
        Self {
            plans: last("plan"),
            runs: last("run_id"),
            bench,
        }
    }

    /// Runs one example in a copy of everything.
    fn run(&self, example: &str) -> Printed {
        let fresh = Bench::new();
        for dir in ["box", "bin", "home"] {
            let copied = Command::new("cp")
                .arg("-r")
                .args([self.bench.path(dir), fresh.path(dir)])
                .status();
            assert!(copied.is_ok_and(|status| status.success()), "cp {dir}");
        }
        let ids = if example.starts_with("kdyno show") {
            &self.runs
        } else {
            &self.plans
        };
        let mut line = example.to_owned();
        for (made_up, id) in IDS.iter().zip(ids) {
            line = line.replace(made_up, id);
        }
        let path = std::env::var("PATH").unwrap_or_default();
        fresh
            .command_of("/bin/bash".as_ref(), &["-e", "-o", "pipefail", "-c", &line])
            .current_dir(fresh.path("box"))
            .env("HOME", fresh.path("box"))
            .env_remove("XDG_CONFIG_HOME")
            .env("PATH", format!("{}:{path}", fresh.path("bin").display()))
            .output()
            .expect("bash")
            .into()
    }
}

fn executable(bench: &Bench, name: &str, text: &str) {
    let path = bench.file(&format!("bin/{name}"), text);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(path, mode).expect("an executable");
}

/// Files and commands.
fn fill(bench: &Bench) {
    std::os::unix::fs::symlink(binary(), bench.path("bin/kdyno")).expect("a link");
    let cargo =
        "#!/bin/sh\n[ \"$1 $2 $3\" = 'run --release --' ] || exit 99\nshift 3\nexec kdyno \"$@\"\n";
    executable(bench, "cargo", cargo);
    executable(bench, "cmd1", "#!/bin/sh\nsleep 0.01\n");
    executable(bench, "cmd2", "#!/bin/sh\nsleep 0.02\n");
    let stream = "#!/bin/sh\necho 'Copy:  12345.6  0.013'\necho 'Triad: 13579.2  0.018'\n";
    executable(bench, "stream", stream);
    for job in std::fs::read_dir(root().join("jobs"))
        .expect("jobs")
        .flatten()
    {
        let name = job.file_name().into_string().expect("a name");
        bench.file(
            &format!("box/jobs/{name}"),
            text_of(&format!("jobs/{name}")),
        );
    }
    // The quickstart as it is, but shorter.
    let mut quickstart = text_of("jobs/quickstart.yaml");
    for (long, short) in [
        ("\nruntime: 4s\n", "\nruntime: 1s\n"),
        ("size: 512M", "size: 16M"),
        ("\nruns: 5\n", "\nruns: 2\n"),
    ] {
        assert!(
            quickstart.contains(long),
            "jobs/quickstart.yaml has no {long:?}"
        );
        quickstart = quickstart.replace(long, short);
    }
    bench.file("box/jobs/quickstart.yaml", quickstart);
    let variants = "variants: {slow: {environment: {A: \"1\"}}, fast: {environment: {A: \"2\"}}}\n";
    bench.file("box/job.yaml", format!("{JOB}{variants}"));
    let usecs = "     usecs               : count     distribution\n";
    let rows = |first: u32, last: u32| {
        format!("{usecs} 8 -> 15 : {first} |**|\n 16 -> 31 : 0 | |\n 32 -> 63 : {last} |*|\n")
    };
    bench.file("box/old.hist", rows(900, 300));
    bench.file("box/new.hist", rows(1200, 0));
    bench.file("box/before.txt", "10\n11\n12\n");
    bench.file("box/after.txt", "# newer\n20\n21\n22\n");
    bench.file(
        "box/results.csv",
        "metric,variant,value\nrate,old,10\nrate,old,11\nrate,new,20\nrate,new,21\n",
    );
    let mine = root().join("crates/job/catalog/hackbench");
    let copied = Command::new("cp")
        .arg("-r")
        .args([mine.join("program.yaml"), mine.join("fixtures")])
        .arg(bench.path("box/programs/mine"))
        .status();
    assert!(copied.is_ok_and(|status| status.success()));
    for dir in [
        ".local/share/bash-completion/completions",
        ".config/fish/completions",
    ] {
        std::fs::create_dir_all(bench.path("box").join(dir)).expect("a directory");
    }
}

/// Runs: a plan that was left unfinished, one of a catalog program, then one with many variants on
/// three machines, the last of which is this one.
fn measure(bench: &Bench) {
    let run = |words: &[&str]| {
        let all = [&["run", "--no-doctor"], words].concat();
        bench.kdyno(&all).ok();
    };
    let slow = bench.file(
        "slow.yaml",
        "testcase: t\ncommand: 'sleep 0.3; echo value: 1'\nmonitors: none\n",
    );
    let script = format!("{} run --no-doctor --json {slow} | head -n 1", binary());
    let cut = bench
        .command_of("/bin/sh".as_ref(), &["-c", &script])
        .output();
    assert!(cut.expect("a shell").status.success());
    let plans = std::fs::read_dir(bench.home().join("plans")).expect("plans");
    assert!(
        plans
            .flatten()
            .all(|plan| !plan.path().join("finished").exists())
    );
    let catalog = "vm-scalability: {test: anon-w-seq, size: 8M, nr_task: 1}\nruntime: 1s\nruns: 1\nwarm_up: 0\n";
    run(&[&bench.file("catalog.yaml", catalog)]);
    let latency = "testcase: syslatency\nruntime: 200ms\nruns: 1\nwarm_up: 0\n";
    run(&[&bench.file("latency.yaml", latency)]);
    let history = bench.file("history.yaml", HISTORY);
    for testbox in ["ivb", "byt"] {
        run(&[&history, "--testbox", testbox]);
    }
    run(&[&history]);
    let elsewhere = bench
        .command(&["run", "--no-doctor", &history, "--testbox", "kbl"])
        .env("KDYNO_HOME", bench.path("box/box2"))
        .output();
    Printed::from(elsewhere.expect("kdyno starts")).ok();
}

/// The examples of a help text: the lines below `Examples:` without what is said of them.
fn examples_in(help: &str) -> Vec<String> {
    let below = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    below
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  "))
        .map(|line| line.split_once("  ").map_or(line, |(command, _)| command))
        .map(str::to_owned)
        .collect()
}

/// The names of a command's subcommands.
fn subcommands_in(help: &str) -> Vec<String> {
    let below = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    below
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// The examples of a command and of all below it.
fn collect(words: &[&str], found: &mut Vec<String>) {
    let bench = Bench::new();
    let help = bench
        .command(&[words, &["--help"]].concat())
        .env("COLUMNS", "1000")
        .output()
        .expect("kdyno starts");
    let help = Printed::from(help).ok().out;
    let examples = examples_in(&help);
    let announced = help.contains("Examples:");
    assert_eq!(announced, !examples.is_empty(), "{words:?}: {help}");
    found.extend(examples);
    for name in subcommands_in(&help) {
        collect(&[words, &[&name]].concat(), found);
    }
}

/// The indented commands of a document, outside of fences: each by itself, but a block with a
/// here-document as the one script that it is.
fn commands_in(document: &str) -> Vec<String> {
    let mut fenced = false;
    let mut found = Vec::new();
    let mut block: Vec<&str> = Vec::new();
    for line in document.lines().chain([""]) {
        fenced ^= line.starts_with("```");
        match line.strip_prefix("    ").filter(|_| !fenced) {
            Some(command) => block.push(command),
            None if block.iter().any(|command| command.contains("<<")) => {
                found.push(std::mem::take(&mut block).join("\n"));
            }
            None => found.extend(block.drain(..).map(str::to_owned)),
        }
    }
    found
}

/// Whether something that an example needs is not here, said aloud.
fn is_skipped(example: &str) -> bool {
    let missing = ["jq"].iter().find(|program| {
        example.contains(&format!("| {program} "))
            && Command::new(program).arg("--version").output().is_err()
    });
    if let Some(program) = missing {
        eprintln!("skipped `{example}`: {program} is not installed");
    }
    let thp = Path::new("/sys/kernel/mm/transparent_hugepage/enabled");
    let no_thp = example.contains("thp") && !thp.exists();
    if no_thp {
        eprintln!("skipped `{example}`: this kernel has no transparent huge pages");
    }
    missing.is_some() || no_thp
}

/// Runs all and tells every one that does not end as documented.
fn run_all(examples: Vec<String>) {
    let sandbox = Sandbox::new();
    let mut wrong = Vec::new();
    for example in examples.into_iter().collect::<BTreeSet<String>>() {
        if NOT_RUN.iter().any(|(name, _)| *name == example) || is_skipped(&example) {
            continue;
        }
        let _turn = if SETTINGS.iter().any(|word| example.contains(word)) {
            let Some(turn) = machine_turn(&format!("`{example}`")) else {
                continue;
            };
            Some(turn)
        } else {
            None
        };
        let command = example.split("  #").next().unwrap_or(&example).trim();
        let expected = STATUS.iter().find(|(name, _)| *name == command);
        let expected = expected.map_or(0, |(_, status)| *status);
        let printed = sandbox.run(&example);
        if printed.status != Some(expected) || printed.err.contains("panicked") {
            wrong.push(format!("`{example}`: {printed:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn examples_of_the_help_texts_work() {
    let mut examples = Vec::new();
    collect(&[], &mut examples);
    assert!(
        examples.len() > 40,
        "only {} examples were found",
        examples.len()
    );
    let foreign = examples.iter().find(|line| !line.starts_with("kdyno "));
    assert_eq!(foreign, None, "an example begins with `kdyno`");
    run_all(examples);
}

#[test]
fn commands_of_the_documents_work() {
    let documents = std::fs::read_dir(root().join("docs"))
        .expect("docs")
        .flatten();
    let documents = documents
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"));
    let readme = commands_in(&text_of("README.md"));
    assert!(
        readme.len() > 15,
        "only {} commands were found",
        readme.len()
    );
    let all = documents.flat_map(|name| commands_in(&text_of(&name)));
    let all: Vec<String> = all.chain(readme).collect();
    for (name, reason) in NOT_RUN {
        assert!(
            all.iter().any(|line| line == name),
            "`{name}` ({reason}) is in no document"
        );
    }
    run_all(all);
}

#[test]
fn jobs_of_the_readme_are_jobs() {
    let bench = Bench::new();
    let readme = text_of("README.md");
    let blocks: Vec<&str> = readme
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(blocks.len() >= 2);
    for block in blocks {
        let job = bench.file("job.yaml", block);
        bench.kdyno(&["run", "--dry-run", &job]).ok();
    }
}

#[test]
fn man_pages_have_no_mistakes_and_name_only_pages_that_exist() {
    let bench = Bench::new();
    let printed = bench.kdyno(&["man", "pages"]).ok();
    let pages: Vec<&str> = printed.out.lines().collect();
    assert!(pages.len() > 15, "{pages:?}");
    for page in &pages {
        let text = std::fs::read_to_string(bench.path(page)).expect("a page");
        let text = text.replace("\\-", "-");
        for named in text
            .split_whitespace()
            .filter_map(|w| w.strip_suffix("(1)"))
        {
            let path = bench.path(&format!("pages/{named}.1"));
            assert!(path.exists(), "{page} names {named}(1)");
        }
    }
    if Command::new("groff").arg("--version").output().is_err() {
        eprintln!("skipped the look at man pages: groff is not installed");
        return;
    }
    for page in &pages {
        let words = ["-man", "-Tutf8", "-ww", "-z", page];
        let printed: Printed = bench
            .command_of("groff".as_ref(), &words)
            .output()
            .expect("groff")
            .into();
        assert_eq!(printed.ok().err, "", "{page}");
    }
}

#[test]
fn completion_scripts_are_scripts() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = bench.file("script", bench.kdyno(&["completions", shell]).ok().out);
        let checked = bench.command_of(shell.as_ref(), &["-n", &script]).output();
        let Ok(checked) = checked else {
            eprintln!("skipped the look at completions for {shell}: it is not installed");
            continue;
        };
        assert_eq!(Printed::from(checked).ok().err, "", "{shell}");
    }
}
