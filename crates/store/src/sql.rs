//! Every SQL statement of the index.
//!
//! Portable: `$n` placeholders; TEXT, BIGINT, DOUBLE PRECISION and bytes; times and counts as
//! 64-bit integers; no sum of them, no engine's own functions outside [`engine`].

pub(crate) mod engine;
mod run_sets;

pub(crate) use run_sets::{run_sets_replace, run_sets_select};

use crate::encode::{MetricSet, from_word, word};
use crate::{PlanSummary, RunFilter, Scalars};
use kdyno_model::{
    BootId, CaseId, CaseRef, PlanId, Reading, Role, RunId, RunRow, Scalar, SessionId, VariantName,
};
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::{Any, AnyConnection, Arguments, AssertSqlSafe, Encode, Row, Type};
use std::collections::{HashMap, HashSet};
use std::future::poll_fn;

type Result<T> = std::result::Result<T, sqlx::Error>;

/// Values that one statement can take; SQLite's limit is 32766, PostgreSQL's 65535.
pub(crate) const MAX_VALUES: usize = 30_000;

/// Rows per statement: enough to hide the cost of a statement, far from the limit of values.
const CHUNK: usize = 200;

/// Headline figures per run that plain SQL sees.
const KPI_PER_RUN: usize = 10;

const RUN_COLUMNS: &str = "run_id, origin, plan_id, plan_index, block, block_order, testcase, \
     params, case_id, variant, testbox, iteration, warm_up, build_id, boot_id, session_id, \
     kernel_release, start_unix_ns, window_ns, clock, instrument, outcome, outcome_json";

/// The columns behind [`RUN_COLUMNS`] that hold a run's numbers.
const NUMBER_COLUMNS: &str = "metric_set_id, scalars";

/// A statement under construction: text and values grow together.
#[derive(Default)]
struct Statement {
    text: String,
    values: AnyArguments,
    has_condition: bool,
}

impl Statement {
    fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn bind<'q, T: Encode<'q, Any> + Type<Any>>(&mut self, value: T) -> Result<()> {
        self.values.add(value).map_err(sqlx::Error::Encode)?;
        self.text.push_str(&format!("${}", self.values.len()));
        Ok(())
    }

    /// `column IN (...)`; the condition is left out for an empty list.
    fn any_of(&mut self, column: &str, names: &[String]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        self.push(if self.has_condition {
            " AND "
        } else {
            " WHERE "
        });
        self.has_condition = true;
        self.push(column);
        for (i, name) in names.iter().enumerate() {
            self.push(if i == 0 { " IN (" } else { ", " });
            self.bind(name.clone())?;
        }
        self.push(")");
        Ok(())
    }

    /// The conditions, the order and the limit of a selection of runs.
    fn select_by(&mut self, filter: &RunFilter) -> Result<()> {
        let texts = |ids: &[VariantName]| ids.iter().map(|v| v.0.clone()).collect::<Vec<_>>();
        self.any_of("plan_id", &strings(&filter.plans))?;
        self.any_of("run_id", &strings(&filter.runs))?;
        self.any_of("testbox", &filter.testboxes)?;
        self.any_of("variant", &texts(&filter.variants))?;
        self.any_of("testcase", filter.testcase.as_slice())?;
        self.push(if filter.newest_first {
            " ORDER BY start_unix_ns DESC, run_id DESC"
        } else {
            " ORDER BY plan_id, plan_index, run_id"
        });
        if let Some(limit) = filter.limit {
            self.push(" LIMIT ");
            self.bind(i64::from(limit))?;
        }
        Ok(())
    }

    async fn execute(self, connection: &mut AnyConnection) -> Result<u64> {
        let query = sqlx::query_with(AssertSqlSafe(self.text), self.values);
        Ok(query.execute(connection).await?.rows_affected())
    }

    async fn fetch(self, connection: &mut AnyConnection) -> Result<Vec<AnyRow>> {
        let query = sqlx::query_with(AssertSqlSafe(self.text), self.values);
        query.fetch_all(connection).await
    }

