//! The order of the stages, and what each needs.

use super::findings::{FORMAT, Findings, Stage};
use super::instrument::Instrument;
use super::options::{Options, subject};
use super::{ProbeError, steps};
use crate::target::{Target, TargetInfo, TargetKind};
use planewise_model::rng::generator;
use std::sync::atomic::AtomicBool;

/// A stage: its name, what it does in a few words, whether it writes, whether the short probe has it.
pub struct Entry {
    /// Name in files and messages.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// Whether it writes to the target.
    pub writes: bool,
    /// Whether the short probe has it.
    pub quick: bool,
    layout: Layout,
    run: fn(&mut Instrument<'_>, &Options, &mut Findings) -> Result<(), ProbeError>,
}

/// What a stage has to do with the layout that filling the area makes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// It fills the area itself.
    Makes,
    /// It reads what was filled.
    Reads,
    /// Neither.
    Leaves,
}

/// All stages, in order.
pub static STAGES: &[Entry] = &[
    Entry {
        name: "fill",
        what: "overwrites the area in order",
        writes: true,
        quick: true,
        layout: Layout::Makes,
        run: steps::fill,
    },
    Entry {
        name: "queue",
        what: "commands at a time, and whether it is an array",
        writes: false,
        quick: true,
        layout: Layout::Reads,
        run: steps::find_queue,
    },
    Entry {
        name: "chunk",
        what: "chunk size",
        writes: false,
        quick: true,
        layout: Layout::Reads,
        run: steps::find_chunk,
    },
    Entry {
        name: "domains",
        what: "interleaving degree and sub-domains",
        writes: false,
        quick: true,
        layout: Layout::Reads,
        run: steps::find_domains,
    },
    Entry {
        name: "curves",
        what: "the curves of the paper's figures 2 and 3",
        writes: false,
        quick: false,
        layout: Layout::Reads,
        run: steps::curves,
    },
    Entry {
        name: "read-ahead",
        what: "read-ahead",
        writes: false,
        quick: true,
        layout: Layout::Reads,
        run: steps::find_read_ahead,
    },
    Entry {
        name: "write-buffer",
        what: "size of the write buffer",
        writes: true,
        quick: true,
        layout: Layout::Makes,
        run: steps::find_write_buffer,
    },
    Entry {
        name: "latency",
        what: "latencies of flash, bus, link and controller",
        writes: false,
        quick: true,
        layout: Layout::Reads,
        run: steps::find_latencies,
    },
    Entry {
        name: "parallelism",
        what: "where more operations at a time stop to help",
        writes: false,
        quick: true,
        layout: Layout::Reads,
        run: steps::find_parallelism,
    },
    Entry {
        name: "regions",
        what: "regions and batches for PASS",
        writes: false,
        quick: false,
        layout: Layout::Reads,
        run: steps::find_regions,
    },
    Entry {
        name: "flush",
        what: "what a flush costs",
        writes: true,
        quick: true,
        layout: Layout::Leaves,
        run: steps::find_flush,
    },
    Entry {
        name: "mapping",
        what: "what decides where data go",
        writes: true,
        quick: true,
        layout: Layout::Makes,
        run: steps::find_mapping,
    },
    Entry {
        name: "interference",
        what: "how pairs of workloads disturb each other",
        writes: true,
        quick: false,
        layout: Layout::Makes,
        run: steps::find_interference,
    },
    Entry {
        name: "collection",
        what: "how much can be written before collection slows writes",
        writes: true,
        quick: false,
        layout: Layout::Leaves,
        run: steps::find_collection,
    },
];

/// Probes a target: runs the stages that `findings` does not have yet, and calls `after` each with all there is. `before` is called with
/// each stage that begins. Returns with [`ProbeError::Interrupted`] when `stop` is set: what `after` got last is whole.
///
/// # Errors
/// Options that the target does not allow, findings of something else, a target that fails, the user who wants it to end, and
/// what `after` returns.
pub fn run<E: From<ProbeError>>(
    target: &mut dyn Target,
    options: &Options,
    findings: &mut Findings,
    stop: &AtomicBool,
    mut before: impl FnMut(&Entry),
    mut after: impl FnMut(&Findings) -> Result<(), E>,
) -> Result<(), E> {
    let subject = subject(target, options)?;
    if findings.stages.is_empty() {
        *findings = Findings { format: FORMAT, subject, ..Findings::default() };
    } else if findings.subject != subject || findings.format != FORMAT {
        let error = ProbeError::Option {
            key: "resume",
            found: format!("a probe of {:?}", findings.subject),
            allowed: format!("one of {subject:?}"),
        };
        return Err(error.into());
    }
    let writes = target.info().writable;
    let refilled = refilled(target.info(), options, findings);
    for (number, entry) in STAGES.iter().enumerate() {
        if !wanted(entry, writes, options.quick)
            || findings.stages.iter().any(|stage| stage.name == entry.name)
        {
            continue;
        }
        before(entry);
        // A stage of its own draws the same places whether those before it ran now or long ago.
        let rng = generator(options.seed.wrapping_add(number as u64), "probe");
        let mut instrument = Instrument::new(target, stop, rng);
        let began = instrument.now();
        if refilled == Some(entry.name) {
            steps::fill(&mut instrument, options, findings)?;
        }
        (entry.run)(&mut instrument, options, findings)?;
        let (reads, written) = instrument.effort();
        let seconds = instrument.now().saturating_sub(began).as_secs_f64();
        findings.stages.push(Stage { name: entry.name.into(), seconds, reads, written });
        after(findings)?;
    }
    Ok(())
}

/// Whether a probe has this stage: one that may write or may not, a short one or a full one.
pub fn wanted(entry: &Entry, writes: bool, quick: bool) -> bool {
    (writes || !entry.writes) && (entry.quick || !quick)
}

/// The stage before which a probe that goes on fills the area again, because nobody knows what became of it meanwhile: the first that
/// reads what was filled, unless one before it fills the area itself. A simulated device has gone through all stages.
pub(super) fn refilled(info: &TargetInfo, options: &Options, findings: &Findings) -> Option<&'static str> {
    if findings.stages.is_empty() || !info.writable || info.kind == TargetKind::Simulated {
        return None;
    }
    let left = STAGES
        .iter()
        .filter(|entry| wanted(entry, info.writable, options.quick))
        .filter(|entry| !findings.stages.iter().any(|stage| stage.name == entry.name));
    let first = left.into_iter().find(|entry| entry.layout != Layout::Leaves)?;
    (first.layout == Layout::Reads).then_some(first.name)
}
