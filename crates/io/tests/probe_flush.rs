//! What the probe says of flushes, and of buffers that lose what they hold with the power: right, or undetermined with the reason.

mod common;

use common::wide::{self, Drive};
use planewise_io::probe::statistics::median;
use planewise_io::probe::{
    Area, Finding, Findings, Instrument, Options, ProbeError, flush, flush::Flush, options_for, prepare,
    profile, run, write_buffer,
};
use planewise_io::target::{Operation, SimTarget, Target};
use planewise_model::profile::{Link, PageLatency, Processor, WriteBuffer};
use planewise_model::rng::generator;
use planewise_model::{Ns, Profile};
use planewise_sim::Condition;
use std::sync::atomic::AtomicBool;

/// What the two stages about the write buffer find, with the page size as given.
fn measured(target: &mut dyn Target, page: u64, seed: u64) -> Flush {
    let stop = AtomicBool::new(false);
    let mut instrument = Instrument::new(target, &stop, generator(seed, "flush"));
    let (area, sectors) = (Area { start: 0, sectors: (128 << 20) / 512 }, page / 512);
    prepare::fill(&mut instrument, area, Ns::from_millis(500)).unwrap();
    let mut reads: Vec<f64> = (0..128)
        .map(|_| {
            let place = area.random_piece(sectors, &mut instrument.rng);
            instrument.single(Operation::read(place, sectors as u32)).unwrap().0 as f64
        })
        .collect();
    let (buffer, _) = write_buffer::find(&mut instrument, area, sectors, median(&mut reads)).unwrap();
    flush::find(&mut instrument, area, sectors, Some(&buffer)).unwrap()
}

fn of(drive: &Profile) -> Flush {
    let mut target = SimTarget::new(drive, Condition::Filled, 64, 1).unwrap();
    measured(&mut target, u64::from(drive.geometry.page_bytes), 1)
}

fn is_volatile(drive: &Drive) -> bool {
    drive.profile.write_buffer.is_some_and(|buffer| !buffer.power_loss_protection)
}

/// Eight channels, pages of 4 KiB that are programmed in 640 us, nothing in front.
fn drive(buffer: Option<WriteBuffer>) -> Profile {
    let mut drive = Profile::embedded("piq-128g").unwrap();
    drive.interface.command_queue = "ncq:32".into();
    drive.timing.program_ns = PageLatency::Uniform(600_000);
    drive.write_buffer = buffer;
    drive
}

fn buffer(pages: u32, watermark: f64, power_loss_protection: bool) -> Option<WriteBuffer> {
    let (run_pages, in_flight_pages, entry_order) = (4, 16, false);
    Some(WriteBuffer { pages, watermark, run_pages, in_flight_pages, entry_order, power_loss_protection })
}

#[test]
fn behind_a_write_a_flush_takes_as_long_as_its_page_takes_into_flash() {
    let drive = drive(buffer(256, 0.5, false));
    let found = of(&drive);
    assert_eq!(found.volatile.value, Some(true), "{:?}", found.volatile);
    let page =
        (drive.timing.command_ns + 600_000) as f64 + 4096.0 * drive.timing.transfer_ps_per_byte as f64 / 1e3;
    for behind in [found.behind_write, found.behind_rest] {
        assert!(
            (behind - found.alone - page).abs() < 0.01 * page,
            "{behind} behind a write, {page} expected"
        );
    }
    // Behind many writes all planes program at once: no longer than a few of them one after the other, and no shorter than one.
    assert!(found.behind_writes > page && found.by_page() < page, "{found:?}");
}

#[test]
fn a_flush_is_free_with_capacitors_and_without_a_volatile_buffer() {
    for (what, drive) in [
        ("capacitors", drive(buffer(256, 0.5, true))),
        ("capacitors, hardly anything kept", drive(buffer(256, 0.02, true))),
        ("no buffer", drive(None)),
    ] {
        let found = of(&drive);
        assert_eq!(found.volatile.value, Some(false), "{what}: {:?}", found.volatile);
        assert!(found.behind_write - found.alone < 1000.0, "{what}: {found:?}");
    }
}

