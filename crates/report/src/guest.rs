//! What programs in a kernel of their own got done: their own numbers, and what that asked of the drive.

use crate::commands::{DISCARDS, FLUSHES};
use crate::format::{self, ABSENT};
use crate::names;
use crate::table::{self, Block, Cell, Column, READ, Style, Tone, WRITE, paint};
use planewise_sim::results::{Guest, GuestNumber, Results, RunResult};

/// A table of the programs' own numbers, and one of the drive.
pub fn guest(results: &Results, style: Style) -> String {
    let mut out = table::header(results, style);
    if results.runs.is_empty() {
        return out + "No run finished: nothing to compare.\n";
    }
    out += &format!("\n{}\n", paint("the program", Tone::Strong, style));
    let mut left_out = Vec::new();
    out += &Block { columns: program(results), spare: &[], stacked }.text(results, style, &mut left_out);
    out += &replicates(results, style);
    out += &format!("\n{}\n", paint("the drive, while it ran", Tone::Strong, style));
    let spare = &[(FLUSHES, "flushes"), (DISCARDS, "discards"), ("writes", "writes")];
    out += &Block { columns: drive(results), spare, stacked: crate::bench::stacked }.text(
        results,
        style,
        &mut left_out,
    );
    out + "\n" + &table::footer(results, &left_out, style)
}

/// What does not fit into a table, as a paragraph per run.
fn stacked(results: &Results, style: Style) -> String {
    let numbers = numbers(results);
    let paragraph = |(run, name): (&RunResult, &String)| {
        let values = numbers.iter().enumerate().map(|(index, number)| {
            let value = value(run, index).map_or_else(|| ABSENT.to_owned(), digits);
            format!("  {} {value} {}\n", number.name, number.unit)
        });
        let ran = format!("  ran {}, status {}\n", format::time(of(run).ran_ns as f64), status(run));
        format!("{}\n", paint(name, Tone::Strong, style)) + &values.collect::<String>() + &ran
    };
    results.runs.iter().zip(&names::run_names(results)).map(paragraph).collect()
}

fn of(run: &RunResult) -> Guest {
    run.guest.clone().unwrap_or_default()
}

/// Numbers that any run has, in the order of the first that has them.
pub(crate) fn numbers(results: &Results) -> Vec<GuestNumber> {
    results.runs.first().map(|run| of(run).numbers).unwrap_or_default()
}

pub(crate) fn value(run: &RunResult, number: usize) -> Option<f64> {
    run.guest.as_ref()?.numbers.get(number)?.value
}

/// Three digits of a number of any size.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        small if small > 0.0 && small < 1.0 => {
            let places = (2.0 - small.log10().floor()).clamp(0.0, 9.0) as usize;
            format!("{value:.places$}")
        }
        _ => format::three_digits(value),
    }
}

pub(crate) fn title(number: &GuestNumber) -> String {
    format!("{}, {}", number.name, number.unit)
}

fn status(run: &RunResult) -> String {
    of(run).status.map_or_else(|| "ended".to_owned(), |status| status.to_string())
}

fn column(group: &'static str, title: &str, cells: Vec<Cell>) -> Column {
    Column { group, title: title.to_owned(), left: false, glued: false, cells }
}

fn program(results: &Results) -> Vec<Column> {
    let mut columns = table::identity_columns(results);
    for (index, number) in numbers(results).iter().enumerate() {
        let cells = |text: &dyn Fn(&RunResult) -> Cell| results.runs.iter().map(text).collect::<Vec<_>>();
        let text = |run: &RunResult| match value(run, index) {
            Some(value) => Cell(digits(value), Tone::Plain),
            None => Cell(ABSENT.to_owned(), Tone::Faint),
        };
        columns.push(column("", &title(number), cells(&text)));
        let ratio = |run: &RunResult| {
            let baseline = names::baseline_of(results, run).and_then(|baseline| value(baseline, index));
            match value(run, index)
                .zip(baseline)
                .and_then(|(value, baseline)| Some((format::ratio(value, baseline)?, value / baseline)))
            {
                Some((text, ratio)) => {
                    let slower = if number.more_is_better { 1.0 / ratio } else { ratio };
                    Cell(text, table::ratio_tone(slower))
                }
                None => Cell(ABSENT.to_owned(), Tone::Faint),
            }
        };
        columns.push(Column { glued: true, ..column("", "", cells(&ratio)) });
    }
    let plain = |text: &dyn Fn(&RunResult) -> String| {
        results.runs.iter().map(|run| Cell(text(run), Tone::Plain)).collect::<Vec<_>>()
    };
    columns.push(column("", "ran", plain(&|run| format::time(of(run).ran_ns as f64))));
    columns.push(column("", "status", plain(&status)));
    columns
}

fn drive(results: &Results) -> Vec<Column> {
    let mut columns = table::identity_columns(results);
    for (group, pick) in [("reads", READ), ("writes", WRITE)] {
        let rate = |run: &RunResult| match pick(run) {
            Some(of) => Cell(format::three_digits(of.bandwidth_bytes_per_s / 1e6), Tone::Plain),
            None => Cell(ABSENT.to_owned(), Tone::Faint),
        };
        columns.push(column(group, "MB/s", results.runs.iter().map(rate).collect()));
        for (title, get) in table::LATENCIES {
            let cells = results.runs.iter().map(|run| table::time_cell(pick(run), get)).collect();
            columns.push(column(group, title, cells));
        }
    }
    let both: Vec<_> = results
        .runs
        .iter()
        .map(|run| [run.metrics.flushes.as_ref(), run.metrics.discards.as_ref()])
        .collect();
    let spans: Vec<_> = results.runs.iter().map(|run| run.metrics.duration_ns).collect();
    columns.extend(crate::commands::columns(&both, &spans));
    columns
}

