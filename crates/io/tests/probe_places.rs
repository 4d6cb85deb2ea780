//! What looks like one unit and is something else, on drives that were taken for that once: never stated as surely as what was told apart.

mod common;

use common::verdicts::probed;
use common::wide;
use planewise_io::probe::Findings;
use planewise_io::probe::domains::Domains;

fn domains(findings: &Findings) -> &Domains {
    findings.domains.as_ref().unwrap()
}

/// Drives that take one command at a time, of which an array looks like a drive with as many units.
#[test]
fn drives_of_an_array_that_take_one_command_at_a_time_are_no_units() {
    // The first has chunks of six pages, the second a slow controller.
    for seed in [80_191, 80_213] {
        let known = wide::draw(seed);
        let (findings, _) = probed(&known, true);
        let units = &domains(&findings).units;
        assert_eq!(units.value, None, "seed {seed}: {units:?}\n    {}", known.described());
        let hold = &findings.latencies.as_ref().unwrap().unit_hold;
        assert_eq!(hold.value, None, "seed {seed}: {hold:?}");
    }
}

/// Packages behind a bus that moves whole pages more slowly than they read them: no read tells one of them from all.
#[test]
fn units_on_a_bus_that_is_slower_than_they_are_may_be_more() {
    for seed in [80_049, 90_137, 90_140] {
        let known = wide::draw(seed);
        let (findings, _) = probed(&known, true);
        let of = domains(&findings);
        let truth = known.degree() * known.sub_domains();
        for (found, truth) in [(&of.units, truth), (&of.sub_domains, known.sub_domains())] {
            let Some(value) = found.value else { continue };
            let says_so = found.confidence <= 0.85 && found.reason.contains("several units on each bus");
            assert!(value == truth || says_so, "seed {seed}: {found:?}\n    {}", known.described());
        }
        let chunk = findings.chunk.as_ref().unwrap();
        let is_right = chunk.value.is_none_or(|size| known.chunks().contains(&size.0));
        let says_so = chunk.confidence <= 0.85 && chunk.reason.contains("pages on one bus");
        assert!(is_right || says_so, "seed {seed}: {chunk:?}\n    {}", known.described());
    }
}

/// The controller of a drive of an array is held by all reads of that drive.
#[test]
fn what_a_drives_controller_is_held_for_is_no_units_time() {
    for seed in [90_189, 90_231] {
        let known = wide::draw(seed);
        let (findings, _) = probed(&known, true);
        let hold = &findings.latencies.as_ref().unwrap().unit_hold;
        assert_eq!(hold.value, None, "seed {seed}: {hold:?}\n    {}", known.described());
    }
}

/// Three commands at a time keep a controller of 80 us busy for four fifths of the time; and what follows on one bus at the distance of its data says nothing of commands.
#[test]
fn neither_few_commands_nor_a_bus_pass_for_the_distance_of_commands() {
    for seed in [90_163, 90_208] {
        let known = wide::draw(seed);
        let (findings, _) = probed(&known, true);
        let distance = &findings.latencies.as_ref().unwrap().command;
        assert_eq!(distance.value, None, "seed {seed}: {distance:?}\n    {}", known.described());
    }
}
