//! A driver whose time is somebody else's: a wall clock's, or a kernel's. Requests come in one by one with a tag, and leave with it when they are complete.

use super::measure::{self, Measuring};
use super::watch;
use crate::config::RunConfig;
use crate::engine::Simulator;
use crate::error::SimError;
use crate::host_sched::Counters;
use crate::observers::{Completion, Observer};
use crate::results::{RunResult, Status};
use planewise_model::{Ns, Request};
use std::collections::{BTreeMap, VecDeque};

/// A simulator that is advanced from outside.
pub struct Stepped<O = ()> {
    config: RunConfig,
    simulator: Simulator<(Measuring, O)>,
    /// By number of the request: its tag.
    tags: BTreeMap<u64, u64>,
    /// Requests for which the I/O queue has no room, in their order. They wait outside, and that wait counts.
    outside: VecDeque<(Request, u64)>,
    /// The latest arrival: a request that says it is older arrives then.
    latest: Ns,
    completions: Vec<Completion>,
    complete: VecDeque<(u64, Completion)>,
    /// The scheduler's counters when measuring began.
    before: Counters,
}

impl<O: Observer> Stepped<O> {
    /// Builds host and device. Everything is measured.
    ///
    /// # Errors
    /// As [`Simulator::new`].
    pub fn new(config: &RunConfig, observer: O) -> Result<Stepped<O>, SimError> {
        Stepped::measuring_from(config, observer, 0)
    }

    /// Builds host and device. Nothing is measured before [`Stepped::begin`].
    ///
    /// # Errors
    /// As [`Simulator::new`].
    pub fn unmeasured(config: &RunConfig, observer: O) -> Result<Stepped<O>, SimError> {
        Stepped::measuring_from(config, observer, u64::MAX)
    }

    fn measuring_from(config: &RunConfig, observer: O, first: u64) -> Result<Stepped<O>, SimError> {
        let mut simulator = Simulator::new(config, (measure::measuring(first, None), observer))?;
        simulator.keep_completions();
        Ok(Stepped {
            config: config.clone(),
            simulator,
            tags: BTreeMap::new(),
            outside: VecDeque::new(),
            latest: Ns::ZERO,
            completions: Vec::new(),
            complete: VecDeque::new(),
            before: Counters::default(),
        })
    }

    /// Measures from the next request on; returns its number.
    pub fn begin(&mut self) -> u64 {
        let first = self.submitted();
        self.before = self.simulator.scheduler_counters();
        measure::start_after(&mut self.simulator.observer_mut().0, first);
        first
    }

    /// Requests that came so far: the number of the next.
    pub fn submitted(&self) -> u64 {
        self.simulator.submitted() + self.outside.len() as u64
    }

    /// The observer.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.simulator.observer_mut().1
    }

    /// First sector past the user capacity.
    pub fn sectors(&self) -> u64 {
        self.simulator.user_sectors()
    }

    /// Requests that are not complete.
    pub fn under_way(&self) -> usize {
        self.tags.len() + self.outside.len()
    }

    /// Takes a request. It arrives when it says, or, where time is past that, now; returns when.
    ///
    /// # Errors
    /// A request that the device cannot take, and as [`Stepped::advance`].
    pub fn submit(&mut self, request: &Request, tag: u64) -> Result<Ns, SimError> {
        let arrival = request.arrival.max(self.latest).max(self.simulator.now());
        let request = Request { arrival, ..*request };
        self.simulator.check(&request)?;
        self.advance(arrival)?;
        self.latest = arrival;
        self.outside.push_back((request, tag));
        self.let_in()?;
        Ok(arrival)
    }

    fn let_in(&mut self) -> Result<(), SimError> {
        while let Some((request, tag)) =
            self.outside.front().filter(|(next, _)| self.simulator.has_room(next))
        {
            let number = self.simulator.submitted();
            self.simulator.submit(request)?;
            self.tags.insert(number, *tag);
            self.outside.pop_front();
        }
        Ok(())
    }

    /// Lets time pass up to and including `until`.
    ///
    /// # Errors
    /// Free space exhausted, or a scheduler that withholds requests for ever.
    pub fn advance(&mut self, until: Ns) -> Result<(), SimError> {
        loop {
            // What waits outside enters at the event that makes room for it, and no later.
            let step = if self.outside.is_empty() { until } else { until.min(self.simulator.next_event()) };
            self.simulator.advance(step)?;
            self.simulator.take_completions(&mut self.completions);
            for completion in self.completions.drain(..) {
                if let Some(tag) = self.tags.remove(&completion.sequence) {
                    self.complete.push_back((tag, completion));
                }
            }
            self.let_in()?;
            if step == until {
                return Ok(());
            }
        }
    }

    /// When the next thing happens; [`Ns::MAX`] when nothing will until a request comes.
    pub fn next(&self) -> Ns {
        self.complete.front().map_or_else(|| self.simulator.next_event(), |(_, first)| first.completed)
    }

    /// The next completion that was not taken, with its tag.
    pub fn take(&mut self) -> Option<(u64, Completion)> {
        self.complete.pop_front()
    }

    /// Nobody waits any more for what was submitted.
    pub fn forget(&mut self) {
        self.tags.clear();
        self.complete.clear();
    }

    /// Lets what is under way come to its end, if that is little; false when requests are left.
    ///
    /// # Errors
    /// As [`Stepped::advance`].
    pub fn wind_up(&mut self) -> Result<bool, SimError> {
        for _ in 0..watch::LAST_EVENTS_MAX {
            let next = self.simulator.next_event();
            if self.under_way() == 0 || next == Ns::MAX {
                break;
            }
            self.advance(next)?;
        }
        Ok(self.under_way() == 0)
    }

    /// What was measured so far.
    ///
    /// # Errors
    /// Tunables that are not allowed.
    pub fn result(&self, name: &str, status: Status) -> Result<RunResult, SimError> {
        let counters = self.simulator.scheduler_counters().since(&self.before);
        measure::summarise(&self.config, &self.simulator, &counters, name, status)
    }

    /// Ends it and returns its observer.
    pub fn into_observer(self) -> O {
        self.simulator.into_observer().1
    }
}
