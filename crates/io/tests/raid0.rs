//! RAID-0 of simulated devices: laws that tie an array to its members.

use planewise_io::drivers::HostOptions;
use planewise_io::drivers::closed_loop::{self, LoopOptions};
use planewise_io::target::raid0::{Layout, Raid0Target};
use planewise_io::target::{Completed, SimTarget};
use planewise_io::{Operation, Target};
use planewise_model::rng::{Generator, generator};
use planewise_model::{Bytes, Lsn, Ns, Profile};
use planewise_sim::Condition;
use planewise_sim::results::RunResult;
use planewise_workload::jobs::JobFile;
use rand::RngExt;
use std::sync::atomic::AtomicBool;

const SEED: u64 = 23;

/// `ssd-s` with its controller, small enough to be aged in no time.
fn device() -> Profile {
    let changes = "geometry.blocks_per_plane=64,collection.replica_pages=64,collection.buffer_pages=64";
    Profile::embedded("ssd-s").unwrap().changed(changes, "ssd-s").unwrap()
}

fn array(layout: &str, condition: Condition, depth: u32, seed: u64) -> Raid0Target {
    let layout: Layout = layout.parse().unwrap();
    Raid0Target::new("raid0:test", layout, &device(), condition, depth, seed).unwrap()
}

fn single(condition: Condition, depth: u32) -> SimTarget {
    SimTarget::new(&device(), condition, depth, SEED).unwrap()
}

/// Issues operations one after another with so many in flight; what completed, in its order, with the number of each operation.
fn drive(target: &mut dyn Target, depth: u32, operations: &[Operation]) -> Vec<(usize, Ns, Ns)> {
    let mut waiting = operations.iter().copied().enumerate();
    let mut of_tag = vec![0; depth as usize];
    let mut free: Vec<u32> = (0..depth).rev().collect();
    let (mut completed, mut all): (Vec<Completed>, _) = (Vec::new(), Vec::new());
    while all.len() < operations.len() {
        while let Some(&tag) = free.last() {
            let Some((number, operation)) = waiting.next() else { break };
            free.pop();
            of_tag[tag as usize] = number;
            target.submit(tag, operation).unwrap();
        }
        target.wait(Ns::MAX, &mut completed).unwrap();
        for one in completed.drain(..) {
            all.push((of_tag[one.tag as usize], one.issued, one.completed));
            free.push(one.tag);
        }
    }
    all
}

fn random_operations(random: &mut Generator, count: usize, sectors: u64, writes: bool) -> Vec<Operation> {
    let one = |_| {
        let length = random.random_range(1..=512);
        let start = Lsn(random.random_range(0..sectors - u64::from(length)));
        if writes && random.random_bool(0.5) {
            Operation::write(start, length)
        } else {
            Operation::read(start, length)
        }
    };
    (0..count).map(one).collect()
}

/// The time from the first issue to the last completion.
fn span(all: &[(usize, Ns, Ns)]) -> u64 {
    all.iter().map(|(_, _, completed)| completed.0).max().unwrap_or(0)
}

#[test]
fn an_array_of_one_does_what_its_member_does_whatever_the_chunk() {
    for (number, chunk) in ["512", "4k", "12k", "64k", "1m", "100m"].iter().enumerate() {
        for condition in [Condition::Fresh, Condition::Filled, "aged:70/20/10".parse().unwrap()] {
            let seed = 100 + number as u64;
            let mut array = array(&format!("1x{chunk}"), condition, 16, SEED);
            let sectors = array.info().sectors();
            let operations = random_operations(&mut generator(seed, "operations"), 400, sectors, true);
            let expected = drive(&mut single(condition, 16), 16, &operations);
            let found = drive(&mut array, 16, &operations);
            assert!(found == expected, "chunk {chunk}, {condition}, seed {seed}");
        }
    }
}

