//! Why a command failed, and with which exit code.

use planewise_model::config::ConfigError;
use planewise_model::names::UnknownName;
use planewise_report::ReportError;
#[cfg(feature = "serve")]
use planewise_serve::ServeError;
use planewise_sim::SimError;
use planewise_trace::error::TraceError;
use planewise_trace::synth::SynthError;
use planewise_workload::WorkloadError;
use std::fmt;

/// A failure: one line for the user and an exit code.
#[derive(Debug)]
pub struct Failure {
    /// What kind of failure, which decides the exit code.
    pub kind: Kind,
    message: String,
}

/// Kinds of failures; their numbers are the exit codes (documented in `--help` and `docs/commands.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The run failed: a bad trace, free space exhausted.
    Run = 1,
    /// The command line or a configuration file is wrong.
    Usage = 2,
    /// An invariant was violated under `--check`.
    Invariant = 3,
    /// Output cannot be written.
    Output = 4,
    /// Stopped by Ctrl-C.
    Interrupted = 130,
}

impl Failure {
    /// A failure of a kind.
    pub fn new(kind: Kind, message: impl fmt::Display) -> Failure {
        // One line, whatever the libraries below say.
        let message = message.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        Failure { kind, message }
    }

    /// The same failure, saying first what it is about.
    pub fn about(self, what: &str) -> Failure {
        Failure::new(self.kind, format!("{what}: {}", self.message))
    }

    /// A wrong command line or configuration.
    pub fn usage(message: impl fmt::Display) -> Failure {
        Failure::new(Kind::Usage, message)
    }

    /// Output that cannot be written.
    pub fn output(message: impl fmt::Display) -> Failure {
        Failure::new(Kind::Output, message)
    }

    /// The command was interrupted.
    pub fn interrupted(message: impl fmt::Display) -> Failure {
        Failure::new(Kind::Interrupted, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<UnknownName> for Failure {
    fn from(error: UnknownName) -> Failure {
        Failure::usage(error)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::usage(error)
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Failure {
        Failure::output(error)
    }
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Failure {
        let kind = match error {
            SimError::UnknownName(_) | SimError::Option { .. } | SimError::Condition { .. } => Kind::Usage,
            _ => Kind::Run,
        };
        Failure::new(kind, error)
    }
}

#[cfg(feature = "serve")]
impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        match error {
            ServeError::Simulation(error) => error.into(),
            ServeError::Backing { .. } | ServeError::Option { .. } => Failure::usage(error),
            ServeError::System { .. } => Failure::new(Kind::Run, error),
        }
    }
}

impl From<SynthError> for Failure {
    fn from(error: SynthError) -> Failure {
        Failure::usage(error)
    }
}

impl From<WorkloadError> for Failure {
    fn from(error: WorkloadError) -> Failure {
        Failure::usage(error)
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Failure {
        let kind = match error {
            TraceError::UnknownName(_) | TraceError::Ambiguous { .. } => Kind::Usage,
            _ => Kind::Run,
        };
        Failure::new(kind, error)
    }
}
