//! A probe for the terminal.

use super::rows::{self, Row};
use crate::format::{self, ABSENT};
use crate::table::{Style, Tone, paint};
use planewise_io::probe::file::{ProbeFile, Status};
use planewise_io::probe::interference::{Interference, PATTERNS};
use planewise_io::probe::{Findings, Subject};
use unicode_width::UnicodeWidthStr;

/// Columns that the last one must have to be shown.
const LEAST_BEHIND: usize = 24;

/// Everything found, ending in a newline: a line per property, what schedulers can be told, how workloads disturb each other, and
/// what was not measured. What each finding rests on stands behind it where `verbose` says so, else only why there is none.
pub fn text(file: &ProbeFile, style: Style, verbose: bool) -> String {
    let findings = &file.findings;
    let mut out = header(file, style);
    out += &table(findings, style, verbose);
    if let Some(of) = &findings.interference {
        out += &interference(of, style);
    }
    let hints = rows::hints(findings);
    if !hints.is_empty() {
        out += &format!("\n{}\n", paint("For schedulers", Tone::Strong, style));
        let width = hints.iter().map(|(option, _)| option.width()).max().unwrap_or(0);
        for (option, about) in hints {
            out += &fit(&format!("  {option:<width$}  {about}"), style);
        }
    }
    for (index, (cause, what)) in rows::missing(findings).into_iter().enumerate() {
        let gap = if index == 0 { "\n" } else { "" };
        out += &format!("{gap}{}", wrapped(&format!("Not measured ({cause}): {}", what.join("; ")), style));
    }
    out
}

fn header(file: &ProbeFile, style: Style) -> String {
    let Subject { target, kind, capacity, area_start, area, quick, .. } = &file.findings.subject;
    let mut line = format!("{} ({kind}, {})", format::one_line(target, 60), rows::size(*capacity));
    line += if *quick { ", short probe" } else { ", full probe" };
    line += &format!(" of {}", rows::size(*area));
    if area_start.0 > 0 {
        line += &format!(" from {}", rows::size(*area_start));
    }
    let state = match file.status {
        Status::Complete => "",
        Status::UnderWay | Status::Interrupted => " (incomplete)",
        Status::Failed => " (failed, incomplete)",
    };
    paint(&line, Tone::Strong, style) + &paint(state, Tone::Worse, style) + "\n"
}

fn fit(line: &str, style: Style) -> String {
    let line = style.width.map_or(line.to_owned(), |width| format::one_line(line, width));
    paint(line.trim_end(), Tone::Plain, style) + "\n"
}

/// A sentence over several lines where the terminal is narrow.
fn wrapped(text: &str, style: Style) -> String {
    let width = style.width.unwrap_or(usize::MAX).max(20);
    let mut out = String::new();
    let mut used = 0;
    for word in text.split(' ') {
        let cells = word.width();
        if used > 0 && used + 1 + cells > width {
            out += "\n  ";
            used = 2;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out += word;
        used += cells;
    }
    paint(&out, Tone::Faint, style) + "\n"
}

fn table(findings: &Findings, style: Style, verbose: bool) -> String {
    let groups = rows::groups(findings);
    let all = || groups.iter().flat_map(|group| &group.rows);
    let value = |row: &Row| row.value.clone().unwrap_or_else(|| "undetermined".to_owned());
    let names = all().map(|row| row.name.width()).max().unwrap_or(0);
    let values = all().map(|row| value(row).width()).max().unwrap_or(0);
    let sure = all().map(|row| row.sure().width()).max().unwrap_or(0);
    let before = 2 + names + 2 + values + 2 + sure + 2;
    let room = style.width.map_or(usize::MAX, |width| width.saturating_sub(before));
    let mut out = String::new();
    for group in &groups {
        out += &format!("\n{}\n", paint(group.title, Tone::Strong, style));
        for row in &group.rows {
            let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(text.width()));
            let (text, confidence) = (value(row), row.sure());
            let tone = if row.value.is_some() { Tone::Plain } else { Tone::Faint };
            let mut line = paint(&format!("  {}{}  ", row.name, pad(row.name, names)), Tone::Plain, style);
            line += &paint(&text, tone, style);
            line += &format!("{}  {}", pad(&text, values), pad(&confidence, sure));
            line += &paint(&confidence, Tone::Plain, style);
            if room >= LEAST_BEHIND && (verbose || row.value.is_none()) {
                line += &format!("  {}", paint(&format::one_line(row.behind(), room), Tone::Faint, style));
            }
            out += line.trim_end();
            out.push('\n');
        }
    }
    out
}

fn interference(of: &Interference, style: Style) -> String {
    let mut out = format!(
        "\n{}\n",
        paint(
            &format!(
                "MB/s of one job at {} (row) beside another (column)",
                rows::size(planewise_model::Bytes(of.request_bytes))
            ),
            Tone::Strong,
            style
        )
    );
    let first = PATTERNS.iter().map(|name| name.width()).max().unwrap_or(0);
    let short = ["seq. read", "rand. read", "seq. write", "rand. write"];
    let mut line = format!("  {:first$}  {:>7}", "", "alone");
    short.iter().for_each(|name| line += &format!("  {name:>15}"));
    out += &fit(&line, style);
    for (row, name) in PATTERNS.iter().enumerate() {
        let mut line = format!("  {name:<first$}  {:>7}", format::three_digits(of.alone[row]));
        for pair in of.together[row] {
            let ratio = format::ratio(pair[0], of.alone[row]).unwrap_or_else(|| ABSENT.to_owned());
            line += &format!("  {:>8} {ratio:>6}", format::three_digits(pair[0]));
        }
        out += &fit(&line, style);
    }
    out
}
