//! Files that are no index, places that take none.

use crate::engines::{Site, on_every_engine, raw_sql};
use crate::sample::row;
use kdyno_model::{PlanId, RunRow};
use kdyno_store::{Index, Place, RunFilter, StoreError};
use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn file_with_runs(dir: &Path) -> PathBuf {
    let path = dir.join("index.db");
    fill(&Place::File(path.clone()));
    path
}

fn fill(place: &Place) {
    let mut index = Index::open(place).unwrap();
    let plan = PlanId::new();
    let rows: Vec<RunRow> = (0..300).map(|i| row(plan, i)).collect();
    index.ingest(&rows).unwrap();
    index.close().unwrap();
}

/// A new database that is no index, in a file.
fn other_database(path: &Path) {
    let url = format!("sqlite://{}?mode=rwc", path.display());
    raw_sql(&url, "CREATE TABLE letters (x TEXT)");
}

fn use_file(path: &Path) -> Result<usize, StoreError> {
    use_all(&Place::File(path.to_owned()))
}

/// Opens it and asks everything.
pub fn use_all(place: &Place) -> Result<usize, StoreError> {
    let mut index = Index::open(place)?;
    index.plans_list()?;
    index.count()?;
    Ok(index.runs_select(&RunFilter::default())?.len())
}

#[test]
fn an_index_is_there_when_opened_again() {
    on_every_engine(|site| {
        fill(&site.place());
        assert_eq!(use_all(&site.place()).unwrap(), 300);
    });
}

#[test]
fn random_bytes_are_corrupt() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index.db");
    let bytes: Vec<u8> = (0..9000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    fs::write(&path, &bytes).unwrap();
    let error = use_file(&path).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert!(error.hint().unwrap().contains("rebuild"));
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_cut_file_is_corrupt_wherever_it_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = file_with_runs(dir.path());
    let whole = fs::read(&path).unwrap();
    let near_start = [1, 99, 100, 101, 511, 512];
    let cuts = (513..whole.len()).step_by(1999).chain(near_start);
    for cut in cuts.chain([whole.len() - 1]) {
        fs::write(&path, &whole[..cut]).unwrap();
        match use_file(&path) {
            Err(StoreError::Corrupt { .. }) => {}
            other => panic!("cut at {cut} of {}: {other:?}", whole.len()),
        }
    }
}

#[test]
fn an_overwritten_page_is_corrupt_or_not_met() {
    let dir = tempfile::tempdir().unwrap();
    let path = file_with_runs(dir.path());
    let whole = fs::read(&path).unwrap();
    let mut corrupt = 0;
    for page in (0..whole.len()).step_by(4096) {
        let mut bytes = whole.clone();
        bytes[page..page + 4096].fill(0xa5);
        fs::write(&path, &bytes).unwrap();
        match use_file(&path) {
            Ok(count) => assert_eq!(count, 300, "page at {page}"),
            Err(StoreError::Corrupt { .. }) => corrupt += 1,
            Err(error) => panic!("page at {page}: {error:?}"),
        }
    }
    assert!(corrupt > 10, "{corrupt}");
}

#[test]
fn the_database_of_something_else_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.db");
    other_database(&path);
    let before = fs::read(&path).unwrap();
    let error = use_file(&path).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_newer_schema_is_refused_with_a_hint() {
    on_every_engine(|site| {
        fill(&site.place());
        site.sql("INSERT INTO schema_version VALUES (99)");
        let error = use_all(&site.place()).unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::Newer {
                    found: 99,
                    known: 2,
                    ..
                }
            ),
            "{error}"
        );
        assert!(error.hint().is_some());
        Index::replace(&site.place()).unwrap();
        assert_eq!(use_all(&site.place()).unwrap(), 0);
    });
}

#[test]
fn numbers_that_do_not_fit_their_set_are_corrupt() {
    on_every_engine(|site| {
        let nan = site.bytes("000000000000f07f000000000000f07f");
        for change in [
            &format!("UPDATE run SET scalars = {}", site.bytes("00")),
            &format!("UPDATE run SET scalars = {nan}"),
            "UPDATE run SET plan_index = -1",
            "UPDATE run SET clock = 'sundial'",
            "UPDATE run SET outcome_json = '{'",
            "UPDATE metric_set SET definition = '[]'",
            "DROP TABLE kpi_point; DROP TABLE run_reading",
            "ALTER TABLE run RENAME COLUMN clock TO timer",
        ] {
            must_be_corrupt_after(site, change);
        }
    });
}

fn must_be_corrupt_after(site: &Site, change: &str) {
    drop(Index::replace(&site.place()).unwrap());
    fill(&site.place());
    site.sql(change);
    let error = use_all(&site.place()).unwrap_err();
    assert!(
        matches!(error, StoreError::Corrupt { .. }),
        "{change}: {error}"
    );
}

#[test]
fn a_corrupt_one_is_kept_under_another_name() {
    on_every_engine(|site| {
        let mut names = Vec::new();
        for _ in 0..2 {
            fill(&site.place());
            names.push(Index::set_aside(&site.place()).unwrap());
        }
        assert!(names[0].ends_with("corrupt-1") || names[0].ends_with("corrupt_1"));
        assert!(names[1].ends_with("corrupt-2") || names[1].ends_with("corrupt_2"));
        assert!(!site.exists());
        assert_eq!(use_all(&site.place()).unwrap(), 0);
        if site.is_postgres() {
            for name in names {
                site.sql(&format!("DROP {name} CASCADE"));
            }
        }
    });
}

#[test]
fn a_number_that_is_not_finite_is_refused_and_nothing_is_stored() {
    on_every_engine(|site| {
        let mut index = site.open();
        let mut rows = [row(PlanId::new(), 0), row(PlanId::new(), 1)];
        rows[1].scalars[0].value = f64::NAN;
        let error = index.ingest(&rows).unwrap_err();
        assert!(
            error.to_string().contains("vm-scalability.median"),
            "{error}"
        );
        assert_eq!(index.count().unwrap(), 0);
    });
}

fn must_be_access(path: &Path) {
    let error = use_file(path).unwrap_err();
    assert!(matches!(error, StoreError::Access { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("write"));
}

#[test]
fn a_place_that_takes_no_file_is_an_error_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    must_be_access(Path::new("/proc/index.db"));
    must_be_access(dir.path());
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    must_be_access(&file.join("index.db"));
}

#[test]
fn a_directory_without_write_permission_is_an_error_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let closed = dir.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(closed.join("probe"), "").is_ok() {
        eprintln!("skipped: this user may write everywhere");
        return;
    }
    must_be_access(&closed.join("index.db"));
}

#[test]
fn an_error_says_its_path_and_its_reason_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let inside = use_file(&file.join("index.db")).unwrap_err();
    let other = dir.path().join("other.db");
    other_database(&other);
    let foreign = use_file(&other).unwrap_err();
    for (error, path, reason) in [
        (inside, &file, "os error"),
        (foreign, &other, "something else"),
    ] {
        // The reason is in the message, so there must be no second one behind it.
        assert!(error.source().is_none(), "{error}");
        let text = error.to_string();
        assert!(text.contains(path.to_str().unwrap()), "{text}");
        assert_eq!(text.matches(reason).count(), 1, "{text}");
    }
}
