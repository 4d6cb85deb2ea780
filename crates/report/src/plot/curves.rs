//! Curves over a numeric axis: many points, at the distances that their values have.

use super::legend::{Legend, stroke};
use super::scale::linear_top;
use super::svg::{Svg, number};
use super::{CHARACTER, WIDTH, look, marker_path};
use crate::format;
use unicode_width::UnicodeWidthStr;

/// One curve: its name, and points in rising order of x.
pub struct Curve<'a> {
    /// Name for legend and tooltips.
    pub name: &'a str,
    /// Places and values.
    pub points: &'a [(f64, f64)],
}

const LEFT: f64 = 62.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 24.0;
const HEIGHT: f64 = 250.0;
/// Distance of the first and the last point from the ends of the axis.
const INSET: f64 = 12.0;
/// Curves of more points than this have dots instead of markers.
const MARKERS_MAX: usize = 36;

/// The curves over a common axis, whose names with units are `x` and `y`; y is linear from zero, x linear, or logarithmic where values are
/// at equal ratios. None without a point.
pub fn plot(label: &str, x: &str, y: &str, curves: &[Curve<'_>]) -> Option<String> {
    let is_finite = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
    let points: Vec<Vec<(f64, f64)>> =
        curves.iter().map(|curve| curve.points.iter().filter(is_finite).copied().collect()).collect();
    let all = || points.iter().flatten();
    let top = linear_top(all().map(|point| point.1).max_by(f64::total_cmp)?);
    let axis = Axis::over(all().map(|point| point.0).collect());
    let height = |value: f64| TOP + HEIGHT * (1.0 - (value / top).clamp(0.0, 1.0));
    let legend = Legend::new(curves.iter().map(|curve| curve.name).collect(), LEFT, WIDTH - LEFT - RIGHT);
    let legend_top = TOP + HEIGHT + 48.0;
    let mut svg = Svg::new(WIDTH, legend_top + legend.height() + 2.0, label);
    for part in 0..=4 {
        let value = top * f64::from(part) / 4.0;
        let class = if part == 0 { "axis" } else { "grid" };
        svg.line((LEFT, height(value)), (WIDTH - RIGHT, height(value)), class);
        let text = if part == 0 { "0".to_owned() } else { plain(value) };
        svg.text(LEFT - 6.0, height(value) + 4.0, "end", "", &text);
    }
    svg.text(4.0, TOP - 10.0, "start", "note", y);
    ticks(&mut svg, &axis);
    let note = if axis.is_logarithmic { format!("{x} (logarithmic)") } else { x.to_owned() };
    let cells = ((WIDTH - 8.0) / CHARACTER) as usize;
    let note = format::one_line(&note, cells);
    svg.text((LEFT + WIDTH - RIGHT) / 2.0, TOP + HEIGHT + 34.0, "middle", "note", &note);
    for (series, (curve, points)) in curves.iter().zip(&points).enumerate() {
        draw(&mut svg, series, curve.name, points, &|point| (axis.at(point.0), height(point.1)));
    }
    legend.draw(&mut svg, legend_top);
    Some(svg.finish())
}

/// The horizontal axis.
struct Axis {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    /// Values that points have, rising.
    values: Vec<f64>,
}

impl Axis {
    fn over(mut values: Vec<f64>) -> Axis {
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        let low = values.first().copied().unwrap_or(0.0);
        let high = values.last().copied().unwrap_or(1.0);
        let ratio = |pair: &[f64]| pair[1] / pair[0];
        let is_logarithmic = low > 0.0
            && values.len() >= 4
            && values.windows(2).all(|pair| (1.5..=10.0).contains(&ratio(pair)));
        Axis { low, high, is_logarithmic, values }
    }

    /// The pixel of a value.
    fn at(&self, value: f64) -> f64 {
        let share = if self.high <= self.low {
            0.5
        } else if self.is_logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        LEFT + INSET + (WIDTH - LEFT - RIGHT - 2.0 * INSET) * share.clamp(0.0, 1.0)
    }

    /// Values that get a tick: of a logarithmic axis those of the points.
    fn ticks(&self) -> Vec<f64> {
        if self.is_logarithmic || self.values.len() <= 2 {
            return self.values.clone();
        }
        let step = self.step();
        let first = (self.low / step).ceil();
        let count = ((self.high / step).floor() - first).clamp(0.0, 100.0) as u32;
        (0..=count).map(|tick| (first + f64::from(tick)) * step).collect()
    }

    /// Between 4 and 10 steps fit: eighths of a power of two, else 1, 2 or 5 times a power of ten.
    fn step(&self) -> f64 {
        let span = self.high - self.low;
        if self.low == 0.0 && span >= 8.0 && span.log2().fract() == 0.0 {
            return span / 8.0;
        }
        // Between whole values there is nothing to read off.
        let least = if self.values.iter().all(|value| value.fract() == 0.0) { 1.0 } else { 0.0 };
        let decade = 10f64.powf((span / 10.0).log10().floor());
        [1.0, 2.0, 5.0, 10.0]
            .map(|step| decade * step)
            .into_iter()
            .find(|step| span / step <= 10.0 && *step >= least)
            .unwrap_or(span)
    }
}

fn ticks(svg: &mut Svg, axis: &Axis) {
    let mut free_from = f64::MIN;
    for tick in axis.ticks() {
        let place = axis.at(tick);
        svg.line((place, TOP), (place, TOP + HEIGHT), "grid");
        let text = plain(tick);
        let half = text.width() as f64 * CHARACTER / 2.0;
        if place - half > free_from && place + half < WIDTH {
            svg.text(place, TOP + HEIGHT + 16.0, "middle", "", &text);
            free_from = place + half + 5.0;
        }
    }
}

/// A number without needless digits: `64`, `0.25`, `65,536`.
fn plain(value: f64) -> String {
    let rounded = (value * 1e4).round() / 1e4;
    if rounded.abs() >= 1e15 {
        return format!("{rounded:e}");
    }
    if rounded.abs() >= 1e4 && rounded > 0.0 {
        format::count(rounded.round() as u64)
    } else {
        format!("{}", rounded + 0.0)
    }
}

fn draw(
    svg: &mut Svg,
    series: usize,
    name: &str,
    points: &[(f64, f64)],
    place: &dyn Fn((f64, f64)) -> (f64, f64),
) {
    let mut path = String::new();
    for point in points {
        let (x, y) = place(*point);
        path += &format!("{}{} {}", if path.is_empty() { "M" } else { "L" }, number(x), number(y));
    }
    if points.len() > 1 {
        stroke(svg, series, path, name);
    }
    let class = format!("marker s{}", look(series).color);
    for point in points {
        let (x, y) = place(*point);
        let tooltip = format!("{name}, {}: {}", plain(point.0), format::three_digits(point.1));
        if points.len() > MARKERS_MAX {
            let circle =
                [("cx", number(x)), ("cy", number(y)), ("r", "1.7".to_owned()), ("class", class.clone())];
            svg.shape("circle", &circle, &tooltip);
        } else {
            let path = marker_path(look(series).marker, x, y);
            svg.shape("path", &[("d", path), ("class", class.clone())], &tooltip);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn axis(values: &[f64]) -> Axis {
        Axis::over(values.to_vec())
    }

    #[test]
    fn ticks_stand_at_round_values_a_handful_of_them() {
        let offsets: Vec<f64> = (0..=64).map(f64::from).collect();
        assert_eq!(axis(&offsets).ticks(), [0.0, 8.0, 16.0, 24.0, 32.0, 40.0, 48.0, 56.0, 64.0]);
        let strides: Vec<f64> = (1..=42).map(f64::from).collect();
        assert_eq!(axis(&strides).ticks(), [5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0]);
        let depths = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
        assert!(axis(&depths).is_logarithmic);
        assert_eq!(axis(&depths).ticks(), depths);
        assert_eq!(axis(&[1.0, 2.0, 3.0, 4.0]).ticks(), [1.0, 2.0, 3.0, 4.0]);
        assert!(!axis(&[0.0, 1.0, 2.0, 4.0]).is_logarithmic && !axis(&offsets).is_logarithmic);
        assert_eq!(
            [plain(64.0), plain(0.25), plain(65536.0), plain(0.1 + 0.2)],
            ["64", "0.25", "65,536", "0.3"]
        );
    }

    #[test]
    fn equal_ratios_are_drawn_at_equal_distances() {
        let axis = axis(&[64.0, 128.0, 256.0, 512.0, 1024.0]);
        let steps: Vec<f64> =
            axis.values.windows(2).map(|pair| axis.at(pair[1]) - axis.at(pair[0])).collect();
        assert!(steps.windows(2).all(|pair| (pair[0] - pair[1]).abs() < 1e-9), "{steps:?}");
    }

    #[test]
    fn no_points_are_no_plot_and_one_is_enough() {
        let of = |points: &[(f64, f64)]| plot("x", "n", "MB/s", &[Curve { name: "a<b", points }]);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(f64::NAN, 1.0)]), None);
        assert!(of(&[(3.0, 5.0)]).unwrap().contains("a&lt;b, 3: 5.00"));
    }

    proptest! {
        #[test]
        fn any_points_are_drawn_inside(points in proptest::collection::vec((-1e12f64..1e12, 0f64..1e12), 1..140)) {
            let svg = plot("x", "n", "y", &[Curve { name: "a", points: &points }]).unwrap();
            prop_assert!(!svg.contains("NaN") && !svg.contains("inf"));
            let axis = axis(&points.iter().map(|point| point.0).collect::<Vec<_>>());
            prop_assert!(axis.ticks().len() <= 140);
            for (x, _) in points {
                prop_assert!((LEFT..=WIDTH - RIGHT).contains(&axis.at(x)));
            }
        }
    }
}
