//! Opening the index: connect, recognise, migrate.

use crate::StoreError;
use crate::sql::{self, engine};
use sqlx::{AnyConnection, Connection};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Opens or creates the index.
///
/// A foreign file is recognised before anything is written to it.
pub(crate) async fn open(path: &Path) -> Result<AnyConnection, StoreError> {
    sqlx::any::install_default_drivers();
    let failed = |e: sqlx::Error| StoreError::from_database(path, &e);
    let url = url(path)?;
    let mut connection = AnyConnection::connect(&url).await.map_err(failed)?;
    let connection_settings = sqlx::raw_sql(engine::CONNECTION);
    connection_settings
        .execute(&mut connection)
        .await
        .map_err(failed)?;
    let version = version(&mut connection, path).await?;
    check_length(&mut connection, path).await?;
    if version < known_version() {
        migrate(&mut connection, path).await?;
    }
    match engine::enable_wal(&mut connection).await.map_err(failed) {
        // Somebody else is at work: the index is right without it, and the next one to open it
        // tries again.
        Ok(()) | Err(StoreError::Busy { .. }) => Ok(connection),
        Err(error) => Err(error),
    }
}

/// Refuses a file that ends within a page: the database would read the rest as zeros.
async fn check_length(connection: &mut AnyConnection, path: &Path) -> Result<(), StoreError> {
    let page = engine::page_bytes(connection).await;
    let page = page.map_err(|e| StoreError::from_database(path, &e))?;
    let length = fs::metadata(path).map_err(|e| StoreError::Access {
        path: path.to_owned(),
        reason: e.to_string(),
    })?;
    match length.len().checked_rem(page) {
        Some(0) => Ok(()),
        _ => Err(StoreError::Corrupt {
            path: path.to_owned(),
            reason: "it is cut".to_owned(),
        }),
    }
}

fn known_version() -> i64 {
    i64::try_from(engine::MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// The version of what is there; 0 for an empty database.
async fn version(connection: &mut AnyConnection, path: &Path) -> Result<i64, StoreError> {
    let failed = |e: sqlx::Error| StoreError::from_database(path, &e);
    let counted = engine::objects_count(connection, "schema_version").await;
    match counted.map_err(failed)? {
        (_, true) => {}
        (0, false) => return Ok(0),
        (_, false) => {
            return Err(StoreError::Corrupt {
                path: path.to_owned(),
                reason: "it is the database of something else".to_owned(),
            });
        }
    }
    let found = sql::schema_version(connection).await.map_err(failed)?;
    let known = known_version();
    if found > known {
        let path = path.to_owned();
        return Err(StoreError::Newer { path, found, known });
    }
    Ok(found)
}

/// Applies what is missing, in one transaction; several processes may try at once.
async fn migrate(connection: &mut AnyConnection, path: &Path) -> Result<(), StoreError> {
    let failed = |e: sqlx::Error| StoreError::from_database(path, &e);
    let begun = connection.begin_with(engine::BEGIN_WRITE).await;
    let mut transaction = begun.map_err(failed)?;
    // Asked again under the lock: another process may have been first.
    let present = version(&mut transaction, path).await?;
    for (number, step) in (1..).zip(engine::MIGRATIONS) {
        if number > present {
            let step = sqlx::raw_sql(step).execute(&mut *transaction);
            step.await.map_err(failed)?;
            let noted = sql::schema_version_insert(&mut transaction, number);
            noted.await.map_err(failed)?;
        }
    }
    transaction.commit().await.map_err(failed)
}

/// The connection's address: the real path with everything unusual escaped.
fn url(path: &Path) -> Result<String, StoreError> {
    let access = |reason: String| StoreError::Access {
        path: path.to_owned(),
        reason,
    };
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    fs::create_dir_all(&parent).map_err(|e| access(e.to_string()))?;
    // An address knows no `..`, and a path's `..` depends on links.
    let parent = parent.canonicalize().map_err(|e| access(e.to_string()))?;
    let file = path
        .file_name()
        .ok_or_else(|| access("it names no file".to_owned()))?;
    let full = parent.join(file);
    let text = full
        .to_str()
        .ok_or_else(|| access("its path is not UTF-8".to_owned()))?;
    let mut url = "sqlite://".to_owned();
    for byte in text.bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                url.push(char::from(byte));
            }
            // Writing to a `String` cannot fail.
            _ => drop(write!(url, "%{byte:02X}")),
        }
    }
    Ok(url + "?mode=rwc")
}
