//! Traces: bytes in, [`Request`](planewise_model::Request)s out.
//!
//! * [`formats`]: one file per format, one line in [`formats::FORMATS`] each. A format turns bytes into raw records and,
//!   where it can, requests back into bytes.
//! * [`input`]: opens plain, gzip and zstd files as one byte stream of known position.
//! * [`pipeline`]: what every format shares: detection, choice of a volume, re-ordering in a bounded window, times from 0.
//! * [`stats`]: what a trace is like, in one pass.
//! * [`synth`]: streams of requests that measure as published volumes do.
//! * [`transform`]: cut a part out, scale time, fold onto a device.

pub mod error;
pub mod formats;
pub mod input;
pub mod pipeline;
pub mod stats;
pub mod synth;
mod text;
pub mod transform;
mod words;

pub use error::TraceError;
pub use pipeline::{Trace, TraceOptions};
