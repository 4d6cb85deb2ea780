//! What `planewise probe` says of drives on which something else looks like what it looks for: never a wrong number, at no confidence.

#![cfg(unix)]

mod support;

use planewise_io::probe::Findings;
use planewise_io::probe::array::Array;
use planewise_io::probe::file::ProbeFile;
use planewise_io::probe::mapping::Mapping;
use planewise_io::probe::queue::Commands;
use planewise_model::{Bytes, Profile};
use support::Place;

/// What is found of a drive, the profile made of it, and what was printed.
struct Probed {
    findings: Findings,
    profile: Profile,
    printed: String,
}

fn probed(target: &str) -> Probed {
    let place = Place::new();
    let said = place.ok(&format!("probe {target} --quick --quiet --out x"));
    let directory = place.path().join("x");
    let file = ProbeFile::read(&directory.join("probe.json")).unwrap().unwrap();
    let profile = std::fs::read_to_string(directory.join("profile.toml")).unwrap();
    let profile = Profile::parse(&profile, "profile.toml").unwrap();
    Probed { findings: file.findings, profile, printed: said.out }
}

/// Undetermined, or within a tenth.
fn is_near(value: Option<f64>, truth: f64) -> bool {
    value.is_none_or(|value| (value / truth - 1.0).abs() < 0.1)
}

fn units(probed: &Probed) -> Option<u64> {
    probed.findings.domains.as_ref().unwrap().units.value
}

/// Units of a profile's geometry.
fn units_of(profile: &Profile) -> u64 {
    let geometry = &profile.geometry;
    let dies = if profile.advanced_commands.die_interleave { geometry.dies_per_chip } else { 1 };
    u64::from(geometry.channels) * u64::from(geometry.chips_per_channel) * u64::from(dies)
}

const PLAIN: &str = "sim:piq-128g:interface.command_queue=ncq:32,advanced_commands.die_interleave=false";

/// A drive of 16 KiB pages placed by their addresses, each programmed alone.
const PAGES_OF_16K: &str = "sim:tlc-nvme-1t:translation.unit_bytes=16384,translation.superblocks=false,\
     translation.parity_one_in=0,translation.allocation=cwdp,timing.program_pages=1,timing.program_ns=600_000,slc_cache=none,\
     write_buffer.entry_order=false,write_buffer.pages=1024,write_buffer.in_flight_pages=512";

#[test]
fn units_that_all_share_one_bus_are_no_buses_each() {
    let one = format!("{PAGES_OF_16K},geometry.channels=1,geometry.blocks_per_plane=456");
    let of = probed(&one);
    let domains = of.findings.domains.as_ref().unwrap();
    assert!(domains.degree.value.is_none_or(|degree| degree == 1), "{:?}", domains.degree);
    assert!(domains.sub_domains.value.is_none_or(|units| units == 8), "{:?}", domains.sub_domains);
    // Without registers that hide the bus, one is found.
    let of = probed(&format!("{one},advanced_commands.cache_read=false"));
    let domains = of.findings.domains.as_ref().unwrap();
    assert_eq!((domains.degree.value, domains.sub_domains.value), (Some(1), Some(8)), "{:?}", domains.degree);
    assert_eq!(of.profile.geometry.channels, 1);
}

#[test]
fn a_relation_that_is_too_coarse_is_not_stated() {
    let of = probed(&format!(
        "{PLAIN},translation.allocation=cdpw,geometry.dies_per_chip=4,geometry.planes_per_die=6,geometry.blocks_per_plane=512"
    ));
    assert_eq!(units(&of), Some(64));
    // Distances between units that are not looked for, and more units than are told apart.
    let of = probed(&format!(
        "{PLAIN},translation.allocation=cdpw,geometry.dies_per_chip=5,geometry.planes_per_die=7,geometry.blocks_per_plane=512"
    ));
    assert!(units(&of).is_none_or(|units| units == 64), "{:?}", units(&of));
    let of = probed(
        "sim:piq-128g:interface.command_queue=ncq:32,geometry.channels=16,geometry.chips_per_channel=32,geometry.blocks_per_plane=256",
    );
    assert!(units(&of).is_none_or(|units| units == 1024), "{:?}", units(&of));
}

#[test]
fn an_array_of_drives_is_found_as_such_and_none_of_its_members_as_a_unit() {
    let of = probed("raid0:4x32k:ssd-s");
    let array = of.findings.array.as_ref().unwrap();
    assert_eq!(array.value, Some(Array { members: 4, stripe: Bytes(32 << 10) }), "{}", array.statistic);
    assert_eq!(units(&of), None);
    assert!(!of.printed.contains("--units"), "{}", of.printed);
    assert_ne!(of.findings.mapping.as_ref().unwrap().value, Some(Mapping::Static));
    let of = probed("sim:ssd-s");
    let array = of.findings.array.as_ref().unwrap();
    assert_eq!(array.value.map(|array| array.members), Some(1), "{}", array.statistic);
}

