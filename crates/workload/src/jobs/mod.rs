//! Jobs as fio describes them: option names, values and defaults are fio's, where a simulated device gives them a meaning.
//!
//! [`JobFile`] holds options as text, so that a sweep can change one of them; [`JobFile::build`] checks all of them and what they
//! say together, and makes the processes.

mod check;
mod file;
mod offsets;
mod options;
mod process;

pub use check::{Job, Share, Sizes};
pub use file::JobFile;
pub(crate) use file::{table, target_profile, value_text};
pub use offsets::Distribution;
pub use options::{OPTIONS, OptionEntry, Support, find};
pub use process::Jobs;
