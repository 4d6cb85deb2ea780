//! Everything that a probe found, as its file holds it: what is there after each stage, so that an interrupted probe goes on.

use super::array::Array;
use super::collection::Onset;
use super::domains::Domains;
use super::finding::{Curve, Finding};
use super::flush::Flush;
use super::interference::Interference;
use super::latency::Latencies;
use super::mapping::Mapping;
use super::parallelism::Parallelism;
use super::queue::Queue;
use super::read_ahead::ReadAhead;
use super::regions::Regions;
use super::write_buffer::WriteBuffer;
use planewise_model::Bytes;
use serde::{Deserialize, Serialize};

/// Version of the file's format.
pub const FORMAT: u32 = 3;

/// What a probe found, as far as it got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// [`FORMAT`].
    pub format: u32,
    /// What was probed.
    pub subject: Subject,
    /// Stages that are done, in order.
    pub stages: Vec<Stage>,
    /// Commands at a time.
    pub queue: Option<Queue>,
    /// Drives, where it is an array.
    pub array: Option<Finding<Array>>,
    /// Page size: the data of one array read.
    pub page: Option<Finding<Bytes>>,
    /// Chunk size: the largest run of consecutive data in one place.
    pub chunk: Option<Finding<Bytes>>,
    /// Units, domains, sub-domains.
    pub domains: Option<Domains>,
    /// What decides where a chunk goes; nothing without writes.
    pub mapping: Option<Finding<Mapping>>,
    /// Latencies of flash, bus, link and controller.
    pub latencies: Option<Latencies>,
    /// Where more operations at a time stop to help.
    pub parallelism: Option<Parallelism>,
    /// Read-ahead.
    pub read_ahead: Option<ReadAhead>,
    /// The write buffer; nothing without writes.
    pub write_buffer: Option<WriteBuffer>,
    /// What flushes cost; nothing without writes.
    pub flush: Option<Flush>,
    /// Regions and batches for PASS.
    pub regions: Option<Regions>,
    /// How pairs of workloads disturb one another; nothing without writes.
    pub interference: Option<Interference>,
    /// When collection sets in; nothing without writes.
    pub collection: Option<Onset>,
    /// The curves behind the findings, by stage.
    pub curves: Vec<(String, Curve)>,
}

/// What is taken for a page where none was found: that of most file systems and databases.
pub(super) const USUAL_PAGE: Bytes = Bytes(4096);
/// Longest page of any flash.
pub(super) const LONGEST_PAGE: Bytes = Bytes(32 << 10);

impl Findings {
    /// Bytes of a page; a chunk that may be one where pages are not known, else what is usual.
    pub fn page_bytes(&self) -> Bytes {
        let value = |of: &Option<Finding<Bytes>>| of.as_ref().and_then(|found| found.value);
        value(&self.page).or(value(&self.chunk).filter(|size| *size <= LONGEST_PAGE)).unwrap_or(USUAL_PAGE)
    }
}

/// What was probed, and how: a probe that goes on must be one of the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The target's name.
    pub target: String,
    /// What it is.
    pub kind: String,
    /// What served it.
    pub engine: String,
    /// What tells it from another of its name, where that is known.
    #[serde(default)]
    pub identity: Option<String>,
    /// Version of the program: another one may measure otherwise.
    #[serde(default)]
    pub version: String,
    /// Its capacity.
    pub capacity: Bytes,
    /// Its blocks, bytes.
    pub block_bytes: u32,
    /// Operations at a time.
    pub depth: u32,
    /// Whether it was written.
    pub writes: bool,
    /// Whether it was the short probe.
    pub quick: bool,
    /// First byte of the area.
    pub area_start: Bytes,
    /// Size of the area.
    pub area: Bytes,
    /// Seed of all places.
    pub seed: u64,
}

/// A stage that is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// How long it took on the target's clock, s.
    pub seconds: f64,
    /// Reads issued.
    pub reads: u64,
    /// Bytes written.
    pub written: Bytes,
}
