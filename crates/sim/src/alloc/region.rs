//! Region allocation: a contiguous region of the logical space is on one chip, striped over its planes; chips take regions in turn.
//!
//! Agrawal et al. (USENIX ATC 2008) call a group of planes that is allocated from as one a gang, and pages that stay in theirs
//! concatenated; PASS (JZUS-C 2014, section 3.5) rests on such regions. Collection moves pages inside their plane, so that the range of
//! migration is limited as well (section 4.5).

use super::{Allocation, PlaneView};
use crate::error::SimError;
use planewise_model::location::Gangs;
use planewise_model::{Geometry, Lpn};

/// The name of the allocation whose regions are as large as a chip's share of the user space.
pub(super) const CONCATENATED: &str = "concatenated";
/// What names of the others begin with; the size of a region in MiB follows.
pub(super) const REGION: &str = "region:";

/// The gangs that a name stands for; none when it is no such name.
///
/// # Errors
/// A size that is no number, not whole pages on each plane, or that leaves a chip no room for collection.
pub(crate) fn gangs(name: &str, geometry: &Geometry, user_pages: u32) -> Result<Option<Gangs>, SimError> {
    let planes_per_gang = geometry.dies_per_chip * geometry.planes_per_die;
    let share = user_pages / geometry.chips();
    let size = match name.strip_prefix(REGION) {
        Some(size) => size,
        None if name == CONCATENATED => {
            let gangs = Gangs { region_pages: share.max(1), gangs: geometry.chips(), planes_per_gang };
            return Ok(Some(gangs));
        }
        None => return Ok(None),
    };
    let refuse =
        |allowed: String| SimError::Option { key: "allocation".into(), found: format!("'{name}'"), allowed };
    let page_bytes = u64::from(geometry.page_bytes);
    let share_mib = (u64::from(share) * page_bytes) >> 20;
    let bytes = size.parse::<u64>().ok().and_then(|mib| mib.checked_mul(1 << 20)).filter(|&bytes| bytes > 0);
    let row = page_bytes * u64::from(planes_per_gang);
    let region_pages =
        bytes.filter(|bytes| bytes % row == 0).and_then(|bytes| u32::try_from(bytes / page_bytes).ok());
    let Some(region_pages) = region_pages else {
        return Err(refuse(format!(
            "region:MIB with whole MiB that are a multiple of one page on each of the {planes_per_gang} planes of a chip, {row} bytes; e.g. region:{}",
            (share_mib / 16).max(1)
        )));
    };
    let gangs = Gangs { region_pages, gangs: geometry.chips(), planes_per_gang };
    let fullest = (0..geometry.planes()).map(|plane| gangs.pages_on(plane, user_pages)).max().unwrap_or(0);
    let blocks = fullest.div_ceil(geometry.pages_per_block) + SPARE_BLOCKS;
    if blocks > geometry.blocks_per_plane {
        return Err(refuse(format!(
            "regions that chips share evenly: with these one chip holds {fullest} pages a plane, {blocks} blocks of {} with those that collection needs; smaller regions, or '{CONCATENATED}' for {share_mib} MiB each",
            geometry.blocks_per_plane
        )));
    }
    Ok(Some(gangs))
}

/// Blocks of a plane that must be left: to write to, to collect into, and another where collection has its own.
const SPARE_BLOCKS: u32 = 3;

pub(super) struct Region(pub(super) Gangs);

impl Allocation for Region {
    fn plane(&mut self, lpn: Lpn, _view: &PlaneView<'_>) -> u32 {
        self.0.place(lpn.0).0
    }

    fn would_touch(&self, first: Lpn, count: u32, _stripe: &[u32], visit: &mut dyn FnMut(u32)) -> bool {
        (first.0..first.0 + count).for_each(|page| visit(self.0.place(page).0));
        true
    }

    fn is_static(&self) -> bool {
        true
    }
}
