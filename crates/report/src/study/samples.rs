//! Made-up studies of every form for the tests: numbers without a meaning.

use planewise_study::outcome::*;

fn axis(label: &str, log: bool, places: Option<&[&str]>) -> Axis {
    let places = places.map(|places| places.iter().map(|place| (*place).to_owned()).collect());
    Axis { label: label.to_owned(), log, places }
}

fn series(name: &str, points: Vec<(f64, f64)>, published: Vec<(f64, f64)>) -> Series {
    Series { name: name.to_owned(), points, published }
}

fn figure(name: &str, title: &str, kind: FigureKind, x: Axis, y: Axis, series: Vec<Series>) -> Figure {
    Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        caption: String::new(),
        kind,
        x,
        y,
        series,
        marks: Vec::new(),
    }
}

const VOLUMES: [&str; 16] = [
    "hm_0", "hm_1", "prn_0", "prn_1", "proj_0", "proj_3", "proj_4", "prxy_0", "rsrch_0", "src1_2", "src2_0",
    "stg_0", "ts_0", "usr_0", "wdev_0", "mean",
];

/// A number of 0 to 1 that looks like chance.
fn chance(seed: usize) -> f64 {
    ((seed * 7919 + 104_729) % 1009) as f64 / 1009.0
}

/// Sixteen groups of four, with published values, a gap and two marks.
pub fn bars() -> Figure {
    let of = |index: usize, name: &str, level: f64| {
        let value = |place: usize| level + 0.5 * (chance(place * 5 + index) - 0.5);
        let points =
            (0..16).filter(|place| (index, *place) != (2, 4)).map(|place| (place as f64, value(place)));
        let published = [0, 9, 13, 15].map(|place| (place as f64, value(place) * 1.1));
        series(name, points.collect(), if index < 2 { published.into() } else { Vec::new() })
    };
    let all = vec![of(0, "RWS", 0.85), of(1, "PIQ_R", 0.6), of(2, "PIQ_W", 0.95), of(3, "PIQ", 0.58)];
    let mut figure = figure(
        "read-latency",
        "Read latency over NOOP",
        FigureKind::Bars,
        axis("volume", false, Some(&VOLUMES)),
        axis("read latency over NOOP", false, None),
        all,
    );
    figure.caption = "Below 1 the scheduler is faster than NOOP; hm_0 gains most.".to_owned();
    figure.marks = vec![
        Mark { name: "published mean of PIQ".to_owned(), y: 0.583 },
        Mark { name: "NOOP".to_owned(), y: 1.0 },
    ];
    figure
}

/// Throughput over powers of two, with published points.
pub fn lines() -> Figure {
    let depths = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    let of = |name: &str, most: f64, half: f64, published: bool| {
        let value = |depth: f64| most * depth / (depth + half);
        let points: Vec<(f64, f64)> = depths.map(|depth| (depth, value(depth))).into();
        let given = points.iter().map(|(x, y)| (*x, y * 0.93)).collect();
        series(name, points, if published { given } else { Vec::new() })
    };
    figure(
        "throughput",
        "Throughput over queue depth",
        FigureKind::Lines,
        axis("queue depth", true, None),
        axis("MB/s", false, None),
        vec![
            of("sequential reads", 280.0, 0.8, true),
            of("random reads", 240.0, 3.0, true),
            of("sequential writes", 170.0, 0.2, false),
            of("random writes", 60.0, 0.5, false),
        ],
    )
}

/// Lines over places, one of them with a gap.
pub fn place_lines() -> Figure {
    let places = ["0 %", "7 %", "15 %", "25 %", "50 %"];
    let of = |index: usize, name: &str| {
        let points = (0..5).filter(|place| (index, *place) != (1, 2));
        series(
            name,
            points.map(|place| (place as f64, 1.0 + chance(place * 3 + index) * 40.0)).collect(),
            Vec::new(),
        )
    };
    figure(
        "over-provisioning",
        "Collections per thousand writes",
        FigureKind::Lines,
        axis("over-provisioning", false, Some(&places)),
        axis("collections per 1000 writes", true, None),
        vec![of(0, "greedy"), of(1, "cost-benefit"), of(2, "PaGC")],
    )
}

/// Parts on top of one another.
pub fn stacked() -> Figure {
    let of = |index: usize, name: &str, published: Vec<(f64, f64)>| {
        series(
            name,
            (0..6).map(|place| (place as f64, 2.0 + chance(place * 7 + index) * 6.0)).collect(),
            published,
        )
    };
    figure(
        "cost",
        "What a collection costs",
        FigureKind::Stacked,
        axis("volume", false, Some(&VOLUMES[..6])),
        axis("ms per collection", false, None),
        vec![
            of(0, "valid page reads", vec![(0.0, 3.0), (1.0, 5.0)]),
            of(1, "valid page writes", vec![(0.0, 4.5), (1.0, 3.0)]),
            of(2, "erase", vec![(0.0, 2.0)]),
        ],
    )
}

/// Cumulative distributions of three schemes.
pub fn distribution() -> Figure {
    let of = |name: &str, base: f64| {
        let points = (1..=400).map(|i| {
            let share = f64::from(i) / 400.0;
            (base * (1.0 - share * 0.9995).powf(-0.7), share)
        });
        series(name, points.collect(), vec![(base * 1.7, 0.5)])
    };
    figure(
        "distribution",
        "Latency of reads",
        FigureKind::Distribution,
        axis("latency, µs", true, None),
        axis("share of reads at least that fast", true, None),
        vec![of("NOOP", 300.0), of("deadline", 240.0), of("PIQ", 130.0)],
    )
}

