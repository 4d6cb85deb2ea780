//! Page allocation: which plane a page is written to.
//!
//! | policy | plane of a page |
//! |---|---|
//! | `cwdp` and the other 23 orders | fixed by the logical page number (TCAD paper, section II-A) |
//! | `dynamic` | the next idle one, round robin in Channel-Chip-Die-Plane order |
//! | `write-order` | the next one, whatever is written (Chen et al. 2016, section 5.4) |
//! | `conflict-free` | an idle one, for reads as well: a bound that no device reaches (TCAD paper, section III) |

mod conflict_free;
mod dynamic;
mod static_order;
mod write_order;

use crate::error::SimError;
use planewise_model::{AllocationOrder, Geometry, Lpn, names};

/// What an allocation policy may look at.
pub struct PlaneView<'a> {
    /// Plane of each position of a stripe.
    pub stripe: &'a [u32],
    /// One bit for each position of a stripe: its plane could start an operation now.
    pub idle: &'a [u64],
    /// The same: its plane is being collected, but lets the host in between two steps.
    pub yielding: &'a [u64],
    /// Whether a plane can take another page, now or after collection.
    pub has_room: &'a dyn Fn(u32) -> bool,
}

/// Decides where pages go. One per device; called once for each page written, in the order of the writes.
pub trait Allocation: Send {
    /// The plane for the next write of `lpn`.
    fn plane(&mut self, lpn: Lpn, view: &PlaneView<'_>) -> u32;

    /// Calls `visit` with the plane of each page that a write of `count` pages from `first` would touch now, for a host
    /// interface that must wait until all of them are free. Returns false when any idle plane will do.
    fn would_touch(&self, first: Lpn, count: u32, stripe: &[u32], visit: &mut dyn FnMut(u32)) -> bool;

    /// Whether reads, too, are served by whichever plane the policy gives: only for bounds.
    fn redirects_reads(&self) -> bool {
        false
    }

    /// Whether a page stays on the plane that its number says.
    fn is_static(&self) -> bool {
        false
    }
}

/// Builds a policy by name, and the stripe order that goes with it.
///
/// # Errors
/// The name is unknown.
pub fn build(name: &str, geometry: &Geometry) -> Result<(Box<dyn Allocation>, Vec<u32>), SimError> {
    let cwdp = AllocationOrder::CWDP.stripe(geometry);
    match name {
        "dynamic" => Ok((Box::new(dynamic::Dynamic::default()), cwdp)),
        "conflict-free" => Ok((Box::new(conflict_free::ConflictFree::default()), cwdp)),
        "write-order" => Ok((Box::new(write_order::WriteOrder::default()), cwdp)),
        _ => match name.parse::<AllocationOrder>() {
            Ok(order) => {
                let stripe = order.stripe(geometry);
                Ok((Box::new(static_order::StaticOrder::new(stripe.clone())), stripe))
            }
            Err(_) => Err(names::unknown("allocation", name, known().iter().map(String::as_str)).into()),
        },
    }
}

/// All names: the 24 static orders, `dynamic`, `write-order`, `conflict-free`.
pub fn known() -> Vec<String> {
    let mut names: Vec<String> = AllocationOrder::all().iter().map(AllocationOrder::to_string).collect();
    names.extend(["dynamic".to_owned(), "write-order".to_owned(), "conflict-free".to_owned()]);
    names
}
