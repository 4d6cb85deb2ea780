use super::*;
use crate::drivers::HostOptions;
use crate::target::{Completed, Operation, SimTarget, Target, TargetError};
use planewise_model::Profile;
use planewise_sim::Condition;
use planewise_sim::results::{RunResult, Status};
use std::sync::atomic::AtomicBool;

fn quick() -> Options {
    let mut options = Options::default();
    for (key, value) in [("area", "4m"), ("time", "20ms"), ("pause", "1ms"), ("condition", "20ms")] {
        options.set(key, value).unwrap();
    }
    options
}

fn drive() -> SimTarget {
    let profile = Profile::embedded("ssd-s").unwrap();
    SimTarget::new(&profile, Condition::Filled, 64, 1).unwrap()
}

fn runs(name: &str, options: &Options) -> Vec<RunResult> {
    let mut target = drive();
    let steps = (find(name).unwrap().steps)(options, target.info()).unwrap();
    let host = HostOptions { queue_length: 64, ..HostOptions::new() };
    let done = run(&mut target, &host, name, &steps, &AtomicBool::new(false), &mut |_| {}).unwrap();
    assert!(done.failure.is_none(), "{:?}", done.failure);
    done.runs
}

fn bandwidth(runs: &[RunResult], labels: &[(&str, &str)]) -> f64 {
    let is_it = |run: &&RunResult| labels.iter().all(|(key, value)| run.labels.workload[*key] == *value);
    let found: Vec<&RunResult> = runs.iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{labels:?}");
    found[0].metrics.all.bandwidth_bytes_per_s
}

#[test]
fn every_experiment_runs_to_its_end_with_a_label_for_each_measurement() {
    for experiment in EXPERIMENTS {
        let options = Options { sizes: vec![4096], depths: vec![1, 4], ..quick() };
        let runs = runs(experiment.name, &options);
        let mut labels: Vec<_> = runs.iter().map(|run| &run.labels.workload).collect();
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), runs.len(), "{}", experiment.name);
        assert!(runs.iter().all(|run| run.metrics.requests.completed > 10), "{}", experiment.name);
    }
}

#[test]
fn parallel_random_reads_gain_and_grids_are_as_long_as_their_lists() {
    let options = Options {
        sizes: vec![4096, 16384],
        depths: vec![1, 8],
        patterns: vec![Pattern::RandomRead, Pattern::Write],
        ..quick()
    };
    let runs = runs("grid", &options);
    assert_eq!(runs.len(), 8);
    let of = |depth| bandwidth(&runs, &[("pattern", "randread"), ("size", "4k"), ("iodepth", depth)]);
    assert!(of("8") > 4.0 * of("1"), "{} {}", of("8"), of("1"));
}

#[test]
fn data_on_one_domain_of_ten_are_read_slower_the_deeper_the_queue() {
    // More than the drive's own buffers hold, and time to empty them, or reads find the data there.
    let pause = Ns::from_millis(5_000);
    let options = Options { depths: vec![1, 32], area: Bytes(64 << 20), pause, ..quick() };
    let runs = runs("layouts", &options);
    let of = |domains, depth| {
        bandwidth(&runs, &[("domains", domains), ("pattern", "randread"), ("iodepth", depth)])
    };
    assert!(of("10", "32") > 3.0 * of("1", "32"), "{} {}", of("10", "32"), of("1", "32"));
    assert!(of("10", "1") < 1.2 * of("1", "1"), "{} {}", of("10", "1"), of("1", "1"));
}

#[test]
fn an_area_that_has_no_room_is_refused_with_what_has() {
    let mut info = drive().info().clone();
    info.capacity = Bytes(1 << 30);
    for name in ["interference", "layouts"] {
        let error = (find(name).unwrap().steps)(&Options::default(), &info).unwrap_err();
        assert!(error.contains("area: found 1.0 GiB; allowed: up to 512.0 MiB"), "{error}");
    }
    let error = find("gird").err().unwrap().to_string();
    assert!(error.contains("did you mean 'grid'"), "{error}");
    info.block_bytes = 4096;
    let options = Options { sizes: vec![512], ..Options::default() };
    assert!((find("grid").unwrap().steps)(&options, &info).unwrap_err().contains("sizes: found 512"));
    let steps = (find("grid").unwrap().steps)(&Options::default(), &info).unwrap();
    assert_eq!(steps.iter().filter(|step| matches!(step, Step::Measure(_))).count(), 4 * 4 * 6);
}

#[test]
fn an_experiment_without_a_size_that_the_target_takes_is_refused_and_others_say_what_they_leave_out() {
    let info = drive().info().clone();
    let experiment = find("conditioning").unwrap();
    let options = Options { area: Bytes(8 << 10), ..quick() };
    let error = (experiment.steps)(&options, &info).unwrap_err();
    assert!(error.contains("none left of the experiment's own (16k); allowed: multiples"), "{error}");
    assert!(error.contains("up to 8.0 KiB"), "{error}");
    let info = TargetInfo { block_bytes: 4096, ..info };
    assert_eq!(left_out(find("grid").unwrap(), &quick(), &info), ["1k"]);
    assert!(left_out(find("streams").unwrap(), &quick(), &info).is_empty());
}

