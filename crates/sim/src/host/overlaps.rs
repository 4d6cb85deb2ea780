//! Dependencies: a request that overlaps an earlier unfinished one, of which one writes, waits until that one is complete.
//!
//! The TCAD paper takes it for granted ("dependencies between I/O requests are avoided when they are added to the I/O queue",
//! section IV-B.2), and file systems and page caches see to it above every real block layer: a scheduler that reorders, or a
//! device that serves commands side by side, would else leave older data on the flash than arrival order says, or return newer
//! data than a read asked for. No drive promises an order among the commands that it holds, so the later request waits for the
//! completion of the earlier one and not for its issue.
//!
//! Requests are told apart by sector. Unfinished ones hang in chains, one for each chunk of sectors that they touch; a pair is met in
//! the first chunk that both touch, and so once. Requests over many chunks hang in none and are looked at one by one.

use super::Slot;
use crate::error::SimError;
use planewise_model::{Direction, Request};
use std::fmt;
use std::str::FromStr;

/// What becomes of a request that overlaps an earlier unfinished one, of which one writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Overlap {
    /// It waits for that one's completion.
    #[default]
    Keep,
    /// Nothing: it may be issued before it, and the older data may win. What schedulers do that leave this to others.
    Ignore,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Overlap::Keep => "keep",
            Overlap::Ignore => "ignore",
        })
    }
}

impl FromStr for Overlap {
    type Err = SimError;

    fn from_str(text: &str) -> Result<Overlap, SimError> {
        match text {
            "keep" => Ok(Overlap::Keep),
            "ignore" => Ok(Overlap::Ignore),
            _ => Err(SimError::Option {
                key: "overlap".into(),
                found: format!("'{text}'"),
                allowed: "keep, ignore".into(),
            }),
        }
    }
}

/// Sectors of a chunk, 32 KiB: most requests lie in one or two, and few share one by chance.
const CHUNK_SECTORS: u64 = 64;
/// Chunks of a request at most that hangs in chains.
const CHUNKS_MAX: u64 = 16;
const NIL: u32 = u32::MAX;

/// What an unfinished request covers.
#[derive(Clone, Copy)]
struct Extent {
    start: u64,
    /// First sector behind it; 0 where the slot is free.
    end: u64,
    sequence: u64,
    writes: bool,
    /// Place among the long ones, when it is one.
    long_at: u32,
    /// Unfinished earlier requests that it waits for.
    earlier: u32,
}

impl Extent {
    const NONE: Extent = Extent { start: 0, end: 0, sequence: 0, writes: false, long_at: NIL, earlier: 0 };

    fn first_chunk(&self) -> u64 {
        self.start / CHUNK_SECTORS
    }

    fn chunks(&self) -> u64 {
        (self.end - 1) / CHUNK_SECTORS - self.first_chunk() + 1
    }

    fn is_long(&self) -> bool {
        self.chunks() > CHUNKS_MAX
    }

    /// Whether the order of the two matters.
    fn depends(&self, other: &Extent) -> bool {
        self.start < other.end && other.start < self.end && (self.writes || other.writes)
    }
}

/// A request in the chain of one chunk.
#[derive(Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
}

/// All unfinished requests by what they cover.
pub(crate) struct Overlaps {
    extents: Vec<Extent>,
    /// Node `slot * CHUNKS_MAX + n` is the request's place in the chain of its n-th chunk.
    links: Vec<Link>,
    chains: Vec<u32>,
    /// Shift that makes a hash an index of `chains`.
    shift: u32,
    long: Vec<u32>,
    held: u32,
}

impl Overlaps {
    /// For a queue of a number of slots; [`None`] when dependencies are ignored.
    pub(crate) fn new(overlap: Overlap, slots: u32) -> Option<Overlaps> {
        let chains = (slots as usize * 4).next_power_of_two();
        (overlap == Overlap::Keep).then(|| Overlaps {
            extents: vec![Extent::NONE; slots as usize],
            links: vec![Link { previous: NIL, next: NIL }; slots as usize * CHUNKS_MAX as usize],
            chains: vec![NIL; chains],
            shift: 64 - chains.trailing_zeros(),
            long: Vec::new(),
            held: 0,
        })
    }

    /// How many unfinished requests a newcomer depends on.
    #[inline]
    pub(crate) fn met_by(&self, request: &Request) -> u32 {
        let newcomer = extent(request, 0);
        let mut met = 0;
        self.for_each_dependent(&newcomer, |_, _| met += 1);
        met
    }

