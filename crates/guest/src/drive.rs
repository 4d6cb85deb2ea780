//! The engine as a drive: requests go in now, and come out when they are complete.

use crate::error::GuestError;
use planewise_model::{Ns, Request};
use planewise_sim::observers::metrics::MetricsObserver;
use planewise_sim::observers::{Completion, invariants::Invariants};
use planewise_sim::{RunConfig, Simulator};
use std::collections::{BTreeMap, VecDeque};

/// A simulated drive.
pub struct Drive {
    simulator: Simulator<(MetricsObserver, Option<Invariants>)>,
    /// By number of the request: who waits for it.
    waiting: BTreeMap<u64, u64>,
    /// Complete, and not yet taken: when, and who waits.
    complete: VecDeque<(Ns, u64)>,
    completions: Vec<Completion>,
    /// All completions, where they are kept.
    pub trace: Option<Vec<Completion>>,
}

impl Drive {
    /// Builds it; `checks` every invariant on the way.
    ///
    /// # Errors
    /// Those of [`Simulator::new`].
    pub fn new(config: &RunConfig, checks: bool) -> Result<Drive, GuestError> {
        let invariants = checks.then(|| Invariants::of(config.overlap));
        let mut simulator = Simulator::new(config, (MetricsObserver::new(0), invariants))?;
        simulator.keep_completions();
        Ok(Drive {
            simulator,
            waiting: BTreeMap::new(),
            complete: VecDeque::new(),
            completions: Vec::new(),
            trace: None,
        })
    }

    /// Sectors that it has.
    pub fn sectors(&self) -> u64 {
        self.simulator.user_sectors()
    }

    /// Takes a request of a time that it has been advanced to; `tag` comes back with its completion.
    ///
    /// # Errors
    /// What the drive does not take.
    pub fn submit(&mut self, request: &Request, tag: u64) -> Result<(), GuestError> {
        let number = self.simulator.submitted();
        self.simulator.submit(request)?;
        self.waiting.insert(number, tag);
        Ok(())
    }

    /// Whether it takes another request now.
    pub fn has_room(&self, request: &Request) -> bool {
        self.simulator.has_room(request)
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// Free space exhausted.
    pub fn advance(&mut self, until: Ns) -> Result<(), GuestError> {
        self.simulator.advance(until)?;
        self.simulator.take_completions(&mut self.completions);
        for completion in self.completions.drain(..) {
            if let Some(tag) = self.waiting.remove(&completion.sequence) {
                self.complete.push_back((completion.completed, tag));
            }
            if let Some(trace) = &mut self.trace {
                trace.push(completion);
            }
        }
        Ok(())
    }

    /// When something happens, or has and was not taken.
    pub fn next(&self) -> Ns {
        self.complete.front().map_or_else(|| self.simulator.next_event(), |&(at, _)| at)
    }

    /// Takes a completion.
    pub fn take(&mut self) -> Option<u64> {
        self.complete.pop_front().map(|(_, tag)| tag)
    }

    /// What it did.
    ///
    /// # Errors
    /// Invariants that were violated.
    pub fn finish(self, now: Ns) -> Result<planewise_sim::results::Metrics, String> {
        let (metrics, invariants) = self.simulator.into_observer();
        if let Some(invariants) = invariants {
            invariants.report()?;
        }
        Ok(metrics.metrics(now, (0, 0), planewise_sim::results::GcMetrics::default()))
    }
}
