//! A small plotting module: inline SVG for one HTML page.
//!
//! Colours are those of Okabe and Ito ("Color Universal Design", 2008) and a grey for their yellow, which is none on white; told apart by every common kind of colour vision; each
//! series also has its own dash pattern and marker, and each bar segment its own hatching, so that greyscale prints stay readable.
//! The style sheet of the page holds the colours (classes `s0` to `s7`), so that dark mode needs no second drawing.

pub mod bars;
pub mod cdf;
pub mod curves;
mod legend;
pub mod lines;
pub mod scale;
pub mod svg;

/// Width every plot is drawn for, in CSS pixels; the page shows it at about that size.
pub const WIDTH: f64 = 560.0;

/// Mean width of a character of the 12-pixel label font, in pixels.
pub(crate) const CHARACTER: f64 = 6.6;

/// How many colours there are.
pub(crate) const COLORS: usize = 8;
/// How many shapes of markers.
const MARKERS: usize = 7;
/// Line patterns, solid first.
const DASHES: [&str; 4] = ["none", "7 3", "2 2.5", "9 3 2 3"];

/// The look of one series, distinct for the first 28.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Class of the style sheet that sets the colour: 0 to 7.
    pub color: usize,
    /// `stroke-dasharray`.
    pub dash: &'static str,
    /// Marker shape: 0 to 6.
    pub marker: usize,
}

/// The look of series `index`. Neighbours differ in colour, dash pattern and marker.
pub fn look(index: usize) -> Look {
    Look {
        color: index % COLORS,
        dash: DASHES[index % DASHES.len()],
        marker: (index + index / COLORS) % MARKERS,
    }
}

/// The path of a marker of about 8 pixels, centred.
pub(crate) fn marker_path(marker: usize, x: f64, y: f64) -> String {
    let r = 3.6;
    let polygon = |corners: &[(f64, f64)]| {
        let mut path = String::new();
        for (i, (dx, dy)) in corners.iter().enumerate() {
            path += &format!(
                "{}{} {}",
                if i == 0 { "M" } else { "L" },
                svg::number(x + dx * r),
                svg::number(y + dy * r)
            );
        }
        path + "Z"
    };
    match marker {
        0 => format!(
            "M{} {}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0Z",
            svg::number(x - r),
            svg::number(y),
            d = svg::number(2.0 * r)
        ),
        1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => polygon(&[(0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)]),
        3 => polygon(&[(0.0, -1.3), (1.2, 0.0), (0.0, 1.3), (-1.2, 0.0)]),
        4 => polygon(&[(0.0, 1.15), (1.1, -0.85), (-1.1, -0.85)]),
        5 => polygon(&[
            (-1.2, -0.4),
            (-0.4, -0.4),
            (-0.4, -1.2),
            (0.4, -1.2),
            (0.4, -0.4),
            (1.2, -0.4),
            (1.2, 0.4),
            (0.4, 0.4),
            (0.4, 1.2),
            (-0.4, 1.2),
            (-0.4, 0.4),
            (-1.2, 0.4),
        ]),
        _ => polygon(&[(-1.2, -0.6), (1.2, -0.6), (1.2, 0.6), (-1.2, 0.6)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_four_series_look_different_even_where_colours_repeat() {
        for i in 0..28 {
            for j in 0..i {
                assert_ne!(look(i), look(j), "{i} {j}");
            }
        }
    }

    #[test]
    fn neighbouring_series_differ_without_colour() {
        for i in 1..28 {
            assert_ne!(look(i).dash, look(i - 1).dash, "{i}");
            assert_ne!(look(i).marker, look(i - 1).marker, "{i}");
        }
    }
}
