//! For how long chips, dies, planes and channels are busy: integrals over time of how many are, so that what is under way when the window
//! begins or ends counts for the part that lies in it.

use crate::results::{UnitUtilization, Utilization};
use planewise_model::{Geometry, Ns};

/// Planes, dies and chips: places in the arrays below.
const PLANES: usize = 0;
const DIES: usize = 1;
const CHIPS: usize = 2;

/// Busy times of a window.
#[derive(Default)]
pub(super) struct BusyTimes {
    /// Chip of each executor, and its busy executors by chip.
    chip_of: Vec<u32>,
    on_chip: Vec<u32>,
    /// Planes of each executor's operation.
    planes_of: Vec<u32>,
    /// Units that are busy.
    busy: [u32; 3],
    /// Up to when the sums go.
    summed: Ns,
    /// Whether requests are pending.
    is_active: bool,
    /// Unit times so far, ns: all, and while requests are pending.
    wall: [u128; 3],
    active: [u128; 3],
    /// By channel: until when its last transfer lasts. It is summed when it begins.
    channel_until: Vec<Ns>,
    channel_wall: u128,
    channel_active: u128,
}

impl BusyTimes {
    pub(super) fn start(&mut self, geometry: &Geometry, executors: u32) {
        let executors_per_chip = executors / geometry.chips();
        self.chip_of = (0..executors).map(|executor| executor / executors_per_chip).collect();
        self.on_chip = vec![0; geometry.chips() as usize];
        self.planes_of = vec![0; executors as usize];
        self.channel_until = vec![Ns::ZERO; geometry.channels as usize];
    }

    /// Forgets what was before `now`; what is under way counts from there.
    pub(super) fn start_window(&mut self, now: Ns) {
        self.summed = now;
        (self.wall, self.active) = ([0; 3], [0; 3]);
        self.channel_wall = self.left_of_transfers(now);
        self.channel_active = if self.is_active { self.channel_wall } else { 0 };
    }

    /// Transfer time behind `now`, of transfers that have begun.
    fn left_of_transfers(&self, now: Ns) -> u128 {
        self.channel_until.iter().map(|until| u128::from(until.saturating_sub(now).0)).sum()
    }

    /// Sums up to now, before anything changes.
    #[inline(always)]
    fn pass(&mut self, now: Ns) {
        let passed = u128::from((now - self.summed).0);
        self.summed = now;
        if passed == 0 || self.busy[DIES] == 0 {
            return;
        }
        for (sum, busy) in self.wall.iter_mut().zip(self.busy) {
            *sum += passed * u128::from(busy);
        }
        if self.is_active {
            for (sum, busy) in self.active.iter_mut().zip(self.busy) {
                *sum += passed * u128::from(busy);
            }
        }
    }

    /// From now on requests are pending, or none are.
    #[inline]
    pub(super) fn set_active(&mut self, now: Ns, is_active: bool) {
        self.pass(now);
        self.is_active = is_active;
    }

    /// An executor begins an operation of so many planes; true where its chip was busy already.
    #[inline]
    pub(super) fn begin(&mut self, now: Ns, executor: u32, planes: u32) -> bool {
        self.pass(now);
        self.planes_of[executor as usize] = planes;
        self.busy[PLANES] += planes;
        self.busy[DIES] += 1;
        let on_chip = &mut self.on_chip[self.chip_of[executor as usize] as usize];
        *on_chip += 1;
        let is_first = *on_chip == 1;
        self.busy[CHIPS] += u32::from(is_first);
        !is_first
    }

    /// It ends it.
    #[inline]
    pub(super) fn end(&mut self, now: Ns, executor: u32) {
        self.pass(now);
        self.busy[PLANES] -= self.planes_of[executor as usize];
        self.busy[DIES] -= 1;
        let on_chip = &mut self.on_chip[self.chip_of[executor as usize] as usize];
        *on_chip -= 1;
        self.busy[CHIPS] -= u32::from(*on_chip == 0);
    }

    /// A channel is taken for a time. A transfer of the host lies inside the life of its request; one of a collection may outlive it by its
    /// own length.
    #[inline]
    pub(super) fn channel(&mut self, channel: u32, from: Ns, to: Ns) {
        let time = u128::from((to - from).0);
        self.channel_wall += time;
        if self.is_active {
            self.channel_active += time;
        }
        self.channel_until[channel as usize] = to;
    }

    /// Shares of busy units, of a window of this length that ends `now` and had requests for so long.
    pub(super) fn utilization(&self, geometry: &Geometry, now: Ns, wall: Ns, active: Ns) -> Utilization {
        let share = |busy: u128, units: u32, span: Ns| {
            if span == Ns::ZERO { 0.0 } else { busy as f64 / (f64::from(units) * span.0 as f64) }
        };
        let last = u128::from(now.saturating_sub(self.summed).0);
        let of = |kind: usize, units: u32| {
            let rest = last * u128::from(self.busy[kind]);
            UnitUtilization {
                active: share(self.active[kind] + if self.is_active { rest } else { 0 }, units, active),
                wall: share(self.wall[kind] + rest, units, wall),
            }
        };
        let outside = self.left_of_transfers(now);
        Utilization {
            chip: of(CHIPS, geometry.chips()),
            die: of(DIES, geometry.dies()),
            plane: of(PLANES, geometry.planes()),
            channel: UnitUtilization {
                active: share(
                    self.channel_active.saturating_sub(if self.is_active { outside } else { 0 }),
                    geometry.channels,
                    active,
                ),
                wall: share(self.channel_wall - outside, geometry.channels, wall),
            },
        }
    }
}
