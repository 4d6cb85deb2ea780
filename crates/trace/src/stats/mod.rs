//! What a trace is like: one pass, memory bounded by the working set.
//!
//! Every column is defined at its field of [`TraceStats`]; `docs/traces.md` repeats the definitions for users.

mod pages;
mod sequential;
#[cfg(test)]
mod tests;

pub use pages::{PageSets, Touch};
pub use sequential::{GAP_SECTORS_DEFAULT, STREAMS_DEFAULT, SequentialDetector};

use planewise_model::units::{Bytes, Lsn, Ns, SECTOR_BYTES};
use planewise_model::{Direction, Durability, Operation, Request};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A request that arrives at most this long after its predecessor is a burst request, by default: section 5.1 of the
/// idle-chip paper ("host I/O requests arriving within 0.2ms are identified as burst requests").
pub const BURST_GAP_DEFAULT: Ns = Ns(200_000);

/// How to measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StatsOptions {
    /// Page size of the working set and of updates: a multiple of 512 bytes. Default 4 KiB.
    pub page_size: Bytes,
    /// Longest gap to the predecessor inside a burst. Default [`BURST_GAP_DEFAULT`].
    pub burst_gap: Ns,
    /// Streams that [`SequentialDetector`] remembers per volume, 1 to 1024.
    pub sequential_streams: usize,
    /// Sectors that a sequential request may skip.
    pub sequential_gap_sectors: u64,
}

impl Default for StatsOptions {
    fn default() -> StatsOptions {
        StatsOptions {
            page_size: Bytes(4096),
            burst_gap: BURST_GAP_DEFAULT,
            sequential_streams: STREAMS_DEFAULT,
            sequential_gap_sectors: GAP_SECTORS_DEFAULT,
        }
    }
}

/// An option that cannot be measured with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option} = {found}; allowed: {allowed}")]
pub struct StatsOptionError {
    /// The field of [`StatsOptions`].
    pub option: &'static str,
    /// Its value.
    pub found: String,
    /// What it may be.
    pub allowed: &'static str,
}

/// One direction's share of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DirectionStats {
    /// Number of requests.
    pub requests: u64,
    /// Volume moved.
    pub bytes: Bytes,
    /// Mean request size in bytes; absent without requests.
    pub size_mean: Option<f64>,
    /// The smallest size that 50 % of the requests do not exceed; absent without requests. Likewise the others.
    pub size_p50: Option<Bytes>,
    /// 90th percentile of the size.
    pub size_p90: Option<Bytes>,
    /// 99th percentile of the size.
    pub size_p99: Option<Bytes>,
    /// Largest request.
    pub size_max: Option<Bytes>,
}

/// What a trace is like. Shares run from 0 to 1; what needs requests that are not there is absent (`None`, `null`).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceStats {
    /// How it was measured.
    pub options: StatsOptions,
    /// Number of requests.
    pub requests: u64,
    /// Last arrival minus first arrival.
    pub duration: Ns,
    /// Requests per second of duration; absent when no time passes.
    pub iops: Option<f64>,
    /// Write requests over all requests.
    pub write_ratio: Option<f64>,
    /// The reads.
    pub reads: DirectionStats,
    /// The writes.
    pub writes: DirectionStats,
    /// Flushes. These and discards are neither reads nor writes, and count in no other number.
    pub flushes: u64,
    /// Discards.
    pub discards: u64,
    /// What discards cover.
    pub discarded: Bytes,
    /// Writes that are kept once acknowledged (forced unit access), or that a flush goes before.
    pub forced_writes: u64,
    /// Volume moved in both directions.
    pub accessed: Bytes,
    /// Distinct pages touched, times the page size; pages of different volumes are different pages.
    pub working_set: Bytes,
    /// Distinct pages written, times the page size.
    pub written_set: Bytes,
    /// Updates: of all pages written, counted once per write that touches them, the share that had been written before.
    pub update_share: Option<f64>,
    /// Requests that continue one of the recent streams ([`SequentialDetector`]) over all requests.
    pub sequential_share: Option<f64>,
    /// Requests that start exactly where the previous request of their volume ended, over all requests.
    pub sequential_share_strict: Option<f64>,
    /// Requests whose start and size are both multiples of 4 KiB.
    pub aligned_share: Option<f64>,
    /// Duration over the number of gaps (requests − 1), in nanoseconds.
    pub inter_arrival_mean: Option<f64>,
    /// Burst requests: gaps to the predecessor of at most `options.burst_gap`, over the number of gaps.
    pub burst_share: Option<f64>,
    /// Mean gap between the requests of a burst, in nanoseconds.
    pub burst_gap_mean: Option<f64>,
    /// Number of bursts: maximal chains of at least two requests linked by such gaps.
    pub bursts: u64,
    /// Mean requests per burst.
    pub burst_length_mean: Option<f64>,
    /// Requests in the longest burst; 0 without bursts.
    pub burst_length_max: u64,
    /// Lowest first sector, of any volume.
    pub first_sector: Option<Lsn>,
    /// One past the highest last sector, of any volume.
    pub end_sector: Option<Lsn>,
    /// Distinct volumes.
    pub volumes: u64,
    /// Distinct processes.
    pub processes: u64,
    /// Requests that arrive before their predecessor. Their gap counts as zero.
    pub out_of_order: u64,
}

