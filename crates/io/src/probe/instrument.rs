//! The few kinds of measurements that all stages of the probe are made of: single reads, small groups issued together, and loops that
//! keep so many operations under way.

use super::error::ProbeError;
use crate::target::{Completed, Operation, Target};
use planewise_model::rng::Generator;
use planewise_model::{Bytes, Direction, Lsn, Ns, SECTOR_BYTES};
use rand::RngExt;
use std::sync::atomic::{AtomicBool, Ordering};

/// A target with what is needed to measure it.
pub struct Instrument<'a> {
    target: &'a mut dyn Target,
    stop: &'a AtomicBool,
    /// Where to draw places from.
    pub rng: Generator,
    completed: Vec<Completed>,
    read: u64,
    written: Bytes,
}

/// What a loop measured.
#[derive(Clone, Debug, Default)]
pub struct Loop {
    /// Operations completed.
    pub operations: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// From the first issue to the last completion.
    pub elapsed: Ns,
    /// Latency of each operation with its number of issue, in the order of completion.
    pub latencies: Vec<(u64, Ns)>,
    /// When each completed, since the beginning, in the same order.
    pub ends: Vec<Ns>,
}

impl Loop {
    /// Bytes a second.
    pub fn bandwidth(&self) -> f64 {
        if self.elapsed == Ns::ZERO { 0.0 } else { self.bytes as f64 / self.elapsed.as_secs_f64() }
    }

    /// Mean time between completions, ns.
    pub fn interval(&self) -> f64 {
        if self.operations == 0 { 0.0 } else { self.elapsed.0 as f64 / self.operations as f64 }
    }

    /// Mean time between completions of the second half, ns.
    pub fn second_half_interval(&self) -> f64 {
        let half = self.ends.len() / 2;
        match (self.ends.get(half), self.ends.last()) {
            (Some(from), Some(to)) if self.ends.len() > half + 1 => {
                to.saturating_sub(*from).0 as f64 / (self.ends.len() - 1 - half) as f64
            }
            _ => self.interval(),
        }
    }

    /// Mean time between completions from the middle on, but for the last `depth`, while which the loop runs empty, ns.
    pub fn steady_interval(&self, depth: u32) -> f64 {
        let (half, end) = (self.ends.len() / 2, self.ends.len().saturating_sub(depth as usize));
        match (self.ends.get(half), self.ends.get(end.saturating_sub(1))) {
            (Some(from), Some(to)) if end > half + 1 => {
                to.saturating_sub(*from).0 as f64 / (end - 1 - half) as f64
            }
            _ => self.second_half_interval(),
        }
    }

    /// Latencies in the order of issue, ns.
    pub fn in_order(&self) -> Vec<f64> {
        let mut all = self.latencies.clone();
        all.sort_unstable_by_key(|&(number, _)| number);
        all.into_iter().map(|(_, latency)| latency.0 as f64).collect()
    }
}

