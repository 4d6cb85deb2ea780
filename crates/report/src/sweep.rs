//! A sweep: what varied about the workload against what else runs differ in.

use crate::names::{self, Distinction};
use planewise_sim::results::{Results, RunResult};

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

/// The sweep that results hold, if the workload varied.
pub fn sweep(results: &Results) -> Option<Sweep> {
    let varied: Vec<&str> = {
        let first = results.runs.first()?;
        first.labels.workload.keys().map(String::as_str).collect()
    };
    let is_varied = |column: &Distinction| varied.contains(&column.title.as_str());
    let (swept, rest): (Vec<Distinction>, Vec<Distinction>) =
        names::identity(results).into_iter().partition(is_varied);
    if swept.is_empty() {
        return None;
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

/// What throughput is in these results: what the workload's own benchmark counts, or megabytes.
pub fn unit(results: &Results) -> String {
    let operations = results.runs.iter().find_map(|run| run.closed_loop.as_ref()?.operations.as_ref());
    operations.map_or("MB/s".to_owned(), |operations| format!("{}/s", operations.what))
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
