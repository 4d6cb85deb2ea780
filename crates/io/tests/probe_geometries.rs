//! The probe against devices whose insides are known: chunk size, interleaving degree, sub-domains and mapping policy of devices drawn at random.
//!
//! A wrong number never comes out. What only flash and caches do comes out right as a rule; a link, a processor or noise may hide what is behind it, and
//! some rivals cannot be excluded: then `undetermined` is right.

mod common;

use common::Known;
use planewise_io::probe::domains::Domains;
use planewise_io::probe::mapping::{self, Mapping};
use planewise_io::probe::pairs::Chunks;
use planewise_io::probe::units;
use planewise_io::probe::{Area, Finding, Instrument, chunk, page, queue};
use planewise_io::target::SimTarget;
use planewise_model::rng::generator;
use planewise_sim::Condition;
use std::fmt::Display;
use std::sync::atomic::AtomicBool;

/// How far a drawn device was understood.
#[derive(Default)]
struct Score {
    right: u32,
    undetermined: Vec<String>,
    wrong: Vec<String>,
}

impl Score {
    fn note<T: PartialEq + Display>(&mut self, what: &str, known: &Known, truth: T, finding: &Finding<T>) {
        let place = || {
            format!("seed {}: {what} is {truth}: {}\n  {}", known.seed, finding.statistic, known.described())
        };
        match &finding.value {
            Some(value) if *value == truth => self.right += 1,
            Some(value) => self.wrong.push(format!("found {value}, {}", place())),
            None => self.undetermined.push(place()),
        }
    }
}

/// Probes the devices of these seeds: nothing wrong, and most right where nothing hides it.
fn check(seeds: std::ops::Range<u64>) {
    let mut score = Score::default();
    let mut hidden = 0;
    for seed in seeds {
        let known = common::draw(seed);
        let before = score.undetermined.len();
        probe(&known, &mut score);
        if known.is_hidden() {
            hidden += score.undetermined.len() - before;
            score.undetermined.truncate(before);
        }
    }
    assert!(score.wrong.is_empty(), "wrong:\n{}", score.wrong.join("\n"));
    assert!(
        score.undetermined.len() as u32 * 4 < score.right,
        "{} right, undetermined:\n{}",
        score.right,
        score.undetermined.join("\n")
    );
    // What may be hidden mostly is not.
    assert!((hidden as u32) < score.right, "{hidden} hidden, {} right", score.right);
}

fn probe(known: &Known, score: &mut Score) {
    let mut target = SimTarget::new(&known.profile, Condition::Filled, 32, known.seed).unwrap();
    let stop = AtomicBool::new(false);
    let mut instrument = Instrument::new(&mut target, &stop, generator(known.seed, "probe"));
    let area = Area { start: 0, sectors: 1 << 20 };
    let queue = queue::find(&mut instrument, area).unwrap();
    let page = page::find(&mut instrument, area, 8).unwrap();
    let found = chunk::find(&mut instrument, area, &queue, &page, 8).unwrap();
    let [page, found] = [page.size, found].map(|found| Finding {
        value: found.value.map(|size| size.0),
        ..Finding::undetermined(found.statistic, found.reason)
    });
    score.note("page", known, known.page, &page);
    score.note("chunk", known, known.chunk.unwrap_or(u64::MAX), &found);
    let page = known.page / 512;
    let chunks = Chunks { run: known.chunk.map_or(page, |chunk| chunk / 512), ..Chunks::of(area, page) };
    let Domains { unit, unit_contrast, alone, degree, sub_domains, .. } =
        units::find(&mut instrument, chunks, &queue, None, 64).unwrap();
    score.note("degree", known, known.degree, &degree);
    score.note("sub-domains", known, known.sub_domains, &sub_domains);
    let truth = if known.is_write_order { Mapping::WriteOrder } else { Mapping::Static };
    let mapping = match unit {
        Some(unit) => {
            mapping::find(&mut instrument, chunks.whole(), unit, unit_contrast, alone[0]).unwrap().mapping
        }
        None => Finding::undetermined(String::new(), "no units"),
    };
    let named = Finding {
        value: mapping.value.map(Mapping::name),
        ..Finding::undetermined(mapping.statistic, mapping.reason)
    };
    score.note("mapping", known, truth.name(), &named);
}

