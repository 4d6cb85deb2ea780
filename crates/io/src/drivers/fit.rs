//! Makes a trace fit a target: what of it is left out, folded or widened is asked for and counted, and nothing else changes.

use super::DriverError;
use crate::target::TargetInfo;
use planewise_model::{Direction, Durability, Lsn, Operation, Request, SECTOR_BYTES};
use planewise_sim::SimError;
use planewise_sim::drivers::replay::RequestSource;

/// What may be done to requests that do not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FitOptions {
    /// Fold addresses past the end of the target back to its beginning, `start % blocks`; what then still reaches past the end is
    /// cut off there, as in simulations.
    pub wrap: bool,
    /// Widen requests to whole blocks of the target.
    pub align: bool,
    /// Leave writes out, and with them flushes and discards.
    pub reads_only: bool,
    /// Send flushes, and writes with what they promise about a loss of power, instead of leaving that out.
    pub flushes: bool,
    /// Send discards instead of leaving them out.
    pub discards: bool,
}

/// What was done to requests so that they fit, and how many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fitted {
    /// Requests that remain.
    pub requests: u64,
    /// Of these, writes.
    pub writes: u64,
    /// Bytes that these write.
    pub bytes_written: u64,
    /// Of the requests, discards.
    pub discards: u64,
    /// First sector that any of them writes or discards, and the first behind the last.
    pub written: Option<(u64, u64)>,
    /// Requests that were left out because they write.
    pub writes_left_out: u64,
    /// Flushes that were left out.
    pub flushes_left_out: u64,
    /// Writes that go without the flush or the forced unit access that they were recorded with.
    pub unforced: u64,
    /// Discards that were left out, or that cover no whole block.
    pub discards_left_out: u64,
    /// Requests that were widened to whole blocks.
    pub widened: u64,
    /// Discards that were narrowed to whole blocks.
    pub narrowed: u64,
    /// Requests that were folded.
    pub folded: u64,
    /// Of these, cut off at the end of the target.
    pub cut_at_end: u64,
}

/// Makes requests fit a target.
#[derive(Clone, Debug)]
pub struct Fit {
    target: String,
    options: FitOptions,
    block_sectors: u64,
    /// Of whole blocks.
    sectors: u64,
    writable: bool,
    read: u64,
    done: Fitted,
}

impl Fit {
    /// For a target.
    pub fn new(target: &TargetInfo, options: FitOptions) -> Fit {
        let block_sectors = u64::from(target.block_bytes) / SECTOR_BYTES;
        Fit {
            target: target.name.clone(),
            options,
            block_sectors,
            sectors: target.sectors() / block_sectors * block_sectors,
            writable: target.writable,
            read: 0,
            done: Fitted::default(),
        }
    }

    /// What was done so far.
    pub fn done(&self) -> Fitted {
        self.done
    }

    /// Makes `batch[first..]` fit.
    ///
    /// # Errors
    /// The first request that does not fit as it is and may not be changed, by its number in the trace.
    pub fn apply(&mut self, batch: &mut Vec<Request>, first: usize) -> Result<(), DriverError> {
        let mut kept = first;
        for index in first..batch.len() {
            self.read += 1;
            if let Some(request) = self.fit(batch[index])? {
                batch[kept] = request;
                kept += 1;
            }
        }
        batch.truncate(kept);
        Ok(())
    }

