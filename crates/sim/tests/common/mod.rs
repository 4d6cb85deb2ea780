//! Devices and runs that the tests of the engine share.
#![allow(dead_code)]

use planewise_model::profile::{
    AdvancedCommands, Arbitration, Collection, Interface, PageLatency, Profile, StreamRule, Timing,
    Translation, WriteBuffer,
};
use planewise_model::{Direction, Geometry, Lsn, Ns, Request};
use planewise_sim::drivers::closed_loop::Driver;
use planewise_sim::drivers::replay::{PowerCut, ReplayOptions, replay};
use planewise_sim::host::Slot;
use planewise_sim::observers::invariants::Invariants;
use planewise_sim::observers::{Completion, Observer};
use planewise_sim::results::RunResult;
use planewise_sim::{RunConfig, SimError, Simulator};
use planewise_workload::Workload;
use planewise_workload::jobs::JobFile;
use std::sync::atomic::AtomicBool;

/// tPROG 600 us, tR 30 us, tBERS 3 ms, 10 ns a byte, no command cycles: Table I of the GC paper.
pub fn device(channels: u32, chips: u32, dies: u32, planes: u32) -> Profile {
    Profile {
        name: "test".into(),
        description: String::new(),
        source: String::new(),
        geometry: Geometry {
            channels,
            chips_per_channel: chips,
            dies_per_chip: dies,
            planes_per_die: planes,
            blocks_per_plane: 64,
            pages_per_block: 64,
            page_bytes: 4096,
        },
        timing: Timing {
            command_ns: 0,
            read_ns: PageLatency::Uniform(30_000),
            program_ns: PageLatency::Uniform(600_000),
            program_pages: 1,
            erase_ns: 3_000_000,
            transfer_ps_per_byte: 10_000,
            whole_page_reads: false,
            variation: 0.0,
        },
        advanced_commands: AdvancedCommands {
            die_interleave: true,
            multi_plane: true,
            multi_plane_same_block: false,
            copyback: false,
            copyback_same_parity: false,
            cache_read: false,
            cache_program: false,
        },
        translation: Translation {
            over_provisioning: 0.10,
            allocation: "cwdp".into(),
            chunk_pages: 1,
            wear_levelling: "dynamic".into(),
            read_modify_write: true,
            unit_bytes: None,
            superblocks: false,
            parity_one_in: 0,
        },
        collection: Collection {
            scheme: "traditional".into(),
            victims: "greedy".into(),
            threshold: 0.05,
            floor: 0.0,
            ahead: 0.06,
            hot_cold_separation: false,
            streams: StreamRule::Conflict,
            buffer_pages: 128,
            buffer_read_ns: 50,
            replica_pages: 128,
            suspend_ns: 20_000,
            ..Collection::default()
        },
        interface: Interface {
            command_queue: "ncq:4096".into(),
            flash_scheduler: "fcfs".into(),
            arbitration: Arbitration::Fifo,
        },
        link: None,
        processor: None,
        regions: None,
        write_buffer: None,
        read_ahead: None,
        slc_cache: None,
    }
}

/// 2 x 2 x 2 x 2 planes of 64 blocks of 16 pages, aged, blocking, dynamic: the GC paper's device in small.
pub fn aged(scheme: &str) -> RunConfig {
    let mut profile = device(2, 2, 2, 2);
    profile.geometry.blocks_per_plane = 64;
    profile.geometry.pages_per_block = 16;
    profile.translation.over_provisioning = 0.15;
    profile.translation.allocation = "dynamic".into();
    profile.interface.command_queue = "blocking".into();
    profile.collection.scheme = scheme.into();
    let mut config = RunConfig::new(profile);
    config.condition = "aged:82/10/8".parse().unwrap();
    config
}

/// One plane on each channel, and a write buffer that keeps what it has until it is asked for.
pub fn keeping(channels: u32, power_loss_protection: bool) -> RunConfig {
    let mut profile = device(channels, 1, 1, 1);
    profile.write_buffer = Some(WriteBuffer {
        pages: 100,
        watermark: 0.9,
        run_pages: 4,
        entry_order: false,
        in_flight_pages: 100,
        power_loss_protection,
    });
    RunConfig::new(profile)
}

/// Requests of one 4 KiB page each.
pub fn pages(direction: Direction, numbers: impl IntoIterator<Item = u64>) -> Vec<Request> {
    numbers.into_iter().map(|page| Request::new(Ns::ZERO, Lsn(page * 8), 8, direction)).collect()
}

