use crate::sample::{plan, results, trial, writer};
use kdyno_model::{Outcome, Value};
use kdyno_rundir::{RunReader, RundirError, State, verify};
use proptest::prelude::*;
use std::fs;
use std::process::Command;

#[test]
fn what_is_sealed_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(dir.path());
    let writer = writer(&plan);
    fs::write(writer.raw_dir().join("stdout"), "out\n").unwrap();
    fs::write(writer.raw_dir().join("stderr"), "").unwrap();
    let path = writer.path().to_owned();
    let record = writer.seal(results(&[1.0, 2.5])).unwrap();

    let reader = RunReader::open(&path).unwrap();
    assert_eq!(reader.state(), State::Complete);
    assert_eq!(reader.record().unwrap(), record);
    assert_eq!(record.trial, trial(plan.id));
    assert_eq!(record.kernel_release, "6.1.0");
    assert_eq!(record.window_ns, 1_000_000);
    assert_eq!(record.notes, ["no cgroup", "one line was not read"]);
    let mut measurement = results(&[]).measurement;
    let series = std::mem::take(&mut measurement.series);
    assert_eq!(reader.measurement().unwrap(), measurement);
    assert_eq!(reader.series().unwrap(), series);
    assert_eq!(reader.stdout().unwrap().unwrap(), b"out\n");
    assert_eq!(reader.stderr().unwrap().unwrap(), b"");
    assert_eq!(reader.case_text().unwrap().unwrap(), "case: x\n");
    assert_eq!(verify(&path).unwrap().files, 9);
}

#[test]
fn large_files_are_stored_as_zcat_reads_them() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(&plan(dir.path()));
    let output: String = (0..40_000).map(|i| format!("line {i}\n")).collect();
    fs::write(writer.raw_dir().join("stdout"), &output).unwrap();
    let path = writer.path().to_owned();
    let mut results = results(&vec![0.1; 5000]);
    results.measurement.kernel_log = vec!["a line of some length".into(); 5000];
    let record = writer.seal(results).unwrap();

    assert!(!path.join("raw/stdout").exists());
    assert!(path.join("measurement.json.gz").exists() && path.join("readings.json.gz").exists());
    let reader = RunReader::open(&path).unwrap();
    assert_eq!(reader.stdout().unwrap().unwrap(), output.as_bytes());
    assert_eq!(reader.stderr().unwrap(), None);
    assert_eq!(reader.record().unwrap(), record);
    let zcat = Command::new("zcat")
        .arg(path.join("raw/stdout.gz"))
        .output();
    assert_eq!(zcat.unwrap().stdout, output.as_bytes());
}

#[test]
fn the_seal_can_be_checked_by_hand() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(&plan(dir.path()));
    let path = writer.path().to_owned();
    writer.seal(results(&[1.0])).unwrap();
    let manual = include_str!("../../../../docs/run-directory.md");
    let by_hand = manual.split("## Checking by hand").nth(1).unwrap();
    let commands = by_hand.split("```").nth(1).unwrap();
    let output = Command::new("sh")
        .args(["-ec", commands])
        .current_dir(&path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let manifest = fs::read_to_string(path.join("MANIFEST")).unwrap();
    let seal = manifest.lines().last().unwrap();
    assert!(output.stdout.starts_with(seal.as_bytes()), "{output:?}");
}

#[test]
fn a_number_that_is_not_finite_is_not_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(&plan(dir.path()));
    let path = writer.path().to_owned();
    let error = writer.seal(results(&[f64::NAN])).unwrap_err();
    assert!(
        matches!(error, RundirError::InvalidReading { .. }),
        "{error}"
    );
    let record = RunReader::open(&path).unwrap().record().unwrap();
    assert_eq!(record.outcome, Outcome::Incomplete);
}

#[test]
fn a_link_among_the_output_is_not_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(&plan(dir.path()));
    let path = writer.path().to_owned();
    std::os::unix::fs::symlink("/dev/zero", writer.raw_dir().join("stdout")).unwrap();
    let error = writer.seal(results(&[1.0])).unwrap_err();
    assert!(error.to_string().contains("raw/stdout"), "{error}");
    assert!(matches!(
        RunReader::open(&path).unwrap().state(),
        State::Incomplete(_)
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn figures_come_back_to_the_last_bit(
        values in prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL, 1..20),
        output in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let writer = writer(&plan(dir.path()));
        fs::write(writer.raw_dir().join("stdout"), &output).unwrap();
        let path = writer.path().to_owned();
        writer.seal(results(&values)).unwrap();
        let reader = RunReader::open(&path).unwrap();
        let bits = |v: &f64| v.to_bits();
        let read: Vec<u64> = reader.record().unwrap().readings.iter().filter_map(|r| match &r.value {
            Value::Scalar(v) => Some(v.to_bits()),
            _ => None,
        }).collect();
        prop_assert_eq!(read, values.iter().map(bits).collect::<Vec<_>>());
        prop_assert_eq!(reader.stdout().unwrap().unwrap(), output);
    }
}