fn run(target: &mut dyn Target, jobs: &str, seed: u64) -> RunResult {
    let host = HostOptions { seed, queue_length: 128, ..HostOptions::new() };
    let mut built = JobFile::parse(jobs, "test").unwrap().build(target.info().capacity.0, seed).unwrap();
    let stop = AtomicBool::new(false);
    let mut options = LoopOptions { stop: &stop, progress: &mut |_| {}, name: "test" };
    let outcome = closed_loop::run(target, &host, &mut built, (), &mut options).unwrap();
    assert!(outcome.failure.is_none());
    outcome.result
}

#[test]
fn results_of_an_array_of_one_are_those_of_its_member_but_for_the_name() {
    let jobs = "[job.readers]\nrw = 'randread'\nbssplit = '4k/50:64k/50'\nsize = '128m'\niodepth = 8\nnumber_ios = 1000\n\
                [job.writers]\nrw = 'randwrite'\nbs = '16k'\nsize = '128m'\niodepth = 4\nnumber_ios = 500\n";
    let expected = run(&mut single(Condition::Filled, 32), jobs, SEED);
    let mut found = run(&mut array("1x32k", Condition::Filled, 32, SEED), jobs, SEED);
    assert_eq!(
        (found.labels.device.as_str(), expected.labels.device.as_str()),
        ("raid0:test", expected.labels.device.as_str())
    );
    found.labels.device.clone_from(&expected.labels.device);
    let target = found.target.as_mut().unwrap();
    target.name.clone_from(&expected.target.as_ref().unwrap().name);
    target.capacity_bytes = expected.target.as_ref().unwrap().capacity_bytes;
    assert_eq!(found, expected);
}

#[test]
fn members_that_get_the_same_take_the_same_time_side_by_side() {
    // Whole stripes of 4 chunks: each member reads a chunk, at the place where a single device reads it.
    let (chunk, members, depth) = (64u32, 4u32, 8u32);
    let rows = generator(7, "rows").random_range(500..600);
    let mut random = generator(8, "rows");
    let places: Vec<u64> = (0..rows).map(|_| random.random_range(0..1000)).collect();
    let own = |factor: u32| {
        places
            .iter()
            .map(|row| Operation::read(Lsn(row * u64::from(chunk * factor)), chunk * factor))
            .collect::<Vec<_>>()
    };
    let expected = drive(&mut single(Condition::Filled, depth), depth, &own(1));
    let found = drive(&mut array("4x32k", Condition::Filled, depth, SEED), depth, &own(members));
    assert_eq!(found, expected);
    // Bandwidth is the sum of the members', of which each stays below its own link.
    let rate = f64::from(chunk * 512) * rows as f64 / span(&expected) as f64 * 1000.0;
    let link = f64::from(device().link.unwrap().mb_per_s);
    assert!(rate < link && rate > 0.8 * link, "{rate} of {link} MB/s a member");
}

#[test]
fn four_members_serve_four_times_the_random_reads_at_four_times_the_depth() {
    let count = 20_000;
    let reads = |sectors: u64, count: usize| {
        let mut random = generator(31, "reads");
        (0..count)
            .map(|_| Operation::read(Lsn(random.random_range(0..sectors / 8) * 8), 8))
            .collect::<Vec<_>>()
    };
    for depth in [1, 8, 32] {
        let mut one = single(Condition::Filled, depth);
        let alone = reads(one.info().sectors(), count);
        let rate = count as f64 / span(&drive(&mut one, depth, &alone)) as f64;
        let mut four = array("4x64k", Condition::Filled, 4 * depth, SEED);
        let together = reads(four.info().sectors(), 4 * count);
        let all = 4.0 * count as f64 / span(&drive(&mut four, 4 * depth, &together)) as f64;
        let gain = all / rate;
        // Requests fall on members by chance. Were they stations of one server each, with exponential service, 4d customers would keep
        // a share of 4d/(4d+3) of them busy; what a member can do in parallel makes that less of a loss, and a device at depth 1 is
        // faster in a crowd of 4.
        let (least, most) = (4.0 * f64::from(4 * depth) / f64::from(4 * depth + 3) * 0.95, 4.1);
        assert!((least..=most).contains(&gain), "depth {depth}: {gain}");
    }
}

