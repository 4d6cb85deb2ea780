//! When pages leave the valid page buffer for flash, and how many at a time.
//!
//! The GC paper says it twice: algorithm 1 writes back while no request waits, section 4.2.2 and figure 5 also between two issues, to
//! chips that no waiting request needs. The profile's `write_backs` chooses. Neither bounds anything: at the first instant at which no
//! request waits every idle chip gets a program, which whoever comes next finds in its way, and while requests keep waiting nothing is
//! written back at all. So three bounds are ours:
//! * no more than a share of the chips take pages at a time (`write_back_chips`);
//! * above a watermark pages go to idle chips whoever waits (`write_back_watermark`), since collections that find no slot hold their chips;
//! * a page that has been in line for too long goes before the host to the next chip that ends an operation (`write_back_within_ns`).

use planewise_model::Ns;
use planewise_model::profile::{Collection, WriteBackRule};

/// How urgent it is to write a page back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Haste {
    /// Only while no request waits.
    AtRest,
    /// Between two issues, to a chip that no waiting request needs.
    Between,
    /// To any idle chip.
    Forced,
}

pub(crate) struct WriteBackPolicy {
    between: bool,
    /// Chips that may take pages at a time.
    at_once: u32,
    /// Pages in the buffer above which they are forced out.
    watermark: u32,
    within: Ns,
}

impl WriteBackPolicy {
    /// For a device of a number of units that program independently.
    pub(crate) fn new(options: &Collection, units: u32) -> WriteBackPolicy {
        let share = |share: f64, of: u32| (share * f64::from(of)) as u32;
        WriteBackPolicy {
            between: options.write_backs == WriteBackRule::Between,
            at_once: share(options.write_back_chips, units).max(1),
            watermark: share(options.write_back_watermark, options.buffer_pages),
            within: Ns(options.write_back_within_ns),
        }
    }

    /// Chips that may take pages at a time.
    pub(crate) fn at_once(&self) -> u32 {
        self.at_once
    }

    /// How urgent the page is that has been in line since a time, with a number of pages in the buffer.
    pub(crate) fn haste(&self, now: Ns, since: Ns, held: u32) -> Haste {
        if held > self.watermark || self.is_overdue(now, since) {
            Haste::Forced
        } else if self.between {
            Haste::Between
        } else {
            Haste::AtRest
        }
    }

    /// Whether a page has been in line for so long that it goes before the host.
    pub(crate) fn is_overdue(&self, now: Ns, since: Ns) -> bool {
        now.saturating_sub(since) >= self.within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn haste_rises_with_the_fill_of_the_buffer_and_with_time() {
        let options = Collection {
            buffer_pages: 100,
            write_back_chips: 0.01,
            write_back_watermark: 0.8,
            write_back_within_ns: 1_000,
            write_backs: WriteBackRule::Empty,
            ..Collection::default()
        };
        let policy = WriteBackPolicy::new(&options, 64);
        assert_eq!(policy.at_once(), 1, "one at least");
        assert_eq!(policy.haste(Ns(10), Ns(5), 80), Haste::AtRest);
        assert_eq!(policy.haste(Ns(10), Ns(5), 81), Haste::Forced);
        assert_eq!(policy.haste(Ns(1_005), Ns(5), 1), Haste::Forced);
        assert!(!policy.is_overdue(Ns(1_004), Ns(5)));
        let between = Collection { write_backs: WriteBackRule::Between, ..options };
        assert_eq!(WriteBackPolicy::new(&between, 64).haste(Ns(10), Ns(5), 80), Haste::Between);
    }
}
