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
    cold_moves: u64,
    /// Whether writes move cold data, too.
    levels: bool,
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
            program_pages: 1,
            cache: None,
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
            cold_moves: 0,
            levels: true,
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

    /// Moves cold data, if wear levelling wants it.
    fn level(&mut self) {
        if let Some(block) = self.planes.pick_cold_block(0) {
            assert!(self.planes.free_pages(0) >= u32::from(self.planes.valid[block as usize]));
            self.planes.begin_cold_move(0);
            self.collect(block);
            self.cold_moves += 1;
            assert_eq!(self.planes.pick_cold_block(0), None, "never two moves in a row");
        }
    }

    /// Overwrites a page, after the collections that it takes.
    fn write(&mut self, lpn: u32) {
        while self.planes.active_is_full(0) && self.planes.free_blocks(0) <= 1 {
            let victim = self.planes.pick_victim(0).expect("some block holds an invalid page");
            self.collect(victim);
            if self.levels {
                self.level();
            }
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
        wear in prop::sample::select(vec!["none", "dynamic", "static:1", "static:7"]),
    ) {
        let policy = &victims::POLICIES[policy];
        let victims = match policy.parameter {
            Some(_) => format!("{}:{number}", policy.name),
            None => policy.name.to_owned(),
        };
        let mut flash = Flash::new(blocks, pages_per_block, &victims, wear, separation);
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
                        flash.level();
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

/// Overwrites the first `share` of a filled plane at random until each block was erased `erases` times on average.
fn wear_out(wear: &str, share: f64, erases: u32, seed: u64) -> Flash {
    let mut flash = Flash::new(256, 16, "greedy", wear, false);
    // An eighth of the pages to spare.
    flash.place.truncate(224 * 16);
    let mut flash = flash.filled();
    let mut random = generator(seed, "wear");
    let pages = (flash.place.len() as f64 * share) as u32;
    while flash.planes.counts[0].erases < erases * 256 {
        flash.write(random.random_range(0..pages));
    }
    flash.audit();
    flash
}

#[test]
fn static_levelling_bounds_the_spread_of_wear_where_dynamic_lets_cold_blocks_lie() {
    for (share, seed) in [(0.1, 1), (0.5, 2), (0.9, 3)] {
        let spread = |flash: &Flash| flash.planes.wear().1 - flash.planes.wear().0;
        let dynamic = wear_out("dynamic", share, 60, seed);
        for threshold in [2, 5, 20] {
            let levelled = wear_out(&format!("static:{threshold}"), share, 60, seed);
            let amplification = |flash: &Flash| (flash.written + flash.moved) as f64 / flash.written as f64;
            let case = format!("share {share}, threshold {threshold}");
            assert!(spread(&levelled) <= threshold + 3, "{case}: {}", spread(&levelled));
            assert!(spread(&dynamic) > 60, "{case}: {}", spread(&dynamic));
            // What it costs: at most one block moved for each one collected, and the less the more is tolerated.
            assert!(levelled.cold_moves * 2 <= u64::from(levelled.planes.counts[0].erases), "{case}");
            let cost = amplification(&levelled) / amplification(&dynamic);
            let most = [(2, 1.8), (5, 1.5), (20, 1.15)].iter().find(|&&(n, _)| n == threshold).unwrap().1;
            assert!((1.0..most).contains(&cost), "{case}: {cost}");
        }
    }
}

#[test]
fn cold_data_move_into_the_most_worn_free_block() {
    let mut flash = wear_out("static:3", 0.2, 20, 4);
    flash.levels = false;
    let mut random = generator(4, "more wear");
    let mut moves = 0;
    for _ in 0..100_000 {
        flash.write(random.random_range(0..100));
        let Some(block) = flash.planes.pick_cold_block(0) else { continue };
        let free = |flash: &Flash| {
            let blocks = (0..256).filter(|&block| flash.planes.valid[block] == FREE);
            blocks.map(|block| flash.planes.erases[block]).max().unwrap()
        };
        let in_use = (0..256)
            .filter(|&block| flash.planes.valid[block] != FREE && !flash.planes.is_open(0, block as u32));
        assert_eq!(
            flash.planes.erases[block as usize],
            in_use.map(|block| flash.planes.erases[block]).min().unwrap()
        );
        flash.planes.begin_cold_move(0);
        let worn = free(&flash);
        let (to, page) = flash.planes.write_pointer(0, Stream::Collection).unwrap();
        assert!(page > 0 || flash.planes.erases[to as usize] == worn, "block {to}");
        flash.collect(block);
        moves += 1;
    }
    flash.audit();
    assert!(moves > 100, "{moves}");
}
