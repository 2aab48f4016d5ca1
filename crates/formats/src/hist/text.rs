//! Lines as a tool printed them, out of what mail has made of them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;

/// No row of a table is longer: what is behind that is cut off, so that it cannot be read.
const LONGEST_ROW: usize = 1 << 16;

/// A line without quote marks, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'t> {
    /// From 1.
    pub number: usize,
    /// Without trailing blanks.
    pub text: &'t str,
}

/// An input decoded, joined and without the marks of quoting.
#[derive(Debug, Default)]
pub(super) struct Plain {
    /// Its lines, each with a line break behind it.
    pub text: String,
    /// Where each begins in `text`, and the number of its line in the input.
    places: Vec<(usize, usize)>,
}

impl Plain {
    /// Takes the parts of a mail apart; what is no mail stays as it is.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut plain = Self::default();
        let mut mail = Mail::of(&text);
        for (place, line) in text.lines().enumerate() {
            mail.take(place + 1, line, &mut plain);
        }
        mail.end(&mut plain);
        plain
    }

    /// All lines.
    pub(super) fn lines(&self) -> Vec<Line<'_>> {
        let starts = self.places.iter().enumerate();
        starts
            .map(|(index, (start, number))| {
                let next = self.places.get(index + 1);
                let end = next.map_or(self.text.len(), |(start, _)| *start);
                let whole = self.text.get(*start..end).unwrap_or("").trim_end();
                let cut = whole.floor_char_boundary(LONGEST_ROW);
                Line {
                    number: *number,
                    text: whole.get(..cut).unwrap_or(""),
                }
            })
            .collect()
    }

    /// The number of the line that has the byte `at` of the text.
    pub(super) fn number_at(&self, at: usize) -> usize {
        let after = self.places.partition_point(|(start, _)| *start <= at);
        let found = self.places.get(after.saturating_sub(1));
        found.map_or(1, |(_, number)| *number)
    }

    fn push(&mut self, number: usize, line: &str) {
        self.places.push((self.text.len(), number));
        self.text.push_str(unquoted(line));
        self.text.push('\n');
    }
}

/// How the body of a mail is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Encoding {
    #[default]
    AsItIs,
    QuotedPrintable,
    Base64,
}

/// Where in a mail the reader is.
#[derive(Debug, Default)]
struct Mail {
    /// Whether it is one at all, so that it has headers.
    is_mail: bool,
    in_headers: bool,
    /// What the headers say, for the body behind them.
    encoding: Encoding,
    /// Lines that end a part, of all parts that have begun.
    boundaries: Vec<String>,
    /// A part in base64, and the number of its first line.
    base64: (usize, String),
    /// A line in quoted-printable that goes on, and the number of its first line.
    joined: Option<(usize, Vec<u8>)>,
    after_blank: bool,
}

impl Mail {
    fn of(text: &str) -> Self {
        let first = text.lines().find(|line| !line.trim().is_empty());
        let is_mail = first.is_some_and(|line| is_header(line) || line.starts_with("From "));
        Self {
            is_mail,
            in_headers: is_mail,
            ..Self::default()
        }
    }

    fn take(&mut self, number: usize, line: &str, plain: &mut Plain) {
        let after_blank = std::mem::replace(&mut self.after_blank, line.trim().is_empty());
        if self.is_mail && (self.is_boundary(line) || (after_blank && begins_mail(line))) {
            self.end(plain);
            self.in_headers = true;
            self.encoding = Encoding::AsItIs;
            plain.push(number, line);
        } else if self.in_headers {
            self.header(line);
            plain.push(number, line);
        } else {
            match self.encoding {
                Encoding::AsItIs => plain.push(number, line),
                Encoding::QuotedPrintable => self.quoted_printable(number, line, plain),
                Encoding::Base64 => {
                    if self.base64.1.is_empty() {
                        self.base64.0 = number;
                    }
                    self.base64.1.push_str(line.trim());
                }
            }
        }
    }

    fn is_boundary(&self, line: &str) -> bool {
        let Some(name) = line.strip_prefix("--") else {
            return false;
        };
        let name = name.trim_end();
        self.boundaries
            .iter()
            .any(|known| name == known || name.strip_suffix("--") == Some(known))
    }

