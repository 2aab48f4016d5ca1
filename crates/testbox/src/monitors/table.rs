//! Samples of one `/proc` source as rows of raw numbers, turned into columns at the end.
//!
//! The first sample teaches which lines there are and in which order. A later one only compares
//! the key of each line with the one expected next; where they differ the line is looked up, or
//! learned when it is new. So a steady file costs one comparison per line, no allocation and no
//! hashing, and a device that comes or goes costs one search. It knows no file format.

use kdyno_model::{Column, ColumnKind, MetricName, SeriesSet, Unit};
use std::collections::HashSet;

/// A cell without a value. No number that a scan returns is as large.
const ABSENT: u64 = u64::MAX;

/// Far more lines than any of the files has; keeps garbage from growing the table.
const MAX_LINES: usize = 8192;

/// A learned line: some consecutive columns under one key.
pub(super) struct Line {
    /// What the line begins with.
    pub(super) key: Box<[u8]>,
    /// Further text of the line when it was learned, for its name or unit.
    pub(super) detail: Box<[u8]>,
    first: usize,
    width: usize,
}

impl Line {
    /// How many columns it has.
    pub(super) fn width(&self) -> usize {
        self.width
    }
}

/// What a column is.
pub(super) struct Spec {
    /// Its metric name without the monitor's.
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) kind: ColumnKind,
    /// What a raw number is divided by to be in `unit`.
    pub(super) divisor: f64,
}

impl Spec {
    /// A running total that needs no conversion.
    pub(super) fn counter(name: impl Into<String>, unit: &'static str) -> Self {
        Self {
            name: name.into(),
            unit,
            kind: ColumnKind::Counter,
            divisor: 1.0,
        }
    }

    /// A state that needs no conversion.
    pub(super) fn gauge(name: impl Into<String>, unit: &'static str) -> Self {
        Self {
            kind: ColumnKind::Gauge,
            ..Self::counter(name, unit)
        }
    }

    /// With raw numbers in another unit.
    pub(super) fn divided_by(self, divisor: f64) -> Self {
        Self { divisor, ..self }
    }
}

/// The cells of the line being read, to be filled from the left.
pub(super) struct Cells<'a>(std::slice::IterMut<'a, u64>);

impl Cells<'_> {
    /// Fills the next cell; a line may offer more numbers than were learned.
    pub(super) fn push(&mut self, value: Option<u64>) {
        if let (Some(cell), Some(value)) = (self.0.next(), value) {
            *cell = value;
        }
    }

    /// Leaves the next cell as it is.
    pub(super) fn skip(&mut self) {
        self.0.next();
    }

    /// Adds to the next cell, which other lines or files of the same key fill as well.
    pub(super) fn add(&mut self, value: Option<u64>) {
        self.merge(value, |sum, value| {
            sum.saturating_add(value).min(ABSENT - 1)
        });
    }

    /// Keeps the smallest value in the next cell.
    pub(super) fn lower(&mut self, value: Option<u64>) {
        self.merge(value, u64::min);
    }

    /// Keeps the largest value in the next cell.
    pub(super) fn raise(&mut self, value: Option<u64>) {
        self.merge(value, u64::max);
    }

    fn merge(&mut self, value: Option<u64>, with: impl Fn(u64, u64) -> u64) {
        if let (Some(cell), Some(value)) = (self.0.next(), value) {
            *cell = match *cell {
                ABSENT => value,
                old => with(old, value),
            };
        }
    }

    /// How many cells are left: as many as the line was learned with, before the first is filled.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Rows of raw numbers, and the lines that their columns belong to.
#[derive(Default)]
pub(super) struct Table {
    lines: Vec<Line>,
    width: usize,
    next: usize,
    t_ns: Vec<u64>,
    row_starts: Vec<usize>,
    cells: Vec<u64>,
}

