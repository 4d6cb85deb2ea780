//! What a scheduler costs the host, measured here and now: memory, and time of a request (TCAD paper, section IV-B, "Overhead analysis").

use crate::failure::Failure;
use crate::memory;
use planewise_sim::host_sched::exercise::{Exercise, knowledge};
use planewise_sim::host_sched::{Entry, TunableValues};
use std::fmt::Write;
use std::time::Instant;

/// Queues and units that are measured: the paper's, and long queues before wide devices.
const CASES: [(u32, u32); 3] = [(64, 64), (64, 256), (1024, 256)];
/// Requests of a measurement; of several, the fastest is the one that nothing else disturbed.
const REQUESTS: u32 = 20_000;
const MEASUREMENTS: u32 = 5;

/// A table: memory and time for each case, and for the PIQ family what the paper reckons.
///
/// # Errors
/// Defaults of the scheduler that do not go with the device.
pub fn text(entry: &Entry) -> Result<String, Failure> {
    let mut text =
        String::from("\ncost on this host, measured\n   queue   units      memory  time of a request\n");
    for (queue, units) in CASES {
        let host = knowledge(units, queue);
        let before = memory::in_use();
        let scheduler = (entry.build)(&host, &TunableValues::defaults(entry.tunables))?;
        let bytes = memory::in_use() - before;
        drop(scheduler);
        let mut exercise = Exercise::new(entry, units, queue - 1)?;
        let fastest = (0..MEASUREMENTS)
            .map(|_| {
                let start = Instant::now();
                (0..REQUESTS).for_each(|_| exercise.step());
                start.elapsed().as_nanos() / u128::from(REQUESTS)
            })
            .min()
            .unwrap_or(0);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {queue:>6}  {units:>6}  {bytes:>8} B  {fastest:>14} ns");
    }
    if entry.tunables.iter().any(|tunable| tunable.name == "barrier") && entry.uses_units {
        let (queue, units) = CASES[0];
        let _ = writeln!(
            text,
            "  the paper reckons {queue} batches x {units} units = {} B of vectors for each direction, and {queue} timestamps; \
             ours keep them by unit as well, and lists by request",
            queue * units / 8
        );
    }
    Ok(text)
}