    fn fit(&mut self, mut request: Request) -> Result<Option<Request>, DriverError> {
        let number = self.read;
        let changes = !self.options.reads_only;
        let discards = request.operation == Operation::Discard;
        if request.operation.is_flush() {
            let goes = changes && self.options.flushes;
            *(if goes { &mut self.done.requests } else { &mut self.done.flushes_left_out }) += 1;
            return Ok(goes.then_some(request));
        }
        if discards && !(changes && self.options.discards) {
            self.done.discards_left_out += 1;
            return Ok(None);
        }
        let is_write = request.direction == Direction::Write;
        if is_write && !changes {
            self.done.writes_left_out += 1;
            return Ok(None);
        }
        if request.durability != Durability::Volatile && !self.options.flushes {
            self.done.unforced += 1;
            request.durability = Durability::Volatile;
        }
        if request.sectors == 0 {
            return Err(SimError::Empty { number, start: request.start }.into());
        }
        if request.end().0 > self.sectors {
            self.fold(number, &mut request)?;
        }
        let (start, end) = (request.start.0, request.end().0);
        let down = |sector: u64| sector / self.block_sectors * self.block_sectors;
        let up = |sector: u64| sector.next_multiple_of(self.block_sectors);
        // What is around a discard is not to be forgotten with it.
        let whole = if discards { (up(start), down(end)) } else { (down(start), up(end)) };
        if whole != (start, end) {
            if !self.options.align {
                let (target, block_bytes) =
                    (self.target.clone(), self.block_sectors as u32 * SECTOR_BYTES as u32);
                return Err(DriverError::Misaligned {
                    target,
                    number,
                    start: request.start,
                    end,
                    block_bytes,
                });
            }
            if discards && whole.0 >= whole.1 {
                self.done.discards_left_out += 1;
                return Ok(None);
            }
            *(if discards { &mut self.done.narrowed } else { &mut self.done.widened }) += 1;
            (request.start, request.sectors) = (Lsn(whole.0), (whole.1 - whole.0) as u32);
        }
        if is_write {
            if !self.writable {
                return Err(DriverError::ReadOnly {
                    target: self.target.clone(),
                    number,
                    start: request.start,
                });
            }
            if discards {
                self.done.discards += 1;
            } else {
                self.done.writes += 1;
                self.done.bytes_written += request.bytes().0;
            }
            let (start, end) = self.done.written.unwrap_or((request.start.0, 0));
            self.done.written = Some((start.min(request.start.0), end.max(request.end().0)));
        }
        self.done.requests += 1;
        Ok(Some(request))
    }

    fn fold(&mut self, number: u64, request: &mut Request) -> Result<(), DriverError> {
        if !self.options.wrap || self.sectors == 0 {
            let (start, end) = (request.start, request.end().0);
            return Err(SimError::PastEnd { number, start, end, capacity: self.sectors }.into());
        }
        self.done.folded += 1;
        request.start.0 %= self.sectors;
        let fits = self.sectors - request.start.0;
        if u64::from(request.sectors) > fits {
            self.done.cut_at_end += 1;
            request.sectors = fits as u32;
        }
        Ok(())
    }
}

/// A source of requests made to fit.
pub struct FittedSource<'a> {
    source: &'a mut dyn RequestSource,
    fit: Fit,
}

