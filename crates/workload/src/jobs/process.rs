//! The processes of jobs at work.

use super::check::{Job, Kind, Share, Sizes};
use super::offsets::{Places, happens};
use crate::{Group, Io, Step, Workload};
use planewise_model::rng::{Generator, generator};
use planewise_model::{Durability, Lsn, Ns, Operation, Request};
use rand::RngExt;

/// Jobs side by side or, behind a stonewall, one after another.
pub struct Jobs {
    groups: Vec<Group>,
    jobs: Vec<Job>,
    processes: Vec<Process>,
    /// The stage that runs: jobs from one stonewall to the next.
    stage: u32,
    /// Processes by stage that are not done yet.
    unfinished: Vec<u32>,
    woken: Vec<u32>,
}

struct Process {
    job: u32,
    stage: u32,
    random: Generator,
    places: Places,
    /// First byte of its area.
    area: u64,
    /// When it started; it has not before.
    started: Option<Ns>,
    in_flight: u32,
    issued: u64,
    issued_bytes: u64,
    /// Bytes and requests issued by kind, for rates.
    by_kind: [(u64, u64); 3],
    /// Offset behind the last request of each kind.
    behind: [u64; 3],
    /// Offset and bytes of the last trim, which is to be written.
    trimmed: Option<(u64, u64)>,
    /// Writes of the process, and whether any came since the last flush.
    writes: u64,
    is_dirty: bool,
    /// A flush that is due, and whether one is under way: nothing else is issued then.
    flush_due: Option<Operation>,
    is_flushing: bool,
    /// Requests still to come one behind the other before the next random offset.
    run_left: u64,
    /// Completions since the last pause, and when the pause ends.
    completed: u64,
    think_until: Ns,
    /// A kind that was drawn and waits for its rate.
    drawn: Option<Kind>,
    done: bool,
}

impl Jobs {
    /// The processes of jobs, with a seed of the run.
    pub fn new(jobs: Vec<Job>, seed: u64) -> Jobs {
        let mut processes = Vec::new();
        let mut unfinished = vec![0];
        for (index, job) in jobs.iter().enumerate() {
            if job.stonewall && index > 0 {
                unfinished.push(0);
            }
            let stage = unfinished.len() - 1;
            unfinished[stage] += job.processes;
            for clone in 0..job.processes {
                let purpose = format!("job {index} process {clone} of randseed {}", job.seed);
                let mut random = generator(seed, &purpose);
                let count = (job.size - u64::from(job.smallest())) / u64::from(job.align) + 1;
                processes.push(Process {
                    job: index as u32,
                    stage: stage as u32,
                    places: Places::new(count, job.distribution, job.each_once, job.seed, &mut random),
                    random,
                    area: job.offset + u64::from(clone) * job.offset_increment,
                    started: None,
                    in_flight: 0,
                    issued: 0,
                    issued_bytes: 0,
                    by_kind: [(0, 0); 3],
                    behind: [0; 3],
                    trimmed: None,
                    writes: 0,
                    is_dirty: false,
                    flush_due: None,
                    is_flushing: false,
                    run_left: 0,
                    completed: 0,
                    think_until: Ns::ZERO,
                    drawn: None,
                    done: false,
                });
            }
        }
        let group = |job: &Job| Group { name: job.name.clone(), processes: job.processes, background: false };
        let groups = jobs.iter().map(group).collect();
        Jobs { groups, jobs, processes, stage: 0, unfinished, woken: Vec::new() }
    }

    /// A process has nothing more to do; behind the last one of a stage the next stage starts.
    fn finish(&mut self, process: u32) -> Step {
        let this = &mut self.processes[process as usize];
        if !std::mem::replace(&mut this.done, true) {
            let stage = self.stage as usize;
            self.unfinished[stage] -= 1;
            if self.unfinished[stage] == 0 && stage + 1 < self.unfinished.len() {
                self.stage += 1;
                let next = self.processes.iter().enumerate().filter(|(_, other)| other.stage == self.stage);
                // Taken from the end: the first process comes first.
                self.woken.extend(next.map(|(index, _)| index as u32).rev());
            }
        }
        Step::Done
    }
}

