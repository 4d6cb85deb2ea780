//! Lines with markers, and the steps of cumulative distributions.

use super::chart::{Across, Canvas};
use super::{look, scale};
use crate::plot::svg::{Svg, number};
use planewise_study::outcome::{FigureKind, Series};

/// Lines of more points than this have no markers but at their ends.
const MARKERS_MAX: usize = 40;

/// A line with markers for each series. It ends where a place has no value and begins again behind it.
pub(super) fn lines(svg: &mut Svg, canvas: &Canvas<'_>) {
    for (index, of) in canvas.figure.series.iter().enumerate() {
        let mut path = Path::default();
        let mut last_place = f64::NAN;
        for &(x, y) in &of.points {
            let skipped = matches!(canvas.x, Across::Places { .. }) && x - last_place > 1.5;
            match (canvas.x.at(x), canvas.height(y)) {
                (Some(px), Some(py)) if !skipped => path.to(px, py),
                (Some(px), Some(py)) => path.from(px, py),
                _ => path.lift(),
            }
            last_place = x;
        }
        if path.has_lines {
            look::stroke(svg, index, path.text, &of.name);
        }
    }
    for (index, of) in canvas.figure.series.iter().enumerate() {
        let few = of.points.len() <= MARKERS_MAX;
        let ends = [0, of.points.len().saturating_sub(1)];
        for (place, &(x, y)) in of.points.iter().enumerate() {
            let (Some(px), Some(py)) = (canvas.x.at(x), canvas.height(y)) else { continue };
            if (few && !canvas.small) || ends.contains(&place) {
                look::point(svg, index, (px, py), &tooltip(canvas, of, x, y, ""));
            }
        }
    }
}

/// Steps from the left, as an empirical distribution has them: the share holds from its value on.
pub(super) fn distribution(svg: &mut Svg, canvas: &Canvas<'_>) {
    for (index, of) in canvas.figure.series.iter().enumerate() {
        let mut path = String::new();
        let mut drawn = (f64::NAN, f64::NAN);
        let mut end = None;
        for &(x, y) in &of.points {
            if !x.is_finite() {
                continue;
            }
            // What took no time at all stands at the start of a logarithmic axis.
            let at = canvas.x.at(x).unwrap_or(canvas.frame.left);
            let Some(height) = canvas.height(y) else { continue };
            if path.is_empty() {
                path = format!("M{} {}V{}", number(at), number(canvas.ground()), number(height));
            } else if (at - drawn.0).abs() < 0.7 && (height - drawn.1).abs() < 0.7 {
                // Points closer than a pixel add bytes, not shape.
                end = Some((at, height));
                continue;
            } else {
                path += &format!("H{}V{}", number(at), number(height));
            }
            drawn = (at, height);
            end = None;
        }
        if let Some((at, height)) = end {
            path += &format!("H{}V{}", number(at), number(height));
        }
        if !path.is_empty() {
            look::stroke(svg, index, path, &of.name);
        }
    }
}

/// What the document gives for the same places: open markers.
pub(super) fn published(svg: &mut Svg, canvas: &Canvas<'_>) {
    if canvas.figure.kind == FigureKind::Stacked {
        return;
    }
    let size = if canvas.small { 0.8 } else { 1.35 };
    for (index, of) in canvas.figure.series.iter().enumerate() {
        for &(x, y) in &of.published {
            if let (Some(px), Some(py)) = (canvas.x.at(x), canvas.height(y)) {
                look::open_point(svg, index, (px, py), size, &tooltip(canvas, of, x, y, "published "));
            }
        }
    }
}

fn tooltip(canvas: &Canvas<'_>, of: &Series, x: f64, y: f64, kind: &str) -> String {
    format!("{}, {}: {kind}{}", of.name, canvas.place(x), scale::plain(y))
}

#[derive(Default)]
struct Path {
    text: String,
    down: bool,
    has_lines: bool,
}

impl Path {
    fn to(&mut self, x: f64, y: f64) {
        if self.down {
            self.text += &format!("L{} {}", number(x), number(y));
            self.has_lines = true;
        } else {
            self.from(x, y);
        }
    }

    fn from(&mut self, x: f64, y: f64) {
        self.text += &format!("M{} {}", number(x), number(y));
        self.down = true;
    }

    fn lift(&mut self) {
        self.down = false;
    }
}
