//! `planewise trace cut`: a part of a trace.

use crate::arguments::CutArguments;
use crate::failure::Failure;
use std::sync::atomic::AtomicBool;

/// stand-in
pub fn execute(_: &CutArguments, _: &AtomicBool) -> Result<(), Failure> {
    Ok(())
}
