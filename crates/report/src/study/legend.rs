//! What is what in a figure: names above the plot, in as many rows as they need.

use super::look;
use super::text;
use crate::plot::svg::{Svg, number};
use planewise_study::outcome::{Figure, FigureKind};

const ROW: f64 = 19.0;
const SWATCH: f64 = 26.0;
const GAP: f64 = 18.0;

/// What an entry explains.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Series(usize),
    Published,
    Mark(usize),
}

struct Entry {
    kind: Kind,
    name: String,
    x: f64,
    row: usize,
}

/// The entries, laid out.
pub(super) struct Legend {
    entries: Vec<Entry>,
    kind: FigureKind,
    rows: usize,
}

impl Legend {
    /// The legend of a figure between two places across.
    pub(super) fn new(figure: &Figure, left: f64, right: f64) -> Legend {
        let series = figure.series.iter().enumerate().map(|(i, of)| (Kind::Series(i), of.name.as_str()));
        let published = figure.series.iter().any(|of| !of.published.is_empty());
        let published = published.then_some((Kind::Published, "published")).into_iter();
        let marks = figure.marks.iter().enumerate().filter(|(_, mark)| mark.y.is_finite());
        let marks = marks.map(|(i, mark)| (Kind::Mark(i), mark.name.as_str()));
        let (mut x, mut row) = (left, 0);
        let mut entries = Vec::new();
        for (kind, name) in series.chain(published).chain(marks).filter(|(_, name)| !name.is_empty()) {
            let name = text::shortened(name, right - left - SWATCH - 6.0);
            let width = SWATCH + 6.0 + text::width(&name);
            if x > left && x + width > right {
                (x, row) = (left, row + 1);
            }
            entries.push(Entry { kind, name, x, row });
            x += width + GAP;
        }
        let rows = if entries.is_empty() { 0 } else { row + 1 };
        Legend { entries, kind: figure.kind, rows }
    }

    /// How high it is.
    pub(super) fn height(&self) -> f64 {
        self.rows as f64 * ROW
    }

    /// Draws it from `top` on.
    pub(super) fn draw(&self, svg: &mut Svg, top: f64) {
        for entry in &self.entries {
            let (x, y) = (entry.x, top + entry.row as f64 * ROW + ROW / 2.0);
            match entry.kind {
                Kind::Series(series) => self.swatch(svg, series, x, y),
                Kind::Published if self.has_bars() => look::tick(svg, x + 5.0, x + SWATCH - 5.0, y, ""),
                // Black and round: it stands for the open markers of all series.
                Kind::Published => {
                    let [cx, cy] = [x + SWATCH / 2.0, y].map(number);
                    let circle = [
                        ("cx", cx),
                        ("cy", cy),
                        ("r", "4.6".to_owned()),
                        ("fill", "#fff".to_owned()),
                        ("stroke", "#1b1f24".to_owned()),
                        ("stroke-width", "1.6".to_owned()),
                    ];
                    svg.shape("circle", &circle, "");
                }
                Kind::Mark(index) => look::mark_line(svg, index, x, x + SWATCH, y, ""),
            }
            svg.text(x + SWATCH + 6.0, y + 4.2, "start", "", &entry.name);
        }
    }

    fn has_bars(&self) -> bool {
        matches!(self.kind, FigureKind::Bars | FigureKind::Stacked)
    }

    fn swatch(&self, svg: &mut Svg, series: usize, x: f64, y: f64) {
        if self.has_bars() {
            let [x, y] = [x + 2.0, y - 6.0].map(number);
            let rect = [
                ("x", x),
                ("y", y),
                ("width", "22".to_owned()),
                ("height", "12".to_owned()),
                ("class", look::bar_class(series)),
            ];
            svg.shape("rect", &rect, "");
            return;
        }
        look::stroke(svg, series, format!("M{} {}h{}", number(x), number(y), number(SWATCH)), "");
        if self.kind == FigureKind::Lines {
            look::point(svg, series, (x + SWATCH / 2.0, y), "");
        }
    }
}
