//! The index over run directories: portable SQL behind a synchronous face.
//!
//! In an SQLite file, or in a schema of a PostgreSQL server: one code, the same answers.
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
mod place;
mod sql;

pub use error::StoreError;
pub use filter::{PlanSummary, RunFilter, Scalars};
pub use place::{Place, Server};

use encode::MetricSet;
use kdyno_model::{CaseId, PlanId, RunId, RunRow, RunSet};
use open::Old;
use sql::engine::{self, Fault};
use sqlx::{AnyConnection, Connection};
use std::collections::{HashMap, HashSet};
use tokio::runtime::{Builder, Runtime};

/// An open index.
#[derive(Debug)]
pub struct Index {
    place: Place,
    runtime: Runtime,
    connection: AnyConnection,
    generation: i64,
}

impl Index {
    /// Opens the index at `place`, creating what is needed.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when what is there is damaged or of something else (damage in the
    /// middle shows only when a query meets it), [`StoreError::Newer`], [`StoreError::Access`],
    /// [`StoreError::Busy`].
    pub fn open(place: &Place) -> Result<Self, StoreError> {
        Self::open_with(place, Old::Kept)
    }

    /// Opens an empty index at `place`, whatever was there.
    ///
    /// # Errors
    /// [`StoreError::Access`], [`StoreError::Busy`].
    pub fn replace(place: &Place) -> Result<Self, StoreError> {
        Self::open_with(place, Old::Removed)
    }

    /// Keeps what is at `place` under another name, which it returns; then a new index can be
    /// made there.
    ///
    /// # Errors
    /// [`StoreError::Access`], [`StoreError::Busy`].
    pub fn set_aside(place: &Place) -> Result<String, StoreError> {
        let runtime = runtime(place)?;
        let aside = runtime.block_on(open::set_aside(place));
        runtime.shutdown_background();
        aside
    }

    fn open_with(place: &Place, old: Old) -> Result<Self, StoreError> {
        let runtime = runtime(place)?;
        match runtime.block_on(open::open(place, old)) {
            Ok((connection, generation)) => Ok(Self {
                place: place.clone(),
                runtime,
                connection,
                generation,
            }),
            Err(error) => {
                // It would wait for a name server that the time limit has given up on.
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    /// Asks the database. Everything that is asked can be asked twice, so a lost connection is
    /// replaced by a new one, once: an index is open for hours while a plan runs.
    fn ask<T>(
        &mut self,
        question: impl AsyncFn(&Place, &mut AnyConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        let first = self.ask_once(&question);
        let answer = match first {
            Err(error) if engine::fault(&self.place, &error) == Fault::Lost => {
                self.connection = self.runtime.block_on(open::connect(&self.place))?;
                self.ask_once(&question)
            }
            other => other,
        };
        answer.map_err(|e| StoreError::from_database(&self.place, &e))
    }

    fn ask_once<T>(
        &mut self,
        question: impl AsyncFn(&Place, &mut AnyConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        let answer = question(&self.place, &mut self.connection);
        self.runtime
            .block_on(engine::within_limit(&self.place, answer))
    }

    /// Whether it was ever filled from all run directories since it was created or cleared; until
    /// then it may lack any of them.
    ///
    /// # Errors
    /// What the database says.
    pub fn is_filled(&mut self) -> Result<bool, StoreError> {
        self.ask(async |_, connection| sql::is_filled(connection).await)
    }

    /// Notes, durably, that every run directory was taken in; saying it twice is fine.
    ///
    /// # Errors
    /// What the database says.
    pub fn mark_filled(&mut self) -> Result<(), StoreError> {
        self.ask(async |_, connection| sql::filled_insert(connection).await)
    }

    /// Whether another process has made it anew since it was opened: what was read since then may
    /// be of an index that is only half filled.
    ///
    /// # Errors
    /// What the database says.
    pub fn is_replaced(&mut self) -> Result<bool, StoreError> {
        let now = self.ask(async |place, c| engine::generation(place, c).await)?;
        Ok(now != self.generation)
    }

    /// Adds runs, all or none, and returns how many were new; a run that is there stays as it is.
    ///
    /// # Errors
    /// [`StoreError::InvalidRun`] when a number is not finite, or what the database says.
    pub fn ingest(&mut self, rows: &[RunRow]) -> Result<usize, StoreError> {
        rows.iter().try_for_each(encode::check)?;
        if let Place::Postgres(_) = self.place {
            rows.iter().try_for_each(encode::check_texts)?;
        }
        self.ask(async |place, connection| ingest(place, connection, rows).await)
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
        self.ask(async |place, connection| select(place, connection, filter).await)
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
        let found =
            self.ask(async |_, connection| sql::runs_by_suffix(connection, &digits).await)?;
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
        self.ask(async |_, connection| sql::plan_newest(connection).await)
    }

    /// Every plan that has a run, newest first.
    ///
    /// # Errors
    /// What the database says.
    pub fn plans_list(&mut self) -> Result<Vec<PlanSummary>, StoreError> {
        self.ask(async |_, connection| sql::plans_list(connection).await)
    }

    /// The ids of the runs of a plan.
    ///
    /// # Errors
    /// What the database says.
    pub fn run_ids(&mut self, plan: PlanId) -> Result<HashSet<RunId>, StoreError> {
        self.ask(async |_, connection| sql::run_ids(connection, plan).await)
    }

    /// How many runs it has.
    ///
    /// # Errors
    /// What the database says.
    pub fn count(&mut self) -> Result<u64, StoreError> {
        self.ask(async |_, connection| sql::runs_count(connection).await)
    }

    /// Forgets runs; those that it does not know are no error.
    ///
    /// # Errors
    /// What the database says; then none is forgotten.
    pub fn runs_delete(&mut self, runs: &[RunId]) -> Result<(), StoreError> {
        self.ask(async |place, connection| {
            let mut transaction = engine::begin_write(place, connection).await?;
            sql::runs_delete(&mut transaction, runs).await?;
            transaction.commit().await
        })
    }

    /// Remembers how much the metrics of a plan varied, in place of what was remembered of it; all
    /// or nothing.
    ///
    /// # Errors
    /// What the database says.
    pub fn run_sets_replace(&mut self, plan: PlanId, sets: &[RunSet]) -> Result<(), StoreError> {
        self.ask(async |place, connection| {
            let mut transaction = engine::begin_write(place, connection).await?;
            sql::run_sets_replace(&mut transaction, plan, sets).await?;
            transaction.commit().await
        })
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
        self.ask(async |_, connection| {
            sql::run_sets_select(connection, testbox, case, not_of, limit).await
        })
    }

    /// Closes it and folds a file's journal into it; without it the next one to open does.
    ///
    /// # Errors
    /// What the database says.
    pub fn close(self) -> Result<(), StoreError> {
        let closed = self.runtime.block_on(self.connection.close());
        closed.map_err(|e| StoreError::from_database(&self.place, &e))
    }
}

fn runtime(place: &Place) -> Result<Runtime, StoreError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(error::access(place))
}

async fn ingest(
    place: &Place,
    connection: &mut AnyConnection,
    rows: &[RunRow],
) -> Result<usize, sqlx::Error> {
    let mut transaction = engine::begin_write(place, connection).await?;
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
    place: &Place,
    connection: &mut AnyConnection,
    filter: &RunFilter,
) -> Result<Vec<RunRow>, sqlx::Error> {
    // One state for all questions: a run that is added in between would lack its metric set.
    let mut transaction = engine::begin_read(place, connection).await?;
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
