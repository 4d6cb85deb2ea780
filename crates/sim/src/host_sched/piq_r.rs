//! PIQ_R: RWS with read batches (TCAD paper, section V: "PIQ_R integrates RWS with RRS").

use super::Entry;
use super::batches::{BARRIER, Batches};
use super::fifo::Fifo;
use super::separated::Separated;

pub(super) const ENTRY: Entry = Entry {
    name: "piq_r",
    summary: "reads before writes, reads in batches without conflicts",
    source: "Gao et al., IEEE TCAD 2017, sections IV-B and V",
    tunables: &[BARRIER],
    uses_units: true,
    build: |host, values| {
        Ok(Box::new(Separated::new(Batches::new(host, values), Fifo::with_capacity(host.queue_length))))
    },
};
