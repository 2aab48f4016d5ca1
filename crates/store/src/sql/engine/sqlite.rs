//! SQLite.

use super::{AnyConnection, Fault, Result, Statement};
use sqlx::Row;

pub(super) const MIGRATIONS: [&str; 2] = [
    include_str!("../../../migrations/sqlite/0001_runs.sql"),
    include_str!("../../../migrations/sqlite/0002_run_sets.sql"),
];

pub(super) const BEGIN_WRITE: &str = "BEGIN IMMEDIATE";

pub(super) const BEGIN_READ: &str = "BEGIN";

/// Settings of each connection; they do not touch the file.
pub(super) const CONNECTION: &str = "PRAGMA busy_timeout = 10000; \
     PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON";

pub(super) fn objects_count(name: &str) -> Result<Statement> {
    let mut statement = Statement::new("SELECT COUNT(*), COUNT(CASE WHEN name = ");
    statement.bind(name)?;
    statement.push(" AND type = 'table' THEN 1 END) FROM sqlite_master");
    Ok(statement)
}

/// The unit in which the file grows.
pub(crate) async fn page_bytes(connection: &mut AnyConnection) -> Result<u64> {
    let rows = Statement::new("PRAGMA page_size").fetch(connection).await?;
    let bytes: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
    u64::try_from(bytes).map_err(crate::sql::decode)
}

/// Lets readers go on beside one writer; a property of the file, set once.
pub(crate) async fn enable_wal(connection: &mut AnyConnection) -> Result<()> {
    let rows = Statement::new("PRAGMA journal_mode")
        .fetch(connection)
        .await?;
    let mode: String = rows
        .first()
        .map_or(Ok(String::new()), |row| row.try_get(0))?;
    if mode != "wal" {
        let statement = Statement::new("PRAGMA journal_mode = WAL");
        statement.fetch(connection).await?;
    }
    Ok(())
}

/// Whether the file as a whole is well-formed.
pub(crate) async fn is_sound(connection: &mut AnyConnection) -> Result<bool> {
    let rows = Statement::new("PRAGMA quick_check(1)")
        .fetch(connection)
        .await?;
    let said: String = rows
        .first()
        .map_or(Ok(String::new()), |row| row.try_get(0))?;
    Ok(said == "ok")
}

/// A number of the file that nothing else uses, raised by [`drop_all`].
pub(super) async fn generation(connection: &mut AnyConnection) -> Result<i64> {
    let rows = Statement::new("PRAGMA user_version")
        .fetch(connection)
        .await?;
    rows.first().map_or(Ok(0), |row| row.try_get(0))
}

/// Removes all tables, and their indexes with them.
pub(super) async fn drop_all(connection: &mut AnyConnection) -> Result<()> {
    // Tables that refer to others are younger than these, and go first.
    let tables = "SELECT name FROM sqlite_master WHERE type = 'table' \
         AND name NOT LIKE 'sqlite%' ORDER BY rowid DESC";
    for row in Statement::new(tables).fetch(connection).await? {
        let name: String = row.try_get(0)?;
        let quoted = name.replace('"', "\"\"");
        let statement = Statement::new(&format!("DROP TABLE \"{quoted}\""));
        statement.execute(connection).await?;
    }
    // The file keeps 32 bits of it, with a sign.
    let next = (generation(connection).await? + 1) & 0x7fff_ffff;
    let statement = Statement::new(&format!("PRAGMA user_version = {next}"));
    statement.execute(connection).await?;
    Ok(())
}

/// Primary result codes, <https://www.sqlite.org/rescode.html>: the low byte.
pub(super) fn fault(code: i32) -> Fault {
    match code & 0xff {
        1 | 11 | 26 => Fault::Corrupt,
        5 | 6 => Fault::Busy,
        3 | 8 | 14 | 23 => Fault::Access,
        13 => Fault::Full,
        _ => Fault::Other,
    }
}
