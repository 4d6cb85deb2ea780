use super::*;
use crate::samples;

#[test]
fn six_schedulers_fit_120_columns_and_every_line_is_aligned() {
    let text = comparison(&samples::six_schedulers(), Style { width: Some(120), ..Style::default() });
    assert!(text.lines().all(|line| line.width() <= 120), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.ends_with('%')).collect();
    assert_eq!(rows.len(), 6, "{text}");
    assert!(rows.iter().all(|row| row.width() == rows[0].width()), "{text}");
    assert!(text.contains("×0.62") && text.contains("baseline: rws"), "{text}");
    for word in ["piq-128g", "fin1", "1,000,000 requests", "blocking", "aged 84/10/6"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn what_has_to_be_known_of_a_run_is_said_below_the_table_in_the_summary_and_on_the_page() {
    let mut results = samples::six_schedulers();
    let note = "region_size of 4 GiB is more than the device's 1 GiB: all of it is one region";
    results.runs[1].notes.push(note.to_owned());
    let lines = format!("{}: {note}", results.runs[1].labels.scheduler);
    let table = comparison(&results, Style::default());
    assert!(table.contains(&lines), "{table}");
    assert_eq!(crate::single(&results, Style::default()).matches(note).count(), 1);
    assert_eq!(crate::html(&results).matches("all of it is one region").count(), 1);
}

#[test]
fn the_row_of_the_baseline_says_one() {
    let text = comparison(&samples::six_schedulers(), Style::default());
    let row = text.lines().find(|line| line.starts_with("rws")).unwrap();
    assert_eq!(row.matches("×1.00").count(), 4, "{row}");
}

#[test]
fn any_width_is_kept_down_to_fifty_two_columns() {
    for results in samples::all() {
        for width in [52, 60, 80, 100, 120, 200] {
            let text = comparison(&results, Style { width: Some(width), ..Style::default() });
            let mut body = text.lines().filter(|line| {
                !line.contains("baseline:")
                    && !line.contains("cut short")
                    && !line.contains("condition")
                    && !line.starts_with("trace ")
            });
            assert!(body.all(|line| line.width() <= width), "{width}\n{text}");
        }
    }
}

#[test]
fn plain_ascii_has_no_other_character_and_no_escape() {
    for results in samples::all() {
        for width in [None, Some(60)] {
            let style = Style { ascii: true, color: false, width };
            for text in [comparison(&results, style), crate::single(&results, style)] {
                assert!(text.is_ascii() && !text.contains('\u{1b}'), "{text}");
            }
        }
    }
}

#[test]
fn no_escape_sequence_of_a_name_reaches_the_terminal() {
    for results in samples::all() {
        let text = comparison(&results, Style::default()) + &crate::single(&results, Style::default());
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
    }
}

#[test]
fn colour_changes_no_character_of_the_text() {
    let results = samples::six_schedulers();
    let plain = comparison(&results, Style::default());
    let mut coloured = comparison(&results, Style { color: true, ..Style::default() });
    assert!(coloured.contains("\u{1b}[32m"));
    for code in ["0", "1", "2", "31", "32"] {
        coloured = coloured.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_eq!(coloured, plain);
}

#[test]
fn a_direction_without_requests_has_dashes_instead_of_times() {
    let mut results = samples::six_schedulers();
    for run in &mut results.runs {
        run.metrics.requests.reads = 0;
        run.metrics.read = DirectionMetrics::default();
    }
    let text = comparison(&results, Style::default());
    let row = text.lines().find(|line| line.starts_with("piq ")).unwrap();
    assert!(row.matches('–').count() >= 6 && !row.contains("0 ns"), "{row}");
}

#[test]
fn differing_labels_become_columns_and_an_interrupted_run_is_marked() {
    let mut results = samples::six_schedulers();
    results.runs[2].labels.level = "chip".to_owned();
    results.runs[3].status = Status::Interrupted;
    results.status = Status::Interrupted;
    let text = comparison(&results, Style { width: Some(130), ..Style::default() });
    assert!(text.contains("level") && text.contains("piq_w*") && text.contains("cut short (*)"), "{text}");
    assert!(text.contains("interrupted: "), "{text}");
}

#[test]
fn a_table_too_wide_first_drops_waiting_and_says_so_then_becomes_paragraphs() {
    let results = samples::six_schedulers();
    let at = |width| comparison(&results, Style { width: Some(width), ..Style::default() });
    assert!(at(112).contains("waiting, mean") && !at(112).contains("left out"));
    assert!(!at(100).contains("waiting, mean") && at(100).contains("left out for width: waiting times"));
    let narrow = at(60);
    assert!(narrow.contains("waiting 942 µs") || narrow.contains("waiting  942 µs"), "{narrow}");
    assert!(!narrow.contains("left out"), "{narrow}");
}

#[test]
fn runs_that_differ_in_collection_have_a_second_table_and_others_have_none() {
    let results = samples::collections();
    let text = comparison(&results, Style { width: Some(120), ..Style::default() });
    assert!(text.contains("garbage collection\n") && text.contains("scheduler noop"), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("idle_chip")).collect();
    assert_eq!(rows.len(), 2, "{text}");
    for word in ["10,915", "22.1", "48.6%", "17.7%", "10.3 ms ×0.60", "7.4%", "8.55 ms ×0.45", "1.51", "7"]
    {
        assert!(rows[1].contains(word), "{word}: {}", rows[1]);
    }
    let bound = text.lines().filter(|line| line.starts_with("gc_free")).nth(1).unwrap();
    assert!(bound.contains("0 ns") && bound.contains("0.0%        –     –"), "{bound}");
    assert!(text.contains("bound, no device does it: gc_free"), "{text}");
    assert!(!comparison(&samples::six_schedulers(), Style::default()).contains("garbage collection\n"));
}

#[test]
fn a_narrow_collection_table_leaves_out_what_is_missed_least_and_then_becomes_paragraphs() {
    let results = samples::collections();
    let at = |width| comparison(&results, Style { width: Some(width), ..Style::default() });
    assert!(at(118).contains("wear") && !at(118).contains("left out"), "{}", at(118));
    let less = "left out for width: waiting times\nleft out for width: erases, wear\n";
    assert!(at(100).contains(less), "{}", at(100));
    let narrow = at(54);
    assert!(narrow.contains("  buffered        48.6%  idle            17.7%"), "{narrow}");
    assert!(!narrow.contains("left out"), "{narrow}");
}
