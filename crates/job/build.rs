//! Lists the folders of `catalog/`, so that adding a program is one folder and no line of Rust.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let catalog = manifest.join("catalog");
    println!("cargo::rerun-if-changed=catalog");
    let mut names: Vec<String> = std::fs::read_dir(&catalog)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| catalog.join(name).join("program.yaml").is_file())
        .collect();
    names.sort();
    let mut text = "&[\n".to_owned();
    for name in names {
        let file = format!("catalog/{name}/program.yaml");
        let path = manifest.join(&file).display().to_string();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "({file:?}, include_str!({path:?})),");
    }
    text.push_str("]\n");
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    std::fs::write(Path::new(&out).join("built_in.rs"), text)
}
