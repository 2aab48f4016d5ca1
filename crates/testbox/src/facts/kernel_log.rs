//! Warnings and worse that appear in the kernel log during a trial.
//!
//! It only reads `/dev/kmsg`, record by record from the moment it was opened, and never writes
//! to it: output to the kernel log is itself a load that has passed for a regression.

use crate::root::SysRoot;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// Lines kept per call; a storm of messages says nothing new after that.
const MAX_LINES: usize = 200;

/// Records read per call, so that a storm cannot hold us here.
const MAX_RECORDS: usize = 100_000;

/// Larger than any record (the kernel's own limit is 8 KiB, a shorter buffer is refused).
const RECORD_BYTES: usize = 16 << 10;

/// `KERN_WARNING`, syslog(2).
const WARNING: u32 = 4;

/// An open kernel log, at a place in it.
#[derive(Debug)]
pub struct KernelLog {
    file: File,
}

impl KernelLog {
    /// Opens the log at its end; `None` when there is none or it may not be read.
    #[must_use]
    pub fn open(root: &SysRoot) -> Option<Self> {
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(root.path("/dev/kmsg"))
            .ok()?;
        file.seek(SeekFrom::End(0)).ok()?;
        Some(Self { file })
    }

    /// Messages of level warning or worse since the last call, as `<level>[seconds] text`. A last
    /// line says what was left out or lost.
    pub fn new_warnings(&mut self) -> Vec<String> {
        let mut buffer = vec![0; RECORD_BYTES];
        let mut kept = Vec::new();
        let mut left_out = 0usize;
        let mut overwritten = false;
        for _ in 0..MAX_RECORDS {
            match self.file.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => {
                    let text = String::from_utf8_lossy(buffer.get(..length).unwrap_or_default());
                    for line in text.lines().filter_map(warning) {
                        if kept.len() < MAX_LINES {
                            kept.push(line);
                        } else {
                            left_out += 1;
                        }
                    }
                }
                // The kernel has overwritten what we would have read next, and goes on after it.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => overwritten = true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        if left_out > 0 {
            kept.push(format!("({left_out} more warnings left out)"));
        }
        if overwritten {
            kept.push("(some messages were overwritten before they could be read)".to_owned());
        }
        kept
    }
}

/// The message of a record `priority,sequence,microseconds,flags;text` if it is a warning or
/// worse (Documentation/ABI/testing/dev-kmsg); `None` for others and for the lines of properties
/// that follow a record.
fn warning(line: &str) -> Option<String> {
    let (prefix, text) = line.split_once(';')?;
    let mut fields = prefix.split(',');
    let priority: u32 = fields.next()?.parse().ok()?;
    let microseconds: u64 = fields.nth(1)?.parse().ok()?;
    // The bits above the lowest three are the facility.
    let level = priority & 7;
    let seconds = microseconds / 1_000_000;
    let fraction = microseconds % 1_000_000;
    (level <= WARNING).then(|| format!("<{level}>[{seconds:5}.{fraction:06}] {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn records() {
        let read = |line| warning(line);
        let line = "4,1234,5000123,-;disk is slow";
        assert_eq!(
            read(line).as_deref(),
            Some("<4>[    5.000123] disk is slow")
        );
        assert_eq!(read("30,1,2,-;user: info").as_deref(), None, "daemon.info");
        assert!(read("27,1,2,-;user: error").is_some(), "daemon.err");
        assert_eq!(read("6,1,2,-;fine"), None);
        for odd in [
            "",
            " SUBSYSTEM=acpi",
            "x,1,2,-;t",
            "4;t",
            "4,1,x,-;t",
            "4,1",
        ] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }

    #[test]
    fn only_what_is_new_and_not_too_much() {
        let dir = tempfile::tempdir().unwrap();
        let root = SysRoot::at(dir.path());
        assert!(KernelLog::open(&root).is_none());
        std::fs::create_dir(dir.path().join("dev")).unwrap();
        let path = dir.path().join("dev/kmsg");
        std::fs::write(&path, "2,0,1,-;before\n").unwrap();
        let mut log = KernelLog::open(&root).unwrap();
        assert_eq!(log.new_warnings(), Vec::<String>::new());

        let mut writer = OpenOptions::new().append(true).open(&path).unwrap();
        writer
            .write_all(b"6,1,2,-;info\n DEVICE=x;y\n3,2,3,-;an error\n")
            .unwrap();
        assert_eq!(log.new_warnings(), ["<3>[    0.000003] an error"]);

        writer
            .write_all("4,1,2,-;w\n".repeat(MAX_LINES + 7).as_bytes())
            .unwrap();
        let lines = log.new_warnings();
        assert_eq!(lines.len(), MAX_LINES + 1);
        assert_eq!(lines[MAX_LINES], "(7 more warnings left out)");
        assert_eq!(log.new_warnings(), Vec::<String>::new());
    }
}
