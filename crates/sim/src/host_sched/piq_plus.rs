//! PIQ+: PIQ that lets one late write batch at a time go before reads (TCAD paper, section IV-B.3, batch level scheduling).

use super::batches::{BARRIER, Batches};
use super::separated::Separated;
use super::tunables::TunableKind;
use super::{Entry, Tunable};
use planewise_model::Ns;

pub(super) const ENTRY: Entry = Entry {
    name: "piq+",
    summary: "PIQ that promotes one late write batch at a time",
    source: "Gao et al., IEEE TCAD 2017, section IV-B.3",
    tunables: &[BARRIER, WRITE_WAIT_MAX],
    uses_units: true,
    build: |host, values| {
        let threshold = Ns(values.number("write_wait_max_ns"));
        Ok(Box::new(Separated::with_promotion(
            Batches::new(host, values),
            Batches::new(host, values),
            threshold,
        )))
    },
};

/// The threshold of PIQ+ and of its halves.
pub(super) const WRITE_WAIT_MAX: Tunable = Tunable {
    name: "write_wait_max_ns",
    unit: "ns",
    summary: "age at which the oldest write batch goes before reads; shorter helps writes and hurts reads (the paper: 1 ms)",
    kind: TunableKind::Number { default: 1_000_000, min: 0, max: 1_000_000_000_000 },
};
