//! `planewise trace info`: the statistics of a trace, as Table II of the idle-chip paper has them, and more.

use crate::arguments::InfoArguments;
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::source::{Source, Stream};
use planewise_model::{Bytes, Ns};
use planewise_trace::stats::{DirectionStats, StatsBuilder, StatsOptions, TraceStats};
use serde::Serialize;
use std::sync::atomic::AtomicBool;

/// Runs the command.
///
/// # Errors
/// A trace that cannot be read, Ctrl-C.
pub fn execute(arguments: &InfoArguments, stop: &AtomicBool) -> Result<(), Failure> {
    let source = super::find(&arguments.trace)?;
    let mut stream = source.open()?;
    let options =
        StatsOptions { page_size: Bytes(u64::from(arguments.page_bytes)), ..StatsOptions::default() };
    let mut stats = StatsBuilder::new(options).map_err(Failure::usage)?;
    let progress = Progress::new(source.known_requests(), arguments.trace.quiet);
    super::for_each_batch(&mut stream, &progress, stop, |batch| {
        batch.iter().for_each(|request| stats.add(request));
        Ok(())
    })?;
    progress.end();
    let stats = stats.finish();
    super::warn(&stream, arguments.trace.quiet);
    if arguments.json {
        return output::print(&json(&source, &stream, &stats)?);
    }
    output::print(&table(&source, &stream, &stats))
}

#[derive(Serialize)]
struct Document<'a> {
    trace: &'a str,
    source: String,
    format: &'a str,
    volume_names: &'a [String],
    stats: &'a TraceStats,
}

fn json(source: &Source, stream: &Stream, stats: &TraceStats) -> Result<String, Failure> {
    let document = Document {
        trace: &source.name,
        source: source.place_name(),
        format: stream.format(),
        volume_names: stream.volume_names(),
        stats,
    };
    serde_json::to_string_pretty(&document).map(|text| text + "\n").map_err(Failure::output)
}

/// A line per statistic; `–` for what the trace does not have.
fn table(source: &Source, stream: &Stream, stats: &TraceStats) -> String {
    let share = |share: Option<f64>| share.map_or_else(absent, |share| format!("{:.2} %", 100.0 * share));
    let time =
        |nanoseconds: Option<f64>| nanoseconds.map_or_else(absent, |ns| Ns(ns.round() as u64).to_string());
    let number = |value: Option<f64>| value.map_or_else(absent, |value| format!("{value:.1}"));
    let mut lines = vec![
        ("trace", source.place_name()),
        ("format", stream.format().to_owned()),
        ("requests", stats.requests.to_string()),
        ("write ratio", share(stats.write_ratio)),
        ("working set", stats.working_set.to_string()),
        ("written set", stats.written_set.to_string()),
        ("accessed volume", stats.accessed.to_string()),
    ];
    lines.extend(direction(["reads", "read size, mean", "read size, p50 p90 p99 max"], &stats.reads));
    lines.extend(direction(["writes", "write size, mean", "write size, p50 p90 p99 max"], &stats.writes));
    let span = match (stats.first_sector, stats.end_sector) {
        (Some(first), Some(end)) => {
            format!(
                "sectors {} to {} ({})",
                first.0,
                end.0,
                Bytes((end.0 - first.0) * planewise_model::SECTOR_BYTES)
            )
        }
        _ => absent(),
    };
    lines.extend([
        ("sequential share", share(stats.sequential_share)),
        ("  exactly behind the previous", share(stats.sequential_share_strict)),
        ("aligned to 4 KiB", share(stats.aligned_share)),
        ("updates, of pages written", share(stats.update_share)),
        ("address span", span),
        ("duration", stats.duration.to_string()),
        ("IOPS", number(stats.iops)),
        ("inter-arrival, mean", time(stats.inter_arrival_mean)),
        ("burst share", format!("{} (gaps up to {})", share(stats.burst_share), stats.options.burst_gap)),
        ("bursts", stats.bursts.to_string()),
        (
            "  requests in a burst",
            format!("mean {}, longest {}", number(stats.burst_length_mean), stats.burst_length_max),
        ),
        ("  gap in a burst, mean", time(stats.burst_gap_mean)),
        ("volumes", volumes(stats, stream.volume_names())),
        ("processes", stats.processes.to_string()),
    ]);
    if stats.flushes > 0 || stats.forced_writes > 0 {
        let text =
            format!("{}, and {} forced writes or writes behind one", stats.flushes, stats.forced_writes);
        lines.push(("flushes", text));
    }
    if stats.discards > 0 {
        lines.push(("discards", format!("{} ({})", stats.discards, stats.discarded)));
    }
    let width = lines.iter().map(|(title, _)| title.len()).max().unwrap_or(0);
    lines.iter().map(|(title, value)| format!("{title:<width$}  {value}\n")).collect()
}

fn absent() -> String {
    "–".to_owned()
}

fn direction(titles: [&'static str; 3], of: &DirectionStats) -> [(&'static str, String); 3] {
    let [requests, mean, percentiles] = titles;
    let bytes = |bytes: Option<Bytes>| bytes.map_or_else(absent, |bytes| bytes.to_string());
    let all = [of.size_p50, of.size_p90, of.size_p99, of.size_max].map(bytes);
    [
        (requests, format!("{} ({})", of.requests, of.bytes)),
        (mean, of.size_mean.map_or_else(absent, |mean| Bytes(mean.round() as u64).to_string())),
        (percentiles, all.join(", ")),
    ]
}

/// Number of volumes, with their names as far as a line holds them.
fn volumes(stats: &TraceStats, names: &[String]) -> String {
    const SHOWN: usize = 8;
    if names.is_empty() {
        return stats.volumes.to_string();
    }
    let more = if names.len() > SHOWN { ", …" } else { "" };
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    format!("{} ({}{more})", stats.volumes, shown.join(", "))
}
