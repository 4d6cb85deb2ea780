//! Traces: bytes in, [`Request`](planewise_model::Request)s out.
//!
//! * [`formats`]: one file per format, one line in [`formats::FORMATS`] each. A format turns bytes into raw records and,
//!   where it can, requests back into bytes.
//! * [`input`]: opens plain, gzip and zstd files as one byte stream of known position.

pub mod error;
pub mod formats;
pub mod input;
mod text;