    /// Hands over row by row: a row of the driver is several times larger than what is made of it.
    async fn for_each(
        self,
        connection: &mut AnyConnection,
        mut take: impl FnMut(&AnyRow) -> Result<()>,
    ) -> Result<()> {
        let query = sqlx::query_with(AssertSqlSafe(self.text), self.values);
        let mut rows = query.fetch(connection);
        while let Some(row) = poll_fn(|context| rows.as_mut().poll_next(context)).await {
            take(&row?)?;
        }
        Ok(())
    }
}

/// `table (columns) VALUES (...), (...)`, where what is there already stays; gives the number
/// of new rows.
async fn insert<T>(
    connection: &mut AnyConnection,
    target: &str,
    rows: &[T],
    bind: impl Fn(&mut Values<'_>, &T) -> Result<()>,
) -> Result<u64> {
    let mut added = 0;
    for chunk in rows.chunks(CHUNK) {
        let mut statement = Statement::new(&format!("INSERT INTO {target} VALUES "));
        for (i, row) in chunk.iter().enumerate() {
            statement.push(if i == 0 { "(" } else { ", (" });
            let mut values = Values(&mut statement, true);
            bind(&mut values, row)?;
            statement.push(")");
        }
        statement.push(" ON CONFLICT DO NOTHING");
        added += statement.execute(connection).await?;
    }
    Ok(added)
}

/// The values of one row, separated by commas.
struct Values<'s>(&'s mut Statement, bool);

impl Values<'_> {
    fn add<'q, T: Encode<'q, Any> + Type<Any>>(&mut self, value: T) -> Result<&mut Self> {
        if !std::mem::take(&mut self.1) {
            self.0.push(", ");
        }
        self.0.bind(value)?;
        Ok(self)
    }
}

/// Which of these runs are there.
pub(crate) async fn runs_present(
    connection: &mut AnyConnection,
    runs: &[RunId],
) -> Result<HashSet<RunId>> {
    let mut present = HashSet::new();
    for chunk in runs.chunks(MAX_VALUES) {
        let mut statement = Statement::new("SELECT run_id FROM run");
        statement.any_of("run_id", &strings(chunk))?;
        for row in statement.fetch(connection).await? {
            present.insert(id(RunId::parse, &row.try_get::<String, _>(0)?)?);
        }
    }
    Ok(present)
}

/// Stores runs with their metric sets' ids and packed numbers; gives the number of new ones.
pub(crate) async fn runs_insert(
    connection: &mut AnyConnection,
    runs: &[(&RunRow, String, Vec<u8>)],
) -> Result<usize> {
    let target = format!("run ({RUN_COLUMNS}, {NUMBER_COLUMNS})");
    let added = insert(connection, &target, runs, |values, (row, set, scalars)| {
        let text = |id: &Option<BootId>| id.as_ref().map(|id| id.0.clone());
        values
            .add(row.run_id.to_string())?
            .add(word(&row.origin).map_err(encode)?)?
            .add(row.plan.to_string())?
            .add(i64::from(row.index))?
            .add(i64::from(row.block))?
            .add(i64::from(row.order))?
            .add(row.case.testcase.clone())?
            .add(row.case.params.clone())?
            .add(row.case.id.0.clone())?
            .add(row.variant.0.clone())?
            .add(row.testbox.clone())?
            .add(i64::from(row.iteration))?
            .add(i64::from(row.warm_up))?
            .add(row.build_id.clone())?
            .add(text(&row.boot_id))?
            .add(row.session.map(|id| id.to_string()))?
            .add(row.kernel_release.clone())?
            .add(row.start_unix_ns)?
            // The same 64 bits: no window lasts the 292 years from which on they read negative.
            .add(row.window_ns.cast_signed())?
            .add(word(&row.clock).map_err(encode)?)?
            .add(row.instrument.clone())?
            .add(row.outcome.word())?
            .add(serde_json::to_string(&row.outcome).map_err(encode)?)?
            .add(set.clone())?
            .add(scalars.clone())?;
        Ok(())
    });
    Ok(usize::try_from(added.await?).unwrap_or(usize::MAX))
}

