//! The closed loop: jobs and their options against what they must mean, to the nanosecond where a formula says it.

mod common;

use common::{closed, device};
use planewise_model::{Direction, Lsn, Ns};
use planewise_sim::RunConfig;
use planewise_sim::drivers::closed_loop::{LoopOptions, run};
use planewise_sim::observers::Completion;
use planewise_sim::results::{RunResult, Status};
use planewise_workload::jobs::JobFile;
use std::sync::atomic::AtomicBool;

/// One page from array and channel of an idle device.
const PAGE: u64 = 30_000 + 40_960;

fn measured(config: &RunConfig, jobs: &str, stop: bool) -> RunResult {
    let mut workload = JobFile::parse(jobs, "test").unwrap().build(14 << 20, 7).unwrap();
    let stop = AtomicBool::new(stop);
    let mut options = LoopOptions { stop: &stop, progress: &mut |_| {}, name: "test" };
    run(config, &mut workload, (), &mut options).unwrap().0
}

fn starts(completions: &[Completion]) -> Vec<u64> {
    let mut ordered: Vec<_> = completions.iter().collect();
    ordered.sort_by_key(|completion| completion.sequence);
    ordered.iter().map(|completion| completion.request.start.0).collect()
}

#[test]
fn a_job_of_depth_one_issues_its_next_request_when_one_completes_and_it_has_thought() {
    let config = RunConfig::new(device(2, 2, 1, 1));
    let completions = closed(&config, "[job.a]\nrw='randread'\nnumber_ios=10\nthinktime=5\nsize='16m'");
    assert_eq!(completions.len(), 10);
    for pair in completions.windows(2) {
        assert_eq!(pair[1].request.arrival, pair[0].completed + Ns(5_000));
        assert_eq!(pair[1].completed - pair[1].request.arrival, Ns(PAGE));
    }
}

#[test]
fn pauses_come_after_as_many_completions_as_asked_for() {
    let config = RunConfig::new(device(1, 1, 1, 1));
    let completions = closed(&config, "[job.a]\nsize='64k'\nthinktime='1ms'\nthinktime_blocks=4");
    let gaps: Vec<u64> =
        completions.windows(2).map(|pair| (pair[1].request.arrival - pair[0].completed).0).collect();
    let expected: Vec<u64> = (1..16).map(|n| if n % 4 == 0 { 1_000_000 } else { 0 }).collect();
    assert_eq!(gaps, expected);
}

#[test]
fn a_closed_loop_counts_the_wait_outside_a_full_queue() {
    let mut config = RunConfig::new(device(1, 1, 1, 1));
    config.queue_length = 1;
    let completions = closed(&config, "[job.a]\nrw='randread'\niodepth=8\nnumber_ios=8\nsize='8m'");
    let longest = completions.iter().map(|c| c.completed - c.request.arrival).max().unwrap();
    assert_eq!(longest, Ns(8 * PAGE));
}

#[test]
fn a_job_keeps_its_depth_in_flight_and_deeper_is_faster_until_the_channel_is_full() {
    let config = RunConfig::new(device(1, 8, 1, 1));
    let makespan = |depth: u32| {
        let jobs = format!("[job.a]\nrw='randread'\nnumber_ios=2000\nsize='16m'\niodepth={depth}");
        let completions = closed(&config, &jobs);
        assert_eq!(completions.len(), 2000);
        completions.iter().map(|completion| completion.completed).max().unwrap()
    };
    let (one, four, deep) = (makespan(1), makespan(4), makespan(64));
    assert_eq!(one, Ns(2000 * PAGE));
    assert!(four < one && deep < four);
    assert!(deep.0 >= 2000 * 40_960, "nothing is faster than the channel");
    assert!(deep.0 < 2000 * 41_500, "and a deep queue fills it");
}

