//! Workloads of random parameters end, stay inside their areas, and keep what databases and file systems promise.

mod common;

use common::{device, drive};
use planewise_model::rng::{Generator, generator};
use planewise_model::{Direction, Ns, Profile};
use planewise_sim::drivers::closed_loop::{LoopOptions, run};
use planewise_sim::observers::Completion;
use planewise_sim::results::RunResult;
use planewise_sim::{RunConfig, Simulator};
use planewise_workload::Workload;
use planewise_workload::jobs::JobFile;
use planewise_workload::models::Model;
use rand::RngExt;
use std::sync::atomic::AtomicBool;

/// About 450 MiB of user space.
fn config() -> RunConfig {
    let mut profile = device(4, 2, 2, 2);
    profile.geometry.blocks_per_plane = 64;
    RunConfig::new(profile)
}

fn bytes(config: &RunConfig) -> u64 {
    Simulator::new(config, ()).unwrap().user_sectors() * 512
}

fn pick<'a>(random: &mut Generator, from: &[&'a str]) -> &'a str {
    from[random.random_range(0..from.len())]
}

#[test]
fn random_jobs_end_with_what_they_were_asked_for_inside_their_areas() {
    for seed in 0..60 {
        println!("seed {seed}");
        let mut random = generator(seed, "random jobs");
        let mut text = String::new();
        let mut expected = 0;
        for job in 0..random.random_range(1..4) {
            let (numjobs, ios) = (random.random_range(1..4u64), random.random_range(1..60u64));
            expected += numjobs * ios;
            text += &format!(
                "[job.j{job}]\nnumber_ios={ios}\nnumjobs={numjobs}\noffset='{}m'\nsize='4m'\nloops=99\n",
                4 * job
            );
            let rw = pick(
                &mut random,
                &["read", "write", "rw", "randread", "randwrite", "randrw", "randrw:3", "read:4k"],
            );
            text += &format!("rw='{rw}'\niodepth={}\n", random.random_range(1..9));
            text += &format!(
                "{}\n",
                pick(
                    &mut random,
                    &[
                        "bs='4k'",
                        "bs='4k,16k'",
                        "bsrange='512-8k'",
                        "bssplit='4k/30:64k/'",
                        "bs='4k'\nblockalign='64k'"
                    ]
                )
            );
            text += &format!(
                "{}\n",
                pick(
                    &mut random,
                    &[
                        "",
                        "thinktime=100\nthinktime_blocks=3",
                        "rate_iops=5000",
                        "startdelay='1ms'",
                        "stonewall=1",
                        "direct=0"
                    ]
                )
            );
            if rw.starts_with("rand") {
                text += &format!(
                    "{}\n",
                    pick(
                        &mut random,
                        &[
                            "",
                            "norandommap=1",
                            "random_distribution='zipf:0.9'",
                            "random_distribution='pareto:0.3'",
                            "percentage_random=40"
                        ]
                    )
                );
            }
        }
        let config = config();
        let mut workload = JobFile::parse(&text, "random").unwrap().build(bytes(&config), seed).unwrap();
        let areas: Vec<u64> = workload
            .groups()
            .iter()
            .enumerate()
            .flat_map(|(job, of)| vec![job as u64 * 8192; of.processes as usize])
            .collect();
        let completions = drive(&config, &mut workload).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(completions.len() as u64, expected, "{text}");
        for completion in &completions {
            let request = &completion.request;
            let area = areas[request.process as usize - 1];
            assert!(request.start.0 >= area && request.end().0 <= area + 8192, "{request:?}\n{text}");
        }
    }
}

fn model(name: &str, parameters: &[(&str, String)], config: &RunConfig, seed: u64) -> Box<dyn Workload> {
    let mut model = Model::embedded(name).unwrap();
    for (key, value) in parameters {
        model.set(key, value).unwrap();
    }
    model.build(bytes(config), seed).unwrap_or_else(|error| panic!("{error}"))
}

fn small_database(random: &mut Generator) -> Vec<(&'static str, String)> {
    vec![
        ("threads", random.random_range(1..40).to_string()),
        ("max_requests", random.random_range(1..200).to_string()),
        ("table_size", "64m".to_owned()),
        ("buffer_pool", pick(random, &["1m", "2m", "16m"]).to_owned()),
        ("log_size", pick(random, &["64k", "1m"]).to_owned()),
        ("redo_per_transaction", pick(random, &["512", "2k", "3584"]).to_owned()),
        ("log_block", pick(random, &["512", "4k"]).to_owned()),
        ("journal_size", "1m".to_owned()),
        ("journal", random.random_range(0..2).to_string()),
        ("extent", pick(random, &["128m", "1m"]).to_owned()),
        ("spread", pick(random, &["0", "0.5", "1"]).to_owned()),
        ("flush_batch", random.random_range(1..130).to_string()),
        ("dirty_pages_max", pick(random, &["0", "10", "75", "100"]).to_owned()),
        ("dist_type", pick(random, &["uniform", "special", "gaussian", "zipf:0.8"]).to_owned()),
    ]
}

