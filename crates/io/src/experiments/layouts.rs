//! What it costs when data lie on few domains of a device that maps by the order of writes (sections 6.4 and 6.5, figures 7 to 9).
//!
//! Deviation: figure 7 reads every tenth chunk of an ordinary layout at random, which needs to be told where chunks lie; here all random
//! reads go to data that were written to lie on so many domains. What is written between is scattered, but nothing twice in a row of writes: see
//! [`Writes::Spread`].

use super::{Area, Experiment, JobPlan, Options, Pattern, Step, Steps, Writes, area, or, sizes};
use crate::TargetInfo;

/// Requests in flight of the random reads.
const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Jobs of the sequential reads.
const JOBS: [u32; 2] = [1, 8];

/// Size of requests, bytes.
const SIZES: [u32; 1] = [4096];

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "layouts",
    summary: "latency and bandwidth of reads of data that lie on one domain, on some, or on all",
    source: "figures 7 to 9",
    sizes: &SIZES,
    keys: &["area", "time", "pause", "sizes", "depths", "domains"],
    writes: |_| true,
    steps,
};

fn steps(options: &Options, target: &TargetInfo) -> Result<Vec<Step>, String> {
    let area = area(options, target, 2)?;
    let elsewhere = Area { start: area.length, ..area };
    let mut steps = Steps::new(options);
    for &size in &sizes(options, &SIZES, target)? {
        let most = area.length / u64::from(size);
        if u64::from(options.domains) > most {
            return Err(format!(
                "domains: found {}; allowed: up to the {most} requests of {size} bytes that area ({}) has, so that none is written twice in between",
                options.domains, options.area
            ));
        }
        for used in divisors(options.domains) {
            let between = options.domains / used - 1;
            steps.write(Writes::Spread { area, elsewhere, size, between });
            steps.rest();
            let labels = |pattern: Pattern, depth: u32| {
                [
                    ("domains", used.to_string()),
                    ("pattern", pattern.to_string()),
                    ("iodepth", depth.to_string()),
                ]
            };
            for &depth in &or(&options.depths, &DEPTHS) {
                let job = JobPlan::new(Pattern::RandomRead, size, depth, area);
                steps.measure(&labels(Pattern::RandomRead, depth), &[job])?;
            }
            for depth in JOBS {
                steps.measure(
                    &labels(Pattern::Read, depth),
                    &[JobPlan::new(Pattern::Read, size, depth, area)],
                )?;
            }
        }
    }
    Ok(steps.steps)
}

/// Numbers of domains that data can be kept on by writing others between: 1, 2, 5 and 10 of 10.
fn divisors(domains: u32) -> Vec<u32> {
    (1..=domains).filter(|used| domains.is_multiple_of(*used)).collect()
}
