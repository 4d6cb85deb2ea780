//! The anticipatory scheduler's tunables, with the names of Linux 2.6.32 and its defaults at 1000 ticks a second.

use super::super::tunables::{EXPIRE_MAX_MS, Tunable, TunableKind, TunableValues};
use planewise_model::Ns;

const fn ms(name: &'static str, default: u64, summary: &'static str) -> Tunable {
    Tunable { name, unit: "ms", summary, kind: TunableKind::Number { default, min: 0, max: EXPIRE_MAX_MS } }
}

pub(super) const TUNABLES: &[Tunable] = &[
    ms("read_expire", 125, "age at which a synchronous request goes before the order of addresses"),
    ms("write_expire", 250, "the same of an asynchronous request"),
    ms(
        "read_batch_expire",
        500,
        "synchronous requests have the disk for so long while asynchronous ones wait; longer is fewer switches",
    ),
    ms(
        "write_batch_expire",
        125,
        "how long asynchronous requests should have the disk: their number in a batch is adjusted to it",
    ),
    ms(
        "antic_expire",
        6,
        "wait for a close request of the process just served; longer catches slower processes, 0 never waits",
    ),
];

pub(super) struct Settings {
    /// Synchronous, asynchronous.
    pub(super) expire: [Ns; 2],
    /// Synchronous, asynchronous.
    pub(super) batch_expire: [Ns; 2],
    pub(super) antic_expire: Ns,
}

impl Settings {
    pub(super) fn new(values: &TunableValues) -> Settings {
        let ms = |name| Ns::from_millis(values.number(name));
        Settings {
            expire: [ms("read_expire"), ms("write_expire")],
            batch_expire: [ms("read_batch_expire"), ms("write_batch_expire")],
            antic_expire: ms("antic_expire"),
        }
    }
}