    /// A request takes a slot, and waits for so many others.
    #[inline]
    pub(crate) fn insert(&mut self, slot: Slot, request: &Request, sequence: u64, earlier: u32) {
        self.extents[slot.index()] = Extent { earlier, ..extent(request, sequence) };
        self.held += u32::from(earlier > 0);
        self.hang(slot.0);
    }

    /// Requests that wait for others.
    #[inline]
    pub(crate) fn held(&self) -> u32 {
        self.held
    }

    /// The request in `slot`, which waits for no other, grew to what `request` covers.
    pub(crate) fn grew(&mut self, slot: Slot, request: &Request) {
        let grown = extent(request, self.extents[slot.index()].sequence);
        self.take_down(slot.0);
        self.extents[slot.index()] = grown;
        self.hang(slot.0);
    }

    /// The request in `other` is about to become part of the older one in `into`: who waits for both waits for one then.
    pub(crate) fn join(&mut self, into: Slot, other: Slot) {
        let (kept, gone) = (self.extents[into.index()], self.extents[other.index()]);
        if self.held > 0 {
            let mut both = Vec::new();
            self.for_each_dependent(&gone, |slot, held| {
                if held.earlier > 0 && held.depends(&kept) {
                    both.push(slot);
                }
            });
            both.into_iter().for_each(|slot| self.extents[slot as usize].earlier -= 1);
        }
        self.take_down(other.0);
        self.extents[other.index()] = Extent::NONE;
    }

    /// The request in `slot` is complete. Those that waited for nothing else go to the end of `released`, in the order of arrival.
    #[inline]
    pub(crate) fn complete(&mut self, slot: Slot, released: &mut Vec<Slot>) {
        let gone = self.extents[slot.index()];
        self.take_down(slot.0);
        self.extents[slot.index()] = Extent::NONE;
        if self.held > 0 {
            self.release(&gone, released);
        }
    }

    fn release(&mut self, gone: &Extent, released: &mut Vec<Slot>) {
        let first = released.len();
        let mut waited = std::mem::take(released);
        self.for_each_dependent(gone, |slot, later| {
            if later.earlier > 0 && later.sequence > gone.sequence {
                waited.push(Slot(slot));
            }
        });
        let mut end = first;
        for index in first..waited.len() {
            let slot = waited[index];
            let extent = &mut self.extents[slot.index()];
            extent.earlier -= 1;
            if extent.earlier == 0 {
                self.held -= 1;
                waited[end] = slot;
                end += 1;
            }
        }
        waited.truncate(end);
        waited[first..].sort_unstable_by_key(|slot| self.extents[slot.index()].sequence);
        *released = waited;
    }

    /// Calls `found` once for each unfinished request whose order with `of` matters.
    #[inline]
    fn for_each_dependent(&self, of: &Extent, mut found: impl FnMut(u32, &Extent)) {
        if of.is_long() {
            for (slot, extent) in self.extents.iter().enumerate() {
                if extent.depends(of) {
                    found(slot as u32, extent);
                }
            }
            return;
        }
        for &slot in &self.long {
            let extent = &self.extents[slot as usize];
            if extent.depends(of) {
                found(slot, extent);
            }
        }
        let first = of.first_chunk();
        for chunk in first..first + of.chunks() {
            let mut node = self.chains[self.chain(chunk)];
            while node != NIL {
                let slot = node / CHUNKS_MAX as u32;
                let extent = &self.extents[slot as usize];
                let own = extent.first_chunk();
                // Its node for this very chunk, and no chunk before it has both.
                if own + u64::from(node) % CHUNKS_MAX == chunk
                    && chunk == own.max(first)
                    && extent.depends(of)
                {
                    found(slot, extent);
                }
                node = self.links[node as usize].next;
            }
        }
    }