#[test]
fn a_database_of_any_size_of_pool_and_log_finishes_all_transactions() {
    for seed in 0..40 {
        let mut random = generator(seed, "random database");
        let parameters = small_database(&mut random);
        println!("seed {seed}: {parameters:?}");
        let config = config();
        let mut workload = model("sysbench-oltp-complex", &parameters, &config, seed);
        drive(&config, &mut *workload).unwrap_or_else(|error| panic!("{error}"));
        let wanted: u64 = parameters[1].1.parse().unwrap();
        assert_eq!(workload.operations(), Some(("transactions", wanted)));
    }
}

fn of_process(completions: &[Completion], process: u32) -> Vec<&Completion> {
    completions.iter().filter(|completion| completion.request.process == process).collect()
}

#[test]
fn threads_share_log_writes_and_pages_go_to_the_doublewrite_buffer_first() {
    let config = config();
    let parameters = [
        ("threads", "16".to_owned()),
        ("max_requests", "400".to_owned()),
        ("table_size", "64m".to_owned()),
        ("buffer_pool", "4m".to_owned()),
        ("journal", "0".to_owned()),
        ("journal_size", "1m".to_owned()),
        ("spread", "0".to_owned()),
        ("log_size", "1m".to_owned()),
    ];
    let mut workload = model("sysbench-oltp-complex", &parameters, &config, 3);
    let completions = drive(&config, &mut *workload).unwrap();
    let log_writes = completions
        .iter()
        .filter(|c| c.request.process <= 16 && c.request.direction == Direction::Write)
        .count();
    assert!((1..400).contains(&log_writes), "{log_writes} writes of the log for 400 transactions");
    assert!(completions.iter().filter(|c| c.request.process <= 16).all(|c| c.request.synchronous));
    // The doublewrite buffer is the first 2 MiB: a batch of pages arrives there before any of them goes to its place.
    let cleaner = of_process(&completions, 17);
    assert!(!cleaner.is_empty() && cleaner.iter().all(|c| !c.request.synchronous));
    let mut ordered = cleaner.clone();
    ordered.sort_by_key(|c| c.sequence);
    let mut doublewritten = Ns::ZERO;
    let (mut buffered, mut placed) = (0, 0);
    for completion in ordered {
        let sectors = u64::from(completion.request.sectors);
        if completion.request.start.0 < 4096 {
            doublewritten = doublewritten.max(completion.completed);
            buffered += sectors;
        } else {
            assert!(completion.request.arrival >= doublewritten, "a page went to its place too early");
            placed += sectors;
        }
    }
    assert_eq!(buffered, placed);
}

#[test]
fn an_fsync_waits_for_the_journal_and_reads_and_writes_keep_sysbenchs_ratio() {
    let config = config();
    let parameters = [
        ("threads", "4".to_owned()),
        ("total_size", "128m".to_owned()),
        ("files", "16".to_owned()),
        ("max_requests", "1000".to_owned()),
        ("journal_size", "1m".to_owned()),
        ("spread", "0".to_owned()),
    ];
    let mut workload = model("sysbench-file", &parameters, &config, 3);
    let completions = drive(&config, &mut *workload).unwrap();
    let threads: Vec<_> = completions.iter().filter(|c| c.request.process <= 4).collect();
    let reads = threads.iter().filter(|c| c.request.direction == Direction::Read).count();
    assert_eq!(threads.len(), 1000);
    // The last of each thread may all have been decided by the same count.
    assert!(reads.abs_diff(600) <= 4, "{reads}");
    // Inodes of 16 files are one block: a commit is a write of two blocks and, when that is complete, one of one.
    let journal = of_process(&completions, 5);
    assert!(journal.len() >= 20 && journal.len().is_multiple_of(2), "{}", journal.len());
    for pair in journal.chunks(2) {
        assert_eq!((pair[0].request.sectors, pair[1].request.sectors), (16, 8));
        // The thread that waited for it takes a microsecond to wake up.
        assert_eq!(pair[1].request.arrival, pair[0].completed + Ns(1_000));
        let begun = threads.iter().filter(|c| c.request.arrival < pair[0].request.arrival).count();
        assert!(begun >= 100, "the first commit comes after 100 requests");
    }
}

