//! Chunks of several pages: found, or not stated; written into the profile; and the profile gives what the drive gives.

mod common;

use planewise_io::probe::{Area, Findings, Instrument, Options, ProbeError, options_for, profile, run};
use planewise_io::target::{Operation, SimTarget};
use planewise_model::profile::{PageLatency, WriteBuffer};
use planewise_model::rng::generator;
use planewise_model::{Ns, Profile};
use planewise_sim::Condition;
use rand::RngExt;
use rand::seq::IndexedRandom;
use std::sync::atomic::AtomicBool;

/// A drive with chunks of so many pages: 2 to 8 channels of 1 to 3 packages, pages of 4 to 16 KiB, every static order and write-order, with and without a write buffer.
fn draw(chunk_pages: u32, seed: u64) -> Profile {
    let rng = &mut generator(seed, "chunks");
    let mut profile = Profile::embedded("piq-128g").unwrap();
    profile.name = format!("drawn-{seed}");
    profile.interface.command_queue = "ncq:32".into();
    let geometry = &mut profile.geometry;
    geometry.channels = *[2, 3, 4, 6, 8].choose(rng).unwrap();
    geometry.chips_per_channel = rng.random_range(1..=3);
    geometry.dies_per_chip = rng.random_range(1..=2);
    geometry.planes_per_die = *[1, 2, 4].choose(rng).unwrap();
    geometry.page_bytes = *[4096, 8192, 16_384].choose(rng).unwrap();
    geometry.pages_per_block = 64;
    let pages = (2u64 << 30) / u64::from(geometry.page_bytes) / u64::from(geometry.planes());
    geometry.blocks_per_plane = pages.div_ceil(64) as u32 + 8;
    profile.translation.over_provisioning = (6.0 / f64::from(geometry.blocks_per_plane)).max(0.12);
    profile.advanced_commands.multi_plane = rng.random_range(0..2) == 0;
    let orders = planewise_model::AllocationOrder::all();
    profile.translation.allocation = match rng.random_range(0..3) {
        0 => "write-order".into(),
        _ => orders.choose(rng).unwrap().to_string(),
    };
    profile.translation.chunk_pages = chunk_pages;
    profile.timing.read_ns = [PageLatency::Uniform(60_000), PageLatency::PerType(vec![40_000, 70_000])]
        .choose(rng)
        .unwrap()
        .clone();
    profile.timing.transfer_ps_per_byte = *[833, 2_500, 10_000].choose(rng).unwrap();
    // What all flash takes, and the probe assumes.
    profile.timing.command_ns = 300;
    profile.timing.variation = *[0.0, 0.05].choose(rng).unwrap();
    profile.write_buffer = (rng.random_range(0..2) == 0).then_some(WriteBuffer {
        pages: 256,
        watermark: 0.1,
        run_pages: 8,
        in_flight_pages: 64,
        entry_order: profile.translation.allocation == "write-order",
        power_loss_protection: true,
    });
    profile
}

fn probed(drive: &Profile, seed: u64) -> Findings {
    let mut target = SimTarget::new(drive, Condition::Filled, 64, seed).unwrap();
    let options = Options { seed, ..options_for(&target, true) };
    let (mut findings, stop) = (Findings::default(), AtomicBool::new(false));
    run::<ProbeError>(&mut target, &options, &mut findings, &stop, |_| {}, |_| Ok(())).unwrap();
    findings
}

/// MB/s of random reads of so many bytes, so many at a time.
fn bandwidth(drive: &Profile, bytes: u64, depth: u32) -> f64 {
    let mut target = SimTarget::new(drive, Condition::Filled, 64, 1).unwrap();
    let stop = AtomicBool::new(false);
    let mut instrument = Instrument::new(&mut target, &stop, generator(1, "loop"));
    let (area, sectors) = (Area { start: 0, sectors: 1 << 20 }, bytes / 512);
    let read = |rng: &mut _, number| {
        (number < 2000).then(|| Operation::read(area.random_piece(sectors, rng), sectors as u32))
    };
    instrument.keep(depth, Ns::MAX, read).unwrap().bandwidth() / 1e6
}

/// Chunks of these drives are right or not stated; most are found; of those, the profile has them, and gives what the drive gives.
fn check(chunk_pages: u32, seeds: std::ops::Range<u64>) {
    let (mut found, mut looped, drawn) = (0, 0, seeds.end - seeds.start);
    for seed in seeds {
        let drive = draw(chunk_pages, seed);
        let findings = probed(&drive, seed);
        let [page, chunk] = [&findings.page, &findings.chunk].map(|of| of.as_ref().unwrap());
        let truth = common::chunk(&drive, drive.advanced_commands.die_interleave);
        let place = format!("seed {seed}: {:?} {:?}", drive.geometry, drive.translation);
        assert!(
            page.value.is_none_or(|size| size.0 == u64::from(drive.geometry.page_bytes)),
            "{place}: {page:?}"
        );
        let Some(size) = chunk.value else { continue };
        assert_eq!(Some(size.0), truth, "{place}: {chunk:?}");
        let probed = profile(&findings, "probed").unwrap().profile;
        let pages = size.0 / u64::from(probed.geometry.page_bytes);
        assert_eq!(u64::from(probed.translation.chunk_pages), pages, "{place}");
        found += 1;
        // Planes that read together only show where they are neighbours; and without buses the rest is assumed.
        let is_more = drive.advanced_commands.multi_plane && drive.geometry.planes_per_die > 1;
        if is_more || findings.domains.as_ref().unwrap().degree.value.is_none() {
            continue;
        }
        looped += 1;
        for bytes in [4096, 16_384, 65_536, 262_144] {
            for depth in [1, 8] {
                let [truth, probed] = [&drive, &probed].map(|of| bandwidth(of, bytes, depth));
                let off = probed / truth - 1.0;
                assert!(
                    off.abs() < 0.15,
                    "{place}: reads of {bytes}, {depth} at a time: {probed:.1} MB/s for {truth:.1}, {:+.1} %\n{:?} {:?} {:?}",
                    off * 100.0,
                    probed,
                    findings.mapping,
                    findings.domains
                );
            }
        }
    }
    assert!(looped > 0, "{found} found, none of them without a doubt of something else");
    assert!(found * 3 >= drawn * 2, "{found} of {drawn} with chunks of {chunk_pages} pages");
}

#[test]
fn chunks_of_2_pages_are_found_and_profiled() {
    check(2, 0..3);
}

#[test]
fn chunks_of_3_pages_are_found_and_profiled() {
    check(3, 10..13);
}

#[test]
fn chunks_of_4_pages_are_found_and_profiled() {
    check(4, 20..23);
}

#[test]
fn chunks_of_8_pages_are_found_and_profiled() {
    check(8, 30..33);
}

#[test]
fn chunks_of_16_pages_are_found_and_profiled() {
    check(16, 40..43);
}

#[test]
fn chunks_of_64_pages_are_found_and_profiled() {
    check(64, 50..53);
}
