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

/// Virtual time.
#[derive(Default)]
pub(super) struct Clock {
    now: u64,
    /// Of all active queues.
    weights: u64,
}

fn span(sectors: u64, weight: u64) -> u64 {
    ((u128::from(sectors) << SHIFT) / u128::from(weight)) as u64
}

impl Clock {
    /// A queue that was without requests has some: it starts now, or where it left off when that is later.
    pub(super) fn activate(&mut self, entity: &mut Entity, weight: u64) {
        entity.finish = entity.finish.max(self.now);
        self.go_on(entity, weight);
    }

    /// A queue that was without requests has some in time: it starts where it left off, even when that is past; a part of what it is late by is
    /// forgiven, less to one whose weight is raised `factor` times.
    pub(super) fn take_up(&mut self, entity: &mut Entity, weight: u64, factor: u64) {
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
    }

    /// The share of a whole that an active queue's weight gives it, rounded.
    pub(super) fn share(&self, entity: &Entity, whole: u64) -> u64 {
        (whole * entity.weight + self.weights / 2) / self.weights.max(1)
    }

    /// The queue in service had sectors.
    pub(super) fn serve(&mut self, entity: &mut Entity, sectors: u64) {
        entity.service += sectors;
        self.now += span(sectors, self.weights);
    }

    /// A turn ends: what the queue had counts, not what it might have had.
    pub(super) fn end_turn(&mut self, entity: &mut Entity) {
        entity.finish = entity.start + span(entity.service, entity.weight);
        self.weights -= entity.weight;
        entity.is_active = false;
    }

    /// A queue that is not in service needs a different budget.
    pub(super) fn rebudget(&self, entity: &mut Entity, budget: u64) {
        entity.budget = budget;
        entity.finish = entity.start + span(budget, entity.weight);
    }

    /// The next among active queues; virtual time jumps to the earliest start when none has started.
    pub(super) fn next<'a>(
        &mut self,
        active: impl Iterator<Item = (usize, &'a Entity)> + Clone,
    ) -> Option<usize> {
        let earliest = active.clone().map(|(_, entity)| entity.start).min()?;
        self.now = self.now.max(earliest);
        let now = self.now;
        let eligible = active.filter(|(_, entity)| entity.start <= now);
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
            clock.activate(&mut entities[queue], weights[queue]);
        }
        for _ in 0..10_000 {
            let queue = clock.next(entities.iter().enumerate()).unwrap();
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
        clock.activate(&mut one, 100);
        clock.serve(&mut one, 100_000);
        clock.activate(&mut other, 100);
        assert!(other.start == clock.now && other.start > 0);
        // And one that had little of its turn is charged for little.
        clock.end_turn(&mut other);
        assert_eq!(other.finish, other.start);
    }
}
