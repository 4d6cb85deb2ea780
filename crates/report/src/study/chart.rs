//! A figure as SVG: axes, legend and what they explain.

use super::legend::Legend;
use super::look;
use super::scale::{self, Scale, Tick};
use super::text;
use super::{bars, lines};
use crate::plot::svg::{Svg, number};
use planewise_study::outcome::{Figure, FigureKind};

/// Width of a figure, in CSS pixels.
pub const WIDTH: f64 = 720.0;

const RIGHT: f64 = 16.0;
const HEIGHT: f64 = 270.0;
/// The least distance of lying labels of places.
const PLACE_GAP: f64 = 6.0;
/// Turned labels of places are cut to this many pixels.
const TURNED_MOST: f64 = 130.0;
const TURN_DEGREES: f64 = -40.0;
/// Distance of the first and the last number from the ends of the axis.
const INSET: f64 = 14.0;

/// The figure as an SVG file that stands alone: its own style, white ground, no title. The same figure gives the same bytes; what is
/// not a number is left out.
pub fn svg(figure: &Figure) -> String {
    let Some(y) = y_scale(figure) else { return empty(figure) };
    let y_ticks = y.ticks();
    let widest = y_ticks.iter().map(|(_, words)| text::width(words)).fold(0.0, f64::max);
    let left = if figure.y.label.is_empty() { 14.0 } else { 32.0 } + widest;
    let legend = Legend::new(figure, left, WIDTH - RIGHT);
    let top = legend.height() + 14.0;
    let frame = Frame { left, right: WIDTH - RIGHT, top, bottom: top + HEIGHT };
    let canvas = Canvas { figure, x: Across::of(figure, &frame), y, frame, small: false };
    let places = PlaceLabels::of(&canvas);
    let label_top = canvas.frame.bottom + places.height();
    let below = if figure.x.label.is_empty() { 4.0 } else { 24.0 };
    let mut svg = Svg::file(WIDTH, label_top + below, &figure.title, look::CLASS);
    ground(&mut svg, (WIDTH, label_top + below), patterns(figure), false);
    y_axis(&mut svg, &canvas, y_ticks);
    places.draw(&mut svg, &canvas);
    let room = WIDTH - 20.0;
    let words = text::shortened(&figure.x.label, room);
    // A label longer than the plot is wide stands in the middle of the whole.
    let middle = (canvas.frame.left + canvas.frame.right) / 2.0;
    let half = text::width(&words) / 2.0;
    let middle = middle.min(WIDTH - 10.0 - half).max(10.0 + half);
    svg.text(middle, label_top + 15.0, "middle", "pw-soft", &words);
    canvas.draw(&mut svg);
    legend.draw(&mut svg, 4.0);
    svg.finish()
}

/// The figure without words, small: what the index shows beside a study's name.
pub fn thumbnail(figure: &Figure) -> String {
    const SIZE: (f64, f64) = (220.0, 110.0);
    let mut svg = Svg::file(SIZE.0, SIZE.1, &figure.title, look::CLASS);
    ground(&mut svg, SIZE, patterns(figure), true);
    if let Some(y) = y_scale(figure) {
        let frame = Frame { left: 6.0, right: SIZE.0 - 6.0, top: 8.0, bottom: SIZE.1 - 8.0 };
        let canvas = Canvas { figure, x: Across::of(figure, &frame), y, frame, small: true };
        svg.line((canvas.frame.left, canvas.ground()), (canvas.frame.right, canvas.ground()), "pw-axis");
        canvas.draw(&mut svg);
    } else {
        svg.text(SIZE.0 / 2.0, SIZE.1 / 2.0, "middle", "pw-soft", "no data");
    }
    svg.finish()
}

/// Where the plot is.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// The axis across.
pub(super) enum Across {
    /// Named places at equal distances of so many pixels.
    Places { left: f64, step: f64, count: usize },
    /// Numbers between two pixels.
    Numbers { scale: Scale, ticks: Vec<Tick>, from: f64, to: f64 },
}

impl Across {
    fn of(figure: &Figure, frame: &Frame) -> Across {
        if let Some(places) = &figure.x.places {
            let count = places.len();
            return Across::Places {
                left: frame.left,
                step: (frame.right - frame.left) / count.max(1) as f64,
                count,
            };
        }
        let mut values: Vec<f64> = all_points(figure).map(|point| point.0).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let log = figure.x.log && values.last().is_some_and(|last| *last > 0.0);
        let own = match figure.kind {
            FigureKind::Distribution => None,
            _ => scale::own_ticks(&values, log),
        };
        let (scale, ticks) = own.unwrap_or_else(|| {
            let values = values.iter().copied();
            let scale = if log { Scale::log(values) } else { Scale::linear(values, false) };
            let ticks = scale.ticks();
            (scale, ticks)
        });
        let inset = match figure.kind {
            FigureKind::Bars | FigureKind::Stacked => bars::INSET,
            FigureKind::Lines => INSET,
            FigureKind::Distribution => 0.0,
        };
        Across::Numbers { scale, ticks, from: frame.left + inset, to: frame.right - inset }
    }

