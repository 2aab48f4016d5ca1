//! The seal: one line per file, and one line over these lines.
//!
//! Text, so that `sha256sum` and a person can check it. Exactly one text is right for a given
//! set of files, so that any change to it is found.

use crate::disk;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What was sealed about one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// SHA-256 in hexadecimal.
    pub sha256: String,
    /// Length in bytes.
    pub size: u64,
}

/// The sealed files by path relative to the run directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest(pub BTreeMap<String, Entry>);

impl Manifest {
    /// Its text.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        for (path, entry) in &self.0 {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "{}  {}  {path}", entry.sha256, entry.size);
        }
        let seal = disk::hash(text.as_bytes());
        text + &seal + "\n"
    }

    /// Reads its text.
    ///
    /// # Errors
    /// Says what is wrong when the text is not, to the byte, what [`Manifest::render`] writes.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8 text")?;
        let body = text.strip_suffix('\n').ok_or("its last line is cut")?;
        let cut = body.rfind('\n').map_or(0, |at| at + 1);
        let (lines, seal) = body.split_at(cut);
        if seal != disk::hash(lines.as_bytes()) {
            return Err("its last line does not match the lines above");
        }
        let mut files = BTreeMap::new();
        for line in lines.lines() {
            let (path, entry) = parse_line(line).ok_or("a line is not `sha256  size  path`")?;
            files.insert(path, entry);
        }
        let manifest = Self(files);
        if manifest.render() == text {
            Ok(manifest)
        } else {
            Err("its lines are not in order")
        }
    }
}

fn parse_line(line: &str) -> Option<(String, Entry)> {
    let mut parts = line.splitn(3, "  ");
    let sha256 = parts.next()?.to_owned();
    let size = parts.next()?.parse().ok()?;
    let path = parts.next()?;
    let plain = path
        .split('/')
        .all(|part| !part.is_empty() && part != "." && part != "..");
    plain.then(|| (path.to_owned(), Entry { sha256, size }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn manifest() -> impl Strategy<Value = Manifest> {
        let entry = ("[0-9a-f]{64}", any::<u64>());
        let entry = entry.prop_map(|(sha256, size)| Entry { sha256, size });
        prop::collection::btree_map("[a-z ]{1,8}(/[a-z]{1,8}\\.gz)?", entry, 0..6)
            .prop_map(Manifest)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(manifest in manifest()) {
            prop_assert_eq!(Manifest::parse(manifest.render().as_bytes()), Ok(manifest));
        }

        #[test]
        fn no_cut_and_no_changed_byte_passes(
            manifest in manifest(), at in any::<prop::sample::Index>(), bit in 0_u8..8,
        ) {
            let text = manifest.render().into_bytes();
            let at = at.index(text.len());
            prop_assert!(Manifest::parse(&text[..at]).is_err());
            let mut changed = text.clone();
            changed[at] ^= 1 << bit;
            prop_assert!(Manifest::parse(&changed).is_err());
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(Manifest::parse(&bytes).is_err());
        }
    }

    #[test]
    fn a_path_never_leads_out() {
        for path in ["../x", "/etc/passwd", "a/../b", "a//b", ""] {
            let entry = Entry {
                sha256: disk::hash(b""),
                size: 0,
            };
            let text = Manifest(BTreeMap::from([(path.to_owned(), entry)])).render();
            assert!(Manifest::parse(text.as_bytes()).is_err(), "{path}");
        }
    }
}