    #[inline]
    fn chain(&self, chunk: u64) -> usize {
        (chunk.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    #[inline]
    fn hang(&mut self, slot: u32) {
        let extent = self.extents[slot as usize];
        if extent.is_long() {
            self.extents[slot as usize].long_at = self.long.len() as u32;
            self.long.push(slot);
            return;
        }
        for nth in 0..extent.chunks() {
            let chain = self.chain(extent.first_chunk() + nth);
            let node = slot * CHUNKS_MAX as u32 + nth as u32;
            let next = std::mem::replace(&mut self.chains[chain], node);
            self.links[node as usize] = Link { previous: NIL, next };
            if next != NIL {
                self.links[next as usize].previous = node;
            }
        }
    }

    #[inline]
    fn take_down(&mut self, slot: u32) {
        let extent = self.extents[slot as usize];
        if extent.is_long() {
            self.long.swap_remove(extent.long_at as usize);
            if let Some(&moved) = self.long.get(extent.long_at as usize) {
                self.extents[moved as usize].long_at = extent.long_at;
            }
            return;
        }
        for nth in 0..extent.chunks() {
            let Link { previous, next } = self.links[slot as usize * CHUNKS_MAX as usize + nth as usize];
            if previous == NIL {
                let chain = self.chain(extent.first_chunk() + nth);
                self.chains[chain] = next;
            } else {
                self.links[previous as usize].next = next;
            }
            if next != NIL {
                self.links[next as usize].previous = previous;
            }
        }
    }
}

#[inline]
fn extent(request: &Request, sequence: u64) -> Extent {
    let writes = request.direction == Direction::Write;
    Extent { start: request.start.0, end: request.end().0, sequence, writes, ..Extent::NONE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::rng::generator;
    use planewise_model::{Lsn, Ns};
    use rand::RngExt;

    fn request(start: u64, sectors: u32, direction: Direction) -> Request {
        Request::new(Ns::ZERO, Lsn(start), sectors, direction)
    }

    #[test]
    fn only_requests_that_share_a_sector_and_of_which_one_writes_depend_on_one_another() {
        use Direction::{Read, Write};
        let mut overlaps = Overlaps::new(Overlap::Keep, 8).unwrap();
        overlaps.insert(Slot(0), &request(60, 8, Read), 0, 0);
        assert_eq!(overlaps.met_by(&request(64, 2, Read)), 0);
        assert_eq!(overlaps.met_by(&request(67, 1, Write)), 1);
        assert_eq!(overlaps.met_by(&request(68, 8, Write)), 0, "behind its end");
        assert_eq!(overlaps.met_by(&request(0, 60, Write)), 0, "up to its start");
        assert_eq!(overlaps.met_by(&request(0, 1 << 20, Write)), 1, "over thousands of chunks");
    }

    /// One request among those of the model that the chains are compared with.
    struct Model {
        slot: Slot,
        sequence: u64,
        request: Request,
        released: bool,
    }

    #[test]
    fn whoever_is_released_is_who_a_search_of_all_pairs_releases() {
        for seed in 0..200 {
            let mut random = generator(seed, "overlaps");
            let slots = random.random_range(1..40u32);
            // From everything on everything to hardly any, with short, long and huge ones.
            let space = [100u64, 2_000, 100_000][random.random_range(0..3usize)];
            let mut overlaps = Overlaps::new(Overlap::Keep, slots).unwrap();
            let mut free: Vec<Slot> = (0..slots).map(Slot).collect();
            let mut unfinished: Vec<Model> = Vec::new();
            for sequence in 0..2_000u64 {
                let waits = |unfinished: &[Model], of: &Model| {
                    unfinished
                        .iter()
                        .filter(|other| other.sequence < of.sequence)
                        .filter(|other| extent(&other.request, 0).depends(&extent(&of.request, 0)))
                        .count()
                };
                if !free.is_empty() && (unfinished.is_empty() || random.random_bool(0.5)) {
                    let slot = free.swap_remove(random.random_range(0..free.len()));
                    let sectors = [8, 64, 1_000, 5_000][random.random_range(0..4usize)];
                    let direction = if random.random_bool(0.5) { Direction::Read } else { Direction::Write };
                    let request =
                        request(random.random_range(0..space), random.random_range(1..=sectors), direction);
                    let mut newcomer = Model { slot, sequence, request, released: false };
                    let met = overlaps.met_by(&request);
                    assert_eq!(met as usize, waits(&unfinished, &newcomer), "seed {seed}, {sequence}");
                    overlaps.insert(slot, &request, sequence, met);
                    newcomer.released = met == 0;
                    unfinished.push(newcomer);
                } else {
                    let ready: Vec<usize> =
                        (0..unfinished.len()).filter(|&index| unfinished[index].released).collect();
                    let done = unfinished.remove(ready[random.random_range(0..ready.len())]);
                    let mut released = Vec::new();
                    overlaps.complete(done.slot, &mut released);
                    free.push(done.slot);
                    let now_free: Vec<usize> = (0..unfinished.len())
                        .filter(|&index| !unfinished[index].released)
                        .filter(|&index| waits(&unfinished, &unfinished[index]) == 0)
                        .collect();
                    let expected: Vec<Slot> = now_free.iter().map(|&index| unfinished[index].slot).collect();
                    assert_eq!(released, expected, "seed {seed}, {sequence}");
                    now_free.into_iter().for_each(|index| unfinished[index].released = true);
                }
                let held = unfinished.iter().filter(|request| !request.released).count();
                assert_eq!(overlaps.held() as usize, held, "seed {seed}, {sequence}");
            }
        }
    }
}
