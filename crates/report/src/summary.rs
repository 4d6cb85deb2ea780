//! What the numbers say, in sentences anyone can read in a minute; honest where they say little.

use crate::format::{self, NEGLIGIBLE};
use crate::names;
use crate::outside;
use crate::sweep;
use crate::table;
use planewise_model::words;
use planewise_sim::results::{DirectionMetrics, Results, RunResult};

/// The sentences, in paragraphs of one point each.
pub fn summary(results: &Results) -> Vec<String> {
    let names = names::run_names(results);
    let Some(baseline) = results.runs.get(results.baseline).or(results.runs.first()) else {
        return vec!["No run finished, so there is nothing to report.".to_owned()];
    };
    let mut points = vec![what_ran(results, baseline)];
    let closed_loop = results.runs.iter().any(|run| run.closed_loop.is_some());
    if closed_loop {
        // What arrives depends on what completes: runs are told apart by how much they get done.
        points.extend(throughput(results, &names));
    } else if !same_work(results) {
        points.push("The runs differ in trace, device or how many requests they got through: read each row for itself and compare only rows that share these.".to_owned());
    } else {
        points.extend(Side::BOTH.iter().filter_map(|side| side.verdict(results, &names)));
    }
    if !closed_loop {
        points.extend(trade_off(results, &names));
    }
    points.extend(bounds(results, &names));
    points.extend(collection(results, &names));
    points.extend(conflicts(baseline, &names[index_of(results)]));
    points.extend(seen_from_outside(results, &names));
    points.push(command_queue(results, baseline));
    if results.runs.len() > 1 {
        points.push(caution(results));
    }
    points
}

fn index_of(results: &Results) -> usize {
    if results.baseline < results.runs.len() { results.baseline } else { 0 }
}

fn what_ran(results: &Results, baseline: &RunResult) -> String {
    let who = match results.runs.len() {
        1 => format!("One run, under the scheduler {}, served", name(&baseline.labels.scheduler)),
        n if names::distinctions(results).is_empty() => format!("{n} schedulers each served"),
        n if names::distinctions(results).iter().all(|column| column.title == "gc") => {
            format!("{n} garbage collection schemes each served")
        }
        n => format!("{n} runs each served"),
    };
    let (requests, reads) = work(&results.runs);
    let paces =
        results.runs.iter().filter(|run| !run.labels.pace.is_empty()).map(|run| run.labels.pace.as_str());
    let pace =
        match paces.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>().as_slice() {
            [] => String::new(),
            ["recorded"] => ", at the recorded times".to_owned(),
            [one] => format!(", at the pace {}", name(one)),
            several => format!(", at {} paces", several.len()),
        };
    let simulated = if outside::is_outside(results) { "" } else { "a simulated " };
    format!(
        "{who} {requests} ({reads}) of {} {} on {simulated}{} ({}){pace}.",
        names::served(results),
        name(&results.setup.trace.name),
        name(&baseline.labels.device),
        name(&results.setup.condition),
    )
}

/// How many requests each run served and how many of them read, as a range where runs differ.
fn work(runs: &[RunResult]) -> (String, String) {
    let total = |run: &RunResult| run.metrics.requests.reads + run.metrics.requests.writes;
    let reads = |run: &RunResult| match total(run) {
        0 => 0.0,
        total => run.metrics.requests.reads as f64 / total as f64,
    };
    let least = runs.iter().map(total).min().unwrap_or(0);
    let most = runs.iter().map(total).max().unwrap_or(0);
    let requests = match least == most {
        true => format!("{} {}", format::count(most), words::of(most, "request")),
        false => format!("{} to {} requests", format::count(least), format::count(most)),
    };
    let fewest = format::percent_in_words(runs.iter().map(reads).fold(f64::INFINITY, f64::min));
    let share = format::percent_in_words(runs.iter().map(reads).fold(0.0, f64::max));
    (requests, if fewest == share { format!("{share} reads") } else { format!("{fewest} to {share} reads") })
}

/// Whether the runs served the same requests on the same device to the end, so that "faster" means something.
fn same_work(results: &Results) -> bool {
    let key = |run: &RunResult| {
        (run.labels.trace.clone(), run.labels.device.clone(), run.metrics.requests.submitted, run.status)
    };
    results.runs.windows(2).all(|pair| key(&pair[0]) == key(&pair[1]))
}