impl Workload for Jobs {
    fn groups(&self) -> &[Group] {
        &self.groups
    }

    fn next(&mut self, process: u32, now: Ns) -> Step {
        let this = &mut self.processes[process as usize];
        if this.stage > self.stage {
            return Step::Wait;
        }
        let job = &self.jobs[this.job as usize];
        let begin = *this.started.get_or_insert(now) + job.delay;
        if now < begin {
            return Step::WaitUntil(begin);
        }
        let end = job.runtime.map_or(Ns::MAX, |runtime| begin + job.ramp_time + runtime);
        let has_time = now < end;
        if this.is_flushing {
            return Step::Wait;
        }
        if let Some(flush) = this.flush_due.filter(|_| has_time) {
            // A flush keeps what is complete: what is under way would be left out.
            return if this.in_flight > 0 { Step::Wait } else { this.flush(flush) };
        }
        let has_more = this.issued < job.requests && this.issued_bytes < job.bytes;
        if !(has_time && (has_more || this.trimmed.is_some())) {
            // What is in flight belongs to the job: those behind a stonewall wait for it.
            return match this.in_flight {
                0 if job.end_fsync && this.is_dirty => this.flush(Operation::FlushWithMetadata),
                0 => self.finish(process),
                _ => Step::Wait,
            };
        }
        if this.in_flight >= job.depth {
            return Step::Wait;
        }
        if now < this.think_until {
            return Step::WaitUntil(this.think_until.min(end));
        }
        let kind = this.kind(job);
        let at = begin + this.pace(job, kind);
        if now < at {
            this.drawn = Some(kind);
            return Step::WaitUntil(at.min(end));
        }
        Step::Submit(this.io(job, kind))
    }

    fn completed(&mut self, process: u32, request: &Request, now: Ns) {
        let this = &mut self.processes[process as usize];
        let (pause, every) = self.jobs[this.job as usize].think;
        this.in_flight -= 1;
        if request.operation.is_flush() {
            this.is_flushing = false;
            return;
        }
        this.completed += 1;
        if pause > Ns::ZERO && this.completed == every {
            this.completed = 0;
            this.think_until = now + pause;
        }
    }

    fn take_woken(&mut self) -> Option<u32> {
        self.woken.pop()
    }

    fn ramp_time(&self) -> Ns {
        self.jobs.iter().map(|job| job.ramp_time).max().unwrap_or(Ns::ZERO)
    }

    fn total_requests(&self) -> Option<u64> {
        self.jobs.iter().try_fold(0u64, |total, job| total.checked_add(requests(job)?))
    }
}

/// Requests of all processes of a job, flushes included, where that is known beforehand.
fn requests(job: &Job) -> Option<u64> {
    let first = match job.share {
        Share::Only(kind) => kind,
        Share::Reads(_) => Kind::Read,
        Share::TrimWrites => Kind::Trim,
    };
    let Sizes::Fixed(size) = job.sizes[first.index()] else { return None };
    let of_kind = job.requests.min(job.bytes.div_ceil(u64::from(size)));
    if job.runtime.is_some() || of_kind == u64::MAX {
        return None;
    }
    let flushes = match (job.share, job.fsync, job.fdatasync) {
        (_, None, None) | (Share::Only(Kind::Read | Kind::Trim), ..) => 0,
        (Share::Only(Kind::Write) | Share::TrimWrites, Some(every), None)
        | (Share::Only(Kind::Write) | Share::TrimWrites, None, Some(every)) => of_kind / every,
        // How many writes are drawn, or how often two periods meet, is not worth a look ahead.
        _ => return None,
    };
    let each = if job.share == Share::TrimWrites { of_kind.checked_mul(2)? } else { of_kind };
    each.checked_add(flushes)?.checked_mul(u64::from(job.processes)).filter(|total| *total < u64::MAX)
}

impl Process {
    fn kind(&mut self, job: &Job) -> Kind {
        match (self.drawn.take(), job.share) {
            (Some(drawn), _) => drawn,
            (None, Share::Only(kind)) => kind,
            (None, Share::Reads(percent)) if happens(percent, &mut self.random) => Kind::Read,
            (None, Share::Reads(_)) => Kind::Write,
            (None, Share::TrimWrites) if self.trimmed.is_some() => Kind::Write,
            (None, Share::TrimWrites) => Kind::Trim,
        }
    }

