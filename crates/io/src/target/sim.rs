//! A simulated device as a target: its time is the model's and passes only when it is waited for.

use super::{Completed, Operation, Target, TargetError, TargetInfo, TargetKind};
use planewise_model::{Bytes, Ns, Profile, Request, SECTOR_BYTES};
use planewise_sim::host::Overlap;
use planewise_sim::observers::Completion;
use planewise_sim::{Condition, RunConfig, Simulator};

/// Longest operation: Linux splits at about this size for most drives.
pub(super) const LONGEST: Bytes = Bytes(1 << 20);

/// A simulated device.
pub struct SimTarget {
    info: TargetInfo,
    simulator: Simulator,
    /// Later than the simulator's own clock when nothing happened lately.
    now: Ns,
    /// By tag: the number of the operation under way, and when it was issued.
    under_way: Vec<Option<(u64, Ns)>>,
    completions: Vec<Completion>,
}

impl SimTarget {
    /// A device with this profile and past, that takes `depth` operations at a time (1 to 4096). What its command queue does not
    /// take yet waits in front of it, first come, first served.
    ///
    /// # Errors
    /// A profile or a condition that cannot be, a depth out of range.
    pub fn new(
        profile: &Profile,
        condition: Condition,
        depth: u32,
        seed: u64,
    ) -> Result<SimTarget, TargetError> {
        // A drive promises no order among the commands that it holds: that is the host's business.
        let overlap = Overlap::Ignore;
        let config =
            RunConfig { condition, queue_length: depth, overlap, seed, ..RunConfig::new(profile.clone()) };
        let mut simulator = Simulator::new(&config, ())?;
        simulator.keep_completions();
        let info = TargetInfo {
            name: format!("sim:{}", profile.name),
            kind: TargetKind::Simulated,
            engine: "model",
            capacity: Bytes(simulator.user_sectors() * SECTOR_BYTES),
            block_bytes: SECTOR_BYTES as u32,
            longest: LONGEST,
            depth,
            writable: true,
            identity: None,
        };
        Ok(SimTarget {
            info,
            simulator,
            now: Ns::ZERO,
            under_way: vec![None; depth as usize],
            completions: Vec::new(),
        })
    }

    /// When something happens next; never, when nothing is under way.
    pub(super) fn next_event(&self) -> Ns {
        self.simulator.next_event()
    }

    /// Lets time pass to that of an event, and takes what completed.
    pub(super) fn pass(&mut self, to: Ns, completed: &mut Vec<Completed>) -> Result<(), TargetError> {
        self.simulator.advance(to)?;
        self.now = self.now.max(to);
        self.take_completed(completed);
        Ok(())
    }

    /// Sets the clock to a time before which nothing happens.
    pub(super) fn idle_until(&mut self, time: Ns) {
        debug_assert!(self.next_event() >= time);
        self.now = self.now.max(time);
    }

    /// Says why operations that are under way will never complete.
    pub(super) fn finish(&mut self) -> Result<(), TargetError> {
        Ok(self.simulator.finish_requests()?)
    }

    fn take_completed(&mut self, to: &mut Vec<Completed>) {
        self.simulator.take_completions(&mut self.completions);
        for completion in self.completions.drain(..) {
            let number = completion.sequence;
            let found = self.under_way.iter().position(|tag| tag.is_some_and(|(of, _)| of == number));
            let tag = found.expect("only what is under way completes");
            let issued = self.under_way[tag].take().map_or(Ns::ZERO, |(_, issued)| issued);
            to.push(Completed { tag: tag as u32, issued, completed: completion.completed });
        }
    }
}

impl Target for SimTarget {
    fn info(&self) -> &TargetInfo {
        &self.info
    }

    fn now(&mut self) -> Ns {
        self.now
    }

    fn submit(&mut self, tag: u32, operation: Operation) -> Result<(), TargetError> {
        self.info.check(&operation)?;
        assert!(self.under_way[tag as usize].is_none(), "tag {tag} has an operation under way");
        let Operation { command, direction, durability, start, sectors } = operation;
        let request = Request {
            operation: command,
            durability,
            synchronous: true,
            ..Request::new(self.now, start, sectors, direction)
        };
        self.under_way[tag as usize] = Some((self.simulator.submitted(), self.now));
        self.simulator.submit(&request)?;
        Ok(())
    }

