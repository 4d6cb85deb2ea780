//! Columns of text, read eight bytes at a time: no allocation, no floating point, no panic.
//!
//! The fast path of each method takes a column that is exactly as tools write it. Whatever else stands there goes to a
//! cold path, which forgives blanks around the column and words the error for everything it does not forgive.

use crate::formats::TimeUnit;
use crate::formats::tokens::{Unexpected, number};
use crate::words;
use planewise_model::{Direction, SECTOR_BYTES};

/// What is wrong with a line. Boxed, so that the results on the fast path fit into registers.
pub(crate) type Wrong = Box<Unexpected>;

/// An error about a column: quotes what was found.
#[cold]
pub(crate) fn wrong(column: &str, found: &[u8], allowed: &'static str) -> Wrong {
    Box::new(Unexpected::new(column, found, allowed))
}

/// Separated by single commas.
pub(crate) const COMMA: u8 = b',';
/// Separated by any number of blanks and tabs.
pub(crate) const BLANK: u8 = b' ';

const WHOLE_NUMBER: &str = "a whole number from 0 to 18446744073709551615";

/// The columns of one line, taken from left to right.
pub(crate) struct Columns<'a, const SEPARATOR: u8> {
    line: &'a [u8],
    /// Where the next column begins; one behind the line when there is none. At the line's end an empty last one begins.
    at: usize,
}

impl<'a, const SEPARATOR: u8> Columns<'a, SEPARATOR> {
    /// Starts at the beginning of a line.
    #[inline(always)]
    pub fn new(line: &'a [u8]) -> Self {
        let is_tight = !matches!(line, [b'\0'..=b' ', ..] | [.., b'\0'..=b' ']);
        let line = if SEPARATOR == BLANK && !is_tight { line.trim_ascii() } else { line };
        Columns { line, at: 0 }
    }

    /// What has not been taken yet.
    #[inline]
    pub fn unread(&self) -> &'a [u8] {
        self.line.get(self.at..).unwrap_or_default()
    }

    /// Goes behind a column that ends at `end`; false (and no step) when no column ends there.
    #[inline(always)]
    fn step(&mut self, end: usize) -> bool {
        match self.line.get(end) {
            None => self.at = self.line.len() + 1,
            Some(byte) if *byte == SEPARATOR || (SEPARATOR == BLANK && *byte == b'\t') => {
                self.at = end + 1;
                if SEPARATOR == BLANK {
                    while let Some(b' ' | b'\t') = self.line.get(self.at) {
                        self.at += 1;
                    }
                }
            }
            Some(_) => return false,
        }
        true
    }

    /// The next column as it stands.
    ///
    /// # Errors
    /// The line has no further column.
    #[inline(always)]
    pub fn text(&mut self, column: &'static str) -> Result<&'a [u8], Wrong> {
        if self.at > self.line.len() {
            return Err(missing(column));
        }
        let begin = self.at;
        let mut end = begin;
        loop {
            let separators = words::places_of(words::at(self.line, end), SEPARATOR)
                | if SEPARATOR == BLANK { words::places_of(words::at(self.line, end), b'\t') } else { 0 };
            end += separators.trailing_zeros() as usize / 8;
            if separators != 0 || end >= self.line.len() {
                break;
            }
        }
        let end = end.min(self.line.len());
        self.step(end);
        Ok(&self.line[begin..end])
    }

    /// The next column as a whole number of 64 bits.
    ///
    /// # Errors
    /// It is missing, no number, or too large.
    #[inline(always)]
    pub fn number(&mut self, column: &'static str) -> Result<u64, Wrong> {
        let (value, length) = words::digits(self.line, self.at);
        if (1..=words::SAFE_DIGITS).contains(&length) && self.step(self.at + length) {
            return Ok(value);
        }
        let (value, at) = other_number::<SEPARATOR>(self.line, self.at, column)?;
        self.at = at;
        Ok(value)
    }

    /// The next column as a whole number of 32 bits.
    ///
    /// # Errors
    /// It is missing, no number, or too large.
    #[inline(always)]
    pub fn number32(&mut self, column: &'static str) -> Result<u32, Wrong> {
        let value = self.number(column)?;
        u32::try_from(value).map_err(|_| too_large(column, value))
    }

    /// The next column as a time in nanoseconds.
    ///
    /// # Errors
    /// It is missing, no number of the clock's kind, negative, or 2^64 ns or more.
    #[inline(always)]
    pub fn time(&mut self, column: &'static str, clock: Clock) -> Result<u64, Wrong> {
        let (value, length) = words::digits(self.line, self.at);
        let end = self.at + length;
        if clock.fraction && self.line.get(end) == Some(&b'.') {
            return self.time_with_fraction(column, clock, (value, length));
        }
        if (1..=words::SAFE_DIGITS).contains(&length)
            && let Some(nanoseconds) = value.checked_mul(clock.nanoseconds)
            && self.step(end)
        {
            return Ok(nanoseconds);
        }
        self.other_time(column, clock)
    }

    #[inline(always)]
    fn other_time(&mut self, column: &'static str, clock: Clock) -> Result<u64, Wrong> {
        let (value, at) = other_time::<SEPARATOR>(self.line, self.at, column, clock)?;
        self.at = at;
        Ok(value)
    }

    /// The same where digits behind a point follow.
    #[inline(always)]
    fn time_with_fraction(
        &mut self,
        column: &'static str,
        clock: Clock,
        (whole, length): (u64, usize),
    ) -> Result<u64, Wrong> {
        let begin = self.at + length + 1;
        let (fraction, places) = words::digits(self.line, begin);
        if (1..=words::SAFE_DIGITS).contains(&length)
            && (1..=words::SAFE_DIGITS).contains(&places)
            && let Some(nanoseconds) = clock.join(whole, (fraction, places))
            && self.step(begin + places)
        {
            return Ok(nanoseconds);
        }
        self.other_time(column, clock)
    }

    /// The next column as a direction.
    ///
    /// # Errors
    /// It is missing, or neither.
    #[inline(always)]
    pub fn direction(
        &mut self,
        column: &'static str,
        words: fn(&[u8]) -> Option<Direction>,
        allowed: &'static str,
    ) -> Result<Direction, Wrong> {
        let text = self.text(column)?;
        words(text).or_else(|| words(text.trim_ascii())).ok_or_else(|| wrong(column, text, allowed))
    }

    /// Makes sure that the line has no further column.
    ///
    /// # Errors
    /// It has.
    #[inline(always)]
    pub fn end(&self, count: &'static str) -> Result<(), Wrong> {
        if self.at > self.line.len() { Ok(()) } else { Err(wrong("a further column", self.unread(), count)) }
    }
}

