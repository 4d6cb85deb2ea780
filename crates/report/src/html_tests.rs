use super::*;
use crate::samples;

/// Checks that every tag closes in order, and returns the names of all elements.
fn elements(page: &str) -> Vec<String> {
    const VOID: [&str; 3] = ["meta", "br", "!DOCTYPE"];
    let mut open: Vec<&str> = Vec::new();
    let mut seen = Vec::new();
    for part in page.split('<').skip(1) {
        let (tag, _) = part.split_once('>').unwrap_or_else(|| panic!("unclosed: {part}"));
        let name = tag.split([' ', '\n', '/']).find(|word| !word.is_empty()).unwrap_or_default();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closing {name}");
        } else {
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            seen.push(name.to_owned());
            if !tag.ends_with('/') && !VOID.contains(&name) {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    seen
}

#[test]
fn every_page_is_balanced_fetches_nothing_and_runs_nothing() {
    for results in samples::all() {
        let page = html(&results);
        let seen = elements(&page);
        for forbidden in ["script", "link", "img", "iframe", "object", "embed", "image", "foreignObject"] {
            assert!(!seen.iter().any(|name| name == forbidden), "{forbidden}");
        }
        for forbidden in ["http://", "https://", "@import", "src=", "href="] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        let drawn_from: Vec<&str> =
            page.split("url(").skip(1).filter(|rest| !rest.starts_with('#')).collect();
        assert!(drawn_from.is_empty(), "{drawn_from:?}");
    }
}

#[test]
fn no_page_shows_a_number_that_is_none() {
    for results in samples::all() {
        let page = html(&results);
        for word in [">NaN", "\"NaN", " NaN", "inf%", ">inf", "\"inf", "undefined", "none)"] {
            assert!(!page.contains(word), "{word}");
        }
    }
}

#[test]
fn markup_in_names_is_shown_not_obeyed() {
    let hostile =
        samples::all().into_iter().find(|results| results.setup.trace.name.contains("<script>")).unwrap();
    let page = html(&hostile);
    assert!(!page.contains("<script") && !page.contains("</title><script"), "markup passed through");
    assert!(page.contains("&lt;script&gt;"));
    assert!(page.contains("日本語"));
    assert!(!page.contains("\"onload="));
}

#[test]
fn the_page_tells_in_order_what_a_reader_looks_for() {
    let page = html(&samples::six_schedulers());
    let mut last = 0;
    for heading in [
        "In short",
        "Comparison",
        "Latency distributions",
        "Waiting and processing",
        "How busy the device was",
        "Conflicts and priorities",
        "Garbage collection",
        "All percentiles and throughput",
        "Flash operations",
        "Setup",
        "Device profile",
        "Reproduce",
    ] {
        let place = page.find(&format!(">{heading}</h")).unwrap_or_else(|| panic!("{heading}"));
        assert!(place > last, "{heading}");
        last = place;
    }
    assert_eq!(page.matches("<figure>").count(), 14);
    // Collections of this sample met no request.
    assert_eq!(page.matches("class=\"plot\"").count(), 13);
    assert!(page.contains("af1349b9f5f9a1a6") && page.contains("planewise compare \\"));
}

#[test]
fn an_interrupted_run_has_a_banner_and_a_complete_one_has_none() {
    let mut results = samples::six_schedulers();
    assert!(!html(&results).contains("class=\"banner\""));
    results.status = Status::Interrupted;
    results.runs[3].status = Status::Interrupted;
    let page = html(&results);
    assert!(page.contains("class=\"banner\"") && page.contains("Cut short: piq_w."));
}

#[test]
fn a_direction_without_requests_has_words_instead_of_plots() {
    let mut results = samples::six_schedulers();
    for run in &mut results.runs {
        run.metrics.requests.writes = 0;
        run.metrics.write = DirectionMetrics::default();
    }
    let page = html(&results);
    assert_eq!(page.matches("class=\"plot\"").count(), 9);
    assert_eq!(page.matches("No such request completed.").count(), 4);
}

#[test]
fn the_same_results_give_the_same_bytes_and_the_page_stays_small() {
    for results in samples::all() {
        let page = html(&results);
        assert_eq!(page, html(&results));
        assert!(page.len() < 600_000, "{} bytes", page.len());
    }
}

#[test]
fn every_colour_has_a_value_in_light_in_dark_and_in_print() {
    let style = include_str!("../templates/report.css");
    let used: std::collections::BTreeSet<&str> =
        style.split("var(").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
    assert!(used.len() > 15);
    for name in used {
        assert_eq!(style.matches(&format!("{name}: #")).count(), 3, "{name}");
    }
}

#[test]
fn collections_have_their_section_with_cost_by_part_and_the_bound_is_marked() {
    let page = html(&samples::collections());
    assert!(page.contains("5 garbage collection schemes on piq-128g"), "title");
    for part in ["gc-read", "gc-transfer", "gc-program", "gc-erase"] {
        assert_eq!(page.matches(&format!("class=\"{part}\"")).count(), 5, "{part}");
    }
    assert!(page.contains("idle_chip: 6.82 ms programs of valid pages"), "tooltip");
    assert!(page.contains("<span class=\"tag\">bound</span>"));
    let mut results = samples::six_schedulers();
    for run in &mut results.runs {
        run.metrics.gc = Default::default();
    }
    assert!(!html(&results).contains(">Garbage collection</h"));
}

#[test]
fn a_sweep_begins_with_its_figure_and_shows_the_distributions_of_its_last_value_in_the_same_colours() {
    let mut results = samples::sweep();
    results.setup.trace.format = "workload".to_owned();
    let page = html(&results);
    let (figure, table) =
        (page.find("Throughput over the sweep").unwrap(), page.find(">Comparison<").unwrap());
    assert!(figure < table && page.contains(", workload ") && !page.contains(", trace "));
    assert!(page.contains("Latency of reads at threads 16, the last of the sweep"));
    let curves: Vec<&str> = page.split("one curve per run").collect();
    // Of the six runs, only the two of the last value are drawn.
    let drawn = curves[1].split("</svg>").next().unwrap();
    assert!(drawn.contains("threads 16") && !drawn.contains("threads 4"), "{drawn}");
    assert!(drawn.contains("curve s0") && drawn.contains("curve s1") && !drawn.contains("curve s2"));
    assert!(page.contains("<h3>By job</h3>"));
    let more = results.runs[0].closed_loop.as_ref().unwrap().jobs[0].clone();
    results.runs.iter_mut().for_each(|run| {
        run.closed_loop.as_mut().unwrap().jobs.resize(7, more.clone());
    });
    let page = html(&results);
    assert!(!page.contains("<h3>By job</h3>") && page.contains("there would be 42 rows"));
}