    fn header(&mut self, line: &str) {
        if line.trim().is_empty() {
            self.in_headers = false;
            return;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(encoding) = lower.strip_prefix("content-transfer-encoding:") {
            self.encoding = match encoding.trim() {
                "quoted-printable" => Encoding::QuotedPrintable,
                "base64" => Encoding::Base64,
                _ => Encoding::AsItIs,
            };
        }
        if let Some(at) = lower.find("boundary=") {
            let value = line.get(at + "boundary=".len()..).unwrap_or("");
            let end = |c| c == '"' || c == ';';
            let name = value.trim_start_matches('"').split(end).next();
            let name = name.unwrap_or("").trim();
            if !name.is_empty() {
                self.boundaries.push(name.to_owned());
            }
        }
    }

    /// RFC 2045, 6.7. Lines that were one have the number of the first.
    fn quoted_printable(&mut self, number: usize, line: &str, plain: &mut Plain) {
        let content = line.trim_end();
        let (content, goes_on) = match content.strip_suffix('=') {
            Some(content) => (content, true),
            None => (content, false),
        };
        let (first, mut bytes) = self.joined.take().unwrap_or((number, Vec::new()));
        decode(content.as_bytes(), &mut bytes);
        match goes_on {
            true => self.joined = Some((first, bytes)),
            false => push_lines(first, &bytes, plain),
        }
    }

    /// The end of a part.
    fn end(&mut self, plain: &mut Plain) {
        if let Some((first, bytes)) = self.joined.take() {
            push_lines(first, &bytes, plain);
        }
        let (first, encoded) = std::mem::take(&mut self.base64);
        if !encoded.is_empty() {
            let decoded = STANDARD.decode(&encoded).ok();
            push_lines(first, decoded.as_deref().unwrap_or_default(), plain);
        }
    }
}

/// Bytes that may hold line ends of their own.
fn push_lines(number: usize, bytes: &[u8], plain: &mut Plain) {
    let text: Cow<'_, str> = String::from_utf8_lossy(bytes);
    if text.is_empty() {
        plain.push(number, "");
    }
    for line in text.lines() {
        plain.push(number, line);
    }
}

fn decode(content: &[u8], out: &mut Vec<u8>) {
    let mut rest = content;
    while let Some(place) = rest.iter().position(|byte| *byte == b'=') {
        let (before, after) = rest.split_at(place);
        out.extend_from_slice(before);
        let code = after
            .get(1..3)
            .and_then(|hex| std::str::from_utf8(hex).ok());
        let (byte, length) = match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => (byte, 3),
            None => (b'=', 1),
        };
        out.push(byte);
        rest = after.get(length..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
}

/// `Name: value`.
fn is_header(line: &str) -> bool {
    line.split_once(": ").is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    })
}

/// The line that begins a mail in a file of several: `From name Thu Jan  1 00:00:00 1970`.
fn begins_mail(line: &str) -> bool {
    let is_year = |word: &str| word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit());
    line.starts_with("From ") && line.split_whitespace().next_back().is_some_and(is_year)
}

/// `>>> > row` is ` row`. Tables have lines that begin with `>` themselves: `>=(ms) .. <(ms)` and
/// `>10000us:`.
fn unquoted(line: &str) -> &str {
    let mut rest = line;
    while let Some(after) = rest.trim_start_matches([' ', '\t']).strip_prefix('>') {
        if after.starts_with('=') || is_limit(after) {
            break;
        }
        rest = after;
    }
    rest
}

/// Whether a text begins with `10000us:`.
fn is_limit(text: &str) -> bool {
    let after = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let unit = after.trim_start_matches(['n', 'u', 'm', 's']);
    after.len() < text.len() && after.len() - unit.len() <= 2 && unit.starts_with(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(plain: &Plain) -> Vec<(usize, &str)> {
        let lines = plain.lines();
        lines.iter().map(|line| (line.number, line.text)).collect()
    }

    #[test]
    fn quotes_are_taken_away_and_rows_that_begin_like_them_stay() {
        for (line, plain) in [
            (">>>> 10us: 2", " 10us: 2"),
            ("> > > x", " x"),
            (" > x", " x"),
            (">> >10000us: 3", " >10000us: 3"),
            (">10000us: 3", ">10000us: 3"),
            (">>10000: 3", ">10000: 3"),
            ("  >=(ms) .. <(ms) : I/O", "  >=(ms) .. <(ms) : I/O"),
            (">000005 17", "000005 17"),
            (">0: x", ">0: x"),
            ("plain", "plain"),
            (">", ""),
        ] {
            assert_eq!(unquoted(line), plain, "{line}");
        }
    }

    #[test]
    fn quoted_printable_keeps_the_numbers_of_lines() {
        let text =
            "Content-Transfer-Encoding: quoted-printable\n\na =3D =\nb\nc=0Ad\ne =C3=A9=\n=zz=";
        let plain = Plain::of(text.as_bytes());
        assert_eq!(
            texts(&plain)[2..],
            [(3, "a = b"), (5, "c"), (5, "d"), (6, "e é=zz")]
        );
        let at = plain.text.find("e é").expect("there");
        assert_eq!((plain.number_at(at), plain.number_at(0)), (6, 1));
        // What is no mail is not decoded.
        let plain = Plain::of(b"x=3Dy\n");
        assert_eq!(texts(&plain), [(1, "x=3Dy")]);
    }

    #[test]
    fn parts_of_a_mail_have_their_own_encodings() {
        let text = "From: a\nContent-Type: multipart/mixed; boundary=\"b=1\"\n\npreamble\n--b=1\nContent-Transfer-Encoding: base64\n\nYT0z\nRAo+\nIGI=\n--b=1\nContent-Type: text/plain\n\nx=3Dy\n--b=1--\n";
        let plain = Plain::of(text.as_bytes());
        let found = texts(&plain);
        assert!(found.contains(&(8, "a=3D")), "{found:?}");
        assert!(found.contains(&(8, " b")), "{found:?}");
        assert!(found.contains(&(14, "x=3Dy")), "{found:?}");
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_off() {
        let text = format!("{}\n[0] 1 |\n", "é".repeat(LONGEST_ROW));
        let plain = Plain::of(text.as_bytes());
        let lines = plain.lines();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].text.len() <= LONGEST_ROW);
        assert_eq!(lines[1].number, 2);
    }
}
