//! A RAID-0 of simulated devices as one target: the external parallelism of Chen et al. 2016, section 8, over the internal one.
//!
//! All members share one clock: time goes to the next event of any of them, and at one instant members go in their order, so that a
//! run is the same every time. What combines them takes no time and has no limit of its own, and each member has a link of its own.

use super::sim::{LONGEST, SimTarget};
use super::{Completed, Operation, Target, TargetError, TargetInfo, TargetKind};
use planewise_model::rng::generator;
use planewise_model::{Bytes, Lsn, Ns, Profile, SECTOR_BYTES};
use planewise_sim::Condition;
use planewise_workload::values;
use rand::Rng;
use std::str::FromStr;

/// Members at most.
pub const MEMBERS_MAX: u32 = 8;

/// How logical addresses are laid over members: chunk after chunk, round robin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    members: u32,
    chunk_sectors: u64,
}

impl Layout {
    /// So many members, 1 to [`MEMBERS_MAX`], with chunks of whole sectors.
    ///
    /// # Errors
    /// What was found and what is allowed.
    pub fn new(members: u32, chunk: Bytes) -> Result<Layout, String> {
        if !(1..=MEMBERS_MAX).contains(&members) {
            return Err(format!("found {members} members; allowed: 1 to {MEMBERS_MAX}"));
        }
        if chunk.0 == 0 || !chunk.0.is_multiple_of(SECTOR_BYTES) {
            return Err(format!(
                "found a chunk of {} bytes; allowed: multiples of {SECTOR_BYTES} bytes",
                chunk.0
            ));
        }
        Ok(Layout { members, chunk_sectors: chunk.0 / SECTOR_BYTES })
    }

    /// Members.
    pub fn members(self) -> u32 {
        self.members
    }

    /// Bytes that follow one another on a member.
    pub fn chunk(self) -> Bytes {
        Bytes(self.chunk_sectors * SECTOR_BYTES)
    }

    /// Bytes of all members together, each of which has so many, in whole chunks.
    ///
    /// # Errors
    /// A member does not hold one chunk.
    pub fn capacity(self, of_member: Bytes) -> Result<Bytes, String> {
        let chunks = of_member.0 / self.chunk().0;
        if chunks == 0 {
            return Err(format!(
                "found a chunk of {}; allowed: up to {of_member}, what a member holds",
                self.chunk()
            ));
        }
        Ok(Bytes(chunks * self.chunk().0 * u64::from(self.members)))
    }

    /// The parts of an operation, by member. Chunks of one member that follow one another in the array do so on the member, so that each
    /// member has one part at most.
    pub fn parts(self, operation: Operation) -> impl Iterator<Item = (u32, Operation)> {
        let (members, chunk) = (u64::from(self.members), self.chunk_sectors);
        let Operation { start: Lsn(start), sectors, .. } = operation;
        let last_sector = start + u64::from(sectors.max(1)) - 1;
        let (first, last) = (start / chunk, last_sector / chunk);
        (first..=last).take(self.members as usize).map(move |index| {
            let own_last = index + (last - index) / members * members;
            let begin = index / members * chunk + if index == first { start % chunk } else { 0 };
            let end =
                own_last / members * chunk + if own_last == last { last_sector % chunk } else { chunk - 1 };
            let part = Operation { start: Lsn(begin), sectors: (end + 1 - begin) as u32, ..operation };
            ((index % members) as u32, part)
        })
    }
}

impl FromStr for Layout {
    type Err = String;

    /// `4x32k`: members, `x`, chunk.
    fn from_str(text: &str) -> Result<Layout, String> {
        let refused = || format!("found '{text}'; allowed: MEMBERSxCHUNK, such as 4x32k");
        let (members, chunk) = text.split_once(['x', 'X']).ok_or_else(refused)?;
        let members: u32 =
            members.parse().map_err(|_| format!("found '{members}' members; allowed: 1 to {MEMBERS_MAX}"))?;
        let chunk = values::bytes(chunk).map_err(|allowed| format!("chunk: allowed: {allowed}"))?;
        Layout::new(members, Bytes(chunk))
    }
}

/// An operation of the array under way.
#[derive(Clone, Copy, Default)]
struct UnderWay {
    /// Parts that are not complete.
    parts: u32,
    issued: Ns,
    /// When the last part so far was complete.
    completed: Ns,
}

/// A RAID-0 of simulated devices.
pub struct Raid0Target {
    info: TargetInfo,
    layout: Layout,
    members: Vec<SimTarget>,
    now: Ns,
    /// By tag, which is that of the parts on their members as well.
    under_way: Vec<UnderWay>,
    /// Parts that completed at one instant.
    parts: Vec<Completed>,
}