/// A buffer that is written back at once has nothing left after a rest; right behind the write, its page is under way.
#[test]
fn a_buffer_that_keeps_nothing_is_volatile_while_its_pages_are_under_way() {
    let found = of(&drive(buffer(64, 0.0, false)));
    assert_eq!(found.volatile.value, Some(true), "{:?}", found.volatile);
    assert!(found.behind_rest - found.alone < 1000.0 && found.behind_write > 500_000.0, "{found:?}");
}

#[test]
fn noise_and_a_slow_processor_do_not_pass_for_a_buffer_that_is_flushed() {
    for power_loss_protection in [false, true] {
        for (watermark, command_ns) in [(0.0, 80_000), (0.5, 80_000), (0.0, 200_000), (0.9, 18_000)] {
            let mut drive = drive(buffer(256, watermark, power_loss_protection));
            drive.timing.variation = 0.1;
            let (operation_ns, run_page_ns) = (40_000, 20_000);
            drive.processor =
                Some(Processor { command_ns, operation_ns, run_page_ns, ..Processor::default() });
            let found = of(&drive).volatile;
            assert!(
                found.value.is_none_or(|volatile| volatile != power_loss_protection),
                "capacitors {power_loss_protection}, watermark {watermark}, {command_ns} ns a command: {found:?}"
            );
        }
    }
}

/// Programs of 100 us are over before a flush has passed a link that takes 150 us for a command: a buffer that keeps nothing looks like capacitors.
#[test]
fn what_is_in_flash_before_the_flush_comes_is_not_put_down_to_capacitors() {
    for power_loss_protection in [false, true] {
        let mut drive = drive(buffer(64, 0.0, power_loss_protection));
        drive.timing.program_ns = PageLatency::Uniform(100_000);
        drive.link = Some(Link { mb_per_s: 3200, latency_ns: 150_000, ..Link::default() });
        let found = of(&drive).volatile;
        assert_eq!(found.value, None, "{found:?}");
    }
}

#[test]
fn of_drawn_drives_what_is_said_is_right_and_most_is_said() {
    let (mut said, mut wrong) = (0, Vec::new());
    let seeds = 500..524;
    for seed in seeds.clone() {
        let known = wide::draw(seed);
        let found = measured(&mut *known.target().unwrap(), known.page(), seed).volatile;
        said += u64::from(found.value.is_some());
        if found.value.is_some_and(|found| found != is_volatile(&known)) {
            wrong.push(format!("seed {seed}: {found:?}\n    {}", known.described()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let drawn = seeds.end - seeds.start;
    assert!(4 * said > 3 * drawn, "{said} of {drawn}");
}

#[test]
fn the_profile_says_whether_capacitors_keep_the_buffer() {
    for power_loss_protection in [false, true] {
        let drive = drive(buffer(256, 0.5, power_loss_protection));
        let mut target = SimTarget::new(&drive, Condition::Filled, 64, 1).unwrap();
        let options = Options { seed: 1, ..options_for(&target, true) };
        let (mut findings, stop) = (Findings::default(), AtomicBool::new(false));
        run::<ProbeError>(&mut target, &options, &mut findings, &stop, |_| {}, |_| Ok(())).unwrap();
        let probed = profile(&findings, "probed").unwrap().profile;
        let found = probed.write_buffer.expect("a buffer").power_loss_protection;
        assert_eq!(found, power_loss_protection, "{}", probed.source);
        let said = if power_loss_protection { "capacitors that keep" } else { "lost with the power" };
        assert!(probed.source.contains(said), "{}", probed.source);
        let volatile: Finding<bool> = findings.flush.unwrap().volatile;
        assert_eq!(volatile.value, Some(!power_loss_protection));
    }
}
