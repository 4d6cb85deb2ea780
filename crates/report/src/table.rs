//! The one table at the end of a comparison: a row per run, ratios to the baseline beside every mean.

use crate::format::{self, ABSENT, NEGLIGIBLE};
use crate::names;
use planewise_sim::results::{DirectionMetrics, Results, RunResult, Status};
use unicode_width::UnicodeWidthStr;

/// How to write for a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Emphasis by ANSI escape sequences.
    pub color: bool,
    /// ASCII only: `us`, `x0.58`, `-`; other characters in names become `?`.
    pub ascii: bool,
    /// Columns of the terminal; none when the output is not one, and lines may be as long as they need.
    pub width: Option<usize>,
}

/// What a cell says about its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Better,
    Worse,
    Faint,
}

/// Text with its tone.
#[derive(Clone, Debug)]
struct Cell(String, Tone);

/// A column: its group (empty for none), its title, whether it hugs the column before it, and its cells.
struct Column {
    group: &'static str,
    title: String,
    left: bool,
    glued: bool,
    cells: Vec<Cell>,
}

/// Group of the columns that a narrow terminal can do without.
const WAITING: &str = "waiting, mean";
/// Longest name a row shows before it is cut.
const NAME_CELLS: usize = 24;

/// The comparison of all runs as text, ending in a newline: a header, a row per run, and which row is the baseline.
///
/// When the table is wider than `style.width`, it leaves out the waiting times and says so; when it still is, each run becomes a
/// short paragraph with everything.
pub fn comparison(results: &Results, style: Style) -> String {
    let mut out = header(results, style);
    if results.runs.is_empty() {
        out += "No run finished: nothing to compare.\n";
        return out;
    }
    let fits = |table: &Lines| style.width.is_none_or(|width| table.width <= width);
    let mut columns = columns(results);
    let mut table = table_lines(&columns, style);
    let mut left_out = None;
    if !fits(&table) {
        columns.retain(|column| column.group != WAITING);
        table = table_lines(&columns, style);
        left_out = Some("left out for width: waiting times");
    }
    out.push('\n');
    if fits(&table) {
        out += &table.text;
    } else {
        out += &stacked(results, style);
        left_out = None;
    }
    out.push('\n');
    out += &footer(results, left_out, style);
    out
}

/// Device, trace, requests, command queue and condition, wrapped to the width.
pub(crate) fn header(results: &Results, style: Style) -> String {
    let mut items = Vec::new();
    let differing: Vec<String> =
        names::distinctions(results).into_iter().map(|column| column.title).collect();
    let mut item = |title: &str, value: Option<&str>| {
        let several = differing.iter().any(|other| other == title);
        if let Some(value) = value {
            let value = if several { "several".to_owned() } else { format::one_line(value, 60) };
            items.push(format!("{title} {value}"));
        }
    };
    let first = results.runs.first();
    item("device", first.map(|run| run.labels.device.as_str()));
    item("condition", Some(&results.setup.condition));
    item("trace", Some(&results.setup.trace.name));
    let requests = first.map(|run| format::count(run.metrics.requests.completed));
    item("command queue", first.map(|run| run.labels.command_queue.as_str()));
    if let Some(requests) = requests {
        items.insert(items.len() - 1, format!("{requests} requests"));
    }
    wrap(&items, style)
}

/// Joins items with dots, breaking lines at the width.
fn wrap(items: &[String], style: Style) -> String {
    let limit = style.width.unwrap_or(usize::MAX);
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if line.width() + 3 + item.width() <= limit => *line += &format!(" · {item}"),
            _ => lines.push(item.clone()),
        }
    }
    lines.iter().map(|line| paint(line, Tone::Plain, style) + "\n").collect()
}

fn footer(results: &Results, left_out: Option<&str>, style: Style) -> String {
    let names = names::run_names(results);
    let mut lines = Vec::new();
    match names.get(results.baseline) {
        Some(name) => lines
            .push(format!("baseline: {} (× is the value over the baseline's)", format::one_line(name, 60))),
        None => lines.push("baseline: none (its run is missing), so no ratios".to_owned()),
    }
    lines.extend(left_out.map(str::to_owned));
    let cut_short: Vec<&str> = results
        .runs
        .iter()
        .zip(&names)
        .filter(|(run, _)| run.status == Status::Interrupted)
        .map(|(_, name)| name.as_str())
        .collect();
    if !cut_short.is_empty() {
        lines.push(format!("cut short (*): {}", format::one_line(&cut_short.join(", "), 100)));
    }
    if results.status == Status::Interrupted {
        lines.push("interrupted: not everything asked for was run".to_owned());
    }
    lines.iter().map(|line| paint(line, Tone::Faint, style) + "\n").collect()
}