impl Raid0Target {
    /// An array under a name, of devices that all have this profile and past. It takes `depth` operations at a time (1 to 4096), and so
    /// does each member. The first member has the seed itself, the others seeds drawn from it by their number: one member alone does what
    /// the device does without an array.
    ///
    /// # Errors
    /// A profile or a condition that cannot be, a depth out of range, a chunk that is larger than a member.
    pub fn new(
        name: &str,
        layout: Layout,
        profile: &Profile,
        condition: Condition,
        depth: u32,
        seed: u64,
    ) -> Result<Raid0Target, TargetError> {
        let members = (0..layout.members)
            .map(|number| SimTarget::new(profile, condition, depth, member_seed(seed, number)))
            .collect::<Result<Vec<_>, _>>()?;
        let unusable = |problem| TargetError::Unusable { target: name.to_owned(), problem };
        let capacity = layout.capacity(members[0].info().capacity).map_err(unusable)?;
        let info = TargetInfo {
            name: name.to_owned(),
            kind: TargetKind::Simulated,
            engine: "model",
            capacity,
            block_bytes: SECTOR_BYTES as u32,
            longest: LONGEST,
            depth,
            writable: true,
            identity: None,
        };
        Ok(Raid0Target {
            info,
            layout,
            members,
            now: Ns::ZERO,
            under_way: vec![UnderWay::default(); depth as usize],
            parts: Vec::new(),
        })
    }

    /// Lets all members that have an event at `to` come there, and takes what completed.
    fn pass(&mut self, to: Ns, completed: &mut Vec<Completed>) -> Result<(), TargetError> {
        self.now = self.now.max(to);
        for member in &mut self.members {
            if member.next_event() <= to {
                member.pass(to, &mut self.parts)?;
            }
        }
        for part in self.parts.drain(..) {
            let whole = &mut self.under_way[part.tag as usize];
            whole.parts -= 1;
            whole.completed = whole.completed.max(part.completed);
            if whole.parts == 0 {
                completed.push(Completed { tag: part.tag, issued: whole.issued, completed: whole.completed });
            }
        }
        Ok(())
    }
}

/// The seed of a member: the array's for the first, so that an array of one is its member.
fn member_seed(seed: u64, number: u32) -> u64 {
    if number == 0 { seed } else { generator(seed, &format!("member {number} of RAID-0")).next_u64() }
}

impl Target for Raid0Target {
    fn info(&self) -> &TargetInfo {
        &self.info
    }

    fn now(&mut self) -> Ns {
        self.now
    }

    fn submit(&mut self, tag: u32, operation: Operation) -> Result<(), TargetError> {
        self.info.check(&operation)?;
        assert!(self.under_way[tag as usize].parts == 0, "tag {tag} has an operation under way");
        let mut parts = 0;
        let mut submit = |number: u32, part: Operation| {
            let member = &mut self.members[number as usize];
            member.idle_until(self.now);
            parts += 1;
            member.submit(tag, part)
        };
        if operation.command.is_flush() {
            // What was written may be on any member.
            (0..self.layout.members).try_for_each(|number| submit(number, operation))?;
        } else {
            self.layout.parts(operation).try_for_each(|(number, part)| submit(number, part))?;
        }
        self.under_way[tag as usize] = UnderWay { parts, issued: self.now, completed: Ns::ZERO };
        Ok(())
    }

    fn wait(&mut self, until: Ns, completed: &mut Vec<Completed>) -> Result<Ns, TargetError> {
        let before = completed.len();
        loop {
            let next = self.members.iter().map(SimTarget::next_event).min().unwrap_or(Ns::MAX);
            if next == Ns::MAX && until == Ns::MAX {
                for member in &mut self.members {
                    member.finish()?;
                }
                let problem = "nothing is under way to wait for".to_owned();
                return Err(TargetError::Unusable { target: self.info.name.clone(), problem });
            }
            if next > until {
                self.now = self.now.max(until);
                return Ok(self.now);
            }
            self.pass(next, completed)?;
            // At `until` itself nothing starts before this is called again, as with a single device.
            if completed.len() > before || next == until {
                return Ok(self.now);
            }
        }
    }

