//! `planewise trace volumes`: the synthetic volumes.

use crate::failure::Failure;
use crate::output;
use planewise_trace::synth::{self, VOLUMES};

/// Lists the volumes.
///
/// # Errors
/// Standard output cannot be written.
pub fn execute() -> Result<(), Failure> {
    let mut text = format!(
        "{:<12} {:>7} {:>11} {:>9} {:>9} {:>6} {:>10} {:>6}  {}\n",
        "name", "writes", "working set", "read", "write", "seq.", "interval", "burst", "what it looks like"
    );
    for (name, _) in VOLUMES {
        let volume = synth::volume(name)?;
        text += &format!(
            "{:<12} {:>5.1} % {:>7.2} GiB {:>5.1} KiB {:>5.1} KiB {:>4.0} % {:>7.2} ms {:>4.0} %  {}\n",
            volume.name,
            100.0 * volume.write_ratio,
            volume.working_set_gib,
            volume.read_mean_kib,
            volume.write_mean_kib,
            100.0 * volume.sequential_share,
            volume.inter_arrival_ms,
            100.0 * volume.burst_share,
            volume.summary
        );
    }
    output::print(&text)
}
