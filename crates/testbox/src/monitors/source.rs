//! A monitor of `/proc` files: descriptors stay open, one buffer is reused, one table filled.
//!
//! What a file means is the business of its [`Source`]. The files are read to their end at each
//! sample, since the kernel hands out a page at a time and says only by an empty read that there
//! is no more.

use super::table::{Line, Spec, Table};
use crate::root::SysRoot;
use kdyno_model::{Monitor, SeriesSet, TestboxError};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Room for a small machine's files; it grows when it must.
const FIRST_BUFFER: usize = 32 << 10;

/// `/proc/interrupts` of the largest machines stays below.
const LARGEST_BUFFER: usize = 64 << 20;

/// The format of one kind of file.
pub(super) trait Source: Send {
    /// The monitor's name.
    fn name(&self) -> &'static str;

    /// It is read at every so many samples; what only has states may be read seldom.
    fn every(&self) -> u64 {
        1
    }

    /// Puts the numbers of file number `file` into the open row; what it does not know it skips.
    fn parse(&self, file: usize, text: &[u8], table: &mut Table);

    /// What the columns of a line are; none to leave the line out. `active` says whether any of
    /// its numbers was ever other than zero.
    fn describe(&self, line: &Line, active: bool) -> Vec<Spec>;
}

/// The monitor of a [`Source`].
pub(super) struct ProcMonitor<S> {
    source: S,
    files: Vec<(PathBuf, File)>,
    buffer: Vec<u8>,
    table: Table,
    /// Samples that it was asked for.
    asked: u64,
}

/// Samples from the beginning that none leaves out: a short window should have some.
const FIRST_SAMPLES: u64 = 3;

impl<S: Source> ProcMonitor<S> {
    /// Opens the files of a source.
    ///
    /// # Errors
    /// When one of them cannot be opened.
    pub(super) fn open(source: S, root: &SysRoot, paths: &[String]) -> Result<Self, TestboxError> {
        let open = |path: &String| {
            let path = root.path(path);
            match File::open(&path) {
                Ok(file) => Ok((path, file)),
                Err(error) => Err(TestboxError::at(path, error)),
            }
        };
        Ok(Self {
            source,
            files: paths.iter().map(open).collect::<Result<_, _>>()?,
            buffer: vec![0; FIRST_BUFFER],
            table: Table::default(),
            asked: 0,
        })
    }
}

impl<S: Source> Monitor for ProcMonitor<S> {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn sample(&mut self, t_ns: u64) -> Result<(), TestboxError> {
        let number = self.asked;
        self.asked += 1;
        if number >= FIRST_SAMPLES && !number.is_multiple_of(self.source.every()) {
            return Ok(());
        }
        self.table.begin(t_ns);
        for (index, (path, file)) in self.files.iter().enumerate() {
            let text = read_whole(file, &mut self.buffer)
                .map_err(|error| TestboxError::at(path.clone(), error))?;
            self.source.parse(index, text, &mut self.table);
        }
        if self.table.has_values() {
            return Ok(());
        }
        let path = self.files.first().map(|(path, _)| path.clone());
        Err(TestboxError {
            path,
            message: format!("holds nothing that `{}` can read", self.name()),
            hint: None,
        })
    }

    fn finish(self: Box<Self>) -> SeriesSet {
        let Self { source, table, .. } = *self;
        table.into_series(source.name(), |line, active| source.describe(line, active))
    }
}

/// The file from its beginning to its end, in the front part of `buffer`, which grows as needed.
fn read_whole<'a>(file: &File, buffer: &'a mut Vec<u8>) -> std::io::Result<&'a [u8]> {
    let mut filled = 0;
    loop {
        if filled == buffer.len() {
            if filled >= LARGEST_BUFFER {
                return Err(ErrorKind::FileTooLarge.into());
            }
            buffer.resize((filled * 2).max(FIRST_BUFFER), 0);
        }
        let room = buffer.get_mut(filled..).unwrap_or_default();
        match file.read_at(room, filled as u64) {
            Ok(0) => return Ok(buffer.get(..filled).unwrap_or_default()),
            Ok(n) => filled += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
