//! Who owns time before a target: the open loop of a trace, the closed loop of a workload. Both put the host stack of the
//! simulator in front of it, so that any of its schedulers can be tried on a real drive, and measure with its observer.

pub mod ahead;
pub mod closed_loop;
mod error;
pub mod fit;
mod front;
mod host;
mod measure;
pub mod replay;

pub use error::DriverError;
pub use front::Front;
pub use host::{HostOptions, Units};

use planewise_sim::results::RunResult;

/// What came of a run on a target.
#[derive(Debug)]
pub struct Outcome<O> {
    /// What was measured, marked as interrupted when the run did not reach its end.
    pub result: RunResult,
    /// The observer.
    pub observer: O,
    /// What ended the run, when it was neither its end nor the user. What was measured until then is true.
    pub failure: Option<DriverError>,
}