impl<'a> Instrument<'a> {
    /// Measures `target` until `stop` is set.
    pub fn new(target: &'a mut dyn Target, stop: &'a AtomicBool, rng: Generator) -> Instrument<'a> {
        Instrument { target, stop, rng, completed: Vec::new(), read: 0, written: Bytes(0) }
    }

    /// The target.
    pub fn target(&self) -> &dyn Target {
        self.target
    }

    /// Sectors of a block, the unit of addresses.
    pub fn block_sectors(&self) -> u32 {
        self.target.info().block_bytes / SECTOR_BYTES as u32
    }

    /// Operations that can be under way at a time.
    pub fn depth(&self) -> u32 {
        self.target.info().depth
    }

    /// Whether writing is allowed.
    pub fn may_write(&self) -> bool {
        self.target.info().writable
    }

    /// Reads issued up to now, and bytes written.
    pub fn effort(&self) -> (u64, Bytes) {
        (self.read, self.written)
    }

    /// The target's time.
    pub fn now(&mut self) -> Ns {
        self.target.now()
    }

    /// Whether the user wants it to end.
    ///
    /// # Errors
    /// [`ProbeError::Interrupted`] when he does.
    pub fn look(&self) -> Result<(), ProbeError> {
        if self.stop.load(Ordering::Relaxed) { Err(ProbeError::Interrupted) } else { Ok(()) }
    }

    fn submit(&mut self, tag: u32, operation: Operation) -> Result<(), ProbeError> {
        match operation.direction {
            Direction::Read => self.read += 1,
            Direction::Write => self.written.0 += u64::from(operation.sectors) * SECTOR_BYTES,
        }
        Ok(self.target.submit(tag, operation)?)
    }

    /// The latency of one operation on an idle target.
    ///
    /// # Errors
    /// The target fails; the user wants it to end.
    pub fn single(&mut self, operation: Operation) -> Result<Ns, ProbeError> {
        let [latency] = self.group([(operation, Ns::ZERO)])?;
        Ok(latency)
    }

    /// Issues operations on an idle target, each so long after the first (in rising order), and waits for all. Returns from when the
    /// group began to when each completed.
    ///
    /// # Errors
    /// The target fails; the user wants it to end.
    pub fn group<const N: usize>(&mut self, group: [(Operation, Ns); N]) -> Result<[Ns; N], ProbeError> {
        let mut ends = [Ns::ZERO; N];
        self.issue(group, &mut ends)?;
        Ok(ends)
    }

    /// Issues operations on an idle target, up to its depth, all at once and in this order, and waits for all. Returns how long each took.
    ///
    /// # Errors
    /// The target fails; the user wants it to end.
    pub fn burst(&mut self, operations: &[Operation]) -> Result<Vec<Ns>, ProbeError> {
        let mut ends = vec![Ns::ZERO; operations.len()];
        self.issue(operations.iter().map(|&operation| (operation, Ns::ZERO)), &mut ends)?;
        Ok(ends)
    }

    fn issue(
        &mut self,
        group: impl IntoIterator<Item = (Operation, Ns)>,
        ends: &mut [Ns],
    ) -> Result<(), ProbeError> {
        self.look()?;
        let began = self.target.now();
        let mut left = ends.len();
        let mut completed = std::mem::take(&mut self.completed);
        completed.clear();
        for (tag, (operation, after)) in group.into_iter().enumerate() {
            let due = Ns(began.0 + after.0);
            while self.target.now() < due {
                self.target.wait(due, &mut completed)?;
            }
            self.submit(tag as u32, operation)?;
        }
        while left > 0 {
            if completed.is_empty() {
                self.target.wait(Ns::MAX, &mut completed)?;
            }
            for one in completed.drain(..) {
                ends[one.tag as usize] = one.completed.saturating_sub(began);
                left -= 1;
            }
        }
        self.completed = completed;
        Ok(())
    }

    /// Keeps `depth` operations under way: asks `next` (with the number of the operation) for each until it gives none, or `until`
    /// has passed since the beginning.
    ///
    /// # Errors
    /// The target fails; the user wants it to end.
    pub fn keep(
        &mut self,
        depth: u32,
        until: Ns,
        mut next: impl FnMut(&mut Generator, u64) -> Option<Operation>,
    ) -> Result<Loop, ProbeError> {
        let depth = depth.clamp(1, self.depth());
        let began = self.target.now();
        let end = Ns(began.0.saturating_add(until.0));
        let mut numbers = vec![(0u64, 0u32); depth as usize];
        let mut free: Vec<u32> = (0..depth).rev().collect();
        let mut completed = std::mem::take(&mut self.completed);
        completed.clear();
        let (mut result, mut issued, mut is_over) = (Loop::default(), 0u64, false);
        loop {
            let now = self.target.now();
            while !is_over && now < end && !free.is_empty() {
                let Some(operation) = next(&mut self.rng, issued) else {
                    is_over = true;
                    break;
                };
                let Some(tag) = free.pop() else { break };
                numbers[tag as usize] = (issued, operation.sectors);
                self.submit(tag, operation)?;
                issued += 1;
            }
            if free.len() == depth as usize {
                break;
            }
            let now = self.target.wait(Ns::MAX, &mut completed)?;
            for one in completed.drain(..) {
                let (number, sectors) = numbers[one.tag as usize];
                result.operations += 1;
                result.bytes += u64::from(sectors) * SECTOR_BYTES;
                result.latencies.push((number, one.latency()));
                result.ends.push(one.completed.saturating_sub(began));
                free.push(one.tag);
            }
            result.elapsed = now.saturating_sub(began);
            // Looking costs nothing, but what is under way has to come back first.
            is_over |= self.stop.load(Ordering::Relaxed);
        }
        self.completed = completed;
        self.look()?;
        Ok(result)
    }

    /// Runs jobs side by side, each with `depth` operations under way, for a time: asks `next` for the operation of a job. Returns what each
    /// job completed within the time.
    ///
    /// # Errors
    /// The target fails; the user wants it to end.
    pub fn jobs(
        &mut self,
        jobs: u32,
        depth: u32,
        time: Ns,
        mut next: impl FnMut(&mut Generator, u32) -> Operation,
    ) -> Result<Vec<Loop>, ProbeError> {
        let began = self.target.now();
        let end = Ns(began.0.saturating_add(time.0));
        let depth = depth.min(self.depth() / jobs.max(1)).max(1);
        let mut sectors = vec![0; (jobs * depth) as usize];
        let mut completed = std::mem::take(&mut self.completed);
        completed.clear();
        let mut results = vec![Loop { elapsed: time, ..Loop::default() }; jobs as usize];
        let mut under_way = 0;
        for tag in 0..jobs * depth {
            let operation = next(&mut self.rng, tag / depth);
            sectors[tag as usize] = operation.sectors;
            self.submit(tag, operation)?;
            under_way += 1;
        }
        while under_way > 0 {
            self.target.wait(Ns::MAX, &mut completed)?;
            for one in completed.drain(..) {
                under_way -= 1;
                if one.completed <= end {
                    let result = &mut results[(one.tag / depth) as usize];
                    result.operations += 1;
                    result.bytes += u64::from(sectors[one.tag as usize]) * SECTOR_BYTES;
                    result.latencies.push((result.operations, one.latency()));
                    result.ends.push(one.completed.saturating_sub(began));
                }
                if self.target.now() < end && !self.stop.load(Ordering::Relaxed) {
                    let operation = next(&mut self.rng, one.tag / depth);
                    sectors[one.tag as usize] = operation.sectors;
                    self.submit(one.tag, operation)?;
                    under_way += 1;
                }
            }
        }
        self.completed = completed;
        self.look()?;
        Ok(results)
    }

    /// Lets time pass without load.
    ///
    /// # Errors
    /// The user wants it to end.
    pub fn pause(&mut self, time: Ns) -> Result<(), ProbeError> {
        const STEP: Ns = Ns::from_millis(50);
        let end = Ns(self.target.now().0 + time.0);
        let mut completed = Vec::new();
        while self.target.now() < end {
            self.look()?;
            let until = Ns(self.target.now().0 + STEP.0).min(end);
            self.target.wait(until, &mut completed)?;
        }
        Ok(())
    }

    /// Makes what was written safe.
    ///
    /// # Errors
    /// The target fails.
    pub fn flush(&mut self) -> Result<Ns, ProbeError> {
        Ok(self.target.flush()?)
    }
}

/// Part of the target in which the probe works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// First sector.
    pub start: u64,
    /// Sectors.
    pub sectors: u64,
}

impl Area {
    /// How many pieces of `sectors` there are; a piece begins at a multiple of its size, counted from the start of the target.
    pub fn pieces(&self, sectors: u64) -> u64 {
        let first = self.start.div_ceil(sectors);
        ((self.start + self.sectors) / sectors).saturating_sub(first)
    }

    /// First sector of piece `index` of `sectors`.
    pub fn piece(&self, sectors: u64, index: u64) -> Lsn {
        Lsn((self.start.div_ceil(sectors) + index) * sectors)
    }

    /// First sector of a piece drawn at random.
    pub fn random_piece(&self, sectors: u64, rng: &mut Generator) -> Lsn {
        self.piece(sectors, rng.random_range(0..self.pieces(sectors).max(1)))
    }
}
