//! Text in words of eight bytes: digits, separators and line ends are found and read by integer arithmetic on all eight at once.

/// So many digits fit into 64 bits whatever they are.
pub(crate) const SAFE_DIGITS: usize = 19;

/// One in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte.
const HIGH: u64 = 0x80 * ONES;

/// Eight bytes of a text from a place on, the first of them lowest; zeros behind its end.
#[inline(always)]
pub(crate) fn at(text: &[u8], place: usize) -> u64 {
    match text.get(place..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => last(text, place),
    }
}

/// The same at the end of a text.
#[inline(never)]
fn last(text: &[u8], place: usize) -> u64 {
    match (text.last_chunk(), text.len().saturating_sub(place)) {
        (_, 0) => 0,
        // The last eight bytes, without those before the place.
        (Some(bytes), left) => u64::from_le_bytes(*bytes) >> (8 * (8 - left)),
        (None, _) => text[place..].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// A word whose lowest set bit is in the first byte that is `byte`; 0 where none is.
#[inline(always)]
pub(crate) fn places_of(word: u64, byte: u8) -> u64 {
    let zero_where_same = word ^ (ONES * u64::from(byte));
    zero_where_same.wrapping_sub(ONES) & !zero_where_same & HIGH
}

/// The value of the digits that a text has from a place on (meaningless beyond [`SAFE_DIGITS`] of them), and their number.
#[inline(always)]
pub(crate) fn digits(text: &[u8], place: usize) -> (u64, usize) {
    let (mut value, mut length) = some_digits(at(text, place));
    let mut in_a_row = length;
    while in_a_row == 8 {
        let next;
        (next, in_a_row) = some_digits(at(text, place + length));
        value = value.wrapping_mul(TENS[in_a_row]).wrapping_add(next);
        length += in_a_row;
    }
    (value, length)
}

/// Powers of ten that fit into 64 bits.
pub(crate) const TENS: [u64; 20] = {
    let mut tens = [1; 20];
    let mut place = 1;
    while place < 20 {
        tens[place] = 10 * tens[place - 1];
        place += 1;
    }
    tens
};

/// The value of the digits that a word begins with, and their number.
#[inline(always)]
fn some_digits(word: u64) -> (u64, usize) {
    let values = word ^ (ONES * u64::from(b'0'));
    // Bytes above 9 get their highest bit, and may carry into those behind them, which do not matter then.
    let others = (values.wrapping_add(0x76 * ONES) | values) & HIGH;
    let length = others.trailing_zeros() as usize / 8;
    if length == 0 {
        return (0, 0);
    }
    // Zeros before them make them eight; then neighbours are joined: pairs, fours, all.
    let eight = values << (64 - 8 * length);
    let pairs = eight.wrapping_mul(10).wrapping_add(eight >> 8);
    let even = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let odd = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    (even.wrapping_add(odd) >> 32, length)
}

/// Bytes looked at for the end of a line before a search of longer ones is worth its beginning.
const SHORT_LINE: usize = 64;

/// Where the first newline of a text is.
#[inline(always)]
pub(crate) fn newline(text: &[u8]) -> Option<usize> {
    let mut place = 0;
    while place < SHORT_LINE && place + 8 <= text.len() {
        let found = places_of(at(text, place), b'\n');
        if found != 0 {
            return Some(place + found.trailing_zeros() as usize / 8);
        }
        place += 8;
    }
    memchr::memchr(b'\n', &text[place..]).map(|found| place + found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_are_the_bytes_and_zeros_behind_them(text in proptest::collection::vec(any::<u8>(), 0..40), place in 0usize..50) {
            let bytes: Vec<u8> = (place..place + 8).map(|n| text.get(n).copied().unwrap_or(0)).collect();
            prop_assert_eq!(at(&text, place).to_le_bytes().to_vec(), bytes);
        }

        #[test]
        fn digits_are_read_as_far_as_they_go(before in "[x0-9]{0,9}", number in "[0-9]{0,30}", behind in "([^0-9].{0,12})?") {
            let text = format!("{before}{number}{behind}");
            let (value, length) = digits(text.as_bytes(), before.len());
            prop_assert_eq!(length, number.len());
            if length > 0 && length <= SAFE_DIGITS {
                prop_assert_eq!(value, number.parse::<u64>().unwrap());
            }
        }

        #[test]
        fn the_first_place_of_any_byte_is_found(bytes: [u8; 8], byte: u8) {
            let place = places_of(u64::from_le_bytes(bytes), byte).trailing_zeros() as usize / 8;
            prop_assert_eq!(place, bytes.iter().position(|other| *other == byte).unwrap_or(8));
        }

        #[test]
        fn the_first_newline_is_found_wherever_it_is(before in "[^\n]{0,150}", behind in "(\n.{0,20}){0,3}") {
            let text = format!("{before}{behind}");
            prop_assert_eq!(newline(text.as_bytes()), text.find('\n'));
        }
    }

    #[test]
    fn any_byte_before_or_behind_a_digit_ends_the_digits() {
        for byte in (0..=255u8).filter(|byte| !byte.is_ascii_digit()) {
            assert_eq!(digits(&[b'1', b'2', byte, b'3', b'4', b'5', b'6', b'7', b'8'], 0), (12, 2), "{byte}");
            assert_eq!(digits(&[byte, b'3', b'4', b'5'], 0), (0, 0), "{byte}");
        }
        assert_eq!(digits(b"18446744073709551615", 1), (8_446_744_073_709_551_615, 19));
    }
}