/// Reads of the first requests that sysbench's 16 threads begin, of all 2000, and turns between a request and the next, in the order in which they began.
fn sysbenchs_order(counts: &str) -> (usize, usize, usize) {
    let small = [
        ("threads", "16"),
        ("total_size", "128m"),
        ("files", "16"),
        ("max_requests", "2000"),
        ("fsync_freq", "0"),
        ("fsync_end", "0"),
        ("journal_size", "1m"),
    ];
    let mut all = modelled(&config(), "sysbench-file", &[&small[..], &[("ratio_counts", counts)]].concat());
    assert_eq!(all.len(), 2000);
    all.sort_by_key(|completion| completion.sequence);
    let directions: Vec<Direction> = all.iter().map(|completion| completion.request.direction).collect();
    let reads = |of: &[Direction]| of.iter().filter(|direction| **direction == Direction::Read).count();
    let turns = directions.windows(2).filter(|two| two[0] != two[1]).count();
    (reads(&directions[..16]), reads(&directions), turns)
}

#[test]
fn sysbenchs_threads_read_and_write_in_bunches_as_it_counts_what_is_complete() {
    let (first, reads, bunches) = sysbenchs_order("completed");
    assert_eq!(first, 16, "none is complete when they begin");
    assert!(reads.abs_diff(1200) <= 16, "{reads} reads of 2000 requests");
    let (first, reads, turns) = sysbenchs_order("issued");
    assert_eq!((first, reads), (10, 1200));
    assert!(
        turns > 1500 && bunches < turns / 3,
        "{bunches} turns in bunches, {turns} where requests alternate"
    );
}

/// The file benchmark of four threads on `ssd1` under CFQ.
fn under_cfq(tunables: &[(&str, &str)], wakeup: &str) -> RunResult {
    let mut config =
        RunConfig { scheduler: "cfq".into(), ..RunConfig::new(Profile::embedded("ssd1").unwrap()) };
    config.tunables = tunables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let mut model = Model::embedded("file-benchmark").unwrap();
    model.set("requests", "1000").unwrap();
    model.set("wakeup_time", wakeup).unwrap();
    let mut workload = model.build(bytes(&config), 7).unwrap();
    let stop = AtomicBool::new(false);
    let mut options = LoopOptions { stop: &stop, progress: &mut |_| {}, name: "test" };
    run(&config, workload.as_mut(), (), &mut options).unwrap().0
}

/// Requests at the device, on average (Little's law).
fn at_device(run: &RunResult) -> f64 {
    run.metrics.all.iops * run.metrics.all.processing_ns.mean / 1e9
}

#[test]
fn under_cfq_four_threads_have_one_command_at_the_drive_though_it_never_waits_for_any() {
    let as_it_is = under_cfq(&[], "1");
    assert_eq!(as_it_is.scheduler_counters["idle_waits"], 0);
    assert!((at_device(&as_it_is) - 1.0).abs() < 0.02, "{}", at_device(&as_it_is));
    // What keeps the others back is the process that is worth waiting for, not a wait: take that away, in either of two ways.
    for rule in [("low_latency", "0"), ("slice_idle", "0")] {
        let all_at_once = under_cfq(&[rule], "1");
        assert!(at_device(&all_at_once) > 3.8, "{rule:?}: {}", at_device(&all_at_once));
    }
    // A drive that rotates is waited for, and that changes nothing here.
    let rotating = under_cfq(&[("rotational", "1")], "1");
    assert!(rotating.scheduler_counters["idle_waits"] > 1000);
    assert!((at_device(&rotating) - 1.0).abs() < 0.02, "{}", at_device(&rotating));
}

#[test]
fn threads_that_take_a_microsecond_to_wake_up_are_served_in_turn_and_not_in_slices_of_100_ms() {
    let deviation = |wakeup| under_cfq(&[], wakeup).metrics.all.latency_ns.deviation / 1e6;
    let (in_no_time, default, slow) = (deviation("0"), deviation("1"), deviation("20"));
    assert!(in_no_time > 10.0, "{in_no_time} ms");
    assert!(default < 2.0 && (default - slow).abs() < 0.2, "{default} ms, {slow} ms");
}

/// A drive whose write buffer a loss of power empties.
fn volatile() -> RunConfig {
    let mut config = config();
    config.profile.write_buffer = Some(planewise_model::profile::WriteBuffer {
        pages: 256,
        watermark: 0.5,
        run_pages: 4,
        entry_order: false,
        in_flight_pages: 32,
        power_loss_protection: false,
    });
    config
}

/// A model with these values, to its end.
fn modelled(config: &RunConfig, name: &str, values: &[(&str, &str)]) -> Vec<Completion> {
    let mut model = Model::embedded(name).unwrap();
    for (key, value) in values {
        model.set(key, value).unwrap();
    }
    drive(config, &mut *model.build(bytes(config), 3).unwrap()).unwrap()
}