#[test]
fn jobs_of_different_areas_and_patterns_run_side_by_side_and_finish() {
    let config = RunConfig::new(device(2, 2, 2, 2));
    let completions = closed(
        &config,
        "[global]\nsize='16m'\n[job.z]\nrw='write'\niodepth=4\nnumber_ios=500\noffset='16m'\n\
         [job.y]\nstride='20k'\niodepth=3\nnumber_ios=300\n\
         [job.x]\nrw='randrw'\niodepth=2\nnumber_ios=200\nnumjobs=2\n",
    );
    let of = |process| completions.iter().filter(|completion| completion.request.process == process).count();
    assert_eq!(
        [of(1), of(2), of(3), of(4)],
        [500, 300, 200, 200],
        "processes are numbered in the file's order"
    );
    assert!(completions.iter().all(|c| c.request.synchronous), "direct writes are waited for");
}

#[test]
fn sequential_strided_and_holed_patterns_go_through_their_area_and_begin_again() {
    let config = RunConfig::new(device(1, 1, 1, 1));
    let run = |options: &str| starts(&closed(&config, &format!("[job.a]\n{options}")));
    assert_eq!(run("size='16k'\nio_size='24k'\noffset='4k'"), [8, 16, 24, 32, 8, 16]);
    assert_eq!(run("size='20k'\nstride='8k'\nnumber_ios=4"), [0, 16, 32, 0]);
    assert_eq!(run("rw='read:4k'\nsize='20k'\nnumber_ios=4"), [0, 16, 32, 0]);
    assert_eq!(run("size='16k'\nloops=2").len(), 8);
}

#[test]
fn random_offsets_come_once_each_before_any_comes_again_unless_told_otherwise() {
    let config = RunConfig::new(device(1, 1, 1, 1));
    let mut once = starts(&closed(&config, "[job.a]\nrw='randread'\nsize='1m'"));
    assert!(once.windows(2).any(|pair| pair[1] < pair[0]));
    once.sort_unstable();
    assert_eq!(once, (0..256).map(|page| page * 8).collect::<Vec<_>>());
    let mut any = starts(&closed(&config, "[job.a]\nrw='randread'\nsize='1m'\nnorandommap=1"));
    any.sort_unstable();
    any.dedup();
    assert!(any.len() < 200, "{}", any.len());
    let runs = starts(&closed(&config, "[job.a]\nrw='randread:4'\nsize='1m'\nnumber_ios=64"));
    let jumps = runs.windows(2).filter(|pair| pair[1] != pair[0] + 8).count();
    assert!((13..=16).contains(&jumps), "{jumps}");
}

#[test]
fn mixes_sizes_and_shares_are_what_was_asked_for() {
    let config = RunConfig::new(device(2, 4, 1, 1));
    let completions = closed(
        &config,
        "[job.a]\nrw='randrw'\nrwmixread=70\nsize='32m'\nnumber_ios=4000\niodepth=16\nbssplit='4k/75:16k/25,8k/100'\nblockalign='4k'",
    );
    let reads: Vec<_> = completions.iter().filter(|c| c.request.direction == Direction::Read).collect();
    assert!((2720..2880).contains(&reads.len()), "{}", reads.len());
    let small = reads.iter().filter(|c| c.request.sectors == 8).count() as f64 / reads.len() as f64;
    assert!((0.72..0.78).contains(&small), "{small}");
    let writes = completions.iter().filter(|c| c.request.direction == Direction::Write);
    assert!(writes.clone().all(|c| c.request.sectors == 16));
    assert!(completions.iter().all(|c| c.request.start.0 % 8 == 0 && c.request.end() <= Lsn(65_536)));
}

#[test]
fn rates_and_delays_hold_requests_back_to_the_nanosecond() {
    let config = RunConfig::new(device(1, 1, 1, 1));
    let arrivals = |options: &str| {
        let completions = closed(&config, &format!("[job.a]\nsize='16k'\niodepth=4\n{options}"));
        completions.iter().map(|c| c.request.arrival.0).collect::<Vec<_>>()
    };
    assert_eq!(arrivals("rate_iops=1000"), [0, 1_000_000, 2_000_000, 3_000_000]);
    assert_eq!(arrivals("rate='4m'"), [0, 976_562, 1_953_125, 2_929_687]);
    assert_eq!(arrivals("startdelay='2ms'"), [2_000_000; 4]);
}

