//! The summary of one run at the end of `planewise run`.

use crate::commands;
use crate::format::{self, ABSENT};
use crate::names;
use crate::outside;
use crate::overload;
use crate::table::{Style, Tone, header, paint};
use planewise_model::words;
use planewise_sim::results::{DirectionMetrics, GcMetrics, PowerLoss, Results, RunResult, Status};
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
        if let Some(failure) = run.target.as_ref().and_then(|target| target.failure.as_ref()) {
            out += &paint(&format!("  {}\n", format::one_line(failure, 200)), Tone::Worse, style);
        }
        if let Some(unfaithful) = outside::unfaithful(run) {
            out += &paint(&format!("  {unfaithful}\n"), Tone::Worse, style);
        }
        for note in &run.notes {
            out += &paint(&format!("  {}\n", format::one_line(note, 200)), Tone::Plain, style);
        }
        if let Some(how_far) = overload::overloaded(run) {
            out += &paint(&format!("  overloaded: {how_far}\n"), Tone::Worse, style);
            let remedy = overload::remedy(results).unwrap_or_default();
            out += &paint(&format!("  {remedy}\n"), Tone::Worse, style);
        }
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
    for (title, get) in ROWS.iter().filter(|(title, _)| run.target.is_none() || !INSIDE.contains(title)) {
        let mut cells = [const { String::new() }; 3];
        for (cell, (of, count)) in cells.iter_mut().zip(directions.iter().zip(requests)) {
            *cell = if count == 0 { ABSENT.to_owned() } else { get(of) };
        }
        out += &row(title, cells);
    }
    out
}

type Text = fn(&DirectionMetrics) -> String;

/// Rows about what only a simulator sees.
const INSIDE: [&str; 2] = ["    for a die", "    for a channel"];

const ROWS: [(&str, Text); 14] = [
    ("latency mean", |of| format::time(of.latency_ns.mean)),
    ("  waiting", |of| format::time(of.waiting_ns.mean)),
    ("  processing", |of| format::time(of.processing_ns.mean)),
    ("    for a die", |of| format::time(of.die_wait_ns_mean)),
    ("    for a channel", |of| format::time(of.channel_wait_ns_mean)),
    ("deviation", |of| format::time(of.latency_ns.deviation)),
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
    let is_outside = run.target.is_some();
    if let Some(target) = outside::target(run) {
        line("target", target);
    }
    if let Some(dependent) = &run.dependent {
        line("dependent", overload::kept(dependent));
    }
    if let Some(replay) = &run.replay {
        line("lateness", outside::lateness(run, replay));
    }
    for (index, change) in outside::changes(run).into_iter().enumerate() {
        line(if index == 0 { "of requests" } else { "" }, change);
    }
    if !is_outside {
        let busy = units.map(|(name, of)| format!("{name} {}", format::percent(of.active)));
        line("busy, pending", busy.join("  "));
        let busy = units.map(|(name, of)| format!("{name} {}", format::percent(of.wall)));
        line("busy, all time", busy.join("  "));
    }
    let conflict = &metrics.conflict;
    if outside::knows_conflicts(run) {
        let (reads, writes) = (format::percent(conflict.read_share), format::percent(conflict.write_share));
        line("conflicts", format!("reads {reads}  writes {writes}"));
    }
    let ahead = &metrics.prioritized;
    line(
        "went ahead",
        format!(
            "reads {}  write batches {}",
            format::percent(ahead.read_share),
            format::percent(ahead.write_batch_share)
        ),
    );
    for (title, words) in commands::completed(run) {
        line(title, words);
    }
    let flash = &metrics.flash;
    if !is_outside {
        let counts = [flash.reads, flash.programs, flash.erases].map(format::count);
        let [reads, programs, erases] = counts;
        line("flash", format!("{reads} reads  {programs} programs  {erases} erases"));
        if flash.read_modify_writes > 0 {
            line(
                "",
                format!("{} of the reads for pages written in part", format::count(flash.read_modify_writes)),
            );
        }
    }
    line(
        "window",
        format!(
            "{}  mean queue depth {}",
            format::time(metrics.duration_ns as f64),
            format::three_digits(metrics.mean_queue_depth)
        ),
    );
    line(
        "issued",
        format!(
            "{} merged  {} switches of direction",
            format::count(metrics.requests.merged),
            format::count(metrics.direction_switches)
        ),
    );
    if metrics.fairness.processes > 1 {
        line(
            "fairness",
            format!(
                "{:.3} of bandwidth  {:.3} of latency  {} processes",
                metrics.fairness.bandwidth,
                metrics.fairness.latency,
                format::count(metrics.fairness.processes.into())
            ),
        );
    }
    if metrics.gc.collections > 0 {
        let labels = &run.labels;
        let buffer = match metrics.gc.buffer.occupancy_max {
            0 => String::new(),
            _ => format!("  buffer {} pages", labels.buffer_pages),
        };
        line(
            "scheme",
            format!(
                "{}  victims {}{buffer}",
                format::one_line(&labels.gc, 20),
                format::one_line(&labels.victims, 14)
            ),
        );
    }
    if !is_outside {
        for (title, text) in collection(&metrics.gc) {
            line(title, text);
        }
    }
    for (name, checks) in &run.invariants {
        line("checked", format!("{} {} times", format::one_line(name, 40), format::count(*checks)));
    }
    out
}