fn check(
    claim: &str,
    what: &str,
    numbers: (&str, &str),
    values: (f64, f64),
    verdict: Option<Verdict>,
) -> Check {
    Check {
        claim: (!claim.is_empty()).then(|| claim.to_owned()),
        what: what.to_owned(),
        published: numbers.0.to_owned(),
        measured: numbers.1.to_owned(),
        published_value: values.0.is_finite().then_some(values.0),
        measured_value: values.1.is_finite().then_some(values.1),
        verdict,
        in_linux: None,
        why: Vec::new(),
    }
}

fn study(id: &str, paper: Paper, title: &str, figure: &str) -> Outcome {
    Outcome {
        id: id.to_owned(),
        title: title.to_owned(),
        paper,
        figure: figure.to_owned(),
        section: "V.B".to_owned(),
        about: vec![
            "Fifteen volumes are replayed on the same device under each scheduler; bars are means over NOOP.".to_owned(),
            "Queues hold 128 requests; nothing is collected.".to_owned(),
        ],
        size: Size::Quick,
        variables: vec![("requests".to_owned(), "200000".to_owned()), ("warm-up".to_owned(), "10 %".to_owned())],
        sources: vec!["hm_0 … wdev_0: look-alikes made from Table II".to_owned()],
        checks: Vec::new(),
        figures: Vec::new(),
        tables: Vec::new(),
        commands: vec![RunSet {
            name: "replay".to_owned(),
            command: "planewise compare --trace {volume} --device piq-128g --schedulers noop,rws,piq_r,piq_w,piq --requests 200000".to_owned(),
            over: vec![("volume".to_owned(), "hm_0, hm_1, prn_0, prn_1, proj_0, proj_3, proj_4, prxy_0".to_owned())],
            cells: 15,
        }],
        runs: 75,
        overloaded: Vec::new(),
    }
}

/// Studies of three papers with every form of figure and every verdict, and one without anything.
pub fn outcomes() -> Vec<Outcome> {
    use Verdict::{Direction, Fails, Holds};
    let mut piq =
        study("piq-fig8", Paper::Piq, "Read and write latency of PIQ and its parts", "Figures 8 to 11");
    piq.checks = vec![
        check(
            "piq.fig8.piq_r",
            "read latency of PIQ_R over NOOP, mean",
            ("0.583", "0.612"),
            (0.583, 0.612),
            Some(Holds),
        ),
        check(
            "piq.fig8.piq_r",
            "read waiting of PIQ_R over NOOP, mean",
            ("0.487", "0.301"),
            (0.487, 0.301),
            Some(Direction),
        ),
        check(
            "piq.fig8.piq_w",
            "write latency of PIQ_W over NOOP, mean",
            ("0.663", "0.701"),
            (0.663, 0.701),
            Some(Holds),
        ),
        check(
            "piq.fig8.rws",
            "volumes with fewer than 10 % of reads prioritized",
            ("13 of 15", "14 of 15"),
            (13.0, 14.0),
            Some(Holds),
        ),
        check("piq.fig8.hm", "read latency of RWS on hm_0", ("29 %", "104 %"), (0.29, 1.04), Some(Fails)),
        check("", "reads that PIQ moves ahead", (crate::format::ABSENT, "18.2 %"), (f64::NAN, 0.182), None),
    ];
    piq.checks[1].why = vec![
        "The look-alikes have fewer requests in the queue than the volumes had: with arrivals compressed twice the ratio is 0.46.".to_owned(),
    ];
    piq.checks[4].why = vec![
        "hm_0's reads come in bursts; the look-alike spreads them.".to_owned(),
        "With the real volume the ratio is 0.41: see `--trace-dir`.".to_owned(),
    ];
    piq.figures = vec![bars(), distribution()];
    piq.tables = vec![Table {
        name: "volumes".to_owned(),
        title: "Means by volume".to_owned(),
        columns: ["volume", "NOOP, µs", "PIQ, µs"].map(String::from).into(),
        rows: (0..15)
            .map(|i| {
                (
                    VOLUMES[i].to_owned(),
                    vec![Some(900.0 + 100.0 * chance(i)), (i != 3).then(|| 500.0 * chance(i))],
                )
            })
            .collect(),
        digits: 1,
    }];
    let mut chen =
        study("chen-fig2", Paper::Chen, "Throughput over the size and number of requests", "Figure 2");
    chen.checks = vec![
        check(
            "chen.fig2.reads",
            "random reads of 4 KiB at 32 jobs",
            ("154 MB/s", "151 MB/s"),
            (154.0, 151.0),
            Some(Holds),
        ),
        check(
            "chen.fig2.writes",
            "random writes of 4 KiB at 32 jobs",
            ("27 MB/s", "44 MB/s"),
            (27.0, 44.0),
            Some(Direction),
        ),
    ];
    chen.figures = vec![lines()];
    let mut gc = study("gc-fig13", Paper::Gc, "Collections and what they cost", "Figures 13 and 14");
    gc.checks =
        vec![check("gc.fig13", "latency over the baseline", ("0.741", "0.733"), (0.741, 0.733), Some(Holds))];
    gc.figures = vec![stacked(), place_lines()];
    let mut empty = study("analysis-peak", Paper::Analysis, "Peak throughput equals its formula", "");
    empty.section.clear();
    empty.checks = vec![check("analysis.peak", "reads, MB/s", ("400", "400"), (400.0, 400.0), Some(Holds))];
    vec![piq, chen, gc, empty]
}
