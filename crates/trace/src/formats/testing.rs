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
        let writes = self.requests.iter().filter(|request| request.direction == Direction::Write).count();
        100.0 * writes as f64 / self.requests.len() as f64
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
