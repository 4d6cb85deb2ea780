//! Made-up results for the tests: realistic ones, and all the awkward ones.

use planewise_sim::results::*;
use std::collections::BTreeMap;

/// Six schedulers over one trace, with numbers of the size the TCAD paper reports.
pub fn six_schedulers() -> Results {
    let speed = [
        ("noop", 1.35, 0.93, 0.86),
        ("rws", 1.0, 1.0, 1.0),
        ("piq_r", 0.66, 1.02, 0.97),
        ("piq_w", 0.97, 0.79, 0.91),
        ("piq", 0.62, 0.81, 0.83),
        ("piq+", 0.67, 0.76, 0.84),
    ];
    Results {
        format: RESULTS_FORMAT,
        generator: "planewise 0.1.0".to_owned(),
        status: Status::Complete,
        setup: setup(),
        baseline: 1,
        runs: speed.iter().enumerate().map(|(i, (name, r, w, c))| run(name, *r, *w, *c, i as u64)).collect(),
    }
}

/// Five collection schemes under one scheduler, with numbers of the size the GC paper reports; the last is a bound.
pub fn collections() -> Results {
    let mut results = six_schedulers();
    results.baseline = 0;
    let speed = [
        ("traditional", 1.0, 1.0, 0.0, 1.0),
        ("preemptive", 0.88, 0.91, 0.0, 0.8),
        ("dpr", 0.7, 0.99, 0.0, 0.9),
        ("idle_chip", 0.6, 0.78, 0.486, 0.45),
        ("gc_free", 0.21, 0.34, 0.0, 0.0),
    ];
    results.runs = speed
        .iter()
        .enumerate()
        .map(|(index, (name, read, write, buffered, conflicts))| {
            let mut run = run("noop", *read, *write, 1.0, index as u64);
            run.labels.gc = (*name).to_owned();
            run.metrics.gc = collection(*buffered, *conflicts);
            if *name == "dpr" {
                run.metrics.gc.replicas = ReplicaMetrics {
                    created: 40_113,
                    reads_redirected: 9_120,
                    most: 4_096,
                    ..Default::default()
                };
            }
            if *name == "gc_free" {
                run.metrics.gc.cost = GcCost::default();
            }
            run
        })
        .collect();
    results.setup.options.insert("gc".to_owned(), "traditional,preemptive,dpr,idle_chip,gc_free".to_owned());
    results
}

/// Two replays on a block device of which nothing is known, the second of them late.
pub fn replayed() -> Results {
    let mut results = six_schedulers();
    results.baseline = 0;
    results.runs.truncate(2);
    results.setup.options.insert("lateness-bound".to_owned(), "1000000ns".to_owned());
    results.setup.options.insert("target".to_owned(), "/dev/nvme0n1".to_owned());
    for (run, late) in results.runs.iter_mut().zip([1, 1000]) {
        let lateness = |share: u64| 3_100 * late * share;
        run.labels.device = "/dev/nvme0n1".to_owned();
        run.labels.command_queue = "ncq:32".to_owned();
        (run.labels.gc, run.labels.allocation) = ("unknown".to_owned(), "unknown".to_owned());
        let metrics = &mut run.metrics;
        (metrics.utilization, metrics.flash, metrics.gc) = Default::default();
        metrics.conflict = ConflictShares::default();
        run.target = Some(MeasuredTarget {
            name: "/dev/nvme0n1".to_owned(),
            kind: "block device".to_owned(),
            engine: "io_uring".to_owned(),
            capacity_bytes: 1 << 40,
            block_bytes: 512,
            depth: 32,
            units: None,
            page_bytes: 4096,
            split_requests: 7,
            failure: None,
        });
        run.replay = Some(Replay {
            lateness_ns: Distribution {
                mean: lateness(1) as f64,
                deviation: lateness(1) as f64,
                p50: lateness(1),
                p95: lateness(2),
                p99: lateness(4),
                p999: lateness(9),
                p9999: lateness(20),
                max: lateness(40),
            },
            lateness_bound_ns: 1_000_000,
            faithful: Some(late == 1),
            folded: 12,
            ..Replay::default()
        });
    }
    results
}

