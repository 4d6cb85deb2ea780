//! Where requests go: sequential runs through extents, new pages at the pace the working set grows, skewed re-use.
//!
//! Pages live in **extents**, powers of two of pages scattered over the address span, each filled from its start. So the
//! pages touched are known exactly from one number per extent, whatever the length of the stream. Written pages and
//! pages that are only ever read live in extents of their own (two **regions**); reads go to both.
//!
//! Three counts are steered while they are made instead of corrected afterwards: sequential requests (the measuring
//! [`SequentialDetector`] itself runs inside), pages written and pages only read.

use super::deck::{below, unit};
use super::description::VolumeDescription;
use crate::stats::{GAP_SECTORS_DEFAULT, STREAMS_DEFAULT, SequentialDetector};
use planewise_model::Direction;
use planewise_model::rng::{self, Generator};
use planewise_model::units::Lsn;
use rand::Rng;
use std::collections::VecDeque;

const PAGE_SECTORS: u64 = 8;
const PAGE_BYTES: f64 = 4096.0;
/// How many requests a shortage of sequential requests takes to be made up.
const FEEDBACK_REQUESTS: f64 = 500.0;
/// Requests between looks at the law of growth, which costs a power.
const TARGET_REQUESTS: u64 = 64;
/// Half-filled extents kept before a new run of new pages resumes the one left longest ago: more than the streams that
/// the detector remembers, so that resuming one is not mistaken for a sequential request. A small region keeps fewer,
/// down to [`OPEN_EXTENTS_LEAST`]: all its extents would stay half filled, and runs over old pages short.
const OPEN_EXTENTS: usize = 48;
const OPEN_EXTENTS_LEAST: usize = 4;
/// How often a run goes on with the stream served last, when it could go on with any: what makes streams come in clumps.
const STICKINESS: f64 = 0.5;
/// Tries to find room for a request among old pages before it takes new ones.
const REUSE_TRIES: u32 = 8;

#[derive(Clone, Copy)]
struct Extent {
    first_page: u64,
    filled_sectors: u64,
}

/// Extents of one kind of page.
#[derive(Default)]
struct Region {
    extents: Vec<Extent>,
    /// Extents with room and no run in them.
    open: VecDeque<u32>,
    filled_pages: u64,
    target_pages: f64,
}

impl Region {
    fn shortage(&self) -> f64 {
        self.target_pages - self.filled_pages as f64
    }

    /// New pages a run may take beyond the target before it is cut: a hundredth, so that no run overshoots by more.
    fn allowance(&self) -> f64 {
        8.0 + 0.01 * self.target_pages
    }
}

#[derive(Clone, Copy)]
struct Run {
    region: usize,
    extent: usize,
    /// Next sector inside the extent.
    position: u64,
    /// Whether the run takes new pages.
    new_pages: bool,
}

/// Regions by index: pages that get written, and pages that are only read.
const WRITTEN: usize = 0;
const READ_ONLY: usize = 1;

/// The region whose pages a direction makes.
fn home(direction: Direction) -> usize {
    if direction == Direction::Write { WRITTEN } else { READ_ONLY }
}

/// The addresses of a stream.
pub struct Addresses {
    random: Generator,
    description: VolumeDescription,
    extent_pages: u64,
    slots: u64,
    next_slot: u64,
    scramble: u64,
    regions: [Region; 2],
    runs: [Vec<Run>; 2],
    last_run: [usize; 2],
    detector: SequentialDetector,
    requests: u64,
    sequential: u64,
    reuse_exponent: f64,
}

impl Addresses {
    /// The addresses of a volume, which must have passed its check. `requests` only bounds what must fit: a shorter
    /// stream is the beginning of a longer one.
    ///
    /// # Errors
    /// When the working set of that many requests does not fit into the address span.
    pub fn new(description: &VolumeDescription, requests: u64, seed: u64) -> Result<Addresses, String> {
        let extent_pages = extent_pages(description);
        let mut random = rng::generator(seed, "synth.addresses");
        let slots = (description.address_span() / (extent_pages as f64 * PAGE_BYTES)) as u64;
        let columns = description.columns(requests);
        let reserve = (2 * OPEN_EXTENTS as u64 + 2 * u64::from(description.shape.streams)) * extent_pages;
        let needed = columns.working_set * 1.1 + reserve as f64 * PAGE_BYTES;
        if needed > slots as f64 * extent_pages as f64 * PAGE_BYTES {
            return Err(format!(
                "{requests} requests of '{}' need an address_span_gib of {:.2}, it has {}",
                description.name,
                needed / (1u64 << 30) as f64,
                description.shape.address_span_gib
            ));
        }
        Ok(Addresses {
            scramble: random.next_u64() | 1,
            random,
            description: description.clone(),
            extent_pages,
            slots,
            next_slot: 0,
            regions: Default::default(),
            runs: Default::default(),
            last_run: [0; 2],
            detector: SequentialDetector::new(STREAMS_DEFAULT, GAP_SECTORS_DEFAULT),
            requests: 0,
            sequential: 0,
            reuse_exponent: 1.0 / (1.0 - description.shape.reuse_skew),
        })
    }