/// Sizes of one direction: exact, since traces use few distinct ones.
#[derive(Default)]
struct Sizes {
    requests: u64,
    sectors: u64,
    histogram: BTreeMap<u32, u64>,
}

impl Sizes {
    fn finish(&self) -> DirectionStats {
        let percentile = |percent: u64| {
            let rank = (self.requests * percent).div_ceil(100).max(1);
            let mut below = 0;
            self.histogram.iter().find_map(|(&sectors, &count)| {
                below += count;
                (below >= rank).then_some(Bytes(u64::from(sectors) * SECTOR_BYTES))
            })
        };
        DirectionStats {
            requests: self.requests,
            bytes: Bytes(self.sectors * SECTOR_BYTES),
            size_mean: ratio((self.sectors * SECTOR_BYTES) as f64, self.requests),
            size_p50: percentile(50),
            size_p90: percentile(90),
            size_p99: percentile(99),
            size_max: percentile(100),
        }
    }
}

/// One volume's sequential state.
struct Volume {
    streams: SequentialDetector,
    previous: SequentialDetector,
}

/// Measures a trace, request by request, in arrival order.
pub struct StatsBuilder {
    options: StatsOptions,
    page_sectors: u64,
    sizes: [Sizes; 2],
    flushes: u64,
    discards: u64,
    discarded_sectors: u64,
    forced_writes: u64,
    pages: PageSets,
    written_page_touches: u64,
    working_set_pages: u64,
    written_set_pages: u64,
    volumes: HashMap<u32, Volume>,
    processes: BTreeSet<u32>,
    last_process: Option<u32>,
    sequential: u64,
    sequential_strict: u64,
    aligned: u64,
    first_arrival: Ns,
    last_arrival: Ns,
    previous_arrival: Option<Ns>,
    burst_gaps: u64,
    burst_gap_sum: u128,
    bursts: u64,
    burst_length: u64,
    burst_length_max: u64,
    first_sector: Lsn,
    end_sector: Lsn,
    out_of_order: u64,
}

impl StatsBuilder {
    /// Starts measuring.
    ///
    /// # Errors
    /// A page size that is not a positive multiple of 512 bytes; no stream, or more than 1024.
    pub fn new(options: StatsOptions) -> Result<StatsBuilder, StatsOptionError> {
        let page = options.page_size.0;
        if page == 0 || !page.is_multiple_of(SECTOR_BYTES) {
            let allowed = "a positive multiple of 512 bytes";
            return Err(StatsOptionError { option: "page_size", found: page.to_string(), allowed });
        }
        if !(1..=1024).contains(&options.sequential_streams) {
            let found = options.sequential_streams.to_string();
            return Err(StatsOptionError { option: "sequential_streams", found, allowed: "1 to 1024" });
        }
        Ok(StatsBuilder {
            page_sectors: page / SECTOR_BYTES,
            options,
            sizes: Default::default(),
            flushes: 0,
            discards: 0,
            discarded_sectors: 0,
            forced_writes: 0,
            pages: PageSets::default(),
            written_page_touches: 0,
            working_set_pages: 0,
            written_set_pages: 0,
            volumes: HashMap::new(),
            processes: BTreeSet::new(),
            last_process: None,
            sequential: 0,
            sequential_strict: 0,
            aligned: 0,
            first_arrival: Ns::MAX,
            last_arrival: Ns::ZERO,
            previous_arrival: None,
            burst_gaps: 0,
            burst_gap_sum: 0,
            bursts: 0,
            burst_length: 1,
            burst_length_max: 0,
            first_sector: Lsn(u64::MAX),
            end_sector: Lsn(0),
            out_of_order: 0,
        })
    }