/// A run whose power was cut.
pub fn power_cut() -> Results {
    let mut results = collections();
    results.runs = vec![results.runs.swap_remove(3)];
    results.runs[0].metrics.gc.power_loss = Some(PowerLoss {
        at_ns: 12_500_000_000,
        requests_lost: 34,
        torn_pages: 7,
        torn_blocks: 1,
        buffered_pages: 96,
        unflushed_pages: 0,
        flush_formula_ns: 645_760,
        flush_ns: 1_286_720,
        recovered_pages: 28_180_480,
        lost_pages: 0,
    });
    results
}

/// What collections of the GC paper's size measured: a share through the buffer, and conflicts over the traditional scheme's.
fn collection(buffered: f64, conflicts: f64) -> GcMetrics {
    let left = 1.0 - buffered;
    let pages_buffered = (241_223.0 * buffered) as u64;
    let cost = GcCost {
        read_ns: 663_000.0,
        transfer_ns: 905_000.0 * (1.0 + left),
        program_ns: 13_260_000.0 * left,
        erase_ns: 1_500_000.0,
        total_ns: 663_000.0 + 905_000.0 * (1.0 + left) + 13_260_000.0 * left + 1_500_000.0,
        elsewhere_ns: 14_165_000.0 * buffered,
        span_ns: 19_800_000.0 * (0.4 + 0.6 * left),
    };
    GcMetrics {
        collections: 10_915,
        wear_collections: 12,
        erases: 10_915,
        idle_share: 0.177,
        idle_chip_share: 0.48,
        idle_chip_share_at_start: 0.21,
        host_pages_per_collection: 43.5,
        moved_per_collection: 22.1,
        pages_moved: 241_223,
        pages_buffered,
        buffered_share: buffered,
        write_amplification: 1.51,
        wear_spread: 7,
        cost,
        conflicts: GcConflicts {
            reads: (61_000.0 * conflicts) as u64,
            writes: (104_000.0 * conflicts) as u64,
            new: (9_200.0 * buffered) as u64,
            avoided: (80_000.0 * buffered) as u64,
            share: 0.165 * conflicts,
            read_latency_ns_mean: 14.2e6 * conflicts,
            write_latency_ns_mean: 21.7e6 * conflicts,
            latency_ns: direction(19.0e6 * conflicts, 0.5, 9.0, 1.0).latency_ns,
        },
        buffer: if buffered == 0.0 {
            BufferMetrics::default()
        } else {
            BufferMetrics {
                reads_served: 1_930,
                writes_absorbed: 402,
                written_back: pages_buffered - 402,
                residency_ns_mean: 44.1e6,
                residency_ns_max: 1_310_000_000,
                occupancy_mean: 12.7,
                occupancy_max: 128,
                flush_formula_ns: 1_288_320,
                flush_ns: 1_288_320,
            }
        },
        ..GcMetrics::default()
    }
}

/// Everything a report must survive.
pub fn all() -> Vec<Results> {
    let mut single = six_schedulers();
    single.runs.truncate(1);
    single.baseline = 0;

    let mut none = six_schedulers();
    none.runs.clear();
    none.status = Status::Interrupted;

    let mut many = six_schedulers();
    many.runs = (0..24)
        .map(|i| {
            let mut one = run("piq", 1.0 - i as f64 / 40.0, 1.0, 0.9, i);
            one.labels.command_queue = format!("ncq:{}", 1 << (i % 6));
            one.labels.seed = i / 6;
            one
        })
        .collect();

    let mut writes_only = six_schedulers();
    for run in &mut writes_only.runs {
        run.metrics.read = DirectionMetrics::default();
        run.metrics.requests.reads = 0;
    }
    let mut reads_only = six_schedulers();
    for run in &mut reads_only.runs {
        run.metrics.write = DirectionMetrics::default();
        run.metrics.requests.writes = 0;
    }
    let mut nothing = six_schedulers();
    for run in &mut nothing.runs {
        run.metrics = empty_metrics();
    }
    let mut no_curve = six_schedulers();
    no_curve.runs[2].metrics.read.cdf.clear();

    let mut interrupted = six_schedulers();
    interrupted.status = Status::Interrupted;
    interrupted.runs[5].status = Status::Interrupted;

    let mut hostile = six_schedulers();
    let evil = "</title><script>alert('x')</script>\"onload=\"y\" & 日本語 \u{1b}[31m".repeat(4);
    hostile.setup.trace.name = evil.clone();
    hostile.setup.trace.source = evil.clone();
    hostile.setup.condition = evil.clone();
    hostile.setup.device_profile = evil.clone();
    hostile.setup.options.insert(evil.clone(), evil.clone());
    hostile.generator = evil.clone();
    hostile.runs[0].labels.scheduler = evil.clone();
    hostile.runs[1].labels.trace = evil.clone();
    hostile.runs[2].tunables.insert(evil.clone(), evil.clone());
    hostile.runs[2].scheduler_counters.insert(evil.clone(), 1);
    hostile.runs[2].invariants.insert(evil.clone(), 1);
    hostile.runs[3].labels.command_queue = evil;

    let mut bad_baseline = six_schedulers();
    bad_baseline.baseline = 99;

    vec![
        six_schedulers(),
        single,
        none,
        many,
        writes_only,
        reads_only,
        nothing,
        no_curve,
        interrupted,
        hostile,
        bad_baseline,
        collections(),
        power_cut(),
        sweep(),
        replayed(),
    ]
}

