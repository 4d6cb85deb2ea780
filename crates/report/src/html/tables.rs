//! The tables of the page, as rows of cells for the template.

use super::{Cell, DIRECTIONS};
use crate::format::{self, ABSENT};
use crate::names;
use crate::outside;
use crate::overload;
use crate::sweep;
use crate::table::{COLLECTION, LATENCIES, Pick, READ, WRITE};
use planewise_model::units::Bytes;
use planewise_sim::results::{DirectionMetrics, Metrics, Results, RunResult};
use serde::Serialize;

/// A row: whose it is, whether that is the baseline, and its cells.
#[derive(Serialize)]
pub(super) struct Row {
    name: String,
    baseline: bool,
    bound: bool,
    overloaded: bool,
    cells: Vec<Cell>,
}

/// A table of all runs: titles of its columns and a row per run.
#[derive(Serialize)]
pub(super) struct Table {
    titles: Vec<String>,
    rows: Vec<Row>,
}

fn rows(results: &Results, names: &[String], cells: impl Fn(&RunResult) -> Vec<Cell>) -> Vec<Row> {
    let runs = results.runs.iter().zip(names).enumerate();
    runs.map(|(index, (run, name))| Row {
        name: name.clone(),
        // Of a single run nothing is compared.
        baseline: index == results.baseline && results.runs.len() > 1,
        bound: names::is_bound(run),
        overloaded: overload::is_overloaded(run),
        cells: cells(run),
    })
    .collect()
}

/// What programs in a kernel of their own say of themselves.
pub(super) fn programs(results: &Results, names: &[String]) -> Option<Table> {
    let (titles, texts) = crate::guest::rows(results)?;
    let mut rows = rows(results, names, |_| Vec::new());
    for (row, texts) in rows.iter_mut().zip(texts) {
        row.cells = texts.into_iter().map(Cell::plain).collect();
    }
    Some(Table { titles, rows })
}

/// The comparison. The template holds its two-level heading; the titles here stand beside each value where columns do not fit.
pub(super) fn comparison(results: &Results, names: &[String]) -> Table {
    let is_single = results.runs.len() == 1;
    let mut titles = Vec::new();
    for (direction, _) in [("reads", READ), ("writes", WRITE)] {
        for title in ["mean", "p99", "p99.9", "waiting"] {
            titles.push(format!("{direction}, {title}"));
            if !is_single && matches!(title, "mean" | "p99") {
                titles.push("×".to_owned());
            }
        }
    }
    titles.push("chips busy".to_owned());
    let rows = rows(results, names, |run| {
        let baseline = names::baseline_of(results, run);
        let mut cells = Vec::new();
        for pick in [READ, WRITE] {
            let of = pick(run);
            let time = |get: fn(&DirectionMetrics) -> f64| {
                Cell::plain(of.map_or(ABSENT.to_owned(), |of| format::time(get(of))))
            };
            for (_, get) in LATENCIES {
                cells.push(time(get));
                if !is_single {
                    cells.push(Cell::ratio(of.map(get), baseline.and_then(pick).map(get)));
                }
            }
            cells.extend([time(|of| of.latency_ns.p999 as f64), time(|of| of.waiting_ns.mean)]);
        }
        if !outside::is_outside(results) {
            cells.push(Cell::plain(format::percent(run.metrics.utilization.chip.active)));
        }
        cells
    });
    Table { titles, rows }
}

/// All percentiles and throughput, a table per direction.
pub(super) fn percentiles(results: &Results, names: &[String]) -> Vec<(String, Table)> {
    let titles = ["requests", "mean", "p50", "p95", "p99", "p99.9", "p99.99", "max", "IOPS", "bandwidth"];
    let table = |direction: &str, pick: Pick| {
        let rows = rows(results, names, |run| {
            let counts = &run.metrics.requests;
            let count = if direction == "reads" { counts.reads } else { counts.writes };
            let mut texts = vec![format::count(count)];
            match pick(run) {
                None => texts.extend(std::iter::repeat_n(ABSENT.to_owned(), titles.len() - 1)),
                Some(of) => {
                    let l = &of.latency_ns;
                    texts.push(format::time(l.mean));
                    texts.extend(
                        [l.p50, l.p95, l.p99, l.p999, l.p9999, l.max].map(|ns| format::time(ns as f64)),
                    );
                    texts.extend([format::rate(of.iops), format::bandwidth(of.bandwidth_bytes_per_s)]);
                }
            }
            texts.into_iter().map(Cell::plain).collect()
        });
        Table { titles: titles.map(str::to_owned).into(), rows }
    };
    DIRECTIONS.map(|(title, pick)| (title.to_owned(), table(title, pick))).into()
}