#[test]
fn sequential_reads_that_fit_a_chunk_together_use_one_member() {
    // Figure 14(b) of Chen et al. 2016: 32 requests of 4 KiB in sequence lie in one chunk of 128 KiB or more.
    let depth = 32;
    let operations: Vec<_> = (0..16_000).map(|number| Operation::read(Lsn(number * 8), 8)).collect();
    let rate = |target: &mut dyn Target| 16_000.0 / span(&drive(target, depth, &operations)) as f64;
    let alone = rate(&mut single(Condition::Filled, depth));
    let gain = |layout: &str| rate(&mut array(layout, Condition::Filled, depth, SEED)) / alone;
    let (small, large) = (gain("4x4k"), gain("4x1m"));
    assert!((3.5..=4.1).contains(&small), "{small}");
    assert!((1.0..=1.3).contains(&large), "{large}");
}

#[test]
fn the_past_reaches_every_member_and_each_is_another() {
    let member_reads = |condition: Condition| {
        let mut array = array("4x4k", condition, 1, SEED);
        (0..4u64)
            .map(|member| {
                // Far apart, so that nothing is read ahead.
                let read = Operation::read(Lsn(member * 8 + 8 * 4 * 1000 * (member + 1)), 8);
                let (_, issued, completed) = drive(&mut array, 1, &[read])[0];
                completed - issued
            })
            .collect::<Vec<_>>()
    };
    let (fresh, filled) = (member_reads(Condition::Fresh), member_reads(Condition::Filled));
    let array_read = device().timing.read_ns.of_page(0);
    for (fresh, filled) in fresh.iter().zip(&filled) {
        assert!(*filled >= *fresh + array_read, "{fresh} and {filled}");
    }
    assert!(filled.iter().all(|latency| *latency == filled[0]), "{filled:?}");
    // The same writes to each member of an aged array: they collect different blocks.
    let mut array = array("4x4k", "aged:70/25/5".parse().unwrap(), 32, SEED);
    let rows = array.info().sectors() / 32;
    let mut random = generator(5, "rows");
    let rows: Vec<u64> = (0..3000).map(|_| random.random_range(0..rows)).collect();
    let spans: Vec<u64> = (0..4u64)
        .map(|member| {
            let writes: Vec<_> =
                rows.iter().map(|row| Operation::write(Lsn(row * 32 + member * 8), 8)).collect();
            let begin = array.now();
            span(&drive(&mut array, 32, &writes)) - begin.0
        })
        .collect();
    let differ = spans.iter().any(|span| *span != spans[0]);
    assert!(differ, "{spans:?}");
}

#[test]
fn the_same_seed_gives_the_same_array_and_another_one_another() {
    let jobs = "[job.writers]\nrw = 'randrw'\nbs = '4k'\niodepth = 32\nnumber_ios = 4000\n";
    let run = |seed| run(&mut array("3x16k", "aged:70/20/10".parse().unwrap(), 64, seed), jobs, SEED);
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).metrics, run(2).metrics);
}

