//! The engines that the tests run on: SQLite, and PostgreSQL where a server is named.

use kdyno_model::PlanId;
use kdyno_store::{Index, Place};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};
use std::path::PathBuf;

/// Names the address of a PostgreSQL server that tests may fill with schemas and databases.
const SERVER: &str = "KDYNO_TEST_POSTGRES";

/// A place for one index that no other test sees, and that goes away.
pub enum Site {
    Sqlite(tempfile::TempDir),
    Postgres { url: String, schema: String },
}

/// The server's address; `None`, said aloud, without one.
pub fn server() -> Option<String> {
    let url = std::env::var(SERVER).ok();
    if url.is_none() {
        eprintln!("skipped on PostgreSQL: {SERVER} is not set");
    }
    url
}

/// Does the same on every engine; a failure says on which one it was.
pub fn on_every_engine(test: impl Fn(&Site)) {
    test(&Site::sqlite());
    if let Some(url) = server() {
        test(&Site::postgres(&url));
    }
}

impl Site {
    pub fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    pub fn postgres(url: &str) -> Self {
        Self::Postgres {
            url: url.to_owned(),
            schema: format!("test_{}", PlanId::new().to_string().replace('-', "")),
        }
    }

    /// The same place, by these words.
    pub fn words(&self) -> Vec<String> {
        match self {
            Self::Sqlite(_) => vec![self.file().display().to_string()],
            Self::Postgres { url, schema } => vec![url.clone(), schema.clone()],
        }
    }

    pub fn place(&self) -> Place {
        place_of(&self.words())
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres { .. })
    }

    pub fn open(&self) -> Index {
        Index::open(&self.place()).unwrap()
    }

    /// Whether an index was begun.
    pub fn exists(&self) -> bool {
        match self {
            Self::Sqlite(_) => self.file().exists(),
            Self::Postgres { schema, .. } => {
                let schemas = "SELECT nspname::text FROM pg_namespace";
                self.sql(schemas).contains(schema)
            }
        }
    }

    /// Runs SQL behind the index's back and gives the first column.
    pub fn sql(&self, sql: &str) -> Vec<String> {
        match self {
            Self::Sqlite(_) => {
                raw_sql(&format!("sqlite://{}?mode=rwc", self.file().display()), sql)
            }
            Self::Postgres { url, schema } => {
                raw_sql(url, &format!("SET search_path TO {schema}; {sql}"))
            }
        }
    }

    /// Bytes, from hexadecimal digits, as the engine's SQL has them.
    pub fn bytes(&self, digits: &str) -> String {
        match self {
            Self::Sqlite(_) => format!("x'{digits}'"),
            Self::Postgres { .. } => format!(r"'\x{digits}'::bytea"),
        }
    }

    fn file(&self) -> PathBuf {
        let Self::Sqlite(dir) = self else {
            panic!("a server has no file");
        };
        dir.path().join("index.db")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("this was on {}", self.place());
        } else if let Self::Postgres { url, schema } = self {
            raw_sql(url, &format!("DROP SCHEMA IF EXISTS {schema} CASCADE"));
        }
    }
}

/// The place that [`Site::words`] name.
pub fn place_of(words: &[String]) -> Place {
    match words {
        [path] => Place::File(path.into()),
        [url, schema] => Place::postgres(url, schema).unwrap(),
        _ => panic!("{words:?}"),
    }
}

/// Runs SQL and gives the first column.
pub fn raw_sql(url: &str, sql: &str) -> Vec<String> {
    sqlx::any::install_default_drivers();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut connection = AnyConnection::connect(url).await.unwrap();
        let rows = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    })
}
