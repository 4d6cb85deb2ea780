//! What parallelism brings: patterns, sizes and depths (section 6.1 with figure 5, section 9.1 with figure 16).

use super::{Experiment, JobPlan, Options, Pattern, Step, Steps, area, or, short, sizes};
use crate::TargetInfo;

/// Sizes of the paper's curves, bytes.
const SIZES: [u32; 5] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10];

/// Points on its axis.
const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "grid",
    summary: "bandwidth over patterns, sizes and requests in flight",
    source: "figures 5 and 16",
    sizes: &SIZES,
    keys: &["area", "time", "fill", "pause", "patterns", "sizes", "depths"],
    writes: |options| {
        options.fill || or(&options.patterns, &Pattern::ALL).iter().any(|pattern| pattern.writes())
    },
    steps,
};

fn steps(options: &Options, target: &TargetInfo) -> Result<Vec<Step>, String> {
    let area = area(options, target, 1)?;
    let sizes = sizes(options, &SIZES, target)?;
    let mut steps = Steps::new(options);
    for pattern in or(&options.patterns, &Pattern::ALL) {
        // Before each pattern and not before each point: writes of a point find what those of the one before left.
        steps.fill(area);
        for &size in &sizes {
            for &depth in &or(&options.depths, &DEPTHS) {
                let labels =
                    [("pattern", pattern.to_string()), ("size", short(size)), ("iodepth", depth.to_string())];
                steps.measure(&labels, &[JobPlan::new(pattern, size, depth, area)])?;
            }
        }
    }
    Ok(steps.steps)
}