/// 99th and 99.9th percentiles further apart than this are told, whatever the means are.
const TAILS_APART: f64 = 1.2;
const FAR_TAILS_APART: f64 = 2.0;

/// Reads or writes.
struct Side {
    noun: &'static str,
    count: fn(&RunResult) -> u64,
    of: fn(&RunResult) -> &DirectionMetrics,
}

impl Side {
    const BOTH: [Side; 2] = [
        Side { noun: "read", count: |run| run.metrics.requests.reads, of: |run| &run.metrics.read },
        Side { noun: "write", count: |run| run.metrics.requests.writes, of: |run| &run.metrics.write },
    ];

    fn mean(&self, run: &RunResult) -> f64 {
        (self.of)(run).latency_ns.mean
    }

    /// The run with the shortest mean; the baseline when it ties. Bounds do not compete, unless there is nothing else.
    fn best(&self, results: &Results) -> Option<usize> {
        self.competitors(results).min_by(|&a, &b| {
            let key = |i: usize| (self.mean(&results.runs[i]), i != results.baseline);
            key(a).0.total_cmp(&key(b).0).then(key(a).1.cmp(&key(b).1))
        })
    }

    fn verdict(&self, results: &Results, names: &[String]) -> Option<String> {
        let noun = self.noun;
        let Some(best) = self.best(results) else {
            return Some(format!("There were no {noun}s."));
        };
        let winner = &results.runs[best];
        let mean = self.mean(winner);
        let start = format!("{}s: ", capital(noun));
        if results.runs.len() == 1 {
            let of = (self.of)(winner);
            let time = format::time(mean);
            let tail = format::time(of.latency_ns.p99 as f64);
            return Some(format!(
                "{start}{time} on average; one in a hundred took longer than {tail}. {}",
                self.shares(winner)
            ));
        }
        let competes = competes(results);
        let slowest =
            results.runs.iter().filter(|run| competes(run)).map(|run| self.mean(run)).fold(0.0, f64::max);
        if slowest <= mean * (1.0 + NEGLIGIBLE) {
            let tails = self.tails(results, names);
            return Some(format!(
                "{start}all runs are within {} of one another ({} on average), so for {noun}s the choice made no difference {}.{} {}",
                format::percent_in_words(NEGLIGIBLE),
                format::time(mean),
                if tails.is_empty() { "here" } else { "to the mean" },
                tails,
                self.shares(winner),
            ));
        }
        let Some(base) = results.runs.get(results.baseline) else {
            return Some(format!(
                "{start}{} was fastest on average ({}).",
                name(&names[best]),
                format::time(mean)
            ));
        };
        let base_name = name(&names[results.baseline]);
        if names::is_bound(base) && !names::is_bound(winner) {
            return Some(format!(
                "{start}{} was fastest on average of what a device can do: {}. The baseline {base_name} is a bound at {}.",
                name(&names[best]),
                format::time(mean),
                format::time(self.mean(base))
            ));
        }
        let gain = 1.0 - mean / self.mean(base);
        let rivals = self.rivals(results, best, names);
        let others = self.slowest(results, names) + &self.tails(results, names);
        if best == results.baseline || gain <= 0.0 {
            return Some(format!(
                "{start}nothing beat the baseline {base_name} ({} on average).{rivals}{others} {}",
                format::time(mean),
                self.shares(base)
            ));
        }
        // Two times that look the same are no result.
        if self.mean(base) <= mean * (1.0 + NEGLIGIBLE) {
            return Some(format!(
                "{start}nothing is more than {} faster than the baseline {base_name} ({} on average).{others} {}",
                format::percent_in_words(NEGLIGIBLE),
                format::time(self.mean(base)),
                self.shares(base)
            ));
        }
        let verdict = format!("{} was fastest on average: {}", name(&names[best]), format::time(mean));
        let against = format!("against {} under {base_name}", format::time(self.mean(base)));
        let size = match gain {
            g if g < 0.1 => format!("{} less, a small gain", format::percent_in_words(g)),
            g if g < 0.3 => format!("{} less", format::percent_in_words(g)),
            g if g < 0.9 => format!(
                "{} less, {} times as fast",
                format::percent_in_words(g),
                format::three_digits(self.mean(base) / mean)
            ),
            // "99.5 % less" hides whether that is two hundred times or twenty.
            _ => format!("shorter by a factor of {}", format::three_digits(self.mean(base) / mean)),
        };
        Some(format!(
            "{start}{verdict} {against}, {size}.{rivals}{others} {}",
            self.why(base, winner, &base_name, &name(&names[best]))
        ))
    }