    /// Where the next request of this direction and size starts.
    #[inline]
    pub fn draw(&mut self, direction: Direction, sectors: u64) -> Lsn {
        if self.requests.is_multiple_of(TARGET_REQUESTS) {
            let ahead = self.requests + TARGET_REQUESTS;
            self.regions[WRITTEN].target_pages = self.description.written_set(ahead) / PAGE_BYTES;
            self.regions[READ_ONLY].target_pages = self.description.read_only_set(ahead) / PAGE_BYTES;
        }
        let share = self.description.sequential_share;
        let shortage = share * self.requests as f64 - self.sequential as f64;
        let go_on = unit(&mut self.random) < share + shortage / FEEDBACK_REQUESTS;
        let continued = if go_on { self.continue_run(direction, sectors) } else { None };
        let start = continued.unwrap_or_else(|| self.jump(direction, sectors));
        self.requests += 1;
        self.sequential += u64::from(self.detector.observe(start, start + sectors));
        Lsn(start)
    }

    /// Goes on with a run of the direction, if one has room.
    fn continue_run(&mut self, direction: Direction, sectors: u64) -> Option<u64> {
        let side = direction.index();
        let runs = self.runs[side].len();
        if runs == 0 {
            return None;
        }
        let first = if unit(&mut self.random) < STICKINESS {
            self.last_run[side]
        } else {
            below(&mut self.random, runs as u64) as usize
        };
        let home = &self.regions[home(direction)];
        // A working set far behind its law needs all there is: runs over old pages wait meanwhile.
        let only_new = home.shortage() > home.allowance();
        (0..runs).map(|step| (first + step) % runs).find_map(|index| {
            let run = self.runs[side][index];
            if only_new && !run.new_pages {
                return None;
            }
            let start = self.place(run, sectors)?;
            self.runs[side][index].position += sectors;
            self.last_run[side] = index;
            Some(start)
        })
    }

    /// Puts a request at a run's position: the address, or nothing when the run is at its end.
    fn place(&mut self, run: Run, sectors: u64) -> Option<u64> {
        let capacity = self.extent_pages * PAGE_SECTORS;
        let region = &mut self.regions[run.region];
        let end = run.position + sectors;
        let filled = region.extents[run.extent].filled_sectors;
        if run.new_pages {
            if end > capacity || region.shortage() < -region.allowance() {
                return None;
            }
            region.extents[run.extent].filled_sectors = end;
            region.filled_pages += end.div_ceil(PAGE_SECTORS) - filled.div_ceil(PAGE_SECTORS);
        } else if end > filled {
            return None;
        }
        Some(region.extents[run.extent].first_page * PAGE_SECTORS + run.position)
    }

    /// Starts a run somewhere else, in place of another one once all streams are busy.
    fn jump(&mut self, direction: Direction, sectors: u64) -> u64 {
        let side = direction.index();
        let mut run = self.choose(direction, sectors);
        let start = run.1;
        run.0.position += sectors;
        let slot = if self.runs[side].len() < self.description.shape.streams as usize {
            self.runs[side].push(run.0);
            self.runs[side].len() - 1
        } else {
            let slot = below(&mut self.random, self.runs[side].len() as u64) as usize;
            let old = std::mem::replace(&mut self.runs[side][slot], run.0);
            if old.new_pages {
                self.regions[old.region].open.push_back(old.extent as u32);
            }
            slot
        };
        self.last_run[side] = slot;
        start
    }

    /// A run to start: new pages when the working set lags behind its law, else old ones.
    fn choose(&mut self, direction: Direction, sectors: u64) -> (Run, u64) {
        let home = home(direction);
        if self.regions[home].shortage() <= 0.0 {
            let other = match direction {
                Direction::Write => WRITTEN,
                Direction::Read if unit(&mut self.random) < self.description.shape.reads_of_written_share => {
                    WRITTEN
                }
                Direction::Read => READ_ONLY,
            };
            let fallback = if direction == Direction::Write { WRITTEN } else { 1 - other };
            for region in [other, fallback] {
                if let Some(found) = self.reuse(region, sectors) {
                    return found;
                }
            }
        }
        self.new_run(home, sectors)
    }

