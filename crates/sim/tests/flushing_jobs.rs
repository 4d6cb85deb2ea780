//! Jobs that flush, trim and write what is kept: what fio's options cost to the nanosecond, and what they must mean for any job.

mod common;

use common::{closed, drive, keeping};
use planewise_model::rng::generator;
use planewise_model::{Durability, Ns, Operation};
use planewise_sim::drivers::closed_loop::{LoopOptions, run};
use planewise_sim::observers::Completion;
use planewise_sim::results::RunResult;
use planewise_sim::{Condition, RunConfig, Simulator};
use planewise_workload::jobs::JobFile;
use rand::RngExt;
use std::sync::atomic::AtomicBool;

/// A page over its channel and into an array.
const STEP: u64 = 40_960 + 600_000;

fn latency(completion: &Completion) -> u64 {
    (completion.completed - completion.request.arrival).0
}

fn flushes(completions: &[Completion]) -> Vec<&Completion> {
    completions.iter().filter(|completion| completion.request.operation.is_flush()).collect()
}

fn measured(config: &RunConfig, jobs: &str) -> RunResult {
    let device_bytes = Simulator::new(config, ()).unwrap().user_sectors() * 512;
    let mut workload = JobFile::parse(jobs, "test").unwrap().build(device_bytes, 7).unwrap();
    let stop = AtomicBool::new(false);
    let mut options = LoopOptions { stop: &stop, progress: &mut |_| {}, name: "test" };
    run(config, &mut workload, (), &mut options).unwrap().0
}

#[test]
fn a_flush_after_n_writes_programs_n_pages_and_behind_a_capacitor_none() {
    for (key, every) in [("fdatasync", 1), ("fdatasync", 3), ("fsync", 7), ("fdatasync", 16)] {
        let jobs = |depth: u32| {
            format!(
                "[a]\nrw=write\nbs=4k\nsize=4m\nnumber_ios={}\niodepth={depth}\n{key}={every}\n",
                6 * every
            )
        };
        for depth in [1, 4] {
            let completions = closed(&keeping(1, false), &jobs(depth));
            let flushes = flushes(&completions);
            assert_eq!(flushes.len(), 6, "{key}={every}");
            assert!(flushes.iter().all(|flush| latency(flush) == every * STEP), "{key}={every}: {flushes:?}");
            // The whole takes what the flushes take: writes into the buffer take nothing here.
            assert_eq!(completions.last().unwrap().completed, Ns(6 * every * STEP));
            let completions = closed(&keeping(1, true), &jobs(depth));
            assert!(self::flushes(&completions).iter().all(|flush| latency(flush) == 0), "{key}={every}");
        }
    }
}

#[test]
fn with_depth_one_a_forced_write_takes_what_a_write_and_its_flush_take() {
    let jobs = |option: &str| format!("[a]\nrw=randwrite\nbs=4k\nsize=4m\nnumber_ios=40\n{option}\n");
    let end = |power_loss_protection, option| {
        let completions = closed(&keeping(1, power_loss_protection), &jobs(option));
        completions.last().unwrap().completed
    };
    let flushed = end(false, "fdatasync=1");
    assert_eq!(flushed, Ns(40 * STEP));
    for option in ["sync=dsync", "sync=sync", "sync=1"] {
        assert_eq!(end(false, option), flushed, "{option}");
        assert_eq!(end(true, option), end(true, ""), "{option}");
    }
    assert_eq!(end(false, "sync=0"), end(false, ""));
    let durability = |option| closed(&keeping(1, false), &jobs(option))[0].request.durability;
    assert_eq!(durability("sync=dsync"), Durability::ForceUnitAccess);
    assert_eq!(durability("sync=1"), Durability::ForceUnitAccessWithMetadata);
    assert_eq!(durability("sync=none"), Durability::Volatile);
}

