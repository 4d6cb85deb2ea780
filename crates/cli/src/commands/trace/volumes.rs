//! `planewise trace volumes`: the volumes of a trace, or the synthetic ones.

use crate::arguments::VolumesArguments;
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::source::Source;
use planewise_model::rng::DEFAULT_SEED;
use planewise_model::{Bytes, Request};
use planewise_trace::synth::{self, VOLUMES};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// Lists the volumes.
///
/// # Errors
/// A trace that cannot be read, Ctrl-C, standard output that cannot be written.
pub fn execute(arguments: &VolumesArguments, stop: &AtomicBool) -> Result<(), Failure> {
    match &arguments.trace {
        Some(trace) => of_trace(trace, arguments, stop),
        None => synthetic(),
    }
}

/// What a volume was asked for: reads, writes.
#[derive(Clone, Copy, Default)]
struct Asked {
    requests: [u64; 2],
    bytes: [u64; 2],
    /// Behind the last byte.
    end: u64,
}

impl Asked {
    fn add(&mut self, request: &Request) {
        let direction = request.direction.index();
        self.requests[direction] += 1;
        self.bytes[direction] += request.bytes().0;
        self.end = self.end.max(request.end().0 * planewise_model::SECTOR_BYTES);
    }
}

fn of_trace(trace: &str, arguments: &VolumesArguments, stop: &AtomicBool) -> Result<(), Failure> {
    let source = Source::find(trace, &arguments.read, None, &[DEFAULT_SEED])?;
    let mut stream = source.open()?;
    let progress = Progress::new(source.known_requests(), arguments.quiet);
    let mut volumes: BTreeMap<u32, Asked> = BTreeMap::new();
    super::for_each_batch(&mut stream, &progress, stop, |batch| {
        batch.iter().for_each(|request| volumes.entry(request.volume).or_default().add(request));
        Ok(())
    })?;
    progress.end();
    super::warn(&stream, arguments.quiet);
    let names = stream.volume_names();
    let name = |number: u32| names.get(number as usize).cloned().unwrap_or_else(|| number.to_string());
    let mut sorted: Vec<(u32, Asked)> = volumes.into_iter().collect();
    // Those that matter most first.
    sorted.sort_by_key(|(number, asked)| (std::cmp::Reverse(asked.requests.iter().sum::<u64>()), *number));
    let width = sorted.iter().map(|(number, _)| name(*number).chars().count()).max().unwrap_or(0).max(6);
    let mut text = format!(
        "{:<width$}  {:>12}  {:>7}  {:>10}  {:>10}  {:>10}\n",
        "volume", "requests", "writes", "read", "written", "up to"
    );
    for (number, asked) in sorted {
        let all: u64 = asked.requests.iter().sum();
        text += &format!(
            "{:<width$}  {:>12}  {:>5.1} %  {:>10}  {:>10}  {:>10}\n",
            name(number),
            all,
            100.0 * asked.requests[1] as f64 / all as f64,
            Bytes(asked.bytes[0]).to_string(),
            Bytes(asked.bytes[1]).to_string(),
            Bytes(asked.end).to_string(),
        );
    }
    output::print(&text)
}

fn synthetic() -> Result<(), Failure> {
    let mut text = format!(
        "{:<12} {:>7} {:>11} {:>9} {:>9} {:>6} {:>10} {:>6}  {}\n",
        "name", "writes", "working set", "read", "write", "seq.", "interval", "burst", "what it looks like"
    );
    for (name, _) in VOLUMES {
        let volume = synth::volume(name)?;
        text += &format!(
            "{:<12} {:>5.1} % {:>7.2} GiB {:>5.1} KiB {:>5.1} KiB {:>4.0} % {:>7.2} ms {:>4.0} %  {}\n",
            volume.name,
            100.0 * volume.write_ratio,
            volume.working_set_gib,
            volume.read_mean_kib,
            volume.write_mean_kib,
            100.0 * volume.sequential_share,
            volume.inter_arrival_ms,
            100.0 * volume.burst_share,
            volume.summary
        );
    }
    output::print(&text)
}