    fn reuse(&mut self, region: usize, sectors: u64) -> Option<(Run, u64)> {
        let pages = self.regions[region].extents.len() as u64 * self.extent_pages;
        if pages == 0 {
            return None;
        }
        for _ in 0..REUSE_TRIES {
            // The inverse of the distribution function x^(1-s) of the share x of the pages, hottest (oldest) first.
            let rank = (pages as f64 * unit(&mut self.random).powf(self.reuse_exponent)) as u64;
            let extent = (rank.min(pages - 1) / self.extent_pages) as usize;
            let filled = self.regions[region].extents[extent].filled_sectors;
            if filled < sectors {
                continue;
            }
            // Odd multiples permute a power of two: neighbours in heat are not neighbours in address.
            let page = (rank % self.extent_pages).wrapping_mul(0x9e37_79b9) % self.extent_pages;
            let room = (filled - sectors) / PAGE_SECTORS + 1;
            let run = Run { region, extent, position: page % room * PAGE_SECTORS, new_pages: false };
            let start = self.place(run, sectors).expect("a request before the fill of its extent has room");
            return Some((run, start));
        }
        None
    }

    /// A run of new pages, in an extent left half filled or in a new one. Takes them even past the target.
    fn new_run(&mut self, region: usize, sectors: u64) -> (Run, u64) {
        let capacity = self.extent_pages * PAGE_SECTORS;
        let extent = loop {
            let quarter = self.regions[region].target_pages as usize / (4 * self.extent_pages as usize);
            let open = &mut self.regions[region].open;
            let oldest = if open.len() >= quarter.clamp(OPEN_EXTENTS_LEAST, OPEN_EXTENTS) {
                open.pop_front()
            } else {
                None
            };
            let Some(extent) = oldest.map(|extent| extent as usize) else { break self.new_extent(region) };
            if self.regions[region].extents[extent].filled_sectors + sectors <= capacity {
                break extent;
            }
        };
        let regions = &mut self.regions[region];
        let filled = regions.extents[extent].filled_sectors;
        let end = filled + sectors;
        regions.extents[extent].filled_sectors = end;
        regions.filled_pages += end.div_ceil(PAGE_SECTORS) - filled.div_ceil(PAGE_SECTORS);
        let start = regions.extents[extent].first_page * PAGE_SECTORS + filled;
        (Run { region, extent, position: filled, new_pages: true }, start)
    }

    /// The next free extent of the span. Slots are scattered by a bijection of their numbers that the seed chooses.
    fn new_extent(&mut self, region: usize) -> usize {
        let mask = self.slots.next_power_of_two() - 1;
        let shift = (mask.count_ones() / 2).max(1);
        // Past the last slot the first ones come again: unreachable within the length that `new` checked.
        let mut slot = self.next_slot % self.slots;
        loop {
            // Each step is a bijection of 0..=mask, and walking on until inside keeps it one of 0..slots.
            for round in 0..3 {
                slot =
                    (slot ^ (slot >> shift)).wrapping_mul(self.scramble.rotate_left(round * 20) | 1) & mask;
            }
            slot = slot.wrapping_add(self.scramble >> 7) & mask;
            if slot < self.slots {
                break;
            }
        }
        self.next_slot += 1;
        let extents = &mut self.regions[region].extents;
        extents.push(Extent { first_page: slot * self.extent_pages, filled_sectors: 0 });
        extents.len() - 1
    }
}

/// Pages per extent: four mean runs and four of the largest requests, so that few runs end at an extent's end; halved
/// while the span holds fewer than 512 extents, as long as the largest request fits.
fn extent_pages(description: &VolumeDescription) -> u64 {
    let sizes = description.shape.read_sizes.iter().chain(&description.shape.write_sizes);
    let largest_kib = sizes.map(|&(kib, _)| kib).fold(4.0, f64::max);
    let largest = (largest_kib / 4.0).ceil() as u64;
    let mean_run = description.mean_kib() / 4.0 / (1.0 - description.sequential_share);
    let mut pages = (4 * largest).max((4.0 * mean_run).ceil() as u64).next_power_of_two();
    while description.address_span() / (pages as f64 * PAGE_BYTES) < 512.0 && pages / 2 >= largest {
        pages /= 2;
    }
    pages
}
