//! `--csv`: values from a file instead of runs.

use super::{diagnostics, strictness};
use crate::cli::{BetterWord, CompareArgs};
use crate::context::UsageError;
use kdyno_analyze::{CompareOptions, Comparison, MetricGlobs, compare_values};
use kdyno_formats::{LongError, read_long};
use kdyno_model::{Better, ValueTable};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 16;

/// Reads and compares a file; `-` is standard input.
pub(super) fn compare_file(file: &str, args: &CompareArgs) -> anyhow::Result<Comparison> {
    let table = read(file)?;
    let name = match file {
        "-" => "standard input".to_owned(),
        file => Path::new(file).file_name().map_or_else(
            || file.to_owned(),
            |name| name.to_string_lossy().into_owned(),
        ),
    };
    let metrics = match args.metric.as_slice() {
        [] => None,
        globs => Some(MetricGlobs::new(globs)?),
    };
    let better = match args.better {
        Some(BetterWord::Higher) => Better::Higher,
        Some(BetterWord::Lower) => Better::Lower,
        None => Better::Neither,
    };
    let options = CompareOptions {
        metrics,
        diagnostics: diagnostics(args),
        strictness: strictness(args),
        ..CompareOptions::default()
    };
    Ok(compare_values(table, &name, better, &options))
}

fn read(file: &str) -> anyhow::Result<ValueTable> {
    let read = if file == "-" {
        read_long(std::io::stdin().lock())
    } else {
        let opened = File::open(file).map_err(|error| {
            UsageError::new(
                format!("{file}: {error}"),
                "give the path of a file of values, or - for standard input",
            )
        })?;
        read_long(BufReader::with_capacity(BUFFER, opened))
    };
    Ok(read.map_err(|error: LongError| UsageError {
        hint: error.hint().map(str::to_owned),
        message: format!("{file}: {error}"),
    })?)
}
