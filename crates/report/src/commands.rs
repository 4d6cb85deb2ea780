//! Flushes and discards in words: they are neither reads nor writes, and stand in no column of either.

use crate::format::{self, ABSENT};
use crate::table::{Cell, Column, Tone};
use planewise_model::units::Bytes;
use planewise_sim::results::{CommandMetrics, RunResult};

/// A line for each kind that a run completed: its title, and how many there were and how long they took.
pub(crate) fn completed(run: &RunResult) -> Vec<(&'static str, String)> {
    let of = [("flushes", &run.metrics.flushes), ("discards", &run.metrics.discards)];
    of.into_iter().filter_map(|(title, metrics)| Some((title, words(metrics.as_ref()?)))).collect()
}

/// The same as one sentence; none where there was neither.
pub(crate) fn sentence(run: &RunResult) -> Option<String> {
    let said = completed(run).into_iter().map(|(title, words)| format!("{title}: {words}"));
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// Columns of flushes and of discards for a table whose rows have these, in that order, over windows of so many ns: none where no row has any.
pub(crate) fn columns(rows: &[[Option<&CommandMetrics>; 2]], windows_ns: &[u64]) -> Vec<Column> {
    let column = |group: &'static str, title: &str, text: &dyn Fn(usize) -> Option<String>| {
        let cells = (0..rows.len())
            .map(|row| Cell(text(row).unwrap_or_else(|| ABSENT.to_owned()), Tone::Plain))
            .collect();
        Column { group, title: title.to_owned(), left: false, glued: false, cells }
    };
    let mut columns = Vec::new();
    for (kind, group) in [FLUSHES, DISCARDS].into_iter().enumerate() {
        let of = |row: usize| rows[row][kind];
        if !(0..rows.len()).any(|row| of(row).is_some()) {
            continue;
        }
        if kind == 1 {
            let rate = |row: usize| of(row).map(|of| format::three_digits(mb_per_s(of, windows_ns[row])));
            columns.push(column(group, "MB/s", &rate));
        }
        let rate = |row: usize| of(row).map(|of| format::three_digits(per_s(of.count, windows_ns[row])));
        columns.push(column(group, "/s", &rate));
        columns.push(column(group, "mean", &|row| of(row).map(|of| format::time(of.latency_ns.mean))));
        columns.push(column(group, "p99", &|row| of(row).map(|of| format::time(of.latency_ns.p99 as f64))));
    }
    columns
}

/// Groups of columns.
pub(crate) const FLUSHES: &str = "flushes";
/// As [`FLUSHES`].
pub(crate) const DISCARDS: &str = "discards";

fn per_s(amount: u64, window_ns: u64) -> f64 {
    if window_ns == 0 { 0.0 } else { amount as f64 * 1e9 / window_ns as f64 }
}

/// Discarded bytes over a window, MB/s.
pub(crate) fn mb_per_s(metrics: &CommandMetrics, window_ns: u64) -> f64 {
    per_s(metrics.bytes, window_ns) / 1e6
}

fn words(metrics: &CommandMetrics) -> String {
    let latency = &metrics.latency_ns;
    let [p99, longest] = [latency.p99, latency.max].map(|time| format::time(time as f64));
    let covers = if metrics.bytes > 0 { format!(" of {}", Bytes(metrics.bytes)) } else { String::new() };
    format!(
        "{}{covers}, mean {}, p99 {p99}, max {longest}",
        format::count(metrics.count),
        format::time(latency.mean)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use crate::table::{Style, comparison};
    use planewise_sim::results::Distribution;

    #[test]
    fn flushes_and_discards_are_said_below_the_table_and_on_the_page_and_only_where_there_are_some() {
        let mut results = samples::six_schedulers();
        assert_eq!(sentence(&results.runs[0]), None);
        let latency_ns =
            Distribution { mean: 1_234_000.0, p99: 3_000_000, max: 4_000_000, ..Default::default() };
        results.runs[0].metrics.flushes = Some(CommandMetrics { count: 6_919, bytes: 0, latency_ns });
        results.runs[0].metrics.discards = Some(CommandMetrics { count: 2, bytes: 1 << 20, latency_ns });
        let text = comparison(&results, Style::default());
        for said in
            ["flushes: 6,919, mean 1.23 ms, p99 3.00 ms, max 4.00 ms", "discards: 2 of 1.0 MiB, mean 1.23 ms"]
        {
            assert!(text.contains(said), "{text}");
        }
        assert!(crate::html(&results).contains("Flushes and discards"));
        results.runs.truncate(1);
        let text = crate::single::single(&results, Style::default());
        assert!(text.contains("flushes         6,919"), "{text}");
    }

    #[test]
    fn a_bench_has_columns_of_flushes_and_discards_for_runs_and_jobs_only_where_there_are_some() {
        let mut results = samples::sweep();
        results.runs.truncate(2);
        results.runs.iter_mut().for_each(|run| run.labels.workload.clear());
        let plain = crate::bench::bench(&results, Style::default());
        assert!(!plain.contains(FLUSHES) && !plain.contains(DISCARDS), "{plain}");
        let latency_ns = Distribution { mean: 1_234_000.0, p99: 3_000_000, ..Default::default() };
        let run = &mut results.runs[0];
        run.metrics.duration_ns = 2_000_000_000;
        run.metrics.discards = Some(CommandMetrics { count: 4, bytes: 8_000_000, latency_ns });
        let jobs = &mut run.closed_loop.as_mut().unwrap().jobs;
        jobs[0].flushes = Some(CommandMetrics { count: 10, bytes: 0, latency_ns });
        jobs[0].duration_ns = 1_000_000_000;
        let text = crate::bench::bench(&results, Style::default());
        let (runs, jobs) = text.split_once("jobs").unwrap();
        assert!(runs.contains(DISCARDS) && !runs.contains(FLUSHES), "{text}");
        // 8 MB in 2 s; 10 flushes in 1 s; the other rows have none.
        let row = runs.lines().find(|line| line.starts_with("noop")).unwrap();
        assert!(row.contains("4.00  2.00  1.23 ms  3.00 ms"), "{text}");
        assert!(jobs.contains(FLUSHES) && jobs.contains("10.0  1.23 ms  3.00 ms"), "{text}");
        let other = runs.lines().find(|line| line.starts_with("piq")).unwrap();
        assert!(other.split_whitespace().filter(|cell| *cell == "–").count() >= 4, "{text}");
    }
}
