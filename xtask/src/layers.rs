//! The layer table of docs/architecture.md, checked: a crate uses only what its row allows.

use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every row of the table `| level | crate | may use | ... |` whose crate exists.
fn table(text: &str) -> Vec<(String, Vec<String>)> {
    let rows = text
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains("| `"));
    rows.filter_map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let names = |cell: &str| -> Vec<String> {
            cell.split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect()
        };
        Some((names(cells.get(2)?).first()?.clone(), names(cells.get(3)?)))
    })
    .collect()
}

/// The workspace's crates that a manifest depends on, tests included.
fn uses(manifest: &str) -> Vec<String> {
    let names = manifest
        .lines()
        .filter_map(|line| line.strip_prefix("kdyno-"));
    names
        .filter_map(|rest| Some(rest.split(['.', ' ']).next()?.to_owned()))
        .collect()
}

/// Compares all manifests with the table.
pub fn check() -> anyhow::Result<()> {
    let path = root().join("docs/architecture.md");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let table = table(&text);
    let mut wrong = Vec::new();
    let mut checked = 0;
    for entry in std::fs::read_dir(root().join("crates"))? {
        let dir = entry?.path();
        let name = dir
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let manifest = std::fs::read_to_string(dir.join("Cargo.toml"))?;
        let Some((_, allowed)) = table.iter().find(|(row, _)| *row == name) else {
            wrong.push(format!("{name} has no row in docs/architecture.md"));
            continue;
        };
        checked += 1;
        for used in uses(&manifest)
            .iter()
            .filter(|used| !allowed.contains(used))
        {
            wrong.push(format!("{name} uses {used}, which its row does not allow"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{checked} crates keep to their layers");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_manifests_are_read() {
        let text = "| level | crate | may use |\n|---|---|---|\n| 2 | `job` | `model`, `stats` |\n";
        assert_eq!(
            table(text),
            [(
                "job".to_owned(),
                vec!["model".to_owned(), "stats".to_owned()]
            )]
        );
        assert_eq!(
            uses("[dependencies]\nkdyno-model.workspace = true\nserde = \"1\"\n"),
            ["model"]
        );
    }

    #[test]
    fn the_tree_keeps_to_the_table() {
        check().unwrap();
    }
}