    /// Runs that are as good as the best.
    fn rivals(&self, results: &Results, best: usize, names: &[String]) -> String {
        let limit = self.mean(&results.runs[best]) * (1.0 + NEGLIGIBLE);
        let competes = competes(results);
        let level: Vec<String> = (0..results.runs.len())
            .filter(|&i| {
                let run = &results.runs[i];
                i != best && (self.count)(run) > 0 && self.mean(run) <= limit && competes(run)
            })
            .map(|i| name(&names[i]))
            .collect();
        match level.as_slice() {
            [] => String::new(),
            [one] => format!(" {one} is level with it (within {}).", format::percent_in_words(NEGLIGIBLE)),
            [one, two] => format!(
                " {one} and {two} are level with it (within {}).",
                format::percent_in_words(NEGLIGIBLE)
            ),
            more => format!(
                " {} others are level with it (within {}).",
                more.len(),
                format::percent_in_words(NEGLIGIBLE)
            ),
        }
    }

    /// Runs that compete and have requests of this side.
    fn competitors<'a>(&self, results: &'a Results) -> impl Iterator<Item = usize> + use<'a> {
        let (competes, count) = (competes(results), self.count);
        (0..results.runs.len()).filter(move |&i| count(&results.runs[i]) > 0 && competes(&results.runs[i]))
    }

    /// The run with the longest mean, where that is no chance.
    fn slowest(&self, results: &Results, names: &[String]) -> String {
        let Some(base) = results.runs.get(results.baseline) else { return String::new() };
        let mean = |index: usize| self.mean(&results.runs[index]);
        let Some(worst) =
            self.competitors(results).max_by(|&a, &b| mean(a).total_cmp(&mean(b)).then(b.cmp(&a)))
        else {
            return String::new();
        };
        let (longest, usual) = (mean(worst), self.mean(base));
        if worst == results.baseline || longest <= usual * (1.0 + NEGLIGIBLE) {
            return String::new();
        }
        let more = match longest / usual {
            ratio if ratio < 2.0 => format!("{} more", format::percent_in_words(ratio - 1.0)),
            ratio => format!("{} times as long", format::three_digits(ratio)),
        };
        format!(
            " {} was slowest: {}, {more} than the baseline.",
            capital(&name(&names[worst])),
            format::time(longest)
        )
    }

    /// The shortest and the longest 99th percentile, or 99.9th, where they are far apart.
    fn tails(&self, results: &Results, names: &[String]) -> String {
        let of = |index: usize| &(self.of)(&results.runs[index]).latency_ns;
        let (hundredth, thousandth) = (|index| of(index).p99, |index| of(index).p999);
        let told = self.tail("hundred", &hundredth, TAILS_APART, results, names);
        told.or_else(|| self.tail("thousand", &thousandth, FAR_TAILS_APART, results, names))
            .unwrap_or_default()
    }

    fn tail(
        &self,
        one_in: &str,
        tail: &dyn Fn(usize) -> u64,
        apart: f64,
        results: &Results,
        names: &[String],
    ) -> Option<String> {
        // Of equals the baseline.
        let key = |index: &usize| (tail(*index), *index != results.baseline);
        let least = self.competitors(results).min_by_key(key)?;
        let most = self.competitors(results).max_by_key(key)?;
        (tail(most) as f64 > tail(least) as f64 * apart).then(|| {
            format!(
                " One in a {one_in} took longer than {} under {}, and than {} under {}.",
                format::time(tail(least) as f64),
                name(&names[least]),
                format::time(tail(most) as f64),
                name(&names[most])
            )
        })
    }

    /// Where one run's time went.
    fn shares(&self, run: &RunResult) -> String {
        let of = (self.of)(run);
        match waiting_share(of) {
            None => String::new(),
            Some(share) => format!(
                "{} of the average was waiting in the host's queue, the rest was the device's.",
                capital(&format::percent_in_words(share)),
            ),
        }
    }

    /// Which part of the latency the gain came out of.
    fn why(&self, base: &RunResult, winner: &RunResult, base_name: &str, winner_name: &str) -> String {
        let (before, after) = ((self.of)(base), (self.of)(winner));
        let (Some(share_before), Some(share_after)) = (waiting_share(before), waiting_share(after)) else {
            return String::new();
        };
        let waited = format!(
            "Waiting in the host's queue made up {} of a {}'s time under {base_name} and {} under {winner_name}",
            format::percent_in_words(share_before),
            self.noun,
            format::percent_in_words(share_after),
        );
        let saved_waiting = before.waiting_ns.mean - after.waiting_ns.mean;
        let saved_processing = before.processing_ns.mean - after.processing_ns.mean;
        let saved = saved_waiting + saved_processing;
        let reason = if saved_waiting <= 0.0 {
            "the gain is in the device: requests were processed faster once issued".to_owned()
        } else if saved_processing < -0.02 * saved.abs() {
            let longer = format::time(-saved_processing);
            format!(
                "the gain is all shorter waiting, and the device itself took {longer} longer per {}",
                self.noun
            )
        } else {
            let part = format::percent_in_words((saved_waiting / saved).min(1.0));
            format!("{part} of the time saved is shorter waiting, the rest faster processing in the device")
        };
        format!("{waited}; {reason}.")
    }
}

