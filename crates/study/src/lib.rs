//! Studies: published figures and tables as data, run again and judged.
//!
//! A study is a TOML file (`studies/*.toml`): the commands to run, the numbers to take from their results, the claims that these answer
//! and the figures to draw (`docs/studies.md`). This crate reads studies, says which commands they need, and turns the results of the
//! commands into an [`Outcome`]: it neither runs nor draws anything itself.

mod cells;
mod change;
mod claims;
mod evaluate;
pub mod expression;
mod file;
mod judge;
pub mod outcome;
mod records;
mod study;
mod totals;

pub use cells::{Cell, Places};
pub use claims::{Claim, Claims};
pub use evaluate::evaluate;
pub use outcome::{Outcome, Verdict};
pub use records::RecordSet;
pub use study::Study;
pub use totals::{ClaimVerdict, Tally, claims};

/// What can be wrong with a study.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StudyError {
    /// The file, or the program's own table.
    #[error("{file}: {problem}")]
    File {
        /// Its name.
        file: String,
        /// What was found, what is allowed.
        problem: String,
    },
    /// A change of a variable: what was asked for, what is wrong with it.
    #[error("--set {0}")]
    Change(String),
    /// No study of that name.
    #[error(transparent)]
    Unknown(#[from] planewise_model::names::UnknownName),
}
