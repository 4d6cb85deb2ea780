//! Bars: groups side by side, or series on top of one another.

use super::chart::{Across, Canvas, all_points};
use super::look;
use super::{scale, text};
use crate::plot::svg::{Svg, number};
use planewise_study::outcome::Figure;

/// Distance of the first and the last group from the ends of an axis of numbers.
pub(super) const INSET: f64 = 36.0;
const WIDEST: f64 = 44.0;
/// Share of the room of a group that its bars take.
const FILLED: f64 = 0.8;

/// A group of bars for each place, a bar for each series; published values as lines across the bars.
pub(super) fn grouped(svg: &mut Svg, canvas: &Canvas<'_>) {
    let series = canvas.figure.series.len().max(1) as f64;
    let bar = (room(canvas) * FILLED / series).min(WIDEST);
    let gap = if bar > 8.0 { 1.5 } else { 0.0 };
    let left = |x: f64, index: usize| x + bar * (index as f64 - series / 2.0) + gap / 2.0;
    for (index, of) in canvas.figure.series.iter().enumerate() {
        for &(place, value) in &of.points {
            let (Some(x), Some(top)) = (canvas.x.at(place), canvas.height(value)) else { continue };
            let said = published_at(&of.published, place)
                .map(|value| format!(" (published {})", scale::plain(value)))
                .unwrap_or_default();
            let tooltip = format!("{}, {}: {}{said}", of.name, canvas.place(place), scale::plain(value));
            rect(svg, index, left(x, index), bar - gap, (canvas.ground(), top), &tooltip);
        }
    }
    // After all bars: a line that a neighbour covers is no published value.
    for (index, of) in canvas.figure.series.iter().enumerate() {
        for &(place, value) in &of.published {
            let (Some(x), Some(y)) = (canvas.x.at(place), canvas.height(value)) else { continue };
            let from = left(x, index);
            let tooltip = format!("{}, {}: published {}", of.name, canvas.place(place), scale::plain(value));
            look::tick(svg, from, from + bar - gap, y, &tooltip);
        }
        for &(place, value) in of.points.iter().filter(|_| !canvas.small) {
            let (Some(x), Some(top)) = (canvas.x.at(place), canvas.height(value)) else { continue };
            let words = scale::short(value);
            // With room to spare the value stands on its bar, above what was published.
            if text::width(&words) > bar + 3.0 {
                continue;
            }
            let published = published_at(&of.published, place).and_then(|value| canvas.height(value));
            let near = published.filter(|y| *y < top && *y > top - 17.0);
            let above = if value < 0.0 { top + 14.0 } else { near.unwrap_or(top) - 5.0 };
            svg.text(left(x, index) + (bar - gap) / 2.0, above, "middle", "pw-value", &words);
        }
    }
}

/// The series on top of one another; what is below zero hangs down.
pub(super) fn stacked(svg: &mut Svg, canvas: &Canvas<'_>) {
    let width = (room(canvas) * FILLED * 0.8).min(WIDEST * 1.3);
    for place in places(canvas.figure) {
        let Some(x) = canvas.x.at(place) else { continue };
        let (mut up, mut down) = (0.0, 0.0);
        for (index, of) in canvas.figure.series.iter().enumerate() {
            let Some(value) = published_at(&of.points, place) else { continue };
            let base = if value < 0.0 { &mut down } else { &mut up };
            let from = *base;
            *base += value;
            let (Some(low), Some(high)) = (canvas.height(from), canvas.height(*base)) else { continue };
            let tooltip = format!("{}, {}: {}", of.name, canvas.place(place), scale::plain(value));
            rect(svg, index, x - width / 2.0, width, (low, high), &tooltip);
        }
        // Published parts make borders of their own, as far up as they are known.
        let mut up = 0.0;
        for of in &canvas.figure.series {
            let Some(value) = published_at(&of.published, place) else { break };
            up += value;
            let Some(y) = canvas.height(up) else { break };
            let tooltip = format!("{}, {}: published {}", of.name, canvas.place(place), scale::plain(value));
            look::tick(svg, x - width / 2.0, x + width / 2.0, y, &tooltip);
        }
    }
}

/// Ends of the stacks above and below zero, measured and published.
pub(super) fn tops(figure: &Figure) -> Vec<f64> {
    let mut tops = Vec::new();
    for place in places(figure) {
        let values = || figure.series.iter().filter_map(|of| published_at(&of.points, place));
        tops.push(values().filter(|value| *value > 0.0).sum());
        tops.push(values().filter(|value| *value < 0.0).sum());
        tops.push(figure.series.iter().map_while(|of| published_at(&of.published, place)).sum());
    }
    tops
}

fn places(figure: &Figure) -> Vec<f64> {
    let mut places: Vec<f64> = all_points(figure).map(|point| point.0).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}

fn published_at(points: &[(f64, f64)], place: f64) -> Option<f64> {
    points.iter().find(|point| point.0 == place && point.1.is_finite()).map(|point| point.1)
}

/// Pixels for a group: the distance of its neighbours.
fn room(canvas: &Canvas<'_>) -> f64 {
    match &canvas.x {
        Across::Places { step, .. } => *step,
        Across::Numbers { .. } => {
            let at: Vec<f64> = places(canvas.figure).into_iter().filter_map(|x| canvas.x.at(x)).collect();
            let nearest = at.windows(2).map(|pair| pair[1] - pair[0]).fold(2.0 * INSET, f64::min);
            nearest.max(1.0)
        }
    }
}

fn rect(svg: &mut Svg, series: usize, x: f64, width: f64, ends: (f64, f64), tooltip: &str) {
    let (top, bottom) = (ends.0.min(ends.1), ends.0.max(ends.1));
    let rect = [
        ("x", number(x)),
        ("y", number(top)),
        ("width", number(width.max(0.5))),
        ("height", number(bottom - top)),
        ("class", look::bar_class(series)),
    ];
    svg.shape("rect", &rect, tooltip);
}
