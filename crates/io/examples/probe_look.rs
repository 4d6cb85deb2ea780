//! look
use planewise_io::probe::{self, Findings, ProbeError};
use planewise_io::target::SimTarget;
use planewise_model::Profile;
use planewise_sim::Condition;
use std::sync::atomic::AtomicBool;

fn main() {
    let name = std::env::args().nth(1).unwrap();
    let profile = Profile::embedded(&name)
        .unwrap_or_else(|_| Profile::parse(&std::fs::read_to_string(&name).unwrap(), &name).unwrap());
    let mut target = SimTarget::new(&profile, Condition::Filled, 64, 1).unwrap();
    let options = probe::options_for(&target, std::env::args().nth(2).is_some());
    let mut findings = Findings::default();
    let stop = AtomicBool::new(false);
    let began = std::time::Instant::now();
    probe::run::<ProbeError>(
        &mut target,
        &options,
        &mut findings,
        &stop,
        |entry| eprintln!("{} {:.1?}", entry.name, began.elapsed()),
        |_| Ok(()),
    )
    .unwrap();
    let d = findings.domains.as_ref().unwrap();
    println!(
        "chunk {:?}\n degree {:?}\n sub {:?}\n unit {:?} domain {:?}",
        findings.chunk, d.degree, d.sub_domains, d.unit, d.domain
    );
    println!("mapping {:?}", findings.mapping);
    let l = findings.latencies.as_ref().unwrap();
    println!(
        "latency block {} chunk {} write {:?} overhead {}\n hold {:?}\n read {:?}\n program {:?}\n transfer {:?}\n whole {:?}\n command {:?}\n inside {:?}\n link {:?}",
        l.block_read,
        l.chunk_read,
        l.chunk_write,
        l.overhead,
        l.unit_hold,
        l.read,
        l.program,
        l.transfer,
        l.whole_chunks,
        l.command,
        l.queues_inside,
        l.link
    );
    println!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        findings.parallelism,
        findings.read_ahead,
        findings.write_buffer,
        findings.regions,
        findings.interference,
        findings.collection
    );
    let made = probe::profile(&findings, "probed").unwrap();
    std::fs::write(format!("/tmp/probed-{}.toml", profile.name), made.to_toml()).unwrap();
    println!("{}", made.to_toml());
}
