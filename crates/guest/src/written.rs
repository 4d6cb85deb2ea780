//! A check that a read returns the last write, by hashes of sectors that are taken from the guest's memory and nowhere else.

use crate::block::{GuestRequest, Wanted};
use crate::contents::length;
use planewise_model::{Direction, Ns, Request, SECTOR_BYTES};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

/// By sector what was written last. A sector that was never written is not known: it may have been there before.
#[derive(Debug, Default)]
pub struct Written {
    sectors: BTreeMap<u64, u64>,
    /// What was forgotten, as far as nothing was written there since: where it begins, and where it ends. A drive is forgotten as a whole when a file system
    /// is made on it.
    forgotten: BTreeMap<u64, u64>,
    checked: u64,
    wrong: Option<String>,
}

impl Written {
    /// A request goes to the drive.
    pub fn take_in(&mut self, request: &GuestRequest, memory: &GuestMemoryMmap) {
        let Wanted::Drive(wanted) = &request.wanted else { return };
        let covered = || wanted.start.0..wanted.start.0 + u64::from(wanted.sectors);
        match (wanted.is_transfer(), wanted.moves_to_device()) {
            (true, true) => {
                let hashes = hashes(&request.data, memory);
                self.sectors.extend(covered().zip(hashes));
            }
            (false, _) if !wanted.operation.is_flush() => {
                self.forget(wanted.start.0, wanted.start.0 + u64::from(wanted.sectors));
            }
            _ => {}
        }
    }

    fn forget(&mut self, mut start: u64, mut end: u64) {
        let behind = self.sectors.split_off(&start);
        self.sectors.extend(behind.into_iter().skip_while(|(sector, _)| *sector < end));
        // Together with all that it meets.
        while let Some((&from, &to)) =
            self.forgotten.range(..=end).next_back().filter(|(_, to)| **to >= start)
        {
            self.forgotten.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        self.forgotten.insert(start, end);
    }

    /// What a sector reads as; none where that is not known.
    fn expected(&self, sector: u64) -> Option<u64> {
        let is_forgotten =
            || self.forgotten.range(..=sector).next_back().is_some_and(|(_, end)| sector < *end);
        let written = self.sectors.get(&sector).copied();
        written.or_else(|| is_forgotten().then(|| hash(&[0; SECTOR_BYTES as usize])))
    }

    /// A request was answered: the guest has what it asked for.
    pub fn answered(&mut self, request: &GuestRequest, memory: &GuestMemoryMmap, now: Ns) {
        let Wanted::Drive(wanted @ Request { direction: Direction::Read, .. }) = &request.wanted else {
            return;
        };
        if !wanted.is_transfer() {
            return;
        }
        for (sector, found) in (wanted.start.0..).zip(hashes(&request.data, memory)) {
            let Some(expected) = self.expected(sector) else { continue };
            self.checked += 1;
            if expected != found {
                self.wrong.get_or_insert_with(|| {
                    format!("at {now} sector {sector} does not read as it was written")
                });
            }
        }
    }

    /// How many sectors read as they were written, or the first that did not.
    pub fn report(&self) -> Result<u64, String> {
        self.wrong.clone().map_or(Ok(self.checked), Err)
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// Of each sector of a request's memory.
fn hashes(pieces: &[(GuestAddress, u32)], memory: &GuestMemoryMmap) -> Vec<u64> {
    let mut all = vec![0; length(pieces) as usize];
    let mut at = 0;
    for &(address, count) in pieces {
        // What is no memory was refused before.
        let _ = memory.read_slice(&mut all[at..at + count as usize], address);
        at += count as usize;
    }
    all.chunks(SECTOR_BYTES as usize).map(hash).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::rng::generator;
    use rand::RngExt;

    #[test]
    fn what_was_written_last_and_what_was_forgotten_since_is_known_sector_by_sector() {
        let mut random = generator(7, "written");
        for seed in 0..200 {
            let mut written = Written::default();
            let mut simple = [None; 64];
            for step in 0..60u64 {
                let start = random.random_range(0..63usize);
                let end = random.random_range(start + 1..=64usize);
                if random.random_bool(0.5) {
                    written.forget(start as u64, end as u64);
                    simple[start..end].fill(Some(hash(&[0; SECTOR_BYTES as usize])));
                } else {
                    written.sectors.extend((start as u64..end as u64).map(|sector| (sector, step)));
                    simple[start..end].fill(Some(step));
                }
                for (sector, expected) in simple.iter().enumerate() {
                    assert_eq!(
                        written.expected(sector as u64),
                        *expected,
                        "seed {seed}, step {step}, sector {sector}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_whole_drive_that_is_forgotten_takes_no_room() {
        let mut written = Written::default();
        for part in 0..1_000_000u64 {
            written.forget(part << 22, (part + 1) << 22);
        }
        assert_eq!((written.forgotten.len(), written.sectors.len()), (1, 0));
    }
}
