//! What differs between engines. A function here asks the place which engine it is.

mod postgres;
mod sqlite;

pub(crate) use sqlite::{enable_wal, is_sound, page_bytes};

use super::{AnyConnection, Result, Statement};
use crate::place::{Place, Server};
use sqlx::{Any, AssertSqlSafe, Connection, Row, Transaction};

/// What a failure means for the index, and so what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// What is there is damaged, or is no index.
    Corrupt,
    /// Somebody else is writing, for too long.
    Busy,
    /// It cannot be reached or written.
    Access,
    /// The connection ended; a new one may do.
    Lost,
    /// The disk is full.
    Full,
    /// Anything else.
    Other,
}

/// The steps from an empty database to the newest schema.
pub(crate) fn migrations(place: &Place) -> &'static [&'static str] {
    match place {
        Place::File(_) | Place::Memory => &sqlite::MIGRATIONS,
        Place::Postgres(_) => &postgres::MIGRATIONS,
    }
}

/// Connects to what `url` names and sets what each connection needs; nothing is written.
pub(crate) async fn connect(place: &Place, url: &str) -> Result<AnyConnection> {
    let mut connection = match place {
        Place::File(_) | Place::Memory => AnyConnection::connect(url).await?,
        Place::Postgres(_) => postgres::connect(url).await?,
    };
    let settings = match place {
        Place::File(_) | Place::Memory => sqlite::CONNECTION.to_owned(),
        Place::Postgres(server) => postgres::settings(server.schema()),
    };
    let settings = sqlx::raw_sql(AssertSqlSafe(settings));
    settings.execute(&mut connection).await?;
    Ok(connection)
}

/// Waits for the end of a question as long as it makes sense to.
pub(crate) async fn within_limit<T>(
    place: &Place,
    question: impl Future<Output = Result<T>>,
) -> Result<T> {
    match place {
        // It waits for locks only, and for these its connection has a limit.
        Place::File(_) | Place::Memory => question.await,
        Place::Postgres(_) => postgres::within_limit(question).await,
    }
}

/// Begins a transaction that waits for other writers now and not at its first write, and that
/// sees what these have written.
pub(crate) async fn begin_write<'c>(
    place: &Place,
    connection: &'c mut AnyConnection,
) -> Result<Transaction<'c, Any>> {
    match place {
        Place::File(_) | Place::Memory => connection.begin_with(sqlite::BEGIN_WRITE).await,
        Place::Postgres(server) => {
            let mut transaction = connection.begin_with(postgres::BEGIN_WRITE).await?;
            postgres::lock(&mut transaction, server.schema()).await?;
            Ok(transaction)
        }
    }
}

/// Begins a transaction whose questions all see one state, and which hinders no writer.
pub(crate) async fn begin_read<'c>(
    place: &Place,
    connection: &'c mut AnyConnection,
) -> Result<Transaction<'c, Any>> {
    let begin = match place {
        Place::File(_) | Place::Memory => sqlite::BEGIN_READ,
        Place::Postgres(_) => postgres::BEGIN_READ,
    };
    connection.begin_with(begin).await
}

/// How many tables and indexes there are, whoever made them, and whether one of them is the
/// table `name`; one question, since another process may be making them.
pub(crate) async fn objects_count(
    place: &Place,
    connection: &mut AnyConnection,
    name: &str,
) -> Result<(i64, bool)> {
    let statement = match place {
        Place::File(_) | Place::Memory => sqlite::objects_count(name)?,
        Place::Postgres(server) => postgres::objects_count(server.schema(), name)?,
    };
    let rows = statement.fetch(connection).await?;
    let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    Ok((row.try_get(0)?, row.try_get::<i64, _>(1)? > 0))
}

/// Makes the schema unless it is there; a file is its own. Under the lock of [`begin_write`].
pub(crate) async fn schema_create(place: &Place, connection: &mut AnyConnection) -> Result<()> {
    match place {
        Place::File(_) | Place::Memory => Ok(()),
        Place::Postgres(server) => postgres::schema_create(connection, server.schema()).await,
    }
}

/// Removes everything that the index consists of, so that its generation changes.
pub(crate) async fn drop_all(place: &Place, connection: &mut AnyConnection) -> Result<()> {
    match place {
        Place::File(_) | Place::Memory => sqlite::drop_all(connection).await,
        Place::Postgres(server) => postgres::schema_drop(connection, server.schema()).await,
    }
}

/// Gives a server's schema a free name and returns it.
pub(crate) async fn schema_set_aside(
    connection: &mut AnyConnection,
    server: &Server,
) -> Result<String> {
    postgres::schema_set_aside(connection, server.schema()).await
}

/// Tells an index from the one that another process has made in its place.
pub(crate) async fn generation(place: &Place, connection: &mut AnyConnection) -> Result<i64> {
    match place {
        Place::File(_) | Place::Memory => sqlite::generation(connection).await,
        Place::Postgres(_) => postgres::generation(connection).await,
    }
}

/// What a failure means.
pub(crate) fn fault(place: &Place, error: &sqlx::Error) -> Fault {
    match (error, place) {
        // The queries are fixed, so values and columns that do not fit are the index's fault.
        (
            sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::ColumnIndexOutOfBounds { .. }
            | sqlx::Error::Decode(_),
            _,
        ) => Fault::Corrupt,
        (sqlx::Error::Database(said), Place::File(_) | Place::Memory) => {
            said.code().map_or(Fault::Other, |code| {
                // A number, whose low byte is the primary one.
                code.parse().map_or(Fault::Other, sqlite::fault)
            })
        }
        (sqlx::Error::Database(said), Place::Postgres(_)) => said
            .code()
            .map_or(Fault::Other, |code| postgres::fault(&code)),
        (_, Place::File(_) | Place::Memory) => Fault::Other,
        (other, Place::Postgres(_)) => postgres::fault_of_connection(other),
    }
}

/// A failure in words.
pub(crate) fn reason(place: &Place, error: &sqlx::Error) -> String {
    match (error, place) {
        // Otherwise the driver adds a line of the server's source text.
        (sqlx::Error::Database(said), Place::Postgres(_)) => said.message().to_owned(),
        _ => error.to_string(),
    }
}
