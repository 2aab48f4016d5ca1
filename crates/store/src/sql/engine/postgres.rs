//! PostgreSQL: an index is a schema, found by the connection's `search_path`.

use super::{AnyConnection, Fault, Result, Statement};
use sqlx::{Connection, Row};
use std::io;
use std::time::Duration;

pub(super) const MIGRATIONS: [&str; 2] = [
    include_str!("../../../migrations/postgres/0001_runs.sql"),
    include_str!("../../../migrations/postgres/0002_run_sets.sql"),
];

/// A server that has not answered by then is away.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Far more than any question takes: without an end a broken network would hold up a run for ever.
const QUESTION_LIMIT: Duration = Duration::from_secs(120);

/// Its statements see what was committed before each of them, so also what a writer left that
/// [`lock`] waited for.
pub(super) const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

pub(super) const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

pub(super) async fn connect(url: &str) -> Result<AnyConnection> {
    within(CONNECT_LIMIT, AnyConnection::connect(url)).await
}

pub(super) async fn within_limit<T>(question: impl Future<Output = Result<T>>) -> Result<T> {
    within(QUESTION_LIMIT, question).await
}

async fn within<T>(limit: Duration, question: impl Future<Output = Result<T>>) -> Result<T> {
    let answer = tokio::time::timeout(limit, question).await;
    answer.unwrap_or_else(|_| {
        let reason = format!("no answer within {} s", limit.as_secs());
        Err(io::Error::new(io::ErrorKind::TimedOut, reason).into())
    })
}

/// Settings of each connection. The schema need not exist yet; the server's own defaults for
/// isolation would let an insert fail where another process was first.
pub(super) fn settings(schema: &str) -> String {
    format!(
        "SET application_name = 'kdyno'; SET search_path TO {schema}; SET lock_timeout = '10s'; \
         SET default_transaction_isolation = 'read committed'"
    )
}

/// Lets one writer at a time into a schema, which may not exist yet, until its transaction ends.
/// Writers that insert the same metric sets in different orders would block each other otherwise.
pub(super) async fn lock(connection: &mut AnyConnection, schema: &str) -> Result<()> {
    let mut statement = Statement::new("SELECT 1 FROM pg_advisory_xact_lock(hashtextextended(");
    statement.bind(schema)?;
    statement.push(", 0))");
    statement.fetch(connection).await?;
    Ok(())
}

pub(super) fn objects_count(schema: &str, name: &str) -> Result<Statement> {
    let mut statement = Statement::new("SELECT COUNT(*), COUNT(CASE WHEN relname = ");
    statement.bind(name)?;
    statement.push(
        " AND relkind = 'r' THEN 1 END) FROM pg_class \
         JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = ",
    );
    statement.bind(schema)?;
    Ok(statement)
}

/// Whether there is this schema. `IF NOT EXISTS` will not do: it wants the right to create one.
async fn schema_exists(connection: &mut AnyConnection, schema: &str) -> Result<bool> {
    let mut statement = Statement::new("SELECT 1 FROM pg_namespace WHERE nspname = ");
    statement.bind(schema)?;
    Ok(!statement.fetch(connection).await?.is_empty())
}

pub(super) async fn schema_create(connection: &mut AnyConnection, schema: &str) -> Result<()> {
    if !schema_exists(connection, schema).await? {
        let statement = Statement::new(&format!("CREATE SCHEMA {schema}"));
        statement.execute(connection).await?;
    }
    Ok(())
}

pub(super) async fn schema_drop(connection: &mut AnyConnection, schema: &str) -> Result<()> {
    if schema_exists(connection, schema).await? {
        let statement = Statement::new(&format!("DROP SCHEMA {schema} CASCADE"));
        statement.execute(connection).await?;
    }
    Ok(())
}

pub(super) async fn schema_set_aside(
    connection: &mut AnyConnection,
    schema: &str,
) -> Result<String> {
    let mut number = 1;
    let mut aside = format!("{schema}_corrupt_{number}");
    while schema_exists(connection, &aside).await? {
        number += 1;
        aside = format!("{schema}_corrupt_{number}");
    }
    let statement = Statement::new(&format!("ALTER SCHEMA {schema} RENAME TO {aside}"));
    statement.execute(connection).await?;
    Ok(aside)
}

/// The number that the server gave a table of the index when it was made; 0 without one.
pub(super) async fn generation(connection: &mut AnyConnection) -> Result<i64> {
    let statement =
        Statement::new("SELECT COALESCE(to_regclass('schema_version')::oid::bigint, 0)");
    let rows = statement.fetch(connection).await?;
    rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get(0)
}

/// By SQLSTATE, <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
pub(super) fn fault(state: &str) -> Fault {
    match state {
        // A missing schema, table or column; a damaged file or index of the server.
        "3F000" | "42P01" | "42703" | "XX001" | "XX002" => Fault::Corrupt,
        // A lock that took too long, a deadlock, two transactions in each other's way.
        "55P03" | "40P01" | "40001" => Fault::Busy,
        "53100" => Fault::Full,
        // The server ended the connection, or goes down.
        "57P01" | "57P02" | "57P05" => Fault::Lost,
        // No right, or read only.
        "42501" | "25006" => Fault::Access,
        _ => Fault::Other,
    }
}

/// What a failure means that is not the server's word.
pub(super) fn fault_of_connection(error: &sqlx::Error) -> Fault {
    match error {
        // Another attempt would wait as long again.
        sqlx::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => Fault::Access,
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => Fault::Lost,
        _ => Fault::Other,
    }
}
