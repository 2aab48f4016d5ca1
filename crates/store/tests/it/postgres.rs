//! What only a server can do to an index: be away, refuse, hang up.

use crate::engines::{Site, raw_sql, server};
use crate::faults::use_all;
use crate::sample::{row, scalar};
use crate::writers::lose_nothing;
use kdyno_model::{PlanId, Role};
use kdyno_store::{Index, Place, StoreError};
use std::net::TcpListener;
use std::path::Path;

/// Fails to open with an error that names the place, gives advice, and keeps the password.
#[track_caller]
fn must_be_access(url: &str, says: &[&str]) {
    let place = Place::postgres(url, "kdyno_test").unwrap();
    let error = Index::open(&place).unwrap_err();
    assert!(matches!(error, StoreError::Access { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("server"));
    let text = format!("{error} {error:?} {place:?}");
    assert!(!text.contains("hunter2"), "{text}");
    for words in says {
        assert!(text.contains(words), "`{words}` is not in {text}");
    }
}

/// The server's address with more behind it.
fn with_parameters(url: &str, parameters: &str) -> String {
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}{parameters}")
}

#[test]
fn a_server_that_is_away_is_an_error_that_names_it_without_the_password() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let port = free.unwrap().port();
    must_be_access(
        &format!("postgres://me:hunter2@127.0.0.1:{port}/runs"),
        &[
            &format!("postgres://me@127.0.0.1:{port}/runs"),
            "refused",
            "kdyno_test",
        ],
    );
    must_be_access(
        "postgresql:///runs?host=/nowhere/at/all&user=me&password=hunter2",
        &[
            "postgresql:///runs?host=/nowhere/at/all&user=me",
            "No such file",
        ],
    );
}

#[test]
fn a_server_that_never_answers_is_not_waited_for() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    must_be_access(
        &format!("postgres://127.0.0.1:{port}/runs"),
        &["no answer within"],
    );
}

#[test]
fn what_is_no_address_is_an_error_that_does_not_repeat_it() {
    for url in [
        "",
        "/run/postgresql",
        "mysql://me:hunter2@host/runs",
        "postgres://me:hunter2@host:port/runs",
        "postgres://me:hunter2@/runs",
        "postgres://me:1/hunter2@host/runs",
        "postgres://me:1#hunter2@host/runs",
    ] {
        let error = Place::postgres(url, "kdyno_test").unwrap_err();
        assert!(matches!(error, StoreError::Address { .. }), "{url}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert!(error.hint().unwrap().contains("postgres://"));
    }
    for schema in ["", "a-b", "A", "x; DROP SCHEMA y", &"x".repeat(49)] {
        assert!(
            Place::postgres("postgres://host/runs", schema).is_err(),
            "{schema}"
        );
    }
}

#[test]
fn both_engines_have_the_same_tables() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let names = |engine: &str| {
        let entries = std::fs::read_dir(root.join(engine)).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names("sqlite"), names("postgres"));
    for name in names("sqlite") {
        let read = |engine: &str| std::fs::read_to_string(root.join(engine).join(&name)).unwrap();
        // Texts are compared by their bytes, whatever the server's language.
        let expected = read("sqlite")
            .replace(" TEXT", " TEXT COLLATE \"C\"")
            .replace(" BLOB", " BYTEA");
        assert_eq!(read("postgres"), expected, "{name:?}");
    }
}

#[test]
fn a_log_in_that_is_refused_is_an_error_that_keeps_the_password() {
    let Some(url) = server() else { return };
    for wrong in ["dbname=kdyno_absent", "user=kdyno_absent"] {
        let url = with_parameters(&url, &format!("{wrong}&password=hunter2"));
        must_be_access(&url, &[wrong, "does not exist"]);
    }
}

#[test]
fn a_server_that_may_not_be_written_is_an_error_with_a_hint() {
    let Some(url) = server() else { return };
    let read_only = "options=-c%20default_transaction_read_only%3Don";
    must_be_access(&with_parameters(&url, read_only), &["read-only"]);
}

#[test]
fn encryption_that_is_asked_for_is_an_error_and_not_left_out() {
    let Some(url) = server() else { return };
    must_be_access(&with_parameters(&url, "sslmode=require"), &["TLS"]);
}

#[test]
fn a_user_who_may_make_no_schema_can_be_given_one() {
    let Some(url) = server() else { return };
    let site = Site::postgres(&url);
    let Site::Postgres { schema, .. } = &site else {
        unreachable!()
    };
    // The user is named like the schema.
    raw_sql(&url, &format!("CREATE ROLE {schema} LOGIN"));
    let place = Place::postgres(&with_parameters(&url, &format!("user={schema}")), schema);
    let place = place.unwrap();
    let error = Index::open(&place).unwrap_err();
    assert!(matches!(error, StoreError::Access { .. }), "{error:?}");
    assert!(error.to_string().contains("permission denied"), "{error}");
    raw_sql(&url, &format!("CREATE SCHEMA AUTHORIZATION {schema}"));
    assert_eq!(use_all(&place).unwrap(), 0);
    raw_sql(
        &url,
        &format!("DROP OWNED BY {schema} CASCADE; DROP ROLE {schema}"),
    );
}

