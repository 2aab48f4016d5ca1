use kdyno_analyze::render::ministat::{StatError, stat};
use std::path::{Path, PathBuf};

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn corpus() -> Option<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if corpus.is_dir() {
        return Some(corpus);
    }
    eprintln!("skipped: no published ministat output beside the workspace");
    None
}

fn values(path: &Path) -> Vec<f64> {
    let text = std::fs::read_to_string(path).expect("values");
    text.lines()
        .map(|line| line.trim().parse().expect("number"))
        .collect()
}

/// Heading and rows of the first table in a published text.
fn published(text: &str) -> Vec<&str> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("    N  "));
    let mut table: Vec<&str> = lines.by_ref().take(1).collect();
    let row = |line: &&str| line.chars().nth(1) == Some(' ') && "x+*%#@O".contains(&line[..1]);
    table.extend(
        lines
            .take_while(|line| !line.starts_with("```"))
            .filter(row),
    );
    table
}

#[test]
fn published_rows_print_byte_for_byte() {
    let Some(corpus) = corpus() else { return };
    for (readme, prefix, sets) in [
        (
            "ministat-hyperthreading-5sets.README.md",
            "ministat-hyperthreading-",
            &[
                "ht_off",
                "ht_on_intr_off_default",
                "ht_on_intr_off_iflib_use_logical_cores",
                "ht_on_intr_on",
                "ht_on_intr_on_iflib_use_logical_cores",
            ][..],
        ),
        (
            "ministat-turboboost-outlier.README.md",
            "ministat-turboboost-",
            &["disabled-default", "enabled"][..],
        ),
    ] {
        let text = std::fs::read_to_string(corpus.join(readme)).expect("published text");
        let expected = published(&text);
        assert_eq!(expected.len(), 1 + sets.len(), "{readme}: {expected:?}");
        let data: Vec<Vec<f64>> = sets
            .iter()
            .map(|set| values(&corpus.join(format!("{prefix}{set}.pps"))))
            .collect();
        let named: Vec<(&str, &[f64])> = sets
            .iter()
            .zip(&data)
            .map(|(name, values)| (*name, values.as_slice()))
            .collect();
        let printed = stat(&named).expect("rows");
        let rows: Vec<&str> = printed.lines().skip(sets.len()).collect();
        assert_eq!(rows, expected, "{readme}");
    }
}

#[test]
fn legend_heading_and_rows() {
    let printed = stat(&[("before", &[10.0, 12.0, 14.0, 12.5]), ("after", &[7.0])]).expect("rows");
    // Deviations -2.125, -0.125, 1.875, 0.375: 8.1875 / 3 = 2.7291667, root 1.652019.
    let expected = [
        "x before",
        "+ after",
        "    N           Min           Max        Median           Avg        Stddev",
        "x   4            10            14          12.5        12.125      1.652019",
        "+   1             7             7             7             7             -",
    ];
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn what_cannot_be_summarised_is_an_error() {
    assert_eq!(
        stat(&[("empty", &[])]),
        Err(StatError::NoValues {
            name: "empty".to_owned()
        })
    );
    let eight = [("s", &[1.0][..]); 8];
    assert_eq!(
        stat(&eight),
        Err(StatError::TooManySets { given: 8, limit: 7 })
    );
}
