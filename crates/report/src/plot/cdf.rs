//! Cumulative distributions of latency: how many requests were at least that fast.

use super::scale::{LogScale, tail_stretched};
use super::svg::{Svg, number};
use super::{CHARACTER, WIDTH, look, marker_path};
use crate::format;
use planewise_sim::results::DirectionMetrics;
use unicode_width::UnicodeWidthStr;

/// One curve.
pub struct Curve<'a> {
    /// Name for legend and tooltips.
    pub name: &'a str,
    /// Requests that completed.
    pub requests: u64,
    /// Their latencies.
    pub metrics: &'a DirectionMetrics,
    /// Index for the look: the same run looks the same in all plots, also where another has no curve.
    pub series: usize,
}

const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const HEIGHT: f64 = 300.0;
const LEGEND_ROW: f64 = 18.0;

/// The percentiles that get a line, a name and a marker on every curve.
const MARKED: [(&str, f64); 5] =
    [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// The curves over a logarithmic latency axis; the share axis is stretched towards the tail. None when no curve has a point.
pub fn plot(label: &str, curves: &[Curve<'_>]) -> Option<String> {
    let drawn: Vec<(&Curve<'_>, Vec<(f64, f64)>)> = curves
        .iter()
        .filter(|curve| !curve.metrics.cdf.is_empty())
        .map(|curve| (curve, points(curve)))
        .collect();
    let latencies = || drawn.iter().flat_map(|(_, points)| points.iter().map(|(latency, _)| *latency));
    let low = latencies().min_by(f64::total_cmp)?;
    let high = latencies().max_by(f64::total_cmp)?;
    let x = LogScale::new(low, high, LEFT, WIDTH - RIGHT);
    let columns = legend_columns(&drawn);
    let legend_top = TOP + HEIGHT + 44.0;
    let height = legend_top + drawn.len().div_ceil(columns) as f64 * LEGEND_ROW + 6.0;
    let mut svg = Svg::new(WIDTH, height, label);
    axes(&mut svg, &x);
    for (curve, points) in &drawn {
        draw(&mut svg, &x, curve, points);
    }
    for (place, (curve, _)) in drawn.iter().enumerate() {
        let cell = (WIDTH - LEFT - RIGHT) / columns as f64;
        let left = LEFT + (place % columns) as f64 * cell;
        legend_entry(&mut svg, curve, left, legend_top + (place / columns) as f64 * LEGEND_ROW, cell);
    }
    Some(svg.finish())
}

/// The points of a curve with the exact percentiles among them, rising in both directions.
fn points(curve: &Curve<'_>) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = curve
        .metrics
        .cdf
        .iter()
        .map(|&(ns, share)| (ns as f64, share))
        .filter(|(_, share)| share.is_finite())
        .collect();
    points.extend(marked(curve).map(|(_, share, ns)| (ns, share)));
    points.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.total_cmp(&b.0)));
    let mut slowest = 0f64;
    for (ns, _) in &mut points {
        // The histogram's percentiles are rounded up to its resolution: a curve must not turn back for that.
        slowest = slowest.max(*ns);
        *ns = slowest;
    }
    points
}

/// The percentiles that so many requests can have: p99.99 of a hundred requests is only their maximum again.
fn marked<'a>(curve: &'a Curve<'_>) -> impl Iterator<Item = (&'static str, f64, f64)> + 'a {
    let of = &curve.metrics.latency_ns;
    let values = [of.p50, of.p95, of.p99, of.p999, of.p9999];
    let enough = |share: f64| curve.requests as f64 * (1.0 - share) > 0.999;
    MARKED
        .iter()
        .zip(values)
        .filter(move |((_, share), _)| enough(*share))
        .map(|((name, share), ns)| (*name, *share, ns as f64))
}

fn y(share: f64) -> f64 {
    TOP + HEIGHT * (1.0 - tail_stretched(share))
}

fn axes(svg: &mut Svg, x: &LogScale) {
    for (name, share) in MARKED.into_iter().chain([("0", 0.0), ("max", 1.0)]) {
        svg.line((LEFT, y(share)), (WIDTH - RIGHT, y(share)), if share == 0.0 { "axis" } else { "grid" });
        svg.text(LEFT - 6.0, y(share) + 4.0, "end", "", name);
    }
    let mut free_from = f64::MIN;
    for tick in x.ticks() {
        let place = x.at(tick);
        svg.line((place, TOP), (place, TOP + HEIGHT), "grid");
        let text = tick_text(tick);
        let half = text.width() as f64 * CHARACTER / 2.0;
        if place - half > free_from && place + half < WIDTH {
            svg.text(place, TOP + HEIGHT + 16.0, "middle", "", &text);
            free_from = place + half + 4.0;
        }
    }
    svg.text((LEFT + WIDTH - RIGHT) / 2.0, TOP + HEIGHT + 33.0, "middle", "note", "latency (logarithmic)");
}

