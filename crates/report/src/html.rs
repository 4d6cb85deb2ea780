//! One self-contained page: summary, table, plots, counters, setup. No script, nothing fetched.

use crate::format::{self, ABSENT};
use crate::names;
use crate::outside;
use crate::overload;
use crate::plot::{bars, cdf, lines, look};
use crate::summary;
use crate::sweep;
use crate::table::{Pick, READ, Tone, WRITE, conflicted, ratio_tone};
use minijinja::{Environment, Value, context};
use planewise_sim::results::{
    DirectionMetrics, GcCost, GuestNumber, Metrics, Results, Status, UnitUtilization,
};
use serde::Serialize;

mod reproduce;
pub use reproduce::{GUEST_COMMAND, quoted};
mod tables;

/// The page. Names from traces, profiles and options are escaped; the same results give the same bytes.
pub fn html(results: &Results) -> String {
    let mut environment = Environment::new();
    // The name ends in .html: every value is escaped unless marked as safe.
    environment
        .add_template("report.html", include_str!("../templates/report.html"))
        .expect("the template is tested");
    let names = names::run_names(results);
    let page = environment.get_template("report.html").expect("just added");
    page.render(context! {
        style => Value::from_safe_string(include_str!("../templates/report.css").to_owned()),
        title => title(results),
        interrupted => results.status == Status::Interrupted,
        cut_short => cut_short(results, &names),
        overloads => overloads(results, &names),
        overload_meaning => overload::MEANING,
        overload_remedy => overload::remedy(results),
        summary => summary::summary(results),
        programs => tables::programs(results, &names),
        program_bars => figures(program_bars(results, &names)),
        comparison => (!results.runs.is_empty()).then(|| tables::comparison(results, &names)),
        single => results.runs.len() == 1,
        percentiles => tables::percentiles(results, &names),
        outside => outside::is_outside(results),
        flash => tables::flash(results, &names),
        lateness => tables::lateness(results, &names),
        commands => tables::commands(results, &names),
        collection => collected(results).then(|| tables::collection(results, &names)),
        meetings => tables::meetings(results, &names),
        collections => figures(collections(results, &names)),
        requests => tables::requests(results, &names),
        own => tables::own(results, &names),
        throughput => tables::throughput(results, &names),
        jobs => tables::jobs(results, &names),
        job_rows => tables::job_rows(results),
        job_rows_max => tables::JOB_ROWS_MAX,
        ran_apart => results.runs.iter().any(crate::bench::jobs_ran_apart),
        served => names::served(results),
        sweep => figures(swept(results)),
        distributions => figures(distributions(results, &names)),
        times => figures(times(results, &names)),
        utilization => figures(utilization(results, &names)),
        shares => figures(shares(results, &names)),
        setup => &results.setup,
        generator => &results.generator,
        format_version => results.format,
        seeds => seeds(results),
        baseline => names::baseline_name(results),
        compared => names::is_compared(results),
        command => reproduce::command(results),
    })
    .expect("the template takes any results: it is rendered for all samples in the tests")
}

/// A plot with its heading; without a plot, why there is none.
#[derive(Serialize)]
struct Figure {
    heading: String,
    svg: Option<Value>,
    absent: &'static str,
}

