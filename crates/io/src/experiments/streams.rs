//! What read-ahead makes of several sequential streams (section 6.3, figure 6).

use super::{Experiment, JobPlan, Options, Pattern, Step, Steps, or, short, sizes};
use crate::TargetInfo;
use planewise_model::Bytes;

/// Sizes of the paper's curves, bytes.
const SIZES: [u32; 4] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];

/// Points on its axis.
const STREAMS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "streams",
    summary: "bandwidth of several sequential readers, each on an area of its own",
    source: "figure 6",
    sizes: &SIZES,
    keys: &["area", "time", "fill", "pause", "sizes", "depths"],
    writes: |options| options.fill,
    steps,
};

fn steps(options: &Options, target: &TargetInfo) -> Result<Vec<Step>, String> {
    let streams = or(&options.depths, &STREAMS);
    let most = u64::from(streams.iter().copied().max().unwrap_or(1));
    // A device with less than 32 GiB gives each stream less.
    let length = options.area.0.min(target.capacity.0 / most) & !((1 << 20) - 1);
    if length == 0 {
        return Err(format!(
            "depths: found {most} streams; allowed: as many as have 1 MiB each on {} of {}",
            target.name, target.capacity
        ));
    }
    let own = Options { area: Bytes(length), ..options.clone() };
    let area = super::Area { start: 0, length };
    let mut steps = Steps::new(&own);
    steps.fill(super::Area { start: 0, length: length * most });
    for &size in &sizes(&own, &SIZES, target)? {
        for &processes in &streams {
            let labels = [("size", short(size)), ("streams", processes.to_string())];
            steps.measure(&labels, &[JobPlan { processes, ..JobPlan::new(Pattern::Read, size, 1, area) }])?;
        }
    }
    Ok(steps.steps)
}
