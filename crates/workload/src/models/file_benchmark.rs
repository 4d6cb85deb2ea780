//! The multithreaded file benchmark of the PASS paper, section 4.1: threads that read and write at random in a file each.

use super::files::{File, lay_out};
use super::{Parameters, Wrong};
use crate::values::percent;
use crate::{Group, Io, Step, Workload};
use planewise_model::rng::{Generator, generator};
use planewise_model::{Direction, Durability, Lsn, Ns, Request};
use rand::RngExt;

struct FileBenchmark {
    groups: [Group; 1],
    threads: Vec<Thread>,
    block: u64,
    reads: f64,
    requests: u64,
    think: Ns,
    /// What the acknowledgement of a write promises: with flushes that of a file opened with O_SYNC.
    durability: Durability,
}

struct Thread {
    file: File,
    random: Generator,
    issued: u64,
    in_flight: bool,
    ready_at: Ns,
}

pub(super) fn build(of: &Parameters<'_>, device_bytes: u64, seed: u64) -> Result<Box<dyn Workload>, Wrong> {
    let threads = of.count("threads", 1, 4096)?;
    let block = of.size("block_size")?;
    let size = of.size("file_size")?;
    if size < block || block > 1 << 30 {
        return Err(("block_size", format!("up to file_size and 1g; found {block} bytes")));
    }
    let laid = lay_out(
        device_bytes,
        &vec![size; threads as usize],
        of.size("extent")?,
        of.number("spread", 0.0, 1.0)?,
        0,
    )
    .map_err(|allowed| ("file_size", format!("{allowed}; found {threads} files of {size} bytes")))?;
    let thread = |(index, file)| Thread {
        file,
        random: generator(seed, &format!("file benchmark thread {index}")),
        issued: 0,
        in_flight: false,
        ready_at: Ns::ZERO,
    };
    Ok(Box::new(FileBenchmark {
        groups: [Group { name: "threads".to_owned(), processes: threads as u32, background: false }],
        threads: laid.files.into_iter().enumerate().map(thread).collect(),
        block,
        reads: of.get("read_percent", percent)?,
        requests: of.count("requests", 1, u64::MAX >> 16)?,
        think: of.get("think_time", crate::values::time_us)?,
        durability: Durability::of(false, of.switch("flushes")?),
    }))
}

impl Workload for FileBenchmark {
    fn groups(&self) -> &[Group] {
        &self.groups
    }

    fn next(&mut self, process: u32, now: Ns) -> Step {
        let thread = &mut self.threads[process as usize];
        if thread.in_flight {
            return Step::Wait;
        }
        if thread.issued == self.requests {
            return Step::Done;
        }
        if now < thread.ready_at {
            return Step::WaitUntil(thread.ready_at);
        }
        thread.issued += 1;
        thread.in_flight = true;
        let read = thread.random.random::<f64>() * 100.0 < self.reads;
        let block = thread.random.random_range(0..thread.file.size / self.block);
        let start = Lsn(thread.file.at(block * self.block) / 512);
        let direction = if read { Direction::Read } else { Direction::Write };
        let durability = if read { Durability::Volatile } else { self.durability };
        Step::Submit(Io { durability, ..Io::transfer(start, (self.block / 512) as u32, direction, true) })
    }

    fn completed(&mut self, process: u32, _request: &Request, now: Ns) {
        let thread = &mut self.threads[process as usize];
        thread.in_flight = false;
        thread.ready_at = now + self.think;
    }

    fn total_requests(&self) -> Option<u64> {
        Some(self.requests * self.threads.len() as u64)
    }
}
