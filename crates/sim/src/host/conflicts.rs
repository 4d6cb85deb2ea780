//! Which units the requests of the I/O queue touch, to tell conflict requests on arrival (TCAD paper, section IV-A.3).

use planewise_model::location::{PageRange, UnitMap};

/// Requests of the queue, waiting or outstanding, by unit they touch.
pub(crate) struct Conflicts {
    map: UnitMap,
    touching: Vec<u32>,
}

impl Conflicts {
    pub(crate) fn new(map: UnitMap) -> Conflicts {
        Conflicts { touching: vec![0; map.units() as usize], map }
    }

    /// Adds a request; true when it shares a unit with one already there.
    #[inline]
    pub(crate) fn enter(&mut self, pages: PageRange) -> bool {
        let mut conflict = false;
        let touching = &mut self.touching;
        self.map.for_each_unit(pages, |unit| {
            let count = &mut touching[unit as usize];
            conflict |= *count > 0;
            *count += 1;
        });
        conflict
    }

    /// Whether a request would share a unit with one already there.
    pub(crate) fn meets(&self, pages: PageRange) -> bool {
        let mut conflict = false;
        self.map.for_each_unit(pages, |unit| conflict |= self.touching[unit as usize] > 0);
        conflict
    }

    /// Removes a request.
    #[inline]
    pub(crate) fn leave(&mut self, pages: PageRange) {
        let touching = &mut self.touching;
        self.map.for_each_unit(pages, |unit| {
            touching[unit as usize] -= 1;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_conflicts_while_another_on_its_unit_is_in_the_queue() {
        let range = |first, count| PageRange { first, count };
        let mut conflicts = Conflicts::new(UnitMap::modulo(4));
        assert!(!conflicts.enter(range(0, 2)));
        assert!(conflicts.enter(range(5, 1)));
        assert!(!conflicts.enter(range(2, 1)));
        conflicts.leave(range(0, 2));
        assert!(!conflicts.enter(range(0, 1)));
        assert!(conflicts.enter(range(1, 1)));
    }
}