#[test]
fn a_stonewall_waits_for_the_last_completion_of_all_before_it() {
    let config = RunConfig::new(device(2, 2, 1, 1));
    let completions = closed(
        &config,
        "[global]\nrw='randread'\nsize='16m'\n[job.a]\nnumber_ios=10\nnumjobs=2\n[job.b]\nnumber_ios=5\n[job.c]\nnumber_ios=4\nstonewall=1",
    );
    let before = completions.iter().filter(|c| c.request.process <= 3).map(|c| c.completed).max().unwrap();
    let behind =
        completions.iter().filter(|c| c.request.process == 4).map(|c| c.request.arrival).min().unwrap();
    assert_eq!(behind, before);
}

#[test]
fn a_run_ends_at_its_runtime_and_what_the_ramp_served_is_not_measured() {
    let config = RunConfig::new(device(1, 1, 1, 1));
    let whole = measured(&config, "[job.a]\nrw='randread'\ntime_based=1\nruntime='10ms'\nsize='4m'", false);
    let count = 10_000_000_u64.div_ceil(PAGE);
    assert_eq!(whole.metrics.requests.completed, count);
    let ramped = measured(
        &config,
        "[job.a]\nrw='randread'\ntime_based=1\nruntime='10ms'\nramp_time='10ms'\nsize='4m'",
        false,
    );
    let total = 20_000_000_u64.div_ceil(PAGE);
    assert_eq!(ramped.metrics.requests.completed, total - count);
    let of_job = &ramped.closed_loop.as_ref().unwrap().jobs[0];
    assert_eq!(of_job.read.requests, total - count);
    assert_eq!(of_job.duration_ns, (total - count) * PAGE);
    assert_eq!(of_job.all.latency_ns.mean, PAGE as f64);
    assert!((of_job.all.iops - 1e9 / PAGE as f64).abs() < 1e-6);
}

#[test]
fn equal_jobs_get_equal_shares_and_what_each_job_got_adds_up() {
    let config = RunConfig::new(device(2, 2, 1, 1));
    let result = measured(
        &config,
        "[global]\nsize='8m'\nnumber_ios=500\n[job.a]\nrw='randread'\nnumjobs=4\n[job.b]\nrw='randwrite'\nbs='8k'",
        false,
    );
    let jobs = &result.closed_loop.as_ref().unwrap().jobs;
    assert_eq!(jobs.iter().map(|job| job.all.requests).sum::<u64>(), result.metrics.requests.completed);
    assert_eq!((jobs[0].processes, jobs[1].first_process), (4, 5));
    // Each over its own time, which differs by a request.
    assert!(jobs[0].fairness > 0.999 && jobs[0].fairness <= 1.0, "{}", jobs[0].fairness);
    assert_eq!(jobs[1].write.bytes, 500 * 8192);
}

#[test]
fn a_stopped_loop_keeps_what_it_has_and_says_so() {
    let config = RunConfig::new(device(1, 1, 1, 1));
    let result = measured(&config, "[job.a]\nrw='randread'\nsize='8m'\nloops=10", true);
    assert_eq!(result.status, Status::Interrupted);
    let counts = result.metrics.requests;
    assert!(counts.completed > 0 && counts.completed == counts.submitted && counts.completed < 5000);
}

#[test]
fn a_job_that_paces_or_thinks_ends_at_its_runtime() {
    let config = RunConfig::new(device(1, 1, 1, 1));
    for pause in ["rate_iops=1", "thinktime='1s'"] {
        let jobs = format!(
            "[job.a]\nsize='1m'\ntime_based=1\nruntime='10ms'\n{pause}\n[job.b]\nsize='4k'\nstonewall=1"
        );
        let completions = closed(&config, &jobs);
        let arrivals: Vec<Ns> = completions.iter().map(|c| c.request.arrival).collect();
        assert_eq!(arrivals, [Ns::ZERO, Ns(10_000_000)], "{pause}");
    }
}

