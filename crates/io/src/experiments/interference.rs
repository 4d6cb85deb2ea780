//! How reads and writes get in each other's way: two jobs at a time, and each alone (section 6.2, table II).

use super::{Area, Experiment, JobPlan, Options, Pattern, Step, Steps, area, or, short, sizes};
use crate::TargetInfo;

/// Size of requests, bytes.
const SIZES: [u32; 1] = [4096];

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "interference",
    summary: "bandwidth of two patterns side by side, and of each alone",
    source: "table II",
    sizes: &SIZES,
    keys: &["area", "time", "fill", "pause", "patterns", "sizes", "depths"],
    writes: |_| true,
    steps,
};

fn steps(options: &Options, target: &TargetInfo) -> Result<Vec<Step>, String> {
    let first = area(options, target, 2)?;
    let second = Area { start: first.length, ..first };
    let both = Area { length: 2 * first.length, ..first };
    let patterns = or(&options.patterns, &Pattern::ALL);
    let mut steps = Steps::new(options);
    for &size in &sizes(options, &SIZES, target)? {
        for &depth in &or(&options.depths, &[1]) {
            let job = |pattern, area| JobPlan::new(pattern, size, depth, area);
            let labels = |one: Pattern, other: &str| {
                let mut labels = vec![("pattern", one.to_string()), ("beside", other.to_owned())];
                if options.sizes.len() > 1 {
                    labels.push(("size", short(size)));
                }
                if options.depths.len() > 1 {
                    labels.push(("iodepth", depth.to_string()));
                }
                labels
            };
            for (number, &one) in patterns.iter().enumerate() {
                steps.fill(both);
                steps.measure(&labels(one, "nothing"), &[job(one, first)])?;
                for &other in &patterns[number..] {
                    steps.fill(both);
                    steps.measure(&labels(one, other.name()), &[job(one, first), job(other, second)])?;
                }
            }
        }
    }
    Ok(steps.steps)
}
