//! Horizontal bars: one row per run, segments one after another, an optional mark for a second value.

use super::scale::linear_top;
use super::svg::{Svg, number};
use super::{CHARACTER, WIDTH};
use unicode_width::UnicodeWidthStr;

/// A part of a bar.
pub struct Segment {
    /// Class of the style sheet: colour or hatching.
    pub class: String,
    /// Length in the unit of the axis, at least 0.
    pub value: f64,
    /// What hovering says.
    pub tooltip: String,
}

/// One bar.
pub struct Row<'a> {
    /// Name at its left.
    pub name: &'a str,
    /// Parts from left to right.
    pub segments: Vec<Segment>,
    /// Place of a vertical mark.
    pub mark: Option<f64>,
    /// Text at its right.
    pub value: String,
}

const ROW: f64 = 22.0;
const BAR: f64 = 14.0;
const MOST_NAME_CELLS: usize = 24;

/// The bars over a linear axis from zero whose ticks `tick` writes. None without rows.
pub fn plot(label: &str, rows: &[Row<'_>], tick: fn(f64) -> String) -> Option<String> {
    plot_up_to(label, rows, tick, 0.0)
}

/// The same with an axis that goes up to `most` at least: one for several plots.
pub fn plot_up_to(label: &str, rows: &[Row<'_>], tick: fn(f64) -> String, most: f64) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let cells = |text: &str| text.width() as f64 * CHARACTER;
    let left =
        rows.iter().map(|row| cells(row.name)).fold(30.0, f64::max).min(MOST_NAME_CELLS as f64 * CHARACTER)
            + 10.0;
    let right = rows.iter().map(|row| cells(&row.value)).fold(20.0, f64::max) + 10.0;
    let room = (WIDTH - left - right).max(60.0);
    let length =
        |row: &Row<'_>| row.segments.iter().map(|part| part.value).sum::<f64>().max(row.mark.unwrap_or(0.0));
    let top = linear_top(rows.iter().map(length).filter(|l| l.is_finite()).fold(most, f64::max));
    let x = |value: f64| left + room * (if value.is_finite() { value / top } else { 0.0 }).clamp(0.0, 1.0);
    let bottom = 4.0 + rows.len() as f64 * ROW;
    let mut svg = Svg::new(WIDTH, bottom + 24.0, label);
    for part in 0..=4 {
        let value = top * f64::from(part) / 4.0;
        svg.line((x(value), 2.0), (x(value), bottom), if part == 0 { "axis" } else { "grid" });
        if part % 2 == 0 {
            svg.text(
                x(value),
                bottom + 16.0,
                "middle",
                "",
                &if part == 0 { "0".to_owned() } else { tick(value) },
            );
        }
    }
    for (index, row) in rows.iter().enumerate() {
        let y = 4.0 + index as f64 * ROW + (ROW - BAR) / 2.0;
        svg.name(left - 6.0, y + BAR - 3.0, "end", row.name, MOST_NAME_CELLS);
        let mut from = 0.0;
        for part in &row.segments {
            let (start, end) = (x(from), x(from + part.value));
            from += part.value;
            let size = [("x", start), ("y", y), ("width", end - start), ("height", BAR)]
                .map(|(key, v)| (key, number(v)));
            let mut attributes = size.to_vec();
            attributes.push(("class", part.class.clone()));
            svg.shape("rect", &attributes, &part.tooltip);
        }
        if let Some(mark) = row.mark {
            svg.line((x(mark), y - 3.0), (x(mark), y + BAR + 3.0), "mark");
        }
        let end = x(length(row));
        svg.text(end + 6.0, y + BAR - 3.0, "start", "value", &row.value);
    }
    Some(svg.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: f64) -> Row<'static> {
        let segments = vec![Segment { class: "s0".to_owned(), value, tooltip: "t".to_owned() }];
        Row { name: "a", segments, mark: Some(value), value: "v".to_owned() }
    }

    #[test]
    fn all_zero_and_not_a_number_draw_without_either_in_the_picture() {
        for value in [0.0, f64::NAN, f64::INFINITY, 1e300, 1e-300] {
            let svg = plot("x", &[row(value)], |v| format!("{v:.0}")).unwrap();
            assert!(!svg.contains("=\"NaN") && !svg.contains("=\"inf"), "{value}: {svg}");
        }
        assert_eq!(plot("x", &[], |v| v.to_string()), None);
    }

    #[test]
    fn bars_are_proportional_to_their_values() {
        let svg = plot("x", &[row(50.0), row(100.0)], |v| format!("{v:.0}")).unwrap();
        let widths: Vec<f64> = svg
            .split(" width=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
            .collect();
        assert!((widths[1] / widths[0] - 2.0).abs() < 0.01, "{widths:?}");
    }
}