#[test]
fn the_tables_of_something_else_are_left_alone() {
    let Some(url) = server() else { return };
    let site = Site::postgres(&url);
    let Site::Postgres { schema, .. } = &site else {
        unreachable!()
    };
    raw_sql(&url, &format!("CREATE SCHEMA {schema}"));
    site.sql("CREATE TABLE letters (x TEXT)");
    let error = use_all(&site.place()).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("something else"), "{error}");
    let tables = "SELECT relname::text FROM pg_class WHERE relnamespace = \
         current_schema()::regnamespace";
    assert_eq!(site.sql(tables), ["letters"]);
    // An empty schema that somebody has made is as good as none.
    site.sql("DROP TABLE letters");
    assert_eq!(use_all(&site.place()).unwrap(), 0);
}

#[test]
fn schemas_of_one_database_know_nothing_of_each_other() {
    let Some(url) = server() else { return };
    let (one, other) = (Site::postgres(&url), Site::postgres(&url));
    for site in [&one, &other] {
        let mut index = site.open();
        index.ingest(&[row(PlanId::new(), 0)]).unwrap();
        assert_eq!(index.count().unwrap(), 1);
    }
    Index::replace(&one.place()).unwrap();
    assert_eq!(one.open().count().unwrap(), 0);
    assert_eq!(other.open().count().unwrap(), 1);
}

#[test]
fn every_text_is_compared_by_its_bytes() {
    let Some(url) = server() else { return };
    let site = Site::postgres(&url);
    drop(site.open());
    let collations = "SELECT DISTINCT COALESCE(collation_name, '')::text \
         FROM information_schema.columns \
         WHERE table_schema = current_schema() AND data_type = 'text'";
    assert_eq!(site.sql(collations), ["C"]);
}

#[test]
fn a_text_with_a_nul_is_an_error_that_names_run_and_field() {
    let Some(url) = server() else { return };
    let site = Site::postgres(&url);
    let mut index = site.open();
    let mut bad = row(PlanId::new(), 0);
    bad.case.params = "a\0b".into();
    let mut unit = row(PlanId::new(), 0);
    unit.scalars[0].unit.0 = "\0".into();
    for (bad, field) in [(bad, "params"), (unit, "unit")] {
        let error = index.ingest(&[row(bad.plan, 1), bad.clone()]).unwrap_err();
        assert!(matches!(error, StoreError::Nul { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(&bad.run_id.to_string()), "{text}");
        assert!(text.contains(field), "{text}");
        assert_eq!(index.count().unwrap(), 0);
    }
}

#[test]
fn a_server_with_another_isolation_loses_nothing_either() {
    let Some(url) = server() else { return };
    let serializable = "options=-c%20default_transaction_isolation%3Dserializable";
    let site = Site::postgres(&with_parameters(&url, serializable));
    lose_nothing(&site.place());
}

/// A database that no other test sees.
struct Database {
    server: String,
    name: String,
}

impl Database {
    fn new(server: String) -> Self {
        let name = format!("test_{}", PlanId::new().to_string().replace('-', ""));
        raw_sql(&server, &format!("CREATE DATABASE {name}"));
        Self { server, name }
    }

    fn place(&self) -> Place {
        let url = with_parameters(&self.server, &format!("dbname={}", self.name));
        Place::postgres(&url, "kdyno_test").unwrap()
    }

    /// Ends every connection to it and says how many there were.
    fn hang_up(&self) -> usize {
        let end = format!(
            "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE datname = '{}'",
            self.name
        );
        raw_sql(&self.server, &end).len()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        raw_sql(&self.server, &drop);
    }
}

#[test]
fn a_connection_that_was_ended_is_made_again() {
    let Some(url) = server() else { return };
    let database = Database::new(url);
    let mut index = Index::open(&database.place()).unwrap();
    let rows = [row(PlanId::new(), 0)];
    assert_eq!(database.hang_up(), 1);
    assert_eq!(index.ingest(&rows).unwrap(), 1);
    assert_eq!(database.hang_up(), 1);
    assert_eq!(index.count().unwrap(), 1);
}

#[test]
fn a_server_that_goes_away_is_an_error_and_one_that_comes_back_goes_on() {
    let Some(url) = server() else { return };
    let database = Database::new(url);
    let mut index = Index::open(&database.place()).unwrap();
    let closed = |word: &str| {
        let alter = format!("ALTER DATABASE {} ALLOW_CONNECTIONS {word}", database.name);
        raw_sql(&database.server, &alter);
    };
    closed("false");
    database.hang_up();
    for _ in 0..2 {
        let error = index.count().unwrap_err();
        assert!(matches!(error, StoreError::Access { .. }), "{error:?}");
        assert!(error.to_string().contains(&database.name), "{error}");
    }
    closed("true");
    assert_eq!(index.ingest(&[row(PlanId::new(), 0)]).unwrap(), 1);
}

#[test]
fn connections_that_end_in_the_middle_lose_nothing() {
    const RUNS: u32 = 200;
    let Some(url) = server() else { return };
    let database = Database::new(url);
    let mut index = Index::open(&database.place()).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let plan = PlanId::new();
            for i in 0..RUNS {
                let mut row = row(plan, i);
                row.scalars = vec![scalar(&format!("m.{i}"), Role::Headline, 1.0)];
                // Ended twice within one question it is an error.
                while let Err(error) = index.ingest(std::slice::from_ref(&row)) {
                    assert!(matches!(error, StoreError::Access { .. }), "{error:?}");
                }
            }
        });
        while !writer.is_finished() {
            database.hang_up();
        }
        writer.join().unwrap();
    });
    assert_eq!(index.count().unwrap(), u64::from(RUNS));
}
