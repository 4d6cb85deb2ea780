//! How many commands a drive takes at a time: right, or undetermined.

mod common;

use common::wide::{self, Drive};
use planewise_io::probe::queue::{self, Commands, Queue};
use planewise_io::probe::{Area, Instrument};
use planewise_io::target::{SimTarget, Target};
use planewise_model::Profile;
use planewise_model::rng::generator;
use planewise_sim::Condition;
use std::sync::atomic::AtomicBool;

fn of(target: &mut dyn Target, seed: u64) -> Queue {
    let stop = AtomicBool::new(false);
    let mut instrument = Instrument::new(target, &stop, generator(seed, "queue"));
    queue::find(&mut instrument, Area { start: 0, sectors: (256 << 20) / 512 }).unwrap()
}

fn is_right(found: Commands, drive: &Drive) -> bool {
    match found {
        Commands::Exactly(number) => drive.commands() == Some(number),
        Commands::AtLeast(number) => drive.commands().is_none_or(|depth| depth >= number),
    }
}

/// A controller that takes in all commands before it begins with the first: 64 of them hold up the first read of a burst, not the others.
#[test]
fn a_controller_that_takes_commands_in_first_does_not_change_their_number() {
    let ssd_s = Profile::embedded("ssd-s").unwrap();
    let found = of(&mut SimTarget::new(&ssd_s, Condition::Filled, 64, 1).unwrap(), 1);
    assert_eq!(found.commands.value, Some(Commands::Exactly(32)), "{:?}", found.commands);
    for seed in [70_138, 70_221, 70_231, 70_272, 90_201, 90_210, 90_229] {
        let drive = wide::draw(seed);
        let found = of(&mut *drive.target().unwrap(), seed).commands;
        assert!(found.value.is_none_or(|value| is_right(value, &drive)), "seed {seed}: {found:?}");
    }
}

/// A controller that needs as long for a command as the drive for a read looks like a drive that takes one at a time.
#[test]
fn a_controller_that_hides_the_flash_is_no_queue_of_one() {
    let mut drive = Profile::embedded("piq-128g").unwrap();
    drive.interface.command_queue = "ncq:32".into();
    // All of what is read is in a buffer.
    drive.processor = Some(planewise_model::profile::Processor { command_ns: 80_000, ..Default::default() });
    drive.write_buffer = Some(planewise_model::profile::WriteBuffer {
        pages: 100_000,
        watermark: 0.9,
        run_pages: 4,
        in_flight_pages: 16,
        entry_order: false,
        power_loss_protection: true,
    });
    let mut target = SimTarget::new(&drive, Condition::Filled, 64, 1).unwrap();
    let stop = AtomicBool::new(false);
    let mut instrument = Instrument::new(&mut target, &stop, generator(1, "fill"));
    let area = Area { start: 0, sectors: (256 << 20) / 512 };
    planewise_io::probe::prepare::fill(&mut instrument, area, planewise_model::Ns::from_millis(500)).unwrap();
    let found = of(&mut target, 1).commands;
    assert_eq!(found.value, None, "{found:?}");
}

#[test]
fn of_drawn_drives_what_is_said_is_right_and_a_third_is_said() {
    let seeds = 600..640;
    let (mut said, mut wrong) = (0, Vec::new());
    for seed in seeds.clone() {
        let drive = wide::draw(seed);
        let Some(value) = of(&mut *drive.target().unwrap(), seed).commands.value else { continue };
        said += 1;
        if !is_right(value, &drive) {
            wrong.push(format!("seed {seed}: {value:?}\n    {}", drive.described()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(3 * said > seeds.end - seeds.start, "{said} said");
}

/// Several units of mapping in a page: reads of one that wait are done by one array read, so that a place is held for half as long by each.
#[test]
fn reads_that_are_done_together_are_no_measure_of_a_unit() {
    for (name, joins) in [("tlc-nvme-1t", true), ("qlc-nvme-2t", true), ("piq-128g", false), ("ssd-s", false)]
    {
        let profile = Profile::embedded(name).unwrap();
        let found = of(&mut SimTarget::new(&profile, Condition::Filled, 64, 1).unwrap(), 1);
        assert_eq!(found.joins, joins, "{name}: {found:?}");
        assert!(!joins || found.held().is_none() && found.commands.value.is_none(), "{name}: {found:?}");
    }
}