/// A heading with its plot, or why there is none.
type Drawn = (String, Result<String, &'static str>);

fn figures(drawn: Vec<Drawn>) -> Vec<Figure> {
    let figure = |(heading, plot): Drawn| match plot {
        Ok(svg) => Figure { heading, svg: Some(Value::from_safe_string(svg)), absent: "" },
        Err(absent) => Figure { heading, svg: None, absent },
    };
    drawn.into_iter().map(figure).collect()
}

fn title(results: &Results) -> String {
    let trace = format::one_line(&results.setup.trace.name, 60);
    let served = names::served(results);
    match results.runs.as_slice() {
        [] => format!("{trace}: no run finished"),
        [run] => format!(
            "{}{} on {}, {served} {trace}",
            format::one_line(&run.labels.scheduler, 40),
            match run.metrics.gc.collections {
                0 => String::new(),
                _ => format!(" with {} garbage collection", format::one_line(&run.labels.gc, 40)),
            },
            format::one_line(&run.labels.device, 40)
        ),
        runs => {
            let same_device = runs.windows(2).all(|pair| pair[0].labels.device == pair[1].labels.device);
            let device = if same_device {
                format::one_line(&runs[0].labels.device, 40)
            } else {
                "several devices".to_owned()
            };
            let differing = names::distinctions(results);
            let what = match differing.as_slice() {
                [] => "schedulers",
                [only]
                    if only.title == "gc"
                        && !names::identity(results).iter().any(|of| of.title == "scheduler") =>
                {
                    "garbage collection schemes"
                }
                _ => "runs",
            };
            format!("{} {what} on {device}, {served} {trace}", runs.len())
        }
    }
}

fn cut_short(results: &Results, names: &[String]) -> Vec<String> {
    let pairs = results.runs.iter().zip(names);
    pairs.filter(|(run, _)| run.status == Status::Interrupted).map(|(_, name)| name.clone()).collect()
}

fn overloads(results: &Results, names: &[String]) -> Vec<String> {
    let pairs = results.runs.iter().zip(names);
    pairs.filter_map(|(run, name)| Some(format!("{name}: {}", overload::overloaded(run)?))).collect()
}

fn seeds(results: &Results) -> String {
    let mut seeds: Vec<u64> = results.runs.iter().map(|run| run.labels.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

const DIRECTIONS: [(&str, Pick); 2] = [("reads", READ), ("writes", WRITE)];

/// Throughput over what varied about the workload.
fn swept(results: &Results) -> Vec<Drawn> {
    let Some(sweep) = sweep::along_one(results) else { return Vec::new() };
    let of_column = |(place, name): (usize, &String)| {
        let value = |row: &Vec<Option<usize>>| row[place].map(|run| sweep::throughput(&results.runs[run]));
        let name = sweep::column_name(results, name).to_owned();
        (name, sweep.runs.iter().map(value).collect::<Vec<_>>())
    };
    let columns: Vec<(String, Vec<Option<f64>>)> = sweep.columns.iter().enumerate().map(of_column).collect();
    let lines: Vec<lines::Line<'_>> =
        columns.iter().map(|(name, values)| lines::Line { name, values: values.clone() }).collect();
    let heading = format!("Throughput, {}{}", sweep::unit(results), sweep::together(results));
    let label = format!("{heading}, over {}", sweep.title);
    let plot = lines::plot(&label, &sweep.title, &sweep.values, &lines);
    vec![(heading, plot.ok_or("No run finished."))]
}

/// Curves of a sweep's plot at most: more cannot be told apart.
const CURVES_MAX: usize = 8;

fn distributions(results: &Results, names: &[String]) -> Vec<Drawn> {
    // A sweep has too many runs for one plot: the last value is where the differences are largest, most often.
    let swept = sweep::sweep(results);
    let last = results.runs.last().filter(|_| swept.is_some()).map(|run| &run.labels.workload);
    let series = sweep::series(results);
    let mut drawn = Vec::new();
    for (title, pick) in DIRECTIONS {
        let mut curves: Vec<cdf::Curve<'_>> = results
            .runs
            .iter()
            .zip(names)
            .zip(&series)
            .filter(|((run, _), _)| last.is_none_or(|last| run.labels.workload == *last))
            .filter_map(|((run, name), series)| {
                let counts = &run.metrics.requests;
                let requests = if title == "reads" { counts.reads } else { counts.writes };
                pick(run).map(|metrics| cdf::Curve { name, requests, metrics, series: *series })
            })
            .collect();
        let mut heading = format!("Latency of {title}");
        if let Some(last) = last {
            let values: Vec<String> = last.iter().map(|(key, value)| format!("{key} {value}")).collect();
            heading += &format!(" at {}, the last of the sweep", values.join(", "));
            if curves.len() > CURVES_MAX {
                heading += &format!(" (the first {CURVES_MAX} of {})", curves.len());
                curves.truncate(CURVES_MAX);
            }
        }
        let label = format!("Cumulative distribution of the latency of {title}, one curve per run");
        let absent =
            if curves.is_empty() { "No such request completed." } else { "No distribution was recorded." };
        drawn.push((heading, cdf::plot(&label, &curves).ok_or(absent)));
    }
    drawn
}

/// What programs in kernels of their own say of themselves, where there are several to compare.
fn program_bars(results: &Results, names: &[String]) -> Vec<Drawn> {
    if results.runs.len() < 2 {
        return Vec::new();
    }
    let look = sweep::series(results);
    let numbers = crate::guest::numbers(results);
    let draw = |(index, number): (usize, &GuestNumber)| {
        let heading = crate::guest::title(number);
        let mut rows: Vec<bars::Row<'_>> = Vec::new();
        for (series, (run, name)) in results.runs.iter().zip(names).enumerate() {
            let Some(value) = crate::guest::value(run, index) else { continue };
            let text = crate::guest::digits(value);
            let tooltip = format!("{name}: {text} {}", number.unit);
            let segments = vec![bars::Segment { class: fill(look[series]), value, tooltip }];
            rows.push(bars::Row { name, segments, mark: None, value: text });
        }
        let label = format!("{heading}, per run");
        (heading, bars::plot(&label, &rows, crate::guest::digits).ok_or("No run said it."))
    };
    numbers.iter().enumerate().map(draw).collect()
}

fn times(results: &Results, names: &[String]) -> Vec<Drawn> {
    let mut drawn = Vec::new();
    for (title, pick) in DIRECTIONS {
        let rows: Vec<bars::Row<'_>> = results
            .runs
            .iter()
            .zip(names)
            .filter_map(|(run, name)| pick(run).map(|of| time_row(of, name)))
            .collect();
        let label = format!(
            "Mean time of {title} per run: waiting in the host's queue, for a die, for a channel, and being served"
        );
        let absent = "No such request completed.";
        drawn.push((
            format!("Where the time of {title} went"),
            bars::plot(&label, &rows, format::time).ok_or(absent),
        ));
    }
    drawn
}

fn time_row<'a>(of: &DirectionMetrics, name: &'a str) -> bars::Row<'a> {
    let inside = of.die_wait_ns_mean + of.channel_wait_ns_mean;
    let parts = [
        ("waiting", "waiting in the host's queue", of.waiting_ns.mean),
        ("die-wait", "in the device, waiting for a die", of.die_wait_ns_mean),
        ("channel-wait", "in the device, waiting for a channel", of.channel_wait_ns_mean),
        ("served", "in the device, being served", (of.processing_ns.mean - inside).max(0.0)),
    ];
    let segments = parts.map(|(class, what, value)| bars::Segment {
        class: class.to_owned(),
        value,
        tooltip: format!("{name}: {} {what}", format::time(value)),
    });
    bars::Row { name, segments: segments.into(), mark: None, value: format::time(of.latency_ns.mean) }
}

fn utilization(results: &Results, names: &[String]) -> Vec<Drawn> {
    let look = sweep::series(results);
    type Get = fn(&Metrics) -> UnitUtilization;
    let kinds: [(&str, Get); 4] = [
        ("Chips", |metrics| metrics.utilization.chip),
        ("Dies", |metrics| metrics.utilization.die),
        ("Planes", |metrics| metrics.utilization.plane),
        ("Channels", |metrics| metrics.utilization.channel),
    ];
    // One scale for the four: they are read side by side.
    let shares = kinds.iter().flat_map(|(_, get)| {
        results.runs.iter().flat_map(|run| [get(&run.metrics).active, get(&run.metrics).wall])
    });
    let most = shares.fold(0.0, f64::max);
    let draw = |(title, get): (&str, Get)| {
        let rows: Vec<bars::Row<'_>> = results
            .runs
            .iter()
            .zip(names)
            .enumerate()
            .map(|(series, (run, name))| {
                let UnitUtilization { active, wall } = get(&run.metrics);
                let tooltip = format!(
                    "{name}: busy {} of the time with requests pending, {} of all time",
                    format::percent(active),
                    format::percent(wall)
                );
                let segments = vec![bars::Segment { class: fill(look[series]), value: active, tooltip }];
                let value = format!("{} · {}", format::percent(active), format::percent(wall));
                bars::Row { name, segments, mark: Some(wall), value }
            })
            .collect();
        let label = format!("{title}: share of time busy, per run");
        (title.to_owned(), bars::plot_up_to(&label, &rows, format::percent, most).ok_or("No run finished."))
    };
    kinds.map(draw).into()
}

fn shares(results: &Results, names: &[String]) -> Vec<Drawn> {
    let look = sweep::series(results);
    type Get = fn(&Metrics) -> Option<f64>;
    let known = results.runs.iter().all(outside::knows_conflicts);
    let kinds: [(&str, Get); 4] = [
        (CONFLICTS[0], |m| (m.requests.reads > 0).then_some(m.conflict.read_share)),
        (CONFLICTS[1], |m| (m.requests.writes > 0).then_some(m.conflict.write_share)),
        ("Reads issued before an earlier write", |m| {
            (m.requests.reads > 0).then_some(m.prioritized.read_share)
        }),
        ("Write batches promoted before reads", |m| {
            (m.requests.writes > 0).then_some(m.prioritized.write_batch_share)
        }),
    ];
    let draw = |(title, get): (&str, Get)| {
        let rows: Vec<bars::Row<'_>> = results
            .runs
            .iter()
            .zip(names)
            .enumerate()
            .filter_map(|(series, (run, name))| {
                let share = get(&run.metrics)?;
                let tooltip = format!("{name}: {}", format::percent(share));
                let segments = vec![bars::Segment { class: fill(look[series]), value: share, tooltip }];
                Some(bars::Row { name, segments, mark: None, value: format::percent(share) })
            })
            .collect();
        (title.to_owned(), bars::plot(title, &rows, format::percent).ok_or("No such request completed."))
    };
    kinds.into_iter().filter(|(title, _)| known || !CONFLICTS.contains(title)).map(draw).collect()
}

/// Shares that are about units.
const CONFLICTS: [&str; 2] = ["Reads that conflicted on arrival", "Writes that conflicted on arrival"];

fn collected(results: &Results) -> bool {
    results.runs.iter().any(|run| run.metrics.gc.collections > 0)
}

/// What a collection costs its chip, and how requests fared that met one.
fn collections(results: &Results, names: &[String]) -> Vec<Drawn> {
    let look = sweep::series(results);
    let runs = || results.runs.iter().zip(names).filter(|(run, _)| run.metrics.gc.collections > 0);
    let costs: Vec<bars::Row<'_>> = runs().map(|(run, name)| cost_row(&run.metrics.gc.cost, name)).collect();
    let met: Vec<bars::Row<'_>> = runs()
        .filter_map(|(run, name)| {
            let latency = conflicted(&run.metrics.gc)?;
            let series = look[names.iter().position(|other| other == name).unwrap_or(0)];
            let all = run.metrics.all.latency_ns.mean;
            let tooltip = format!(
                "{name}: {} on average, p99 {}; {} of requests met a collection; all requests {}",
                format::time(latency),
                format::time(run.metrics.gc.conflicts.latency_ns.p99 as f64),
                format::percent(run.metrics.gc.conflicts.share),
                format::time(all)
            );
            let segments = vec![bars::Segment { class: fill(series), value: latency, tooltip }];
            let value =
                format!("{} · {}", format::time(latency), format::percent(run.metrics.gc.conflicts.share));
            Some(bars::Row { name, segments, mark: Some(all), value })
        })
        .collect();
    let cost_label = "Mean cost of a collection on its chip per run: read, transfer, program, erase";
    let met_label = "Mean latency of the requests that met a collection, per run; marks: of all requests";
    vec![
        (
            "What a collection costs its chip".to_owned(),
            bars::plot(cost_label, &costs, format::time).ok_or("Nothing was collected."),
        ),
        (
            "Latency of requests that met a collection".to_owned(),
            bars::plot(met_label, &met, format::time).ok_or("No request met a collection."),
        ),
    ]
}

fn cost_row<'a>(cost: &GcCost, name: &'a str) -> bars::Row<'a> {
    let parts = [
        ("gc-read", "array reads of valid pages", cost.read_ns),
        ("gc-transfer", "transfers of valid pages", cost.transfer_ns),
        ("gc-program", "programs of valid pages", cost.program_ns),
        ("gc-erase", "the erase", cost.erase_ns),
    ];
    let segments = parts.map(|(class, what, value)| bars::Segment {
        class: class.to_owned(),
        value,
        tooltip: format!("{name}: {} {what}", format::time(value)),
    });
    bars::Row { name, segments: segments.into(), mark: None, value: format::time(cost.total_ns) }
}

fn fill(series: usize) -> String {
    format!("bar s{}", look(series).color)
}

/// A cell of a table: its text and its class (`better`, `worse`, `faint` or none).
#[derive(Clone, Debug, Serialize)]
struct Cell {
    text: String,
    class: &'static str,
}

impl Cell {
    fn plain(text: String) -> Cell {
        Cell { text, class: "" }
    }

    /// A ratio of times to the baseline.
    fn ratio(value: Option<f64>, baseline: Option<f64>) -> Cell {
        let pair = value.zip(baseline);
        match pair.and_then(|(value, baseline)| Some((format::ratio(value, baseline)?, value / baseline))) {
            None => Cell { text: ABSENT.to_owned(), class: "faint" },
            Some((text, ratio)) => Cell {
                text,
                class: match ratio_tone(ratio) {
                    Tone::Better => "better",
                    Tone::Worse => "worse",
                    _ => "faint",
                },
            },
        }
    }
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
