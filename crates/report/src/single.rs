//! The summary of one run at the end of `planewise run`.

use crate::format::{self, ABSENT};
use crate::names;
use crate::table::{Style, Tone, header, paint};
use planewise_sim::results::{DirectionMetrics, Results, RunResult, Status};
use unicode_width::UnicodeWidthStr;

/// A readable summary of each run (usually the one run), ending in a newline.
pub fn single(results: &Results, style: Style) -> String {
    let mut out = header(results, style);
    if results.runs.is_empty() {
        out += "No run finished: nothing was measured.\n";
    }
    for (run, name) in results.runs.iter().zip(names::run_names(results)) {
        out.push('\n');
        out += &paint(&format::one_line(&name, 80), Tone::Strong, style);
        if run.status == Status::Interrupted {
            out += &paint("  cut short: the end of the trace was not reached", Tone::Worse, style);
        }
        out.push('\n');
        out += &paint(&latencies(run), Tone::Plain, style);
        out += &paint(&facts(run), Tone::Plain, style);
    }
    if results.status == Status::Interrupted {
        out += &paint("\ninterrupted: not everything asked for was run", Tone::Worse, style);
        out.push('\n');
    }
    out
}

/// A column per direction, a line per value: narrow enough for any terminal.
fn latencies(run: &RunResult) -> String {
    let metrics = &run.metrics;
    let requests =
        [metrics.requests.reads, metrics.requests.writes, metrics.requests.reads + metrics.requests.writes];
    let directions = [&metrics.read, &metrics.write, &metrics.all];
    let mut out = row("", ["read", "write", "all"].map(str::to_owned));
    out += &row("requests", requests.map(format::count));
    for (title, get) in ROWS {
        let mut cells = [const { String::new() }; 3];
        for (cell, (of, count)) in cells.iter_mut().zip(directions.iter().zip(requests)) {
            *cell = if count == 0 { ABSENT.to_owned() } else { get(of) };
        }
        out += &row(title, cells);
    }
    out
}

type Text = fn(&DirectionMetrics) -> String;

const ROWS: [(&str, Text); 13] = [
    ("latency mean", |of| format::time(of.latency_ns.mean)),
    ("  waiting", |of| format::time(of.waiting_ns.mean)),
    ("  processing", |of| format::time(of.processing_ns.mean)),
    ("    for a die", |of| format::time(of.die_wait_ns_mean)),
    ("    for a channel", |of| format::time(of.channel_wait_ns_mean)),
    ("p50", |of| format::time(of.latency_ns.p50 as f64)),
    ("p95", |of| format::time(of.latency_ns.p95 as f64)),
    ("p99", |of| format::time(of.latency_ns.p99 as f64)),
    ("p99.9", |of| format::time(of.latency_ns.p999 as f64)),
    ("p99.99", |of| format::time(of.latency_ns.p9999 as f64)),
    ("max", |of| format::time(of.latency_ns.max as f64)),
    ("IOPS", |of| format::rate(of.iops)),
    ("bandwidth", |of| format::bandwidth(of.bandwidth_bytes_per_s)),
];

fn row(title: &str, cells: [String; 3]) -> String {
    let mut line = format!("  {title:<18}");
    for cell in cells {
        line += &" ".repeat(11usize.saturating_sub(cell.width()));
        line += &cell;
    }
    line.trim_end().to_owned() + "\n"
}

fn facts(run: &RunResult) -> String {
    let metrics = &run.metrics;
    let used = &metrics.utilization;
    let units =
        [("chips", used.chip), ("dies", used.die), ("planes", used.plane), ("channels", used.channel)];
    let mut out = String::from("\n");
    let mut line = |title: &str, text: String| out += &format!("  {title:<16}{text}\n");
    line(
        "busy, pending",
        units.map(|(name, of)| format!("{name} {}", format::percent(of.active))).join("  "),
    );
    line("busy, all time", units.map(|(name, of)| format!("{name} {}", format::percent(of.wall))).join("  "));
    let conflict = &metrics.conflict;
    line(
        "conflicts",
        format!(
            "reads {}  writes {}",
            format::percent(conflict.read_share),
            format::percent(conflict.write_share)
        ),
    );
    let ahead = &metrics.prioritized;
    line(
        "went ahead",
        format!(
            "reads {}  write batches {}",
            format::percent(ahead.read_share),
            format::percent(ahead.write_batch_share)
        ),
    );
    let flash = &metrics.flash;
    line(
        "flash",
        format!(
            "{} reads  {} programs  {} erases",
            format::count(flash.reads),
            format::count(flash.programs),
            format::count(flash.erases)
        ),
    );
    let gc = &metrics.gc;
    line(
        "collections",
        format!(
            "{}  pages moved {}  write amplification {}",
            format::count(gc.collections),
            format::count(gc.pages_moved),
            format::three_digits(gc.write_amplification)
        ),
    );
    line(
        "window",
        format!(
            "{}  mean queue depth {}",
            format::time(metrics.duration_ns as f64),
            format::three_digits(metrics.mean_queue_depth)
        ),
    );
    for (name, checks) in &run.invariants {
        line("checked", format!("{} {} times", format::one_line(name, 40), format::count(*checks)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn one_run_shows_its_three_directions_within_eighty_columns() {
        let results = &samples::all()[1];
        let text = single(results, Style { width: Some(80), ..Style::default() });
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
        for word in ["noop", "p99.99", "340,000", "write amplification 1.18", "12.7"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }

    #[test]
    fn nothing_measured_is_said_and_does_not_look_like_zero() {
        let none = single(&samples::all()[2], Style::default());
        assert!(none.contains("No run finished"), "{none}");
        let empty = single(&samples::all()[6], Style::default());
        assert!(empty.lines().any(|line| line.contains("p99 ") && line.contains('–')), "{empty}");
    }
}