/// The share of latency that passed before issue; none when nothing took time.
fn waiting_share(of: &DirectionMetrics) -> Option<f64> {
    (of.latency_ns.mean > 0.0).then(|| (of.waiting_ns.mean / of.latency_ns.mean).clamp(0.0, 1.0))
}

/// Which runs can be called a winner: those that a device could do, or all when there are no such.
fn competes(results: &Results) -> impl Fn(&RunResult) -> bool {
    let only_bounds = results.runs.iter().all(names::is_bound);
    move |run| only_bounds || !names::is_bound(run)
}

/// How much of the way from the baseline to a bound the best run goes.
fn bounds(results: &Results, names: &[String]) -> Option<String> {
    let base = results.runs.get(results.baseline).filter(|base| !names::is_bound(base))?;
    let (bound, bound_name) = results.runs.iter().zip(names).find(|(run, _)| names::is_bound(run))?;
    if !same_work(results) {
        return None;
    }
    let mut sides = Vec::new();
    for side in &Side::BOTH {
        let Some(best) = side.best(results) else { continue };
        let (from, to) = (side.mean(base), side.mean(bound));
        let way = if from - to <= NEGLIGIBLE * from {
            "the baseline is level with it".to_owned()
        } else if best == results.baseline {
            "no run goes any of the way there from the baseline".to_owned()
        } else {
            let gone = ((from - side.mean(&results.runs[best])) / (from - to)).clamp(0.0, 1.0);
            format!("{} goes {} of the way there", name(&names[best]), format::percent_in_words(gone))
        };
        sides.push(format!("{} for {}s ({way})", format::time(to), side.noun));
    }
    (!sides.is_empty())
        .then(|| format!("The bound {}, which no device reaches: {}.", name(bound_name), sides.join(", ")))
}