/// One number of a run as text.
type Text = fn(&Metrics) -> String;

fn table(results: &Results, names: &[String], columns: &[(&str, Text)]) -> Table {
    Table {
        titles: columns.iter().map(|(title, _)| (*title).to_owned()).collect(),
        rows: rows(results, names, |run| {
            columns.iter().map(|(_, text)| Cell::plain(text(&run.metrics))).collect()
        }),
    }
}

/// What closed loops got done: a row per run. None where traces were replayed.
pub(super) fn throughput(results: &Results, names: &[String]) -> Option<Table> {
    results.runs.iter().find(|run| run.closed_loop.is_some())?;
    let titles = [&sweep::unit(results), "IOPS", "bandwidth", "mean", "deviation", "processes", "fairness"];
    let rows = rows(results, names, |run| {
        let m = &run.metrics;
        let texts = [
            format::three_digits(sweep::throughput(run)),
            format::rate(m.all.iops),
            format::bandwidth(m.all.bandwidth_bytes_per_s),
            format::time(m.all.latency_ns.mean),
            format::time(m.all.latency_ns.deviation),
            format::count(m.fairness.processes.into()),
            or_absent(m.fairness.processes.saturating_sub(1).into(), || {
                format!("{:.3}", m.fairness.bandwidth)
            }),
        ];
        texts.map(Cell::plain).into()
    });
    Some(Table { titles: titles.map(str::to_owned).into(), rows })
}

/// Rows of the table of jobs at most: a longer one is read by a program, from `results.json`.
pub(super) const JOB_ROWS_MAX: usize = 40;

/// Rows that the table of jobs has, or would have.
pub(super) fn job_rows(results: &Results) -> usize {
    let jobs = results.runs.iter().filter_map(|run| Some(run.closed_loop.as_ref()?.jobs.len()));
    jobs.filter(|jobs| *jobs > 1).sum()
}

/// The jobs of closed loops: a row for each of each run, where there are several, and not too many.
pub(super) fn jobs(results: &Results, names: &[String]) -> Option<Table> {
    let mut titles =
        vec!["requests", "IOPS", "bandwidth", "mean", "deviation", "p50", "p99", "p99.9", "fairness"];
    let all = results.runs.iter().filter_map(|run| run.closed_loop.as_ref()).flat_map(|closed| &closed.jobs);
    let flush = all.clone().any(|job| job.flushes.is_some());
    let discard = all.clone().any(|job| job.discards.is_some());
    if flush {
        titles.extend(["flushes", "mean", "p99"]);
    }
    if discard {
        titles.extend(["discards", "volume", "mean", "p99"]);
    }
    let mut rows = Vec::new();
    if job_rows(results) > JOB_ROWS_MAX {
        return None;
    }
    for (index, (run, name)) in results.runs.iter().zip(names).enumerate() {
        let jobs = run.closed_loop.as_ref().map_or(&[][..], |closed| &closed.jobs);
        for job in jobs.iter().filter(|_| jobs.len() > 1) {
            let l = &job.all.latency_ns;
            let mut texts = vec![
                format::count(job.all.requests),
                format::rate(job.all.iops),
                format::bandwidth(job.all.bandwidth_bytes_per_s),
            ];
            texts.extend([l.mean, l.deviation].map(format::time));
            texts.extend([l.p50, l.p99, l.p999].map(|ns| format::time(ns as f64)));
            let is_shared = job.processes > 1 && job.fairness > 0.0;
            texts.push(or_absent(is_shared.into(), || format!("{:.3}", job.fairness)));
            let commands = [(flush, &job.flushes), (discard, &job.discards)];
            for (kind, (_, metrics)) in commands.into_iter().enumerate().filter(|(_, (shown, _))| *shown) {
                let metrics = metrics.clone().unwrap_or_default();
                texts.push(format::count(metrics.count));
                if kind == 1 {
                    texts.push(or_absent(metrics.count, || Bytes(metrics.bytes).to_string()));
                }
                let latency = &metrics.latency_ns;
                let times = [latency.mean, latency.p99 as f64];
                texts.extend(times.map(|ns| or_absent(metrics.count, || format::time(ns))));
            }
            rows.push(Row {
                name: format!("{name} · {}", job.name),
                baseline: index == results.baseline,
                bound: false,
                overloaded: false,
                cells: texts.into_iter().map(Cell::plain).collect(),
            });
        }
    }
    (!rows.is_empty()).then(|| Table { titles: titles.into_iter().map(str::to_owned).collect(), rows })
}

