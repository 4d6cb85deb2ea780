//! The policies of the kernel modules (`kernel/core`), called from Rust: so that tests can hold them beside the simulator's own.
//!
//! The C is compiled as it is, GPL-2.0-only like all of `kernel/`; nothing that Planewise's programs are made of depends on this crate.

use planewise_model::geometry::AllocationOrder;
use planewise_model::location::{Gangs, UnitMap};
use planewise_model::{Direction, Geometry, Ns, Request};
use planewise_sim::host::Slot;
use std::ffi::{CStr, CString, c_char, c_void};

pub mod tracepoints;

/// A policy of `kernel/core`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// `piq.c`: the simulator's piq+.
    Piq = 0,
    /// `pass.c`: the simulator's pass.
    Pass = 1,
    /// `weave.c`: the simulator's weave.
    Weave = 2,
}

/// What the host believes of a drive: parameters of the modules, under their names.
#[derive(Clone, Debug)]
pub struct Drive {
    /// Channels.
    pub channels: u32,
    /// Chips of a channel.
    pub chips_per_channel: u32,
    /// Dies of a chip.
    pub dies_per_chip: u32,
    /// Planes of a die.
    pub planes_per_die: u32,
    /// Bytes of consecutive data on one unit, a multiple of 512.
    pub chunk_bytes: u32,
    /// What a unit is: `chip` or `plane`.
    pub level: String,
    /// The letters c, w, d, p, that which changes first first.
    pub order: String,
    /// Bytes of the contiguous regions that chips take in turn; 0 where data are striped in that order.
    pub chip_region_bytes: u64,
}

impl Drive {
    /// Bytes of the pages in which [`Drive::unit_map`] counts.
    pub fn page_bytes(&self) -> u32 {
        const PAGE: u32 = 4096;
        if self.chip_region_bytes == 0 && self.chunk_bytes.is_multiple_of(PAGE) {
            PAGE
        } else {
            self.chunk_bytes
        }
    }

    /// Where the simulator believes the data of such a drive to be: made from its own tables, not from the C's.
    ///
    /// # Errors
    /// An order that is none.
    ///
    /// # Panics
    /// When the modules refuse such a drive.
    pub fn unit_map(&self) -> Result<UnitMap, String> {
        let geometry = Geometry {
            channels: self.channels,
            chips_per_channel: self.chips_per_channel,
            dies_per_chip: self.dies_per_chip,
            planes_per_die: self.planes_per_die,
            blocks_per_plane: 3,
            pages_per_block: 1,
            page_bytes: self.page_bytes(),
        };
        let planes_per_chip = self.dies_per_chip * self.planes_per_die;
        let planes = self.level == "plane";
        if self.chip_region_bytes > 0 {
            let region_pages =
                u32::try_from(self.chip_region_bytes / u64::from(self.chunk_bytes)).map_err(|_| {
                    format!("chip_region_bytes: found {}: too many chunks", self.chip_region_bytes)
                })?;
            let gangs = Gangs { region_pages, gangs: geometry.chips(), planes_per_gang: planes_per_chip };
            return Ok(UnitMap::gangs(gangs, planes));
        }
        let order: AllocationOrder = self.order.parse()?;
        let planes_per_unit = if planes { 1 } else { planes_per_chip };
        let stripe = order.stripe(&geometry).iter().map(|plane| plane / planes_per_unit).collect();
        Ok(UnitMap::striped(stripe).of_chunks(self.chunk_bytes / self.page_bytes()))
    }
}

#[repr(C)]
struct RawDrive {
    channels: u32,
    chips_per_channel: u32,
    dies_per_chip: u32,
    planes_per_die: u32,
    chunk_bytes: u32,
    level: *const c_char,
    order: *const c_char,
    chip_region_bytes: u64,
}

#[repr(C)]
struct RawRefusal {
    name: *const c_char,
    allowed: *const c_char,
}

#[repr(C)]
struct RawTunable {
    name: *const c_char,
    standard: u64,
    least: u64,
    most: u64,
    words: *const *const c_char,
    is_fixed: bool,
}

unsafe extern "C" {
    fn planewise_harness_create(
        policy: u32,
        drive: *const RawDrive,
        capacity_sectors: u64,
        values: *const u64,
        slots: u32,
        writes_stay: bool,
        refusal: *mut RawRefusal,
    ) -> *mut c_void;
    fn planewise_harness_destroy(harness: *mut c_void);
    fn planewise_harness_insert(
        harness: *mut c_void,
        now: u64,
        slot: u32,
        sector: u64,
        sectors: u32,
        direction: u32,
    );
    fn planewise_harness_dispatch(harness: *mut c_void, now: u64, wake: *mut u64) -> i64;
    fn planewise_harness_completed(harness: *mut c_void, now: u64, slot: u32);
    fn planewise_harness_has_waiting(harness: *mut c_void) -> bool;
    fn planewise_harness_may_grow(harness: *mut c_void, slot: u32, sector: u64, sectors: u32) -> bool;
    fn planewise_harness_grew(harness: *mut c_void, slot: u32, sector: u64, sectors: u32);
    fn planewise_harness_count(harness: *mut c_void, counters: *mut u64, names: *mut *const c_char) -> u32;
    fn planewise_harness_tunable(policy: u32, index: u32, tunable: *mut RawTunable) -> bool;
}

/// A tunable as the C declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreTunable {
    /// Its name.
    pub name: String,
    /// Its default.
    pub standard: u64,
    /// The smallest allowed.
    pub least: u64,
    /// The largest allowed.
    pub most: u64,
    /// Where it is one of several words: these, by their number.
    pub words: Vec<String>,
}

