//! Studies: published figures and tables as data, run again and judged.
//!
//! A study is a TOML file (`studies/*.toml`): the commands to run, the numbers to take from their results, the claims that these answer
//! and the figures to draw. This crate reads studies, says which runs they need, and turns the results of the runs into an
//! [`Outcome`]: it neither runs nor draws anything itself.

pub mod claims;
pub mod outcome;

pub use claims::{ClaimVerdict, Tally, claims};
pub use outcome::{Outcome, Verdict};
