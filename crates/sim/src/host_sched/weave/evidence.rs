//! What the device shows of itself by when requests complete: which rules pay on it.
//!
//! A few decaying means, one for each question. Until a question has been answered often enough, the answer is no: arrival order
//! is what every device was built for.

use planewise_model::{Direction, Ns};

/// Answers before a mean counts.
const ENOUGH: u32 = 32;

/// A decaying mean: of all samples at first, then each new one counts one part in 32.
#[derive(Clone, Copy, Default)]
struct Mean {
    samples: u32,
    value: u64,
}

impl Mean {
    fn add(&mut self, sample: u64) {
        self.samples = (self.samples + 1).min(ENOUGH);
        let samples = u64::from(self.samples);
        self.value = (self.value * (samples - 1) + sample) / samples;
    }

    fn is_known(&self) -> bool {
        self.samples >= ENOUGH
    }
}

/// What was learned.
#[derive(Default)]
pub(super) struct Evidence {
    /// Time in the device by direction, ns.
    time: [Mean; 2],
    /// The same by how much was outstanding in the whole device at the issue, of those whose units were all idle then, and of those behind
    /// others. What has more to do has more busy units and takes longer: without the levels, units that are none would seem to matter.
    by_load: [[[Mean; 2]; LEVELS]; 2],
    /// Chances since a request last completed before an earlier one of the other direction, up to [`CHANCES`].
    chances_missed: u32,
    /// Whether one ever did.
    has_overtaken: bool,
    /// By direction, as [`Evidence::units_matter`] says it.
    units_matter: [bool; 2],
}

/// Powers of two of requests outstanding that are told apart.
const LEVELS: usize = 8;

/// So many chances without one taken: the device serves directions in turns.
const CHANCES: u32 = 128;

impl Evidence {
    /// A request completed.
    ///
    /// * `time`: since its issue;
    /// * `outstanding`: requests in the device at its issue;
    /// * `behind`: whether one of its units was busy at its issue;
    /// * `overtook`: whether it overtook an earlier one of the other direction inside the device; `None`: none was there.
    pub(super) fn completed(
        &mut self,
        direction: Direction,
        time: Ns,
        outstanding: u32,
        behind: bool,
        overtook: Option<bool>,
    ) {
        self.time[direction.index()].add(time.0);
        let level = (outstanding.max(1).ilog2() as usize).min(LEVELS - 1);
        self.by_load[direction.index()][level][usize::from(behind)].add(time.0);
        self.units_matter[direction.index()] = units_matter(&self.by_load[direction.index()]);
        if let Some(overtook) = overtook {
            self.chances_missed = if overtook { 0 } else { (self.chances_missed + 1).min(CHANCES) };
            self.has_overtaken |= overtook;
        }
    }

    /// Whether reads are worth going first: they take the device clearly less time than writes. Behind a write buffer they do not.
    pub(super) fn reads_are_shorter(&self) -> bool {
        let [reads, writes] = self.time;
        reads.is_known() && writes.is_known() && 2 * writes.value > 3 * reads.value
    }

    /// Whether requests wait inside the device for their units, of either direction: those behind others take half as long again as
    /// those alone, when as much is outstanding in the whole device. Not where it buffers what comes or moves data, nor where the host
    /// is wrong about the units.
    pub(super) fn units_matter(&self) -> bool {
        self.units_matter != [false; 2]
    }

    /// Whether the device finishes all of one direction before it begins with the other.
    pub(super) fn takes_turns(&self) -> bool {
        self.chances_missed >= CHANCES
    }

    /// Whether that is still open: there were chances to see one direction overtake the other, too few of them, and none was taken.
    pub(super) fn may_take_turns(&self) -> bool {
        !self.has_overtaken && self.chances_missed > 0
    }
}

/// Of one direction: by how much was outstanding in the whole device, those alone and those behind others.
fn units_matter(levels: &[[Mean; 2]; LEVELS]) -> bool {
    let (mut alone, mut behind) = (0, 0);
    for [one, other] in levels.iter().filter(|[one, other]| one.is_known() && other.is_known()) {
        alone += one.value;
        behind += other.value;
    }
    2 * behind > 3 * alone
}