impl Policy {
    /// All of them, with the names of the modules and of the simulator's policies.
    pub const ALL: [(Policy, &str, &str); 3] = [
        (Policy::Piq, "planewise-piq", "piq+"),
        (Policy::Pass, "planewise-pass", "pass"),
        (Policy::Weave, "planewise-weave", "weave"),
    ];
}

/// `PLANEWISE_TUNABLES_MAX` and `PLANEWISE_COUNTERS_MAX` of `core.h`.
const MANY: usize = 8;

fn text(pointer: *const c_char) -> String {
    // SAFETY: all texts that the C hands out are its string literals.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// The tunables of a policy.
pub fn tunables(policy: Policy) -> Vec<CoreTunable> {
    let mut found = Vec::new();
    let null = std::ptr::null();
    let mut raw =
        RawTunable { name: null, standard: 0, least: 0, most: 0, words: std::ptr::null(), is_fixed: false };
    // SAFETY: the policy is one of the table's, and `raw` is what the C writes.
    while unsafe { planewise_harness_tunable(policy as u32, found.len() as u32, &raw mut raw) } {
        let mut words = Vec::new();
        // SAFETY: the words end with a null pointer.
        while !raw.words.is_null() && unsafe { !(*raw.words.add(words.len())).is_null() } {
            // SAFETY: as above.
            words.push(text(unsafe { *raw.words.add(words.len()) }));
        }
        found.push(CoreTunable {
            name: text(raw.name),
            standard: raw.standard,
            least: raw.least,
            most: raw.most,
            words,
        });
    }
    found
}

/// A policy at work.
pub struct Core(*mut c_void);

impl Core {
    /// A policy for a drive, with its tunables in their order and for requests in so many slots. `writes_stay`: a write goes to the units that its
    /// addresses say.
    ///
    /// # Errors
    /// What is refused of the drive, and what is allowed.
    ///
    /// # Panics
    /// When there are fewer values than tunables, or a text holds a zero byte.
    pub fn new(
        policy: Policy,
        drive: &Drive,
        capacity_sectors: u64,
        values: &[u64],
        slots: u32,
        writes_stay: bool,
    ) -> Result<Core, (String, String)> {
        assert_eq!(values.len(), tunables(policy).len(), "a value for each tunable");
        let [level, order] =
            [&drive.level, &drive.order].map(|text| CString::new(text.as_str()).expect("no zero byte"));
        let raw = RawDrive {
            channels: drive.channels,
            chips_per_channel: drive.chips_per_channel,
            dies_per_chip: drive.dies_per_chip,
            planes_per_die: drive.planes_per_die,
            chunk_bytes: drive.chunk_bytes,
            level: level.as_ptr(),
            order: order.as_ptr(),
            chip_region_bytes: drive.chip_region_bytes,
        };
        let mut refusal = RawRefusal { name: std::ptr::null(), allowed: std::ptr::null() };
        // SAFETY: all pointers live through the call; the C copies what it keeps.
        let harness = unsafe {
            planewise_harness_create(
                policy as u32,
                &raw const raw,
                capacity_sectors,
                values.as_ptr(),
                slots,
                writes_stay,
                &raw mut refusal,
            )
        };
        if harness.is_null() {
            assert!(!refusal.name.is_null(), "out of memory");
            return Err((text(refusal.name), text(refusal.allowed)));
        }
        Ok(Core(harness))
    }

    /// A request entered a free slot.
    pub fn insert(&mut self, now: Ns, slot: Slot, request: &Request) {
        let direction = match request.direction {
            Direction::Read => 0,
            Direction::Write => 1,
        };
        // SAFETY: the harness lives as long as `self`; so below.
        unsafe {
            planewise_harness_insert(self.0, now.0, slot.0, request.start.0, request.sectors, direction);
        }
    }

    /// The request that goes next, or when to ask again: [`Ns::MAX`] for after the next event.
    pub fn dispatch(&mut self, now: Ns) -> Result<Slot, Ns> {
        let mut wake = 0;
        // SAFETY: as in `insert`.
        let slot = unsafe { planewise_harness_dispatch(self.0, now.0, &raw mut wake) };
        u32::try_from(slot).map(Slot).map_err(|_| Ns(wake))
    }

    /// An issued request completed, or came back.
    pub fn completed(&mut self, now: Ns, slot: Slot) {
        // SAFETY: as in `insert`.
        unsafe { planewise_harness_completed(self.0, now.0, slot.0) };
    }

    /// Whether requests wait.
    pub fn has_waiting(&self) -> bool {
        // SAFETY: as in `insert`.
        unsafe { planewise_harness_has_waiting(self.0) }
    }

    /// Whether the waiting request in the slot may grow by an adjacent one.
    pub fn may_grow(&self, slot: Slot, added: &Request) -> bool {
        // SAFETY: as in `insert`.
        unsafe { planewise_harness_may_grow(self.0, slot.0, added.start.0, added.sectors) }
    }

    /// It grew to this.
    pub fn grew(&mut self, slot: Slot, after: &Request) {
        // SAFETY: as in `insert`.
        unsafe { planewise_harness_grew(self.0, slot.0, after.start.0, after.sectors) };
    }

    /// Its counters, by name.
    pub fn counters(&self) -> Vec<(String, u64)> {
        let (mut counters, mut names) = ([0; MANY], [std::ptr::null(); MANY]);
        // SAFETY: no policy has more counters than there is room for.
        let count = unsafe { planewise_harness_count(self.0, counters.as_mut_ptr(), names.as_mut_ptr()) };
        names.into_iter().map(text_or_none).zip(counters).take(count as usize).collect()
    }
}

fn text_or_none(pointer: *const c_char) -> String {
    if pointer.is_null() { String::new() } else { text(pointer) }
}

impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: made by `planewise_harness_create`, and used by nobody any more.
        unsafe { planewise_harness_destroy(self.0) };
    }
}
