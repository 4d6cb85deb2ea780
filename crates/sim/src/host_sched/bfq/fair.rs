//! B-WF2Q+: the order in which queues have the disk. Each has a budget of sectors; its virtual start is where its last
//! turn ended in virtual time, its finish lies a budget over its weight later; next is the queue with the earliest finish
//! among those that have started (Valente and Checconi, "High Throughput Disk Scheduling with Fair Bandwidth
//! Distribution", IEEE Transactions on Computers 2010; Linux's `block/bfq-wf2q.c`).

/// Virtual time is in sectors over weight, shifted by this.
const SHIFT: u32 = 22;

/// A queue's place in virtual time.
#[derive(Clone, Copy, Default)]
pub(super) struct Entity {
    pub(super) weight: u64,
    start: u64,
    finish: u64,
    /// Sectors that it may have in its turn, and those it had.
    pub(super) budget: u64,
    pub(super) service: u64,
    is_active: bool,
}

impl Entity {
    pub(super) fn is_active(&self) -> bool {
        self.is_active
    }

    pub(super) fn left(&self) -> u64 {
        self.budget.saturating_sub(self.service)
    }
}

/// A queue without requests that has had more than virtual time gave it: it counts until virtual time has come where it ended (`bfq_idle_insert`).
struct Idle {
    queue: usize,
    finish: u64,
    weight: u64,
}

/// Virtual time.
#[derive(Default)]
pub(super) struct Clock {
    now: u64,
    /// Of all active queues and of those that still count.
    weights: u64,
    /// Active queues that are not in service.
    waiting: usize,
    /// Queues that still count, by their finish.
    idle: Vec<Idle>,
}

fn span(sectors: u64, weight: u64) -> u64 {
    ((u128::from(sectors) << SHIFT) / u128::from(weight)) as u64
}

impl Clock {
    /// A queue that was without requests has some: it starts now, or where it left off when that is later.
    pub(super) fn activate(&mut self, queue: usize, entity: &mut Entity, weight: u64) {
        self.count_no_more(queue);
        entity.finish = entity.finish.max(self.now);
        self.go_on(entity, weight);
    }

    /// A queue that was without requests has some in time: it starts where it left off, even when that is past; a part of what it is late by is
    /// forgiven, less to one whose weight is raised `factor` times.
    pub(super) fn take_up(&mut self, queue: usize, entity: &mut Entity, weight: u64, factor: u64) {
        self.count_no_more(queue);
        let was_late = self.now > entity.finish;
        self.go_on(entity, weight);
        let late = self.now.saturating_sub(entity.finish) / factor;
        if was_late {
            entity.start += late;
            entity.finish += late;
        }
    }

    /// The queue in service weighs something else from here on.
    pub(super) fn reweigh(&mut self, entity: &mut Entity, weight: u64) {
        self.weights = self.weights - entity.weight + weight;
        entity.weight = weight;
    }

    /// A queue whose turn ended has more requests: it starts where it left off, and so catches up when it is behind.
    pub(super) fn go_on(&mut self, entity: &mut Entity, weight: u64) {
        entity.weight = weight;
        entity.start = entity.finish;
        entity.finish = entity.start + span(entity.budget, weight);
        entity.service = 0;
        entity.is_active = true;
        self.weights += weight;
        self.waiting += 1;
    }

    /// The share of a whole that an active queue's weight gives it, rounded.
    pub(super) fn share(&self, entity: &Entity, whole: u64) -> u64 {
        (whole * entity.weight + self.weights / 2) / self.weights.max(1)
    }

    /// The queue in service had sectors.
    pub(super) fn serve(&mut self, entity: &mut Entity, sectors: u64) {
        entity.service += sectors;
        self.now += span(sectors, self.weights);
        self.forget();
    }

    /// A turn ends: what the queue had counts, not what it might have had.
    pub(super) fn end_turn(&mut self, entity: &mut Entity) {
        entity.finish = entity.start + span(entity.service, entity.weight);
        self.weights -= entity.weight;
        entity.is_active = false;
    }

    /// A queue whose turn ended has no requests: where it is ahead of virtual time its weight counts on, and so slows what the others are charged
    /// with (`__bfq_deactivate_entity`).
    pub(super) fn rest(&mut self, queue: usize, entity: &Entity) {
        if entity.finish > self.now {
            let at = self.idle.partition_point(|other| other.finish <= entity.finish);
            self.idle.insert(at, Idle { queue, finish: entity.finish, weight: entity.weight });
            self.weights += entity.weight;
        }
    }

    fn count_no_more(&mut self, queue: usize) {
        if let Some(at) = self.idle.iter().position(|idle| idle.queue == queue) {
            self.weights -= self.idle.remove(at).weight;
        }
    }

    /// Virtual time has come to where a resting queue ended: it counts no more. One at a time, and with nobody else waiting virtual time goes back to
    /// the last of them, as Linux does (`bfq_forget_idle`).
    fn forget(&mut self) {
        let Some(last) = self.idle.last() else { return };
        if self.waiting == 0 && last.finish <= self.now {
            self.now = last.finish;
        }
        if self.idle[0].finish <= self.now {
            self.weights -= self.idle.remove(0).weight;
        }
    }