#[test]
fn drawn_devices_are_understood_1() {
    check(0..3);
}

#[test]
fn drawn_devices_are_understood_2() {
    check(24..27);
}

#[test]
fn drawn_devices_are_understood_3() {
    check(48..51);
}

#[test]
fn drawn_devices_are_understood_4() {
    check(72..75);
}

#[test]
fn chunks_of_drives_with_blocks_of_4_kib_are_never_wrong_and_mostly_found() {
    let mut found = 0;
    let seeds = 300..306;
    let drawn = seeds.end - seeds.start;
    for seed in seeds {
        let known = common::draw(seed);
        let inner = SimTarget::new(&known.profile, Condition::Filled, 32, seed).unwrap();
        let mut target = common::Blocks4K::new(inner);
        let stop = AtomicBool::new(false);
        let mut instrument = Instrument::new(&mut target, &stop, generator(seed, "probe"));
        let area = Area { start: 0, sectors: 1 << 20 };
        let queue = queue::find(&mut instrument, area).unwrap();
        let page = page::find(&mut instrument, area, 8).unwrap();
        if let Some(size) = page.size.value {
            assert_eq!(size.0, known.page, "seed {seed}: {}\n  {}", page.size.statistic, known.described());
        }
        let chunk = chunk::find(&mut instrument, area, &queue, &page, 8).unwrap();
        if let Some(size) = chunk.value {
            assert_eq!(
                Some(size.0),
                known.chunk,
                "seed {seed}: {}\n  {}",
                chunk.statistic,
                known.described()
            );
            found += 1;
        }
    }
    assert!(found * 4 > drawn * 3, "{found} of {drawn} found");
}

#[test]
fn data_that_go_to_idle_units_are_not_taken_for_write_order() {
    let mut verdicts = Vec::new();
    for seed in 200..206 {
        let mut known = common::draw(seed);
        known.profile.translation.allocation = "dynamic".into();
        known.profile.translation.chunk_pages = 1;
        // A buffer keeps all units busy with programs of its own: then no unit is idle, and the order of the writes decides.
        known.profile.write_buffer = None;
        let mut target = SimTarget::new(&known.profile, Condition::Filled, 32, seed).unwrap();
        let stop = AtomicBool::new(false);
        let mut instrument = Instrument::new(&mut target, &stop, generator(seed, "probe"));
        let chunks = Chunks::of(Area { start: 0, sectors: 1 << 20 }, known.page / 512);
        let queue = queue::find(&mut instrument, chunks.area).unwrap();
        let found = units::find(&mut instrument, chunks, &queue, None, 16).unwrap();
        if let Some(unit) = found.unit {
            let found =
                mapping::find(&mut instrument, chunks, unit, found.unit_contrast, found.alone[0]).unwrap();
            verdicts.push((seed, found.mapping.value));
        }
    }
    let wrong: Vec<_> = verdicts
        .iter()
        .filter(|(_, verdict)| matches!(verdict, Some(Mapping::Static | Mapping::WriteOrder)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?} of {verdicts:?}");
    let dynamic = verdicts.iter().filter(|(_, verdict)| *verdict == Some(Mapping::Dynamic)).count();
    assert!(dynamic * 2 > verdicts.len(), "{verdicts:?}");
}

/// Any other devices: `PLANEWISE_SEEDS=1000..1300 cargo test -p planewise-io --test probe_geometries -- --ignored`.
#[test]
#[ignore = "for other seeds than those of the tests above"]
fn other_drawn_devices_are_understood() {
    let seeds = std::env::var("PLANEWISE_SEEDS").unwrap_or_else(|_| "1000..1200".into());
    let (from, to) = seeds.split_once("..").expect("a range of seeds, such as 1000..1200");
    check(from.parse().expect("the first seed")..to.parse().expect("the seed after the last"));
}
