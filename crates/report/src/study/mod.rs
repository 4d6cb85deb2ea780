//! What `planewise reproduce` writes: a page for each study and an index, figures as SVG, PNG and CSV, the table of all claims.
//!
//! The one input is [`planewise_study::Outcome`]; nothing here measures or judges.

mod bars;
mod chart;
mod csv;
mod legend;
mod lines;
mod look;
mod png;
mod scale;
mod text;

pub use chart::{svg, thumbnail};
pub use csv::{csv, table_csv};
pub use png::png;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod svg_tests;
