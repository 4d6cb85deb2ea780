//! PIQ+_W: PIQ+ with write batches only (TCAD paper, section V-B.2 and figure 15). Reads stay in arrival order: their turn between two
//! promotions is of all that wait when it begins.

use super::Entry;
use super::batches::{BARRIER, Batches};
use super::fifo::Fifo;
use super::piq_plus::WRITE_WAIT_MAX;
use super::separated::Separated;
use planewise_model::Ns;

pub(super) const ENTRY: Entry = Entry {
    name: "piq+_w",
    summary: "PIQ_W that promotes one late write batch at a time",
    source: "Gao et al., IEEE TCAD 2017, sections IV-B.3 and V-B.2",
    tunables: &[BARRIER, WRITE_WAIT_MAX],
    uses_units: true,
    build: |host, values| {
        let threshold = Ns(values.number("write_wait_max_ns"));
        Ok(Box::new(Separated::with_promotion(
            Fifo::with_capacity(host.queue_length),
            Batches::new(host, values),
            threshold,
        )))
    },
};
