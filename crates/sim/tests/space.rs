//! Nothing is lost under pressure: long overwrites of nearly full devices.

mod common;

use common::device;
use planewise_model::profile::Profile;
use planewise_model::rng::generator;
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::observers::invariants::Invariants;
use planewise_sim::{Condition, RunConfig, SimError, Simulator};
use rand::RngExt;

/// 512 MiB: 2 x 2 x 1 x 2 planes of 256 blocks of 64 pages.
fn small() -> Profile {
    let mut profile = device(2, 2, 1, 2);
    profile.geometry.blocks_per_plane = 256;
    profile.interface.command_queue = "ncq:32".into();
    profile
}

/// Overwrites random pages of the first `share` of the user space; reads one page in ten.
fn overwrite(config: &RunConfig, share: f64, count: u64) -> Result<Simulator<Invariants>, SimError> {
    let mut simulator = Simulator::new(config, Invariants::new())?;
    let pages = (simulator.user_sectors() / 8) as f64 * share;
    let mut random = generator(config.seed, "overwrites");
    for n in 0..count {
        let direction = if n % 10 == 9 { Direction::Read } else { Direction::Write };
        let page = random.random_range(0..pages as u64);
        let request = Request::new(Ns::ZERO, Lsn(page * 8), 8, direction);
        while !simulator.has_room(&request) {
            let next = simulator.next_event();
            simulator.advance(next)?;
        }
        simulator.submit(&request)?;
    }
    simulator.drain()?;
    Ok(simulator)
}

#[test]
fn half_a_million_overwrites_of_a_nearly_full_device_lose_nothing() {
    for allocation in ["cwdp", "dynamic", "write-order"] {
        for share in [0.70, 0.90, 0.95] {
            for condition in [Condition::Fresh, Condition::Filled] {
                let mut config = RunConfig::new(small());
                config.profile.translation.allocation = allocation.into();
                config.condition = condition;
                let case = format!("{allocation}, {share} of the user space, {condition}");
                let simulator =
                    overwrite(&config, share, 500_000).unwrap_or_else(|error| panic!("{case}: {error}"));
                assert_eq!(simulator.submitted(), 500_000);
                assert_eq!(simulator.pending(), 0);
                simulator.observer().report().unwrap_or_else(|violations| panic!("{case}: {violations}"));
                simulator.audit().unwrap_or_else(|problem| panic!("{case}: {problem}"));
            }
        }
    }
}

#[test]
fn tiny_blocks_and_little_spare_space_lose_nothing_under_any_allocation() {
    for allocation in ["cwdp", "dynamic", "write-order", "conflict-free"] {
        for (blocks, pages_per_block) in [(3, 1), (8, 1), (32, 16)] {
            for queue in ["blocking", "ncq:32", "ncq:4096"] {
                for condition in [Condition::Fresh, Condition::Filled] {
                    let mut profile = device(2, 2, 1, 2);
                    profile.geometry.blocks_per_plane = blocks;
                    profile.geometry.pages_per_block = pages_per_block;
                    profile.translation.allocation = allocation.into();
                    profile.translation.over_provisioning = 2.0 / f64::from(blocks);
                    profile.collection.threshold = 0.0;
                    profile.collection.buffer_pages = 0;
                    profile.collection.replica_pages = 0;
                    profile.interface.command_queue = queue.into();
                    let mut config = RunConfig::new(profile);
                    config.condition = condition;
                    config.queue_length = 4096;
                    let case =
                        format!("{allocation}, {blocks} blocks of {pages_per_block}, {queue}, {condition}");
                    let simulator =
                        overwrite(&config, 1.0, 5_000).unwrap_or_else(|error| panic!("{case}: {error}"));
                    simulator.observer().report().unwrap_or_else(|violations| panic!("{case}: {violations}"));
                    simulator.audit().unwrap_or_else(|problem| panic!("{case}: {problem}"));
                }
            }
        }
    }
}

#[test]
fn copyback_with_and_without_the_parity_rule_loses_nothing() {
    for parity in [false, true] {
        let mut config = RunConfig::new(small());
        config.profile.advanced_commands.copyback = true;
        config.profile.advanced_commands.copyback_same_parity = parity;
        let simulator = overwrite(&config, 0.9, 200_000).unwrap();
        simulator.observer().report().unwrap();
        simulator.audit().unwrap();
    }
}

#[test]
fn an_aged_device_is_as_its_percentages_say_and_survives() {
    for condition in ["aged:80/14/6", "aged:84/10/6"] {
        let mut config = RunConfig::new(small());
        config.condition = condition.parse().unwrap();
        let simulator = Simulator::new(&config, Invariants::new()).unwrap();
        simulator.audit().unwrap();
        let pages = f64::from(config.profile.geometry.pages());
        let space = simulator.space();
        let shares = [space.valid, space.invalid, space.free].map(|count| 100.0 * count as f64 / pages);
        for (found, said) in shares.iter().zip(condition[5..].split('/')) {
            assert!((found - said.parse::<f64>().unwrap()).abs() < 0.3, "{condition}: {shares:?}");
        }
        let simulator = overwrite(&config, 1.0, 100_000).unwrap();
        simulator.observer().report().unwrap();
        simulator.audit().unwrap();
    }
}

#[test]
fn an_aged_device_that_cannot_be_is_refused() {
    let mut config = RunConfig::new(small());
    config.condition = "aged:95/1/4".parse().unwrap();
    let error = Simulator::new(&config, ()).err().unwrap().to_string();
    assert!(error.contains("95 %") && error.contains("user space"), "{error}");
    config.condition = "aged:84/16/0".parse().unwrap();
    let error = Simulator::new(&config, ()).err().unwrap().to_string();
    assert!(error.contains("0 % free") && error.contains("2 or more"), "{error}");
    config.condition = Condition::Aged { valid: f64::NAN, invalid: 500.0, free: -3.0 };
    assert!(Simulator::new(&config, ()).is_err());
    assert!("aged:50/60/1".parse::<Condition>().is_err());
    assert!("aged:nan/1/1".parse::<Condition>().is_err());
}

#[test]
fn the_least_spare_space_that_is_allowed_still_works() {
    for allocation in ["cwdp", "dynamic", "write-order"] {
        let mut config = RunConfig::new(small());
        config.profile.translation.allocation = allocation.into();
        config.profile.translation.over_provisioning = 2.0 / 256.0;
        config.profile.collection.threshold = 0.0;
        let simulator =
            overwrite(&config, 1.0, 20_000).unwrap_or_else(|error| panic!("{allocation}: {error}"));
        simulator.observer().report().unwrap();
        simulator.audit().unwrap();
        config.profile.translation.over_provisioning = 0.5 / 256.0;
        assert!(Simulator::new(&config, ()).is_err());
    }
}