#[test]
fn what_an_array_cannot_take_is_refused_by_name() {
    let mut target = array("4x64k", Condition::Filled, 4, SEED);
    let member = single(Condition::Filled, 4).info().capacity.0;
    assert_eq!(target.info().capacity, Bytes(member / 65536 * 65536 * 4));
    let end = target.info().sectors();
    for (operation, word) in [
        (Operation::read(Lsn(end - 1), 8), "past the end"),
        (Operation::read(Lsn(0), 0), "empty"),
        (Operation::write(Lsn(0), 1 << 20), "up to 1.0 MiB"),
    ] {
        let error = target.submit(0, operation).unwrap_err().to_string();
        assert!(error.starts_with("raid0:test: ") && error.contains(word), "{error}");
    }
    let error = target.wait(Ns::MAX, &mut Vec::new()).unwrap_err().to_string();
    assert!(error.starts_with("raid0:test: nothing is under way"), "{error}");
    assert_eq!(target.wait(Ns(700), &mut Vec::new()).unwrap(), Ns(700));
    // What is issued after idle time begins then, on every member.
    target.submit(1, Operation::read(Lsn(0), 512)).unwrap();
    let mut completed = Vec::new();
    target.wait(Ns::MAX, &mut completed).unwrap();
    assert_eq!((completed.len(), completed[0].tag, completed[0].issued), (1, 1, Ns(700)));
    let layout: Layout = "2x1g".parse().unwrap();
    let error = Raid0Target::new("raid0:big", layout, &device(), Condition::Filled, 4, 1).err().unwrap();
    assert!(error.to_string().starts_with("raid0:big: found a chunk of 1.0 GiB"), "{error}");
}

#[test]
fn a_flush_of_an_array_takes_what_its_slowest_member_takes() {
    let changes = "write_buffer.power_loss_protection=false,write_buffer.watermark=0.9";
    let profile = device().changed(changes, "volatile").unwrap();
    let layout: Layout = "4x4k".parse().unwrap();
    let flush_after = |pages: &[u64]| {
        let mut target =
            Raid0Target::new("raid0:test", layout, &profile, Condition::Filled, 32, SEED).unwrap();
        let writes: Vec<Operation> = pages.iter().map(|page| Operation::write(Lsn(page * 8), 8)).collect();
        drive(&mut target, 32, &writes);
        let before = target.now();
        let completed = drive(&mut target, 32, &[Operation::flush()]);
        assert_eq!((completed.len(), completed[0].1), (1, before));
        completed[0].2 - before
    };
    let member_after = |pages: u64| {
        let mut target = SimTarget::new(&profile, Condition::Filled, 32, SEED).unwrap();
        let writes: Vec<Operation> = (0..pages).map(|page| Operation::write(Lsn(page * 8), 8)).collect();
        drive(&mut target, 32, &writes);
        let before = target.now();
        drive(&mut target, 32, &[Operation::flush()])[0].2 - before
    };
    let nothing = member_after(0);
    assert!(nothing < Ns(100_000) && member_after(1) > Ns(200_000));
    assert_eq!(flush_after(&[]), nothing);
    // Chunks of a page go round: page 2 is on the third member.
    for page in 0..4 {
        assert_eq!(flush_after(&[page]), member_after(1), "page {page}");
    }
    assert_eq!(flush_after(&[0, 1, 2, 3]), member_after(1));
    // Three pages on the second member, one on the first.
    assert_eq!(flush_after(&[0, 1, 5, 9]), member_after(3));
    // By itself it takes the same: it did nothing until now.
    let mut target = Raid0Target::new("raid0:test", layout, &profile, Condition::Filled, 4, SEED).unwrap();
    drive(&mut target, 4, &[Operation::write(Lsn(0), 8)]);
    let before = target.now();
    assert_eq!(target.flush().unwrap() - before, member_after(1));
}

#[test]
fn a_discard_of_an_array_is_one_of_each_member_that_it_touches() {
    let mut target = array("4x32k", Condition::Filled, 8, SEED);
    let sectors = target.info().sectors();
    // All of it, more than is moved at once, in one operation.
    let length = (sectors / 8 * 8).min(1 << 20) as u32;
    drive(&mut target, 8, &[Operation::discard(Lsn(0), length)]);
    let before = target.now();
    let took = drive(&mut target, 8, &[Operation::read(Lsn(64), 8)])[0].2 - before;
    let mut written = array("4x32k", Condition::Filled, 8, SEED);
    let from_flash = drive(&mut written, 8, &[Operation::read(Lsn(64), 8)])[0].2;
    assert!(took < from_flash, "{took} without flash, {from_flash} with it");
}
