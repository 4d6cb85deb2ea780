//! Garbage collection: when a plane is collected, which block, and who goes first, the collection or the host.
//!
//! | scheme | in short |
//! |---|---|
//! | `traditional` | holds the chip until the victim is erased |
//! | `preemptive` | lets the host in between two steps, down to a hard floor of free space (Lee et al. 2013) |
//! | `paced` | lets the host in between two steps, and moves pages in proportion to what it writes |
//! | `parallel` | traditional, but planes of a die that need it are collected at the same time (Shahidi et al. 2016) |
//! | `dpr` | traditional, but pages likely to be read have a replica on another chip (He et al. 2015) |
//! | `idle_chip` | valid pages leave to a buffer and return to idle chips (the GC paper) |
//! | `yielding` | collects ahead in idle time, through the buffer, and suspends for reads: goes past the paper |
//! | `gc_free` | takes no time: the bound |
//!
//! A scheme decides, in its own file; the mechanics that schemes share are the device's (`device/collect.rs` and its
//! neighbours). Which block is collected is another family, [`victims`].

pub(crate) mod buffer;
mod dpr;
mod gc_free;
mod idle_chip;
mod paced;
mod parallel;
mod preemptive;
mod read_counts;
pub(crate) mod replicas;
mod traditional;
pub mod victims;
pub(crate) mod write_back;
mod yielding;

use crate::error::SimError;
use planewise_model::profile::Collection;
use planewise_model::{Direction, Ns, names};

/// What a scheme may look at when it decides about a plane.
#[derive(Clone, Copy, Debug)]
pub struct PlaneState {
    /// Pages that can be programmed before anything must be erased.
    pub free_pages: u32,
    /// Pages of the plane.
    pub pages: u32,
    /// How far the collection under way there is; zeros when there is none.
    pub progress: Progress,
}

/// How far a collection is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Pages that the host has written to the plane since it began.
    pub host_pages: u32,
    /// Pages moved so far.
    pub steps: u32,
    /// Valid pages that the victim had when it began.
    pub valid: u32,
    /// Pages that the erase gives back beyond those that the moves use up.
    pub gains: u32,
}

impl PlaneState {
    /// Whether the share of free pages is below `share`.
    #[inline]
    pub fn is_below(&self, share: f64) -> bool {
        f64::from(self.free_pages) < share * f64::from(self.pages)
    }
}

/// Who uses the executor next while a collection is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The next step of the collection.
    Collection,
    /// A waiting host transaction.
    Host,
}

/// A garbage collection scheme. The defaults are those of a collection that holds its chip from beginning to end.
pub trait Collector: Send {
    /// Whether a collection should start on a plane. The device starts one on its own when a write finds no space at all.
    fn should_start(&self, plane: PlaneState) -> bool;

    /// Whether a collection should start although nothing forces it to, because no request is in the I/O queue. `valid` is
    /// the share of valid pages in the block that would be collected.
    fn should_start_ahead(&self, _plane: PlaneState, _valid: f64) -> bool {
        false
    }

    /// Whether idle time is asked for collections at all.
    fn collects_ahead(&self) -> bool {
        false
    }

    /// Asked between two steps (a page moved, the block erased) when host transactions wait for the same executor:
    /// `waiting` is the direction of the one that would go next.
    fn turn(&self, _plane: PlaneState, _waiting: Direction) -> Turn {
        Turn::Collection
    }

    /// Whether the host finds the chip taken while a collection is under way on the plane. A scheme that lets the host in
    /// between steps leaves it open.
    fn holds_chip(&self, _plane: PlaneState) -> bool {
        true
    }

    /// Whether a collection takes time. Only a bound takes none.
    fn takes_time(&self) -> bool {
        true
    }

    /// Whether a collection sends the rest of its valid pages through the valid page buffer, as far as there is room: asked
    /// before each move until it says so. `conflict` tells whether a host request waits for the chip.
    fn opens_stream(&self, _conflict: bool) -> bool {
        false
    }

    /// Whether a collection that found no slot left asks for one again before each further move, or moves the rest the traditional way.
    fn asks_again(&self) -> bool {
        false
    }

    /// Whether the scheme uses the valid page buffer.
    fn buffers(&self) -> bool {
        false
    }

    /// Whether pages likely to be read get a replica on another chip before a collection begins.
    fn keeps_replicas(&self) -> bool {
        false
    }

    /// Whether planes of a die may be collected at the same time, where multi-plane commands are in use.
    fn collects_side_by_side(&self) -> bool {
        false
    }

    /// Whether a plane's collection begins at the same time as one that begins on another plane of its die. `apart` is how long that other one,
    /// with those that joined it already, and the plane's own would hold the die, `together` how long both do.
    fn joins(&self, _plane: PlaneState, _apart: [Ns; 2], _together: Ns) -> bool {
        false
    }

    /// Whether a program or an erase of a collection is suspended when a read of the host arrives for the die.
    fn suspends(&self) -> bool {
        false
    }
}

/// One line of the table of schemes.
pub struct Scheme {
    /// Name in profiles and on the command line.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// A bound, not something a device could do.
    pub bound: bool,
    build: fn(&Collection) -> Box<dyn Collector>,
}

/// All schemes.
pub static SCHEMES: &[Scheme] = &[
    traditional::SCHEME,
    preemptive::SCHEME,
    paced::SCHEME,
    parallel::SCHEME,
    dpr::SCHEME,
    idle_chip::SCHEME,
    yielding::SCHEME,
    gc_free::SCHEME,
];

/// Looks a scheme up by name.
///
/// # Errors
/// The name is unknown.
pub fn find(name: &str) -> Result<&'static Scheme, SimError> {
    SCHEMES.iter().find(|scheme| scheme.name == name).ok_or_else(|| {
        names::unknown("garbage collection scheme", name, SCHEMES.iter().map(|s| s.name)).into()
    })
}

impl Scheme {
    pub(crate) fn collector(&self, options: &Collection) -> Box<dyn Collector> {
        (self.build)(options)
    }
}