fn columns(results: &Results) -> Vec<Column> {
    let runs = &results.runs;
    let baseline = runs.get(results.baseline);
    let name = |index: usize, run: &RunResult| {
        let mark = if run.status == Status::Interrupted { "*" } else { "" };
        let tone = if index == results.baseline { Tone::Strong } else { Tone::Plain };
        Cell(format::one_line(&run.labels.scheduler, NAME_CELLS) + mark, tone)
    };
    let mut columns = vec![Column {
        group: "",
        title: "scheduler".to_owned(),
        left: true,
        glued: false,
        cells: runs.iter().enumerate().map(|(index, run)| name(index, run)).collect(),
    }];
    for distinction in names::distinctions(results) {
        let cells = distinction
            .values
            .iter()
            .map(|value| Cell(format::one_line(value, NAME_CELLS), Tone::Plain))
            .collect();
        let title = format::one_line(&distinction.title, NAME_CELLS);
        columns.push(Column { group: "", title, left: true, glued: false, cells });
    }
    for (group, direction) in [("read latency", READ), ("write latency", WRITE)] {
        mean(&mut columns, group, "mean", runs, baseline, direction, |of| of.latency_ns.mean);
        for (title, get) in TAILS {
            let cells = runs.iter().map(|run| time_cell(direction(run), get)).collect();
            columns.push(Column { group, title: title.to_owned(), left: false, glued: false, cells });
        }
    }
    for (title, direction) in [("read", READ), ("write", WRITE)] {
        mean(&mut columns, WAITING, title, runs, baseline, direction, |of| of.waiting_ns.mean);
    }
    let cells = runs
        .iter()
        .map(|run| Cell(format::percent(run.metrics.utilization.chip.active), Tone::Plain))
        .collect();
    columns.push(Column { group: "chips", title: "busy".to_owned(), left: false, glued: false, cells });
    columns
}

/// Metrics of one direction, or nothing when no such request completed.
pub(crate) type Pick = fn(&RunResult) -> Option<&DirectionMetrics>;
/// One time out of a direction's metrics, ns.
type Time = fn(&DirectionMetrics) -> f64;

pub(crate) const READ: Pick = |run| (run.metrics.requests.reads > 0).then_some(&run.metrics.read);
pub(crate) const WRITE: Pick = |run| (run.metrics.requests.writes > 0).then_some(&run.metrics.write);
const TAILS: [(&str, Time); 2] =
    [("p99", |of| of.latency_ns.p99 as f64), ("p99.9", |of| of.latency_ns.p999 as f64)];

fn time_cell(direction: Option<&DirectionMetrics>, get: Time) -> Cell {
    Cell(direction.map_or(ABSENT.to_owned(), |of| format::time(get(of))), Tone::Plain)
}

/// A column of means and, glued to it, its ratios to the baseline.
fn mean(
    columns: &mut Vec<Column>,
    group: &'static str,
    title: &str,
    runs: &[RunResult],
    baseline: Option<&RunResult>,
    pick: Pick,
    get: Time,
) {
    let cells = runs.iter().map(|run| time_cell(pick(run), get)).collect();
    columns.push(Column { group, title: title.to_owned(), left: false, glued: false, cells });
    let base = baseline.and_then(pick).map(get);
    let cells = runs.iter().map(|run| ratio_cell(pick(run).map(get), base)).collect();
    columns.push(Column { group, title: String::new(), left: false, glued: true, cells });
}

fn ratio_cell(value: Option<f64>, baseline: Option<f64>) -> Cell {
    let text = value
        .zip(baseline)
        .and_then(|(value, baseline)| format::ratio(value, baseline).map(|text| (text, value / baseline)));
    match text {
        None => Cell(ABSENT.to_owned(), Tone::Faint),
        Some((text, ratio)) => Cell(text, ratio_tone(ratio)),
    }
}

/// Less time is better; up to [`NEGLIGIBLE`] is neither.
pub(crate) fn ratio_tone(ratio: f64) -> Tone {
    match ratio {
        r if r < 1.0 - NEGLIGIBLE => Tone::Better,
        r if r > 1.0 + NEGLIGIBLE => Tone::Worse,
        _ => Tone::Faint,
    }
}

struct Lines {
    text: String,
    width: usize,
}

