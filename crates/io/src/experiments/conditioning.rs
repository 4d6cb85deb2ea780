//! What random writes leave behind: four patterns before and after them (section 9.3, figure 18).

use super::{Area, Experiment, JobPlan, Options, Pattern, Step, Steps, Writes, area, or, short, sizes};
use crate::TargetInfo;

/// Requests in flight, of what conditions and of what is measured.
const DEPTH: u32 = 32;

/// Bytes of a random write.
const WRITE_BYTES: u32 = 4096;

/// Size of requests, bytes.
const SIZES: [u32; 1] = [16 << 10];

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "conditioning",
    summary: "bandwidth of four patterns before and right after random writes over the whole target",
    source: "figure 18",
    sizes: &SIZES,
    keys: &["area", "time", "fill", "pause", "patterns", "sizes", "depths", "condition"],
    writes: |_| true,
    steps,
};

fn steps(options: &Options, target: &TargetInfo) -> Result<Vec<Step>, String> {
    let area = area(options, target, 1)?;
    let block = u64::from(target.block_bytes.max(WRITE_BYTES));
    let all = Area { start: 0, length: target.capacity.0 / block * block };
    let mut steps = Steps::new(options);
    for &size in &sizes(options, &SIZES, target)? {
        for &depth in &or(&options.depths, &[DEPTH]) {
            let patterns = or(&options.patterns, &Pattern::ALL);
            let labels = |pattern: Pattern, when: &str| {
                let mut labels = vec![("pattern", pattern.to_string()), ("when", when.to_owned())];
                if options.sizes.len() > 1 {
                    labels.push(("size", short(size)));
                }
                if options.depths.len() > 1 {
                    labels.push(("iodepth", depth.to_string()));
                }
                labels
            };
            for &pattern in &patterns {
                steps.fill(area);
                steps.measure(&labels(pattern, "before"), &[JobPlan::new(pattern, size, depth, area)])?;
            }
            for &pattern in &patterns {
                let time = options.condition;
                steps.write(Writes::Random { area: all, size: block as u32, depth: DEPTH, time });
                // Immediately: the device has had no time to clean up.
                steps.measure(&labels(pattern, "after"), &[JobPlan::new(pattern, size, depth, area)])?;
            }
        }
    }
    Ok(steps.steps)
}
