//! What tells the runs of one invocation apart: the labels (and, in sweeps, the tunables) that differ between them.

use crate::sweep::sweep;
use planewise_sim::results::{Labels, Results, RunResult};
use std::collections::BTreeSet;

/// A distinguishing column: its title and one value per run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distinction {
    /// Name of the label or tunable.
    pub title: String,
    /// Value for each run, in the order of the runs; empty where a run has no such tunable.
    pub values: Vec<String>,
}

/// The labels other than the scheduler that differ between runs; then, while two runs still look the same, their differing tunables.
pub fn distinctions(results: &Results) -> Vec<Distinction> {
    let runs = &results.runs;
    let mut found: Vec<Distinction> =
        LABELS.iter().map(|(title, get)| label(runs, title, *get)).filter(Distinction::differs).collect();
    found.extend(varied(runs));
    if has_twins(runs) {
        found.extend(differing_tunables(runs));
    }
    found
}

/// What names a run: the scheduler, unless it is the same everywhere and something else differs, and all that differs.
pub fn identity(results: &Results) -> Vec<Distinction> {
    let mut columns = distinctions(results);
    let scheduler = label(&results.runs, "scheduler", |labels| labels.scheduler.clone());
    if columns.is_empty() || scheduler.differs() {
        columns.insert(0, scheduler);
    }
    columns
}

/// One name per run, unique: `piq`, `piq · plane · ncq:32` when more than the scheduler differs, `idle_chip` when only the
/// collection scheme does.
pub fn run_names(results: &Results) -> Vec<String> {
    let columns = identity(results);
    let mut names: Vec<String> = Vec::with_capacity(results.runs.len());
    for index in 0..results.runs.len() {
        let mut words: Vec<String> = Vec::with_capacity(columns.len());
        for column in &columns {
            let value = &column.values[index];
            match column.title.as_str() {
                _ if value.is_empty() => {}
                "scheduler" | "level" | "allocation" | "gc" | "condition" | "device" | "trace"
                | "command queue" => words.push(value.clone()),
                title => words.push(format!("{title} {value}")),
            }
        }
        let mut name = words.join(" · ");
        if names.contains(&name) {
            name += &format!(" #{}", index + 1);
        }
        names.push(name);
    }
    names
}

/// What was served, in a word.
pub fn served(results: &Results) -> &'static str {
    match results.setup.trace.format.as_str() {
        "workload" => "workload",
        "experiment" => "experiment",
        "linux" => "program",
        _ => "trace",
    }
}

/// Whether a run shows what no device could do: a bound is something to measure against, never a winner.
pub fn is_bound(run: &RunResult) -> bool {
    let bound = |name: &str| planewise_sim::gc::find(name).is_ok_and(|scheme| scheme.bound);
    bound(&run.labels.gc) || run.labels.allocation == "conflict-free"
}

/// Whether runs differ in what garbage collection does, or in what it has to work with.
pub fn differ_in_collection(results: &Results) -> bool {
    let titles = ["gc", "victims", "buffer pages", "gc threshold", "separate", "wear", "condition"];
    distinctions(results).iter().any(|column| titles.contains(&column.title.as_str()))
}

/// Options of the workload that were varied.
fn varied(runs: &[RunResult]) -> Vec<Distinction> {
    let keys: BTreeSet<&String> = runs.iter().flat_map(|run| run.labels.workload.keys()).collect();
    let column = |key: &String| Distinction {
        title: key.clone(),
        values: runs.iter().map(|run| run.labels.workload.get(key).cloned().unwrap_or_default()).collect(),
    };
    keys.into_iter().map(column).filter(Distinction::differs).collect()
}

impl Distinction {
    fn differs(&self) -> bool {
        self.values.windows(2).any(|pair| pair[0] != pair[1])
    }
}

fn label(runs: &[RunResult], title: &str, get: Get) -> Distinction {
    Distinction { title: title.to_owned(), values: runs.iter().map(|run| get(&run.labels)).collect() }
}

type Get = fn(&Labels) -> String;