#[test]
fn pages_of_one_chunk_are_not_taken_for_chunks() {
    for pages in [2, 4, 64] {
        let of = probed(&format!("sim:ssd-s:translation.chunk_pages={pages}"));
        let [page, chunk] = [&of.findings.page, &of.findings.chunk].map(|of| of.as_ref().unwrap());
        assert_eq!(page.value, Some(Bytes(4096)), "{page:?}");
        assert_eq!(chunk.value, Some(Bytes(pages * 4096)), "{chunk:?}");
        assert_eq!(units(&of), Some(20));
        assert_eq!(of.findings.mapping.as_ref().unwrap().value, Some(Mapping::WriteOrder));
        let translation = &of.profile.translation;
        assert_eq!((translation.allocation.as_str(), translation.chunk_pages), ("write-order", pages as u32));
    }
    // Nothing meets inside a drive that takes one command at a time, and few things in one whose chunks are as long as this.
    for drive in ["ssd1:translation.chunk_pages=4", "ssd-s:translation.chunk_pages=1024"] {
        let of = probed(&format!("sim:{drive}"));
        let chunk = of.findings.chunk.as_ref().unwrap();
        assert_eq!(chunk.value, None, "{chunk:?}");
    }
}

#[test]
fn a_profile_has_as_many_units_as_were_found() {
    for allocation in ["pcdw", "cdpw", "dcpw", "wpcd"] {
        let of = probed(&format!("{PLAIN},translation.allocation={allocation},geometry.chips_per_channel=4"));
        let found = units(&of).expect("nothing hides them");
        assert_eq!((found, units_of(&of.profile)), (32, 32), "{allocation}: {:?}", of.profile.geometry);
    }
}

#[test]
fn a_slow_controller_is_not_taken_for_flash() {
    let of = probed("sim:ssd-s:processor.command_ns=80000");
    let latencies = of.findings.latencies.as_ref().unwrap();
    assert!(is_near(latencies.unit_hold.value, 38_000.0), "{:?}", latencies.unit_hold);
    assert!(is_near(latencies.read.value.as_ref().map(|reads| reads[0]), 25_000.0), "{:?}", latencies.read);
    assert!(latencies.cache_read.value.is_none_or(|has| !has), "{:?}", latencies.cache_read);
    assert!(is_near(latencies.transfer.value, 25_000.0), "{:?}", latencies.transfer);
}

#[test]
fn the_depth_of_the_queue_is_found_and_not_taken_for_the_controller() {
    for depth in [4, 8, 32] {
        let of = probed(&format!("sim:piq-128g:interface.command_queue=ncq:{depth}"));
        let queue = of.findings.queue.as_ref().unwrap();
        assert_eq!(queue.commands.value, Some(Commands::Exactly(depth)), "{}", queue.commands.statistic);
        assert_eq!(of.profile.interface.command_queue, format!("ncq:{depth}"));
        let command = &of.findings.latencies.as_ref().unwrap().command;
        assert!(command.value.is_none_or(|distance| distance == 0.0), "{command:?}");
    }
    let of = probed("sim:piq-128g:interface.command_queue=ncq:1000");
    assert_eq!(of.findings.queue.as_ref().unwrap().commands.value, Some(Commands::AtLeast(64)));
}

#[test]
fn the_time_of_a_program_is_not_stated_where_the_layout_is_lost_or_collection_is_in_it() {
    let lost =
        "sim:piq-128g:interface.command_queue=ncq:32,translation.allocation=dynamic,timing.program_ns=400000";
    for (target, truth) in [(lost, 400_000.0), ("sim:piq-128g --condition aged", 600_000.0)] {
        let program = probed(target).findings.latencies.unwrap().program;
        let mean = program.value.as_ref().map(|values| values.iter().sum::<f64>() / values.len() as f64);
        assert!(mean.is_none_or(|mean| (mean / truth - 1.0).abs() < 0.02), "{target}: {program:?}");
    }
}

#[test]
fn a_small_write_buffer_is_not_absent_and_an_absent_one_has_no_size() {
    for pages in [1, 4, 16] {
        let of = probed(&format!("sim:ssd-s:write_buffer.pages={pages}"));
        let buffer = of.findings.write_buffer.unwrap();
        assert!(buffer.present.value.is_none_or(|is_there| is_there), "{pages}: {:?}", buffer.present);
    }
    let of = probed("sim:piq-128g");
    let buffer = of.findings.write_buffer.unwrap();
    assert!(buffer.present.value == Some(false) && buffer.size.absent, "{buffer:?}");
    let line = of.printed.lines().find(|line| line.contains("write buffer: size")).unwrap();
    assert!(line.contains("absent"), "{line}");
}

#[test]
fn a_file_with_data_of_others_in_it_is_not_overwritten() {
    for (name, mark, offset) in [
        ("an SQLite database", &b"SQLite format 3\0"[..], 0),
        ("a disk image (qcow2)", &b"QFI\xfb"[..], 0),
        (
            "a bcachefs file system",
            &[0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d, 0xf7, 0xef],
            4096 + 24,
        ),
    ] {
        let place = Place::new();
        let mut content = vec![0u8; 64 << 20];
        content[offset..offset + mark.len()].copy_from_slice(mark);
        place.file("drive.img", &content);
        let said = place.run("probe drive.img --quick --destroy-data drive.img --out x");
        assert!(said.code != Some(0) && said.err.contains(name), "{name}: {}", said.err);
        assert!(std::fs::read(place.path().join("drive.img")).unwrap() == content, "{name}: it was written");
    }
}

#[test]
fn what_is_measured_follows_the_size_of_the_drive() {
    let small = probed("sim:ssd-s").findings.subject;
    let large = probed("sim:tlc-nvme-1t").findings.subject;
    assert_eq!((small.area, small.depth), (Bytes(256 << 20), 64));
    assert!(large.area > Bytes(1 << 30) && large.depth > 200, "{} {}", large.area, large.depth);
}
