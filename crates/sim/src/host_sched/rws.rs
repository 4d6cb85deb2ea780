//! RWS: read and write separation. Two arrival-order lists, reads first (TCAD paper, section IV-B.1).

use super::Entry;
use super::fifo::Fifo;
use super::separated::Separated;

pub(super) const ENTRY: Entry = Entry {
    name: "rws",
    summary: "reads before writes, each in arrival order",
    source: "Gao et al., IEEE TCAD 2017, section IV-B.1",
    tunables: &[],
    uses_units: false,
    build: |host, _| {
        Ok(Box::new(Separated::new(
            Fifo::with_capacity(host.queue_length),
            Fifo::with_capacity(host.queue_length),
        )))
    },
};