/// Garbage collection: a line for each thing that there was.
fn collection(gc: &GcMetrics) -> Vec<(&'static str, String)> {
    let count = format::count;
    let time = format::time;
    let mut lines = vec![(
        "collections",
        format!(
            "{}  pages moved {}  write amplification {}",
            count(gc.collections),
            count(gc.pages_moved),
            format::three_digits(gc.write_amplification)
        ),
    )];
    if gc.collections > 0 {
        lines.push((
            "  each",
            format!(
                "moves {} pages for {} written  begins idle {}",
                format::three_digits(gc.moved_per_collection),
                format::three_digits(gc.host_pages_per_collection),
                format::percent(gc.idle_share)
            ),
        ));
        let cost = &gc.cost;
        lines.push((
            "  on its chip",
            format!(
                "{}: read {}  transfer {}  program {}",
                time(cost.total_ns),
                time(cost.read_ns),
                time(cost.transfer_ns),
                time(cost.program_ns),
            ),
        ));
        lines.push((
            "",
            format!(
                "erase {}  elsewhere {}  begin to end {}",
                time(cost.erase_ns),
                time(cost.elsewhere_ns),
                time(cost.span_ns)
            ),
        ));
        let met = &gc.conflicts;
        lines.push((
            "  met by",
            format!(
                "{} reads  {} writes, {} of requests",
                count(met.reads),
                count(met.writes),
                format::percent(met.share)
            ),
        ));
        if met.reads + met.writes > 0 {
            lines.push((
                "",
                format!(
                    "took {}, p99 {} (reads {}, writes {})",
                    time(met.latency_ns.mean),
                    time(met.latency_ns.p99 as f64),
                    some_time(met.reads, met.read_latency_ns_mean),
                    some_time(met.writes, met.write_latency_ns_mean)
                ),
            ));
        }
        let [chips, at_start] = [gc.idle_chip_share, gc.idle_chip_share_at_start].map(format::percent);
        lines.push(("", format!("chips idle {chips}, {at_start} at the start")));
        if met.new + met.avoided > 0 {
            let [avoided, new] = [met.avoided, met.new].map(count);
            lines.push(("", format!("conflicts avoided {avoided}, made {new}")));
        }
    }
    lines.extend(means_of_schemes(gc));
    if gc.erases > 0 {
        let cold = match gc.wear_collections {
            0 => String::new(),
            cold => format!("  {} cold blocks moved", count(cold)),
        };
        let text =
            format!("{} erases  spread of a block's {}{cold}", count(gc.erases), count(gc.wear_spread));
        lines.push(("wear", text));
    }
    lines.extend(gc.power_loss.iter().flat_map(power_loss));
    lines
}