fn table_lines(columns: &[Column], style: Style) -> Lines {
    let shown = |text: &str| if style.ascii { format::ascii(text).width() } else { text.width() };
    let widths: Vec<usize> = columns
        .iter()
        .map(|column| {
            column.cells.iter().map(|cell| shown(&cell.0)).chain([shown(&column.title)]).max().unwrap_or(0)
        })
        .collect();
    let gap = |index: usize| match columns[index].glued {
        _ if index == 0 => "",
        true => " ",
        false => "  ",
    };
    let width = widths.iter().enumerate().map(|(index, width)| gap(index).len() + width).sum();
    let line = |cell_of: &dyn Fn(usize) -> Cell| {
        let mut line = String::new();
        for (index, column) in columns.iter().enumerate() {
            let Cell(text, tone) = cell_of(index);
            let pad = " ".repeat(widths[index].saturating_sub(shown(&text)));
            let text = paint(&text, tone, style);
            line += gap(index);
            line += &if column.left { text + &pad } else { pad + &text };
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    };
    let mut text = groups_line(columns, &widths, &gap, style);
    text += &line(&|index| Cell(columns[index].title.clone(), Tone::Strong));
    text += &paint(&"─".repeat(width), Tone::Faint, style);
    text.push('\n');
    for row in 0..columns[0].cells.len() {
        text += &line(&|index| columns[index].cells[row].clone());
    }
    Lines { text, width }
}

/// The line above the titles: each group's name centred over its columns.
fn groups_line<'a>(
    columns: &[Column],
    widths: &[usize],
    gap: &dyn Fn(usize) -> &'a str,
    style: Style,
) -> String {
    let mut line = String::new();
    let mut index = 0;
    while index < columns.len() {
        let group = columns[index].group;
        line += gap(index);
        let mut span = widths[index];
        index += 1;
        while index < columns.len() && columns[index].group == group {
            span += gap(index).len() + widths[index];
            index += 1;
        }
        let free = span.saturating_sub(group.width());
        let rule = if group.is_empty() { " " } else { "─" };
        let (before, after) = (free / 2, free - free / 2);
        let framed = |n: usize, space_first: bool| match n {
            0 => String::new(),
            n if space_first => format!(" {}", rule.repeat(n - 1)),
            n => format!("{} ", rule.repeat(n - 1)),
        };
        line += &(framed(before, false) + group + &framed(after, true));
    }
    paint(line.trim_end(), Tone::Faint, style) + "\n"
}

/// A paragraph per run, for narrow terminals.
fn stacked(results: &Results, style: Style) -> String {
    let names = names::run_names(results);
    let baseline = results.runs.get(results.baseline);
    let mut out = String::new();
    for (index, (run, name)) in results.runs.iter().zip(&names).enumerate() {
        let mark = if run.status == Status::Interrupted { " *" } else { "" };
        let note = if index == results.baseline { " (baseline)" } else { "" };
        let room = style.width.unwrap_or(80).saturating_sub(mark.width() + note.width()).max(8);
        out += &paint(&(format::one_line(name, room) + mark + note), Tone::Strong, style);
        out.push('\n');
        for (title, pick) in [("read", READ), ("write", WRITE)] {
            let Some(of) = pick(run) else {
                out += &paint(&format!("  {title:<5}  none\n"), Tone::Plain, style);
                continue;
            };
            let with_ratio = |get: Time| {
                let Cell(text, tone) = ratio_cell(Some(get(of)), baseline.and_then(pick).map(get));
                let pad = " ".repeat(7usize.saturating_sub(format::time(get(of)).width()));
                let ratio_pad = " ".repeat(5usize.saturating_sub(text.width()));
                pad + &paint(&format::time(get(of)), Tone::Plain, style)
                    + " "
                    + &ratio_pad
                    + &paint(&text, tone, style)
            };
            let mean = with_ratio(|of| of.latency_ns.mean);
            let waiting = with_ratio(|of| of.waiting_ns.mean);
            let [p99, p999] =
                TAILS.map(|(_, get)| paint(&format!("{:>7}", format::time(get(of))), Tone::Plain, style));
            out += &format!("  {title:<5}  mean {mean}  waiting {waiting}\n");
            out += &format!("          p99 {p99}          p99.9 {p999}\n");
        }
        out += &format!("  chips  busy {:>7}\n", format::percent(run.metrics.utilization.chip.active));
    }
    out
}

/// The text as the style wants it.
pub(crate) fn paint(text: &str, tone: Tone, style: Style) -> String {
    let text = if style.ascii { format::ascii(text) } else { text.to_owned() };
    let code = match tone {
        Tone::Plain => return text,
        _ if !style.color || text.is_empty() => return text,
        Tone::Strong => "1",
        Tone::Better => "32",
        Tone::Worse => "31",
        Tone::Faint => "2",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