/// Lateness and what was done to requests, of replays on targets: a row per run.
pub(super) fn lateness(results: &Results, names: &[String]) -> Option<Table> {
    results.runs.iter().find(|run| run.replay.is_some())?;
    let titles = ["pace", "p50", "p95", "p99", "p99.9", "max", "bound for p99", "verdict", "requests"];
    let rows = rows(results, names, |run| {
        let Some(replay) = &run.replay else { return Vec::new() };
        let of = &replay.lateness_ns;
        let times = [of.p50, of.p95, of.p99, of.p999, of.max, replay.lateness_bound_ns];
        let mut texts = vec![format::one_line(&run.labels.pace, 20)];
        texts.extend(times.map(|ns| format::time(ns as f64)));
        texts.push(
            outside::unfaithful(run)
                .unwrap_or_else(|| replay.faithful.map_or("nothing was due", |_| "faithful").to_owned()),
        );
        texts.push(outside::changes(run).join(", "));
        texts.into_iter().map(Cell::plain).collect()
    });
    Some(Table { titles: titles.map(str::to_owned).into(), rows })
}

/// Flushes and discards: a row per run, where any completed one.
pub(super) fn commands(results: &Results, names: &[String]) -> Option<Table> {
    let of = |run: &RunResult| [run.metrics.flushes.clone(), run.metrics.discards.clone()];
    results.runs.iter().find(|run| of(run).iter().any(Option::is_some))?;
    let titles = ["flushes", "mean", "p99", "max", "discards", "volume", "mean", "p99", "max"];
    let rows = rows(results, names, |run| {
        let mut texts = Vec::new();
        for (kind, metrics) in of(run).into_iter().enumerate() {
            let metrics = metrics.unwrap_or_default();
            let time = |ns: f64| or_absent(metrics.count, || format::time(ns));
            texts.push(format::count(metrics.count));
            if kind == 1 {
                texts.push(or_absent(metrics.count, || Bytes(metrics.bytes).to_string()));
            }
            let latency = &metrics.latency_ns;
            texts.extend([latency.mean, latency.p99 as f64, latency.max as f64].map(time));
        }
        texts.into_iter().map(Cell::plain).collect()
    });
    Some(Table { titles: titles.map(str::to_owned).into(), rows })
}

/// Flash operations: a row per run.
pub(super) fn flash(results: &Results, names: &[String]) -> Table {
    let columns: [(&str, Text); 7] = [
        ("page reads", |m| format::count(m.flash.reads)),
        ("page programs", |m| format::count(m.flash.programs)),
        ("block erases", |m| format::count(m.flash.erases)),
        ("read-modify-writes", |m| format::count(m.flash.read_modify_writes)),
        ("multi-plane pages", |m| format::count(m.flash.multiplane)),
        ("die-interleaved", |m| format::count(m.flash.interleaved)),
        ("copybacks", |m| format::count(m.flash.copybacks)),
    ];
    table(results, names, &columns)
}