    fn flush(&mut self) -> Result<Ns, TargetError> {
        self.submit(0, Operation::flush())?;
        self.wait(Ns::MAX, &mut Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    fn layout(text: &str) -> Layout {
        text.parse().unwrap()
    }

    #[test]
    fn an_operation_falls_into_one_part_a_member() {
        let parts = |text: &str, start, sectors| {
            let parts = layout(text).parts(Operation::read(Lsn(start), sectors));
            parts.map(|(member, part)| (member, part.start.0, part.sectors)).collect::<Vec<_>>()
        };
        // Chunks of 8 sectors on 2 members: 0-7 and 16-23 on the first, 8-15 and 24-31 on the second.
        assert_eq!(parts("2x4k", 0, 8), [(0, 0, 8)]);
        assert_eq!(parts("2x4k", 6, 4), [(0, 6, 2), (1, 0, 2)]);
        assert_eq!(parts("2x4k", 6, 24), [(0, 6, 10), (1, 0, 14)]);
        assert_eq!(parts("2x4k", 8, 24), [(1, 0, 16), (0, 8, 8)]);
        assert_eq!(parts("1x4k", 6, 100), [(0, 6, 100)]);
        assert_eq!(parts("4x512", 5, 2), [(1, 1, 1), (2, 1, 1)]);
    }

    /// The member and its sector that a logical sector is on, by definition.
    fn place(layout: Layout, sector: u64) -> (u32, u64) {
        let (chunk, members) = (layout.chunk_sectors, u64::from(layout.members));
        let index = sector / chunk;
        ((index % members) as u32, index / members * chunk + sector % chunk)
    }

    #[test]
    fn every_sector_of_random_operations_goes_to_its_place_once_and_in_order() {
        for seed in 0..2000 {
            let mut random = generator(seed, "layouts");
            let members = random.random_range(1..=MEMBERS_MAX);
            let layout = Layout::new(members, Bytes(512 * random.random_range(1..=300))).unwrap();
            let start = random.random_range(0..1 << 30);
            let sectors = random.random_range(1..=2048);
            let mut by_member: Vec<Vec<u64>> = vec![Vec::new(); members as usize];
            for sector in start..start + u64::from(sectors) {
                let (member, own) = place(layout, sector);
                by_member[member as usize].push(own);
            }
            let parts: Vec<_> = layout.parts(Operation::write(Lsn(start), sectors)).collect();
            for &(member, part) in &parts {
                let covered: Vec<u64> = (part.start.0..part.start.0 + u64::from(part.sectors)).collect();
                assert_eq!(covered, by_member[member as usize], "seed {seed}: member {member} of {layout:?}");
                by_member[member as usize].clear();
            }
            assert!(by_member.iter().all(Vec::is_empty), "seed {seed}: {layout:?}");
            assert_eq!(parts.iter().map(|(_, part)| part.sectors).sum::<u32>(), sectors, "seed {seed}");
            // The first part begins where the operation does.
            assert_eq!((parts[0].0, parts[0].1.start.0), place(layout, start), "seed {seed}");
        }
    }

    #[test]
    fn places_of_different_sectors_differ() {
        for (members, chunk) in [(1, 3), (2, 1), (3, 5), (8, 7)] {
            let layout = Layout::new(members, Bytes(512 * chunk)).unwrap();
            let sectors = u64::from(members) * chunk * 4;
            let mut places: Vec<_> = (0..sectors).map(|sector| place(layout, sector)).collect();
            places.sort_unstable();
            let all = (0..members).flat_map(|member| (0..chunk * 4).map(move |own| (member, own)));
            assert!(places.into_iter().eq(all), "{layout:?}");
        }
    }

    #[test]
    fn the_array_holds_whole_chunks_of_each_member() {
        assert_eq!(layout("3x64k").capacity(Bytes(1_000_000)), Ok(Bytes(3 * 15 * 65536)));
        assert_eq!(layout("1x512").capacity(Bytes(1536)), Ok(Bytes(1536)));
        let error = layout("2x1m").capacity(Bytes(1_000_000)).unwrap_err();
        assert!(error.contains("1.0 MiB") && error.contains("what a member holds"), "{error}");
    }

    #[test]
    fn a_layout_that_cannot_be_says_what_can() {
        for (text, words) in [
            ("0x4k", &["found 0 members", "1 to 8"][..]),
            ("9x4k", &["found 9 members", "1 to 8"]),
            ("-1x4k", &["'-1' members", "1 to 8"]),
            ("x4k", &["1 to 8"]),
            ("4", &["'4'", "MEMBERSxCHUNK"]),
            ("", &["MEMBERSxCHUNK"]),
            ("4x", &["chunk", "4096"]),
            ("4x0", &["a chunk of 0 bytes", "512"]),
            ("4x1000", &["a chunk of 1000 bytes", "512"]),
            ("4x4q", &["'4q'"]),
            ("4x99999999p", &["chunk"]),
        ] {
            let error = text.parse::<Layout>().unwrap_err();
            assert!(words.iter().all(|word| error.contains(word)), "{text}: {error}");
        }
    }

    #[test]
    fn members_have_seeds_of_their_own_and_the_first_that_of_the_array() {
        let seeds: Vec<u64> = (0..MEMBERS_MAX).map(|number| member_seed(5, number)).collect();
        assert_eq!(seeds[0], 5);
        assert!((1..seeds.len()).all(|index| !seeds[..index].contains(&seeds[index])), "{seeds:?}");
        assert_ne!(member_seed(6, 1), seeds[1]);
    }
}
