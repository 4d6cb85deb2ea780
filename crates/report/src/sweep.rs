//! A sweep: what varied about the workload against what else runs differ in.

use crate::names::{self, Distinction};
use planewise_sim::results::{Results, RunResult};
use std::collections::BTreeSet;

/// A matrix of runs.
pub struct Sweep {
    /// What varied: the name of one option, or several joined.
    pub title: String,
    /// Its values, in the order of the runs.
    pub values: Vec<String>,
    /// What else runs differ in: schedulers, for one.
    pub columns: Vec<String>,
    /// Index of the run, by value and column; none when it did not finish.
    pub runs: Vec<Vec<Option<usize>>>,
}

/// The sweep that results hold, if the workload varied: a row for each combination of values.
pub fn sweep(results: &Results) -> Option<Sweep> {
    arranged(results, false)
}

/// The sweep as a figure has it: along the option with the most values; what else was varied tells lines apart.
pub fn along_one(results: &Results) -> Option<Sweep> {
    arranged(results, true)
}

fn arranged(results: &Results, along_one: bool) -> Option<Sweep> {
    let varied: Vec<&str> = {
        let first = results.runs.first()?;
        first.labels.workload.keys().map(String::as_str).collect()
    };
    let is_varied = |column: &Distinction| varied.contains(&column.title.as_str());
    let (mut swept, mut rest): (Vec<Distinction>, Vec<Distinction>) =
        names::identity(results).into_iter().partition(is_varied);
    if swept.is_empty() {
        return None;
    }
    if along_one {
        let several = |column: &Distinction| column.values.iter().collect::<BTreeSet<_>>().len();
        // The first of those with the most.
        let longest = (0..swept.len()).rev().max_by_key(|place| several(&swept[*place])).unwrap_or(0);
        let axis = swept.remove(longest);
        for mut other in std::mem::replace(&mut swept, vec![axis]) {
            other.values.iter_mut().for_each(|value| *value = format!("{} {value}", other.title));
            rest.push(other);
        }
    }
    let word = |columns: &[Distinction], run: usize| {
        let values = columns.iter().map(|column| column.values[run].as_str());
        values.filter(|value| !value.is_empty()).collect::<Vec<_>>().join(" · ")
    };
    let mut sweep = Sweep {
        title: swept.iter().map(|column| column.title.as_str()).collect::<Vec<_>>().join(" · "),
        values: Vec::new(),
        columns: Vec::new(),
        runs: Vec::new(),
    };
    for run in 0..results.runs.len() {
        let (value, column) = (word(&swept, run), word(&rest, run));
        let place = |known: &mut Vec<String>, name: String| {
            known.iter().position(|other| *other == name).unwrap_or_else(|| {
                known.push(name);
                known.len() - 1
            })
        };
        let (row, column) = (place(&mut sweep.values, value), place(&mut sweep.columns, column));
        sweep.runs.resize(sweep.values.len(), Vec::new());
        for cells in &mut sweep.runs {
            cells.resize(sweep.columns.len(), None);
        }
        sweep.runs[row][column] = Some(run);
    }
    Some(sweep)
}

/// The name of a column, which is that of the shared scheduler where runs differ in nothing else.
pub fn column_name<'a>(results: &'a Results, name: &'a str) -> &'a str {
    match results.runs.first() {
        Some(run) if name.is_empty() => &run.labels.scheduler,
        _ => name,
    }
}

/// For each run, the index of what it is drawn as: in a sweep its column, so that a scheduler looks the same for all values.
pub fn series(results: &Results) -> Vec<usize> {
    let mut series: Vec<usize> = (0..results.runs.len()).collect();
    if let Some(sweep) = sweep(results) {
        for row in &sweep.runs {
            for (column, run) in row.iter().enumerate().filter_map(|(column, run)| Some((column, (*run)?))) {
                series[run] = column;
            }
        }
    }
    series
}

/// What throughput is in these results: what the workload's own benchmark counts, or megabytes.
pub fn unit(results: &Results) -> String {
    let operations = results.runs.iter().find_map(|run| run.closed_loop.as_ref()?.operations.as_ref());
    operations.map_or("MB/s".to_owned(), |operations| format!("{}/s", operations.what))
}

/// What to say of throughput in bytes where runs have several jobs: it is their sum.
pub fn together(results: &Results) -> &'static str {
    let jobs = |run: &RunResult| run.closed_loop.as_ref().map_or(0, |closed| closed.jobs.len());
    if unit(results) == "MB/s" && results.runs.iter().any(|run| jobs(run) > 1) {
        ", the jobs of a run together"
    } else {
        ""
    }
}

/// The throughput of a run in that unit.
pub fn throughput(run: &RunResult) -> f64 {
    let operations = run.closed_loop.as_ref().and_then(|closed| closed.operations.as_ref());
    operations.map_or(run.metrics.all.bandwidth_bytes_per_s / 1e6, |operations| operations.per_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_figure_goes_along_the_option_with_the_most_values_and_the_other_tells_lines_apart() {
        let mut results = samples::sweep();
        results.runs.iter_mut().enumerate().for_each(|(index, run)| {
            run.labels.scheduler = "noop".to_owned();
            run.labels.workload.insert("bs".to_owned(), ["4k", "8k"][index % 2].to_owned());
        });
        assert_eq!(sweep(&results).unwrap().values.len(), 6);
        let figure = along_one(&results).unwrap();
        assert_eq!((figure.title.as_str(), figure.values.len()), ("threads", 3));
        assert_eq!(figure.columns, ["bs 4k", "bs 8k"]);
        assert_eq!(column_name(&results, ""), "noop");
        assert_eq!(series(&samples::sweep()), [0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn runs_fall_into_rows_of_values_and_columns_of_schemes_and_missing_ones_leave_gaps() {
        let mut results = samples::sweep();
        let all = sweep(&results).unwrap();
        assert_eq!(
            (all.title.as_str(), all.values.as_slice()),
            ("threads", ["1", "4", "16"].map(String::from).as_slice())
        );
        assert_eq!(all.columns, ["noop", "piq"]);
        assert_eq!(all.runs, [[Some(0), Some(1)], [Some(2), Some(3)], [Some(4), Some(5)]]);
        assert_eq!(unit(&results), "transactions/s");
        results.runs.pop();
        assert_eq!(sweep(&results).unwrap().runs[2], [Some(4), None]);
        assert!(sweep(&samples::six_schedulers()).is_none());
        assert_eq!(unit(&samples::six_schedulers()), "MB/s");
    }
}
