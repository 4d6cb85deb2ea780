//! PIQ_W: RWS with write batches (TCAD paper, section V: "PIQ_W takes WWS into consideration").

use super::Entry;
use super::batches::{BARRIER, Batches};
use super::fifo::Fifo;
use super::separated::Separated;

pub(super) const ENTRY: Entry = Entry {
    name: "piq_w",
    summary: "reads before writes, writes in batches without conflicts",
    source: "Gao et al., IEEE TCAD 2017, sections IV-B and V",
    tunables: &[BARRIER],
    uses_units: true,
    build: |host, values| {
        Ok(Box::new(Separated::new(Fifo::with_capacity(host.queue_length), Batches::new(host, values))))
    },
};
