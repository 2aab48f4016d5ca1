//! Lines as a tool printed them, out of what mail has made of them.

/// A line without quote marks, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'t> {
    /// From 1.
    pub number: usize,
    /// Without trailing blanks.
    pub text: &'t str,
}

/// The text, decoded where it is quoted-printable. Line ends stay where they are, soft ones as lines
/// of their own without content, so that numbers of lines are those of the input.
pub(super) fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let head = text.get(..text.len().min(16384)).unwrap_or(&text);
    let is_encoded = head.lines().any(|line| {
        let line = line.to_ascii_lowercase();
        line.starts_with("content-transfer-encoding:") && line.contains("quoted-printable")
    });
    match is_encoded {
        true => decoded(&text),
        false => text.into_owned(),
    }
}

/// RFC 2045, 6.7.
fn decoded(text: &str) -> String {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    // Lines that were joined to the one before are made up for behind it.
    let mut joined = 0;
    for line in text.lines() {
        let (content, soft) = match line.trim_end().strip_suffix('=') {
            Some(content) => (content, true),
            None => (line, false),
        };
        let mut rest = content;
        while let Some(place) = rest.find('=') {
            let (before, after) = rest.split_at(place);
            out.extend(before.bytes());
            let code = after
                .get(1..3)
                .and_then(|hex| u8::from_str_radix(hex, 16).ok());
            match code {
                Some(byte) => {
                    out.push(byte);
                    rest = after.get(3..).unwrap_or_default();
                }
                None => {
                    out.push(b'=');
                    rest = after.get(1..).unwrap_or_default();
                }
            }
        }
        out.extend(rest.bytes());
        match soft {
            true => joined += 1,
            false => {
                out.extend(std::iter::repeat_n(b'\n', joined + 1));
                joined = 0;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// All lines, without the marks of quoting.
pub(super) fn lines(text: &str) -> Vec<Line<'_>> {
    let numbered = text.lines().enumerate();
    numbered
        .map(|(place, line)| Line {
            number: place + 1,
            text: unquoted(line).trim_end(),
        })
        .collect()
}

/// `>>> > row` is `row`. A bucket table has rows that begin with `>` themselves, with a number right
/// behind it.
fn unquoted(line: &str) -> &str {
    let mut rest = line;
    while let Some(after) = rest.strip_prefix('>') {
        if after.starts_with(|c: char| c.is_ascii_digit() || c == '=') {
            break;
        }
        rest = match after.strip_prefix(' ') {
            Some(inner) if inner.starts_with('>') => inner,
            _ => after,
        };
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_taken_away_and_rows_that_begin_like_them_stay() {
        for (line, plain) in [
            (">>>> 10us: 2", " 10us: 2"),
            ("> > > x", " x"),
            (">> >10000us: 3", ">10000us: 3"),
            (">10000us: 3", ">10000us: 3"),
            ("plain", "plain"),
            (">", ""),
        ] {
            assert_eq!(unquoted(line), plain, "{line}");
        }
    }

    #[test]
    fn quoted_printable_keeps_the_numbers_of_lines() {
        let text = "Content-Transfer-Encoding: quoted-printable\n\na =3D =\nb\nc=\n";
        let plain = plain(text.as_bytes());
        let lines: Vec<&str> = plain.lines().collect();
        assert_eq!(lines[2], "a = b");
        assert_eq!(lines[3], "");
        let text = "x=3Dy";
        assert_eq!(super::plain(text.as_bytes()), text);
    }
}