const SMALL_OLTP: [(&str, &str); 6] = [
    ("table_size", "64m"),
    ("buffer_pool", "8m"),
    ("journal_size", "8m"),
    ("extent", "8m"),
    ("max_requests", "300"),
    ("threads", "8"),
];

#[test]
fn a_transaction_waits_for_the_flush_behind_its_log() {
    let without = [("journal", "0"), ("flushes", "0")];
    let with = [("journal", "0"), ("flushes", "1")];
    let run =
        |own: &[(&str, &str)]| modelled(&volatile(), "sysbench-oltp-complex", &[&SMALL_OLTP, own].concat());
    let (plain, flushed) = (run(&without), run(&with));
    assert!(plain.iter().all(|completion| completion.request.is_transfer()));
    let flushes: Vec<&Completion> =
        flushed.iter().filter(|completion| completion.request.operation.is_flush()).collect();
    assert!(flushes.len() > 50, "{} flushes", flushes.len());
    for flush in &flushes {
        // Of its process, a write before and nothing beside it.
        let own = || flushed.iter().filter(|other| other.request.process == flush.request.process);
        let before = own().filter(|other| other.sequence < flush.sequence).max_by_key(|other| other.sequence);
        assert!(before.is_some_and(|before| before.request.moves_to_device()), "{flush:?}");
        let beside = own().find(|other| {
            other.sequence != flush.sequence
                && other.completed > flush.request.arrival
                && other.request.arrival < flush.completed
        });
        assert!(beside.is_none(), "{beside:?} beside {flush:?}");
        let waited = before.unwrap().completed + Ns(1_000);
        // The cleaner flushes behind the last of several writes, which need not be the one issued last.
        assert!(flush.request.process == 9 || flush.request.arrival == waited, "{flush:?}");
    }
    let end = |all: &[Completion]| all.iter().map(|completion| completion.completed).max().unwrap();
    assert!(end(&flushed) > end(&plain), "durability costs time");
}

#[test]
fn a_journal_with_flushes_writes_its_commit_blocks_as_barriers() {
    use planewise_model::Durability::{FlushFirstForceUnitAccess, Volatile};
    for name in ["sysbench-oltp-complex", "sysbench-file"] {
        let small: &[(&str, &str)] = if name == "sysbench-file" {
            &[
                ("total_size", "64m"),
                ("journal_size", "8m"),
                ("extent", "8m"),
                ("max_requests", "600"),
                ("files", "64"),
            ]
        } else {
            &SMALL_OLTP
        };
        let run =
            |flushes: &'static str| modelled(&volatile(), name, &[small, &[("flushes", flushes)]].concat());
        let journal = |all: &[Completion]| {
            let last = all.iter().map(|completion| completion.request.process).max().unwrap();
            let mut own: Vec<Completion> =
                all.iter().filter(|completion| completion.request.process == last).copied().collect();
            own.sort_by_key(|completion| completion.sequence);
            own
        };
        let (plain, flushed) = (run("0"), run("1"));
        assert!(plain.iter().all(|one| one.request.durability == Volatile && one.request.is_transfer()));
        let own = journal(&flushed);
        assert!(own.len() > 10 && own.len().is_multiple_of(2), "{name}: {}", own.len());
        for pair in own.chunks(2) {
            let promises = [pair[0].request.durability, pair[1].request.durability];
            assert_eq!(promises, [Volatile, FlushFirstForceUnitAccess], "{name}");
            assert!(pair[1].request.arrival >= pair[0].completed, "{name}");
        }
        // A file without an inode to commit is flushed by itself.
        let alone = flushed.iter().filter(|one| one.request.operation.is_flush()).count();
        assert_eq!(alone > 0, name == "sysbench-file", "{name}: {alone} flushes");
        let mean = |all: &[Completion]| {
            let times = all.iter().map(|one| (one.completed - one.request.arrival).0);
            times.sum::<u64>() / all.len() as u64
        };
        assert!(mean(&own) > mean(&journal(&plain)), "{name}: a barrier waits for what is before it");
    }
}

#[test]
fn synchronous_writes_of_the_file_benchmark_are_kept_where_flushes_are_on() {
    let small = [("file_size", "16m"), ("extent", "8m"), ("requests", "100")];
    for (flushes, forced) in [("0", false), ("1", true)] {
        let all = modelled(&volatile(), "file-benchmark", &[&small[..], &[("flushes", flushes)]].concat());
        for one in &all {
            let is = one.request.durability.forces_unit_access();
            assert_eq!(is, forced && one.request.moves_to_device());
        }
    }
}