/// Runs that differ in their seed alone, as means with intervals in which the mean of many more would be, 95 times in a hundred.
fn replicates(results: &Results, style: Style) -> String {
    let numbers = numbers(results);
    let groups = groups(results);
    if numbers.is_empty() || groups.iter().all(|(_, runs)| runs.len() < 2) {
        return String::new();
    }
    let left = |title: &str, cells| Column { left: true, ..column("", title, cells) };
    let plain = |text: String| Cell(text, Tone::Plain);
    let mut columns =
        vec![left("scheduler", groups.iter().map(|(name, _)| plain(format::one_line(name, 40))).collect())];
    for (index, number) in numbers.iter().enumerate() {
        let cells = groups.iter().map(|(_, runs)| {
            let values: Vec<f64> = runs.iter().filter_map(|run| value(run, index)).collect();
            plain(interval(&values).map_or_else(
                || ABSENT.to_owned(),
                |(mean, half)| format!("{} ± {}", digits(mean), digits(half)),
            ))
        });
        columns.push(column("", &title(number), cells.collect()));
    }
    let seeds = groups.iter().map(|(_, runs)| plain(runs.len().to_string())).collect();
    columns.push(column("", "seeds", seeds));
    format!("\n{}\n", paint("over seeds: mean and 95 % interval", Tone::Strong, style))
        + &table::table_lines(&columns, style).text
}

fn groups(results: &Results) -> Vec<(String, Vec<&RunResult>)> {
    let mut groups: Vec<(String, Vec<&RunResult>)> = Vec::new();
    for run in &results.runs {
        let name = &run.labels.scheduler;
        match groups.iter_mut().find(|(other, _)| other == name) {
            Some((_, runs)) => runs.push(run),
            None => groups.push((name.clone(), vec![run])),
        }
    }
    groups
}

/// Quantile 0.975 of Student's distribution, for 1, 2, … degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// Mean and half of its interval; none of fewer than two values.
fn interval(values: &[f64]) -> Option<(f64, f64)> {
    let freedom = values.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / freedom as f64;
    let student = STUDENT.get(freedom - 1).copied().unwrap_or(1.96);
    Some((mean, student * (variance / count).sqrt()))
}

/// What the page shows of the programs: titles, and a row of texts with their ratios per run; none where no kernel ran.
pub(crate) fn rows(results: &Results) -> Option<Shown> {
    results.runs.iter().any(|run| run.guest.is_some()).then_some(())?;
    let columns = program(results);
    let own = columns.iter().skip(names::identity(results).len());
    let mut titles: Vec<String> = Vec::new();
    let mut rows: Vec<Vec<String>> = vec![Vec::new(); results.runs.len()];
    for column in own {
        titles.push(if column.glued { "×".into() } else { column.title.clone() });
        rows.iter_mut()
            .zip(&column.cells)
            .for_each(|(row, cell)| row.push(cell.0.trim_start_matches('×').into()));
    }
    Some((titles, rows))
}

/// Titles, and rows of texts.
pub(crate) type Shown = (Vec<String>, Vec<Vec<String>>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn results() -> Results {
        let mut results = samples::six_schedulers();
        results.runs.truncate(4);
        results.baseline = 0;
        for (index, run) in results.runs.iter_mut().enumerate() {
            run.labels.scheduler = ["none", "bfq"][index / 2].into();
            run.labels.seed = (index % 2) as u64;
            run.guest = Some(Guest {
                status: Some(0),
                ran_ns: 10_000_000_000,
                numbers: vec![GuestNumber {
                    name: "transactions".into(),
                    unit: "1/s".into(),
                    more_is_better: true,
                    value: Some([100.0, 110.0, 200.0, 220.0][index]),
                }],
                ..Guest::default()
            });
        }
        results
    }

    #[test]
    fn runs_that_differ_in_their_seed_have_a_mean_and_an_interval() {
        let (mean, half) = interval(&[100.0, 110.0]).unwrap();
        assert!((mean - 105.0).abs() < 1e-9 && (half - 12.706 * 5.0).abs() < 1e-9, "{mean} {half}");
        assert_eq!(interval(&[1.0]), None);
        assert_eq!([0.1804, 0.02346, 3204.0].map(digits), ["0.180", "0.0235", "3204"]);
        let text = guest(&results(), Style { color: false, ascii: false, width: None });
        assert!(text.contains("105 ± 63.5") && text.contains("210 ± 127"), "{text}");
        assert!(text.contains("transactions, 1/s") && text.contains("10.0 s"), "{text}");
    }

    #[test]
    fn the_page_has_a_row_for_each_program() {
        let (titles, rows) = rows(&results()).unwrap();
        assert_eq!(titles, ["transactions, 1/s", "×", "ran", "status"]);
        assert_eq!(rows[2][0], "200");
        let page = crate::html(&results());
        assert!(page.contains("transactions, 1&#x2f;s"), "the page has it");
        assert!(super::rows(&samples::six_schedulers()).is_none());
    }
}