/// Stores the rich readings of runs that are stored.
pub(crate) async fn readings_insert(
    connection: &mut AnyConnection,
    rows: &[&RunRow],
) -> Result<u64> {
    let readings: Vec<(RunId, i64, &Reading)> = rows
        .iter()
        .flat_map(|row| (0..).zip(&row.rich).map(|(i, r)| (row.run_id, i, r)))
        .collect();
    let target = "run_reading (run_id, position, metric, reading)";
    let bind = |values: &mut Values<'_>, (run, position, reading): &(RunId, i64, &Reading)| {
        values
            .add(run.to_string())?
            .add(*position)?
            .add(reading.metric.as_str())?
            .add(serde_json::to_vec(reading).map_err(encode)?)?;
        Ok(())
    };
    insert(connection, target, &readings, bind).await
}

/// Stores the headline figures of runs that are stored.
pub(crate) async fn kpis_insert(connection: &mut AnyConnection, rows: &[&RunRow]) -> Result<u64> {
    let headline = |row: &RunRow| {
        let scalars = row.scalars.iter().filter(|s| s.role == Role::Headline);
        scalars.take(KPI_PER_RUN).cloned().collect::<Vec<_>>()
    };
    let kpis: Vec<_> = rows
        .iter()
        .flat_map(|row| headline(row).into_iter().map(|s| (row.run_id, s)))
        .collect();
    let target = "kpi_point (run_id, metric, unit, value)";
    insert(connection, target, &kpis, |values, (run, scalar)| {
        values
            .add(run.to_string())?
            .add(scalar.metric.as_str())?
            .add(scalar.unit.as_str())?
            .add(scalar.value)?;
        Ok(())
    })
    .await
}

/// Stores metric sets.
pub(crate) async fn metric_sets_insert(
    connection: &mut AnyConnection,
    sets: &[&MetricSet],
) -> Result<u64> {
    let target = "metric_set (metric_set_id, definition)";
    insert(connection, target, sets, |values, set| {
        values.add(set.id.clone())?.add(set.definition.clone())?;
        Ok(())
    })
    .await
}

/// Reads the metric sets of the runs that the filter selects, by their ids.
pub(crate) async fn metric_sets_select(
    connection: &mut AnyConnection,
    filter: &RunFilter,
) -> Result<HashMap<String, MetricSet>> {
    let mut statement = Statement::new(
        "SELECT metric_set_id, definition FROM metric_set WHERE metric_set_id IN \
         (SELECT metric_set_id FROM run",
    );
    statement.select_by(filter)?;
    statement.push(")");
    let mut sets = HashMap::new();
    let take = |row: &AnyRow| {
        let set = MetricSet::read(row.try_get(0)?, row.try_get(1)?).map_err(decode)?;
        sets.insert(set.id.clone(), set);
        Ok(())
    };
    statement.for_each(connection, take).await?;
    Ok(sets)
}

/// How many values the filter needs.
pub(crate) fn filter_len(filter: &RunFilter) -> usize {
    filter.plans.len() + filter.runs.len() + filter.testboxes.len() + filter.variants.len()
}

/// Selects runs, without rich readings; `sets` are the metric sets that their numbers need.
pub(crate) async fn runs_select(
    connection: &mut AnyConnection,
    filter: &RunFilter,
    sets: &HashMap<String, MetricSet>,
) -> Result<Vec<RunRow>> {
    let wanted = filter.scalars;
    let mut statement = Statement::new(&match wanted {
        Scalars::All | Scalars::Headline => {
            format!("SELECT {RUN_COLUMNS}, {NUMBER_COLUMNS} FROM run")
        }
        // Not even read: the numbers are most of the file.
        Scalars::None => format!("SELECT {RUN_COLUMNS} FROM run"),
    });
    statement.select_by(filter)?;
    let mut runs = Vec::new();
    let take = |row: &AnyRow| {
        let mut run = run_from(row)?;
        if wanted != Scalars::None {
            run.scalars = scalars_from(row, sets, wanted)?;
        }
        runs.push(run);
        Ok(())
    };
    statement.for_each(connection, take).await?;
    Ok(runs)
}

/// Reads the wanted numbers from the [`NUMBER_COLUMNS`] of a row.
fn scalars_from(
    row: &AnyRow,
    sets: &HashMap<String, MetricSet>,
    wanted: Scalars,
) -> Result<Vec<Scalar>> {
    let set = sets.get(&row.try_get::<String, _>("metric_set_id")?);
    let blob: Vec<u8> = row.try_get("scalars")?;
    set.and_then(|set| set.unpack(&blob, wanted))
        .ok_or_else(|| sqlx::Error::Decode("the numbers of a run do not fit their names".into()))
}

