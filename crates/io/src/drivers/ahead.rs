//! Reads a source ahead in a thread of its own: decoding a trace must not make its requests late.

use planewise_model::Request;
use planewise_sim::drivers::replay::RequestSource;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::Scope;

/// Requests in a batch, and batches ahead at most: a quarter of a million requests, 12 MB.
const BATCH: usize = 4096;
const BATCHES_AHEAD: usize = 64;

/// Requests that a thread has read ahead.
pub struct Ahead {
    batches: Receiver<Result<Vec<Request>, String>>,
    current: std::vec::IntoIter<Request>,
}

impl Ahead {
    /// Starts the thread, which opens the source itself. It runs on the processors of the calling thread: start it before that is
    /// pinned. It ends when the source does, or when this is dropped.
    pub fn start<'scope, S: RequestSource>(
        scope: &'scope Scope<'scope, '_>,
        open: impl FnOnce() -> Result<S, String> + Send + 'scope,
    ) -> Ahead {
        let (sender, batches) = sync_channel(BATCHES_AHEAD);
        scope.spawn(move || {
            let mut source = match open() {
                Ok(source) => source,
                Err(error) => return drop(sender.send(Err(error))),
            };
            loop {
                let mut batch = Vec::with_capacity(BATCH);
                let read = source.next_batch(&mut batch, BATCH);
                let is_last = !matches!(read, Ok(1..));
                // Nobody listens any more: the run was stopped.
                let is_over = match read {
                    Ok(0) => true,
                    read => sender.send(read.map(|_| batch)).is_err(),
                };
                if is_last || is_over {
                    return;
                }
            }
        });
        Ahead { batches, current: Vec::new().into_iter() }
    }
}

impl RequestSource for Ahead {
    fn next_batch(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, String> {
        if self.current.len() == 0 {
            match self.batches.recv() {
                Ok(read) => self.current = read?.into_iter(),
                // The thread has come to the end of its source.
                Err(_) => return Ok(0),
            }
        }
        let before = batch.len();
        batch.extend(self.current.by_ref().take(limit));
        Ok(batch.len() - before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::{Direction, Lsn, Ns};

    fn read_all(source: &mut dyn RequestSource) -> Result<Vec<u64>, String> {
        let mut batch = Vec::new();
        while source.next_batch(&mut batch, 1000)? > 0 {}
        Ok(batch.iter().map(|request| request.arrival.0).collect())
    }

    #[test]
    fn what_is_read_ahead_is_the_source_and_in_order() {
        let requests = |count| (0..count).map(|n| Request::new(Ns(n), Lsn(n), 8, Direction::Read));
        for count in [0, 1, 4096, 4097, 600_000] {
            let read = std::thread::scope(|scope| read_all(&mut Ahead::start(scope, || Ok(requests(count)))));
            assert_eq!(read, Ok((0..count).collect()));
        }
        // Dropped early, it ends.
        std::thread::scope(|scope| {
            let mut ahead = Ahead::start(scope, || Ok(requests(10_000_000)));
            assert_eq!(ahead.next_batch(&mut Vec::new(), 10), Ok(10));
        });
    }

    #[test]
    fn what_is_wrong_with_the_source_is_told_in_its_place() {
        struct Broken(u32);
        impl RequestSource for Broken {
            fn next_batch(&mut self, batch: &mut Vec<Request>, _limit: usize) -> Result<usize, String> {
                self.0 += 1;
                if self.0 == 3 {
                    return Err("line 17".to_owned());
                }
                batch.push(Request::new(Ns(0), Lsn(0), 8, Direction::Read));
                Ok(1)
            }
        }
        std::thread::scope(|scope| {
            let mut ahead = Ahead::start(scope, || Ok(Broken(0)));
            let mut batch = Vec::new();
            assert_eq!(ahead.next_batch(&mut batch, 10), Ok(1));
            assert_eq!(ahead.next_batch(&mut batch, 10), Ok(1));
            assert_eq!(ahead.next_batch(&mut batch, 10), Err("line 17".to_owned()));
            let mut none = Ahead::start(scope, || Err::<Broken, _>("no such file".to_owned()));
            assert_eq!(none.next_batch(&mut batch, 10), Err("no such file".to_owned()));
        });
    }
}