    fn wait(&mut self, until: Ns, completed: &mut Vec<Completed>) -> Result<Ns, TargetError> {
        let before = completed.len();
        loop {
            let next = self.next_event();
            if next == Ns::MAX && until == Ns::MAX {
                self.finish()?;
                let problem = "nothing is under way to wait for".to_owned();
                return Err(TargetError::Unusable { target: self.info.name.clone(), problem });
            }
            if next > until {
                self.now = self.now.max(until);
                return Ok(self.now);
            }
            self.pass(next, completed)?;
            // At `until` itself nothing starts before this is called again: operations that are issued then belong to the instant.
            if completed.len() > before || next == until {
                return Ok(self.now);
            }
        }
    }

    fn flush(&mut self) -> Result<Ns, TargetError> {
        let number = self.simulator.submitted();
        self.simulator.submit(&Request::flush(self.now))?;
        loop {
            let next = self.next_event();
            if next == Ns::MAX {
                self.finish()?;
            }
            self.simulator.advance(next)?;
            self.now = self.now.max(next);
            self.simulator.take_completions(&mut self.completions);
            if self.completions.drain(..).any(|completion| completion.sequence == number) {
                return Ok(self.now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::Lsn;

    #[test]
    fn a_flush_takes_time_where_the_write_buffer_has_no_capacitor() {
        for (protected, least, most) in [(true, 0, 100_000), (false, 200_000, 10_000_000)] {
            let mut profile = Profile::embedded("ssd-s").unwrap();
            profile.write_buffer.as_mut().unwrap().power_loss_protection = protected;
            let mut target = SimTarget::new(&profile, Condition::Filled, 4, 1).unwrap();
            target.submit(0, Operation::write(Lsn(0), 8)).unwrap();
            let written = target.wait(Ns::MAX, &mut Vec::new()).unwrap();
            let flushed = target.flush().unwrap();
            assert!((least..most).contains(&(flushed - written).0), "{protected}: {}", flushed - written);
            assert!((target.flush().unwrap() - flushed).0 < 100_000, "there is nothing left");
        }
    }

    fn target() -> SimTarget {
        let profile = Profile::embedded("ssd-s").unwrap();
        SimTarget::new(&profile, Condition::Filled, 4, 1).unwrap()
    }

    #[test]
    fn an_operation_takes_what_the_model_says_and_time_passes_only_while_waiting() {
        // One without a link that both have to pass.
        let profile = Profile::embedded("piq-128g").unwrap();
        let mut target = SimTarget::new(&profile, Condition::Filled, 4, 1).unwrap();
        let mut completed = Vec::new();
        assert_eq!(target.wait(Ns(500), &mut completed).unwrap(), Ns(500));
        target.submit(2, Operation::read(Lsn(0), 8)).unwrap();
        target.submit(0, Operation::read(Lsn(8), 8)).unwrap();
        assert_eq!(target.now(), Ns(500));
        let now = target.wait(Ns::MAX, &mut completed).unwrap();
        assert_eq!(now, target.now());
        // Different channels: both at once.
        assert_eq!(completed.len(), 2);
        assert!(completed.iter().all(|one| one.issued == Ns(500) && one.completed == now));
        assert_eq!(completed.iter().map(|one| one.tag).collect::<Vec<_>>(), [2, 0]);
    }

    #[test]
    fn a_wait_for_nothing_is_an_error_and_not_for_ever() {
        let error = target().wait(Ns::MAX, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("nothing is under way"), "{error}");
    }

    #[test]
    fn what_the_device_cannot_take_is_refused_by_name() {
        let mut target = target();
        let end = target.info().sectors();
        for (operation, word) in [
            (Operation::read(Lsn(end - 1), 8), "past the end"),
            (Operation::read(Lsn(u64::MAX), 8), "past the end"),
            (Operation::read(Lsn(0), 0), "empty"),
            (Operation::write(Lsn(0), 1 << 20), "up to 1.0 MiB"),
        ] {
            let error = target.submit(0, operation).unwrap_err().to_string();
            assert!(error.starts_with("sim:ssd-s: ") && error.contains(word), "{error}");
        }
        let info = TargetInfo { block_bytes: 4096, writable: false, ..target.info().clone() };
        assert!(info.check(&Operation::read(Lsn(4), 8)).unwrap_err().to_string().contains("4096"));
        assert!(info.check(&Operation::write(Lsn(8), 8)).unwrap_err().to_string().contains("for reading"));
    }
}
