//! What `planewise reproduce` writes: a page for each study and an index, figures as SVG, PNG and CSV, the table of all claims.
//!
//! The one input is [`planewise_study::Outcome`]; nothing here measures or judges.

mod bars;
mod chart;
mod checks;
mod csv;
mod fidelity;
mod legend;
mod lines;
mod look;
mod names;
mod page;
#[cfg(feature = "png")]
mod png;
mod scale;
mod text;
mod write;

pub use chart::{svg, thumbnail};
pub use csv::{csv, table_csv};
pub use fidelity::fidelity;
pub use page::{index, page};
#[cfg(feature = "png")]
pub use png::png;
pub use write::{write, write_file, write_study};

use planewise_study::{Outcome, outcome::Paper};

/// What was reproduced: all that the index and the table of claims are made of.
#[derive(Clone, Copy, Debug)]
pub struct Reproduction<'a> {
    /// The studies that were run, in the order in which they stand within their papers.
    pub outcomes: &'a [Outcome],
    /// How many of them nobody asked for: their runs were there, from others or from earlier commands.
    pub unasked: usize,
    /// Those that were not.
    pub missing: &'a [Missing],
    /// The command line that did it; empty when nobody knows.
    pub command: &'a str,
    /// Title and text of each way in which the model is known to differ from real devices.
    pub divergence: &'a [(String, String)],
}

/// A study that was not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub id: String,
    /// What it would show.
    pub title: String,
    /// The source document.
    pub paper: Paper,
    /// What it stands for there.
    pub figure: String,
    /// Why it was not run: `not asked for`, or what went wrong.
    pub why: String,
}

#[cfg(test)]
mod browser_tests;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod svg_tests;
