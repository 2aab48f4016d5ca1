//! The index over run directories: portable SQL behind a synchronous face.
//!
//! Derived and rebuildable: it holds nothing that the run directories do not, so a damaged one is
//! moved aside and filled again. One row per run carries its numbers as one blob of f64 whose
//! order a shared `metric_set` names; this is half the size of a row per number, and a comparison
//! reads few rows. Other readings are kept as JSON beside it, and headline figures once more as
//! rows for plain SQL.
//!
//! One connection, not a pool: a command asks a handful of questions one after the other. The
//! crate knows neither run directories nor what a comparison is; rows come in and go out as
//! [`kdyno_model::RunRow`]. Its methods must not be called from within an async runtime.
#![warn(missing_docs)]

mod encode;
mod error;
mod filter;
mod open;
mod sql;

pub use error::StoreError;
pub use filter::{PlanSummary, RunFilter, Scalars};

use encode::MetricSet;
use kdyno_model::{CaseId, PlanId, RunId, RunRow, RunSet};
use sqlx::{AnyConnection, Connection};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use tokio::runtime::{Builder, Runtime};

/// An open index.
#[derive(Debug)]
pub struct Index {
    path: PathBuf,
    runtime: Runtime,
    connection: AnyConnection,
}

impl Index {
    /// Opens the index at `path`, creating file and directories as needed.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the file is damaged or of something else (damage in the
    /// middle shows only when a query meets it), [`StoreError::Newer`], [`StoreError::Access`],
    /// [`StoreError::Busy`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let runtime = Builder::new_current_thread().build();
        let runtime = runtime.map_err(|e| StoreError::Access {
            path: path.to_owned(),
            reason: e.to_string(),
        })?;
        let connection = runtime.block_on(open::open(path))?;
        Ok(Self {
            path: path.to_owned(),
            runtime,
            connection,
        })
    }

    /// Whether it was ever filled from all run directories since it was created or cleared; until
    /// then it may lack any of them.
    ///
    /// # Errors
    /// What the database says.
    pub fn is_filled(&mut self) -> Result<bool, StoreError> {
        let filled = self.runtime.block_on(sql::is_filled(&mut self.connection));
        filled.map_err(|e| StoreError::from_database(&self.path, &e))
    }

    /// Notes, durably, that every run directory was taken in; saying it twice is fine.
    ///
    /// # Errors
    /// What the database says.
    pub fn mark_filled(&mut self) -> Result<(), StoreError> {
        let marked = self
            .runtime
            .block_on(sql::filled_insert(&mut self.connection));
        marked.map_err(|e| StoreError::from_database(&self.path, &e))
    }

    /// Adds runs, all or none, and returns how many were new; a run that is there stays as it is.
    ///
    /// # Errors
    /// [`StoreError::InvalidRun`] when a number is not finite, or what the database says.
    pub fn ingest(&mut self, rows: &[RunRow]) -> Result<usize, StoreError> {
        rows.iter().try_for_each(encode::check)?;
        let connection = &mut self.connection;
        let added = self.runtime.block_on(ingest(connection, rows));
        added.map_err(|e| StoreError::from_database(&self.path, &e))
    }

    /// The runs that the filter selects, in its order, with the figures that it wants.
    ///
    /// # Errors
    /// [`StoreError::FilterTooLong`], or what the database says.
    pub fn runs_select(&mut self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        let given = sql::filter_len(filter);
        // The testcase and the limit are values too.
        let limit = sql::MAX_VALUES - 2;
        if given > limit {
            return Err(StoreError::FilterTooLong { given, limit });
        }
        let connection = &mut self.connection;
        let rows = self.runtime.block_on(select(connection, filter));
        rows.map_err(|e| StoreError::from_database(&self.path, &e))
    }

    /// The run whose id ends in these hexadecimal digits; hyphens do not count.
    ///
    /// # Errors
    /// [`StoreError::Ambiguous`] when several do, or what the database says.
    pub fn run_by_id_suffix(&mut self, suffix: &str) -> Result<Option<RunRow>, StoreError> {
        let digits = suffix.replace('-', "").to_ascii_lowercase();
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let connection = &mut self.connection;
        let found = self
            .runtime
            .block_on(sql::runs_by_suffix(connection, &digits));
        let found = found.map_err(|e| StoreError::from_database(&self.path, &e))?;
        match found[..] {
            [] => Ok(None),
            [run] => {
                let filter = RunFilter {
                    runs: vec![run],
                    ..RunFilter::default()
                };
                Ok(self.runs_select(&filter)?.pop())
            }
            _ => Err(StoreError::Ambiguous {
                suffix: suffix.to_owned(),
            }),
        }
    }

    /// The newest plan that has a run.
    ///
    /// # Errors
    /// What the database says.
    pub fn plan_newest(&mut self) -> Result<Option<PlanId>, StoreError> {
        let plan = self
            .runtime
            .block_on(sql::plan_newest(&mut self.connection));
        plan.map_err(|e| StoreError::from_database(&self.path, &e))
    }

    /// Every plan that has a run, newest first.
    ///
    /// # Errors
    /// What the database says.
    pub fn plans_list(&mut self) -> Result<Vec<PlanSummary>, StoreError> {
        let plans = self.runtime.block_on(sql::plans_list(&mut self.connection));
        plans.map_err(|e| StoreError::from_database(&self.path, &e))
    }

    /// The ids of the runs of a plan.
    ///
    /// # Errors
    /// What the database says.
    pub fn run_ids(&mut self, plan: PlanId) -> Result<HashSet<RunId>, StoreError> {
        let ids = self
            .runtime
            .block_on(sql::run_ids(&mut self.connection, plan));
        ids.map_err(|e| StoreError::from_database(&self.path, &e))
    }

    /// How many runs it has.
    ///
    /// # Errors
    /// What the database says.
    pub fn count(&mut self) -> Result<u64, StoreError> {
        let count = self.runtime.block_on(sql::runs_count(&mut self.connection));
        count.map_err(|e| StoreError::from_database(&self.path, &e))
    }

    /// Forgets runs; those that it does not know are no error.
    ///
    /// # Errors
    /// What the database says; then none is forgotten.
    pub fn runs_delete(&mut self, runs: &[RunId]) -> Result<(), StoreError> {
        let connection = &mut self.connection;
        let deleted = self.runtime.block_on(async {
            let mut transaction = connection.begin_with(sql::engine::BEGIN_WRITE).await?;
            sql::runs_delete(&mut transaction, runs).await?;
            transaction.commit().await
        });
        deleted.map_err(|e| StoreError::from_database(&self.path, &e))
    }

    /// Remembers how much the metrics of a plan varied, in place of what was remembered of it; all
    /// or nothing.
    ///
    /// # Errors
    /// What the database says.
    pub fn run_sets_replace(&mut self, plan: PlanId, sets: &[RunSet]) -> Result<(), StoreError> {
        let connection = &mut self.connection;
        let replaced = self.runtime.block_on(async {
            let mut transaction = connection.begin_with(sql::engine::BEGIN_WRITE).await?;
            sql::run_sets_replace(&mut transaction, plan, sets).await?;
            transaction.commit().await
        });
        replaced.map_err(|e| StoreError::from_database(&self.path, &e))
    }

    /// The newest `limit` run sets of a case on a machine, latest start first, without those of
    /// the plans `not_of`.
    ///
    /// # Errors
    /// [`StoreError::FilterTooLong`], or what the database says.
    pub fn run_sets_select(
        &mut self,
        testbox: &str,
        case: &CaseId,
        not_of: &[PlanId],
        limit: u32,
    ) -> Result<Vec<RunSet>, StoreError> {
        // Testbox, case and limit are values too.
        let most = sql::MAX_VALUES - 3;
        if not_of.len() > most {
            return Err(StoreError::FilterTooLong {
                given: not_of.len(),
                limit: most,
            });
        }
        let connection = &mut self.connection;
        let sets = sql::run_sets_select(connection, testbox, case, not_of, limit);
        let sets = self.runtime.block_on(sets);
        sets.map_err(|e| StoreError::from_database(&self.path, &e))
    }

    /// Closes it and folds its journal into the file; without it the next one to open does.
    ///
    /// # Errors
    /// What the database says.
    pub fn close(self) -> Result<(), StoreError> {
        let closed = self.runtime.block_on(self.connection.close());
        closed.map_err(|e| StoreError::from_database(&self.path, &e))
    }
}

