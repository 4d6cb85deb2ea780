//! Closed loop: jobs that keep a number of requests in flight and issue the next when one completes.

use crate::engine::Simulator;
use crate::error::SimError;
use crate::observers::{Completion, Observer};
use planewise_model::rng::{Generator, generator};
use planewise_model::{Direction, Lsn, Ns, Request};
use rand::RngExt;

/// Where a job's next request starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Directly behind the last one; from the start again at the end of the area.
    Sequential,
    /// Anywhere in the area, aligned to the request size.
    Random,
    /// This many sectors after the last one.
    Strided(u64),
}

/// One job.
#[derive(Clone, Debug)]
pub struct Job {
    /// Where requests start.
    pub pattern: Pattern,
    /// Sectors of each request, at least 1.
    pub sectors: u32,
    /// Share of reads, 0 to 1.
    pub read_share: f64,
    /// Requests in flight, at least 1.
    pub depth: u32,
    /// Time between a completion and the request that replaces it.
    pub think_time: Ns,
    /// First sector of its area.
    pub area_start: Lsn,
    /// Sectors of its area.
    pub area_sectors: u64,
    /// Requests to issue in all.
    pub requests: u64,
}

impl Job {
    /// Checks what types cannot.
    ///
    /// # Errors
    /// The field, what was found, what is allowed.
    pub fn check(&self) -> Result<(), SimError> {
        let refuse = |key: &str, found: String, allowed: &str| {
            Err(SimError::Option { key: format!("job {key}"), found, allowed: allowed.into() })
        };
        let longest = Ns(1 << 60);
        if self.sectors == 0 {
            return refuse("sectors", "0".into(), "1 or more");
        }
        if !(0.0..=1.0).contains(&self.read_share) {
            return refuse("read_share", self.read_share.to_string(), "0 to 1");
        }
        if self.depth == 0 {
            return refuse("depth", "0".into(), "1 or more");
        }
        if self.think_time > longest {
            return refuse("think_time", self.think_time.to_string(), "up to 36 years");
        }
        if self.area_sectors < u64::from(self.sectors) {
            return refuse(
                "area_sectors",
                self.area_sectors.to_string(),
                "at least the sectors of one request",
            );
        }
        match self.pattern {
            Pattern::Strided(stride) if stride == 0 || stride > self.area_sectors => {
                refuse("stride", stride.to_string(), "1 sector to the whole area")
            }
            _ => Ok(()),
        }
    }
}

struct Running<'a> {
    job: &'a Job,
    issued: u64,
    next: u64,
    random: Generator,
}

impl Running<'_> {
    fn request(&mut self, arrival: Ns, process: u32) -> Request {
        let job = self.job;
        let size = u64::from(job.sectors);
        let places = (job.area_sectors / size).max(1);
        let offset = match job.pattern {
            Pattern::Random => self.random.random_range(0..places) * size,
            Pattern::Sequential | Pattern::Strided(_) => self.next,
        };
        let step = if let Pattern::Strided(stride) = job.pattern { stride } else { size };
        self.next += step;
        if self.next + size > job.area_sectors {
            self.next = 0;
        }
        self.issued += 1;
        let read =
            job.read_share >= 1.0 || (job.read_share > 0.0 && self.random.random::<f64>() < job.read_share);
        let direction = if read { Direction::Read } else { Direction::Write };
        Request { process, ..Request::new(arrival, Lsn(job.area_start.0 + offset), job.sectors, direction) }
    }
}

/// Runs jobs to their end. Job `i` is process `i`. Returns all completions in order.
///
/// # Errors
/// As [`Simulator::submit`] and [`Simulator::advance`].
pub fn run<O: Observer>(
    simulator: &mut Simulator<O>,
    jobs: &[Job],
    seed: u64,
) -> Result<Vec<Completion>, SimError> {
    jobs.iter().try_for_each(Job::check)?;
    simulator.keep_completions();
    let mut running: Vec<Running<'_>> = jobs
        .iter()
        .enumerate()
        .map(|(index, job)| Running {
            job,
            issued: 0,
            next: 0,
            random: generator(seed, &format!("closed-loop job {index}")),
        })
        .collect();
    let mut all = Vec::new();
    // Requests to come, by time; ties in job order. A handful per job: a sorted list is enough.
    let mut due: Vec<(Ns, u32)> = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        for _ in 0..u64::from(job.depth).min(job.requests) {
            due.push((simulator.now(), index as u32));
        }
    }
    loop {
        due.sort_unstable_by(|a, b| b.cmp(a));
        let arrival = due.last().map_or(Ns::MAX, |&(at, _)| at);
        let next = simulator.next_event();
        if arrival == Ns::MAX && next == Ns::MAX {
            return if simulator.pending() == 0 { Ok(all) } else { simulator.drain().map(|()| all) };
        }
        if simulator.has_room() && arrival != Ns::MAX && (arrival < next || arrival <= simulator.now()) {
            let (at, job) = due.pop().expect("an arrival is due");
            let request = running[job as usize].request(at, job);
            simulator.submit(&request)?;
        } else {
            simulator.advance(next.min(if simulator.has_room() { arrival } else { Ns::MAX }))?;
        }
        let before = all.len();
        simulator.take_completions(&mut all);
        for completion in &all[before..] {
            let index = completion.request.process as usize;
            let promised = due.iter().filter(|&&(_, job)| job as usize == index).count() as u64;
            if running[index].issued + promised < running[index].job.requests {
                due.push((completion.completed + running[index].job.think_time, index as u32));
            }
        }
    }
}