fn setup() -> Setup {
    let options = [
        ("trace", "traces/fin1.spc.zst"),
        ("device", "piq-128g"),
        ("schedulers", "noop,rws,piq_r,piq_w,piq,piq+"),
        ("baseline", "rws"),
        ("command-queue", "blocking"),
        ("queue", "64"),
        ("seed", "5786932423948097875"),
        ("check", "false"),
    ];
    Setup {
        trace: TraceSetup {
            name: "fin1".to_owned(),
            source: "traces/fin1.spc.zst".to_owned(),
            format: "spc".to_owned(),
            hash: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262".to_owned(),
        },
        device_profile: "name = \"piq-128g\"\n\n[geometry]\nchannels = 8\nchips_per_channel = 4\n".to_owned(),
        condition: "aged 84/10/6".to_owned(),
        options: options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        random_generator: "pcg64".to_owned(),
    }
}

fn run(name: &str, read: f64, write: f64, conflict: f64, index: u64) -> RunResult {
    let read = direction(1.9e6 * read, 0.8, 21.0, 1_200.0);
    let write = direction(4.6e6 * write, 0.74, 35.0, 2_300.0);
    RunResult {
        labels: Labels {
            scheduler: name.to_owned(),
            level: "plane".to_owned(),
            allocation: "cwdp".to_owned(),
            gc: "preemptive".to_owned(),
            victims: "greedy".to_owned(),
            buffer_pages: 128,
            gc_threshold: 0.05,
            hot_cold_separation: false,
            wear: "dynamic".to_owned(),
            condition: "filled".to_owned(),
            flash_scheduler: "fcfs".to_owned(),
            device: "piq-128g".to_owned(),
            trace: "fin1".to_owned(),
            command_queue: "blocking".to_owned(),
            queue_length: 64,
            request_pools: "auto".into(),
            merging: "none".into(),
            pace: "recorded".to_owned(),
            overlap: "keep".into(),
            block_layer: "direct".into(),
            seed: 5_786_932_423_948_097_875,
            workload: BTreeMap::new(),
        },
        metrics: Metrics {
            requests: RequestCounts {
                submitted: 1_000_000,
                completed: 1_000_000,
                reads: 340_000,
                writes: 660_000,
                merged: 1_204,
            },
            all: write.clone(),
            read,
            write,
            utilization: Utilization {
                chip: UnitUtilization { active: 0.41 + 0.03 * index as f64, wall: 0.28 },
                plane: UnitUtilization { active: 0.19 + 0.015 * index as f64, wall: 0.13 },
                die: UnitUtilization { active: 0.31 + 0.02 * index as f64, wall: 0.21 },
                channel: UnitUtilization { active: 0.052, wall: 0.034 },
            },
            conflict: ConflictShares { read_share: 0.43 * conflict, write_share: 0.58 * conflict },
            prioritized: PrioritizedShares {
                read_share: 0.21,
                write_batch_share: if name == "piq+" { 0.08 } else { 0.0 },
            },
            flash: FlashCounts {
                reads: 812_345,
                programs: 1_612_000,
                erases: 9_812,
                multiplane: 12_004,
                ..FlashCounts::default()
            },
            gc: GcMetrics {
                collections: 9_812,
                erases: 9_812,
                pages_moved: 241_223,
                write_amplification: 1.176,
                wear_spread: 7,
                ..GcMetrics::default()
            },
            duration_ns: 298_400_000_000,
            mean_queue_depth: 12.7,
            direction_switches: 81_204,
            overlap: planewise_sim::results::OverlapMetrics::default(),
            flushes: None,
            discards: None,
            fairness: Fairness::default(),
            processes: Vec::new(),
        },
        tunables: BTreeMap::from([("barrier".to_owned(), "issue".to_owned())]),
        scheduler_counters: BTreeMap::from([
            ("batches_opened".to_owned(), 120_331),
            ("joined".to_owned(), 700_212),
        ]),
        status: Status::Complete,
        notes: Vec::new(),
        invariants: BTreeMap::new(),
        closed_loop: None,
        target: None,
        replay: None,
        overload: None,
        dependent: None,
        guest: None,
    }
}

