//! Opening the index: connect, recognise, migrate; and making room for a new one.

use crate::place::{Place, Server};
use crate::sql::{self, engine};
use crate::{StoreError, error::access};
use sqlx::AnyConnection;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What becomes of an index that is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Old {
    Kept,
    Removed,
}

/// Opens or creates the index; gives its generation as well.
///
/// A foreign database is recognised before anything is written to it.
pub(crate) async fn open(place: &Place, old: Old) -> Result<(AnyConnection, i64), StoreError> {
    let failed = |e: sqlx::Error| StoreError::from_database(place, &e);
    if let (Place::File(path), Old::Removed) = (place, old)
        && !can_be_emptied(place, path).await?
    {
        remove_files(path).map_err(access(place))?;
    }
    let mut connection = connect(place).await?;
    let is_old =
        old == Old::Removed || version(&mut connection, place).await? < known_version(place);
    if let Place::File(path) = place {
        check_length(&mut connection, place, path).await?;
    }
    if is_old {
        migrate(&mut connection, place, old).await?;
    }
    if let Place::File(_) = place {
        match engine::enable_wal(&mut connection).await.map_err(failed) {
            // Somebody else is at work: the index is right without it, and the next one to open
            // it tries again.
            Ok(()) | Err(StoreError::Busy { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let generation = engine::generation(place, &mut connection).await;
    Ok((connection, generation.map_err(failed)?))
}

/// Whether there is an index in the file that can be emptied where it is. Removing the file is for
/// damaged ones only: a process that has it open would go on with it, and write what nobody finds.
async fn can_be_emptied(place: &Place, path: &Path) -> Result<bool, StoreError> {
    if !path.exists() {
        return Ok(false);
    }
    let looked = async {
        let mut connection = connect(place).await?;
        check_length(&mut connection, place, path).await?;
        let is_ours = version(&mut connection, place).await? > 0;
        let is_sound = engine::is_sound(&mut connection).await;
        Ok(is_ours && is_sound.map_err(|e| StoreError::from_database(place, &e))?)
    };
    match looked.await {
        Err(error @ (StoreError::Busy { .. } | StoreError::Access { .. })) => Err(error),
        Err(_) => Ok(false),
        can => can,
    }
}

/// Connects, and looks at nothing.
pub(crate) async fn connect(place: &Place) -> Result<AnyConnection, StoreError> {
    sqlx::any::install_default_drivers();
    let url = match place {
        Place::File(path) => url(place, path)?,
        Place::Memory => "sqlite::memory:".to_owned(),
        Place::Postgres(server) => server.url().to_owned(),
    };
    let connected = engine::connect(place, &url).await;
    connected.map_err(|e| match place {
        Place::File(_) | Place::Memory => StoreError::from_database(place, &e),
        Place::Postgres(_) => StoreError::Access {
            place: place.clone(),
            reason: engine::reason(place, &e),
        },
    })
}

/// Keeps what is at the place under another name, which it returns, so that a new index can be
/// made there.
pub(crate) async fn set_aside(place: &Place) -> Result<String, StoreError> {
    match place {
        Place::File(path) => set_file_aside(path).map_err(access(place)),
        // It goes with its connection.
        Place::Memory => Ok(place.to_string()),
        Place::Postgres(server) => {
            let mut connection = connect(place).await?;
            let aside = set_schema_aside(place, &mut connection, server).await;
            aside.map_err(|e| StoreError::from_database(place, &e))
        }
    }
}

async fn set_schema_aside(
    place: &Place,
    connection: &mut AnyConnection,
    server: &Server,
) -> Result<String, sqlx::Error> {
    let mut transaction = engine::begin_write(place, connection).await?;
    let aside = engine::schema_set_aside(&mut transaction, server).await?;
    transaction.commit().await?;
    Ok(format!("schema {aside}"))
}

fn set_file_aside(path: &Path) -> io::Result<String> {
    let mut number = 1;
    let mut aside = with_suffix(path, &format!(".corrupt-{number}"));
    while aside.exists() {
        number += 1;
        aside = with_suffix(path, &format!(".corrupt-{number}"));
    }
    fs::rename(path, &aside)?;
    // A leftover of the corrupt file would be applied to the new one.
    remove_files(path)?;
    Ok(aside.display().to_string())
}

/// Removes the index and the files that SQLite keeps beside it.
fn remove_files(path: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        match fs::remove_file(with_suffix(path, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Refuses a file that ends within a page: the database would read the rest as zeros.
async fn check_length(
    connection: &mut AnyConnection,
    place: &Place,
    path: &Path,
) -> Result<(), StoreError> {
    let page = engine::page_bytes(connection).await;
    let page = page.map_err(|e| StoreError::from_database(place, &e))?;
    let length = fs::metadata(path).map_err(access(place))?;
    match length.len().checked_rem(page) {
        Some(0) => Ok(()),
        _ => Err(StoreError::Corrupt {
            place: place.clone(),
            reason: "it is cut".to_owned(),
        }),
    }
}

fn known_version(place: &Place) -> i64 {
    i64::try_from(engine::migrations(place).len()).unwrap_or(i64::MAX)
}

/// The version of what is there; 0 for an empty database.
async fn version(connection: &mut AnyConnection, place: &Place) -> Result<i64, StoreError> {
    let failed = |e: sqlx::Error| StoreError::from_database(place, &e);
    let counted = engine::objects_count(place, connection, "schema_version").await;
    match counted.map_err(failed)? {
        (_, true) => {}
        (0, false) => return Ok(0),
        (_, false) => {
            return Err(StoreError::Corrupt {
                place: place.clone(),
                reason: "it is the database of something else".to_owned(),
            });
        }
    }
    let found = sql::schema_version(connection).await.map_err(failed)?;
    let known = known_version(place);
    if found > known {
        let place = place.clone();
        return Err(StoreError::Newer {
            place,
            found,
            known,
        });
    }
    Ok(found)
}

/// Applies what is missing, in one transaction; several processes may try at once. An index that
/// is to be removed goes in the same transaction: nobody ever finds none.
async fn migrate(
    connection: &mut AnyConnection,
    place: &Place,
    old: Old,
) -> Result<(), StoreError> {
    let failed = |e: sqlx::Error| StoreError::from_database(place, &e);
    let begun = engine::begin_write(place, connection).await;
    let mut transaction = begun.map_err(failed)?;
    if old == Old::Removed {
        let dropped = engine::drop_all(place, &mut transaction).await;
        dropped.map_err(failed)?;
    }
    // Asked again under the lock: another process may have been first.
    let present = version(&mut transaction, place).await?;
    if present == 0 {
        let created = engine::schema_create(place, &mut transaction).await;
        created.map_err(failed)?;
    }
    for (number, step) in (1..).zip(engine::migrations(place)) {
        if number > present {
            let step = sqlx::raw_sql(*step).execute(&mut *transaction);
            step.await.map_err(failed)?;
            let noted = sql::schema_version_insert(&mut transaction, number);
            noted.await.map_err(failed)?;
        }
    }
    transaction.commit().await.map_err(failed)
}

/// The connection's address: the real path with everything unusual escaped.
fn url(place: &Place, path: &Path) -> Result<String, StoreError> {
    let refused = |reason: &str| StoreError::Access {
        place: place.clone(),
        reason: reason.to_owned(),
    };
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    fs::create_dir_all(&parent).map_err(access(place))?;
    // An address knows no `..`, and a path's `..` depends on links.
    let parent = parent.canonicalize().map_err(access(place))?;
    let file = path
        .file_name()
        .ok_or_else(|| refused("it names no file"))?;
    let full = parent.join(file);
    let text = full
        .to_str()
        .ok_or_else(|| refused("its path is not UTF-8"))?;
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