const LABELS: &[(&str, Get)] = &[
    ("level", |labels| labels.level.clone()),
    ("allocation", |labels| labels.allocation.clone()),
    ("gc", |labels| labels.gc.clone()),
    ("victims", |labels| labels.victims.clone()),
    ("buffer pages", |labels| labels.buffer_pages.to_string()),
    ("gc threshold", |labels| labels.gc_threshold.to_string()),
    ("separate", |labels| if labels.hot_cold_separation { "on" } else { "off" }.to_owned()),
    ("wear", |labels| labels.wear.clone()),
    ("condition", |labels| labels.condition.clone()),
    ("flash scheduler", |labels| labels.flash_scheduler.clone()),
    ("device", |labels| labels.device.clone()),
    ("trace", |labels| labels.trace.clone()),
    ("command queue", |labels| labels.command_queue.clone()),
    ("queue", |labels| labels.queue_length.to_string()),
    ("request pools", |labels| labels.request_pools.clone()),
    ("merging", |labels| labels.merging.clone()),
    ("pace", |labels| labels.pace.clone()),
    ("overlap", |labels| labels.overlap.clone()),
    ("block layer", |labels| labels.block_layer.clone()),
    ("seed", |labels| labels.seed.to_string()),
];

/// What the runs' ratios refer to, in words.
pub fn baseline_name(results: &Results) -> Option<String> {
    let name = run_names(results).into_iter().nth(results.baseline)?;
    let Some(sweep) = sweep(results) else { return Some(name) };
    let column =
        sweep.runs.iter().find_map(|row| row.iter().position(|run| *run == Some(results.baseline)))?;
    Some(match sweep.columns[column].as_str() {
        "" => name,
        scheme => format!("{scheme} with the same {}", sweep.title),
    })
}

/// Whether any run's ratios refer to another run: in a sweep of the workload under one scheme, none does.
pub fn is_compared(results: &Results) -> bool {
    results.runs.iter().any(|run| baseline_of(results, run).is_some_and(|base| !std::ptr::eq(base, run)))
}

/// The run that a run's ratios refer to: the baseline, or in a sweep of the workload the baseline's scheme under the same workload.
pub fn baseline_of<'a>(results: &'a Results, run: &RunResult) -> Option<&'a RunResult> {
    let baseline = results.runs.get(results.baseline)?;
    if run.labels.workload == baseline.labels.workload {
        return Some(baseline);
    }
    let labels = Labels { workload: run.labels.workload.clone(), ..baseline.labels.clone() };
    results.runs.iter().find(|other| other.labels == labels && other.tunables == baseline.tunables)
}

fn has_twins(runs: &[RunResult]) -> bool {
    runs.iter().enumerate().any(|(i, run)| runs[..i].iter().any(|other| other.labels == run.labels))
}

/// Tunables that differ between runs with equal labels.
fn differing_tunables(runs: &[RunResult]) -> Vec<Distinction> {
    let mut keys: Vec<&String> = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        for other in runs[..i].iter().filter(|other| other.labels == run.labels) {
            let either = run.tunables.keys().chain(other.tunables.keys());
            keys.extend(either.filter(|key| run.tunables.get(*key) != other.tunables.get(*key)));
        }
    }
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
        .map(|key| Distinction {
            title: key.clone(),
            values: runs.iter().map(|run| run.tunables.get(key).cloned().unwrap_or_default()).collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn schedulers_alone_need_no_further_column() {
        let results = samples::six_schedulers();
        assert!(distinctions(&results).is_empty());
        assert_eq!(run_names(&results)[1], "rws");
    }

    #[test]
    fn differing_labels_and_tunables_become_columns_and_names_stay_unique() {
        let mut results = samples::six_schedulers();
        results.runs.truncate(3);
        for run in &mut results.runs {
            run.labels.scheduler = "piq".to_owned();
        }
        results.runs[0].labels.level = "chip".to_owned();
        results.runs[1].tunables.insert("threshold_ms".to_owned(), "1".to_owned());
        results.runs[2].tunables.insert("threshold_ms".to_owned(), "5".to_owned());
        let titles: Vec<String> = distinctions(&results).into_iter().map(|column| column.title).collect();
        assert_eq!(titles, ["level", "threshold_ms"]);
        let names = run_names(&results);
        assert_eq!(names[1], "plane · threshold_ms 1");
        results.runs[2] = results.runs[1].clone();
        let names = run_names(&results);
        assert_ne!(names[1], names[2]);
    }

    #[test]
    fn a_scheduler_that_all_share_names_none_of_them() {
        let mut results = samples::collections();
        assert_eq!(run_names(&results)[..3], ["traditional", "preemptive", "dpr"]);
        assert!(differ_in_collection(&results) && !differ_in_collection(&samples::six_schedulers()));
        assert_eq!(results.runs.iter().filter(|run| is_bound(run)).count(), 1);
        results.runs[3].labels.buffer_pages = 64;
        results.runs[3].labels.scheduler = "piq".to_owned();
        assert_eq!(run_names(&results)[3], "piq · idle_chip · buffer pages 64");
    }
}
