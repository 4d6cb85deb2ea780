//! What series look like in figures: colours, dashes, markers and hatchings that also tell them apart in grey.
//!
//! The colours are those of Okabe and Ito ("Color Universal Design", 2008), a little darker where lines on white need it.

use crate::plot::svg::{Svg, number};
use crate::plot::{COLORS as COUNT, look, marker_path};

/// Lines and outlines, and a tint of the same for the ground of hatchings.
const COLORS: [(&str, &str); COUNT] = [
    ("#0072b2", "#cfe3f0"),
    ("#d55e00", "#f7dcc7"),
    ("#009e73", "#cdebe1"),
    ("#c05c96", "#f2dfea"),
    ("#2f9fd8", "#d8edf8"),
    ("#c98a00", "#f5e6c6"),
    ("#33393f", "#d9dbdd"),
    ("#8d949c", "#eceef0"),
];

/// Hatchings of bars in a tile of six pixels: solid, then light grounds with lines; the third is ground alone.
const HATCHES: [&str; 7] = [
    "",
    "M-1 1L1 -1M-1 7L7 -1M5 7L7 5",
    "M0 0",
    "M.8 1.5h1.8M3.8 4.5h1.8",
    "M0 3h6",
    "M-1 5L1 7M-1 -1L7 7M5 -1L7 1",
    "M0 0L6 6M0 6L6 0",
];

/// Class of the whole figure.
pub(super) const CLASS: &str = "pw";

/// The style sheet and the hatchings that the first `series` bars need; thinner lines for a `small` figure. The classes are the same in all figures, so that several of
/// them can stand in one page, and none is a class of the page.
pub(super) fn markup(series: usize, small: bool) -> String {
    let mut out = String::from(
        "<style>.pw{background:#fff;font-family:'DejaVu Sans',Verdana,sans-serif;font-size:12px}\
         .pw text{fill:#1b1f24}\
         .pw-soft,.pw text.pw-soft{fill:#4a535c}\
         .pw-grid{stroke:#e1e5ea;stroke-width:1}\
         .pw-axis{stroke:#4a535c;stroke-width:1}\
         .pw-line{fill:none;stroke-width:1.8;stroke-linejoin:round}\
         .pw-point{stroke:#fff;stroke-width:.8}\
         .pw-open{fill:#fff;stroke-width:1.6}\
         .pw-bar{stroke-width:.8}\
         .pw-halo{stroke:#fff;stroke-width:3.6;stroke-opacity:.7}\
         .pw-tick{stroke:#000;stroke-width:2.2}\
         .pw-mark{stroke:#000;stroke-width:1.5}\
         .pw text.pw-value{font-size:11px}",
    );
    if small {
        out += ".pw-line,.pw-tick{stroke-width:1.3}.pw-open,.pw-mark{stroke-width:1}.pw-halo{stroke-width:2}\
                .pw-bar{stroke-width:.4}";
    }
    for (index, (color, _)) in COLORS.iter().enumerate() {
        out += &format!(".pw-l{index}{{stroke:{color}}}.pw-p{index}{{fill:{color}}}");
    }
    for index in 0..series {
        let fill = if hatch(index) == 0 {
            COLORS[look(index).color].0.to_owned()
        } else {
            format!("url(#pw-h{index})")
        };
        out += &format!(".pw-f{index}{{fill:{fill};stroke:{}}}", COLORS[look(index).color].0);
    }
    out += "</style>";
    if series > 1 {
        out += "<defs>";
        for index in (0..series).filter(|index| hatch(*index) > 0) {
            let (color, tint) = COLORS[look(index).color];
            out += &format!(
                "<pattern id=\"pw-h{index}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
                 <rect width=\"6\" height=\"6\" fill=\"{tint}\"/>\
                 <path d=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.7\"/></pattern>",
                HATCHES[hatch(index)]
            );
        }
        out += "</defs>";
    }
    out
}

/// Neighbours differ in it, and so do series of the same colour.
fn hatch(series: usize) -> usize {
    (series + series / COLORS.len()) % HATCHES.len()
}

/// Class of the bars of a series.
pub(super) fn bar_class(series: usize) -> String {
    format!("pw-bar pw-f{series}")
}

/// A line of a series.
pub(super) fn stroke(svg: &mut Svg, series: usize, path: String, tooltip: &str) {
    let class = format!("pw-line pw-l{}", look(series).color);
    let dash = look(series).dash.to_owned();
    svg.shape("path", &[("d", path), ("class", class), ("stroke-dasharray", dash)], tooltip);
}

/// A measured point of a series.
pub(super) fn point(svg: &mut Svg, series: usize, at: (f64, f64), tooltip: &str) {
    let class = format!("pw-point pw-p{}", look(series).color);
    svg.shape("path", &[("d", marker_path(look(series).marker, at.0, at.1)), ("class", class)], tooltip);
}

/// A published point of a series: its marker, open and `size` times as large.
pub(super) fn open_point(svg: &mut Svg, series: usize, at: (f64, f64), size: f64, tooltip: &str) {
    let class = format!("pw-open pw-l{}", look(series).color);
    let larger = format!("translate({} {}) scale({size})", number(at.0), number(at.1));
    let path = marker_path(look(series).marker, 0.0, 0.0);
    svg.shape("path", &[("d", path), ("transform", larger), ("class", class)], tooltip);
}

/// A published value of a bar: a short line across it.
pub(super) fn tick(svg: &mut Svg, from: f64, to: f64, y: f64, tooltip: &str) {
    svg.line((from - 1.0, y), (to + 1.0, y), "pw-halo");
    let [x1, x2, y1, y2] = [from, to, y, y].map(number);
    let line = [("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2), ("class", "pw-tick".to_owned())];
    svg.shape("line", &line, tooltip);
}

/// Dashes of the marks, apart from those of the series.
const MARK_DASHES: [&str; 4] = ["6 3", "1.5 2.5", "12 3 2 3", "3 5"];

/// A published number across the plot.
pub(super) fn mark(svg: &mut Svg, index: usize, from: f64, to: f64, y: f64, tooltip: &str) {
    svg.line((from, y), (to, y), "pw-halo");
    mark_line(svg, index, from, to, y, tooltip);
}

/// The line of a mark alone, as the legend has it.
pub(super) fn mark_line(svg: &mut Svg, index: usize, from: f64, to: f64, y: f64, tooltip: &str) {
    let [x1, x2, y1, y2] = [from, to, y, y].map(number);
    let dash = MARK_DASHES[index % MARK_DASHES.len()].to_owned();
    let line = [
        ("x1", x1),
        ("y1", y1),
        ("x2", x2),
        ("y2", y2),
        ("class", "pw-mark".to_owned()),
        ("stroke-dasharray", dash),
    ];
    svg.shape("line", &line, tooltip);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_has_its_colour() {
        for series in 1..60 {
            for small in [false, true] {
                assert!(markup(series, small).contains(&format!(".pw-f{}{{", series - 1)));
            }
        }
    }

    #[test]
    fn bars_differ_without_colour_from_their_neighbours_and_from_bars_of_their_colour() {
        for i in 1..28 {
            assert_ne!(hatch(i), hatch(i - 1), "{i}");
            if i >= COLORS.len() {
                assert_ne!(hatch(i), hatch(i - COLORS.len()), "{i}");
            }
        }
    }
}
