//! What the documents say about the tree is true.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every path in backquotes that looks like one of the tree's.
fn paths_in(text: &str) -> Vec<String> {
    let pieces = text.split('`').skip(1).step_by(2);
    let begins = |piece: &&str| {
        ["crates/", "docs/", "jobs/", "xtask/", "benches/"]
            .iter()
            .any(|p| piece.starts_with(p))
    };
    pieces
        .filter(begins)
        .filter(|piece| !piece.contains(['*', '<', ' ']))
        .map(str::to_owned)
        .collect()
}

#[test]
fn paths_in_the_documents_exist() {
    let mut seen = 0;
    let docs = std::fs::read_dir(root().join("docs"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let readme = root().join("README.md");
    for file in docs
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .chain([readme])
    {
        for path in paths_in(&std::fs::read_to_string(&file).unwrap()) {
            assert!(
                root().join(&path).exists(),
                "{}: `{path}` does not exist",
                file.display()
            );
            seen += 1;
        }
    }
    assert!(seen > 30, "only {seen} paths were found in the documents");
}

#[test]
fn every_dependency_has_its_reason() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, dependencies) = manifest.split_once("[workspace.dependencies]").unwrap();
    let (dependencies, _) = dependencies.split_once("\n[").unwrap();
    let reasons = std::fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    for line in dependencies.lines() {
        let Some((name, _)) = line
            .split_once(" = ")
            .filter(|(name, _)| !name.starts_with("kdyno"))
        else {
            continue;
        };
        assert!(
            reasons.contains(&format!("`{name}`")),
            "docs/dependencies.md gives no reason for `{name}`"
        );
    }
}