/// Takes writes and remembers them; fails the one with a given number.
struct Scripted {
    info: TargetInfo,
    operations: Vec<Operation>,
    under_way: Vec<u32>,
    now: Ns,
    fails_at: usize,
}

impl Scripted {
    fn new(fails_at: usize) -> Scripted {
        let info = TargetInfo { longest: Bytes(1 << 20), ..drive().info().clone() };
        Scripted { info, operations: Vec::new(), under_way: Vec::new(), now: Ns::ZERO, fails_at }
    }
}

impl Target for Scripted {
    fn info(&self) -> &TargetInfo {
        &self.info
    }

    fn now(&mut self) -> Ns {
        self.now
    }

    fn submit(&mut self, tag: u32, operation: Operation) -> Result<(), TargetError> {
        self.operations.push(operation);
        self.under_way.push(tag);
        Ok(())
    }

    fn wait(&mut self, until: Ns, completed: &mut Vec<Completed>) -> Result<Ns, TargetError> {
        if self.operations.len() > self.fails_at {
            let (target, operation) = (self.info.name.clone(), self.operations[self.fails_at]);
            return Err(TargetError::Failed { target, operation, problem: "gone".to_owned() });
        }
        self.now = if self.under_way.is_empty() { until } else { self.now + Ns(1_000) };
        let (issued, now) = (self.now, self.now);
        completed.extend(self.under_way.drain(..).map(|tag| Completed { tag, issued, completed: now }));
        Ok(self.now)
    }

    fn flush(&mut self) -> Result<Ns, TargetError> {
        Ok(self.now)
    }
}

#[test]
fn spread_writes_put_every_chunk_on_the_same_turn() {
    let mut target = Scripted::new(usize::MAX);
    let area = Area { start: 1 << 20, length: 64 << 10 };
    let elsewhere = Area { start: 4 << 20, length: 1 << 20 };
    let writes = Writes::Spread { area, elsewhere, size: 4096, between: 4 };
    assert!(writes.carry_out(&mut target, 1, &AtomicBool::new(false)).unwrap());
    assert_eq!(writes.volume(), Some(Bytes(5 * area.length)));
    assert_eq!(target.operations.len(), 16 * 5);
    let mut others: Vec<u64> = Vec::new();
    for (number, operation) in target.operations.iter().enumerate() {
        let at = operation.start.0 * 512;
        if number % 5 != 0 {
            assert!(!others.contains(&at), "written twice while a buffer may still hold it");
            others.push(at);
        }
        if number % 5 == 0 {
            assert_eq!(at, area.start + number as u64 / 5 * 4096);
        } else {
            assert!(at >= elsewhere.start && at + 4096 <= elsewhere.end());
        }
    }
}

#[test]
fn a_fill_covers_its_area_once_whatever_its_length() {
    let mut target = Scripted::new(usize::MAX);
    let area = Area { start: 4096, length: 600 << 10 };
    let writes = Writes::Fill { area, size: 256 << 10 };
    writes.carry_out(&mut target, 1, &AtomicBool::new(false)).unwrap();
    let lengths: Vec<u32> = target.operations.iter().map(|operation| operation.sectors / 2).collect();
    assert_eq!(lengths, [256, 256, 88]);
    assert_eq!(target.operations[0].start.0, 8);
}

#[test]
fn a_target_that_fails_ends_the_experiment_and_keeps_what_was_measured() {
    let mut target = Scripted::new(17 + 3);
    let options = Options { sizes: vec![4096], depths: vec![1], time: Ns(2_000), ..quick() };
    let steps = (find("grid").unwrap().steps)(&options, target.info()).unwrap();
    let host = HostOptions::new();
    let done = run(&mut target, &host, "grid", &steps, &AtomicBool::new(false), &mut |_| {}).unwrap();
    assert!(done.failure.unwrap().to_string().contains("gone"));
    let (last, whole) = done.runs.split_last().unwrap();
    assert!(!whole.is_empty() && whole.iter().all(|run| run.status == Status::Complete));
    assert_eq!(last.status, Status::Interrupted);
    assert!(last.target.as_ref().unwrap().failure.as_ref().unwrap().contains("gone"));
}

#[test]
fn who_stops_an_experiment_stops_it_at_once() {
    let mut target = Scripted::new(usize::MAX);
    let steps = (find("layouts").unwrap().steps)(&quick(), target.info()).unwrap();
    let done = run(&mut target, &HostOptions::new(), "layouts", &steps, &AtomicBool::new(true), &mut |_| {});
    assert!(done.unwrap().runs.is_empty() && target.operations.is_empty());
}