/// A column that is no plain number as a number, and where the next one begins. The line and the place go in and out by value: a reference to
/// the columns would keep them in memory on the fast path, too.
#[cold]
#[inline(never)]
fn other_number<const SEPARATOR: u8>(
    line: &[u8],
    at: usize,
    column: &'static str,
) -> Result<(u64, usize), Wrong> {
    let mut columns = Columns::<SEPARATOR> { line, at };
    let text = columns.text(column)?;
    let value = number(text.trim_ascii()).ok_or_else(|| wrong(column, text, WHOLE_NUMBER))?;
    Ok((value, columns.at))
}

/// The same of a time.
#[cold]
#[inline(never)]
fn other_time<const SEPARATOR: u8>(
    line: &[u8],
    at: usize,
    column: &'static str,
    clock: Clock,
) -> Result<(u64, usize), Wrong> {
    let mut columns = Columns::<SEPARATOR> { line, at };
    let text = columns.text(column)?;
    let value = clock.read(text.trim_ascii()).ok_or_else(|| wrong(column, text, clock.allowed()))?;
    Ok((value, columns.at))
}

#[cold]
fn too_large(column: &str, value: u64) -> Wrong {
    wrong(column, value.to_string().as_bytes(), "a whole number from 0 to 4294967295")
}

#[cold]
fn missing(column: &str) -> Wrong {
    Box::new(Unexpected {
        found: format!("no {column}: the line ends before it"),
        allowed: "all columns in every line",
    })
}

/// What a stamp counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    /// One unit.
    nanoseconds: u64,
    /// Whether stamps may have a fraction. Where the format's have none, one is a sign of another unit.
    fraction: bool,
}

impl Clock {
    /// Whole units of so many nanoseconds, a power of ten.
    pub const fn whole(nanoseconds: u64) -> Clock {
        Clock { nanoseconds, fraction: false }
    }

    /// Units of so many nanoseconds, a power of ten, with or without a decimal fraction.
    pub const fn decimal(nanoseconds: u64) -> Clock {
        Clock { nanoseconds, fraction: true }
    }

    /// This clock, or the one in the unit that the user names.
    pub fn or_unit(self, unit: Option<TimeUnit>) -> Clock {
        unit.map_or(self, |unit| Clock::decimal(unit.nanoseconds()))
    }

