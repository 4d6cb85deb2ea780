//! What a probe found, property by property, in the words of terminal and page.

use crate::format::{self, ABSENT};
use planewise_io::probe::controller::Turn;
use planewise_io::probe::mapping::Mapping;
use planewise_io::probe::queue::Commands;
use planewise_io::probe::{Finding, Findings, STAGES, Subject, wanted};
use planewise_model::Bytes;

/// A group of properties.
pub(crate) struct Group {
    pub(crate) title: &'static str,
    pub(crate) rows: Vec<Row>,
}

/// One property.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// None: undetermined.
    pub(crate) value: Option<String>,
    /// None: a plain measurement, no verdict.
    pub(crate) confidence: Option<f64>,
    pub(crate) statistic: String,
    pub(crate) reason: String,
}

impl Row {
    fn of<T>(name: &'static str, finding: &Finding<T>, value: impl Fn(&T) -> String) -> Row {
        Row {
            name,
            value: finding.value.as_ref().map(value).or_else(|| finding.absent.then(|| "absent".to_owned())),
            confidence: (finding.value.is_some() || finding.absent).then_some(finding.confidence),
            statistic: in_units(&finding.statistic),
            reason: in_units(&finding.reason),
        }
    }

    fn plain(name: &'static str, value: String, reason: &str) -> Row {
        let (statistic, reason) = (String::new(), reason.to_owned());
        Row { name, value: Some(value), confidence: None, statistic, reason }
    }

    /// Its confidence as text.
    pub(crate) fn sure(&self) -> String {
        match self.confidence {
            None => ABSENT.to_owned(),
            Some(sure) if sure > 0.9999 => ">99.9%".to_owned(),
            Some(sure) => format::percent(sure),
        }
    }

    /// What stands behind it in a few words: the statistic, or why nothing was concluded.
    pub(crate) fn behind(&self) -> &str {
        if self.value.is_none() || self.statistic.is_empty() { &self.reason } else { &self.statistic }
    }
}

/// Sizes and times in a sentence as they stand in the columns.
pub(crate) fn in_units(text: &str) -> String {
    text.replace(" us", " µs").replace(".0 KiB", " KiB").replace(".0 MiB", " MiB").replace(".0 GiB", " GiB")
}

/// Everything found, group by group; groups without findings are left out.
pub(crate) fn groups(findings: &Findings) -> Vec<Group> {
    let all = [
        ("Inside", inside(findings)),
        ("Times", times(findings)),
        ("Operations at a time", parallelism(findings)),
        ("Buffers", buffers(findings)),
        ("Regions and batches", regions(findings)),
        ("Garbage collection", collection(findings)),
    ];
    all.into_iter().filter(|(_, rows)| !rows.is_empty()).map(|(title, rows)| Group { title, rows }).collect()
}

/// Instead of a time of 0.
const UNSEEN: &str = "none to be seen";

fn number(value: &u64) -> String {
    value.to_string()
}

fn yes(value: &bool) -> String {
    if *value { "yes" } else { "no" }.to_owned()
}

/// Bytes as people write them: `4 KiB`, `1.5 MiB`.
pub(crate) fn size(bytes: Bytes) -> String {
    bytes.to_string().replace(".0 ", " ")
}

fn inside(findings: &Findings) -> Vec<Row> {
    let mut rows = Vec::new();
    rows.extend(findings.array.as_ref().map(|found| {
        Row::of("drives of an array", found, |array| match array.members {
            1 => "1: it is none".to_owned(),
            members => format!("{members}, stripes of {}", size(array.stripe)),
        })
    }));
    rows.extend(findings.page.as_ref().map(|found| Row::of("page size", found, |bytes| size(*bytes))));
    rows.extend(findings.chunk.as_ref().map(|found| Row::of("chunk size", found, |bytes| size(*bytes))));
    if let Some(domains) = &findings.domains {
        rows.push(Row::of("interleaving degree (domains)", &domains.degree, number));
        rows.push(Row::of("sub-domains of a domain", &domains.sub_domains, number));
        rows.push(Row::of("units", &domains.units, number));
    }
    rows.extend(
        findings
            .mapping
            .as_ref()
            .map(|found| Row::of("mapping policy", found, |m: &Mapping| m.name().into())),
    );
    rows
}

/// A bus or link: both how it is specified and what it costs.
fn per_byte(ps: f64) -> String {
    if ps <= 0.0 {
        return UNSEEN.to_owned();
    }
    format!("{} ({} ns a byte)", format::bandwidth(1e12 / ps), format::three_digits(ps / 1e3))
}

fn times(findings: &Findings) -> Vec<Row> {
    let Some(of) = &findings.latencies else { return Vec::new() };
    let time = |ns: &f64| format::time(*ns);
    let list = |times: &Vec<f64>| times.iter().map(|ns| format::time(*ns)).collect::<Vec<_>>().join(" / ");
    let median = "median on an idle device";
    let mut rows = vec![
        Row::plain("read of a block", format::time(of.block_read), median),
        Row::plain("read of a page", format::time(of.chunk_read), median),
    ];
    rows.extend(of.chunk_write.map(|ns| Row::plain("write of a page", format::time(ns), median)));
    rows.extend(of.sustained_write.map(|ns| {
        let reason = "mean time between random writes of a page that complete, once buffers are full";
        Row::plain("sustained writes, every", format::time(ns), reason)
    }));
    rows.push(Row::of("array read, by page type", &of.read, list));
    rows.push(Row::of("array program, by page type", &of.program, list));
    rows.push(Row::of("bus of a domain", &of.transfer, |ps| per_byte(*ps)));
    rows.push(Row::of("whole pages over the bus", &of.whole_chunks, yes));
    rows.push(Row::of("next page read meanwhile", &of.cache_read, yes));
    rows.push(Row::of("unit held by the read of a block", &of.unit_hold, time));
    rows.push(Row::of("commands side by side", &of.queues_inside, yes));
    let or_unseen = |ns: f64| if ns > 0.0 { format::time(ns) } else { UNSEEN.to_owned() };
    rows.push(Row::of("distance of commands", &of.command, |ns| or_unseen(*ns)));
    if findings.subject.writes {
        rows.push(Row::of("turn from reads to writes", &of.turn, |turn| match turn {
            Turn::Costs(ns) => or_unseen(*ns),
            Turn::Drains => "what is under way ends first".to_owned(),
        }));
    }
    if of.unit_hold.value.is_some() {
        let reason = "latency on an idle device that is neither the unit's nor the link's";
        rows.push(Row::plain("controller and host", format::time(of.overhead), reason));
    }
    rows.push(Row::of("link to the host", &of.link, |rate| format::bandwidth(rate * 1e6)));
    rows
}

