//! Where an index is: a file, or a schema of a PostgreSQL server.

use crate::StoreError;
use sqlx::any::AnyConnectOptions;
use std::fmt;
use std::path::PathBuf;

/// The server cuts names at 63 bytes; `_corrupt_` and a number may come behind this one.
const MOST_SCHEMA_BYTES: usize = 48;

/// What of an address's query is shown; all else may be a secret.
const SHOWN_PARAMETERS: [&str; 5] = ["host=", "hostaddr=", "port=", "dbname=", "user="];

/// Where an index is. Shown, in errors as well, without a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An SQLite file; it and its directories are created as needed.
    File(PathBuf),
    /// The memory of this process, where no file can be written.
    Memory,
    /// A schema of a PostgreSQL database; the schema is created as needed.
    Postgres(Server),
}

/// A schema of a PostgreSQL database, and how to get there.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    url: String,
    shown: String,
    schema: String,
}

impl Place {
    /// The schema `schema` behind an address: `postgres://user@host/database`, the same with
    /// `postgresql`, or `postgres:///database?host=/directory/of/the/socket`. What it leaves out
    /// comes from `PGHOST`, `PGUSER`, `PGPASSWORD`, `~/.pgpass` and their like.
    ///
    /// # Errors
    /// [`StoreError::Address`] when `url` is none of these, or when the schema's name is not made
    /// of at most 48 small letters, digits and underscores.
    pub fn postgres(url: &str, schema: &str) -> Result<Self, StoreError> {
        let options: AnyConnectOptions = url.parse().map_err(|e: sqlx::Error| match e {
            // The reason alone: it does not quote the address.
            sqlx::Error::Configuration(reason) => address(reason.to_string()),
            other => address(other.to_string()),
        })?;
        let parsed = options.database_url;
        if !matches!(parsed.scheme(), "postgres" | "postgresql") {
            return Err(address("it does not begin with `postgres://`"));
        }
        // Where a password is not escaped, the rest of it is taken for what is shown.
        if parsed.fragment().is_some() || parsed.path().contains('@') {
            return Err(address(
                "`/`, `#` and `@` in a password are written %2F, %23 and %40",
            ));
        }
        let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
        if schema.is_empty() || schema.len() > MOST_SCHEMA_BYTES || !schema.bytes().all(plain) {
            return Err(address(
                "the schema's name has letters that it must not have",
            ));
        }
        let mut shown = format!("{}://", parsed.scheme());
        if !parsed.username().is_empty() {
            shown += &format!("{}@", parsed.username());
        }
        shown += parsed.host_str().unwrap_or_default();
        if let Some(port) = parsed.port() {
            shown += &format!(":{port}");
        }
        shown += parsed.path();
        let parameters = parsed.query().unwrap_or_default().split('&');
        let may_be_shown = |text: &&str| SHOWN_PARAMETERS.iter().any(|p| text.starts_with(p));
        let parameters: Vec<&str> = parameters.filter(may_be_shown).collect();
        if !parameters.is_empty() {
            shown += &format!("?{}", parameters.join("&"));
        }
        Ok(Self::Postgres(Server {
            url: url.to_owned(),
            shown,
            schema: schema.to_owned(),
        }))
    }
}

impl Server {
    /// The address as it was given, with all its secrets.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The schema: small letters, digits and underscores, so that it needs no escaping.
    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Memory => f.write_str("memory"),
            Self::Postgres(server) => {
                write!(f, "{} (schema {})", server.shown, server.schema)
            }
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({}, {})", self.shown, self.schema)
    }
}

fn address(reason: impl Into<String>) -> StoreError {
    StoreError::Address {
        reason: reason.into(),
    }
}
