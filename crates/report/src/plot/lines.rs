//! Lines over the values of an option: one line for each of what is compared.

use super::legend::{Legend, stroke};
use super::scale::linear_top;
use super::svg::{Svg, number};
use super::{CHARACTER, WIDTH, look, marker_path};
use crate::format;

/// One line: its name, and a value for each place of the axis, none where there is none.
pub struct Line<'a> {
    /// Name for legend and tooltips.
    pub name: &'a str,
    /// By place.
    pub values: Vec<Option<f64>>,
}

const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const HEIGHT: f64 = 260.0;

/// The lines over places at equal distances, each with its name; a linear axis from zero. None without a value.
pub fn plot(label: &str, axis: &str, places: &[String], lines: &[Line<'_>]) -> Option<String> {
    let values = lines.iter().flat_map(|line| line.values.iter().flatten().copied());
    let top = linear_top(values.filter(|value| value.is_finite()).max_by(f64::total_cmp)?);
    let step = (WIDTH - LEFT - RIGHT) / places.len().max(1) as f64;
    let x = |place: usize| LEFT + step * (place as f64 + 0.5);
    let y = |value: f64| TOP + HEIGHT * (1.0 - (value / top).clamp(0.0, 1.0));
    let names = lines.iter().map(|line| line.name).collect();
    let legend = Legend::new(names, LEFT, WIDTH - LEFT - RIGHT);
    let legend_top = TOP + HEIGHT + 44.0;
    let mut svg = Svg::new(WIDTH, legend_top + legend.height() + 6.0, label);
    for part in 0..=4 {
        let value = top * f64::from(part) / 4.0;
        let class = if part == 0 { "axis" } else { "grid" };
        svg.line((LEFT, y(value)), (WIDTH - RIGHT, y(value)), class);
        let text = if part == 0 { "0".to_owned() } else { format::three_digits(value) };
        svg.text(LEFT - 6.0, y(value) + 4.0, "end", "", &text);
    }
    for (place, name) in places.iter().enumerate() {
        svg.name(x(place), TOP + HEIGHT + 16.0, "middle", name, ((step / CHARACTER) as usize).max(2));
    }
    svg.text((LEFT + WIDTH - RIGHT) / 2.0, TOP + HEIGHT + 33.0, "middle", "note", axis);
    for (series, line) in lines.iter().enumerate() {
        draw(&mut svg, series, line, places, &x, &y);
    }
    legend.draw(&mut svg, legend_top);
    Some(svg.finish())
}

fn draw(
    svg: &mut Svg,
    series: usize,
    line: &Line<'_>,
    places: &[String],
    x: &dyn Fn(usize) -> f64,
    y: &dyn Fn(f64) -> f64,
) {
    let points: Vec<(usize, f64)> = line
        .values
        .iter()
        .enumerate()
        .filter_map(|(place, value)| value.filter(|value| value.is_finite()).map(|value| (place, value)))
        .collect();
    let mut path = String::new();
    for (place, value) in &points {
        let letter = if path.is_empty() { "M" } else { "L" };
        path += &format!("{letter}{} {}", number(x(*place)), number(y(*value)));
    }
    // Between names there is nothing that a line could stand for.
    let is_scale = places.iter().all(|place| place.starts_with(|first: char| first.is_ascii_digit()));
    if points.len() > 1 && is_scale {
        stroke(svg, series, path, line.name);
    }
    for (place, value) in points {
        let tooltip = format!("{}, {}: {}", line.name, places[place], format::three_digits(value));
        let class = format!("marker s{}", look(series).color);
        let path = marker_path(look(series).marker, x(place), y(value));
        svg.shape("path", &[("d", path), ("class", class)], &tooltip);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_without_values_are_no_plot_and_gaps_are_left_out() {
        let line = |values: Vec<Option<f64>>| [Line { name: "a<b", values }];
        let places = ["1".to_owned(), "2".to_owned()];
        assert_eq!(plot("x", "threads", &places, &line(vec![None, None])), None);
        for value in [0.0, f64::NAN, f64::INFINITY, 1e300] {
            let svg = plot("x", "threads", &places, &line(vec![Some(1.0), Some(value)])).unwrap();
            assert!(
                !svg.contains("NaN") && !svg.contains("=\"inf") && !svg.contains("a<b"),
                "{value}: {svg}"
            );
        }
        assert!(
            plot("x", "threads", &places, &line(vec![None, Some(2.0)])).unwrap().contains("a&lt;b, 2: 2.00")
        );
    }
}