/// What collections cost and whom they met, in the baseline and where requests that met one fared best.
fn collection(results: &Results, names: &[String]) -> Option<String> {
    let collects = results.runs.iter().any(|run| run.metrics.gc.collections > 0);
    if !names::differ_in_collection(results) && !collects {
        return None;
    }
    let competes = competes(results);
    let told = |index: usize| {
        let gc = &results.runs[index].metrics.gc;
        let met = table::conflicted(gc).map_or("no request met one".to_owned(), |latency| {
            format!(
                "{} of requests met one and took {} on average",
                format::percent_in_words(gc.conflicts.share),
                format::time(latency)
            )
        });
        let under = match results.runs.len() {
            1 => String::new(),
            _ => format!("under {} ", name(&names[index])),
        };
        let amplified = match gc.write_amplification {
            _ if results.runs.len() > 1 => String::new(),
            0.0 => String::new(),
            times => {
                format!("; {} bytes were programmed for each that was written", format::three_digits(times))
            }
        };
        format!(
            "{under}a collection kept its chip for {}, and {met}{amplified}",
            format::time(gc.cost.total_ns)
        )
    };
    let collected = |index: &usize| results.runs[*index].metrics.gc.collections > 0;
    // All that requests lost to collections, more or less: how many met one, times how long those took.
    let burden = |index: &usize| {
        let gc = &results.runs[*index].metrics.gc;
        gc.conflicts.share * table::conflicted(gc).unwrap_or(0.0)
    };
    let base = Some(results.baseline).filter(|&index| index < results.runs.len()).filter(collected);
    let least = (0..results.runs.len())
        .filter(|index| collected(index) && competes(&results.runs[*index]))
        .min_by(|a, b| burden(a).total_cmp(&burden(b)));
    let mut parts: Vec<String> = base.map(told).into_iter().collect();
    parts.extend(least.filter(|least| Some(*least) != base).map(told));
    match parts.is_empty() {
        true => Some("Garbage collection: nothing was collected, so the schemes had nothing to do; an aged device (--condition aged) or more requests give them work.".to_owned()),
        false => Some(format!("Garbage collection: {}.", parts.join("; "))),
    }
}

/// What the winner of one side costs: the other direction, or its own tail.
fn trade_off(results: &Results, names: &[String]) -> Option<String> {
    let base = results.runs.get(results.baseline)?;
    if results.runs.len() < 2 || !same_work(results) {
        return None;
    }
    let mut costs = Vec::new();
    let mut told: Vec<usize> = Vec::new();
    for side in &Side::BOTH {
        let Some(best) = side.best(results).filter(|&best| best != results.baseline) else { continue };
        let winner = &results.runs[best];
        let tail = |run: &RunResult| (side.of)(run).latency_ns.p99 as f64;
        let worse = tail(winner) / tail(base);
        if worse > 1.0 + NEGLIGIBLE && worse.is_finite() {
            costs.push(format!(
                "{} has a {} p99 {} above the baseline's",
                name(&names[best]),
                side.noun,
                format::percent_in_words(worse - 1.0)
            ));
        }
        if told.contains(&best) {
            continue;
        }
        told.push(best);
        for other in Side::BOTH.iter().filter(|other| other.noun != side.noun && (other.count)(winner) > 0) {
            let worse = other.mean(winner) / other.mean(base);
            if worse > 1.0 + NEGLIGIBLE && worse.is_finite() {
                let more = format::percent_in_words(worse - 1.0);
                costs.push(format!(
                    "{}, fastest for {}s, makes {}s {more} slower",
                    name(&names[best]),
                    side.noun,
                    other.noun
                ));
            }
        }
    }
    (!costs.is_empty()).then(|| format!("The price: {}.", costs.join("; ")))
}

/// What was measured from outside, and how late requests were.
fn seen_from_outside(results: &Results, names: &[String]) -> Vec<String> {
    let mut points = Vec::new();
    if outside::is_outside(results) {
        points.push(
            "Measured from outside: what happened inside the device is not known, and not shown.".to_owned(),
        );
    }
    for (run, of) in results.runs.iter().zip(names) {
        let failure = run.target.as_ref().and_then(|target| target.failure.as_ref());
        points.extend(
            failure.map(|failure| format!("{} ended early: {}", name(of), format::one_line(failure, 200))),
        );
        points.extend(outside::unfaithful(run).map(|unfaithful| {
            format!("{} is {unfaithful}: what it measured is not what was recorded.", name(of))
        }));
    }
    points
}

/// How often requests met, under the baseline; none when there were no requests.
fn conflicts(baseline: &RunResult, baseline_name: &str) -> Option<String> {
    if !outside::knows_conflicts(baseline) {
        return None;
    }
    let (counts, of) = (&baseline.metrics.requests, &baseline.metrics.conflict);
    let sides = [("reads", counts.reads, of.read_share), ("writes", counts.writes, of.write_share)];
    let present = sides.iter().filter(|(_, count, _)| *count > 0);
    let shares: Vec<String> = present
        .clone()
        .map(|(noun, _, share)| format!("{} of {noun}", format::percent_in_words(*share)))
        .collect();
    let largest = present.map(|(.., share)| *share).max_by(f64::total_cmp)?;
    let means = match largest {
        share if share < 0.05 => "so few that reordering around them has little to win",
        share if share < 0.3 => "so a part of the requests can gain from an order that keeps units apart",
        _ => "so an order that keeps units apart has much to work with",
    };
    Some(format!(
        "Conflicts: {} conflicted on arrival under {}, that is, needed a unit that a request already in the queue needs; {means}.",
        shares.join(" and "),
        name(baseline_name)
    ))
}

