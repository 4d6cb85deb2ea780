//! Walking a line of an event log token by token, without allocating.

/// What a line was expected to be and is not; the reader adds file and line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unexpected {
    /// What was found, cut to a readable length.
    pub found: String,
    /// What the format allows there.
    pub allowed: &'static str,
}

impl Unexpected {
    /// An error that quotes what was found.
    #[cold]
    pub fn new(what: &str, found: &[u8], allowed: &'static str) -> Unexpected {
        Unexpected { found: format!("{what} '{}'", quote(found)), allowed }
    }
}

/// Bytes as a person can read them: escaped, and no longer than a line of a terminal.
pub(crate) fn quote(bytes: &[u8]) -> String {
    const SHOWN: usize = 60;
    let head = bytes[..bytes.len().min(SHOWN)].escape_ascii().to_string();
    if bytes.len() > SHOWN { format!("{head}…") } else { head }
}

/// A place in a line. Tokens are separated by blanks.
#[derive(Clone, Copy)]
pub(crate) struct Tokens<'a> {
    rest: &'a [u8],
}

impl<'a> Tokens<'a> {
    /// Starts at the beginning of a line.
    pub fn new(line: &'a [u8]) -> Tokens<'a> {
        Tokens { rest: line }
    }

    /// What has not been taken yet, without leading blanks.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        while let [b' ' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
        self.rest
    }

    /// The next token, empty at the end of the line.
    #[inline]
    pub fn token(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(rest.len());
        self.rest = &rest[end..];
        &rest[..end]
    }

    /// Passes over `token` if it comes next.
    #[inline]
    pub fn accept(&mut self, token: u8) -> bool {
        match self.rest() {
            [first, rest @ ..] if *first == token && matches!(rest, [] | [b' ' | b'\t', ..]) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// The next token as a decimal number.
    ///
    /// # Errors
    /// It is no number, or does not fit into 64 bits.
    #[inline]
    pub fn number(&mut self, what: &'static str, allowed: &'static str) -> Result<u64, Unexpected> {
        let token = self.token();
        number(token).ok_or_else(|| Unexpected::new(what, token, allowed))
    }
}

/// A decimal number that is nothing but digits and fits.
#[inline]
pub(crate) fn number(token: &[u8]) -> Option<u64> {
    if token.is_empty() || token.len() > 20 {
        return None;
    }
    let mut value = 0u64;
    for byte in token {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// A decimal number of 32 bits.
#[inline]
pub(crate) fn number32(token: &[u8]) -> Option<u32> {
    number(token).and_then(|value| u32::try_from(value).ok())
}

/// `major,minor`.
#[inline]
pub(crate) fn device(token: &[u8]) -> Option<(u32, u32)> {
    let comma = token.iter().position(|byte| *byte == b',')?;
    Some((number32(&token[..comma])?, number32(&token[comma + 1..])?))
}

/// `seconds.fraction` as nanoseconds, exactly; digits beyond nanoseconds are cut off.
#[inline]
pub(crate) fn seconds(token: &[u8]) -> Option<u64> {
    let point = token.iter().position(|byte| *byte == b'.')?;
    let (whole, fraction) = (&token[..point], &token[point + 1..]);
    if fraction.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = fraction.len().min(9);
    let mut nanoseconds = number(&fraction[..digits])?;
    for _ in digits..9 {
        nanoseconds *= 10;
    }
    number(whole)?.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_exactly_and_never_through_a_float() {
        assert_eq!(seconds(b"1866.579847"), Some(1_866_579_847_000));
        assert_eq!(seconds(b"0.000000001"), Some(1));
        assert_eq!(seconds(b"18446744073.709551615"), Some(u64::MAX));
        for wrong in ["18446744073.709551616", "1", "1.", ".5", "-1.0", "1.5x", "1,5", "nan", ""] {
            assert_eq!(seconds(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn numbers_that_do_not_fit_are_no_numbers() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for wrong in ["18446744073709551616", "", "+1", "1 ", "0x1"] {
            assert_eq!(number(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(device(b"259,0"), Some((259, 0)));
        assert_eq!(device(b"4294967296,0"), None);
    }

    #[test]
    fn a_single_sign_is_accepted_only_as_a_token() {
        let mut tokens = Tokens::new(b" 12 + 8");
        assert_eq!(
            (tokens.token(), tokens.accept(b'+'), tokens.rest()),
            (b"12".as_slice(), true, b"8".as_slice())
        );
        assert!(!Tokens::new(b"+8").accept(b'+'));
    }
}
