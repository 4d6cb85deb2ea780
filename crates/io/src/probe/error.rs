//! Why a probe ends early.

use crate::target::TargetError;

/// An error of the probe.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The target failed.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The user stopped it.
    #[error("the probe was interrupted")]
    Interrupted,
    /// An option or a target that it cannot work with.
    #[error("{key}: found {found}; allowed: {allowed}")]
    Option {
        /// Which.
        key: &'static str,
        /// What was found.
        found: String,
        /// What is allowed.
        allowed: String,
    },
}
