//! Pairs of reads in different chunks: how chunks are numbered, and how two of them are drawn.

use super::instrument::{Area, Instrument};
use planewise_model::{Lsn, Ns};
use rand::RngExt;

/// By how much the second of two reads is later: enough for the first to have begun, and less than any array read, after which a slow
/// transfer would hold up the second's command whatever it is for.
pub(super) const STAGGER: Ns = Ns::from_micros(2);
/// Pairs measured in one round.
pub(super) const ROUND: usize = 4096;
/// By how much the best relation must be likelier than the next, as a logarithm: e^12 is 160,000 to 1.
pub(super) const MARGIN: f64 = 12.0;

/// How the area is addressed: in pieces that are read and written as a whole, pages as a rule, of which so many in turn are a chunk.
#[derive(Clone, Copy, Debug)]
pub struct Chunks {
    /// Where.
    pub area: Area,
    /// Sectors of a piece.
    pub sectors: u64,
    /// Sectors of a chunk.
    pub run: u64,
    /// By how many sectors addresses have to be moved for chunks to begin at multiples of their size.
    pub shift: u64,
}

impl Chunks {
    /// Chunks of one piece.
    pub fn of(area: Area, sectors: u64) -> Chunks {
        Chunks { area, sectors, run: sectors, shift: 0 }
    }

    /// The same, in pieces of whole chunks.
    #[must_use]
    pub fn whole(self) -> Chunks {
        Chunks { sectors: self.run, ..self }
    }

    /// How many pieces there are.
    pub fn count(&self) -> u64 {
        self.area.pieces(self.sectors)
    }

    /// First sector of piece `index` of the area, and the number of its chunk counted from the start of the device.
    pub fn at(&self, index: u64) -> (Lsn, u64) {
        let start = self.area.piece(self.sectors, index);
        (start, self.number(start))
    }

    /// The number of the chunk that a sector is in.
    pub fn number(&self, at: Lsn) -> u64 {
        (at.0 + self.shift) / self.run
    }
}

/// Draws two different chunks whose numbers are as wanted; none when that seems impossible.
pub(super) fn draw_pair(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    wanted: impl Fn(u64, u64) -> bool,
) -> Option<(u64, u64)> {
    let count = chunks.count();
    let first = instrument.rng.random_range(0..count);
    (0..4096).find_map(|_| {
        let second = instrument.rng.random_range(0..count);
        (first != second && wanted(chunks.at(first).1, chunks.at(second).1)).then_some((first, second))
    })
}