/// Submits in order, each at its arrival or when the queue has room, checking every invariant; returns completions in order.
pub fn run(config: &RunConfig, requests: &[Request]) -> Result<Vec<Completion>, SimError> {
    let mut simulator = Simulator::new(config, Invariants::of(config.overlap))?;
    simulator.keep_completions();
    for request in requests {
        while !simulator.has_room(request)
            || simulator.now() < request.arrival && simulator.next_event() <= request.arrival
        {
            let next = simulator.next_event();
            assert_ne!(next, Ns::MAX, "a full queue makes progress");
            simulator.advance(next)?;
        }
        simulator.submit(request)?;
    }
    simulator.drain()?;
    if let Err(violations) = simulator.observer().report() {
        panic!("{violations}");
    }
    simulator.audit().unwrap_or_else(|problem| panic!("{problem}"));
    assert_eq!(simulator.transactions_in_flight(), 0);
    let mut completions = Vec::new();
    simulator.take_completions(&mut completions);
    assert_eq!(completions.len(), requests.len(), "every request completes");
    Ok(completions)
}

/// How long each request takes from its arrival on, ns, in their order.
pub fn times(config: &RunConfig, requests: &[Request]) -> Vec<u64> {
    let mut completions = run(config, requests).unwrap();
    completions.sort_by_key(|completion| completion.sequence);
    completions.iter().map(|completion| (completion.completed - completion.request.arrival).0).collect()
}

/// When the last request completes.
pub fn makespan(config: &RunConfig, requests: &[Request]) -> Ns {
    run(config, requests).unwrap().iter().map(|completion| completion.completed).max().unwrap()
}

/// What an observer saw of a whole run.
pub fn watch<O: Observer>(config: &RunConfig, requests: &[Request], observer: O) -> O {
    let mut simulator = Simulator::new(config, observer).unwrap();
    for request in requests {
        while simulator.next_event() < request.arrival || !simulator.has_room(request) {
            let next = simulator.next_event();
            simulator.advance(next).unwrap();
        }
        simulator.submit(request).unwrap();
    }
    simulator.drain().unwrap();
    simulator.into_observer()
}

/// What a replay measures, with invariants checked.
pub fn measure(config: &RunConfig, requests: &[Request]) -> RunResult {
    measure_until(config, requests, None).unwrap()
}

/// The same up to a power cut, which leaves requests that never complete.
pub fn measure_until(
    config: &RunConfig,
    requests: &[Request],
    power_cut: Option<PowerCut>,
) -> Result<RunResult, SimError> {
    let stop = AtomicBool::new(false);
    let mut options =
        ReplayOptions { warm_up: 0, stop: &stop, progress: &mut |_| {}, trace: "test", power_cut };
    let (result, invariants) =
        replay(config, &mut requests.iter().copied(), Invariants::new(), &mut options)?;
    if power_cut.is_none() {
        invariants.report().unwrap_or_else(|violations| panic!("{violations}"));
    }
    Ok(result)
}

/// Keeps every completion.
#[derive(Default)]
pub struct Kept(pub Vec<Completion>);

impl Observer for Kept {
    fn complete(&mut self, _slot: Slot, completion: &Completion) {
        self.0.push(*completion);
    }
}

/// Drives a workload to its end with invariants checked, and returns all completions in order.
pub fn drive(config: &RunConfig, workload: &mut dyn Workload) -> Result<Vec<Completion>, SimError> {
    let mut simulator = Simulator::new(config, (Invariants::of(config.overlap), Kept::default()))?;
    let mut driver = Driver::new(workload);
    while driver.step(&mut simulator)? {}
    simulator.finish_requests()?;
    simulator.drain()?;
    simulator.audit().expect("consistent tables");
    let (invariants, kept) = simulator.into_observer();
    invariants.report().expect("no invariant is violated");
    Ok(kept.0)
}

/// Runs the jobs of a job file.
pub fn closed(config: &RunConfig, jobs: &str) -> Vec<Completion> {
    let device_bytes = Simulator::new(config, ()).unwrap().user_sectors() * 512;
    let mut workload = JobFile::parse(jobs, "test").unwrap().build(device_bytes, 7).unwrap();
    drive(config, &mut workload).unwrap()
}
