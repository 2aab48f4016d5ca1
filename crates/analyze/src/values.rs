//! Values without runs to a [`Comparison`]: what a file of metrics by variant gives.
//!
//! Nothing is known of boots, plans or machines, so that a replicate is one value. Values of one
//! block are paired where blocks are given. All metrics are one family, as nobody said which of
//! them are diagnostics.

use crate::compare::{CompareOptions, against, missing, shown};
use crate::comparison::{CaseTable, Cell, Column, Comparison, Counts, Observation, Row, RunPlace};
use crate::judge::{Draft, judge};
use kdyno_model::{
    Better, BlockValue, CaseId, CaseRef, PlanId, Role, RunId, Unit, ValueRow, ValueTable,
    VariantName,
};
use kdyno_stats::Summary;
use std::collections::{BTreeMap, BTreeSet};

/// Sets the variants of `table` side by side under the title `name`. `better` is the direction of
/// every metric; `options.variants` chooses and orders the columns.
#[must_use]
pub fn compare_values(
    table: ValueTable,
    name: &str,
    better: Better,
    options: &CompareOptions,
) -> Comparison {
    let given: Vec<VariantName> = table.variants.iter().cloned().map(VariantName).collect();
    let variants = if options.variants.is_empty() {
        given.clone()
    } else {
        options.variants.clone()
    };
    // The place in the file of each column.
    let places: Vec<Option<usize>> = variants
        .iter()
        .map(|name| given.iter().position(|known| known == name))
        .collect();
    let layout = Layout::of(&table, &places);
    let missing = table.missing;
    let wanted = |row: &ValueRow| {
        let globs = options.metrics.as_ref();
        globs.is_none_or(|globs| globs.matches(&row.metric))
    };
    let metrics = table.metrics.into_iter().filter(|row| wanted(row));
    let rows: Vec<Row> = metrics
        .map(|row| layout.row(row, &places, &variants, better))
        .collect();
    let columns: Vec<Column> = variants
        .iter()
        .zip(layout.counts())
        .map(|(name, counts)| Column {
            name: name.clone(),
            description: None,
            counts,
            control: options.controls.contains(name),
        })
        .collect();
    let mut drafts = vec![layout.draft(name, rows, missing)];
    judge(&mut drafts, &columns, options);
    Comparison {
        columns,
        tables: drafts
            .into_iter()
            .map(|draft| shown(draft, options))
            .collect(),
        notes: Vec::new(),
    }
}

/// Made-up runs that the values stand for.
struct Layout {
    runs: Vec<RunPlace>,
    /// The runs of each column.
    columns: Vec<Vec<u32>>,
    /// The blocks of each column, ascending; the n-th run stands for the n-th block. Empty where
    /// no block is given: then the n-th run stands for the n-th value and pairs with nothing.
    blocks: Vec<Vec<u32>>,
}

impl Layout {
    fn of(table: &ValueTable, places: &[Option<usize>]) -> Self {
        let mut layout = Self {
            runs: Vec::new(),
            columns: Vec::new(),
            blocks: Vec::new(),
        };
        let plan = PlanId::new();
        for place in places {
            let lists = || {
                let rows = table.metrics.iter();
                rows.filter_map(|row| row.values.get((*place)?))
            };
            let blocks: BTreeSet<u32> = lists().flatten().filter_map(|v| v.block).collect();
            let first = u32::try_from(layout.runs.len()).unwrap_or(u32::MAX);
            let numbers: Vec<u32> = if blocks.is_empty() {
                let longest = lists().map(Vec::len).max().unwrap_or(0);
                (first..).take(longest).collect()
            } else {
                blocks.iter().copied().collect()
            };
            layout.columns.push((first..).take(numbers.len()).collect());
            let run = |block| run_place(plan, block);
            layout.runs.extend(numbers.into_iter().map(run));
            layout.blocks.push(blocks.into_iter().collect());
        }
        layout
    }

    fn counts(&self) -> Vec<Counts> {
        let counts = |runs: &Vec<u32>| Counts {
            runs: runs.len(),
            warm_ups: 0,
            boots: BTreeSet::new(),
        };
        self.columns.iter().map(counts).collect()
    }

    /// The table under its title, with what was missing in the file.
    fn draft(self, title: &str, rows: Vec<Row>, missing: usize) -> Draft {
        let note = match missing {
            0 => None,
            1 => Some("1 value is missing or not finite and left out".to_owned()),
            n => Some(format!("{n} values are missing or not finite and left out")),
        };
        let table = CaseTable {
            case: CaseRef {
                testcase: title.to_owned(),
                params: String::new(),
                id: CaseId(String::new()),
            },
            testbox: String::new(),
            counts: self.counts(),
            runs: self.runs,
            designs: Vec::new(),
            failures: Vec::new(),
            groups: Vec::new(),
            distributions: Vec::new(),
            hidden: 0,
            controls: Vec::new(),
            notes: note.into_iter().collect(),
        };
        Draft {
            table,
            rows,
            basis: None,
            columns: self.columns,
            doubts: Vec::new(),
        }
    }

    fn row(
        &self,
        given: ValueRow,
        places: &[Option<usize>],
        variants: &[VariantName],
        better: Better,
    ) -> Row {
        let absolute = given.metric.changes_absolutely();
        let (mut cells, mut notes) = (Vec::new(), Vec::new());
        for (column, place) in places.iter().enumerate() {
            let values = place.and_then(|place| given.values.get(place));
            let cell = values.and_then(|values| self.cell(column, values));
            let have = cell.as_ref().map_or(0, Cell::n);
            // Without blocks nobody knows how many values a metric should have.
            let blocks = self.blocks.get(column).map_or(0, Vec::len);
            let of = if blocks == 0 { 1 } else { blocks };
            notes.extend(
                variants
                    .get(column)
                    .and_then(|name| missing(have, of, name)),
            );
            cells.push(match (&cell, cells.first()) {
                (Some(cell), Some(Some(base))) => Some(against(cell.clone(), base, absolute)),
                _ => cell,
            });
        }
        Row {
            metric: given.metric,
            unit: Unit::default(),
            better,
            role: Role::Headline,
            cells,
            notes,
        }
    }

    /// The values of a column; those of one block are repetitions of one run and averaged.
    fn cell(&self, column: usize, values: &[BlockValue]) -> Option<Cell> {
        let first = *self.columns.get(column)?.first()?;
        let blocks = self.blocks.get(column)?;
        let observations: Vec<Observation> = if blocks.is_empty() {
            (first..)
                .zip(values)
                .map(|(run, value)| Observation {
                    value: value.value,
                    run,
                })
                .collect()
        } else {
            let mut by_block: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
            for value in values {
                let place = blocks.binary_search(&value.block?).ok()?;
                by_block.entry(place).or_default().push(value.value);
            }
            by_block
                .into_iter()
                .filter_map(|(place, values)| {
                    Some(Observation {
                        value: kdyno_stats::summary::mean(&values)?,
                        run: first.checked_add(u32::try_from(place).ok()?)?,
                    })
                })
                .collect()
        };
        let values: Vec<f64> = observations.iter().map(|o| o.value).collect();
        Some(Cell {
            observations,
            boots: 0,
            summary: Summary::of(&values)?,
            change: None,
            moved: false,
            judged: None,
        })
    }
}

fn run_place(plan: PlanId, block: u32) -> RunPlace {
    RunPlace {
        run: RunId::new(),
        boot: None,
        kernel_release: String::new(),
        build_id: None,
        plan,
        block,
        order: 0,
        start_unix_ns: 0,
    }
}
