//! A fixed processor for the thread that measures.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::fmt;
use std::io;
use std::num::ParseIntError;
use std::str::FromStr;

/// Where the measuring thread runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Processor {
    /// Where it happens to be when the target is opened, and there it stays: a thread that moves finds its caches empty.
    #[default]
    Here,
    /// This one.
    Number(u32),
    /// Wherever the system puts it.
    Any,
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Processor::Here => f.write_str("here"),
            Processor::Number(number) => write!(f, "{number}"),
            Processor::Any => f.write_str("any"),
        }
    }
}

/// Numbers of the processors that this process may run on, as ranges: `0-3, 8`.
pub fn allowed() -> io::Result<String> {
    let set = sched_getaffinity(None)?;
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in (0..CpuSet::MAX_CPU).filter(|number| set.is_set(*number)) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    Ok(ranges.iter().map(text).collect::<Vec<_>>().join(", "))
}

impl FromStr for Processor {
    type Err = String;

    fn from_str(text: &str) -> Result<Processor, String> {
        match text {
            "here" => Ok(Processor::Here),
            "any" => Ok(Processor::Any),
            _ => text.parse().map(Processor::Number).map_err(|_: ParseIntError| {
                "allowed: the number of a processor, here (the one it runs on), or any".to_owned()
            }),
        }
    }
}

/// The calling thread on its processor until this is dropped, which must be on the same thread.
pub struct Pinned {
    before: Option<CpuSet>,
    _not_send: std::marker::PhantomData<*const ()>,
}

impl Pinned {
    /// Pins the calling thread.
    ///
    /// # Errors
    /// There is no such processor, or the thread must not run there.
    pub fn new(processor: Processor) -> io::Result<Pinned> {
        let number = match processor {
            Processor::Any => return Ok(Pinned { before: None, _not_send: std::marker::PhantomData }),
            Processor::Here => sched_getcpu(),
            Processor::Number(number) => number as usize,
        };
        if number >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let before = sched_getaffinity(None)?;
        let mut only = CpuSet::new();
        only.set(number);
        sched_setaffinity(None, &only)?;
        Ok(Pinned { before: Some(before), _not_send: std::marker::PhantomData })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // It was allowed before; if it is not any more, staying here does no harm.
            let _ = sched_setaffinity(None, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_pinned_for_as_long_as_it_measures() {
        std::thread::spawn(|| {
            let before = sched_getaffinity(None).unwrap().count();
            let pinned = Pinned::new(Processor::Here).unwrap();
            assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
            drop(pinned);
            assert_eq!(sched_getaffinity(None).unwrap().count(), before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_processor_is_a_number_or_a_word() {
        assert_eq!("3".parse(), Ok(Processor::Number(3)));
        assert_eq!("here".parse(), Ok(Processor::Here));
        assert_eq!("any".parse(), Ok(Processor::Any));
        for text in ["3", "here", "any"] {
            assert_eq!(text.parse::<Processor>().unwrap().to_string(), text);
        }
        assert!("-1".parse::<Processor>().unwrap_err().contains("allowed"));
        assert!(Pinned::new(Processor::Number(4_000_000_000)).is_err());
    }
}