impl Table {
    /// Opens a row, all of it absent.
    pub(super) fn begin(&mut self, t_ns: u64) {
        self.t_ns.push(t_ns);
        self.row_starts.push(self.cells.len());
        self.cells.resize(self.cells.len() + self.width, ABSENT);
        self.next = 0;
    }

    /// The cells of the line that begins with `key` in the open row; an unknown line is learned
    /// with `detail` and `width` columns. `None` when no row is open or there are too many lines.
    pub(super) fn cells(&mut self, key: &[u8], detail: &[u8], width: usize) -> Option<Cells<'_>> {
        let row = *self.row_starts.last()?;
        // The line of before comes again where several CPUs are put together.
        let before = self.next.saturating_sub(1);
        let index = match (self.lines.get(self.next), self.lines.get(before)) {
            (Some(line), _) if *line.key == *key => self.next,
            (_, Some(line)) if *line.key == *key => before,
            _ => self.find_or_learn(key, detail, width)?,
        };
        self.next = index + 1;
        let line = self.lines.get(index)?;
        let from = row + line.first;
        let cells = self.cells.get_mut(from..from + line.width)?;
        Some(Cells(cells.iter_mut()))
    }

    /// Whether the open row holds any number.
    pub(super) fn has_values(&self) -> bool {
        self.row(self.row_starts.len().saturating_sub(1))
            .iter()
            .any(|&cell| cell != ABSENT)
    }

    #[cold]
    fn find_or_learn(&mut self, key: &[u8], detail: &[u8], width: usize) -> Option<usize> {
        if let Some(index) = self.lines.iter().position(|line| *line.key == *key) {
            return Some(index);
        }
        if self.lines.len() == MAX_LINES {
            return None;
        }
        self.lines.push(Line {
            key: key.into(),
            detail: detail.into(),
            first: self.width,
            width,
        });
        self.width += width;
        self.cells.resize(self.cells.len() + width, ABSENT);
        Some(self.lines.len() - 1)
    }

    fn row(&self, index: usize) -> &[u64] {
        let from = self.row_starts.get(index).copied().unwrap_or(0);
        let to = self.row_starts.get(index + 1).copied();
        self.cells
            .get(from..to.unwrap_or(self.cells.len()))
            .unwrap_or(&[])
    }

    fn column(&self, index: usize) -> impl Iterator<Item = Option<u64>> + '_ {
        (0..self.row_starts.len()).map(move |row| {
            let cell = self.row(row).get(index).copied();
            cell.filter(|&value| value != ABSENT)
        })
    }

    /// All columns as series. `describe` says for a line what its columns are, one entry each; it
    /// is told whether any of them was ever other than zero, and gives none to leave them out. A
    /// column never seen is left out too, as is one whose name cannot be a metric's.
    pub(super) fn into_series(
        self,
        monitor: &str,
        describe: impl Fn(&Line, bool) -> Vec<Spec>,
    ) -> SeriesSet {
        let mut columns = Vec::new();
        let mut taken = HashSet::new();
        for line in &self.lines {
            let all = line.first..line.first + line.width;
            let active = all
                .clone()
                .any(|index| self.column(index).flatten().any(|value| value != 0));
            for (index, mut spec) in all.zip(describe(line, active)) {
                if !taken.insert(spec.name.clone()) {
                    spec.name = format!("{}-{}", spec.name, String::from_utf8_lossy(&line.key));
                }
                let Ok(metric) = MetricName::new(format!("{monitor}.{}", spec.name)) else {
                    continue;
                };
                let values: Vec<_> = self
                    .column(index)
                    .map(|value| Some(value? as f64 / spec.divisor))
                    .collect();
                if values.iter().any(Option::is_some) {
                    columns.push(Column {
                        metric,
                        unit: Unit::new(spec.unit),
                        kind: spec.kind,
                        values,
                    });
                }
            }
        }
        SeriesSet {
            monitor: monitor.to_owned(),
            t_ns: self.t_ns,
            columns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(table: &mut Table, t_ns: u64, lines: &[(&str, u64)]) {
        table.begin(t_ns);
        for (key, value) in lines {
            let mut cells = table.cells(key.as_bytes(), b"", 1).unwrap();
            cells.push(Some(*value));
            cells.push(Some(7));
        }
    }

    fn series(table: Table) -> SeriesSet {
        table.into_series("m", |line, _| {
            let name = String::from_utf8_lossy(&line.key);
            vec![Spec::counter(name, "").divided_by(2.0)]
        })
    }

    fn values<'a>(set: &'a SeriesSet, name: &str) -> &'a [Option<f64>] {
        let column = set.columns.iter().find(|c| c.metric.as_str() == name);
        &column.expect(name).values
    }

    #[test]
    fn lines_that_come_go_and_swap() {
        let mut table = Table::default();
        row(&mut table, 0, &[("a", 2), ("b", 4), ("c", 6)]);
        row(&mut table, 1, &[("b", 8), ("c", 10)]);
        row(&mut table, 2, &[("c", 12), ("n", 2), ("a", 14), ("b", 16)]);
        let set = series(table);
        assert_eq!(set.t_ns, [0, 1, 2]);
        assert_eq!(values(&set, "m.a"), [Some(1.0), None, Some(7.0)]);
        assert_eq!(values(&set, "m.b"), [Some(2.0), Some(4.0), Some(8.0)]);
        assert_eq!(values(&set, "m.c"), [Some(3.0), Some(5.0), Some(6.0)]);
        assert_eq!(values(&set, "m.n"), [None, None, Some(1.0)]);
    }

    #[test]
    fn a_key_that_comes_again_has_the_same_cells() {
        let mut table = Table::default();
        table.begin(0);
        for value in [4, 9, 2] {
            let mut cells = table.cells(b"all", b"", 4).unwrap();
            assert_eq!(cells.len(), 4);
            cells.add(Some(value));
            cells.lower(Some(value));
            cells.raise(Some(value));
            cells.skip();
            assert_eq!(cells.len(), 0);
        }
        table.cells(b"all", b"", 4).unwrap().add(None);
        table.cells(b"all", b"", 4).unwrap().add(Some(u64::MAX - 1));
        let set = table.into_series("m", |_, _| {
            ["sum", "low", "high", "none"]
                .map(|name| Spec::gauge(name, ""))
                .into()
        });
        assert_eq!(values(&set, "m.sum"), [Some((u64::MAX - 1) as f64)]);
        assert_eq!(values(&set, "m.low"), [Some(2.0)]);
        assert_eq!(values(&set, "m.high"), [Some(9.0)]);
        assert_eq!(set.columns.len(), 3, "what was never filled is no column");
    }

    #[test]
    fn an_empty_row_has_no_values() {
        let mut table = Table::default();
        assert!(!table.has_values());
        assert!(table.cells(b"a", b"", 1).is_none(), "no row is open");
        row(&mut table, 0, &[("a", 0)]);
        assert!(table.has_values());
        table.begin(1);
        assert!(!table.has_values());
        assert_eq!(values(&series(table), "m.a"), [Some(0.0), None]);
    }

    #[test]
    fn impossible_and_double_names() {
        let mut table = Table::default();
        row(&mut table, 0, &[("a b", 1), ("x", 1), ("y", 1)]);
        let set = table.into_series("m", |line, active| {
            assert!(active);
            let blank = line.key.contains(&b' ');
            vec![Spec::gauge(if blank { "a b" } else { "same" }, "")]
        });
        let names: Vec<_> = set.columns.iter().map(|c| c.metric.as_str()).collect();
        assert_eq!(names, ["m.same", "m.same-y"]);
    }

    #[test]
    fn the_number_of_lines_is_bounded() {
        let mut table = Table::default();
        table.begin(0);
        for key in 0..MAX_LINES {
            assert!(table.cells(&key.to_le_bytes(), b"", 1).is_some());
        }
        assert!(table.cells(b"one more", b"", 1).is_none());
    }
}