/// Who gets most done, for each value of a sweep.
fn throughput(results: &Results, names: &[String]) -> Vec<String> {
    let unit = sweep::unit(results);
    let told =
        |index: usize| format!("{} {unit}", format::three_digits(sweep::throughput(&results.runs[index])));
    let Some(sweep) = sweep::sweep(results) else {
        let best = most_done(results, 0..results.runs.len());
        return match (best, results.runs.len()) {
            (None, _) => Vec::new(),
            (Some(best), 1) => vec![format!("Throughput: {}.", told(best))],
            (Some(best), _) => vec![format!("Throughput: {}.", lead(results, names, best, &told))],
        };
    };
    // The value is said in front: schemes go by what else tells them apart.
    let mut schemes = names.to_vec();
    for row in &sweep.runs {
        for (run, scheme) in row.iter().zip(&sweep.columns) {
            if let Some(run) = run.filter(|_| !scheme.is_empty()) {
                schemes[run].clone_from(scheme);
            }
        }
    }
    let mut points = Vec::new();
    let mut level = Vec::new();
    for (value, row) in sweep.values.iter().zip(&sweep.runs) {
        let Some(best) = most_done(results, row.iter().flatten().copied()) else { continue };
        let base = names::baseline_of(results, &results.runs[best]);
        let ahead = base.is_some_and(|base| {
            sweep::throughput(&results.runs[best]) > sweep::throughput(base) * (1.0 + NEGLIGIBLE)
        });
        if ahead {
            points.push(format!(
                "At {} {}, {}.",
                sweep.title,
                name(value),
                lead(results, &schemes, best, &told)
            ));
        } else {
            level.push(name(value));
        }
    }
    // The ends of a long sweep say most.
    let more = points.len().saturating_sub(SWEEP_POINTS_MAX);
    points.drain(..more);
    if let Some(base) = names::baseline_name(results).filter(|_| !level.is_empty() && sweep.columns.len() > 1)
    {
        let two = format::percent_in_words(NEGLIGIBLE);
        points.push(format!(
            "At {} {}, nothing is more than {two} ahead of {}.",
            sweep.title,
            level.join(", "),
            name(&base)
        ));
    }
    points
}

/// Values of a sweep that are told one by one.
const SWEEP_POINTS_MAX: usize = 4;

/// The run with the highest throughput; bounds do not compete, unless there is nothing else.
fn most_done(results: &Results, runs: impl Iterator<Item = usize>) -> Option<usize> {
    let competes = competes(results);
    runs.filter(|index| competes(&results.runs[*index])).max_by(|a, b| {
        let done = |index: &usize| sweep::throughput(&results.runs[*index]);
        // Of equals the earlier.
        done(a).total_cmp(&done(b)).then(b.cmp(a))
    })
}

fn lead(results: &Results, names: &[String], best: usize, told: &dyn Fn(usize) -> String) -> String {
    let winner = &results.runs[best];
    let place = |run: &RunResult| results.runs.iter().position(|other| std::ptr::eq(other, run));
    match names::baseline_of(results, winner).and_then(place).filter(|base| *base != best) {
        Some(base) => {
            let ratio = sweep::throughput(winner) / sweep::throughput(&results.runs[base]);
            let (most, other) = (name(&names[best]), name(&names[base]));
            format!("{most} gets most done: {}, {ratio:.2} times the {} of {other}", told(best), told(base))
        }
        None => format!("{} gets most done: {}", name(&names[best]), told(best)),
    }
}

