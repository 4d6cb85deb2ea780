//! What the lines of a plot are called, below it.

use super::svg::{Svg, number};
use super::{CHARACTER, look, marker_path};
use unicode_width::UnicodeWidthStr;

const ROW: f64 = 18.0;

/// Names of lines in as many columns as they leave room for.
pub(super) struct Legend<'a> {
    names: Vec<&'a str>,
    left: f64,
    width: f64,
    columns: usize,
}

impl<'a> Legend<'a> {
    /// A legend over `width` pixels from `left` on. Line `n` has the look of series `n`.
    pub(super) fn new(names: Vec<&'a str>, left: f64, width: f64) -> Legend<'a> {
        let longest = names.iter().map(|name| name.width()).max().unwrap_or(0) as f64;
        let columns = ((width / (44.0 + longest * CHARACTER)) as usize).clamp(1, names.len().max(1));
        Legend { names, left, width, columns }
    }

    /// How high it is.
    pub(super) fn height(&self) -> f64 {
        self.names.len().div_ceil(self.columns) as f64 * ROW
    }

    /// Draws it from `top` on.
    pub(super) fn draw(&self, svg: &mut Svg, top: f64) {
        let cell = self.width / self.columns as f64;
        for (series, name) in self.names.iter().enumerate() {
            let left = self.left + (series % self.columns) as f64 * cell;
            let top = top + (series / self.columns) as f64 * ROW;
            stroke(svg, series, format!("M{} {}h26", number(left), number(top)), "");
            let class = format!("marker s{}", look(series).color);
            let path = marker_path(look(series).marker, left + 13.0, top);
            svg.shape("path", &[("d", path), ("class", class)], "");
            svg.name(left + 32.0, top + 4.0, "start", name, ((cell - 36.0) / CHARACTER).max(4.0) as usize);
        }
    }
}

/// A path with the look of a series.
pub(super) fn stroke(svg: &mut Svg, series: usize, path: String, tooltip: &str) {
    let look = look(series);
    let class = format!("curve s{}", look.color);
    svg.shape("path", &[("d", path), ("class", class), ("stroke-dasharray", look.dash.to_owned())], tooltip);
}
