//! Names that somebody may have meant.

use std::collections::BTreeSet;

const SHOWN: usize = 3;

/// Up to three names of `candidates` closest to `wanted`, closest first; names that contain it
/// come before names that merely resemble it.
pub(crate) fn near_names<'a>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let stem = wanted.trim_matches('*');
    let allowed = (wanted.chars().count() / 3).max(2);
    let distinct: BTreeSet<&str> = candidates.into_iter().collect();
    let mut ranked: Vec<(usize, &str)> = distinct
        .into_iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            if !stem.is_empty() && lower.contains(stem) {
                return Some((0, name));
            }
            Some((edit_distance(&wanted, &lower), name)).filter(|(d, _)| *d <= allowed)
        })
        .collect();
    ranked.sort();
    ranked
        .into_iter()
        .take(SHOWN)
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// Insertions, deletions and substitutions between two texts (Levenshtein 1966).
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for (row, x) in a.chars().enumerate() {
        let mut current = vec![row + 1];
        for ((diagonal, above), y) in previous.iter().zip(previous.iter().skip(1)).zip(&b) {
            let left = current.last().copied().unwrap_or(row);
            let replaced = diagonal + usize::from(x != *y);
            current.push(replaced.min(above + 1).min(left + 1));
        }
        previous = current;
    }
    previous.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("abc", ""), 3);
        assert_eq!(edit_distance("same", "same"), 0);
    }

    #[test]
    fn the_closest_come_first() {
        let names = ["thp-on", "thp-off", "cpu-idle", "base"];
        assert_eq!(near_names("thp-of", names), ["thp-off", "thp-on"]);
        assert_eq!(near_names("thp*", names), ["thp-off", "thp-on"]);
        assert!(near_names("zzzzzzz", names).is_empty());
    }
}
