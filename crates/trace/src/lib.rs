//! Traces: bytes in, [`Request`]s out.
//!
//! * [`formats`]: one file per format, one line in [`formats::FORMATS`] each. A format turns bytes into raw records and,
//!   where it can, requests back into bytes.
//! * [`input`]: opens plain, gzip and zstd files as one byte stream of known position.
//! * [`pipeline`]: what every format shares: detection, volume filter, re-ordering in a bounded window, rebasing of times.
//! * [`stats`]: the columns of Table II of the GC paper and more, in one pass.
//! * [`synth`]: look-alike volumes from published statistics.

pub mod error;
pub mod formats;
pub mod input;
