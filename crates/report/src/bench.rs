//! The tables at the end of a bench: what each run, and each job in it, got done.

use crate::commands;
use crate::format::{self, ABSENT, NEGLIGIBLE};
use crate::names;
use crate::single::single;
use crate::sweep::{self, sweep};
use crate::table::{self, Block, Cell, Column, READ, Style, Tone, WRITE, paint};
use planewise_sim::results::{JobMetrics, Results, RunResult};

/// Rows of the table of jobs at most; the report and `results.json` have all of them.
const JOB_ROWS_MAX: usize = 40;

/// What a closed loop got done, as text: for a sweep a matrix of throughputs, or else a row per run; then a row per job.
pub fn bench(results: &Results, style: Style) -> String {
    // Of a single run there is nothing to compare: all of it is told.
    if results.runs.len() == 1 {
        return single(results, style) + &by_job(results, style);
    }
    let mut out = table::header(results, style);
    if results.runs.is_empty() {
        return out + "No run finished: nothing to compare.\n";
    }
    out.push('\n');
    let mut left_out = Vec::new();
    if let Some(sweep) = sweep(results) {
        let throughput = format!("throughput, {}{}", sweep::unit(results), sweep::together(results));
        out += &format!("{}\n", paint(&throughput, Tone::Strong, style));
        out += &table::table_lines(&matrix(results, &sweep, &THROUGHPUT), style).text;
        out += &format!("\n{}\n", paint("latency of all requests, mean", Tone::Strong, style));
        out += &table::table_lines(&matrix(results, &sweep, &LATENCY), style).text;
        for (title, shown) in COMMANDS {
            if results.runs.iter().any(|run| (shown.value)(run) > 0.0) {
                out += &format!("\n{}\n", paint(title, Tone::Strong, style));
                out += &table::table_lines(&matrix(results, &sweep, &shown), style).text;
            }
        }
        // Of several schemes the matrix compares what all jobs get done; of one, jobs are all that is left to tell.
        if sweep.columns.len() == 1 {
            out += &by_job(results, style);
        }
        let notes = apart_note(results, style) + &table::notes(results, style);
        if notes.is_empty() { out } else { out + "\n" + &notes }
    } else {
        let block = Block {
            columns: columns(results),
            spare: &[("fairness", "fairness"), (commands::DISCARDS, "discards")],
            stacked,
        };
        out += &block.text(results, style, &mut left_out);
        out += &by_job(results, style);
        out + "\n" + &table::footer(results, &left_out, style) + &apart_note(results, style)
    }
}

/// The table of jobs, where runs have several and there are not too many.
fn by_job(results: &Results, style: Style) -> String {
    let rows: usize = results.runs.iter().map(|run| jobs(run).len()).sum();
    if rows <= results.runs.len() || rows > JOB_ROWS_MAX {
        return String::new();
    }
    format!("\n{}\n", paint("jobs", Tone::Strong, style))
        + &table::table_lines(&job_columns(results), style).text
}

fn jobs(run: &RunResult) -> &[JobMetrics] {
    run.closed_loop.as_ref().map_or(&[], |closed| closed.jobs.as_slice())
}

fn column(group: &'static str, title: &str, cells: Vec<Cell>) -> Column {
    Column { group, title: title.to_owned(), left: false, glued: false, cells }
}

/// A value of a run as a matrix shows it.
struct Shown {
    value: fn(&RunResult) -> f64,
    text: fn(f64) -> String,
    more_is_better: bool,
}

const THROUGHPUT: Shown =
    Shown { value: sweep::throughput, text: format::three_digits, more_is_better: true };
const LATENCY: Shown =
    Shown { value: |run| run.metrics.all.latency_ns.mean, text: format::time, more_is_better: false };

/// Flushes and discards, which are in neither of the others.
const COMMANDS: [(&str, Shown); 3] = [
    (
        "latency of flushes, mean",
        Shown {
            value: |run| run.metrics.flushes.as_ref().map_or(0.0, |of| of.latency_ns.mean),
            text: time_or_none,
            more_is_better: false,
        },
    ),
    (
        "discarded, MB/s",
        Shown {
            value: |run| {
                let discards = run.metrics.discards.as_ref();
                discards.map_or(0.0, |of| commands::mb_per_s(of, run.metrics.duration_ns))
            },
            text: rate_or_none,
            more_is_better: true,
        },
    ),
    (
        "latency of discards, mean",
        Shown {
            value: |run| run.metrics.discards.as_ref().map_or(0.0, |of| of.latency_ns.mean),
            text: time_or_none,
            more_is_better: false,
        },
    ),
];

/// A run may have none of them.
fn time_or_none(ns: f64) -> String {
    if ns > 0.0 { format::time(ns) } else { ABSENT.to_owned() }
}

/// As [`time_or_none`].
fn rate_or_none(mb_per_s: f64) -> String {
    if mb_per_s > 0.0 { format::three_digits(mb_per_s) } else { ABSENT.to_owned() }
}