    /// A stamp in nanoseconds, exactly; digits beyond nanoseconds are cut off.
    fn read(self, text: &[u8]) -> Option<u64> {
        let point = text.iter().position(|byte| *byte == b'.').filter(|_| self.fraction);
        let Some(point) = point else { return number(text)?.checked_mul(self.nanoseconds) };
        let (whole, fraction) = (&text[..point], &text[point + 1..]);
        if fraction.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let mut nanoseconds = 0;
        let mut worth = self.nanoseconds;
        for digit in fraction {
            worth /= 10;
            nanoseconds += worth * u64::from(digit - b'0');
        }
        number(whole)?.checked_mul(self.nanoseconds)?.checked_add(nanoseconds)
    }

    /// Whole units and a fraction of so many digits in nanoseconds, exactly; digits beyond nanoseconds are cut off.
    #[inline]
    fn join(self, whole: u64, (fraction, places): (u64, usize)) -> Option<u64> {
        let own = self.nanoseconds.ilog10() as usize;
        let fraction = match places.checked_sub(own) {
            None | Some(0) => fraction * words::TENS[own - places],
            Some(beyond) => fraction / words::TENS[beyond],
        };
        whole.checked_mul(self.nanoseconds)?.checked_add(fraction)
    }

    const fn allowed(self) -> &'static str {
        match self.fraction {
            true => "a decimal number, 0 or more and below 2^64 ns, without exponent",
            false => "a whole number, 0 or more and below 2^64 ns (another unit: --time-unit)",
        }
    }
}

/// `R`, `r`, `Read`, `W`, `w`, `Write`, in any case.
#[inline]
pub(crate) fn read_or_write(word: &[u8]) -> Option<Direction> {
    match word {
        b"Read" | b"R" | b"r" => Some(Direction::Read),
        b"Write" | b"W" | b"w" => Some(Direction::Write),
        _ if word.eq_ignore_ascii_case(b"read") => Some(Direction::Read),
        _ if word.eq_ignore_ascii_case(b"write") => Some(Direction::Write),
        _ => None,
    }
}

const BYTE_RANGE: &str = "1 byte to 2 TiB, ending at byte 2^64 or before";

/// The first sector and the number of sectors that a byte range touches.
///
/// # Errors
/// The range is empty, has 2^32 sectors or more, or ends past byte 2^64.
#[inline]
pub(crate) fn sectors_of_bytes(offset: u64, length: u64) -> Result<(u64, u32), Wrong> {
    let start = offset / SECTOR_BYTES;
    let sectors = offset.checked_add(length).map(|end| end.div_ceil(SECTOR_BYTES) - start);
    match sectors.and_then(|sectors| u32::try_from(sectors).ok()) {
        Some(sectors) if length > 0 => Ok((start, sectors)),
        _ => Err(range(length, "bytes", "byte", offset, BYTE_RANGE)),
    }
}

/// Sectors past this one have byte addresses of more than 64 bits.
const SECTOR_MAX: u64 = u64::MAX / SECTOR_BYTES;

/// Makes sure that a range of sectors is not empty and has 64-bit byte addresses.
///
/// # Errors
/// It is or has not.
#[inline]
pub(crate) fn sector_range(start: u64, sectors: u64) -> Result<(u64, u32), Wrong> {
    match u32::try_from(sectors) {
        Ok(count) if count > 0 && start <= SECTOR_MAX - sectors => Ok((start, count)),
        _ => {
            Err(range(sectors, "sectors", "sector", start, "1 to 4294967295 sectors, ending below byte 2^64"))
        }
    }
}

#[cold]
fn range(length: u64, units: &str, unit: &str, start: u64, allowed: &'static str) -> Wrong {
    Box::new(Unexpected { found: format!("a request of {length} {units} at {unit} {start}"), allowed })
}

