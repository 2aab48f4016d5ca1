//! The job language from the outside: a text in, cases and a plan out.

use kdyno_job::catalog::Catalog;
use kdyno_job::error::Source;
use kdyno_job::include::expand;
use kdyno_job::jobfile::JobFile;
use kdyno_job::plan::{Looks, Plan, PlanOptions, PlannedCase, draw};
use kdyno_job::resolve::resolve;
use kdyno_model::{BoxFacts, Command, PlanId};
use proptest::prelude::*;
use std::path::Path;

const QUICK: &str = "\
testcase: vm-scalability
runtime: 5s
nr_task: 100%
vm-scalability: {test: [anon-w-seq, anon-cow-seq], size: 256M}
variants:
  thp-off: {vm-scalability: {madv_thp: false}}
  thp-on:  {vm-scalability: {madv_thp: true}}
";

const MINE: &str = "\
testcase: mine
command: \"sleep 0.15; echo value: 42\"
metrics: {value: {unit: ops/s, better: higher}}
variants:
  a: {environment: {X: \"1\"}}
  b: {environment: {X: \"2\"}}
";

fn catalog() -> Catalog {
    Catalog::built_in().expect("the built-in catalog loads")
}

fn read(text: &str) -> Result<JobFile, String> {
    JobFile::read(Source::new("job.yaml", text), &catalog()).map_err(|e| with_hint(&e))
}

fn with_hint(error: &kdyno_job::error::JobError) -> String {
    format!("{error}\nhint: {}", error.hint.as_deref().unwrap_or("none"))
}

fn names(text: &str) -> Vec<String> {
    let list = read(text)
        .expect("reads")
        .cases("6.1.0", &catalog())
        .expect("expands");
    list.cases
        .iter()
        .map(|case| case.reference.name())
        .collect()
}

fn refusal(text: &str) -> String {
    match read(text) {
        Err(error) => error,
        Ok(job) => match job.cases("6.1.0", &catalog()) {
            Err(error) => with_hint(&error),
            Ok(list) => panic!("accepted, {} cases", list.cases.len()),
        },
    }
}

fn facts() -> BoxFacts {
    BoxFacts {
        testbox: "box".to_owned(),
        cpus: 4,
        memory_bytes: 8 << 30,
        numa_nodes: 1,
        ..BoxFacts::default()
    }
}

fn plan_of(text: &str, seed: u64, runs: u32) -> Plan {
    drawn(text, seed, runs, false)
}

fn drawn(text: &str, seed: u64, runs: u32, control: bool) -> Plan {
    let list = read(text)
        .expect("reads")
        .cases("6.1.0", &catalog())
        .expect("expands");
    let resolved = |spec| resolve(spec, &facts(), &["vmstat"], &catalog()).expect("resolves");
    let planned: Vec<PlannedCase> = list
        .cases
        .iter()
        .enumerate()
        .map(|(case, c)| PlannedCase {
            case,
            work: c.variants.iter().map(|spec| resolved(spec).work).collect(),
            rules: resolved(&c.base).rules,
        })
        .collect();
    let options = PlanOptions {
        id: PlanId::new(),
        created_unix_ns: 1,
        job: "job".to_owned(),
        host: "host".to_owned(),
        seed,
        runs,
        warm_up: 1,
        control,
        looks: None,
    };
    draw(&list, &planned, Vec::new(), &facts(), &options)
}

#[test]
fn the_two_first_forms_expand_to_their_cases() {
    assert_eq!(
        names(QUICK),
        [
            "vm-scalability/100%-5s-256M-anon-w-seq",
            "vm-scalability/100%-5s-256M-anon-cow-seq"
        ]
    );
    assert_eq!(names(MINE), ["mine/defaults"]);
}

#[test]
fn a_variant_is_no_part_of_name_or_hash() {
    let (head, _) = QUICK.split_once("variants:").expect("has variants");
    let with = read(QUICK).unwrap().cases("k", &catalog()).unwrap();
    let without = read(head).unwrap().cases("k", &catalog()).unwrap();
    assert_eq!(with.cases[0].reference, without.cases[0].reference);
    assert_eq!(with.variants.len(), 2);
    assert_eq!(without.variants[0].as_str(), "k");
}

#[test]
fn top_level_options_and_nested_ones_are_one_case() {
    let nested = "vm-scalability: {test: anon-w-seq, size: 1G, nr_task: 4}\n";
    let flat = "nr_task: 4\nsize: 1G\ntest: anon-w-seq\ntestcase: vm-scalability\n";
    let id = |text| {
        read(text).unwrap().cases("k", &catalog()).unwrap().cases[0]
            .reference
            .clone()
    };
    assert_eq!(id(nested), id(flat));
}

#[test]
fn an_option_with_its_default_is_the_same_case_and_hashes_do_not_change() {
    let id = |text: &str| {
        read(text).unwrap().cases("k", &catalog()).unwrap().cases[0]
            .reference
            .id
            .clone()
    };
    assert_eq!(id("hackbench: {fds: 20}\n"), id("testcase: hackbench\n"));
    assert_ne!(id("hackbench: {fds: 21}\n"), id("testcase: hackbench\n"));
    let sized = |size: &str, time: &str| {
        id(&format!(
            "runtime: {time}\nvm-scalability: {{test: anon-w-seq, size: {size}}}\n"
        ))
    };
    assert_eq!(sized("256M", "5m"), sized("256MiB", "300s"));
    assert_ne!(sized("256M", "5m"), sized("50%", "5m"));
    // Stored runs carry these ids: a change here tears old and new runs of a case apart.
    assert_eq!(
        id("testcase: t\ncommand: 'echo \"é\"; x'\n").short(),
        "76be3d5cf235"
    );
}

#[test]
fn axes_loop_in_document_order_and_null_leaves_no_part() {
    let text = "nr_threads: [1, 2]\nhackbench: {ipc: [socket, ~]}\n";
    assert_eq!(
        names(text),
        ["socket-1", "1", "socket-2", "2"].map(|p| format!("hackbench/{p}"))
    );
}

#[test]
fn documents_lay_on_the_first_one_each_alone() {
    let text = "runtime: 300s\nsize: 512G\nvm-scalability: {test: [anon-w-seq, anon-w-rand]}\n---\nsize: 8T\nvm-scalability: {test: anon-cow-seq}\n---\nsize: 4T\n";
    assert_eq!(
        names(text),
        [
            "300s-512G-anon-w-seq",
            "300s-512G-anon-w-rand",
            "300s-8T-anon-cow-seq",
            "300s-4T-anon-w-seq",
            "300s-4T-anon-w-rand"
        ]
        .map(|p| format!("vm-scalability/{p}"))
    );
}

#[test]
fn a_header_only_document_is_a_note_not_a_case() {
    let text = "suite: x\n---\ntestcase: hackbench\n";
    assert_eq!(names(text), ["hackbench/defaults"]);
    let notes = read(text).unwrap().notes.join("\n");
    assert!(
        notes.contains("makes no case") && notes.contains("suite"),
        "{notes}"
    );
}

#[test]
fn settings_are_axes_too_and_synonyms_are_understood() {
    let ours = "testcase: hackbench\nthp: {enabled: [always, never], defrag: never}\nsysctl: {vm.swappiness: 10}\n";
    let theirs = "testcase: hackbench\ntransparent_hugepage: {thp_enabled: [always, never], thp_defrag: never}\nsysctl: {vm.swappiness: 10}\n";
    assert_eq!(
        names(ours),
        ["hackbench/10-never-always", "hackbench/10-never-never"]
    );
    assert_eq!(names(ours), names(theirs));
}

#[test]
fn merge_keys_stay_yamls_and_may_come_twice() {
    let text = "x: &a {ipc: pipe}\n";
    assert!(refusal(text).contains("unknown key `x`"));
    let text = "hackbench:\n  <<: &a {ipc: pipe, mode: threads}\n  <<: {fds: 5}\n  mode: process\n";
    assert_eq!(names(text), ["hackbench/5-pipe-process"]);
    let inside = "hackbench:\n  <<: other.yaml\n";
    assert!(
        refusal(inside).contains("an include stands alone"),
        "{}",
        refusal(inside)
    );
}

#[test]
fn scalars_stay_text_until_an_option_asks() {
    let text = "testcase: mine\ncommand: x\nenvironment: {A: 08, B: 12e4567, C: 1.10, D: yes}\n";
    let list = read(text).unwrap().cases("k", &catalog()).unwrap();
    let values: Vec<&str> = list.cases[0]
        .base
        .environment
        .values()
        .map(String::as_str)
        .collect();
    assert_eq!(values, ["08", "12e4567", "1.10", "yes"]);
}

#[test]
fn wrong_jobs_say_where_and_what_to_do() {
    for (text, expected) in [
        (
            "testcase: hackbench\nrnus: 5\n",
            "job.yaml:2:1: unknown key `rnus`\n  2 | rnus: 5\n    | ^\nhint: did you mean",
        ),
        (
            "vm-scalability: {test: anon-w-seq, sise: 1G}\n",
            "job.yaml:1:36: `sise` is no option of vm-scalability",
        ),
        (
            "vm-scalability: {test: anon-w-seq, sise: 1G}\n",
            "hint: did you mean `size`?",
        ),
        (
            "vm-scalability: {test: anon-w-sq}\n",
            "did you mean `anon-w-seq`?",
        ),
        (
            "vm-scalability: {size: 1G}\n",
            "vm-scalability needs the option `test`",
        ),
        (
            "vm-scalability: {test: anon-w-seq, size: 3Q}\n",
            "`Q` is not a unit of size",
        ),
        (
            "vm-scalability: {test: anon-w-seq, size: 99999999T}\n",
            "more than 64 bits",
        ),
        ("hackbench: {loops: -1}\n", "`-1` is not a whole number"),
        ("hackbench:\nvm-scalability:\n", "second program"),
        ("a: 1\na: 2\n", "`a` is given twice"),
        ("testcase: x\n", "the job names no program"),
        (
            "suite: s\ntestcase: hackbenhc\n",
            "job.yaml:2:11: the job names no program",
        ),
        (
            "suite: s\ntestcase: hackbenhc\n",
            "did you mean `hackbench`?",
        ),
        ("runs: 3\n", "give `command: ...`"),
        ("", "the job file is empty"),
        ("- a\n- b\n", "a job is a map of keys, not a list"),
        ("testcase: [\n", "not valid YAML"),
        ("testcase: !x y\n", "YAML tags"),
        (
            "hackbench: {ipc: []}\n",
            "the axis `hackbench.ipc` has no value",
        ),
        ("hackbench: {ipc: [{a: b}]}\n", "holds a map"),
        ("command: ''\n", "the command is empty"),
        (
            "testcase: a b\ncommand: x\n",
            "cannot be the name of a testcase",
        ),
        (
            "command: x\nsysctl: {../etc/passwd: 1}\n",
            "is no sysctl name",
        ),
        (
            "command: x\nsysfs: {/etc/passwd: 1}\n",
            "is no path below /sys",
        ),
        (
            "command: x\nthp: {enable: always}\n",
            "`enable` is no setting of `thp`",
        ),
        (
            "command: x\nvariants: {a: {hackbench: }, b: {}}\n",
            "unknown key `hackbench`",
        ),
        (
            "command: x\nvariants: {a: {affinity: [0, 1]}}\n",
            "holds an axis",
        ),
        ("command: x\nvariants: {a: {runs: 3}}\n", "shapes the plan"),
        (
            "command: x\nvariants: {a: {}, b: {}}\n",
            "measure the same thing",
        ),
        ("command: x\nruns: many\n", "is not a number of runs"),
        ("command: x\naffinity: 3-1\n", "a range runs backwards"),
    ] {
        let refusal = refusal(text);
        assert!(
            refusal.contains(expected),
            "{text}\nexpected {expected}\ngot {refusal}"
        );
    }
}

#[test]
fn variant_options_make_and_extend_variants() {
    let mut job = read("testcase: hackbench\nsysctl: {vm.swappiness: 60}\n").unwrap();
    for option in [
        "a:sysctl.vm.swappiness=10",
        "a:ipc=socket",
        "b:hackbench.ipc=pipe",
    ] {
        job.add_variant_option(option, &catalog()).unwrap();
    }
    let list = job.cases("k", &catalog()).unwrap();
    assert_eq!(list.variants.len(), 2);
    let a = &list.cases[0].variants[0];
    assert_eq!(a.settings[0].value, "10");
    assert_eq!(a.options["ipc"], "socket");
    for (option, expected) in [
        ("nonsense", "not of the form NAME:KEY=VALUE"),
        ("a:colour=red", "-V a:colour=red: unknown key `colour`"),
        (":x=1", "not of the form"),
    ] {
        let error = job.add_variant_option(option, &catalog()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    job.add_variant_option("c:loops=x", &catalog()).unwrap();
    let error = job.cases("k", &catalog()).unwrap_err();
    assert!(error.to_string().starts_with("-V c:loops=x"), "{error}");
}

#[test]
fn an_explosion_of_axes_is_counted_not_built() {
    let list = |n: usize| {
        (1..=n)
            .map(|i| i.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let text = format!(
        "hackbench: {{fds: [{}], loops: [{}], datasize: [{}]}}\n",
        list(1000),
        list(1000),
        list(1000)
    );
    assert_eq!(read(&text).unwrap().case_count(), 1_000_000_000);
    assert!(refusal(&text).contains("1000000000 cases"));
}

#[test]
fn shares_are_resolved_once_and_reach_the_command() {
    let plan = plan_of(QUICK, 1, 1);
    let words = |variant: &str, case: &str| {
        let trial = plan
            .trials
            .iter()
            .find(|t| t.variant.as_str() == variant && t.case.params.ends_with(case))
            .unwrap();
        match &trial.work.command {
            Command::Workload(words) => words.join(" "),
            other => panic!("{other:?}"),
        }
    };
    let share = (256u64 << 20) / 4;
    assert_eq!(
        words("thp-off", "anon-w-seq"),
        format!("usemem --runtime 5 --repeat 1 -n 4 {share}")
    );
    assert_eq!(
        words("thp-on", "anon-w-seq"),
        format!("usemem --runtime 5 --repeat 1 --madv-thp -n 4 {share}")
    );
    let copy = (256u64 << 20) / 5;
    assert_eq!(
        words("thp-off", "cow-seq"),
        format!("usemem --runtime 5 --repeat 1 -n 4 --prealloc --prefault {copy}")
    );
}

#[test]
fn a_size_beyond_half_the_memory_sets_the_rounds() {
    let plan = plan_of("vm-scalability: {test: anon-w-seq, size: 40G}\n", 1, 1);
    assert_eq!(plan.trials[0].work.rounds.at_most, 10);
    assert_eq!(plan.trials[0].work.rounds.until_ms, Some(300_000));
}

#[test]
fn hugetlb_cases_ask_for_their_pages() {
    let plan = plan_of(
        "vm-scalability: {test: anon-cow-seq-hugetlb, size: 1G}\n",
        1,
        1,
    );
    let setting = &plan.trials[0].work.settings[0];
    assert_eq!(
        (setting.key.as_str(), setting.value.as_str()),
        (
            "sysfs./sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages",
            "517"
        )
    );
}

#[test]
fn the_same_seed_draws_the_same_order_and_blocks_are_complete() {
    let order = |seed| -> Vec<(String, String, bool)> {
        plan_of(QUICK, seed, 8)
            .trials
            .iter()
            .map(|t| (t.case.name(), t.variant.to_string(), t.warm_up))
            .collect()
    };
    assert_eq!(order(7), order(7));
    assert_ne!(order(7), order(8));
    let plan = plan_of(QUICK, 7, 8);
    assert_eq!(plan.trials.len(), 2 * 2 * (8 + 1));
    for block in plan.trials.chunks(2) {
        assert_eq!(block[0].case, block[1].case);
        assert_eq!(block[0].block, block[1].block);
        assert_ne!(block[0].variant, block[1].variant);
    }
    let first_is_off = plan
        .trials
        .chunks(2)
        .filter(|b| b[0].variant.as_str() == "thp-off")
        .count();
    assert!(
        first_is_off > 0 && first_is_off < 18,
        "the order is random within blocks"
    );
}

#[test]
fn a_case_that_the_machine_cannot_run_says_why() {
    let list = read("testcase: hackbench\nneed_memory: 100G\n")
        .unwrap()
        .cases("k", &catalog())
        .unwrap();
    let error = resolve(&list.cases[0].base, &facts(), &[], &catalog()).unwrap_err();
    assert!(error.to_string().contains("102400 MiB"), "{error}");
}

/// Public job files with the names that their own tool expands them to.
#[test]
fn public_hackbench_and_hugetlb_jobs_get_their_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/lkp");
    let Ok(expected) = std::fs::read_to_string(root.join("expected-names.json")) else {
        eprintln!("skipped: no public job files beside the checkout");
        return;
    };
    let expected: std::collections::BTreeMap<String, Vec<String>> =
        serde_json::from_str(&expected).expect("names");
    for (file, stem) in [
        ("jobs/hackbench/hackbench.yaml", "hackbench"),
        (
            "jobs/vm-scalability/vm-scalability-hugetlb.yaml",
            "vm-scalability-hugetlb",
        ),
    ] {
        let text = std::fs::read_to_string(root.join(file)).expect("job file");
        let list = read(&text).expect(file).cases("k", &catalog()).expect(file);
        let mut ours: Vec<String> = list
            .cases
            .iter()
            .map(|c| format!("{stem}-{}.yaml", c.reference.params))
            .collect();
        ours.sort();
        let mut theirs = expected[file].clone();
        theirs.sort();
        assert_eq!(ours, theirs, "{file}");
    }
}

/// Every include of the public job files is found and taken in.
#[test]
fn public_includes_are_taken_in() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/lkp/jobs");
    if !root.is_dir() {
        eprintln!("skipped: no public job files beside the checkout");
        return;
    }
    let find = |name: &str, from: &str| {
        let folders = Path::new(from).ancestors().skip(1).take(4);
        let mut paths = folders.map(|folder| folder.join(name));
        let path = paths.find(|path| path.is_file()).ok_or("no such file")?;
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        Ok((path.display().to_string(), text))
    };
    let mut folders = vec![root];
    let mut included = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path)
                && text.contains("<<: ")
            {
                let name = path.display().to_string();
                let expanded = expand(&name, &text, &find).map_err(|e| with_hint(&e));
                let expanded = expanded.expect("expands");
                assert_eq!(expanded.text.lines().count(), expanded.origins.len());
                included += usize::from(expanded.text != text);
            }
        }
    }
    assert!(included >= 10, "{included}");
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        let _ = read(&text).map(|job| job.cases("k", &catalog()));
    }

    #[test]
    fn no_yaml_like_text_makes_the_parser_panic(
        lines in prop::collection::vec("( {0,4})(testcase|hackbench|variants|environment|<<|- |command|runs|ipc|&a|\\*a|---|\"|\\[|\\{|\\}|\\])(: )?[a-z0-9%\\[\\]{},&*!|>'-]{0,12}", 0..12)
    ) {
        let _ = read(&lines.join("\n")).map(|job| job.cases("k", &catalog()));
    }
}

#[test]
fn a_control_is_the_base_once_more_in_every_block() {
    let plan = drawn(QUICK, 1, 2, true);
    let control = plan.control.clone().expect("control");
    assert_eq!(control.0, format!("{}.aa", plan.variants[0]));
    assert_eq!(plan.variants.last(), Some(&control));
    // Two cases, a warm-up and two runs each.
    assert_eq!(plan.trials.len(), 2 * (1 + 2) * 3);
    for trial in plan.trials.iter().filter(|trial| trial.variant == control) {
        let same = |other: &&kdyno_model::Trial| {
            other.block == trial.block && other.variant == plan.variants[0]
        };
        let base = plan
            .trials
            .iter()
            .find(same)
            .expect("the base in the same block");
        assert_eq!(base.work, trial.work);
    }
}

#[test]
fn looks_end_at_the_most_runs() {
    let looks = |every, most| {
        Looks {
            every,
            most,
            most_seconds: None,
        }
        .runs()
    };
    assert_eq!(looks(5, 20), [5, 10, 15, 20]);
    assert_eq!(looks(5, 12), [5, 10, 12]);
    assert_eq!(looks(0, 2), [1, 2]);
}

/// Reads a job with the files that it may include.
fn read_with(text: &str, files: &[(&str, &str)]) -> Result<JobFile, String> {
    let find = |name: &str, _from: &str| {
        let found = files.iter().find(|(known, _)| *known == name);
        let (name, text) = found.ok_or_else(|| "no such file".to_owned())?;
        Ok(((*name).to_owned(), (*text).to_owned()))
    };
    let expanded = expand("job.yaml", text, &find).map_err(|e| with_hint(&e))?;
    let source = Source {
        origins: &expanded.origins,
        ..Source::new("job.yaml", &expanded.text)
    };
    JobFile::read(source, &catalog()).map_err(|e| with_hint(&e))
}

fn names_with(text: &str, files: &[(&str, &str)]) -> Vec<String> {
    let job = read_with(text, files).expect("reads");
    let list = job.cases("k", &catalog()).expect("expands");
    list.cases
        .iter()
        .map(|case| case.reference.name())
        .collect()
}

const INCLUDED: (&str, &str) = (
    "hackbench.yaml",
    "testcase: hackbench\nnr_threads: [1, 2]\nhackbench:\n  ipc: [pipe, socket]\n",
);

#[test]
fn an_included_job_is_taken_in_and_its_keys_replaced() {
    let files = [INCLUDED];
    assert_eq!(
        names_with("<<: hackbench.yaml\nnr_threads: 4\n", &files),
        ["hackbench/pipe-4", "hackbench/socket-4"]
    );
    assert_eq!(
        names_with(
            "<<: {file: hackbench.yaml, nr_threads: 8, ignore: [hackbench]}\n",
            &files
        ),
        ["hackbench/8"]
    );
    // A file that includes one that includes one; a key of its own twice is still a mistake.
    let files = [
        INCLUDED,
        ("mid.yaml", "<<: hackbench.yaml\nnr_threads: 3\n"),
    ];
    assert_eq!(names_with("<<: mid.yaml\n", &files).len(), 2);
    let twice = read_with("<<: mid.yaml\nnr_threads: 1\nnr_threads: 2\n", &files);
    let twice = twice.expect_err("a key twice");
    assert!(
        twice.contains("job.yaml:3:1: `nr_threads` is given twice"),
        "{twice}"
    );
}

#[test]
fn an_error_in_an_included_job_names_its_file_and_line() {
    let files = [(
        "part.yaml",
        "testcase: hackbench\n\nhackbensh: {ipc: pipe}\n",
    )];
    let error = read_with("runs: 3\n<<: part.yaml\n", &files).expect_err("an error");
    assert!(error.contains("part.yaml:3:1: "), "{error}");
    assert!(error.contains("3 | hackbensh: {ipc: pipe}"), "{error}");
    let value = [("part.yaml", "testcase: hackbench\nhackbench: {ipc: mail}\n")];
    let error = read_with("<<: part.yaml\n", &value).expect_err("an error");
    assert!(error.contains("part.yaml:2:"), "{error}");
}

#[test]
fn incremental_keys_reach_inside() {
    let base = "testcase: hackbench\nhackbench: {ipc: [pipe, socket], fds: 5}\n";
    let laid = |over: &str| names(&format!("{base}---\n{over}"));
    // The first document's own cases come first.
    assert_eq!(
        laid("hackbench.fds: 7\n"),
        [
            "hackbench/5-pipe",
            "hackbench/5-socket",
            "hackbench/7-pipe",
            "hackbench/7-socket"
        ]
    );
    // What equals a case that is there is that case.
    assert_eq!(laid("hackbench.ipc-: socket\n").len(), 2);
    let removed = laid("hackbench.ipc-: socket\nhackbench.fds: 9\n");
    assert_eq!(removed[2..], ["hackbench/9-pipe"]);
    assert_eq!(laid("hackbench.fds+: [6]\n").len(), 4);
    let without = laid("hackbench.ipc-:\nhackbench.fds: 9\n");
    assert_eq!(without[2..], ["hackbench/9"]);
    assert_eq!(
        names("testcase: hackbench\nsysctl: {vm.swappiness: 10}\nsysctl.vm.swappiness+: 20\n"),
        ["hackbench/10", "hackbench/20"]
    );
    let refused = |over: &str| refusal(&format!("{base}---\n{over}"));
    assert!(
        refused("hackbench.ipc-: mail\n")
            .contains("job.yaml:4:1: `mail` is not in `hackbench.ipc`")
    );
    assert!(refused("hackbench.ipq-:\n").contains("`hackbench.ipq` is not there"));
    assert!(refused("hackbench+: 1\n").contains("`hackbench` is a map"));
}