    fn flush(&mut self, operation: Operation) -> Step {
        (self.flush_due, self.is_flushing, self.is_dirty) = (None, true, false);
        self.in_flight += 1;
        Step::Submit(Io::flush(operation))
    }

    /// Counts a write, behind which a flush may be due.
    fn note_write(&mut self, job: &Job) {
        self.writes += 1;
        self.is_dirty = true;
        let is_due = |every: Option<u64>| every.is_some_and(|every| self.writes.is_multiple_of(every));
        self.flush_due = if is_due(job.fsync) {
            Some(Operation::FlushWithMetadata)
        } else {
            is_due(job.fdatasync).then_some(Operation::Flush)
        };
    }

    /// Time since the start before which the rates allow no further request of a kind.
    fn pace(&self, job: &Job, kind: Kind) -> Ns {
        let (bytes, requests) = self.by_kind[kind.index()];
        let after = |amount: u64, rate: Option<u64>| {
            // A rate of next to nothing is for ever: the run ends at its runtime, or at the end of model time.
            let most = u128::from(u64::MAX >> 2);
            rate.map_or(0, |rate| (u128::from(amount) * 1_000_000_000 / u128::from(rate)).min(most) as u64)
        };
        let (byte_rate, request_rate) = job.rates[kind.index()];
        Ns(after(bytes, byte_rate).max(after(requests, request_rate)))
    }

    fn io(&mut self, job: &Job, kind: Kind) -> Io {
        let (offset, size) = match self.trimmed.take() {
            // What was trimmed is written, and counted already.
            Some(place) => place,
            None => {
                let size = u64::from(self.size(&job.sizes[kind.index()]));
                let offset = self.offset(job, kind, size);
                self.behind[kind.index()] = offset + size;
                self.issued += 1;
                self.issued_bytes += size;
                self.trimmed = (job.share == Share::TrimWrites).then_some((offset, size));
                (offset, size)
            }
        };
        self.in_flight += 1;
        let (bytes, requests) = &mut self.by_kind[kind.index()];
        (*bytes, *requests) = (*bytes + size, *requests + 1);
        if kind == Kind::Write {
            self.note_write(job);
        }
        let synchronous = kind != Kind::Write || job.synchronous_writes;
        let (start, sectors) = (Lsn((self.area + offset) / 512), (size / 512) as u32);
        Io {
            operation: if kind == Kind::Trim { Operation::Discard } else { Operation::Transfer },
            durability: if kind == Kind::Write { job.durability } else { Durability::Volatile },
            ..Io::transfer(start, sectors, kind.direction(), synchronous)
        }
    }

    fn size(&mut self, sizes: &Sizes) -> u32 {
        match sizes {
            Sizes::Fixed(size) => *size,
            Sizes::Range(low, high) => low * self.random.random_range(1..=high / low),
            Sizes::Split(parts) => {
                let share = self.random.random::<f64>() * 100.0;
                parts.iter().find(|part| share < part.below).or(parts.last()).map_or(512, |part| part.size)
            }
        }
    }

    /// Offset in its area, in bytes.
    fn offset(&mut self, job: &Job, kind: Kind, size: u64) -> u64 {
        let last = job.size - size;
        let next = self.behind[kind.index()];
        if !job.random {
            let next = if next == 0 { 0 } else { next + job.gap };
            return if next <= last { next } else { 0 };
        }
        if self.run_left > 0 {
            self.run_left -= 1;
            if next <= last {
                return next;
            }
        } else if !happens(job.percentage_random[kind.index()], &mut self.random) {
            return if next <= last { next } else { 0 };
        } else {
            self.run_left = job.run - 1;
        }
        let place = self.places.next(&mut self.random) * u64::from(job.align);
        // A request larger than the smallest may not fit behind the last places.
        if place <= last { place } else { last / u64::from(job.align) * u64::from(job.align) }
    }
}
