//! Adds up lateness beside the drive's thread: a summary of a distribution takes half a millisecond, in which no answer would leave.

use crate::lateness::{Lateness, Summary};
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// An answer.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Whether it had to wait for the host's disk.
    pub is_flush: bool,
    /// How late it was.
    pub late: Duration,
    /// What the drive took, in wall time.
    pub latency: Duration,
}

/// Samples are handed over in such numbers: waking the clerk for each would cost more than the answer.
const BATCH: usize = 1024;

/// What was added up: reads and writes, and flushes.
pub type Sums = (Summary, Summary);

enum Message {
    Samples(Vec<Sample>),
    Look(Box<dyn FnOnce(Sums) + Send>),
}

/// The drive's end of it.
pub struct Clerk {
    samples: Vec<Sample>,
    to: Option<Sender<Message>>,
    thread: Option<JoinHandle<Sums>>,
}

impl Clerk {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> io::Result<Clerk> {
        let (to, from) = channel();
        let thread = std::thread::Builder::new().name("lateness".into()).spawn(move || add_up(&from))?;
        Ok(Clerk { samples: Vec::with_capacity(BATCH), to: Some(to), thread: Some(thread) })
    }

    /// Takes note of an answer.
    pub fn record(&mut self, sample: Sample) {
        self.samples.push(sample);
        if self.samples.len() == BATCH {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let samples = std::mem::replace(&mut self.samples, Vec::with_capacity(BATCH));
        self.say(Message::Samples(samples));
    }

    fn say(&self, message: Message) {
        if let Some(to) = &self.to {
            // It hears until it is told that this is all.
            let _ = to.send(message);
        }
    }

    /// Calls back, from another thread, with what was recorded up to now.
    pub fn look(&mut self, back: impl FnOnce(Sums) + Send + 'static) {
        self.hand_over();
        self.say(Message::Look(Box::new(back)));
    }

    /// What was recorded in all.
    ///
    /// # Panics
    /// Where its thread did.
    pub fn finish(&mut self) -> Sums {
        self.hand_over();
        self.to = None;
        let thread = self.thread.take().expect("there until now");
        thread.join().expect("the clerk does not panic")
    }
}

fn add_up(from: &Receiver<Message>) -> Sums {
    let (mut transfers, mut flushes) = (Lateness::default(), Lateness::default());
    for message in from {
        match message {
            Message::Samples(samples) => {
                for Sample { is_flush, late, latency } in samples {
                    let class = if is_flush { &mut flushes } else { &mut transfers };
                    class.record(late, latency);
                }
            }
            Message::Look(back) => back((transfers.summary(), flushes.summary())),
        }
    }
    (transfers.summary(), flushes.summary())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_up_to_a_look_is_in_it_and_everything_at_the_end() {
        let mut clerk = Clerk::new().unwrap();
        let sample = |number: u64| Sample {
            is_flush: number.is_multiple_of(10),
            late: Duration::from_nanos(number),
            latency: Duration::from_micros(5),
        };
        (0..2500).for_each(|number| clerk.record(sample(number)));
        let (sender, receiver) = channel();
        clerk.look(move |sums| sender.send(sums).unwrap());
        (2500..2600).for_each(|number| clerk.record(sample(number)));
        let (transfers, flushes) = receiver.recv().unwrap();
        assert_eq!((transfers.count, flushes.count, transfers.late.max), (2250, 250, 2499));
        let (transfers, flushes) = clerk.finish();
        assert_eq!((transfers.count, flushes.count, transfers.late.max), (2340, 260, 2599));
    }
}
