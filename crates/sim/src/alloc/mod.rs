//! Page allocation: which plane a page is written to.
//!
//! | policy | plane of a page |
//! |---|---|
//! | `cwdp` and the other 23 orders | fixed by the logical page number, or that of its chunk (TCAD paper, section II-A) |
//! | `dynamic` | the next idle one, round robin in Channel-Chip-Die-Plane order |
//! | `write-order` | the next one, after each page or each chunk, whatever is written (Chen et al. 2016, section 5.4) |
//! | `region:MIB`, `concatenated` | on the chip that its region is on, round its planes |
//! | `conflict-free` | an idle one, for reads as well: a bound that no device reaches (TCAD paper, section III) |

mod conflict_free;
mod dynamic;
pub(crate) mod region;
mod static_order;
mod write_order;

use crate::error::SimError;
use planewise_model::location::Gangs;
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

    /// The same if there is a plane that could take the page now, for a device that binds a write only then; a policy that goes by anything
    /// else always has one.
    fn plane_now(&mut self, lpn: Lpn, view: &PlaneView<'_>) -> Option<u32> {
        Some(self.plane(lpn, view))
    }

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

/// A policy with what the tables of the device have to know of it.
pub(crate) struct Built {
    pub(crate) allocation: Box<dyn Allocation>,
    /// Plane of each position of a stripe: the order of a static policy, else Channel-Chip-Die-Plane.
    pub(crate) stripe: Vec<u32>,
    /// Where pages are in regions, not in stripes.
    pub(crate) gangs: Option<Gangs>,
}

/// Builds a policy by name, for a device with so many user pages, of which so many in turn are a chunk.
///
/// # Errors
/// The name is unknown, its regions do not fit the device, or it has no chunks.
pub(crate) fn build(
    name: &str,
    geometry: &Geometry,
    user_pages: u32,
    chunk_pages: u32,
) -> Result<Built, SimError> {
    let cwdp = AllocationOrder::CWDP.stripe(geometry);
    if chunk_pages > 1 && !has_chunks(name) && check(name).is_ok() {
        return Err(SimError::Option {
            key: "chunk_pages".into(),
            found: chunk_pages.to_string(),
            allowed: format!("1 with allocation '{name}'; more with a static order or write-order"),
        });
    }
    if let Some(gangs) = region::gangs(name, geometry, user_pages)? {
        return Ok(Built { allocation: Box::new(region::Region(gangs)), stripe: cwdp, gangs: Some(gangs) });
    }
    let (allocation, stripe): (Box<dyn Allocation>, _) = match name {
        "dynamic" => (Box::new(dynamic::Dynamic::default()), cwdp),
        "conflict-free" => (Box::new(conflict_free::ConflictFree::default()), cwdp),
        "write-order" => (Box::new(write_order::WriteOrder::new(chunk_pages)), cwdp),
        _ => match name.parse::<AllocationOrder>() {
            Ok(order) => {
                let stripe = order.stripe(geometry);
                (Box::new(static_order::StaticOrder::new(stripe.clone(), chunk_pages)), stripe)
            }
            Err(_) => {
                return Err(names::unknown("allocation", name, known().iter().map(String::as_str)).into());
            }
        },
    };
    Ok(Built { allocation, stripe, gangs: None })
}

/// Whether an allocation can give a plane several pages in turn.
fn has_chunks(name: &str) -> bool {
    name == "write-order" || name.parse::<AllocationOrder>().is_ok()
}

/// Checks a name, as far as that goes without a device: the size of regions is checked where there is one.
///
/// # Errors
/// It is unknown.
pub fn check(name: &str) -> Result<(), SimError> {
    let known = known();
    if name.starts_with(region::REGION) || known.iter().any(|one| one == name) {
        return Ok(());
    }
    Err(names::unknown("allocation", name, known.iter().map(String::as_str)).into())
}

/// All names: the 24 static orders, `dynamic`, `write-order`, `concatenated`, `conflict-free`. `region:MIB` is one for each size.
pub fn known() -> Vec<String> {
    let mut names: Vec<String> = AllocationOrder::all().iter().map(AllocationOrder::to_string).collect();
    names.extend(["dynamic", "write-order", region::CONCATENATED, "conflict-free"].map(str::to_owned));
    names
}
