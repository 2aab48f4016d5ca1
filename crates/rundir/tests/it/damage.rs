use crate::sample::{plan, results, writer};
use kdyno_rundir::{Problem, ProblemKind, RunReader, RundirError, State, verify};
use std::fs;
use std::path::{Path, PathBuf};

/// A sealed run, small but for a compressed standard output.
fn sealed(home: &Path) -> PathBuf {
    let writer = writer(&plan(home));
    let output: String = (0..20_000).map(|i| format!("{i}\n")).collect();
    fs::write(writer.raw_dir().join("stdout"), output).unwrap();
    fs::write(writer.raw_dir().join("stderr"), "warning\n").unwrap();
    let path = writer.path().to_owned();
    writer.seal(results(&[1.0, 2.0])).unwrap();
    path
}

const FILES: [&str; 10] = [
    "MANIFEST",
    "case",
    "format",
    "measurement.json",
    "raw/stderr",
    "raw/stdout.gz",
    "readings.json",
    "record.json",
    "series.json",
    "trial.json",
];

/// Reads all there is: nothing may panic, and no file that was changed may get out.
fn read_all(path: &Path, file: &str) -> Result<State, RundirError> {
    let reader = RunReader::open(path)?;
    let got_out = match file {
        "MANIFEST" | "format" => reader.record().is_ok(),
        "case" => reader.case_text().is_ok(),
        "measurement.json" => reader.measurement().is_ok() || reader.record().is_ok(),
        "raw/stderr" => reader.stderr().is_ok(),
        "raw/stdout.gz" => reader.stdout().is_ok(),
        "series.json" => reader.series().is_ok(),
        _ => reader.record().is_ok(),
    };
    // A cut format file is found by the full check; the record does not depend on it otherwise.
    assert!(!got_out || file == "format", "{file} was changed and read");
    Ok(reader.state())
}

fn must_not_be_complete(path: &Path, file: &str, how: &str) {
    match read_all(path, file) {
        Ok(State::Damaged(problems)) => {
            assert!(
                problems.iter().any(|p| p.file == file),
                "{how}: {problems:?}"
            );
        }
        Err(RundirError::NewerFormat { .. }) => assert_eq!(file, "format", "{how}"),
        other => panic!("{file}, {how}: {other:?}"),
    }
}

#[test]
fn a_file_cut_anywhere_is_found_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = sealed(dir.path());
    for file in FILES {
        let whole = fs::read(path.join(file)).unwrap();
        let step = if whole.len() > 4096 { 997 } else { 1 };
        for cut in (0..whole.len()).step_by(step) {
            fs::write(path.join(file), &whole[..cut]).unwrap();
            must_not_be_complete(&path, file, &format!("cut at {cut}"));
        }
        fs::write(path.join(file), &whole).unwrap();
        assert_eq!(RunReader::open(&path).unwrap().state(), State::Complete);
    }
}

#[test]
fn a_changed_bit_is_found_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = sealed(dir.path());
    for file in FILES {
        let mut bytes = fs::read(path.join(file)).unwrap();
        let step = (bytes.len() / 150).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let bit = 1 << (at % 8);
            bytes[at] ^= bit;
            fs::write(path.join(file), &bytes).unwrap();
            must_not_be_complete(&path, file, &format!("bit {bit} of byte {at}"));
            bytes[at] ^= bit;
        }
        fs::write(path.join(file), &bytes).unwrap();
    }
    assert_eq!(RunReader::open(&path).unwrap().state(), State::Complete);
}

#[test]
fn missing_and_extra_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = sealed(dir.path());
    fs::remove_file(path.join("case")).unwrap();
    fs::write(path.join("raw/core"), "").unwrap();
    std::os::unix::fs::symlink("format", path.join("link")).unwrap();
    fs::write(path.join("trial.json"), "{}").unwrap();
    let problems = verify(&path).unwrap_err();
    let found: Vec<(&str, &ProblemKind)> = problems
        .iter()
        .map(|p| (p.file.as_str(), &p.kind))
        .collect();
    assert!(
        matches!(
            found[..],
            [
                ("case", ProblemKind::Missing),
                ("link", ProblemKind::Extra),
                ("raw/core", ProblemKind::Extra),
                ("trial.json", ProblemKind::Size { found: 2, .. }),
            ]
        ),
        "{found:?}"
    );
}

#[test]
fn each_file_replaced_by_a_link_or_a_directory_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = sealed(dir.path());
    for file in FILES {
        let (here, aside) = (path.join(file), dir.path().join("aside"));
        fs::rename(&here, &aside).unwrap();
        std::os::unix::fs::symlink(&aside, &here).unwrap();
        assert_ne!(
            RunReader::open(&path).unwrap().state(),
            State::Complete,
            "{file}"
        );
        fs::remove_file(&here).unwrap();
        fs::create_dir(&here).unwrap();
        assert_ne!(
            RunReader::open(&path).unwrap().state(),
            State::Complete,
            "{file}"
        );
        fs::remove_dir(&here).unwrap();
        fs::rename(&aside, &here).unwrap();
    }
}

#[test]
fn a_run_without_its_seal_is_incomplete_however_much_of_it_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = sealed(dir.path());
    fs::rename(path.join("MANIFEST"), path.join("MANIFEST.tmp")).unwrap();
    for file in FILES.iter().rev() {
        let reader = RunReader::open(&path).unwrap();
        assert!(matches!(reader.state(), State::Incomplete(_)));
        let problems = verify(&path).unwrap_err();
        assert!(matches!(
            &problems[..],
            [Problem {
                kind: ProblemKind::Unsealed(_),
                ..
            }]
        ));
        let _ = (reader.record(), reader.stdout());
        let _ = fs::remove_file(path.join(file));
    }
}

#[test]
fn a_newer_format_is_refused_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let path = sealed(dir.path());
    fs::write(path.join("format"), "kdyno-run 2\n").unwrap();
    let error = RunReader::open(&path).unwrap_err();
    assert!(matches!(
        error,
        RundirError::NewerFormat {
            found: 2,
            known: 1,
            ..
        }
    ));
    assert!(error.hint().unwrap().contains("newer"));
    assert_eq!(verify(&path).unwrap_err()[0].kind, ProblemKind::Newer(2));
}

#[test]
fn what_an_unsealed_run_holds_can_be_read_and_cannot_be_huge() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(&plan(dir.path()));
    let path = writer.path().to_owned();
    fs::write(writer.raw_dir().join("stdout"), "so far").unwrap();
    drop(writer);
    let reader = RunReader::open(&path).unwrap();
    assert_eq!(reader.stdout().unwrap().unwrap(), b"so far");
    assert_eq!(reader.trial().unwrap().index, 3);
    // Sparse: a size without the bytes.
    let trial = fs::OpenOptions::new()
        .write(true)
        .open(path.join("trial.json"));
    trial.unwrap().set_len((256 << 20) + 1).unwrap();
    assert!(matches!(reader.trial(), Err(RundirError::TooLarge { .. })));
}
