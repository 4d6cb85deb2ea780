//! Figures of odd values: whatever was measured, the picture is well formed and the same each time.

use super::{csv, png, samples, svg, thumbnail};
use planewise_study::outcome::{Axis, Figure, FigureKind, Mark, Series};
use proptest::prelude::*;

const KINDS: [FigureKind; 4] =
    [FigureKind::Bars, FigureKind::Stacked, FigureKind::Lines, FigureKind::Distribution];

fn assert_sound(figure: &Figure) {
    for text in [svg(figure), thumbnail(figure)] {
        for bad in ["NaN", "=\"inf", "=\"-inf", " inf", ">inf", "<script"] {
            assert!(!text.contains(bad), "{bad} in {text}\n{figure:?}");
        }
        resvg::usvg::roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert!(text.starts_with("<svg xmlns=") && text.ends_with("</svg>"));
    }
    assert_eq!(svg(figure), svg(figure));
    assert!(!csv(figure).contains("NaN"));
}

#[test]
fn all_samples_are_sound_in_all_forms() {
    for sample in [
        samples::bars(),
        samples::lines(),
        samples::place_lines(),
        samples::stacked(),
        samples::distribution(),
    ] {
        for kind in KINDS {
            assert_sound(&Figure { kind, ..sample.clone() });
        }
    }
}

#[test]
fn without_a_point_a_panel_says_so() {
    for kind in KINDS {
        for points in [vec![], vec![(0.0, f64::NAN)], vec![(f64::INFINITY, 1.0)]] {
            let mut figure = Figure { kind, ..samples::bars() };
            figure.series.truncate(1);
            figure.series[0].points = points;
            figure.series[0].published.clear();
            assert_sound(&figure);
            assert!(svg(&figure).contains(">no data</text>"));
            figure.series.clear();
            assert!(svg(&figure).contains(">no data</text>"));
        }
    }
}

#[test]
fn names_are_escaped_and_long_ones_cut() {
    let long = "a very long name of a place <&\"'> that goes on and on ".repeat(4);
    for kind in KINDS {
        let mut figure = Figure { kind, title: long.clone(), ..samples::bars() };
        figure.x.places = Some(vec![long.clone(), "<b>".into(), "日本語の名前".into()]);
        figure.x.label.clone_from(&long);
        figure.y.label.clone_from(&long);
        figure.series[0].name.clone_from(&long);
        figure.series[1].name = "<script>alert(1)</script>".into();
        figure.marks[0].name.clone_from(&long);
        assert_sound(&figure);
        assert!(svg(&figure).contains("&lt;b&gt;"));
    }
}

#[test]
fn bars_stand_on_zero_in_proportion_and_hang_below_it() {
    let mut figure = samples::bars();
    figure.marks.clear();
    figure.x.places = Some(["a", "b", "c"].map(String::from).into());
    figure.series = vec![Series {
        name: "s".into(),
        points: vec![(0.0, 10.0), (1.0, 20.0), (2.0, -10.0)],
        published: vec![],
    }];
    let text = svg(&figure);
    let document = resvg::usvg::roxmltree::Document::parse(&text).unwrap();
    let number = |node: resvg::usvg::roxmltree::Node<'_, '_>, key| {
        node.attribute(key).unwrap().parse::<f64>().unwrap()
    };
    // The first with a class is the swatch's in the legend, which is drawn last.
    let bars: Vec<(f64, f64)> = document
        .descendants()
        .filter(|node| node.attribute("class").is_some_and(|class| class.starts_with("pw-bar")))
        .map(|node| (number(node, "y"), number(node, "height")))
        .take(3)
        .collect();
    assert!(
        (bars[1].1 / bars[0].1 - 2.0).abs() < 0.01 && (bars[2].1 / bars[0].1 - 1.0).abs() < 0.01,
        "{bars:?}"
    );
    let ground = bars[0].0 + bars[0].1;
    assert!((bars[2].0 - ground).abs() < 0.2 && (bars[1].0 + bars[1].1 - ground).abs() < 0.2, "{bars:?}");
}

#[test]
fn a_line_is_cut_where_a_place_has_no_value() {
    let figure = samples::place_lines();
    let text = svg(&figure);
    let paths: Vec<&str> = text.split("<path d=\"").skip(1).filter(|path| path.contains("pw-line")).collect();
    let moves = |path: &str| path.split('"').next().unwrap().matches('M').count();
    assert_eq!(paths.iter().take(3).map(|path| moves(path)).collect::<Vec<_>>(), [1, 2, 1]);
}

#[test]
fn published_values_and_marks_are_drawn_and_named() {
    let text = svg(&samples::bars());
    assert_eq!(text.matches("class=\"pw-tick\"").count(), 8 + 1, "eight bars and the legend");
    assert!(text.contains(">published</text>") && text.contains(">published mean of PIQ</text>"));
    let text = svg(&samples::lines());
    assert_eq!(text.matches("class=\"pw-open").count(), 12);
}

#[test]
fn every_form_becomes_a_picture() {
    for kind in KINDS {
        let figure = Figure { kind, ..samples::stacked() };
        assert!(png(&svg(&figure)).unwrap().starts_with(b"\x89PNG"));
    }
}

fn any_points() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let value = prop_oneof![
        -5.0f64..40.0,
        proptest::num::f64::ANY,
        Just(1e300),
        Just(-1e300),
        Just(0.0),
        Just(f64::NAN),
        Just(f64::INFINITY)
    ];
    let x = prop_oneof![(0u8..12).prop_map(f64::from), proptest::num::f64::ANY];
    proptest::collection::vec((x, value), 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_numbers_make_a_sound_picture(
        kind in proptest::sample::select(&KINDS[..]),
        series in proptest::collection::vec((any_points(), any_points()), 0..4),
        (x_log, y_log, places, mark) in (any::<bool>(), any::<bool>(), 0usize..30, proptest::num::f64::ANY),
    ) {
        let axis = |log, places: usize| Axis {
            label: "l".into(),
            log,
            places: (places > 1).then(|| (0..places).map(|i| format!("place {i}")).collect()),
        };
        assert_sound(&Figure {
            name: "n".into(),
            title: "t".into(),
            caption: String::new(),
            kind,
            x: axis(x_log, places),
            y: axis(y_log, 0),
            series: series
                .into_iter()
                .enumerate()
                .map(|(i, (points, published))| Series { name: format!("s{i}"), points, published })
                .collect(),
            marks: vec![Mark { name: "m".into(), y: mark }],
        });
    }
}

#[test]
fn the_smallest_bar_of_a_logarithmic_axis_has_a_height() {
    let mut figure = samples::bars();
    figure.y.log = true;
    figure.marks.clear();
    figure.series =
        vec![Series { name: "s".into(), points: vec![(0.0, 2.0), (1.0, 2000.0)], published: vec![] }];
    let text = svg(&figure);
    let bar = text.split("<rect").find(|rect| rect.contains("hm_0: 2<")).unwrap();
    let height: f64 = bar.split(" height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    assert!(height > 10.0, "{bar}");
}
