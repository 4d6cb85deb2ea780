//! The one table at the end of a comparison: a row per run, ratios to the baseline beside every mean.

use crate::commands;
use crate::format::{self, ABSENT, NEGLIGIBLE};
use crate::names;
use crate::outside;
use crate::overload;
use planewise_sim::results::{DirectionMetrics, GcMetrics, Results, RunResult, Status};
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
pub(crate) struct Cell(pub(crate) String, pub(crate) Tone);

/// A column: its group (empty for none), its title, whether it hugs the column before it, and its cells.
pub(crate) struct Column {
    pub(crate) group: &'static str,
    pub(crate) title: String,
    pub(crate) left: bool,
    pub(crate) glued: bool,
    pub(crate) cells: Vec<Cell>,
}

/// Group of the columns that a narrow terminal can do without.
const WAITING: &str = "waiting, mean";
/// Groups of the collection table.
const COLLECTIONS: &str = "collections";
const CONFLICTS: &str = "met by requests";
const FLASH: &str = "flash";
/// Longest name a row shows before it is cut.
const NAME_CELLS: usize = 24;

/// The comparison of all runs as text, ending in a newline: a header, a row per run, and which row is the baseline; then the
/// same for garbage collection, when runs differ in it and any collected.
///
/// When a table is wider than `style.width`, it leaves columns out and says so; when it still is, each run becomes a short
/// paragraph with everything.
pub fn comparison(results: &Results, style: Style) -> String {
    let mut out = header(results, style);
    if results.runs.is_empty() {
        out += "No run finished: nothing to compare.\n";
        return out;
    }
    let mut left_out = Vec::new();
    out.push('\n');
    let latencies = Block { columns: columns(results), spare: &[(WAITING, "waiting times")], stacked };
    out += &latencies.text(results, style, &mut left_out);
    if names::differ_in_collection(results) && results.runs.iter().any(|run| run.metrics.gc.collections > 0) {
        out += &format!("\n{}\n", paint("garbage collection", Tone::Strong, style));
        let collection = Block {
            columns: collection_columns(results),
            spare: &[(FLASH, "erases, wear"), (COLLECTIONS, "collections but for their cost")],
            stacked: stacked_collection,
        };
        out += &collection.text(results, style, &mut left_out);
    }
    out.push('\n');
    out += &footer(results, &left_out, style);
    out
}

/// A table, what it can do without (first what it misses least), and how it is told where it does not fit at all.
pub(crate) struct Block {
    pub(crate) columns: Vec<Column>,
    pub(crate) spare: &'static [(&'static str, &'static str)],
    pub(crate) stacked: fn(&Results, Style) -> String,
}