async fn ingest(connection: &mut AnyConnection, rows: &[RunRow]) -> Result<usize, sqlx::Error> {
    let mut transaction = connection.begin_with(sql::engine::BEGIN_WRITE).await?;
    let ids: Vec<RunId> = rows.iter().map(|row| row.run_id).collect();
    let mut seen = sql::runs_present(&mut transaction, &ids).await?;
    let rows: Vec<&RunRow> = rows.iter().filter(|row| seen.insert(row.run_id)).collect();

    let mut sets: HashMap<String, MetricSet> = HashMap::new();
    let mut last = String::new();
    let mut runs = Vec::with_capacity(rows.len());
    for row in &rows {
        // Neighbours mostly share a set, and hashing one costs more than comparing.
        if !sets.get(&last).is_some_and(|set| set.fits(&row.scalars)) {
            let set = MetricSet::of(&row.scalars).map_err(|e| sqlx::Error::Encode(e.into()))?;
            last.clone_from(&set.id);
            sets.insert(set.id.clone(), set);
        }
        runs.push((*row, last.clone(), encode::pack(&row.scalars)));
    }
    let sets: Vec<&MetricSet> = sets.values().collect();
    sql::metric_sets_insert(&mut transaction, &sets).await?;
    let added = sql::runs_insert(&mut transaction, &runs).await?;
    sql::readings_insert(&mut transaction, &rows).await?;
    sql::kpis_insert(&mut transaction, &rows).await?;
    transaction.commit().await?;
    Ok(added)
}

async fn select(
    connection: &mut AnyConnection,
    filter: &RunFilter,
) -> Result<Vec<RunRow>, sqlx::Error> {
    // One state for all questions: a run that is added in between would lack its metric set.
    let mut transaction = connection.begin_with(sql::engine::BEGIN_READ).await?;
    let sets = match filter.scalars {
        Scalars::All | Scalars::Headline => {
            sql::metric_sets_select(&mut transaction, filter).await?
        }
        Scalars::None => HashMap::new(),
    };
    let mut rows = sql::runs_select(&mut transaction, filter, &sets).await?;
    if filter.scalars == Scalars::All {
        let runs: Vec<RunId> = rows.iter().map(|row| row.run_id).collect();
        let mut rich = sql::readings_select(&mut transaction, &runs).await?;
        for row in &mut rows {
            row.rich = rich.remove(&row.run_id).unwrap_or_default();
        }
    }
    transaction.commit().await?;
    Ok(rows)
}