impl<'a> FittedSource<'a> {
    /// The requests of a source, made to fit.
    pub fn new(source: &'a mut dyn RequestSource, fit: Fit) -> FittedSource<'a> {
        FittedSource { source, fit }
    }

    /// What was done so far.
    pub fn done(&self) -> Fitted {
        self.fit.done()
    }
}

impl RequestSource for FittedSource<'_> {
    fn next_batch(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, String> {
        let first = batch.len();
        // A batch of which nothing is left is not the end.
        while batch.len() == first && self.source.next_batch(batch, limit)? > 0 {
            self.fit.apply(batch, first).map_err(|error| error.to_string())?;
        }
        Ok(batch.len() - first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::TargetKind;
    use planewise_model::{Bytes, Ns};

    fn target(capacity: u64, block_bytes: u32) -> TargetInfo {
        TargetInfo {
            name: "/dev/x".to_owned(),
            kind: TargetKind::BlockDevice,
            engine: "io_uring",
            capacity: Bytes(capacity),
            block_bytes,
            longest: Bytes(1 << 20),
            depth: 4,
            writable: false,
            identity: None,
        }
    }

    fn fitted(
        fit: &mut Fit,
        start: u64,
        sectors: u32,
        direction: Direction,
    ) -> Result<Vec<(u64, u32)>, String> {
        let mut batch = vec![Request::new(Ns(5), Lsn(start), sectors, direction)];
        fit.apply(&mut batch, 0).map_err(|error| error.to_string())?;
        Ok(batch.iter().map(|request| (request.start.0, request.sectors)).collect())
    }

    #[test]
    fn what_does_not_fit_is_refused_by_number_and_size() {
        let fit = || Fit::new(&target(1 << 20, 4096), FitOptions::default());
        let read = |start, sectors| fitted(&mut fit(), start, sectors, Direction::Read);
        assert_eq!(read(2040, 8), Ok(vec![(2040, 8)]));
        let error = read(2041, 8).unwrap_err();
        assert!(
            error.contains("request 1 ") && error.contains("2041..2049") && error.contains("sector 2048"),
            "{error}"
        );
        let error = read(7, 2).unwrap_err();
        assert!(error.contains("7..9") && error.contains("whole blocks of 4096"), "{error}");
        assert!(read(0, 0).unwrap_err().contains("length 0"));
        let error = fitted(&mut fit(), 0, 8, Direction::Write).unwrap_err();
        assert!(error.contains("writes at sector 0") && error.contains("opened for reading"), "{error}");
    }

    #[test]
    fn what_is_asked_for_is_done_and_counted() {
        let options = FitOptions { wrap: true, align: true, reads_only: true, ..FitOptions::default() };
        // A file whose last block is not whole: that part is never used.
        let mut fit = Fit::new(&target((1 << 20) + 512, 4096), options);
        assert_eq!(fitted(&mut fit, 7, 2, Direction::Read), Ok(vec![(0, 16)]));
        assert_eq!(fitted(&mut fit, 2048 + 16, 8, Direction::Read), Ok(vec![(16, 8)]));
        assert_eq!(fitted(&mut fit, 2048, 1, Direction::Read), Ok(vec![(0, 8)]));
        assert_eq!(fitted(&mut fit, 2044, 100, Direction::Read), Ok(vec![(2040, 8)]));
        assert_eq!(fitted(&mut fit, 0, 8, Direction::Write), Ok(vec![]));
        let mut commands = vec![Request::flush(Ns(5)), Request::discard(Ns(5), Lsn(0), 8)];
        fit.apply(&mut commands, 0).unwrap();
        assert!(commands.is_empty());
        let expected = Fitted {
            requests: 4,
            widened: 3,
            folded: 3,
            cut_at_end: 1,
            writes_left_out: 1,
            flushes_left_out: 1,
            discards_left_out: 1,
            ..Fitted::default()
        };
        assert_eq!(fit.done(), expected);
    }

    #[test]
    fn flushes_and_discards_go_where_they_are_asked_for_and_a_discard_never_grows() {
        let writable = TargetInfo { writable: true, ..target(1 << 20, 4096) };
        let options = FitOptions { align: true, flushes: true, discards: true, ..FitOptions::default() };
        let forced = Request {
            durability: Durability::ForceUnitAccess,
            ..Request::new(Ns(5), Lsn(8), 8, Direction::Write)
        };
        let discard = |start, sectors| Request::discard(Ns(5), Lsn(start), sectors);
        let trace = vec![Request::flush(Ns(5)), forced, discard(7, 18), discard(1, 3), discard(16, 8)];
        let fitted = |target: &TargetInfo, options| {
            let (mut fit, mut batch) = (Fit::new(target, options), trace.clone());
            fit.apply(&mut batch, 0).map(|()| (batch, fit.done())).map_err(|error| error.to_string())
        };
        let (batch, done) = fitted(&writable, options).unwrap();
        assert_eq!(batch, [Request::flush(Ns(5)), forced, discard(8, 16), discard(16, 8)]);
        let expected = Fitted {
            requests: 4,
            writes: 1,
            bytes_written: 4096,
            discards: 2,
            written: Some((8, 24)),
            narrowed: 1,
            discards_left_out: 1,
            ..Fitted::default()
        };
        assert_eq!(done, expected);
        let (batch, done) = fitted(&writable, FitOptions { align: true, ..FitOptions::default() }).unwrap();
        assert_eq!(batch, [Request::new(Ns(5), Lsn(8), 8, Direction::Write)]);
        assert_eq!((done.flushes_left_out, done.unforced, done.discards_left_out), (1, 1, 3));
        // Opened for reading, a target takes a flush and nothing that changes it.
        let reading = target(1 << 20, 4096);
        let mut batch = vec![Request::flush(Ns(5))];
        assert!(Fit::new(&reading, options).apply(&mut batch, 0).is_ok() && batch.len() == 1);
        let error = Fit::new(&reading, options).apply(&mut vec![discard(0, 8)], 0).unwrap_err().to_string();
        assert!(error.contains("sector 0") && error.contains("opened for reading"), "{error}");
    }
}
