//! Block devices and files as targets.
//!
//! [`open`] looks at what there is ([`found`]), asks the guards whether it may be used ([`guard`]), opens it past the page cache
//! and pins the calling thread. Nothing is opened for writing before the guards have agreed.

mod buffers;
mod clock;
mod commands;
mod failure;
mod file;
pub mod found;
pub mod guard;
mod holes;
pub mod identity;
mod pinned;
mod signatures;
mod sync;
mod uring;

pub use found::Found;
pub use pinned::Processor;

use super::{Completed, Operation, Target, TargetError, TargetInfo, TargetKind};
use buffers::Buffers;
use pinned::Pinned;
use planewise_model::{Bytes, Ns, names};
use std::fmt;
use std::fs::File;
use std::str::FromStr;
use sync::Synchronous;
use uring::Uring;

/// Deepest queue.
pub const DEPTH_MAX: u32 = 4096;

/// Longest operation that a target can be opened for.
pub const LONGEST_MAX: Bytes = Bytes(64 << 20);

/// What serves the operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// io_uring, or where the system refuses it, threads.
    #[default]
    Auto,
    /// io_uring or nothing.
    IoUring,
    /// Threads.
    Synchronous,
}

impl Engine {
    /// Engines by name.
    pub const ALL: [(&str, Engine); 3] =
        [("auto", Engine::Auto), ("io_uring", Engine::IoUring), ("synchronous", Engine::Synchronous)];
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Engine::ALL.iter().find(|(_, engine)| engine == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl FromStr for Engine {
    type Err = names::UnknownName;

    fn from_str(text: &str) -> Result<Engine, names::UnknownName> {
        let known = Engine::ALL.iter().find(|(name, _)| *name == text);
        known
            .map(|(_, engine)| *engine)
            .ok_or_else(|| names::unknown("engine", text, Engine::ALL.iter().map(|(name, _)| *name)))
    }
}

/// How to open a device or a file.
#[derive(Clone, Debug)]
pub struct RealOptions {
    /// Whether it is to be written; if not, it is opened so that it cannot be.
    pub writes: bool,
    /// Whether it is to be trimmed, which needs `writes`. A file may then have holes: trims make them.
    pub discards: bool,
    /// The name typed again, which allows to overwrite it.
    pub destroy_data: Option<String>,
    /// What serves it.
    pub engine: Engine,
    /// Where the calling thread runs from now on.
    pub processor: Processor,
    /// Operations under way at a time, 1 to [`DEPTH_MAX`].
    pub depth: u32,
    /// Longest operation, up to [`LONGEST_MAX`].
    pub longest: Bytes,
}

impl Default for RealOptions {
    fn default() -> RealOptions {
        RealOptions {
            writes: false,
            discards: false,
            destroy_data: None,
            engine: Engine::Auto,
            processor: Processor::Here,
            depth: 32,
            // As long as simulated ones take.
            longest: Bytes(1 << 20),
        }
    }
}

/// An open device or file.
pub struct RealTarget {
    inner: Box<dyn Target>,
    found: Found,
    notes: Vec<String>,
    _pinned: Pinned,
}

impl RealTarget {
    /// What was found when it was opened.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// What a user should know of the measurements.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// Opens a block device or a file. Only the calling thread may use it.
///
/// # Errors
/// There is none, it may not be used this way, or the system refuses something: which, why, and what to do.
pub fn open(name: &str, options: &RealOptions) -> Result<RealTarget, TargetError> {
    let unusable = |problem: String| TargetError::Unusable { target: name.to_owned(), problem };
    check(options).map_err(unusable)?;
    let mut found = found::find(name).map_err(unusable)?;
    if options.discards {
        found.hole_that_writing_fills = None;
    }
    guard::check_reading(&found).map_err(unusable)?;
    if options.writes {
        guard::check_writing(&found, options.destroy_data.as_deref()).map_err(unusable)?;
    }
    let file = file::open(&found, options.writes).map_err(unusable)?;
    found.check_same(&file).map_err(unusable)?;
    let buffers = Buffers::new(options.depth, options.longest, options.writes).map_err(|_| {
        unusable(format!("not enough memory for {} operations of {}", options.depth, options.longest))
    })?;
    let block_bytes = file::block_bytes(&file, &found, &buffers).map_err(unusable)?;
    let found = Found { block_bytes, ..found };
    guard::check_reading(&found).map_err(unusable)?;
    let info = TargetInfo {
        name: name.to_owned(),
        kind: match found.kind {
            found::Kind::File => TargetKind::File,
            _ => TargetKind::BlockDevice,
        },
        engine: "synchronous",
        capacity: found.capacity,
        block_bytes,
        longest: options.longest,
        depth: options.depth,
        writable: options.writes,
        identity: found.identity(),
    };
    let mut notes = notes(&found);
    let inner = engine(options.engine, info, file, buffers, &mut notes).map_err(unusable)?;
    // Last, because threads begin with the processors of the one that starts them.
    let pinned = Pinned::new(options.processor).map_err(|error| {
        unusable(format!(
            "--cpu: found {}, and the system says: {error}; allowed: {}here, any",
            options.processor,
            pinned::allowed().map(|numbers| format!("{numbers}, ")).unwrap_or_default()
        ))
    })?;
    Ok(RealTarget { inner, found, notes, _pinned: pinned })
}

fn check(options: &RealOptions) -> Result<(), String> {
    let most = if options.engine == Engine::Synchronous { sync::DEPTH_MAX } else { DEPTH_MAX };
    if !(1..=most).contains(&options.depth) {
        return Err(format!("depth: found {}; allowed: 1 to {most}", options.depth));
    }
    if !(1..=LONGEST_MAX.0).contains(&options.longest.0) {
        return Err(format!("longest operation: found {}; allowed: up to {LONGEST_MAX}", options.longest));
    }
    Ok(())
}

fn notes(found: &Found) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(at) = found.unwritten {
        notes.push(format!(
            "{}: nothing was ever written from byte {at} on, in parts at least: reads there never reach a device",
            found.name
        ));
    }
    if found.rotational == Some(true) {
        notes.push(format!("{}: the system says that it turns: what is measured is no flash", found.name));
    }
    notes
}

fn engine(
    engine: Engine,
    info: TargetInfo,
    file: File,
    buffers: Buffers,
    notes: &mut Vec<String>,
) -> Result<Box<dyn Target>, String> {
    let (file, buffers) = if engine == Engine::Synchronous {
        (file, buffers)
    } else {
        match Uring::new(info.clone(), file, buffers) {
            Ok(uring) => return Ok(Box::new(uring)),
            Err((error, ..)) if engine == Engine::IoUring => {
                return Err(format!(
                    "--engine: found io_uring, which this system refuses ({error}); allowed: auto, synchronous"
                ));
            }
            Err((error, file, buffers)) => {
                notes.push(format!(
                    "{}: io_uring is refused ({error}): threads serve it, which costs some microseconds each time",
                    info.name
                ));
                (file, buffers)
            }
        }
    };
    if info.depth > sync::DEPTH_MAX {
        return Err(format!(
            "depth: found {} without io_uring; allowed: up to {}",
            info.depth,
            sync::DEPTH_MAX
        ));
    }
    let target = Synchronous::new(info, file, buffers)
        .map_err(|error| format!("threads cannot be started: {error}"))?;
    Ok(Box::new(target))
}

impl Target for RealTarget {
    fn info(&self) -> &TargetInfo {
        self.inner.info()
    }

    fn now(&mut self) -> Ns {
        self.inner.now()
    }

    fn submit(&mut self, tag: u32, operation: Operation) -> Result<(), TargetError> {
        self.inner.submit(tag, operation)
    }

    fn wait(&mut self, until: Ns, completed: &mut Vec<Completed>) -> Result<Ns, TargetError> {
        self.inner.wait(until, completed)
    }

    fn flush(&mut self) -> Result<Ns, TargetError> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests;
