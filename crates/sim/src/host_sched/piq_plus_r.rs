//! PIQ+_R: PIQ+ with read batches only (TCAD paper, section V-B.2 and figure 15). Writes stay in arrival order: each is a batch of its own.

use super::Entry;
use super::batches::{BARRIER, Batches};
use super::fifo::Fifo;
use super::piq_plus::WRITE_WAIT_MAX;
use super::separated::Separated;
use planewise_model::Ns;

pub(super) const ENTRY: Entry = Entry {
    name: "piq+_r",
    summary: "PIQ_R that promotes one late write at a time",
    source: "Gao et al., IEEE TCAD 2017, sections IV-B.3 and V-B.2",
    tunables: &[BARRIER, WRITE_WAIT_MAX],
    uses_units: true,
    build: |host, values| {
        let threshold = Ns(values.number("write_wait_max_ns"));
        Ok(Box::new(Separated::with_promotion(
            Batches::new(host, values),
            Fifo::with_capacity(host.queue_length),
            threshold,
        )))
    },
};
