//! Jobs as fio describes them: option names, values and defaults are fio's, where a simulated device gives them a meaning.
//!
//! [`JobFile`] holds options as text, so that a sweep can change one of them; [`JobFile::build`] checks all of them and what they
//! say together, and makes the processes.

mod check;
mod classic;
mod file;
mod levels;
mod offsets;
mod options;
mod process;
mod section;
mod tables;

/// Job files in the program: name and text, from `workloads/jobs/`.
pub static EMBEDDED: &[(&str, &str)] = &[
    ("fileserver", include_str!("../../../../workloads/jobs/fileserver.toml")),
    ("loaddb", include_str!("../../../../workloads/jobs/loaddb.toml")),
    ("tpch", include_str!("../../../../workloads/jobs/tpch.toml")),
    ("varmail", include_str!("../../../../workloads/jobs/varmail.toml")),
];

pub use check::{Job, Kind, Share, Sizes};
pub use file::{IN_FLIGHT_MAX, JobFile};
pub use offsets::Distribution;
pub use options::{OPTIONS, OptionEntry, Support, find};
pub use process::Jobs;
pub(crate) use tables::{table, target_profile, value_text};
