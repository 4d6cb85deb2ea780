//! How much may be read ahead in vain.
//!
//! Pages that nobody asks for take flash time from those that somebody does. The allowance is a stock of flash time: a page that is discarded
//! unread takes its time out, the more the busier the host keeps the flash; one that is asked for puts its time in, the more the idler the flash, as
//! then the host would have waited for it alone. What is in stock decides how far ahead is read: reads that look sequential and are
//! not end read-ahead, and more streams than the buffer has room for narrow it, until little is wasted. (Feedback by accuracy and pollution:
//! Srinath et al., Feedback Directed Prefetching, HPCA 2007.)

use planewise_model::Ns;

/// The largest stock, in full windows; half of it is there at first.
const MOST_WINDOWS: u64 = 2;
/// A page in vain costs its time over this at least, however idle the flash: it is in somebody's way for a moment.
const IDLE_FLASH: u64 = 4;
/// One part in so many of all time goes to the stock, so that read-ahead that was ended is tried again.
const TRIAL: u64 = 200;

#[derive(Debug)]
pub(crate) struct Allowance {
    left: Ns,
    most: Ns,
    /// Flash time of a page, when all of the flash reads.
    page: Ns,
    /// Pages asked for by the host at a time that keep all of the flash busy.
    full_load: u64,
    /// When the stock was last settled.
    settled: Ns,
}

impl Allowance {
    /// For flash that reads a page in `page` when all of it reads, which `full_load` pages at a time keep busy.
    pub(crate) fn new(page: Ns, full_load: u64, window: u32) -> Allowance {
        let most = Ns(page.0 * MOST_WINDOWS * u64::from(window));
        Allowance { left: Ns(most.0 / 2), most, page, full_load, settled: Ns::ZERO }
    }

    /// The device had no command of the host for so long. What there was to read ahead was read at the beginning of that; the rest of it was free.
    pub(crate) fn rested(&mut self, time: Ns) {
        let window = Ns(self.most.0 / MOST_WINDOWS);
        self.left = (self.left + time.saturating_sub(window)).min(self.most);
    }

    /// Settles what happened up to now: `used` and `wasted` are pages read ahead that were asked for and discarded unread since the last
    /// time, `load` the pages that the host waits for.
    pub(crate) fn settle(&mut self, now: Ns, (used, wasted): (u32, u32), load: u64) {
        let elapsed = now - self.settled;
        self.settled = now;
        let load = load.min(self.full_load);
        let in_parts = |pages: u32, parts: u64| u64::from(pages) * self.page.0 * parts / self.full_load;
        let income = elapsed.0 / TRIAL + in_parts(used, self.full_load - load);
        let cost = in_parts(wasted, load.max(self.full_load.div_ceil(IDLE_FLASH)));
        self.left = Ns((self.left.0 + income).saturating_sub(cost)).min(self.most);
    }

    /// How much of a window may be read ahead: all of it while half of the stock is there, and less with less.
    pub(crate) fn window(&self, pages: u64) -> u64 {
        let half = (self.most.0 / 2).max(1);
        (u128::from(pages) * u128::from(self.left.0.min(half)) / u128::from(half)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Ns = Ns::from_micros(10);

    /// The stock has room for 2 ms, the time of 200 pages, and is half full.
    fn allowance() -> Allowance {
        Allowance::new(PAGE, 16, 100)
    }

    #[test]
    fn what_is_used_keeps_the_window_and_what_is_wasted_narrows_it() {
        let mut allowance = allowance();
        let mut settle = |outcome, load| {
            allowance.settle(Ns::ZERO, outcome, load);
            allowance.window(100)
        };
        assert_eq!(settle((0, 50), 16), 50, "all of the flash is busy");
        assert_eq!(settle((1_000, 0), 16), 50, "the host would have read them itself");
        assert_eq!(settle((0, 40), 2), 40, "a quarter at least");
        assert_eq!(settle((80, 0), 8), 80);
        assert_eq!(settle((0, 10_000), 1), 0);
        assert_eq!(settle((10_000, 0), 1), 100);
    }

    #[test]
    fn long_rests_are_free_and_of_other_time_a_little_is_given() {
        let mut allowance = allowance();
        allowance.settle(Ns::ZERO, (0, 1_000), 16);
        allowance.settle(Ns::from_millis(20), (0, 0), 16);
        assert_eq!(allowance.window(100), 10, "a tenth of a millisecond");
        for (rest, window) in [(900, 10), (1_200, 30)] {
            allowance.rested(Ns::from_micros(rest));
            assert_eq!(allowance.window(100), window);
        }
    }
}