/// Reads the [`RUN_COLUMNS`] of a row.
fn run_from(row: &AnyRow) -> Result<RunRow> {
    let text = |i: usize| row.try_get::<String, _>(i);
    let maybe = |i: usize| row.try_get::<Option<String>, _>(i);
    let small = |i: usize| u32::try_from(row.try_get::<i64, _>(i)?).map_err(decode);
    Ok(RunRow {
        run_id: id(RunId::parse, &text(0)?)?,
        origin: from_word(text(1)?).map_err(decode)?,
        plan: id(PlanId::parse, &text(2)?)?,
        index: small(3)?,
        block: small(4)?,
        order: small(5)?,
        case: CaseRef {
            testcase: text(6)?,
            params: text(7)?,
            id: CaseId(text(8)?),
        },
        variant: VariantName(text(9)?),
        testbox: text(10)?,
        iteration: small(11)?,
        warm_up: row.try_get::<i64, _>(12)? != 0,
        build_id: maybe(13)?,
        boot_id: maybe(14)?.map(BootId),
        session: maybe(15)?.map(|t| id(SessionId::parse, &t)).transpose()?,
        kernel_release: text(16)?,
        start_unix_ns: row.try_get(17)?,
        window_ns: row.try_get::<i64, _>(18)?.cast_unsigned(),
        clock: from_word(text(19)?).map_err(decode)?,
        instrument: text(20)?,
        // Column 21 is the outcome's word, for plain SQL.
        outcome: serde_json::from_str(&text(22)?).map_err(decode)?,
        scalars: Vec::new(),
        rich: Vec::new(),
    })
}

/// The rich readings of runs, each run's in order.
pub(crate) async fn readings_select(
    connection: &mut AnyConnection,
    runs: &[RunId],
) -> Result<HashMap<RunId, Vec<Reading>>> {
    let mut readings: HashMap<RunId, Vec<Reading>> = HashMap::new();
    for chunk in runs.chunks(MAX_VALUES) {
        let mut statement = Statement::new("SELECT run_id, reading FROM run_reading");
        statement.any_of("run_id", &strings(chunk))?;
        statement.push(" ORDER BY run_id, position");
        let take = |row: &AnyRow| {
            let run = id(RunId::parse, &row.try_get::<String, _>(0)?)?;
            let blob: Vec<u8> = row.try_get(1)?;
            let reading = serde_json::from_slice(&blob).map_err(decode)?;
            readings.entry(run).or_default().push(reading);
            Ok(())
        };
        statement.for_each(connection, take).await?;
    }
    Ok(readings)
}

/// At most two runs whose id, hyphens left out, ends in these hexadecimal digits.
pub(crate) async fn runs_by_suffix(
    connection: &mut AnyConnection,
    digits: &str,
) -> Result<Vec<RunId>> {
    let mut statement =
        Statement::new("SELECT run_id FROM run WHERE replace(run_id, '-', '') LIKE ");
    statement.bind(format!("%{digits}"))?;
    statement.push(" ORDER BY run_id DESC LIMIT 2");
    let rows = statement.fetch(connection).await?;
    let run = |row: &AnyRow| id(RunId::parse, &row.try_get::<String, _>(0)?);
    rows.iter().map(run).collect()
}

/// The newest plan that has a run.
pub(crate) async fn plan_newest(connection: &mut AnyConnection) -> Result<Option<PlanId>> {
    let statement = Statement::new("SELECT plan_id FROM run ORDER BY plan_id DESC LIMIT 1");
    let rows = statement.fetch(connection).await?;
    let plan = |row: &AnyRow| id(PlanId::parse, &row.try_get::<String, _>(0)?);
    rows.first().map(plan).transpose()
}

