//! How much each plane, executor and interface unit has to do.
//!
//! A *unit* is what a blocking interface reserves: the plane where multi-plane operations are in use, else the executor.

pub(super) struct Load {
    planes_per_executor: u32,
    executor_of_plane: Vec<u32>,
    unit_of_plane: Vec<u32>,
    unit_of_position: Vec<u32>,
    position_of_plane: Vec<u32>,
    /// Unfinished transactions; a collection that holds its executor counts as one on each of its units.
    by_unit: Vec<u32>,
    by_plane: Vec<u32>,
    by_executor: Vec<u32>,
    /// One bit for each stripe position: the executor of its plane has nothing to do. Kept only if `tracks_idle`.
    idle: Vec<u64>,
    /// The same: it has nothing to do but a collection that lets the host in.
    yielding: Vec<u64>,
    /// By executor: a collection is under way; the host finds its units taken.
    collects: Vec<bool>,
    held: Vec<bool>,
    /// Static allocation never asks which planes are idle or how full their queues are.
    tracks_idle: bool,
    units_per_executor: u32,
    /// A unit became free since the flag was last taken.
    freed: bool,
}

impl Load {
    pub(super) fn new(stripe: &[u32], executors: u32, units_are_planes: bool, tracks_idle: bool) -> Load {
        let planes = stripe.len() as u32;
        let planes_per_executor = planes / executors;
        let executor_of_plane: Vec<u32> = (0..planes).map(|plane| plane / planes_per_executor).collect();
        let unit_of_plane = if units_are_planes { (0..planes).collect() } else { executor_of_plane.clone() };
        let mut position_of_plane = vec![0; stripe.len()];
        for (position, &plane) in stripe.iter().enumerate() {
            position_of_plane[plane as usize] = position as u32;
        }
        let mut idle = vec![0u64; stripe.len().div_ceil(64)];
        (0..stripe.len()).for_each(|position| idle[position / 64] |= 1 << (position % 64));
        Load {
            planes_per_executor,
            unit_of_position: stripe.iter().map(|&plane| unit_of_plane[plane as usize]).collect(),
            executor_of_plane,
            position_of_plane,
            by_unit: vec![0; if units_are_planes { planes } else { executors } as usize],
            unit_of_plane,
            by_plane: vec![0; planes as usize],
            by_executor: vec![0; executors as usize],
            yielding: vec![0; idle.len()],
            idle,
            collects: vec![false; executors as usize],
            held: vec![false; executors as usize],
            tracks_idle,
            units_per_executor: if units_are_planes { planes_per_executor } else { 1 },
            freed: false,
        }
    }

    #[inline]
    pub(super) fn executor_of(&self, plane: u32) -> u32 {
        self.executor_of_plane[plane as usize]
    }

    /// Planes of an executor.
    pub(super) fn planes_of(&self, executor: u32) -> std::ops::Range<u32> {
        executor * self.planes_per_executor..(executor + 1) * self.planes_per_executor
    }

    #[inline]
    pub(super) fn plane_is_busy(&self, plane: u32) -> bool {
        self.by_unit[self.unit_of_plane[plane as usize] as usize] > 0
    }

    /// The interface unit of a stripe position.
    #[inline]
    pub(super) fn unit_of(&self, position: usize) -> u32 {
        self.unit_of_position[position]
    }

    #[inline]
    pub(super) fn unit_is_busy(&self, unit: u32) -> bool {
        self.by_unit[unit as usize] > 0
    }

    /// Unfinished transactions of a plane; kept only where allocation is not static.
    pub(super) fn of_plane(&self, plane: u32) -> u32 {
        self.by_plane[plane as usize]
    }

    pub(super) fn idle(&self) -> &[u64] {
        &self.idle
    }

    pub(super) fn yielding(&self) -> &[u64] {
        &self.yielding
    }

    /// Whether a collection is under way on an executor.
    #[inline]
    pub(super) fn collects(&self, executor: u32) -> bool {
        self.collects[executor as usize]
    }

    /// Adds a transaction; returns the plane's executor.
    #[inline]
    pub(super) fn add(&mut self, plane: u32) -> u32 {
        self.by_unit[self.unit_of_plane[plane as usize] as usize] += 1;
        let executor = self.executor_of(plane);
        if self.tracks_idle {
            self.by_plane[plane as usize] += 1;
            self.add_to_executor(executor);
        }
        executor
    }

    #[inline]
    pub(super) fn remove(&mut self, plane: u32) {
        let unit = &mut self.by_unit[self.unit_of_plane[plane as usize] as usize];
        *unit -= 1;
        self.freed |= *unit == 0;
        if self.tracks_idle {
            self.by_plane[plane as usize] -= 1;
            self.remove_from_executor(self.executor_of(plane));
        }
    }

    /// A collection begins on an executor. Whether the host finds it taken is told by [`Load::hold`].
    pub(super) fn begin_collection(&mut self, executor: u32) {
        self.collects[executor as usize] = true;
        if self.tracks_idle {
            self.by_executor[executor as usize] += 1;
            self.note_idle(executor);
        }
    }

    pub(super) fn end_collection(&mut self, executor: u32) {
        self.hold(executor, false);
        self.collects[executor as usize] = false;
        self.freed = true;
        if self.tracks_idle {
            self.by_executor[executor as usize] -= 1;
            self.note_idle(executor);
        }
    }

    /// Whether a collection occupies all units of its executor, or lets the host in between its steps.
    pub(super) fn hold(&mut self, executor: u32, held: bool) {
        if std::mem::replace(&mut self.held[executor as usize], held) == held {
            return;
        }
        for unit in executor * self.units_per_executor..(executor + 1) * self.units_per_executor {
            let count = &mut self.by_unit[unit as usize];
            *count = if held { *count + 1 } else { *count - 1 };
        }
        self.freed |= !held;
        if self.tracks_idle {
            self.note_idle(executor);
        }
    }

    /// A page that requests may wait for can be had without its unit: they should ask again.
    pub(super) fn note_freed(&mut self) {
        self.freed = true;
    }

    /// Whether a unit became free since the last call.
    #[inline]
    pub(super) fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.freed)
    }

    fn add_to_executor(&mut self, executor: u32) {
        self.by_executor[executor as usize] += 1;
        if self.by_executor[executor as usize] <= 2 {
            self.note_idle(executor);
        }
    }

    fn remove_from_executor(&mut self, executor: u32) {
        self.by_executor[executor as usize] -= 1;
        if self.by_executor[executor as usize] <= 1 {
            self.note_idle(executor);
        }
    }

    fn note_idle(&mut self, executor: u32) {
        let count = self.by_executor[executor as usize];
        let idle = count == 0;
        let yielding = count == 1 && self.collects[executor as usize] && !self.held[executor as usize];
        for plane in self.planes_of(executor) {
            let position = self.position_of_plane[plane as usize] as usize;
            let (word, bit) = (position / 64, 1u64 << (position % 64));
            self.idle[word] = if idle { self.idle[word] | bit } else { self.idle[word] & !bit };
            self.yielding[word] =
                if yielding { self.yielding[word] | bit } else { self.yielding[word] & !bit };
        }
    }
}