    /// The pixel of a value; none for what is not on the axis.
    pub(super) fn at(&self, value: f64) -> Option<f64> {
        match self {
            Across::Places { left, step, count } => {
                let place = value.round();
                (place >= 0.0 && place < *count as f64).then(|| left + step * (place + 0.5))
            }
            Across::Numbers { scale, from, to, .. } => {
                scale.at(value).map(|place| from + (to - from) * place)
            }
        }
    }
}

/// A figure with its axes.
pub(super) struct Canvas<'a> {
    pub(super) figure: &'a Figure,
    pub(super) x: Across,
    pub(super) y: Scale,
    pub(super) frame: Frame,
    /// Without words.
    pub(super) small: bool,
}

impl Canvas<'_> {
    /// The pixel of a height.
    pub(super) fn height(&self, value: f64) -> Option<f64> {
        let Frame { top, bottom, .. } = self.frame;
        self.y.at(value).map(|place| bottom - (bottom - top) * place)
    }

    /// The pixel of the line that bars stand on.
    pub(super) fn ground(&self) -> f64 {
        self.frame.bottom - (self.frame.bottom - self.frame.top) * self.y.ground()
    }

    /// What a place is called.
    pub(super) fn place(&self, x: f64) -> String {
        let places = self.figure.x.places.as_deref().unwrap_or_default();
        if x >= 0.0 && x < places.len() as f64 {
            places[x.round() as usize % places.len()].clone()
        } else {
            scale::plain(x)
        }
    }

    fn draw(&self, svg: &mut Svg) {
        match self.figure.kind {
            FigureKind::Bars => bars::grouped(svg, self),
            FigureKind::Stacked => bars::stacked(svg, self),
            FigureKind::Lines => lines::lines(svg, self),
            FigureKind::Distribution => lines::distribution(svg, self),
        }
        for (index, mark) in self.figure.marks.iter().enumerate() {
            if let Some(y) = self.height(mark.y) {
                let tooltip = format!("{}: {}", mark.name, scale::plain(mark.y));
                look::mark(svg, index, self.frame.left, self.frame.right, y, &tooltip);
            }
        }
        if self.figure.kind != FigureKind::Bars {
            lines::published(svg, self);
        }
    }
}

/// All points that can be drawn, measured and published.
pub(super) fn all_points(figure: &Figure) -> impl Iterator<Item = (f64, f64)> + '_ {
    figure
        .series
        .iter()
        .flat_map(|series| series.points.iter().chain(&series.published))
        .copied()
        .filter(|point| point.0.is_finite() && point.1.is_finite())
}

/// None when there is nothing to draw.
fn y_scale(figure: &Figure) -> Option<Scale> {
    all_points(figure).next()?;
    if figure.x.places.as_ref().is_some_and(Vec::is_empty) {
        return None;
    }
    let marks = figure.marks.iter().map(|mark| mark.y);
    let values = || all_points(figure).map(|point| point.1).chain(marks.clone());
    Some(match figure.kind {
        FigureKind::Distribution if figure.y.log => Scale::Tail,
        FigureKind::Distribution => Scale::linear([0.0, 1.0].into_iter(), true),
        FigureKind::Stacked => Scale::linear(bars::tops(figure).into_iter().chain(marks), true),
        FigureKind::Bars if figure.y.log && values().any(|value| value > 0.0) => {
            // The smallest bar needs something to stand on.
            let smallest = values().filter(|value| *value > 0.0).fold(f64::MAX, f64::min);
            Scale::log(values().chain([smallest / 2.0]))
        }
        FigureKind::Lines if figure.y.log && values().any(|value| value > 0.0) => Scale::log(values()),
        _ => Scale::linear(values(), true),
    })
}

/// How many series need their hatching.
fn patterns(figure: &Figure) -> usize {
    match figure.kind {
        FigureKind::Bars | FigureKind::Stacked => figure.series.len(),
        FigureKind::Lines | FigureKind::Distribution => 0,
    }
}

