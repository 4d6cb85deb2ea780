//! What a run says to its reader: a table for the terminal, `results.json` for programs, one HTML page for people.
//!
//! The one input is [`planewise_sim::results::Results`]; nothing here measures. Of the
//! simulator only the table of collection schemes is asked: which of them is a bound.
//!
//! The page's plots are inline SVG drawn by [`plot`], a few hundred lines of Rust. A vendored plotting library in script was the
//! alternative: it would add about a megabyte to every report, need a script to run before anything shows, and print badly.
//! Static SVG opens offline anywhere, follows the reader's light or dark setting by style sheet, can be read by screen readers,
//! and is the same bytes for the same results.

pub mod bench;
mod commands;
pub mod directory;
pub mod error;
pub mod format;
mod guest;
pub mod html;
pub mod json;
pub mod names;
pub mod outside;
pub mod overload;
pub mod plot;
pub mod probe;
pub mod single;
pub mod study;
pub mod summary;
pub mod sweep;
pub mod table;

pub use bench::bench;
pub use directory::{Overwrite, RunDirectory, write_run_directory};
pub use error::ReportError;
pub use guest::guest;
pub use html::html;
pub use html::{GUEST_COMMAND, quoted};
pub use json::json;
pub use outside::replay;
pub use single::single;
pub use table::{Style, comparison};

#[cfg(test)]
mod samples;
