//! The known word that somebody may have meant.
//!
//! One home for it, so that keys of a job, monitors, programs and selections all call the same
//! words near. It only finds the word; the sentence around it is the caller's.

/// Characters beyond which a word is near to nothing: no key or option is longer, and the table
/// of distances stays small whatever the input.
const LONGEST: usize = 64;

/// The one of `known` with the fewest edits from `word`, the alphabetically first of several;
/// `None` when all need more edits than a third of the word's characters, at least 1 and at most
/// 3. Case does not count, and `-` equals `_`.
#[must_use]
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    let word = folded(word)?;
    known
        .iter()
        .filter_map(|candidate| Some((edits(&word, &folded(candidate)?), *candidate)))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The characters that count; `None` for a word that is too long.
fn folded(word: &str) -> Option<Vec<char>> {
    let lower = word.chars().flat_map(char::to_lowercase);
    let folded: Vec<char> = lower
        .map(|c| if c == '-' { '_' } else { c })
        .take(LONGEST + 1)
        .collect();
    (folded.len() <= LONGEST).then_some(folded)
}

/// Optimal string alignment distance: insertions, deletions, substitutions and swaps of
/// neighbours, no part edited twice (Damerau 1964).
fn edits(a: &[char], b: &[char]) -> usize {
    let width = b.len() + 1;
    let mut table = vec![0_usize; (a.len() + 1) * width];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i * width + j] = if i == 0 || j == 0 {
                i + j
            } else {
                let cost = usize::from(a[i - 1] != b[j - 1]);
                let best = (table[(i - 1) * width + j] + 1)
                    .min(table[i * width + j - 1] + 1)
                    .min(table[(i - 1) * width + j - 1] + cost);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best.min(table[(i - 2) * width + j - 2] + 1)
                } else {
                    best
                }
            };
        }
    }
    table[a.len() * width + b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: &str, b: &str) -> usize {
        edits(&folded(a).expect("short"), &folded(b).expect("short"))
    }

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("kitten", "sitting", 3),
            ("bsae", "base", 1),
            ("", "abc", 3),
            ("abc", "", 3),
            ("", "", 0),
            // Without the ban on editing a part twice this would be 2.
            ("ca", "abc", 3),
            ("Nr_Task", "nr-task", 0),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn the_fewest_edits_then_the_alphabet() {
        let known = ["thp-on", "thp-off", "cpu-idle"];
        assert_eq!(nearest("thp-of", &known), Some("thp-off"));
        assert_eq!(nearest("THP_ON", &known), Some("thp-on"));
        assert_eq!(nearest("anything", &[]), None);
    }

    #[test]
    fn a_third_of_the_word_may_differ() {
        assert_eq!(nearest("abX", &["abc"]), Some("abc"));
        assert_eq!(nearest("aXX", &["abc"]), None);
        assert_eq!(nearest("runtimeXX", &["runtime"]), Some("runtime"));
        assert_eq!(nearest("abcdefghiXXXX", &["abcdefghi"]), None);
    }

    #[test]
    fn long_words_are_near_to_nothing() {
        let (longest, longer) = ("x".repeat(LONGEST), "x".repeat(LONGEST + 1));
        assert_eq!(nearest(&longest, &[&longest]), Some(longest.as_str()));
        assert_eq!(nearest(&longer, &[&longer]), None);
        assert_eq!(nearest(&longest, &[&longer]), None);
    }
}
