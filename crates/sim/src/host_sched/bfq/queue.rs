//! BFQ's queues: requests, habits, budget and weight of a process.

use super::super::habits::ThinkTime;
use super::super::lineup::Lineup;
use super::fair::Entity;
use super::tunables::Settings;
use planewise_model::Ns;

/// Weight of a process that asks for no other.
const WEIGHT: u64 = 100;
/// A queue that begins after a pause has this many times its weight for a while (`bfq_wr_coeff`).
const RAISE: u64 = 30;
/// A pause this long counts as one (`bfq_wr_min_idle_time`).
const PAUSE: Ns = Ns::from_millis(2_000);
/// Sectors from the last request from which on one counts as far (`BFQQ_SEEK_THR`).
const FAR: u64 = 800;
/// On a disk that does not rotate, a far request must also be smaller than this, sectors (`BFQQ_SECT_THR_NONROT`).
const SMALL: u64 = 64;
/// Of the last 32 requests, so many far ones make a seeky queue (`BFQQ_SEEKY`).
const SEEKY: u32 = 19;
/// A process that had so many sectors with raised weight is no interactive one (`max_service_from_wr`).
const RAISED_SERVICE: u64 = 120_000;

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It did not issue in time.
    TooIdle,
    BudgetTimeout,
    BudgetExhausted,
    NoMoreRequests,
    Preempted,
}

/// The synchronous requests of a process, or the asynchronous ones of all.
pub(super) struct Queue {
    pub(super) synchronous: bool,
    pub(super) waiting: Lineup,
    pub(super) entity: Entity,
    /// Requests at the device.
    pub(super) dispatched: u64,
    /// Budget that its past suggests.
    pub(super) max_budget: u64,
    /// When its turn began, and when it ends.
    pub(super) turn_began: Ns,
    pub(super) turn_end: Ns,
    /// The FIFO was looked at in this turn.
    pub(super) fifo_checked: bool,
    pub(super) think: ThinkTime,
    pub(super) last_end: Option<Ns>,
    /// Its last turn ended because it had no requests, and not its budget or time.
    pub(super) has_left: bool,
    /// One bit for each of its last 32 requests: whether it was far.
    seeks: u32,
    /// Sector behind its last request.
    position: u64,
    /// Until when its weight is raised, and sectors that it had since it is.
    raised_until: Option<Ns>,
    raised_service: u64,
    /// Since when it has been without requests.
    idle_since: Option<Ns>,
}

impl Queue {
    pub(super) fn new(synchronous: bool, settings: &Settings) -> Queue {
        Queue {
            synchronous,
            waiting: Lineup::EMPTY,
            entity: Entity::default(),
            dispatched: 0,
            max_budget: settings.max_budget * 2 / 3,
            turn_began: Ns::ZERO,
            turn_end: Ns::ZERO,
            has_left: false,
            fifo_checked: false,
            think: ThinkTime::default(),
            last_end: None,
            // The first is almost certainly far.
            seeks: 1,
            position: 0,
            raised_until: None,
            raised_service: 0,
            idle_since: None,
        }
    }

    pub(super) fn is_seeky(&self) -> bool {
        self.seeks.count_ones() > SEEKY
    }

    pub(super) fn is_raised(&self) -> bool {
        self.raised_until.is_some()
    }

    /// How many times its own weight it has.
    pub(super) fn raise_factor(&self) -> u64 {
        if self.is_raised() { RAISE } else { 1 }
    }

    pub(super) fn weight(&self) -> u64 {
        WEIGHT * self.raise_factor()
    }

    /// Learns how the process behaves from a request.
    pub(super) fn learn(&mut self, now: Ns, start: u64, sectors: u64, settings: &Settings) {
        if !self.entity.is_active() && self.dispatched == 0 {
            // What it did before it was known counts as long.
            let longest = Ns(2 * settings.slice_idle.0);
            self.think.add(self.last_end.map_or(longest, |end| (now - end).min(longest)));
        }
        let is_far = self.position != 0
            && self.position.abs_diff(start) > FAR
            && (settings.rotational || sectors < SMALL);
        self.seeks = self.seeks << 1 | u32::from(is_far);
        self.position = start + sectors;
    }

    /// Whether it thinks no longer than half of the time that is waited for it, as far as is known.
    pub(super) fn thinks_shortly(&self, settings: &Settings) -> bool {
        !self.think.is_valid() || self.think.mean() <= Ns(settings.slice_idle.0 / 2)
    }

    /// A process that begins, or begins again after a pause, is taken for one that somebody waits at. Whether its weight is raised now and was
    /// not before.
    pub(super) fn raise(&mut self, now: Ns, settings: &Settings) -> bool {
        let was_raised = self.is_raised();
        let paused = self.dispatched == 0 && self.idle_since.is_none_or(|since| now >= since + PAUSE);
        if settings.low_latency && self.synchronous && paused && settings.raised_time > Ns::ZERO {
            self.raised_until = Some(now + settings.raised_time);
            self.raised_service = if was_raised { self.raised_service } else { 0 };
        }
        self.is_raised() && !was_raised
    }

    /// It had sectors in its turn; whether its raised weight ended with that.
    pub(super) fn served(&mut self, now: Ns, sectors: u64) -> bool {
        let was_raised = self.is_raised();
        self.raised_service += sectors;
        let is_interactive = self.raised_service <= RAISED_SERVICE;
        self.raised_until = self.raised_until.filter(|until| *until > now && is_interactive);
        was_raised && !self.is_raised()
    }

    pub(super) fn rests(&mut self, now: Ns) {
        self.idle_since = Some(now);
    }

    /// The budget of the next turn, from how the last ended (`__bfq_bfqq_recalc_budget`).
    pub(super) fn recalculate(&mut self, end: End, settings: &Settings) {
        let (min, max) = (settings.min_budget(), settings.max_budget);
        let last = self.max_budget;
        self.max_budget = if !self.synchronous {
            max
        } else if self.is_raised() {
            2 * min
        } else {
            match end {
                End::TooIdle if self.dispatched > 0 => last * 2,
                End::TooIdle if last > 5 * min => last - 4 * min,
                End::TooIdle => min,
                End::BudgetTimeout => last * 2,
                End::BudgetExhausted => last * 4,
                End::NoMoreRequests => self.entity.service.max(min),
                End::Preempted => last,
            }
        }
        .min(max);
    }
}