/// Buffer, replicas, suspensions: only where they were used.
fn means_of_schemes(gc: &GcMetrics) -> Vec<(&'static str, String)> {
    let count = format::count;
    let time = format::time;
    let mut lines = Vec::new();
    let buffer = &gc.buffer;
    if buffer.occupancy_max > 0 {
        lines.push((
            "buffer",
            format!(
                "{} of moves  served {} reads  absorbed {} writes",
                format::percent(gc.buffered_share),
                count(buffer.reads_served),
                count(buffer.writes_absorbed)
            ),
        ));
        lines.push((
            "",
            format!(
                "{} written back after {} (longest {})",
                count(buffer.written_back),
                some_time(buffer.written_back, buffer.residency_ns_mean),
                some_time(buffer.written_back, buffer.residency_ns_max as f64)
            ),
        ));
        lines.push((
            "",
            format!(
                "mean {} pages  most {}",
                format::three_digits(buffer.occupancy_mean),
                count(u64::from(buffer.occupancy_max))
            ),
        ));
        lines.push((
            "",
            format!(
                "flush of the most {}, by formula (1) {}",
                time(buffer.flush_ns as f64),
                time(buffer.flush_formula_ns as f64)
            ),
        ));
    }
    let replicas = &gc.replicas;
    if replicas.created > 0 {
        lines.push((
            "replicas",
            format!(
                "{} written  {} reads redirected  most {}",
                count(replicas.created),
                count(replicas.reads_redirected),
                count(u64::from(replicas.most))
            ),
        ));
        lines.push((
            "",
            format!(
                "dropped {} on writes, {} for space",
                count(replicas.dropped_on_write),
                count(replicas.dropped_for_space)
            ),
        ));
    }
    if gc.suspensions > 0 {
        lines.push(("suspended", format!("{} programs and erases for a read", count(gc.suspensions))));
    }
    lines
}

/// What a power cut found.
fn power_loss(cut: &PowerLoss) -> Vec<(&'static str, String)> {
    let count = format::count;
    let unflushed = match cut.unflushed_pages {
        0 => String::new(),
        pages => format!(", lost because nobody flushed them {}", count(pages)),
    };
    vec![
        (
            "power cut",
            format!(
                "at {}  unacknowledged requests lost {}",
                format::time(cut.at_ns as f64),
                count(cut.requests_lost)
            ),
        ),
        (
            "",
            format!(
                "torn: {} {}, {} {}",
                count(cut.torn_pages),
                words::of(cut.torn_pages, "program"),
                count(cut.torn_blocks),
                words::of(cut.torn_blocks, "erase")
            ),
        ),
        (
            "",
            format!(
                "flush of {} buffered pages {}, by formula (1) {}",
                count(u64::from(cut.buffered_pages)),
                format::time(cut.flush_ns as f64),
                format::time(cut.flush_formula_ns as f64)
            ),
        ),
        (
            "",
            format!(
                "recovered {} pages, acknowledged pages lost {}{unflushed}",
                count(cut.recovered_pages),
                count(cut.lost_pages)
            ),
        ),
    ]
}

/// A time of so many things; nothing where there were none.
fn some_time(count: u64, ns: f64) -> String {
    if count == 0 { ABSENT.to_owned() } else { format::time(ns) }
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
    fn collection_shows_what_there_was_and_a_power_cut_what_it_left_within_eighty_columns() {
        let text = single(&samples::power_cut(), Style { width: Some(80), ..Style::default() });
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
        for word in [
            "moves 22.1 pages for 43.5 written  begins idle 17.7%",
            "idle_chip  victims greedy  buffer 128 pages",
            "spread of a block's 7  12 cold blocks moved",
            "10.3 ms: read 663 µs  transfer 1.37 ms  program 6.82 ms",
            "erase 1.50 ms  elsewhere 6.88 ms",
            "48.6% of moves  served 1,930 reads  absorbed 402 writes",
            "mean 12.7 pages  most 128",
            "flush of the most 1.29 ms",
            "at 12.5 s  unacknowledged requests lost 34",
            "torn: 7 programs, 1 erase",
            "flush of 96 buffered pages 1.29 ms, by formula (1) 646 µs",
            "recovered 28,180,480 pages, acknowledged pages lost 0",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(!text.contains("replicas"), "{text}");
        let mut of_each = samples::collections();
        of_each.runs.swap(0, 2);
        of_each.runs.truncate(1);
        let dpr = single(&of_each, Style::default());
        assert!(dpr.contains("40,113 written  9,120 reads redirected") && !dpr.contains("buffer"), "{dpr}");
    }

    #[test]
    fn nothing_measured_is_said_and_does_not_look_like_zero() {
        let none = single(&samples::all()[2], Style::default());
        assert!(none.contains("No run finished"), "{none}");
        let empty = single(&samples::all()[6], Style::default());
        assert!(empty.lines().any(|line| line.contains("p99 ") && line.contains('–')), "{empty}");
    }
}