fn ground(svg: &mut Svg, (width, height): (f64, f64), series: usize, small: bool) {
    svg.markup(&look::markup(series, small));
    let size = [("width", number(width)), ("height", number(height)), ("fill", "#fff".to_owned())];
    svg.shape("rect", &size, "");
}

fn y_axis(svg: &mut Svg, canvas: &Canvas<'_>, ticks: Vec<Tick>) {
    let Frame { left, right, top, bottom } = canvas.frame;
    for (value, words) in ticks {
        let Some(y) = canvas.height(value) else { continue };
        let class = if (y - canvas.ground()).abs() < 0.5 { "pw-axis" } else { "pw-grid" };
        svg.line((left, y), (right, y), class);
        svg.text(left - 7.0, y + 4.2, "end", "", &words);
    }
    // The frame's foot stands also where zero is further up.
    svg.line(
        (left, bottom),
        (right, bottom),
        if canvas.ground() > bottom - 0.5 { "pw-axis" } else { "pw-grid" },
    );
    svg.line((left, top), (left, bottom), "pw-axis");
    let words = text::shortened(&canvas.figure.y.label, bottom - top + 8.0);
    if !words.is_empty() {
        svg.turned((16.0, (top + bottom) / 2.0), -90.0, "middle", "pw-soft", &words);
    }
}

/// How the axis across is labelled.
struct PlaceLabels {
    labels: Vec<(f64, String)>,
    turned: bool,
    height: f64,
}

impl PlaceLabels {
    fn of(canvas: &Canvas<'_>) -> PlaceLabels {
        match &canvas.x {
            Across::Places { step, .. } => PlaceLabels::places(canvas, *step),
            Across::Numbers { scale, ticks, from, to } => {
                let labels = scale::clear(ticks.clone(), scale, to - from)
                    .into_iter()
                    .filter_map(|(value, words)| canvas.x.at(value).map(|x| (x, words)))
                    .collect();
                PlaceLabels { labels, turned: false, height: 22.0 }
            }
        }
    }

    fn places(canvas: &Canvas<'_>, step: f64) -> PlaceLabels {
        let places = canvas.figure.x.places.as_deref().unwrap_or_default();
        let widest = places.iter().map(|name| text::width(name)).fold(0.0, f64::max);
        let turned = widest > step - PLACE_GAP;
        // Turned labels need a line's height each; with more places than that, every second or third has one.
        let every = if turned { (15.0 / step).ceil().max(1.0) as usize } else { 1 };
        let sine = TURN_DEGREES.to_radians().sin().abs();
        let label = |(index, name): (usize, &String)| {
            let x = canvas.x.at(index as f64)?;
            let reach = x / TURN_DEGREES.to_radians().cos() - 8.0;
            let room = if turned { TURNED_MOST.min(reach) } else { step };
            Some((x, text::shortened(name, room)))
        };
        let labels: Vec<(f64, String)> = places.iter().enumerate().step_by(every).filter_map(label).collect();
        let longest = labels.iter().map(|(_, words)| text::width(words)).fold(0.0, f64::max);
        let height = if turned { longest * sine + 17.0 } else { 22.0 };
        PlaceLabels { labels, turned, height }
    }

    fn height(&self) -> f64 {
        self.height
    }

    fn draw(&self, svg: &mut Svg, canvas: &Canvas<'_>) {
        let bottom = canvas.frame.bottom;
        for (x, words) in &self.labels {
            svg.line((*x, bottom), (*x, bottom + 4.0), "pw-axis");
            if self.turned {
                svg.turned((x + 4.0, bottom + 14.0), TURN_DEGREES, "end", "", words);
            } else {
                // The last number of an axis may be wider than the margin.
                let x = x.min(WIDTH - 2.0 - text::width(words) / 2.0);
                svg.text(x, bottom + 17.0, "middle", "", words);
            }
        }
    }
}

/// A panel of the usual width that says so.
fn empty(figure: &Figure) -> String {
    let height = 140.0;
    let mut svg = Svg::file(WIDTH, height, &format!("{}: no data", figure.title), look::CLASS);
    ground(&mut svg, (WIDTH, height), 0, false);
    let rect = [
        ("x", "10".to_owned()),
        ("y", "10".to_owned()),
        ("width", number(WIDTH - 20.0)),
        ("height", number(height - 20.0)),
        ("fill", "none".to_owned()),
        ("stroke", "#8a939c".to_owned()),
        ("stroke-dasharray", "5 4".to_owned()),
    ];
    svg.shape("rect", &rect, "");
    svg.text(WIDTH / 2.0, height / 2.0 + 4.0, "middle", "pw-soft", "no data");
    svg.finish()
}