    /// Takes one request into account.
    pub fn add(&mut self, request: &Request) {
        match request.operation {
            Operation::Transfer => {}
            Operation::Flush | Operation::FlushWithMetadata => {
                self.flushes += 1;
                return;
            }
            Operation::Discard => {
                self.discards += 1;
                self.discarded_sectors += u64::from(request.sectors);
                return;
            }
        }
        self.forced_writes += u64::from(request.durability != Durability::Volatile);
        self.add_arrival(request.arrival);
        let sizes = &mut self.sizes[request.direction.index()];
        sizes.requests += 1;
        sizes.sectors += u64::from(request.sectors);
        *sizes.histogram.entry(request.sectors).or_default() += 1;

        let (start, end) = (request.start.0, request.end().0);
        self.first_sector = self.first_sector.min(request.start);
        self.end_sector = self.end_sector.max(request.end());
        self.aligned += u64::from(start.is_multiple_of(8) && request.sectors.is_multiple_of(8));
        let volume = self.volumes.entry(request.volume).or_insert_with(|| Volume {
            streams: SequentialDetector::new(
                self.options.sequential_streams,
                self.options.sequential_gap_sectors,
            ),
            previous: SequentialDetector::new(1, 0),
        });
        self.sequential += u64::from(volume.streams.observe(start, end));
        self.sequential_strict += u64::from(volume.previous.observe(start, end));
        if self.last_process != Some(request.process) {
            self.processes.insert(request.process);
            self.last_process = Some(request.process);
        }
        if end > start {
            let write = request.direction == Direction::Write;
            let (first, last) = (start / self.page_sectors, (end - 1) / self.page_sectors);
            let touch = self.pages.touch(request.volume, first, last, write);
            self.working_set_pages += touch.new;
            self.written_set_pages += touch.newly_written;
            self.written_page_touches += if write { touch.pages } else { 0 };
        }
    }

    fn add_arrival(&mut self, arrival: Ns) {
        self.first_arrival = self.first_arrival.min(arrival);
        self.last_arrival = self.last_arrival.max(arrival);
        if let Some(previous) = self.previous_arrival.replace(arrival) {
            self.out_of_order += u64::from(arrival < previous);
            let gap = arrival.saturating_sub(previous);
            if gap <= self.options.burst_gap {
                self.burst_gaps += 1;
                self.burst_gap_sum += u128::from(gap.0);
                self.bursts += u64::from(self.burst_length == 1);
                self.burst_length += 1;
                self.burst_length_max = self.burst_length_max.max(self.burst_length);
            } else {
                self.burst_length = 1;
            }
        }
    }

    /// The measures of all requests added. An empty trace has zeros and absences.
    pub fn finish(self) -> TraceStats {
        let [reads, writes] = &self.sizes;
        let requests = reads.requests + writes.requests;
        let duration = self.last_arrival.saturating_sub(self.first_arrival);
        let gaps = requests.saturating_sub(1);
        let page = self.options.page_size.0;
        TraceStats {
            requests,
            duration,
            iops: (duration > Ns::ZERO).then(|| requests as f64 / duration.as_secs_f64()),
            write_ratio: ratio(writes.requests as f64, requests),
            reads: reads.finish(),
            writes: writes.finish(),
            flushes: self.flushes,
            discards: self.discards,
            discarded: Bytes(self.discarded_sectors * SECTOR_BYTES),
            forced_writes: self.forced_writes,
            accessed: Bytes((reads.sectors + writes.sectors) * SECTOR_BYTES),
            working_set: Bytes(self.working_set_pages * page),
            written_set: Bytes(self.written_set_pages * page),
            update_share: ratio(
                (self.written_page_touches - self.written_set_pages) as f64,
                self.written_page_touches,
            ),
            sequential_share: ratio(self.sequential as f64, requests),
            sequential_share_strict: ratio(self.sequential_strict as f64, requests),
            aligned_share: ratio(self.aligned as f64, requests),
            inter_arrival_mean: ratio(duration.0 as f64, gaps),
            burst_share: ratio(self.burst_gaps as f64, gaps),
            burst_gap_mean: ratio(self.burst_gap_sum as f64, self.burst_gaps),
            bursts: self.bursts,
            burst_length_mean: ratio((self.burst_gaps + self.bursts) as f64, self.bursts),
            burst_length_max: self.burst_length_max,
            first_sector: (requests > 0).then_some(self.first_sector),
            end_sector: (requests > 0).then_some(self.end_sector),
            volumes: self.volumes.len() as u64,
            processes: self.processes.len() as u64,
            out_of_order: self.out_of_order,
            options: self.options,
        }
    }
}

fn ratio(part: f64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part / whole as f64)
}
