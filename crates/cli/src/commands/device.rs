//! `planewise device`: profiles of devices.

use crate::arguments::DeviceCommand;
use crate::failure::{Failure, Kind};
use crate::{output, plan};
use planewise_model::profile::EMBEDDED;
use planewise_model::{AllocationOrder, Bytes, Profile};
use planewise_sim::gc::{self, victims};
use planewise_sim::{flash_sched, wear};
use std::path::Path;

/// Lists, shows or checks profiles.
///
/// # Errors
/// An unknown name, or a file that is wrong.
pub fn execute(command: &DeviceCommand) -> Result<(), Failure> {
    match command {
        DeviceCommand::List => list(),
        DeviceCommand::Show { device } => show(device),
        DeviceCommand::Check { file } => check(file),
        DeviceCommand::Policies => policies(),
        DeviceCommand::Schema => output::print(&format!("{:#}\n", Profile::json_schema().to_value())),
    }
}

fn list() -> Result<(), Failure> {
    let mut text = String::new();
    let width = EMBEDDED.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, _) in EMBEDDED {
        let profile = Profile::embedded(name)?;
        text += &format!(
            "{name:<width$}  {:>10} raw  {:>10} for the user  {}\n",
            profile.geometry.capacity().to_string(),
            profile.user_capacity().to_string(),
            profile.description
        );
    }
    output::print(&text)
}

/// Allocations that are no order, as `planewise_sim::alloc` describes them.
const ALLOCATIONS: [(&str, &str); 5] = [
    ("dynamic", "the next idle plane, round robin"),
    ("write-order", "the next plane, whatever is written"),
    ("concatenated", "a chip for each share of the space as large as its own; round its planes"),
    ("region:MIB", "the same with regions of MIB, which chips take in turn"),
    ("conflict-free", "an idle plane, for reads as well: a bound that no device reaches"),
];

/// Lists the families of policies of the device: the option that takes them, and a line for each.
fn policies() -> Result<(), Failure> {
    let orders = AllocationOrder::all();
    let named = |name: &str, summary: &str| (name.to_owned(), summary.to_owned());
    let mut allocations = vec![(
        AllocationOrder::CWDP.to_string(),
        format!(
            "fixed by the page number: channel, chip (way), die, plane; in any of {} orders of c, w, d, p",
            orders.len()
        ),
    )];
    allocations.extend(ALLOCATIONS.map(|(name, summary)| named(name, summary)));
    let families = [
        (
            "Garbage collection (--gc)",
            gc::SCHEMES.iter().map(|scheme| named(scheme.name, scheme.summary)).collect::<Vec<_>>(),
        ),
        (
            "Victim selection (--victims)",
            victims::POLICIES.iter().map(|policy| named(&policy.form(), policy.summary)).collect(),
        ),
        (
            "Wear levelling (--wear)",
            wear::POLICIES.iter().map(|policy| named(&policy.form(), policy.summary)).collect(),
        ),
        ("Page allocation (--allocation)", allocations),
        (
            "Flash scheduling (--flash-scheduler)",
            flash_sched::POLICIES.iter().map(|policy| named(policy.name, policy.summary)).collect(),
        ),
    ];
    let width = families.iter().flat_map(|(_, lines)| lines).map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (title, lines) in families {
        text += &format!("{}{title}\n", if text.is_empty() { "" } else { "\n" });
        text.extend(lines.iter().map(|(name, summary)| format!("  {name:<width$}  {summary}\n")));
    }
    output::print(&text)
}

fn show(device: &str) -> Result<(), Failure> {
    let profile = plan::profile(device)?;
    output::print(&format!("{}\n{}", facts(&profile), profile.to_toml()))
}

/// What follows from a profile, as TOML comments.
fn facts(profile: &Profile) -> String {
    let geometry = &profile.geometry;
    let timing = &profile.timing;
    let transfer = timing.transfer(geometry.page_bytes);
    let layout = profile.layout();
    let (unit, program) = (geometry.page_bytes / layout.units_per_page, layout.program_units());
    // What a program writes crosses the bus before it.
    let load = u64::from(layout.planes * layout.program_pages) * (timing.command_ns + transfer.0);
    let units = match profile.is_plain() {
        true => String::new(),
        false => format!(
            "# units of {}: {} in a page, {program} in a program ({} of one die){}\n",
            Bytes(u64::from(unit)),
            layout.units_per_page,
            planewise_model::words::counted(u64::from(layout.planes * layout.program_pages), "page"),
            match layout.parity_one_in {
                0 => String::new(),
                one_in => format!("; one program in {one_in} is parity"),
            }
        ),
    };
    let cache = profile.slc_cache.map_or_else(String::new, |cache| {
        let block = u64::from(geometry.pages_per_block / cache.bits_per_cell) * u64::from(geometry.page_bytes);
        let of = |blocks: u32| Bytes(u64::from(blocks) * u64::from(geometry.planes()) * block);
        format!(
            "# SLC cache of about {}, and up to {} more where space is free\n",
            of(cache.static_blocks),
            of(cache.dynamic_blocks)
        )
    });
    let stripe = Bytes(u64::from(geometry.planes()) * u64::from(geometry.page_bytes));
    format!(
        "# {}: {}\n# raw capacity {}, user capacity {} ({} pages of {})\n# {} chips, {} dies, {} planes; one page on each plane: {}\n# page transfer {transfer}, unloaded read {}, unloaded write {}\n{units}{cache}",
        profile.name,
        profile.description,
        geometry.capacity(),
        profile.user_capacity(),
        profile.user_pages(),
        Bytes(u64::from(geometry.page_bytes)),
        geometry.chips(),
        geometry.dies(),
        geometry.planes(),
        stripe,
        planewise_model::Ns(timing.command_ns) + timing.read_ns.of_page(0) + transfer,
        planewise_model::Ns(load) + timing.program_ns.of_page(0),
    )
}

fn check(file: &Path) -> Result<(), Failure> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::new(Kind::Usage, format!("{name}: {error}")))?;
    let profile = Profile::parse(&text, &name)?;
    plan::check_names(&profile).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    output::print(&format!("{name}: {} is a valid profile\n", profile.name))
}
