//! How wide words are, so that labels can be laid out before anybody draws them.

use unicode_width::UnicodeWidthChar;

/// Size of all text in figures, in pixels.
pub(super) const SIZE: f64 = 12.0;

/// Advance widths of DejaVu Sans from the space to the tilde, in hundredths of the size: the widest of the usual sans-serif fonts, so
/// that what fits here fits in the others.
#[rustfmt::skip]
const ADVANCES: [u8; 95] = [
    32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 53,
    100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79, 60, 79, 69, 63, 61, 73, 68, 99, 69, 61, 69, 39, 34, 39, 84, 50,
    50, 61, 63, 55, 63, 62, 35, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84,
];

/// Width of a text in pixels.
pub(super) fn width(text: &str) -> f64 {
    text.chars().map(advance).sum::<f64>() * SIZE
}

fn advance(c: char) -> f64 {
    match (c as usize).checked_sub(32).and_then(|index| ADVANCES.get(index)) {
        Some(hundredths) => f64::from(*hundredths) / 100.0,
        // Other scripts: about a capital letter for each cell of a terminal.
        None => c.width().unwrap_or(0) as f64 * 0.68,
    }
}

/// The text on one line, cut to so many pixels with an ellipsis.
pub(super) fn shortened(text: &str, room: f64) -> String {
    let clean = crate::format::one_line(text, usize::MAX);
    if width(&clean) <= room {
        return clean;
    }
    let mut used = SIZE;
    let mut out: String = clean
        .chars()
        .take_while(|c| {
            used += advance(*c) * SIZE;
            used <= room
        })
        .collect();
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_fits() {
        for text in ["a long name of a place", "日本語の長い名前です", "iiiiiiiiiiiiiiiiiii", "a\u{7}b"]
        {
            for room in [20.0, 50.0, 90.0] {
                let cut = shortened(text, room);
                assert!(width(&cut) <= room && !cut.contains('\u{7}'), "{cut} {room}");
            }
        }
        assert_eq!(shortened("hm_0", 60.0), "hm_0");
        assert_eq!(shortened("", 0.0), "");
    }
}