/// Whether a line is the header that names `columns`, in any case.
pub(crate) fn is_header(line: &[u8], columns: &[&str]) -> bool {
    let names = line.split(|byte| *byte == COMMA).map(<[u8]>::trim_ascii);
    !columns.is_empty()
        && names.clone().count() == columns.len()
        && names.zip(columns).all(|(name, column)| name.eq_ignore_ascii_case(column.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn time(text: &str, clock: Clock) -> Result<u64, String> {
        Columns::<COMMA>::new(text.as_bytes()).time("time", clock).map_err(|wrong| wrong.found)
    }

    const SECONDS: Clock = Clock::decimal(1_000_000_000);

    #[test]
    fn stamps_are_exact_to_the_nanosecond_and_cut_beyond() {
        assert_eq!(time("1456095145.133076001", SECONDS), Ok(1_456_095_145_133_076_001));
        assert_eq!(time("0.0000000019", SECONDS), Ok(1));
        assert_eq!(time("15849.28847", Clock::decimal(1_000_000)), Ok(15_849_288_470));
        assert_eq!(time("18446744073.709551615", SECONDS), Ok(u64::MAX));
        assert_eq!(time("128166385295514663", Clock::whole(100)), Ok(12_816_638_529_551_466_300));
        assert_eq!(time("18446744073709551615", Clock::whole(1)), Ok(u64::MAX));
        assert_eq!(time(" 7 ", SECONDS), Ok(7_000_000_000));
    }

    #[test]
    fn stamps_that_are_no_times_are_refused() {
        for text in
            ["", "-1", "-0.5", "nan", "inf", "1e3", "1.", ".5", "1.2.3", "0x1", "1,", "18446744073.709551616"]
        {
            let result = time(text, SECONDS);
            assert!(result.is_err() || text == "1,", "{text} gave {result:?}");
        }
        assert!(time("1.5", Clock::whole(100)).is_err(), "a fraction where the format has none");
        assert!(time("184467440737095517", Clock::whole(100)).is_err(), "2^64 ns");
        assert!(time("99999999999999999999", Clock::whole(1)).is_err());
        assert_eq!(time("1.5", Clock::whole(100).or_unit(Some(TimeUnit::Microseconds))), Ok(1500));
    }

    #[test]
    fn a_line_that_ends_early_names_the_first_missing_column() {
        let mut columns = Columns::<COMMA>::new(b"1,2");
        assert_eq!((columns.number("a").unwrap(), columns.number("b").unwrap()), (1, 2));
        assert_eq!(columns.number("c").unwrap_err().found, "no c: the line ends before it");
        let mut columns = Columns::<COMMA>::new(b"1,");
        assert!(columns.number("a").is_ok() && columns.end("1 column").is_err());
        assert_eq!(columns.number("b").unwrap_err().found, "b ''");
    }

    #[test]
    fn blanks_of_any_number_separate_columns_and_surround_the_line() {
        let mut columns = Columns::<BLANK>::new(b" \t1  2\t3 \t4x  ");
        assert_eq!([(); 3].map(|()| columns.number("n").unwrap()), [1, 2, 3]);
        assert_eq!(columns.number("n").unwrap_err().found, "n '4x'");
        assert_eq!(columns.text("n").unwrap(), b"4x");
        assert!(columns.end("4").is_ok());
    }

    #[test]
    fn byte_ranges_cover_whole_sectors() {
        assert_eq!(sectors_of_bytes(0, 1).unwrap(), (0, 1));
        assert_eq!(sectors_of_bytes(511, 2).unwrap(), (0, 2));
        assert_eq!(sectors_of_bytes(1024, 1024).unwrap(), (2, 2));
        assert_eq!(sectors_of_bytes(0, 512 * u64::from(u32::MAX)).unwrap(), (0, u32::MAX));
        for (offset, length) in [(0, 0), (u64::MAX, 1), (u64::MAX, 2), (0, 512 * u64::from(u32::MAX) + 1)] {
            let fits = offset.checked_add(length).is_some() && length == 1;
            assert_eq!(sectors_of_bytes(offset, length).is_ok(), fits, "{offset} + {length}");
        }
        assert!(sector_range(0, 0).is_err() && sector_range(u64::MAX, 1).is_err());
        assert!(sector_range(SECTOR_MAX, 1).is_err() && sector_range(SECTOR_MAX - 1, 1).is_ok());
    }

    proptest! {
        #[test]
        fn every_number_is_read_back_and_nothing_else_is_a_number(value: u64, text in "[0-9a-z.+-]{0,22}") {
            let written = value.to_string();
            prop_assert_eq!(Columns::<COMMA>::new(written.as_bytes()).number("n").unwrap(), value);
            let read = Columns::<COMMA>::new(text.as_bytes()).number("n").ok();
            let plain = text.bytes().all(|byte| byte.is_ascii_digit());
            prop_assert_eq!(read, text.parse::<u64>().ok().filter(|_| plain && text.len() <= 20));
        }

        #[test]
        fn every_time_is_read_back_from_its_decimal_form(value: u64) {
            let written = format!("{}.{:09}", value / 1_000_000_000, value % 1_000_000_000);
            prop_assert_eq!(time(&written, SECONDS), Ok(value));
        }
    }
}