fn command_queue(results: &Results, baseline: &RunResult) -> String {
    let setting = &baseline.labels.command_queue;
    if let Some(target) = &baseline.target {
        let depth = format::count(target.depth.into());
        return format!(
            "Command queue: up to {depth} operations are handed to the target at a time; the scheduler decides over what waits in front of it."
        );
    }
    if results.runs.iter().any(|run| run.labels.command_queue != *setting) {
        return "Command queue: the runs differ in it. Blocking means that the host issues a request only when all units it touches are free, as in the papers; ncq:D means that up to D commands queue inside the device, as in real drives.".to_owned();
    }
    match setting.strip_prefix("ncq:") {
        Some(depth) => format!(
            "Command queue: the device holds up to {} commands and queues them per unit inside, as real drives do. It hides much of what a host scheduler could win; what remains here is what would survive on such a drive.",
            name(depth)
        ),
        None if setting == "blocking" => "Command queue: blocking, as in the PIQ papers: the host issues a request only when all units it touches are free. Real drives queue commands inside, which usually narrows the differences; repeat with ncq:32 to see what is left.".to_owned(),
        None => format!("Command queue: {}.", name(setting)),
    }
}

fn caution(results: &Results) -> String {
    let mut seeds: Vec<u64> = results.runs.iter().map(|run| run.labels.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    match seeds.len() {
        1 => "Every row is one run with the same seed: take differences of a few per cent as unproven until repeated over several seeds.".to_owned(),
        n => format!("The runs use {n} seeds: differences smaller than those between seeds of the same setting mean nothing."),
    }
}

/// A name from outside inside a sentence.
fn name(text: &str) -> String {
    format::one_line(text, 48)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn text(results: &Results) -> String {
        summary(results).join("\n")
    }

    #[test]
    fn a_sweep_is_told_value_by_value_by_what_gets_done() {
        let mut results = samples::sweep();
        let level = text(&results);
        assert!(level.contains("At threads 1, 4, 16, nothing is more than 5% ahead of piq"), "{level}");
        results.baseline = 0;
        let told = text(&results);
        for (threads, ratio, most, base) in
            [(1, "2.00", 200, 100), (4, "1.33", 400, 300), (16, "1.20", 600, 500)]
        {
            let line = format!(
                "At threads {threads}, piq gets most done: {most} transactions/s, {ratio} times the {base} transactions/s of noop."
            );
            assert!(told.contains(&line), "{line}\n{told}");
        }
        assert!(!told.contains("Reads:") && !told.contains("The price"), "{told}");
    }

    #[test]
    fn what_runs_served_is_a_range_where_they_differ() {
        let mut results = samples::six_schedulers();
        let of = |results: &Results| {
            (results.runs[0].metrics.requests.reads, results.runs[0].metrics.requests.writes)
        };
        let (reads, writes) = of(&results);
        let same = format!("6 schedulers each served {} requests (", format::count(reads + writes));
        assert!(text(&results).starts_with(&same), "{}", text(&results));
        results.runs[2].metrics.requests.reads = 5;
        results.runs[2].metrics.requests.writes = 0;
        results.runs[3].metrics.requests.reads = 0;
        results.runs[3].metrics.requests.writes = 1_000_000_000;
        let told = text(&results);
        assert!(told.contains("each served 5 to 1,000,000,000 requests (0% to 100% reads)"), "{told}");
        results.runs.truncate(1);
        results.runs[0].metrics.requests.reads = 1;
        results.runs[0].metrics.requests.writes = 0;
        assert!(text(&results).contains(", served 1 request (100% reads)"), "{}", text(&results));
    }

    #[test]
    fn the_winners_are_named_with_their_gain_over_the_baseline_and_the_reason() {
        let text = text(&samples::six_schedulers());
        assert!(
            text.contains("Reads: piq was fastest on average: 1.18 ms against 1.90 ms under rws, 38% less, 1.61 times as fast."),
            "{text}"
        );
        assert!(text.contains("Writes: piq+ was fastest"), "{text}");
        assert!(text.contains("80% of the time saved is shorter waiting"), "{text}");
        assert!(text.contains("Command queue: blocking"), "{text}");
    }

    #[test]
    fn a_gain_of_a_hundred_times_is_told_as_a_factor() {
        let mut results = samples::six_schedulers();
        results.runs[results.baseline].metrics.read.latency_ns.mean = 118e6;
        results.runs[4].metrics.read.latency_ns.mean = 1.18e6;
        let text = text(&results);
        assert!(text.contains("1.18 ms against 118 ms under rws, shorter by a factor of 100"), "{text}");
    }

    #[test]
    fn small_differences_are_called_small() {
        let mut results = samples::six_schedulers();
        let same = results.runs[1].metrics.clone();
        for run in &mut results.runs {
            run.metrics = same.clone();
        }
        let level = text(&results);
        assert!(level.contains("Reads: all runs are within 5% of one another"), "{level}");
        assert!(!level.contains("fastest"), "{level}");
        results.runs[4].metrics.read.latency_ns.mean *= 0.99;
        results.runs[0].metrics.read.latency_ns.mean *= 1.2;
        results.runs[0].metrics.write.latency_ns.p99 *= 38;
        let told = text(&results);
        assert!(told.contains("Reads: nothing is more than 5% faster than the baseline rws"), "{told}");
        let slowest = capital(&names::run_names(&results)[0]);
        assert!(
            told.contains(&format!("{slowest} was slowest: "))
                && told.contains(", 20% more than the baseline."),
            "{told}"
        );
        assert!(told.contains("Writes: ") && told.contains("One in a hundred took longer than "), "{told}");
    }

    #[test]
    fn a_baseline_that_wins_is_said_to_win() {
        let mut results = samples::six_schedulers();
        results.baseline = 4;
        assert!(text(&results).contains("Reads: nothing beat the baseline piq "), "{}", text(&results));
    }

    #[test]
    fn a_gain_that_costs_the_other_direction_says_so() {
        let mut results = samples::six_schedulers();
        results.runs[4].metrics.write.latency_ns.mean *= 2.0;
        assert!(
            text(&results).contains("piq, fastest for reads, makes writes 62% slower"),
            "{}",
            text(&results)
        );
    }

    #[test]
    fn runs_over_different_traces_have_no_winner() {
        let mut results = samples::six_schedulers();
        results.runs[3].labels.trace = "other".to_owned();
        let text = text(&results);
        assert!(text.contains("read each row for itself") && !text.contains("fastest"), "{text}");
    }

    #[test]
    fn collection_schemes_are_compared_by_their_own_names_and_a_bound_never_wins() {
        let mut results = samples::collections();
        let told = text(&results);
        for sentence in [
            "5 garbage collection schemes each served 1,000,000 requests",
            "Reads: idle_chip was fastest on average: 1.14 ms against 1.90 ms under traditional, 40% less, 1.67 times as fast.",
            "The bound gc_free, which no device reaches: 399 µs for reads (idle_chip goes 51% of the way there), 1.56 ms for writes (idle_chip goes 33% of the way there).",
            "under traditional a collection kept its chip for 17.2 ms, and 16% of requests met one and took 19.0 ms on average; under idle_chip",
        ] {
            assert!(told.contains(sentence), "{sentence}\n{told}");
        }
        assert!(!told.contains("gc_free was fastest"), "{told}");
        results.baseline = 4;
        let told = text(&results);
        assert!(
            told.contains("idle_chip was fastest on average of what a device can do: 1.14 ms."),
            "{told}"
        );
        assert!(told.contains("The baseline gc_free is a bound at 399 µs."), "{told}");
        assert!(!told.contains("nothing beat"), "{told}");
    }

    #[test]
    fn bounds_alone_are_compared_and_no_collection_is_said() {
        let mut results = samples::collections();
        for run in &mut results.runs {
            run.metrics.gc = Default::default();
        }
        assert!(text(&results).contains("nothing was collected"), "{}", text(&results));
        for run in &mut results.runs {
            run.labels.allocation = "conflict-free".to_owned();
        }
        assert!(text(&results).contains("gc_free was fastest"), "{}", text(&results));
    }

    #[test]
    fn every_awkward_case_reads_without_numbers_that_are_none() {
        for results in samples::all() {
            let text = text(&results);
            assert!(!text.contains("NaN") && !text.contains("inf%") && !text.contains("  "), "{text}");
        }
        let writes_only = text(&samples::all()[4]);
        assert!(writes_only.contains("There were no reads."), "{writes_only}");
        assert!(writes_only.contains("Conflicts: 58% of writes conflicted"), "{writes_only}");
        assert!(!text(&samples::all()[6]).contains("Conflicts"), "nothing arrived");
    }
}
