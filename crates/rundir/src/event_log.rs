//! What happened while a plan was carried out: one JSON object per line, appended by each session.

use crate::{PlanDir, RundirError, disk};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

const EVENTS: &str = "events.jsonl";

/// How much of the file's end is searched first for the end of a line.
const TAIL_BYTES: u64 = 64 << 10;

/// The open record of a plan's events. Whoever opens it holds the plan: two sessions that append
/// at the same time would mix their lines.
#[derive(Debug)]
pub struct EventLog {
    file: File,
    path: PathBuf,
}

impl PlanDir {
    /// Opens the record of events at its end; begins it where there is none. A last line that a
    /// crash or a full disk has cut is removed, so that every line before the last is whole.
    ///
    /// # Errors
    /// What the file system says, and when something other than a regular file is in its place.
    pub fn event_log(&self) -> Result<EventLog, RundirError> {
        let path = self.path.join(EVENTS);
        if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
            return Err(RundirError::Unsealable { path });
        }
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .map_err(RundirError::io("open", &path))?;
        cut_half_line(&mut file).map_err(RundirError::io("write", &path))?;
        Ok(EventLog { file, path })
    }
}

impl EventLog {
    /// Appends a line, which holds no line end, in one write. It is not synced.
    ///
    /// # Errors
    /// What the file system says; part of the line may then be there, and nothing may be appended
    /// until the record is opened anew.
    pub fn append(&mut self, line: &str) -> Result<(), RundirError> {
        let bytes = [line.as_bytes(), b"\n"].concat();
        self.file
            .write_all(&bytes)
            .map_err(RundirError::io("write", &self.path))
    }

    /// Waits until what was appended is on the disk.
    ///
    /// # Errors
    /// What the file system says.
    pub fn sync(&self) -> Result<(), RundirError> {
        disk::sync(&self.path)
    }
}

/// Shortens the file to the end of its last whole line.
fn cut_half_line(file: &mut File) -> io::Result<()> {
    let length = file.metadata()?.len();
    let mut window = TAIL_BYTES;
    loop {
        let begin = length.saturating_sub(window);
        file.seek(SeekFrom::Start(begin))?;
        let mut tail = Vec::new();
        Read::by_ref(file)
            .take(length - begin)
            .read_to_end(&mut tail)?;
        let last = tail.iter().rposition(|byte| *byte == b'\n');
        let whole = match last {
            Some(at) => begin + at as u64 + 1,
            None if begin == 0 => 0,
            None => {
                window = window.saturating_mul(2);
                continue;
            }
        };
        if whole < length {
            file.set_len(whole)?;
        }
        return Ok(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Home;
    use kdyno_model::PlanId;

    fn plan() -> (tempfile::TempDir, PlanDir) {
        let home = tempfile::tempdir().unwrap();
        let plan = Home::at(home.path())
            .create_plan(PlanId::new(), b"{}", None)
            .unwrap();
        (home, plan)
    }

    fn text(plan: &PlanDir) -> String {
        fs::read_to_string(plan.path.join(EVENTS)).unwrap()
    }

    #[test]
    fn sessions_append() {
        let (_home, plan) = plan();
        for line in ["{\"a\":1}", "{\"b\":2}"] {
            let mut log = plan.event_log().unwrap();
            log.append(line).unwrap();
            log.sync().unwrap();
        }
        assert_eq!(text(&plan), "{\"a\":1}\n{\"b\":2}\n");
    }

    #[test]
    fn a_half_last_line_is_cut_wherever_it_begins() {
        let long = "x".repeat(3 * TAIL_BYTES as usize);
        for (found, kept) in [
            ("", ""),
            ("half", ""),
            ("one\n", "one\n"),
            ("one\ntwo\nhal", "one\ntwo\n"),
            (long.as_str(), ""),
            (&format!("one\n{long}"), "one\n"),
            (&format!("{long}\nhalf"), &format!("{long}\n")),
        ] {
            let (_home, plan) = plan();
            fs::write(plan.path.join(EVENTS), found).unwrap();
            plan.event_log().unwrap().append("next").unwrap();
            assert!(
                text(&plan) == format!("{kept}next\n"),
                "{} bytes",
                found.len()
            );
        }
    }

    #[test]
    fn only_a_regular_file_is_opened() {
        let (home, plan) = plan();
        let elsewhere = home.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, plan.path.join(EVENTS)).unwrap();
        assert!(matches!(
            plan.event_log(),
            Err(RundirError::Unsealable { .. })
        ));
        assert!(!elsewhere.exists());
    }
}
