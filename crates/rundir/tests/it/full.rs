//! A file system that is really full.

use crate::sample::{plan, results, writer};
use kdyno_rundir::{RunReader, State};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A small file system in memory, gone when dropped.
struct Tmpfs<'a>(&'a Path);

impl<'a> Tmpfs<'a> {
    fn mount(at: &'a Path) -> Result<Self, String> {
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=400k", "kdyno-test"])
            .arg(at)
            .output()
            .map_err(|e| e.to_string())?;
        if output.status.success() {
            Ok(Self(at))
        } else {
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
    }
}

impl Drop for Tmpfs<'_> {
    fn drop(&mut self) {
        let status = Command::new("umount").arg(self.0).status();
        assert!(
            status.unwrap().success(),
            "{} stays mounted",
            self.0.display()
        );
    }
}

#[test]
fn root_a_full_disk_leaves_the_run_incomplete() {
    let dir = tempfile::tempdir().unwrap();
    let _tmpfs = match Tmpfs::mount(dir.path()) {
        Ok(tmpfs) => tmpfs,
        Err(why) => {
            eprintln!("skipped: no tmpfs can be mounted: {why}");
            return;
        }
    };
    let writer = writer(&plan(dir.path()));
    let path = writer.path().to_owned();
    // What is left holds the output and some of the rest, not all.
    fs::write(writer.raw_dir().join("stderr"), vec![b'e'; 60 << 10]).unwrap();
    fs::write(dir.path().join("ballast"), vec![0; 290 << 10]).unwrap();
    let mut results = results(&[1.0]);
    results.measurement.kernel_log = (0..20_000_u32)
        .map(|i| format!("{:x}", i.wrapping_mul(2_654_435_761)))
        .collect();
    let error = writer.seal(results).unwrap_err();
    assert!(error.to_string().contains("measurement.json"), "{error}");
    assert!(error.hint().unwrap().contains("space"), "{error}");
    let reader = RunReader::open(&path).unwrap();
    assert!(matches!(reader.state(), State::Incomplete(_)));
}
