//! The probe against devices whose insides are known.

mod common;

use planewise_io::probe::domains::{self, Chunks};
use planewise_io::probe::{Area, Instrument, chunk};
use planewise_io::target::SimTarget;
use planewise_model::rng::generator;
use planewise_sim::Condition;
use std::sync::atomic::AtomicBool;

#[test]
fn look() {
    let from: u64 = std::env::var("FROM").map_or(0, |text| text.parse().unwrap());
    let count: u64 = std::env::var("COUNT").map_or(20, |text| text.parse().unwrap());
    for seed in from..from + count {
        let known = common::draw(seed);
        let began = std::time::Instant::now();
        let mut target = SimTarget::new(&known.profile, Condition::Filled, 32, seed).unwrap();
        let stop = AtomicBool::new(false);
        let mut instrument = Instrument::new(&mut target, &stop, generator(seed, "probe"));
        let area = Area { start: 0, sectors: 1 << 20 };
        let found = chunk::find(&mut instrument, area, 8).unwrap();
        let g = known.profile.geometry;
        let ok = found.value.map(|size| size.0) == Some(known.chunk);
        let mut line = format!(
            "{seed} {} c{} w{} d{} p{} page {} il {} mp {} {:?} bus {} whole {} link {:?} wb {} ra {}: chunk {}",
            known.profile.translation.allocation,
            g.channels,
            g.chips_per_channel,
            g.dies_per_chip,
            g.planes_per_die,
            g.page_bytes,
            known.profile.advanced_commands.die_interleave,
            known.profile.advanced_commands.multi_plane,
            known.profile.timing.read_ns,
            known.profile.timing.transfer_ps_per_byte,
            known.profile.timing.whole_page_reads,
            known.profile.link.map(|l| l.mb_per_s),
            known.profile.write_buffer.is_some(),
            known.profile.read_ahead.is_some(),
            if ok { "ok".to_owned() } else { format!("WRONG {:?} {}", found.value, found.statistic) }
        );
        let sectors = known.chunk / 512;
        let took = began.elapsed();
        let d = domains::find(&mut instrument, Chunks { area, sectors }, 64).unwrap();
        let right = |found: Option<u64>, truth: u64| match found {
            Some(v) if v == truth => "ok".to_owned(),
            None => "UNDETERMINED".into(),
            Some(v) => format!("WRONG {v}!={truth}"),
        };
        line += &format!(
            " units {} degree {} sub {} {:?}",
            right(d.units.value, known.degree * known.sub_domains),
            right(d.degree.value, known.degree),
            right(d.sub_domains.value, known.sub_domains),
            d.unit.map(|r| (r.skipped, r.inner, r.gap, r.outer))
        );
        let mapped = match d.unit {
            None => "no relation".to_owned(),
            Some(unit) => {
                let found = planewise_io::probe::mapping::find(
                    &mut instrument,
                    Chunks { area, sectors },
                    unit,
                    d.unit_contrast,
                    d.alone[0],
                )
                .unwrap();
                let truth = if known.is_write_order {
                    planewise_io::probe::mapping::Mapping::WriteOrder
                } else {
                    planewise_io::probe::mapping::Mapping::Static
                };
                match found.mapping.value {
                    Some(v) if v == truth => "ok".into(),
                    None => format!("UNDETERMINED {}", found.mapping.statistic),
                    Some(_) => format!("WRONG {}", found.mapping.statistic),
                }
            }
        };
        line += &format!(" mapping {mapped}");
        if d.degree.value != Some(known.degree) {
            line += &format!("\n     {}\n     {}", d.units.statistic, d.degree.statistic);
        }
        println!("{line} {:.1?} {:.1?}", took, began.elapsed());
    }
}