#[test]
fn what_waits_outside_the_queue_when_the_ramp_ends_is_not_measured() {
    let mut config = RunConfig::new(device(1, 1, 1, 1));
    config.queue_length = 1;
    let jobs = "[job.a]\nrw='randread'\niodepth=8\ntime_based=1\nruntime='10ms'\nramp_time='5ms'\nsize='4m'";
    let result = measured(&config, jobs, false);
    let job = &result.closed_loop.as_ref().unwrap().jobs[0];
    assert_eq!(job.all.requests, result.metrics.requests.completed);
    // A page after the other: the last arrival that completes before the end came 8 pages before, none before the ramp.
    assert!(job.duration_ns <= 10_000_000 + 8 * PAGE, "{}", job.duration_ns);
    let end = 15_000_000_u64.div_ceil(PAGE) + 7;
    let outside = 5_000_000_u64.div_ceil(PAGE) + 7;
    assert_eq!(job.all.requests, end - outside);
}

#[test]
fn a_ramp_that_outlasts_the_workload_is_an_error_that_says_when_it_ended() {
    let config = RunConfig::new(device(1, 1, 1, 1));
    let mut workload =
        JobFile::parse("[job.a]\nsize='8k'\nramp_time='1s'", "test").unwrap().build(14 << 20, 7).unwrap();
    let mut options = LoopOptions { stop: &AtomicBool::new(false), progress: &mut |_| {}, name: "test" };
    let error = run(&config, &mut workload, (), &mut options).err().unwrap().to_string();
    assert!(error.starts_with("ramp_time: found 1"), "{error}");
}

#[test]
fn a_stopped_loop_of_huge_requests_stops_at_once() {
    let config = RunConfig::new(device(1, 1, 1, 1));
    let jobs = "[job.a]\nrw='read'\nbs='8m'\nsize='8m'\nloops=1000";
    let (result, mut looks) = (measured(&config, jobs, true), 0);
    assert_eq!(result.status, Status::Interrupted);
    assert!(result.metrics.requests.completed <= 1, "{}", result.metrics.requests.completed);
    let mut workload = JobFile::parse(jobs, "test").unwrap().build(14 << 20, 7).unwrap();
    let stop = AtomicBool::new(false);
    let mut progress = |_| {
        looks += 1;
        stop.store(looks == 3, std::sync::atomic::Ordering::Relaxed);
    };
    let mut options = LoopOptions { stop: &stop, progress: &mut progress, name: "test" };
    let result = run(&config, &mut workload, (), &mut options).unwrap().0;
    // A request is 2048 pages, and each page at least an event.
    assert!(result.metrics.requests.completed <= 3, "{}", result.metrics.requests.completed);
}

#[test]
fn processes_that_do_less_are_not_treated_worse_and_those_apart_share_nothing() {
    let config = RunConfig::new(device(2, 4, 1, 1));
    let fairness = |jobs: &str| measured(&config, jobs, false).metrics.fairness;
    let unequal =
        fairness("[global]\nrw='randread'\nsize='8m'\n[job.a]\nnumber_ios=2000\n[job.b]\nnumber_ios=500");
    assert!(unequal.processes == 2 && unequal.bandwidth > 0.98, "{unequal:?}");
    let apart = fairness("[global]\nsize='1m'\n[job.a]\n[job.b]\nstonewall=1");
    assert_eq!((apart.processes, apart.bandwidth), (0, 0.0));
    let slow = fairness(
        "[global]\nrw='randread'\nsize='8m'\nnumber_ios=200\n[job.a]\nrate_iops=1000\n[job.b]\nrate_iops=3000",
    );
    // Two rates, one three times the other: 16 / (2 * 10).
    assert!((slow.bandwidth - 0.8).abs() < 0.01, "{slow:?}");
}

#[test]
fn the_same_seed_gives_the_same_requests_and_another_gives_others() {
    let config = RunConfig::new(device(2, 2, 1, 1));
    let run = |extra: &str| {
        closed(&config, &format!("[job.a]\nrw='randrw'\nsize='16m'\nnumber_ios=200\nnumjobs=3\n{extra}"))
    };
    assert_eq!(run(""), run(""));
    assert_ne!(starts(&run("")), starts(&run("randseed=9")));
}