#[test]
fn a_job_ends_with_a_flush_if_it_wrote_since_its_last() {
    for (options, expected) in [
        ("rw=write\nend_fsync=1", 1),
        ("rw=write\nfsync_on_close=1", 1),
        ("rw=write\nend_fsync=1\nfdatasync=5", 2),
        ("rw=write\nend_fsync=1\nfdatasync=4", 3),
        ("rw=write\nfdatasync=4", 2),
        ("rw=read\nend_fsync=1\nfsync=1", 0),
        ("rw=write\nfsync=0", 0),
        // Where both are due it is fsync's turn.
        ("rw=write\nfsync=4\nfdatasync=2", 5),
        // The writes of trims count.
        ("rw=trimwrite\nfsync=5", 2),
    ] {
        let jobs = format!("[a]\nbs=4k\nsize=4m\nnumber_ios=10\nnumjobs=2\noffset_increment=4m\n{options}\n");
        let completions = closed(&keeping(1, false), &jobs);
        assert_eq!(flushes(&completions).len(), 2 * expected, "{options}");
        if options.contains("end_fsync") && expected > 0 {
            let last = completions.iter().max_by_key(|completion| completion.request.arrival).unwrap();
            assert!(last.request.operation.is_flush(), "{options}");
        }
    }
    let both = closed(&keeping(1, false), "[a]\nrw=write\nsize=4m\nnumber_ios=4\nfsync=4\nfdatasync=2\n");
    let kinds: Vec<_> = flushes(&both).iter().map(|flush| flush.request.operation).collect();
    assert_eq!(kinds, [Operation::Flush, Operation::FlushWithMetadata]);
}

#[test]
fn no_process_does_anything_else_while_it_flushes_and_nothing_of_it_is_under_way_then() {
    for seed in 0..60 {
        println!("seed {seed}");
        let mut random = generator(seed, "flushing jobs");
        let mut text = String::new();
        let mut expected = Vec::new();
        for job in 0..random.random_range(1..4) {
            let patterns =
                ["write", "randwrite", "randrw", "rw", "trimwrite", "randtrimwrite", "randwrite:3"];
            let rw = patterns[random.random_range(0..patterns.len())];
            let (ios, every) = (random.random_range(1..60u64), random.random_range(1..20u64));
            let key = ["fsync", "fdatasync"][random.random_range(0..2)];
            let end = random.random_range(0..2u64);
            let other = [
                "",
                "thinktime=100\nthinktime_blocks=3",
                "rate_iops=5000",
                "startdelay=1ms",
                "stonewall=1",
                "direct=0",
                "sync=dsync",
            ][random.random_range(0..7)];
            let depth = random.random_range(1..9);
            text += &format!(
                "[j{job}]\nrw={rw}\nbs=4k\nsize=4m\noffset={}m\nnumber_ios={ios}\niodepth={depth}\n{key}={every}\nend_fsync={end}\n{other}\n",
                4 * job
            );
            expected.push((every, end));
        }
        let mut config = keeping(1, random.random_bool(0.2));
        config.profile.geometry.channels = random.random_range(1..4);
        let completions = closed(&config, &text);
        for (job, (every, end)) in expected.into_iter().enumerate() {
            let own: Vec<&Completion> =
                completions.iter().filter(|of| of.request.process as usize == job + 1).collect();
            let writes = own.iter().filter(|of| of.request.moves_to_device()).count() as u64;
            let flushes: Vec<&&Completion> =
                own.iter().filter(|of| of.request.operation.is_flush()).collect();
            let at_end = u64::from(end == 1 && !writes.is_multiple_of(every));
            assert_eq!(flushes.len() as u64, writes / every + at_end, "{text}");
            for flush in flushes {
                let (from, to) = (flush.request.arrival, flush.completed);
                for other in own.iter().filter(|of| of.sequence != flush.sequence) {
                    let before = other.sequence < flush.sequence && other.completed <= from;
                    let after = other.sequence > flush.sequence && other.request.arrival >= to;
                    assert!(before || after, "{other:?} beside {flush:?}\n{text}");
                }
            }
        }
    }
}