/// Collections as the terminal's table has them: a row per run.
pub(super) fn collection(results: &Results, names: &[String]) -> Table {
    let mut titles = Vec::new();
    for column in &COLLECTION {
        titles.push(column.words.to_owned());
        titles.extend(column.ratio.map(|_| "×".to_owned()));
    }
    let rows = rows(results, names, |run| {
        let baseline = names::baseline_of(results, run);
        let gc = &run.metrics.gc;
        let mut cells = Vec::new();
        for column in &COLLECTION {
            cells.push(Cell::plain((column.text)(gc).unwrap_or_else(|| ABSENT.to_owned())));
            if let Some(time) = column.ratio {
                cells.push(Cell::ratio(time(gc), baseline.and_then(|run| time(&run.metrics.gc))));
            }
        }
        cells
    });
    Table { titles, rows }
}

/// What only the page has room for about collections: a row per run.
pub(super) fn meetings(results: &Results, names: &[String]) -> Table {
    let columns: [(&str, Text); 10] = [
        ("begin to end", |m| or_absent(m.gc.collections, || format::time(m.gc.cost.span_ns))),
        ("on other chips", |m| or_absent(m.gc.collections, || format::time(m.gc.cost.elsewhere_ns))),
        ("idle chips meanwhile", |m| or_absent(m.gc.collections, || format::percent(m.gc.idle_chip_share))),
        ("at its start", |m| or_absent(m.gc.collections, || format::percent(m.gc.idle_chip_share_at_start))),
        ("conflicts avoided", |m| format::count(m.gc.conflicts.avoided)),
        ("conflicts made", |m| format::count(m.gc.conflicts.new)),
        ("reads served by the buffer", |m| format::count(m.gc.buffer.reads_served)),
        ("time in the buffer", |m| {
            or_absent(m.gc.buffer.written_back, || format::time(m.gc.buffer.residency_ns_mean))
        }),
        ("reads sent to replicas", |m| format::count(m.gc.replicas.reads_redirected)),
        ("suspensions", |m| format::count(m.gc.suspensions)),
    ];
    table(results, names, &columns)
}

fn or_absent(count: u64, text: impl Fn() -> String) -> String {
    if count > 0 { text() } else { ABSENT.to_owned() }
}

/// Requests, queue depth and the measured window: a row per run.
pub(super) fn requests(results: &Results, names: &[String]) -> Table {
    let columns: [(&str, Text); 9] = [
        ("submitted", |m| format::count(m.requests.submitted)),
        ("completed", |m| format::count(m.requests.completed)),
        ("merged", |m| format::count(m.requests.merged)),
        ("direction switches", |m| format::count(m.direction_switches)),
        ("mean queue depth", |m| format::three_digits(m.mean_queue_depth)),
        ("deviation of latency", |m| format::time(m.all.latency_ns.deviation)),
        ("processes", |m| format::count(m.fairness.processes.into())),
        ("fairness", |m| {
            or_absent(m.fairness.processes.saturating_sub(1).into(), || {
                format!("{:.3}", m.fairness.bandwidth)
            })
        }),
        ("measured window", |m| format::time(m.duration_ns as f64)),
    ];
    table(results, names, &columns)
}

/// What each run has of its own: notes, tunables, counters of its scheduler, invariants checked.
#[derive(Serialize)]
pub(super) struct Own {
    name: String,
    notes: Vec<String>,
    tunables: Vec<(String, String)>,
    counters: Vec<(String, String)>,
    invariants: Vec<(String, String)>,
}

/// For each run, what it has of its own.
pub(super) fn own(results: &Results, names: &[String]) -> Vec<Own> {
    let counts = |map: &std::collections::BTreeMap<String, u64>| {
        map.iter().map(|(key, n)| (key.clone(), format::count(*n))).collect()
    };
    let runs = results.runs.iter().zip(names);
    runs.map(|(run, name)| Own {
        name: name.clone(),
        notes: run.notes.clone(),
        tunables: run.tunables.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        counters: counts(&run.scheduler_counters),
        invariants: counts(&run.invariants),
    })
    .collect()
}