fn parallelism(findings: &Findings) -> Vec<Row> {
    let mut rows = Vec::new();
    rows.extend(findings.queue.as_ref().map(|queue| {
        Row::of("commands that it takes", &queue.commands, |commands| match commands {
            Commands::Exactly(number) => number.to_string(),
            Commands::AtLeast(number) => format!("{number} or more"),
        })
    }));
    let Some(of) = &findings.parallelism else { return rows };
    let number = |value: &u32| value.to_string();
    rows.push(Row::of("reads that help", &of.reads, number));
    if findings.subject.writes {
        rows.push(Row::of("writes that help", &of.writes, number));
    }
    rows
}

fn buffers(findings: &Findings) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(of) = &findings.read_ahead {
        rows.push(Row::of("read-ahead", &of.present, yes));
        if of.present.value.is_some() {
            rows.push(Row::of("read-ahead begins after", &of.trigger, |reads| format!("{reads} reads")));
            rows.push(Row::of("read-ahead reaches", &of.window, |bytes| size(*bytes)));
            rows.push(Row::of("streams read ahead", &of.streams, |streams| streams.to_string()));
        }
    }
    if let Some(of) = &findings.write_buffer {
        rows.push(Row::of("write buffer", &of.present, yes));
        if of.present.value.is_some() {
            rows.push(Row::of("write buffer: size", &of.size, |bytes| size(*bytes)));
            rows.push(Row::of("write buffer: kept when idle", &of.kept, |share| format::percent(*share)));
        }
    }
    if let Some(of) = &findings.flush {
        rows.push(Row::of("volatile write buffer", &of.volatile, yes));
        let behind = |name, ns: f64, reason: &str| Row::plain(name, format::time(ns), reason);
        rows.push(behind("flush", of.alone, "median, with nothing to write back"));
        rows.push(behind(
            "flush behind a write",
            of.behind_write,
            "median, behind a page that was just written",
        ));
        let reason = format!("median, behind as many pages: {} for each", format::time(of.by_page()));
        let value = format!("{} behind {}", format::time(of.behind_writes), of.writes);
        rows.push(Row::plain("flush behind many writes", value, &reason));
    }
    rows
}

fn regions(findings: &Findings) -> Vec<Row> {
    let Some(of) = &findings.regions else { return Vec::new() };
    let mut rows = vec![Row::of("region", &of.size, |bytes| size(*bytes))];
    if findings.subject.writes {
        rows.push(Row::of("batch of one direction", &of.batch, |requests| format!("{requests} requests")));
    }
    rows
}

fn collection(findings: &Findings) -> Vec<Row> {
    let Some(of) = &findings.collection else { return Vec::new() };
    let mut rows = vec![Row::of("sets in after", &of.volume, |bytes| size(*bytes))];
    if of.latency[1] > 0.0 {
        let [before, after] = of.latency.map(format::time);
        rows.push(Row::plain("writes before / after", format!("{before} / {after}"), "mean latency"));
    }
    rows
}

/// What schedulers of the project can be told, as options of the command line, each with what it says.
pub(crate) fn hints(findings: &Findings) -> Vec<(String, String)> {
    let mut hints = Vec::new();
    if let Some(units) = findings.domains.as_ref().and_then(|domains| domains.units.value) {
        let about = "for piq, piq+ and the others that keep conflicts apart: parallel units";
        hints.push((format!("--units {units}"), about.to_owned()));
    }
    if let Some(regions) = &findings.regions {
        if let Some(region) = regions.size.value {
            let about = "for pass: reads inside wait for one another";
            hints.push((format!("--tunable region_size={}", region.0), about.to_owned()));
        }
        if let Some(batch) = regions.batch.value {
            let about = "for pass: the least batch of one direction that does well";
            hints.push((format!("--tunable pass.batch={batch}"), about.to_owned()));
        }
    }
    hints
}

/// Why stages are missing, by cause: those that it did not come to, those of a full probe, those that write.
pub(crate) fn missing(findings: &Findings) -> Vec<(&'static str, Vec<&'static str>)> {
    const CAUSES: [&str; 3] =
        ["not done yet", "only in a full probe, without --quick", "what writes needs --destroy-data NAME"];
    let Subject { writes, quick, .. } = findings.subject;
    let mut missing = CAUSES.map(|cause| (cause, Vec::new()));
    for entry in STAGES {
        let is_done = findings.stages.iter().any(|stage| stage.name == entry.name);
        // What filling finds out is nothing.
        if is_done || entry.name == "fill" {
            continue;
        }
        let cause = match (writes || !entry.writes, wanted(entry, true, quick)) {
            (true, true) => 0,
            (true, false) => 1,
            (false, _) => 2,
        };
        missing[cause].1.push(entry.what);
    }
    missing.into_iter().filter(|(_, what)| !what.is_empty()).collect()
}
