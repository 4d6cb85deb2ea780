//! One plane under a host of its own: random histories, and what the policies of the plane make of them.

use super::*;
use planewise_model::rng::{Generator, generator};
use proptest::prelude::*;
use rand::RngExt;

/// No page.
const NONE: u32 = u32::MAX;

/// A plane and its page map.
struct Flash {
    planes: Planes,
    /// Physical page of each logical one.
    place: Vec<u32>,
    /// Logical page of each physical one.
    owner: Vec<u32>,
    geometry: Geometry,
    moved: u64,
    written: u64,
}

impl Flash {
    fn new(blocks: u32, pages_per_block: u32, victims: &str, wear: &str, separation: bool) -> Flash {
        let geometry = Geometry {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: blocks,
            pages_per_block,
            page_bytes: 4096,
        };
        let policies = PlanePolicies {
            victims: victims::find(victims).unwrap(),
            wear: wear::find(wear).unwrap(),
            hot_cold_separation: separation,
            seed: 7,
        };
        let user_pages = (blocks - 2 - u32::from(separation)) * pages_per_block;
        Flash {
            planes: Planes::fresh(&geometry, &policies),
            place: vec![NONE; user_pages as usize],
            owner: vec![NONE; geometry.pages() as usize],
            geometry,
            moved: 0,
            written: 0,
        }
    }

    /// Every logical page written once, in order, by construction.
    fn filled(mut self) -> Flash {
        let pages = self.place.len() as u32;
        self.planes.fill(0, pages);
        self.place = (0..pages).collect();
        self.owner[..pages as usize].copy_from_slice(&self.place);
        self
    }

    fn put(&mut self, lpn: u32, stream: Stream) {
        let ppn = self.planes.program(0, stream).expect("a free page").0;
        assert_eq!(self.owner[ppn as usize], NONE, "page {ppn} is erased");
        let old = std::mem::replace(&mut self.place[lpn as usize], ppn);
        self.owner[ppn as usize] = lpn;
        if old != NONE {
            self.owner[old as usize] = NONE;
            self.planes.invalidate(Ppn(old));
        }
    }

    /// Moves what is valid in a block, and erases it.
    fn collect(&mut self, block: u32) {
        let first = self.planes.first_page(0, block).0;
        for page in first..first + self.geometry.pages_per_block {
            if self.owner[page as usize] != NONE {
                self.put(self.owner[page as usize], Stream::Collection);
                self.moved += 1;
            }
        }
        self.planes.erase(0, block);
    }

    /// Overwrites a page, after the collections that it takes.
    fn write(&mut self, lpn: u32) {
        while self.planes.active_is_full(0) && self.planes.free_blocks(0) <= 1 {
            let victim = self.planes.pick_victim(0).expect("some block holds an invalid page");
            self.collect(victim);
        }
        self.put(lpn, Stream::Host);
        self.written += 1;
    }

    fn audit(&self) {
        let mut valid = vec![0; self.geometry.blocks() as usize];
        for (lpn, &ppn) in self.place.iter().enumerate().filter(|&(_, &ppn)| ppn != NONE) {
            assert_eq!(self.owner[ppn as usize], lpn as u32);
            valid[(ppn / self.geometry.pages_per_block) as usize] += 1;
        }
        self.planes.audit(&valid).unwrap();
    }

    /// Closed blocks with an invalid page, and their valid pages, by looking at all blocks.
    fn candidates(&self) -> Vec<(u32, u16)> {
        let blocks = self.planes.valid.iter().enumerate().map(|(block, &valid)| (block as u32, valid));
        let full = self.geometry.pages_per_block as u16;
        blocks.filter(|&(block, valid)| valid < full && !self.planes.is_open(0, block)).collect()
    }

    /// The policy's pick is a candidate, is there when one is, and stays while nothing changes.
    fn check_pick(&mut self, victims: &str) {
        let candidates = self.candidates();
        let pick = self.planes.pick_victim(0);
        let found = candidates.iter().find(|&&(block, _)| Some(block) == pick);
        assert_eq!(found.is_some(), !candidates.is_empty(), "{pick:?} out of {candidates:?}");
        assert_eq!(self.planes.cheapest_victim_valid(0), found.map(|&(_, valid)| u32::from(valid)));
        assert_eq!(self.planes.pick_victim(0), pick);
        if let (Some(&(_, valid)), "greedy") = (found, victims) {
            assert_eq!(Some(valid), candidates.iter().map(|&(_, valid)| valid).min(), "{candidates:?}");
        }
    }
}

/// Pages of which one in ten gets nine of ten writes.
fn hot_page(random: &mut Generator, pages: u32) -> u32 {
    let hot = (pages / 10).max(1);
    if random.random_range(0..10) < 9 { random.random_range(0..hot) } else { random.random_range(0..pages) }
}

fn any_history() -> impl Strategy<Value = (u32, u32, bool, bool, f64, u64)> {
    (4u32..200, 1u32..20, any::<bool>(), any::<bool>(), 0.3f64..1.0, any::<u64>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_victim_is_found_exactly_when_there_is_one_and_greedy_finds_the_emptiest(
        (blocks, pages_per_block, separation, filled, share, seed) in any_history(),
        policy in 0..victims::POLICIES.len(),
        number in 1u32..=64,
    ) {
        let policy = &victims::POLICIES[policy];
        let victims = match policy.parameter {
            Some(_) => format!("{}:{number}", policy.name),
            None => policy.name.to_owned(),
        };
        let mut flash = Flash::new(blocks, pages_per_block, &victims, "dynamic", separation);
        if filled {
            flash = flash.filled();
        }
        let mut random = generator(seed, "history");
        let pages = ((flash.place.len() as f64 * share) as u32).max(1);
        for step in 0..4 * flash.geometry.pages() {
            match random.random_range(0..40) {
                // A collection that nothing forces, but that has the space it needs.
                0 if flash.planes.free_blocks(0) > 1 => {
                    if let Some(victim) = flash.planes.pick_victim(0) {
                        flash.collect(victim);
                    }
                }
                _ if random.random_range(0..2) == 0 => flash.write(random.random_range(0..pages)),
                _ => flash.write(hot_page(&mut random, pages)),
            }
            if step % 7 == 0 {
                flash.check_pick(&victims);
            }
        }
        flash.audit();
    }
}
