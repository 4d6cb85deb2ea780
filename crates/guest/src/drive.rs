//! The engine as a drive: requests go in now, and come out when they are complete.

use crate::error::GuestError;
use planewise_model::{Ns, Request};
use planewise_sim::RunConfig;
use planewise_sim::drivers::stepped::Stepped;
use planewise_sim::observers::{Observer, invariants::Invariants};
use planewise_sim::results::{RunResult, Status};
use std::collections::BTreeMap;

/// A simulated drive, watched by whom it may concern.
pub struct Drive<O> {
    engine: Stepped<(Option<Invariants>, O)>,
    /// Where the time of those who use it begins, in the engine's.
    origin: Ns,
    /// All requests at the engine's times, where they are kept.
    requests: Option<Vec<Request>>,
}

impl<O: Observer> Drive<O> {
    /// Builds it; `checks` every invariant on the way. Nothing is measured before [`Drive::begin`].
    ///
    /// # Errors
    /// Those of [`Stepped::unmeasured`].
    pub fn new(config: &RunConfig, checks: bool, observer: O) -> Result<Drive<O>, GuestError> {
        let invariants = checks.then(|| Invariants::of(config.overlap));
        let engine = Stepped::unmeasured(config, (invariants, observer))?;
        Ok(Drive { engine, origin: Ns::ZERO, requests: None })
    }

    /// Sectors that it has.
    pub fn sectors(&self) -> u64 {
        self.engine.sectors()
    }

    /// Requests submitted so far.
    pub fn submitted(&self) -> u64 {
        self.engine.submitted()
    }

    /// The observer.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.engine.observer_mut().1
    }

    /// Measures from the next request on; returns its number.
    pub fn begin(&mut self) -> u64 {
        self.engine.begin()
    }

    /// Takes a request of a time that it has been advanced to; `tag` comes back with its completion.
    ///
    /// # Errors
    /// What the drive does not take.
    pub fn submit(&mut self, request: &Request, tag: u64) -> Result<(), GuestError> {
        let request = Request { arrival: request.arrival + self.origin, ..*request };
        self.engine.submit(&request, tag)?;
        if let Some(requests) = &mut self.requests {
            requests.push(request);
        }
        Ok(())
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// Free space exhausted.
    pub fn advance(&mut self, until: Ns) -> Result<(), GuestError> {
        Ok(self.engine.advance(until + self.origin)?)
    }

    /// When something happens, or has and was not taken.
    pub fn next(&self) -> Ns {
        self.engine.next().saturating_sub(self.origin)
    }

    /// Takes a completion.
    pub fn take(&mut self) -> Option<u64> {
        self.engine.take().map(|(tag, _)| tag)
    }

    /// The time of those who use it begins here, where it is at `now` in its own; nobody waits for anything.
    pub(crate) fn begin_time(&mut self, now: Ns) {
        self.origin = now;
    }

    /// Keeps all requests from here on.
    pub fn keep_requests(&mut self) {
        self.requests = Some(Vec::new());
    }

    /// Those that were kept, at the engine's times.
    pub fn take_requests(&mut self) -> Vec<Request> {
        self.requests.take().unwrap_or_default()
    }

    /// Nobody waits any more for what was submitted.
    pub(crate) fn forget_completions(&mut self) {
        self.engine.forget();
    }

    /// What it did since measuring began.
    ///
    /// # Errors
    /// Tunables that are not allowed.
    pub fn measured(&self, name: &str, status: Status) -> Result<RunResult, GuestError> {
        Ok(self.engine.result(name, status)?)
    }

    /// Who watched, and how often each invariant was checked where they were, or the first violations of them. What was under way when the kernel
    /// ended never completes, and no invariant holds of it.
    pub fn into_observer(self) -> (O, Result<BTreeMap<String, u64>, String>) {
        let is_idle = self.engine.under_way() == 0;
        let (invariants, observer) = self.engine.into_observer();
        let checked = invariants.filter(|_| is_idle);
        (observer, checked.map_or_else(|| Ok(BTreeMap::new()), |invariants| invariants.report()))
    }
}
