//! PIQ: read batches and write batches, read batches first (TCAD paper, section IV-B).

use super::Entry;
use super::batches::{BARRIER, Batches};
use super::separated::Separated;

pub(super) const ENTRY: Entry = Entry {
    name: "piq",
    summary: "reads before writes, both in batches without conflicts",
    source: "Gao et al., IEEE TCAD 2017, section IV-B",
    tunables: &[BARRIER],
    uses_units: true,
    build: |host, values| {
        Ok(Box::new(Separated::new(Batches::new(host, values), Batches::new(host, values))))
    },
};
