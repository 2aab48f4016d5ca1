//! Numbers and words out of the bytes of a `/proc` file, without allocation.
//!
//! No general tokeniser: the files are written by the kernel in a fixed form, and what does not
//! have that form is skipped to the end of its line. It works on bytes since checking UTF-8
//! would cost more than reading the numbers.

/// A place in a text.
pub(super) struct Scan<'a> {
    rest: &'a [u8],
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes up to `end` on this line, blanks in front skipped; `end` itself is passed over.
    /// `None`, at the same place, when the line has none.
    pub(super) fn until(&mut self, end: u8) -> Option<&'a [u8]> {
        self.skip_blanks();
        let length = self.rest.iter().position(|&b| b == end || b == b'\n')?;
        let (word, tail) = self.rest.split_at_checked(length)?;
        match tail {
            [b, tail @ ..] if *b == end => {
                self.rest = tail;
                Some(word)
            }
            _ => None,
        }
    }

    /// The next word on this line, blanks in front skipped.
    pub(super) fn word(&mut self) -> Option<&'a [u8]> {
        self.skip_blanks();
        let ends = |b: &u8| *b == b' ' || *b == b'\n';
        let length = self.rest.iter().position(ends).unwrap_or(self.rest.len());
        let (word, tail) = self.rest.split_at_checked(length)?;
        self.rest = tail;
        (!word.is_empty()).then_some(word)
    }

    /// What is left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next number; `None` when there is none or it has more than 19 digits, which is how the
    /// kernel prints a negative count and no datum.
    pub(super) fn number(&mut self) -> Option<u64> {
        self.skip_blanks();
        let mut value = 0u64;
        let mut digits = 0;
        while let [digit @ b'0'..=b'9', tail @ ..] = self.rest {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            digits += 1;
            self.rest = tail;
        }
        (1..=19).contains(&digits).then_some(value)
    }

    /// Passes over `byte` when it comes next, and says whether it did.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        match self.rest {
            [b, tail @ ..] if *b == byte => {
                self.rest = tail;
                true
            }
            _ => false,
        }
    }

    /// The rest of the line; the next thing read is on the next one.
    pub(super) fn line(&mut self) -> &'a [u8] {
        let length = self.rest.iter().position(|&b| b == b'\n');
        let (line, tail) = self
            .rest
            .split_at_checked(length.unwrap_or(self.rest.len()))
            .unwrap_or((self.rest, &[]));
        self.rest = tail;
        self.eat(b'\n');
        line
    }

    fn skip_blanks(&mut self) {
        while let [b' ', tail @ ..] = self.rest {
            self.rest = tail;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let mut scan = Scan::new(b"  12 0 9999999999999999999 18446744073709551615 x");
        assert_eq!(scan.number(), Some(12));
        assert_eq!(scan.number(), Some(0));
        assert_eq!(scan.number(), Some(9_999_999_999_999_999_999));
        assert_eq!(scan.number(), None, "a negative count shown unsigned");
        assert_eq!(scan.number(), None);
        assert_eq!(scan.line(), b"x");
        assert_eq!(scan.number(), None);
        assert!(scan.is_empty());
    }

    #[test]
    fn words() {
        let mut scan = Scan::new(b"  Node 0,\nzone");
        assert_eq!(scan.word(), Some(&b"Node"[..]));
        assert_eq!(scan.word(), Some(&b"0,"[..]));
        assert_eq!(scan.word(), None, "the line is over");
        assert_eq!(scan.rest(), b"\nzone");
        scan.line();
        assert_eq!(scan.word(), Some(&b"zone"[..]));
        assert_eq!(scan.word(), None);
    }

    #[test]
    fn words_stay_on_their_line() {
        let mut scan = Scan::new(b" LOC:  3\nno colon\nx: ");
        assert_eq!(scan.until(b':'), Some(&b"LOC"[..]));
        assert_eq!(scan.number(), Some(3));
        assert_eq!(scan.line(), b"");
        assert_eq!(scan.until(b':'), None);
        assert_eq!(scan.line(), b"no colon");
        assert_eq!(scan.until(b':'), Some(&b"x"[..]));
        assert_eq!(scan.until(b':'), None);
    }
}