/// A round time without needless digits: `1 ms`, `500 µs`.
fn tick_text(ns: f64) -> String {
    let (value, unit) = match ns {
        v if v < 999.0 => (v, "ns"),
        v if v < 999e3 => (v / 1e3, "µs"),
        v if v < 999e6 => (v / 1e6, "ms"),
        v => (v / 1e9, "s"),
    };
    format!("{value:.0} {unit}")
}

fn draw(svg: &mut Svg, x: &LogScale, curve: &Curve<'_>, points: &[(f64, f64)]) {
    let look = look(curve.series);
    let mut path = String::new();
    let mut last = (f64::NAN, f64::NAN);
    for (ns, share) in points {
        let place = (x.at(*ns), y(*share));
        // Points closer than a pixel add bytes, not shape.
        if (place.0 - last.0).abs() < 0.7 && (place.1 - last.1).abs() < 0.7 {
            continue;
        }
        path +=
            &format!("{}{} {}", if path.is_empty() { "M" } else { "L" }, number(place.0), number(place.1));
        last = place;
    }
    let class = format!("curve s{}", look.color);
    svg.shape(
        "path",
        &[("d", path), ("class", class.clone()), ("stroke-dasharray", look.dash.to_owned())],
        curve.name,
    );
    for (name, share, ns) in marked(curve) {
        let path = marker_path(look.marker, x.at(ns), y(share));
        let tooltip = format!("{}: {name} = {}", curve.name, format::time(ns));
        svg.shape("path", &[("d", path), ("class", format!("marker s{}", look.color))], &tooltip);
    }
}

fn legend_columns(drawn: &[(&Curve<'_>, Vec<(f64, f64)>)]) -> usize {
    let longest = drawn.iter().map(|(curve, _)| curve.name.width()).max().unwrap_or(0);
    let cell = 44.0 + longest as f64 * CHARACTER;
    (((WIDTH - LEFT - RIGHT) / cell) as usize).clamp(1, drawn.len().max(1))
}

fn legend_entry(svg: &mut Svg, curve: &Curve<'_>, left: f64, top: f64, width: f64) {
    let look = look(curve.series);
    let path = format!("M{} {}h26", number(left), number(top));
    let class = format!("curve s{}", look.color);
    svg.shape("path", &[("d", path), ("class", class), ("stroke-dasharray", look.dash.to_owned())], "");
    let marker = marker_path(look.marker, left + 13.0, top);
    svg.shape("path", &[("d", marker), ("class", format!("marker s{}", look.color))], "");
    let cells = ((width - 36.0) / CHARACTER).max(4.0) as usize;
    svg.name(left + 32.0, top + 4.0, "start", curve.name, cells);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn percentiles_too_rare_for_the_number_of_requests_are_not_marked() {
        let results = samples::six_schedulers();
        let metrics = &results.runs[0].metrics.read;
        let names = |requests| {
            let curve = Curve { name: "a", requests, metrics, series: 0 };
            marked(&curve).map(|(name, ..)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(1000), ["p50", "p95", "p99", "p99.9"]);
        assert_eq!(names(10_000).len(), 5);
        assert_eq!(names(2), ["p50"]);
    }

    #[test]
    fn a_curve_never_turns_back_and_marks_its_percentiles() {
        let results = samples::six_schedulers();
        let metrics = &results.runs[0].metrics.read;
        let curve = Curve { name: "a", requests: 1_000_000, metrics, series: 0 };
        let points = points(&curve);
        assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1));
        let svg = plot("reads", &[curve]).unwrap();
        for name in ["p50", "p95", "p99", "p99.9", "p99.99"] {
            assert!(
                svg.contains(&format!(">{name}</text>")) && svg.contains(&format!("a: {name} = ")),
                "{name}"
            );
        }
    }

    #[test]
    fn without_points_there_is_no_plot_and_one_point_is_enough() {
        let mut metrics = DirectionMetrics::default();
        let of =
            |metrics: &DirectionMetrics| plot("x", &[Curve { name: "a", requests: 1, metrics, series: 0 }]);
        assert_eq!(of(&metrics), None);
        metrics.cdf = vec![(0, 1.0)];
        assert!(!of(&metrics).unwrap().contains("NaN"));
    }
}