/// Every plan that has a run, newest first.
pub(crate) async fn plans_list(connection: &mut AnyConnection) -> Result<Vec<PlanSummary>> {
    let statement = Statement::new(
        "SELECT plan_id, COUNT(*), COUNT(CASE WHEN outcome = 'done' THEN 1 END), \
         COUNT(CASE WHEN outcome IN ('failed', 'timed-out', 'out-of-memory') THEN 1 END), \
         COUNT(DISTINCT case_id), COUNT(DISTINCT variant), COUNT(DISTINCT testbox), \
         MIN(testcase), MIN(start_unix_ns), MAX(start_unix_ns) \
         FROM run GROUP BY plan_id ORDER BY plan_id DESC",
    );
    let rows = statement.fetch(connection).await?;
    let summary = |row: &AnyRow| {
        let number = |i: usize| u64::try_from(row.try_get::<i64, _>(i)?).map_err(decode);
        Ok(PlanSummary {
            plan: id(PlanId::parse, &row.try_get::<String, _>(0)?)?,
            runs: number(1)?,
            done: number(2)?,
            failed: number(3)?,
            cases: number(4)?,
            variants: number(5)?,
            testboxes: number(6)?,
            testcase: row.try_get(7)?,
            start_unix_ns: row.try_get(8)?,
            last_start_unix_ns: row.try_get(9)?,
        })
    };
    rows.iter().map(summary).collect()
}

/// The ids of the runs of a plan.
pub(crate) async fn run_ids(
    connection: &mut AnyConnection,
    plan: PlanId,
) -> Result<HashSet<RunId>> {
    let mut statement = Statement::new("SELECT run_id FROM run");
    statement.any_of("plan_id", &strings(&[plan]))?;
    let rows = statement.fetch(connection).await?;
    let run = |row: &AnyRow| id(RunId::parse, &row.try_get::<String, _>(0)?);
    rows.iter().map(run).collect()
}

/// How many runs there are.
pub(crate) async fn runs_count(connection: &mut AnyConnection) -> Result<u64> {
    let rows = Statement::new("SELECT COUNT(*) FROM run")
        .fetch(connection)
        .await?;
    let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    u64::try_from(row.try_get::<i64, _>(0)?).map_err(decode)
}

/// Whether every run directory was taken in.
pub(crate) async fn is_filled(connection: &mut AnyConnection) -> Result<bool> {
    let statement = Statement::new("SELECT mark FROM filled");
    Ok(!statement.fetch(connection).await?.is_empty())
}

/// Notes that every run directory was taken in.
pub(crate) async fn filled_insert(connection: &mut AnyConnection) -> Result<()> {
    let add = |values: &mut Values<'_>, mark: &i64| values.add(*mark).map(drop);
    insert(connection, "filled (mark)", &[1], add).await?;
    Ok(())
}

/// Removes these runs.
pub(crate) async fn runs_delete(connection: &mut AnyConnection, runs: &[RunId]) -> Result<()> {
    for chunk in runs.chunks(CHUNK) {
        let ids: Vec<String> = chunk.iter().map(ToString::to_string).collect();
        for table in ["kpi_point", "run_reading", "run"] {
            let mut statement = Statement::new(&format!("DELETE FROM {table}"));
            statement.any_of("run_id", &ids)?;
            statement.execute(connection).await?;
        }
    }
    Ok(())
}

/// The version of the schema.
pub(crate) async fn schema_version(connection: &mut AnyConnection) -> Result<i64> {
    let statement =
        Statement::new("SELECT version FROM schema_version ORDER BY version DESC LIMIT 1");
    let rows = statement.fetch(connection).await?;
    rows.first().map_or(Ok(0), |row| row.try_get(0))
}

/// Notes that the schema has this version.
pub(crate) async fn schema_version_insert(
    connection: &mut AnyConnection,
    version: i64,
) -> Result<u64> {
    let rows = [version];
    insert(
        connection,
        "schema_version (version)",
        &rows,
        |values, version| values.add(*version).map(drop),
    )
    .await
}

fn strings<T: ToString>(ids: &[T]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

fn id<T>(parse: fn(&str) -> Option<T>, text: &str) -> Result<T> {
    parse(text).ok_or_else(|| sqlx::Error::Decode(format!("`{text}` is no id").into()))
}

fn encode(error: serde_json::Error) -> sqlx::Error {
    sqlx::Error::Encode(error.into())
}

fn decode(error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::Decode(error.into())
}