impl Block {
    pub(crate) fn text(
        mut self,
        results: &Results,
        style: Style,
        left_out: &mut Vec<&'static str>,
    ) -> String {
        let fits = |table: &Lines| style.width.is_none_or(|width| table.width <= width);
        let mut table = table_lines(&self.columns, style);
        for (dropped, (group, _)) in self.spare.iter().enumerate() {
            if fits(&table) {
                left_out.extend(self.spare[..dropped].iter().map(|(_, what)| what));
                return table.text;
            }
            self.columns.retain(|column| column.group != *group);
            table = table_lines(&self.columns, style);
        }
        if fits(&table) {
            left_out.extend(self.spare.iter().map(|(_, what)| what));
            return table.text;
        }
        (self.stacked)(results, style)
    }
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
    if !names::identity(results).iter().any(|column| column.title == "scheduler") {
        item("scheduler", first.map(|run| run.labels.scheduler.as_str()));
    }
    item("device", first.map(|run| run.labels.device.as_str()));
    item("condition", Some(&results.setup.condition));
    item(names::served(results), Some(&results.setup.trace.name));
    // Runs that served different numbers of requests each say their own below.
    let count = |run: &RunResult| run.metrics.requests.completed;
    let is_same = results.runs.windows(2).all(|pair| count(&pair[0]) == count(&pair[1]));
    let requests = first.filter(|_| is_same).map(|run| format::count(count(run)));
    item("command queue", first.map(|run| run.labels.command_queue.as_str()));
    item("pace", first.map(|run| run.labels.pace.as_str()).filter(|pace| !pace.is_empty()));
    if let Some(requests) = requests {
        let noun = if requests == "1" { "request" } else { "requests" };
        let queue = items.iter().position(|item| item.starts_with("command queue")).unwrap_or(items.len());
        items.insert(queue, format!("{requests} {noun}"));
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

pub(crate) fn footer(results: &Results, left_out: &[&str], style: Style) -> String {
    let mut lines = Vec::new();
    match names::baseline_name(results) {
        Some(name) => lines
            .push(format!("baseline: {} (× is the value over the baseline's)", format::one_line(&name, 60))),
        None => lines.push("baseline: none (its run is missing), so no ratios".to_owned()),
    }
    lines.extend(left_out.iter().map(|what| format!("left out for width: {what}")));
    lines.iter().map(|line| paint(line, Tone::Faint, style) + "\n").collect::<String>()
        + &notes(results, style)
}

/// What must be said below any table: which runs are bounds, and which are not whole.
pub(crate) fn notes(results: &Results, style: Style) -> String {
    let names = names::run_names(results);
    let mut lines = Vec::new();
    let bounds: Vec<&str> = results
        .runs
        .iter()
        .zip(&names)
        .filter(|(run, _)| names::is_bound(run))
        .map(|(_, name)| name.as_str())
        .collect();
    if !bounds.is_empty() {
        lines.push(format!("bound, no device does it: {}", format::one_line(&bounds.join(", "), 90)));
    }
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
    lines.extend(overloads(results, &names, style));
    for (run, name) in results.runs.iter().zip(&names) {
        let name = format::one_line(name, 60);
        let failure = run.target.as_ref().and_then(|target| target.failure.as_ref());
        let failure = failure.map(|failure| format::one_line(failure, 200));
        let notes = run.notes.iter().map(|note| format::one_line(note, 200));
        let commands = commands::sentence(run);
        for said in outside::unfaithful(run).into_iter().chain(commands).chain(failure).chain(notes) {
            lines.extend(broken(&format!("{name}: {said}"), style));
        }
    }
    if results.status == Status::Interrupted {
        lines.push("interrupted: not everything asked for was run".to_owned());
    }
    lines.iter().map(|line| paint(line, Tone::Faint, style) + "\n").collect()
}

/// Which runs are overloaded, how far, and what to do.
fn overloads(results: &Results, names: &[String], style: Style) -> Vec<String> {
    let Some(remedy) = overload::remedy(results) else { return Vec::new() };
    let mut lines = broken(&format!("overloaded ({}): {}", overload::MARK, overload::MEANING), style);
    for (run, name) in results.runs.iter().zip(names) {
        if let Some(how_far) = overload::overloaded(run) {
            lines.extend(broken(&format!("{}: {how_far}", format::one_line(name, 60)), style));
        }
    }
    lines.extend(broken(&remedy, style));
    lines
}

/// A sentence in lines of the terminal's width, broken between words.
fn broken(sentence: &str, style: Style) -> Vec<String> {
    let limit = style.width.unwrap_or(usize::MAX);
    let mut lines: Vec<String> = Vec::new();
    for word in sentence.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= limit => *line += &format!(" {word}"),
            Some(_) => lines.push(format!("  {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// What stands behind a run's name.
fn marks(run: &RunResult) -> String {
    let cut_short = if run.status == Status::Interrupted { "*" } else { "" };
    let overloaded = if overload::is_overloaded(run) { overload::MARK } else { "" };
    format!("{cut_short}{overloaded}")
}

/// The columns that name each run; the first marks the baseline, and runs that are cut short or overloaded.
pub(crate) fn identity_columns(results: &Results) -> Vec<Column> {
    let identity = names::identity(results).into_iter().enumerate();
    identity
        .map(|(place, distinction)| {
            let cell = |(index, value): (usize, &String)| {
                let marks = if place == 0 { marks(&results.runs[index]) } else { String::new() };
                let tone = if place == 0 && index == results.baseline { Tone::Strong } else { Tone::Plain };
                Cell(format::one_line(value, NAME_CELLS) + &marks, tone)
            };
            Column {
                group: "",
                title: format::one_line(&distinction.title, NAME_CELLS),
                left: true,
                glued: false,
                cells: distinction.values.iter().enumerate().map(cell).collect(),
            }
        })
        .collect()
}

fn columns(results: &Results) -> Vec<Column> {
    let runs = &results.runs;
    let mut columns = identity_columns(results);
    for (group, direction) in [("read latency", READ), ("write latency", WRITE)] {
        for (title, get) in LATENCIES {
            with_ratio(&mut columns, group, title, results, direction, get);
        }
        let cells =
            runs.iter().map(|run| time_cell(direction(run), |of| of.latency_ns.p999 as f64)).collect();
        columns.push(Column { group, title: "p99.9".to_owned(), left: false, glued: false, cells });
    }
    for (title, direction) in [("read", READ), ("write", WRITE)] {
        let cells = runs.iter().map(|run| time_cell(direction(run), |of| of.waiting_ns.mean)).collect();
        columns.push(Column { group: WAITING, title: title.to_owned(), left: false, glued: false, cells });
    }
    if !outside::is_outside(results) {
        let busy = |run: &RunResult| Cell(format::percent(run.metrics.utilization.chip.active), Tone::Plain);
        let cells = runs.iter().map(busy).collect();
        columns.push(Column { group: "chips", title: "busy".to_owned(), left: false, glued: false, cells });
    }
    columns
}

/// What garbage collection did, as shown: nothing where there is nothing to take a mean of.
pub(crate) struct CollectionColumn {
    pub(crate) group: &'static str,
    pub(crate) title: &'static str,
    /// The title where there is no group above it.
    pub(crate) words: &'static str,
    pub(crate) text: fn(&GcMetrics) -> Option<String>,
    /// The time of which a ratio to the baseline stands beside it.
    pub(crate) ratio: Option<fn(&GcMetrics) -> Option<f64>>,
}

/// Columns about collection, of the terminal's table and of the page's.
pub(crate) const COLLECTION: [CollectionColumn; 10] = [
    plain(COLLECTIONS, "count", "collections", |gc| Some(format::count(gc.collections))),
    plain(COLLECTIONS, "moved", "pages moved by each", |gc| {
        any(gc.collections).then(|| format::three_digits(gc.moved_per_collection))
    }),
    plain(COLLECTIONS, "buffered", "of them buffered", |gc| {
        any(gc.pages_moved).then(|| format::percent(gc.buffered_share))
    }),
    plain(COLLECTIONS, "idle", "begun while idle", |gc| {
        any(gc.collections).then(|| format::percent(gc.idle_share))
    }),
    CollectionColumn {
        group: "cost on the chip",
        title: "mean",
        words: "cost on the chip",
        text: |gc| any(gc.collections).then(|| format::time(gc.cost.total_ns)),
        ratio: Some(|gc| any(gc.collections).then_some(gc.cost.total_ns)),
    },
    plain(CONFLICTS, "share", "requests that met one", |gc| {
        any(gc.collections).then(|| format::percent(gc.conflicts.share))
    }),
    CollectionColumn {
        group: CONFLICTS,
        title: "latency",
        words: "their latency",
        text: |gc| conflicted(gc).map(format::time),
        ratio: Some(conflicted),
    },
    plain("write", "ampl.", "write amplification", |gc| {
        (gc.write_amplification > 0.0).then(|| format::three_digits(gc.write_amplification))
    }),
    plain(FLASH, "erases", "erases", |gc| Some(format::count(gc.erases))),
    plain(FLASH, "wear", "wear spread", |gc| Some(format::count(gc.wear_spread))),
];

const fn plain(
    group: &'static str,
    title: &'static str,
    words: &'static str,
    text: fn(&GcMetrics) -> Option<String>,
) -> CollectionColumn {
    CollectionColumn { group, title, words, text, ratio: None }
}

fn any(count: u64) -> bool {
    count > 0
}

/// Mean latency of the requests that met a collection, ns; none when none did.
pub(crate) fn conflicted(gc: &GcMetrics) -> Option<f64> {
    any(gc.conflicts.reads + gc.conflicts.writes).then_some(gc.conflicts.latency_ns.mean)
}

fn collection_columns(results: &Results) -> Vec<Column> {
    let runs = &results.runs;
    let mut columns = identity_columns(results);
    for CollectionColumn { group, title, text, ratio, .. } in &COLLECTION {
        let cells = runs
            .iter()
            .map(|run| Cell(text(&run.metrics.gc).unwrap_or_else(|| ABSENT.to_owned()), Tone::Plain))
            .collect();
        columns.push(Column { group, title: (*title).to_owned(), left: false, glued: false, cells });
        if let Some(value) = ratio {
            let base =
                |run| names::baseline_of(results, run).and_then(|base: &RunResult| value(&base.metrics.gc));
            let cells = runs.iter().map(|run| ratio_cell(value(&run.metrics.gc), base(run))).collect();
            columns.push(Column { group, title: String::new(), left: false, glued: true, cells });
        }
    }
    columns
}

/// Metrics of one direction, or nothing when no such request completed.
pub(crate) type Pick = fn(&RunResult) -> Option<&DirectionMetrics>;
/// One time out of a direction's metrics, ns.
pub(crate) type Time = fn(&DirectionMetrics) -> f64;

pub(crate) const READ: Pick = |run| (run.metrics.requests.reads > 0).then_some(&run.metrics.read);
pub(crate) const WRITE: Pick = |run| (run.metrics.requests.writes > 0).then_some(&run.metrics.write);
pub(crate) const LATENCIES: [(&str, Time); 2] =
    [("mean", |of| of.latency_ns.mean), ("p99", |of| of.latency_ns.p99 as f64)];

pub(crate) fn time_cell(direction: Option<&DirectionMetrics>, get: Time) -> Cell {
    Cell(direction.map_or(ABSENT.to_owned(), |of| format::time(get(of))), Tone::Plain)
}

/// A column of times and, glued to it, their ratios to the baseline's.
fn with_ratio(
    columns: &mut Vec<Column>,
    group: &'static str,
    title: &str,
    results: &Results,
    pick: Pick,
    get: Time,
) {
    let runs = &results.runs;
    let cells = runs.iter().map(|run| time_cell(pick(run), get)).collect();
    columns.push(Column { group, title: title.to_owned(), left: false, glued: false, cells });
    let base = |run| names::baseline_of(results, run).and_then(pick).map(get);
    let cells = runs.iter().map(|run| ratio_cell(pick(run).map(get), base(run))).collect();
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

pub(crate) struct Lines {
    pub(crate) text: String,
    width: usize,
}

pub(crate) fn table_lines(columns: &[Column], style: Style) -> Lines {
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
        let mark = match marks(run) {
            marks if marks.is_empty() => marks,
            marks => format!(" {marks}"),
        };
        let note = if index == results.baseline { " (baseline)" } else { "" };
        let room = style.width.unwrap_or(80).saturating_sub(mark.width() + note.width()).max(8);
        out += &paint(&(format::one_line(name, room) + &mark + note), Tone::Strong, style);
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
            let p99 = with_ratio(|of| of.latency_ns.p99 as f64);
            let p999 = format::time(of.latency_ns.p999 as f64);
            let p999 = paint(&format!("{p999:>7}"), Tone::Plain, style);
            out += &format!("  {title:<5}  mean {mean}  waiting {waiting}\n");
            out += &format!("          p99 {p99}    p99.9 {p999}\n");
        }
        out += &format!("  chips  busy {:>7}\n", format::percent(run.metrics.utilization.chip.active));
    }
    out
}

/// A paragraph per run about its collections, for narrow terminals.
fn stacked_collection(results: &Results, style: Style) -> String {
    let names = names::run_names(results);
    let baseline = results.runs.get(results.baseline);
    let mut out = String::new();
    for (run, name) in results.runs.iter().zip(&names) {
        out += &paint(&format::one_line(name, style.width.unwrap_or(80).max(8)), Tone::Strong, style);
        out.push('\n');
        for pair in COLLECTION.chunks(2) {
            let mut line = String::new();
            for column in pair {
                let CollectionColumn { group, title, text, ratio, .. } = column;
                let title = match (*group, *title) {
                    (COLLECTIONS, title) => title.to_owned(),
                    (FLASH, title) => title.to_owned(),
                    ("cost on the chip", _) => "chip cost".to_owned(),
                    (CONFLICTS, title) => format!("met, {title}"),
                    (group, title) => format!("{group} {title}"),
                };
                let value = text(&run.metrics.gc).unwrap_or_else(|| ABSENT.to_owned());
                let pad = " ".repeat(8usize.saturating_sub(value.width()));
                line += &paint(&format!("  {title:<12} {pad}{value}"), Tone::Plain, style);
                if let Some(of) = ratio {
                    let base = baseline.and_then(|run| of(&run.metrics.gc));
                    let Cell(text, tone) = ratio_cell(of(&run.metrics.gc), base);
                    line += &format!(" {}", paint(&text, tone, style));
                }
            }
            out += &format!("{}\n", line.trim_end());
        }
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