#[test]
fn what_was_trimmed_is_read_without_flash() {
    let config = RunConfig { condition: Condition::Filled, ..keeping(1, true) };
    let pages = |jobs: &str| {
        let run = measured(&config, jobs);
        let discards = run.metrics.discards.as_ref().map_or((0, 0), |of| (of.count, of.bytes));
        (run.metrics.flash.reads, discards, run.metrics.read.latency_ns.max, run)
    };
    let read = "[r]\nrw=read\nbs=4k\nsize=1m\nstonewall\n";
    assert_eq!(pages(read).0, 256);
    let (reads, discards, longest, run) = pages(&format!("[t]\nrw=trim\nbs=64k\nsize=1m\n{read}"));
    assert_eq!((reads, discards, longest), (0, (16, 1 << 20), 0));
    // Half of it, at random and each block once.
    let half = format!("[t]\nrw=randtrim\nbs=8k\nsize=1m\nio_size=512k\niodepth=4\n{read}");
    assert_eq!((pages(&half).0, pages(&half).1), (128, (64, 1 << 19)));
    // What is written after is there again.
    let again = format!("[t]\nrw=randtrimwrite\nbs=4k\nsize=1m\niodepth=8\n{read}");
    let (.., run_again) = pages(&again);
    assert_eq!(run_again.metrics.discards.unwrap().count, 256);
    // All but what the write buffer may still hold.
    assert!(run_again.metrics.flash.reads >= 156 && run_again.metrics.requests.writes == 256);
    // Each job says its own.
    let jobs = run.closed_loop.unwrap().jobs;
    assert_eq!(jobs[0].discards.as_ref().map(|of| of.count), Some(16));
    assert_eq!(
        (jobs[0].all.requests, jobs[0].flushes.is_none(), jobs[1].discards.is_none()),
        (0, true, true)
    );
}

#[test]
fn what_is_trimmed_is_what_is_written_after_it() {
    for seed in 0..20 {
        let mut random = generator(seed, "trimwrite");
        let rw = ["trimwrite", "randtrimwrite"][random.random_range(0..2)];
        let (ios, depth) = (random.random_range(1..100), random.random_range(1..9));
        let size = ["bs=4k", "bsrange=4k-64k", "bssplit=4k/30:16k/"][random.random_range(0..3)];
        let jobs = format!("[a]\nrw={rw}\n{size}\nsize=4m\nio_size=1g\nnumber_ios={ios}\niodepth={depth}\n");
        let mut completions = closed(&keeping(1, false), &jobs);
        completions.sort_by_key(|completion| completion.sequence);
        // Bytes and requests are limited by the trims: the last is written, too.
        assert_eq!(completions.len(), 2 * ios, "seed {seed}: {jobs}");
        for pair in completions.chunks(2) {
            let [trim, write] = [&pair[0].request, &pair[1].request];
            assert!(trim.operation == Operation::Discard && write.moves_to_device(), "seed {seed}: {pair:?}");
            assert_eq!((trim.start, trim.sectors), (write.start, write.sectors), "seed {seed}");
            assert!(pair[1].issued >= pair[0].completed, "seed {seed}: the order of what overlaps is kept");
        }
    }
}

#[test]
fn a_job_that_flushes_never_is_the_job_without_the_option() {
    let jobs =
        |options: &str| format!("[a]\nrw=randrw\nbs=4k\nsize=4m\nnumber_ios=300\niodepth=4\n{options}\n");
    let run = |options: &str| {
        let config = keeping(1, false);
        let device_bytes = Simulator::new(&config, ()).unwrap().user_sectors() * 512;
        let mut workload = JobFile::parse(&jobs(options), "test").unwrap().build(device_bytes, 7).unwrap();
        let of = |completion: &Completion| (completion.sequence, completion.request, completion.completed);
        drive(&config, &mut workload).unwrap().iter().map(of).collect::<Vec<_>>()
    };
    for options in ["fsync=0", "fdatasync=0\nsync=none", "end_fsync=0", "fsync=301"] {
        assert!(run(options) == run(""), "{options}");
    }
}