/// A long-tailed distribution: log-logistic around the median, scaled to the mean.
fn direction(mean: f64, waiting_share: f64, tail: f64, iops: f64) -> DirectionMetrics {
    let at = |share: f64| (mean * 0.45 * (share / (1.0 - share)).powf(0.42) + mean * 0.05) as u64;
    let distribution = |factor: f64| Distribution {
        mean: mean * factor,
        deviation: mean * factor * 1.7,
        p50: (at(0.5) as f64 * factor) as u64,
        p95: (at(0.95) as f64 * factor) as u64,
        p99: (at(0.99) as f64 * factor) as u64,
        p999: (at(0.999) as f64 * factor) as u64,
        p9999: (at(0.9999) as f64 * factor) as u64,
        max: (mean * tail * 4.0 * factor) as u64,
    };
    let mut cdf: Vec<(u64, f64)> =
        (1..180).map(|i| i as f64 / 180.0).map(|share| (at(share), share)).collect();
    cdf.extend([0.997, 0.998, 0.999, 0.9995, 0.9999].map(|share| (at(share), share)));
    cdf.push((cdf.last().expect("points").0.max((mean * tail * 4.0) as u64), 1.0));
    DirectionMetrics {
        latency_ns: distribution(1.0),
        waiting_ns: distribution(waiting_share),
        processing_ns: distribution(1.0 - waiting_share),
        die_wait_ns_mean: mean * 0.03,
        channel_wait_ns_mean: mean * 0.01,
        bandwidth_bytes_per_s: iops * 8192.0,
        iops,
        cdf,
    }
}

/// Two schedulers over three numbers of threads of a database.
pub fn sweep() -> Results {
    let mut results = six_schedulers();
    for (index, run) in results.runs.iter_mut().enumerate() {
        run.labels.scheduler = ["noop", "piq"][index % 2].to_owned();
        run.labels.workload =
            BTreeMap::from([("threads".to_owned(), ["1", "4", "16"][index / 2].to_owned())]);
        let job = |name: &str, processes, background| JobMetrics {
            name: name.to_owned(),
            processes,
            background,
            fairness: 0.99,
            ..JobMetrics::default()
        };
        let operations =
            Operations { what: "transactions".to_owned(), count: 10_000, per_s: 100.0 * (index + 1) as f64 };
        run.closed_loop = Some(ClosedLoop {
            jobs: vec![job("threads", 4, false), job("page cleaner", 1, true)],
            operations: Some(operations),
        });
    }
    results.setup.options.insert("target".to_owned(), "sim:ssd1".to_owned());
    results
}

/// A run in which nothing completed.
fn empty_metrics() -> Metrics {
    Metrics {
        requests: RequestCounts::default(),
        read: DirectionMetrics::default(),
        write: DirectionMetrics::default(),
        all: DirectionMetrics::default(),
        utilization: Utilization::default(),
        conflict: ConflictShares::default(),
        prioritized: PrioritizedShares::default(),
        flash: FlashCounts::default(),
        gc: GcMetrics::default(),
        duration_ns: 0,
        mean_queue_depth: 0.0,
        direction_switches: 0,
        overlap: planewise_sim::results::OverlapMetrics::default(),
        flushes: None,
        discards: None,
        fairness: Fairness::default(),
        processes: Vec::new(),
    }
}