fn matrix(results: &Results, sweep: &sweep::Sweep, shown: &Shown) -> Vec<Column> {
    let cells = sweep.values.iter().map(|value| Cell(value.clone(), Tone::Plain)).collect();
    let mut columns = vec![column("", &sweep.title, cells)];
    let score = |run: usize| (shown.value)(&results.runs[run]);
    for (place, name) in sweep.columns.iter().enumerate() {
        let cell = |row: &Vec<Option<usize>>| match row[place] {
            None => Cell(ABSENT.to_owned(), Tone::Faint),
            Some(run) => {
                let value = score(run);
                let beats = |other: f64| {
                    let (best, rest) = if shown.more_is_better { (value, other) } else { (other, value) };
                    best > rest * (1.0 + NEGLIGIBLE)
                };
                let mut others = row.iter().flatten().filter(|other| **other != run);
                let is_best = others.all(|other| beats(score(*other)));
                let tone = if is_best && row.len() > 1 { Tone::Better } else { Tone::Plain };
                Cell((shown.text)(value), tone)
            }
        };
        let title = format::one_line(sweep::column_name(results, name), 24);
        columns.push(column("", &title, sweep.runs.iter().map(cell).collect()));
    }
    columns
}

/// Whether jobs that nobody else waits for ended, or began, at very different times: their total is then over time in which not all ran.
pub(crate) fn jobs_ran_apart(run: &RunResult) -> bool {
    let foreground = || jobs(run).iter().filter(|job| !job.background && job.all.requests > 0);
    let shortest = foreground().map(|job| job.duration_ns).min().unwrap_or(0);
    foreground().count() > 1 && shortest as f64 <= 0.9 * run.metrics.duration_ns as f64
}

fn apart_note(results: &Results, style: Style) -> String {
    if !results.runs.iter().any(jobs_ran_apart) {
        return String::new();
    }
    let note =
        "not all jobs ran to the end: totals are over the whole window, rates of jobs each over its own";
    paint(note, Tone::Faint, style) + "\n"
}

/// More is better.
fn gain_cell(value: f64, baseline: Option<f64>) -> Cell {
    let ratio = baseline.and_then(|baseline| Some((format::ratio(value, baseline)?, value / baseline)));
    match ratio {
        None => Cell(ABSENT.to_owned(), Tone::Faint),
        Some((text, ratio)) => Cell(text, table::ratio_tone(1.0 / ratio)),
    }
}

fn columns(results: &Results) -> Vec<Column> {
    let runs = &results.runs;
    let mut columns = table::identity_columns(results);
    let mut with_ratio = |title: &str, get: fn(&RunResult) -> f64, unit: fn(f64) -> String| {
        let cells = runs.iter().map(|run| Cell(unit(get(run)), Tone::Plain)).collect();
        columns.push(column("throughput", title, cells));
        let cells =
            runs.iter().map(|run| gain_cell(get(run), names::baseline_of(results, run).map(get))).collect();
        columns.push(Column { glued: true, ..column("throughput", "", cells) });
    };
    let unit = sweep::unit(results);
    if unit != "MB/s" {
        with_ratio(&unit, sweep::throughput, format::three_digits);
    }
    with_ratio("MB/s", |run| run.metrics.all.bandwidth_bytes_per_s / 1e6, format::three_digits);
    with_ratio("IOPS", |run| run.metrics.all.iops, format::three_digits);
    for (group, pick) in [("read latency", READ), ("write latency", WRITE)] {
        for (title, get) in table::LATENCIES {
            let cells = runs.iter().map(|run| table::time_cell(pick(run), get)).collect();
            columns.push(column(group, title, cells));
        }
    }
    let of = |run: &RunResult| run.metrics.duration_ns;
    let both: Vec<_> =
        runs.iter().map(|run| [run.metrics.flushes.as_ref(), run.metrics.discards.as_ref()]).collect();
    columns.extend(commands::columns(&both, &runs.iter().map(of).collect::<Vec<_>>()));
    let cells = runs
        .iter()
        .map(|run| match run.metrics.fairness.processes {
            0 | 1 => Cell(ABSENT.to_owned(), Tone::Faint),
            _ => Cell(format!("{:.3}", run.metrics.fairness.bandwidth), Tone::Plain),
        })
        .collect();
    columns.push(column("fairness", "Jain", cells));
    columns
}

