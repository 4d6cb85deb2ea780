//! Inputs for the formats that need to jump about in a file: Parquet, and tar archives of per-CPU traces.

use crate::error::TraceError;
use crate::input::Input;
use std::fs::File;
use std::io;

/// The content of an input as a file that can be read at any offset: the file itself when it is a plain one, else (a
/// compressed file, a pipe, bytes in memory) an unnamed temporary file that vanishes with its handle.
///
/// # Errors
/// Reading, decompressing, or writing the temporary file fails.
pub(crate) fn into_file(mut input: Input) -> Result<File, TraceError> {
    let path = input.path().to_owned();
    let failed = |source| TraceError::io(&path, source);
    if input.is_plain_file() {
        return File::open(&path).map_err(failed);
    }
    let mut file = tempfile::tempfile().map_err(failed)?;
    io::copy(&mut input, &mut file).map_err(failed)?;
    Ok(file)
}
