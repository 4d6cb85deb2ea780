//! What the tests of the formats share.

use super::{Format, ReadOptions};
use crate::error::TraceError;
use crate::input::Input;
use planewise_model::{Direction, Request};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// All that a reader says about a trace.
#[derive(Debug)]
pub(crate) struct Trace {
    pub requests: Vec<Request>,
    pub volumes: Vec<String>,
    pub warnings: Vec<String>,
}

impl Trace {
    /// Share of writes in percent.
    pub fn write_percent(&self) -> f64 {
        let writes = self.requests.iter().filter(|request| request.moves_to_device()).count();
        100.0 * writes as f64 / self.requests.iter().filter(|request| request.is_transfer()).count() as f64
    }

    /// Mean size of one direction's requests in KiB.
    pub fn mean_kib(&self, direction: Direction) -> f64 {
        let of = || self.requests.iter().filter(|request| request.direction == direction);
        of().map(|request| request.bytes().0 as f64).sum::<f64>() / 1024.0 / of().count() as f64
    }

    /// From the earliest arrival to the latest, in seconds.
    pub fn span_seconds(&self) -> f64 {
        let times = || self.requests.iter().map(|request| request.arrival);
        times().max().unwrap().saturating_sub(times().min().unwrap()).as_secs_f64()
    }
}

/// Reads an input to its end.
pub(crate) fn read_input(format: &Format, input: Input, options: &ReadOptions) -> Result<Trace, TraceError> {
    let mut reader = (format.open)(input, options)?;
    let mut requests = Vec::new();
    // A batch of odd size, so that its borders fall everywhere.
    while reader.read(&mut requests, 997)? > 0 {}
    Ok(Trace { requests, volumes: reader.volume_names().to_vec(), warnings: reader.warnings() })
}

/// Reads bytes.
pub(crate) fn read_bytes(format: &Format, bytes: &[u8]) -> Result<Trace, TraceError> {
    read_input(format, Input::from_bytes("test", bytes.to_vec()), &ReadOptions::default())
}

/// Reads bytes with a choice of event.
pub(crate) fn read_event(format: &Format, bytes: &[u8], event: &str) -> Result<Trace, TraceError> {
    let options = ReadOptions { event: Some(event.to_owned()), ..ReadOptions::default() };
    read_input(format, Input::from_bytes("test", bytes.to_vec()), &options)
}

/// A shared trace, or `None` (and a line that says so) on machines without it.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("PLANEWISE_TRACES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces"), PathBuf::from);
    let path = folder.join(name);
    if !path.exists() {
        println!("skipped: no {}", path.display());
        return None;
    }
    Some(path)
}

/// Reads a shared trace, where there is one.
pub(crate) fn read_shared(format: &Format, name: &str, event: Option<&str>) -> Option<Trace> {
    let options = ReadOptions { event: event.map(str::to_owned), ..ReadOptions::default() };
    shared(name).map(|path| read_input(format, Input::open(&path).unwrap(), &options).unwrap())
}

/// A sink whose bytes can be looked at afterwards.
#[derive(Clone, Default)]
pub(crate) struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes requests in a format.
pub(crate) fn write_all(format: &Format, requests: &[Request]) -> Result<Vec<u8>, TraceError> {
    let sink = Sink::default();
    let mut writer = (format.create.unwrap())(Box::new(sink.clone()), Path::new("test"))?;
    requests.iter().try_for_each(|request| writer.write(request))?;
    writer.finish()?;
    Ok(std::mem::take(&mut *sink.0.lock().unwrap()))
}

/// Every prefix of `bytes`, and every single byte changed, through detection and reading: errors are fine, panics fail.
pub(crate) fn mutilate(format: &Format, bytes: &[u8]) {
    for length in 0..=bytes.len() {
        let _ = (format.detect)(&bytes[..length], true);
        let _ = (format.detect)(&bytes[..length], false);
        let _ = read_bytes(format, &bytes[..length]);
    }
    let mut changed = bytes.to_vec();
    for place in 0..bytes.len() {
        for value in [0, b' ', b'9', 0xff] {
            changed[place] = value;
            let _ = (format.detect)(&changed, true);
            let _ = read_bytes(format, &changed);
        }
        changed[place] = bytes[place];
    }
}

/// What is known of a shared trace, to the precision of its list.
pub(crate) struct Expected {
    requests: usize,
    write_percent: f64,
    read_kib: f64,
    write_kib: f64,
    span_seconds: f64,
}

impl Expected {
    pub const fn new(
        requests: usize,
        write_percent: f64,
        read_kib: f64,
        write_kib: f64,
        span_seconds: f64,
    ) -> Expected {
        Expected { requests, write_percent, read_kib, write_kib, span_seconds }
    }

    /// Compares in the digits that the list prints; sizes of 0 requests are not compared.
    pub fn check(&self, trace: &Trace, name: &str) {
        assert_eq!(trace.requests.len(), self.requests, "{name}");
        let near = |found: f64, expected: f64, tolerance: f64, what: &str| {
            assert!((found - expected).abs() <= tolerance, "{name}: {what} {found}, expected {expected}");
        };
        near(trace.write_percent(), self.write_percent, 0.06, "writes");
        near(trace.mean_kib(Direction::Read), self.read_kib, 0.06, "read KiB");
        near(trace.mean_kib(Direction::Write), self.write_kib, 0.06, "write KiB");
        let digits = if self.span_seconds < 1.0 {
            0.001
        } else if self.span_seconds < 100.0 {
            0.06
        } else {
            1.0
        };
        near(trace.span_seconds(), self.span_seconds, digits, "span");
    }
}

/// Requests of several volumes at times that are multiples of `step_ns`, all different in every field.
pub(crate) fn sample(count: u64, step_ns: u64) -> Vec<Request> {
    (0..count)
        .map(|n| Request {
            process: n as u32 % 7,
            volume: n as u32 % 5,
            response: (n % 3 != 0).then_some(planewise_model::Ns(n * 100)),
            ..Request::new(
                planewise_model::Ns(n * n * step_ns),
                planewise_model::Lsn(n * 104_729),
                n as u32 % 1_000 + 1,
                Direction::ALL[n as usize * 7 / 3 % 2],
            )
        })
        .collect()
}