    /// A queue that is not in service needs a different budget.
    pub(super) fn rebudget(&self, entity: &mut Entity, budget: u64) {
        entity.budget = budget;
        entity.finish = entity.start + span(budget, entity.weight);
    }

    /// A queue is in service: it waits no more.
    pub(super) fn begin_turn(&mut self) {
        self.waiting -= 1;
    }

    /// Whether a queue that has changed comes before the one that would be next (`bfq_update_next_in_service`): it has started, and ends earlier.
    pub(super) fn comes_before(&self, changed: &Entity, next: &Entity) -> bool {
        changed.start <= self.now && next.finish > changed.finish
    }

    /// The next among queues that wait. Where none has started, virtual time jumps to the earliest start, while none is in service: one that is has
    /// started (`__bfq_lookup_next_entity`).
    pub(super) fn next<'a>(
        &mut self,
        waiting: impl Iterator<Item = (usize, &'a Entity)> + Clone,
        is_serving: bool,
    ) -> Option<usize> {
        let earliest = waiting.clone().map(|(_, entity)| entity.start).min()?;
        let now = self.now.max(earliest);
        if !is_serving && now > self.now {
            self.now = now;
            self.forget();
        }
        let eligible = waiting.filter(|(_, entity)| entity.start <= now);
        eligible.min_by_key(|&(queue, entity)| (entity.finish, queue)).map(|(queue, _)| queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues that always have requests get service by their weights, whatever their budgets.
    #[test]
    fn service_follows_weights_and_not_budgets() {
        let mut clock = Clock::default();
        let (weights, budgets) = ([100, 100, 300], [64, 512, 128]);
        let mut entities = [Entity::default(); 3];
        let mut had = [0u64; 3];
        for queue in 0..3 {
            entities[queue].budget = budgets[queue];
            clock.activate(queue, &mut entities[queue], weights[queue]);
        }
        for _ in 0..10_000 {
            let queue = clock.next(entities.iter().enumerate(), false).unwrap();
            clock.begin_turn();
            clock.serve(&mut entities[queue], budgets[queue]);
            clock.end_turn(&mut entities[queue]);
            clock.go_on(&mut entities[queue], weights[queue]);
            had[queue] += budgets[queue];
            // Nobody is served before he has started: nobody is ahead of his share by more than his budget.
            let total: u64 = had.iter().sum();
            for queue in 0..3 {
                let share = total * weights[queue] / 500;
                assert!(had[queue] <= share + budgets[queue] + 1, "{had:?}");
                assert!(share <= had[queue] + budgets.iter().sum::<u64>(), "{had:?}");
            }
        }
    }

    #[test]
    fn a_queue_that_was_idle_has_no_claim_on_what_it_missed() {
        let mut clock = Clock::default();
        let [mut one, mut other] = [Entity { budget: 100, ..Entity::default() }; 2];
        clock.activate(0, &mut one, 100);
        clock.begin_turn();
        clock.serve(&mut one, 100_000);
        clock.activate(1, &mut other, 100);
        assert!(other.start == clock.now && other.start > 0);
        // And one that had little of its turn is charged for little.
        clock.end_turn(&mut other);
        assert_eq!(other.finish, other.start);
    }

    /// A queue that had its share in advance and rests slows virtual time for the other until it is made up for.
    #[test]
    fn a_resting_queue_counts_until_virtual_time_has_come_to_its_end() {
        let mut clock = Clock::default();
        let [mut one, mut other] = [Entity { budget: 100, ..Entity::default() }; 2];
        clock.activate(0, &mut one, 100);
        clock.activate(1, &mut other, 100);
        assert_eq!(clock.next([(0, &one), (1, &other)].into_iter(), false), Some(0));
        clock.begin_turn();
        clock.serve(&mut one, 100);
        clock.end_turn(&mut one);
        clock.rest(0, &one);
        assert_eq!((clock.now, clock.weights), (span(100, 200), 200));
        clock.begin_turn();
        clock.serve(&mut other, 60);
        assert_eq!((clock.now, clock.weights), (span(100, 200) + span(60, 200), 200));
        // It passes the end of the first, goes back to it, and from there on counts the second alone.
        clock.serve(&mut other, 60);
        assert_eq!((clock.now, clock.weights), (one.finish, 100));
        clock.serve(&mut other, 10);
        assert_eq!(clock.now, one.finish + span(10, 100));
        // It comes back before that, and counts once.
        clock.end_turn(&mut other);
        clock.rest(1, &other);
        let before = clock.weights;
        clock.activate(1, &mut other, 100);
        assert_eq!((before, clock.weights), (100, 100));
    }

    /// Virtual time does not jump to a queue that becomes the next while another has the disk, and so not when that one stops.
    #[test]
    fn virtual_time_jumps_only_while_nobody_is_served() {
        let mut clock = Clock::default();
        let mut late = Entity { budget: 100, finish: 1000, ..Entity::default() };
        clock.activate(0, &mut late, 100);
        assert_eq!(clock.next([(0, &late)].into_iter(), true), Some(0));
        assert_eq!(clock.now, 0);
        assert_eq!(clock.next([(0, &late)].into_iter(), false), Some(0));
        assert_eq!(clock.now, 1000);
    }
}
