//! The power cut: what the capacitor has to bring to flash, and how long that takes (GC paper, section 5.2.2).

use super::Device;
use planewise_model::{Lpn, Ns, Ppn};

/// What a flush of the valid page buffer takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flush {
    /// Formula (1) as printed: it rounds the pages of each chip down, so that fewer pages than chips take no program at all.
    pub(crate) formula: Ns,
    /// The same with the fullest chip's pages, rounding up: what the formula means, and the least that a device takes.
    pub(crate) at_least: Ns,
}

impl Device {
    /// Time to flush a number of buffered pages over all chips in parallel:
    /// N · T(DRAM read) + ⌊N / chips⌋ · (T(transfer) + T(program)).
    pub(crate) fn flush_time(&self, pages: u32) -> Flush {
        let chips = self.geometry.chips();
        let program = self.timing.program_ns.mean() + self.program_transfer();
        let read = self.buffer_read.0 * u64::from(pages);
        let rounds = |rounds: u32| Ns(read + u64::from(rounds) * program.0);
        // Where a program writes several units, a chip takes that many at a time.
        let pages = pages.div_ceil(self.operations.layout.program_units());
        Flush { formula: rounds(pages / chips), at_least: rounds(pages.div_ceil(chips)) }
    }

    /// What the capacitor must flush: the slots in use of the valid page buffer and of the write buffer, as page numbers behind the last page of the flash, and their pages.
    pub(crate) fn buffered_pages(&self) -> Vec<(Ppn, Lpn)> {
        let collected = self.buffer.pages().map(|(slot, lpn)| (self.page_of_slot(slot), lpn));
        // What no capacitor keeps is gone.
        let protected = self.write_buffer.iter().filter(|buffer| buffer.is_protected());
        let written = protected.flat_map(|buffer| buffer.pages());
        collected.chain(written.map(|(slot, lpn)| (self.page_of_write_slot(slot), lpn))).collect()
    }

    /// How long the flush takes from a cut at `now` with channels that carry one page at a time: each chip first ends what its arrays are at
    /// work on (that is torn for the host, but a block under erase takes no page), then programs its share one after the other; chips of a
    /// channel get their pages in turn. A program takes the mean over the page types.
    pub(crate) fn simulated_flush(&self, now: Ns, pages: u32) -> Ns {
        let per_channel = self.geometry.chips_per_channel;
        let program = self.timing.program_ns.mean();
        let mut channel_free = vec![Ns::ZERO; self.geometry.channels as usize];
        let mut chip_free = self.chips_busy_for(now);
        let mut end = Ns::ZERO;
        let units = self.operations.layout.program_units();
        for page in 0..pages.div_ceil(units) {
            // Round robin over channels first, as write-backs go.
            let channel = page % self.geometry.channels;
            let chip = channel * per_channel + page / self.geometry.channels % per_channel;
            let read = Ns(self.buffer_read.0 * u64::from(((page + 1) * units).min(pages)));
            let start = read.max(channel_free[channel as usize]).max(chip_free[chip as usize]);
            let sent = start + Ns(self.timing.command_ns) + self.program_transfer();
            channel_free[channel as usize] = sent;
            chip_free[chip as usize] = sent + program;
            end = end.max(sent + program);
        }
        end
    }

    /// Channel time of the data of one program.
    fn program_transfer(&self) -> Ns {
        Ns(self.page_transfer.0 * u64::from(self.operations.layout.program_units()))
    }

    /// By chip: for how long its arrays are still at work.
    fn chips_busy_for(&self, now: Ns) -> Vec<Ns> {
        let chips = self.geometry.chips();
        let executors_per_chip = self.executor_count / chips;
        let mut busy = vec![Ns::ZERO; chips as usize];
        for executor in 0..self.executor_count {
            let chip = &mut busy[(executor / executors_per_chip) as usize];
            *chip = (*chip).max(self.array_busy_for(executor, now));
        }
        busy
    }
}