fn job_columns(results: &Results) -> Vec<Column> {
    let names = names::run_names(results);
    let rows: Vec<(&str, &JobMetrics)> = results
        .runs
        .iter()
        .zip(&names)
        .flat_map(|(run, name)| jobs(run).iter().map(move |job| (name.as_str(), job)))
        .collect();
    let cells = |text: &dyn Fn(&JobMetrics) -> String| {
        rows.iter().map(|(_, job)| Cell(text(job), Tone::Plain)).collect::<Vec<_>>()
    };
    let left = |title: &str, cells| Column { left: true, ..column("", title, cells) };
    let names = rows.iter().map(|(name, _)| Cell(format::one_line(name, 24), Tone::Plain)).collect();
    let job_name = |job: &JobMetrics| {
        format::one_line(&job.name, 24)
            + if job.processes > 1 { format!(" ×{}", job.processes) } else { String::new() }.as_str()
    };
    let mut columns = vec![left("run", names), left("job", cells(&job_name))];
    columns.push(column("", "requests", cells(&|job| format::count(job.all.requests))));
    columns.push(column("", "MB/s", cells(&|job| format::three_digits(job.all.bandwidth_bytes_per_s / 1e6))));
    columns.push(column("", "IOPS", cells(&|job| format::three_digits(job.all.iops))));
    // A job that only discards has no request to say it of.
    let time = |job: &JobMetrics, ns: f64| {
        if job.all.requests == 0 { ABSENT.to_owned() } else { format::time(ns) }
    };
    columns.push(column("latency", "mean", cells(&|job| time(job, job.all.latency_ns.mean))));
    columns.push(column("latency", "deviation", cells(&|job| time(job, job.all.latency_ns.deviation))));
    columns.push(column("latency", "p99", cells(&|job| time(job, job.all.latency_ns.p99 as f64))));
    let both: Vec<_> = rows.iter().map(|(_, job)| [job.flushes.as_ref(), job.discards.as_ref()]).collect();
    let windows: Vec<u64> = rows.iter().map(|(_, job)| job.duration_ns).collect();
    columns.extend(commands::columns(&both, &windows));
    let fairness = |job: &JobMetrics| match job.processes {
        1 => ABSENT.to_owned(),
        _ if job.fairness == 0.0 => ABSENT.to_owned(),
        _ => format!("{:.3}", job.fairness),
    };
    columns.push(column("", "Jain", cells(&fairness)));
    columns
}

/// A paragraph per run, for narrow terminals.
pub(crate) fn stacked(results: &Results, style: Style) -> String {
    let unit = sweep::unit(results);
    let mut out = String::new();
    for (run, name) in results.runs.iter().zip(names::run_names(results)) {
        out += &paint(&format::one_line(&name, style.width.unwrap_or(80).max(8)), Tone::Strong, style);
        let throughput = format::three_digits(sweep::throughput(run));
        let iops = format::three_digits(run.metrics.all.iops);
        out += &paint(&format!("\n  {throughput} {unit}  {iops} IOPS\n"), Tone::Plain, style);
        for (title, pick) in [("read", READ), ("write", WRITE)] {
            let times = table::LATENCIES.map(|(what, get)| {
                format!("{what} {}", pick(run).map_or(ABSENT.to_owned(), |of| format::time(get(of))))
            });
            out += &paint(&format!("  {title:<5} {}\n", times.join("  ")), Tone::Plain, style);
        }
        for (title, words) in commands::completed(run) {
            out += &paint(&format!("  {title} {words}\n"), Tone::Plain, style);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_sweep_is_a_matrix_of_throughputs_and_a_single_point_a_row_per_run() {
        let text = bench(&samples::sweep(), Style::default());
        assert!(text.contains("throughput, transactions/s\n"), "{text}");
        let row = text.lines().find(|line| line.trim_start().starts_with("16 ")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["16", "500", "600"]);
        assert!(text.contains("latency of all requests, mean\n") && !text.contains("\n\n\n"), "{text}");
        assert!(!text.ends_with("\n\n"), "{text}");
        let mut one = samples::sweep();
        one.runs.retain(|run| run.labels.scheduler == "noop");
        let text = bench(&one, Style::default());
        let heading = text.lines().find(|line| line.contains("threads")).unwrap();
        assert_eq!(heading.split_whitespace().collect::<Vec<_>>(), ["threads", "noop"]);
        assert!(text.contains("throughput, transactions/s\n") && text.contains("page cleaner"), "{text}");
        one.runs.iter_mut().for_each(|run| run.closed_loop.as_mut().unwrap().operations = None);
        let text = bench(&one, Style::default());
        assert!(text.contains("throughput, MB/s, the jobs of a run together\n"), "{text}");
        let mut results = samples::sweep();
        results.runs.truncate(2);
        results.runs.iter_mut().for_each(|run| run.labels.workload.clear());
        let text = bench(&results, Style::default());
        for word in ["noop", "piq", "IOPS", "Jain", "transactions/s", "page cleaner", "threads ×4"] {
            assert!(text.contains(word), "no {word}: {text}");
        }
        assert!(!text.contains("not all jobs ran to the end"), "{text}");
        let mut apart = results.clone();
        apart.runs[0].metrics.duration_ns = 100;
        let jobs = &mut apart.runs[0].closed_loop.as_mut().unwrap().jobs;
        for (job, duration) in jobs.iter_mut().zip([100, 30]) {
            (job.background, job.duration_ns, job.all.requests) = (false, duration, 1);
        }
        assert!(bench(&apart, Style::default()).contains("not all jobs ran to the end"));
        let narrow = bench(&results, Style { width: Some(40), ..Style::default() });
        assert!(narrow.contains("IOPS") && narrow.contains("mean"), "{narrow}");
    }
}
