//! Runs that were measured on other machines.

use crate::bench::{Bench, Printed};

const JOB: &str = "\
testcase: t
command: 'n=$(date +%N); echo value: $((X * 1000 + 1${n#??????} % 10))'
metrics: {value: {unit: ops/s, better: higher}}
runs: 5
warm_up: 0
monitors: none
variants: {old: {environment: {X: \"10\"}}, new: {environment: {X: \"9\"}}}
";

/// A home with one plan of a machine of this name.
fn measured(testbox: &str) -> Bench {
    let bench = Bench::new();
    let job = bench.file("job.yaml", JOB);
    bench
        .kdyno(&["run", "--no-doctor", "--testbox", testbox, &job])
        .ok();
    bench
}

fn import(bench: &Bench, paths: &[&std::path::Path]) -> Printed {
    let paths = paths.iter().map(|path| path.to_str().unwrap());
    let words: Vec<&str> = ["import"].into_iter().chain(paths).collect();
    bench.kdyno(&words)
}

#[test]
fn runs_of_three_machines_are_compared_as_one() {
    let (ours, bxt, kbl) = (measured("ivb"), measured("bxt"), measured("kbl"));
    let plan = std::fs::read_dir(kbl.home().join("plans")).unwrap();
    let plan = plan.flatten().next().unwrap().path();
    import(&ours, &[&bxt.home(), &plan])
        .ok()
        .says("10 runs imported");
    let across = ours.kdyno(&["compare", "--across", "testbox", "t/*"]).ok();
    across.says("new: 3 of 3 confirm (regressed)");
    assert_eq!(ours.listed().len(), 30);
    import(&ours, &[&bxt.home()])
        .ok()
        .says("0 runs imported, 10 were here already");
    assert_eq!(ours.listed().len(), 30);
    // The same from the run directories alone.
    ours.kdyno(&["index", "rebuild"]).ok().says("30 runs");
    ours.kdyno(&["run", "--resume"]).says("nothing to resume");
}

#[test]
fn what_is_no_run_is_refused_with_what_to_give() {
    let (ours, theirs) = (measured("ivb"), measured("bxt"));
    import(&ours, &[&theirs.path("job.yaml")])
        .with_status(2)
        .says("neither a home, nor a plan, nor a run")
        .says("HOME/plans/PLAN");
    import(&ours, &[&theirs.path("nowhere")])
        .with_status(2)
        .says("nowhere");
    let run = theirs.run_dirs().remove(0);
    let alone = theirs.path(run.file_name().unwrap().to_str().unwrap());
    std::fs::rename(&run, &alone).unwrap();
    import(&ours, &[&alone])
        .with_status(2)
        .says("a run without its plan");
    let damaged = theirs.run_dirs().remove(0);
    std::fs::write(damaged.join("readings.json"), "[]").unwrap();
    import(&ours, &[&theirs.home()])
        .with_status(2)
        .says("damaged: readings.json");
    assert_eq!(ours.listed().len(), 10);
}
