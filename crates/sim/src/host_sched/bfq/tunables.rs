//! BFQ's tunables, with the names and defaults of Linux 6.x.

use super::super::cfq::tunables::{
    BACK_SEEK_MAX, BACK_SEEK_PENALTY, FIFO_EXPIRE_ASYNC, FIFO_EXPIRE_SYNC, ROTATIONAL, number,
};
use super::super::tunables::{EXPIRE_MAX_MS, Tunable, TunableValues};
use planewise_model::Ns;

const MS: u64 = EXPIRE_MAX_MS;

pub(super) const TUNABLES: &[Tunable] = &[
    FIFO_EXPIRE_SYNC,
    FIFO_EXPIRE_ASYNC,
    BACK_SEEK_MAX,
    BACK_SEEK_PENALTY,
    number(
        "slice_idle",
        "ms",
        [8, 0, MS],
        "wait for the next request of a process that thinks no longer, where waiting pays; 0 never waits",
    ),
    number(
        "max_budget",
        "sectors",
        [16_384, 32, 1 << 32],
        "most sectors of a turn; more is throughput, less is latency of the others",
    ),
    number("timeout_sync", "ms", [125, 1, MS], "longest turn, whatever is left of the budget"),
    number(
        "low_latency",
        "",
        [1, 0, 1],
        "1: processes that begin after a pause have 30 times the weight for a while",
    ),
    number(
        "wr_max_time",
        "ms",
        [3_750, 0, MS],
        "how long: 3.75 s is what Linux begins with on a disk that does not rotate",
    ),
    number(
        "strict_guarantees",
        "",
        [0, 0, 1],
        "1: one request at the device at a time, and always wait; bandwidth is exact and low",
    ),
    ROTATIONAL,
];

pub(super) struct Settings {
    /// Asynchronous, synchronous.
    fifo_expire: [Ns; 2],
    /// Sectors.
    pub(super) back_seek_max: u64,
    pub(super) back_seek_penalty: u64,
    pub(super) slice_idle: Ns,
    pub(super) max_budget: u64,
    pub(super) timeout: Ns,
    pub(super) low_latency: bool,
    pub(super) raised_time: Ns,
    pub(super) strict: bool,
    pub(super) rotational: bool,
}

impl Settings {
    pub(super) fn new(values: &TunableValues) -> Settings {
        let ms = |name| Ns::from_millis(values.number(name));
        Settings {
            fifo_expire: [ms("fifo_expire_async"), ms("fifo_expire_sync")],
            back_seek_max: values.number("back_seek_max") * 2,
            back_seek_penalty: values.number("back_seek_penalty"),
            slice_idle: ms("slice_idle"),
            max_budget: values.number("max_budget"),
            timeout: ms("timeout_sync"),
            low_latency: values.number("low_latency") == 1,
            raised_time: ms("wr_max_time"),
            strict: values.number("strict_guarantees") == 1,
            rotational: values.number("rotational") == 1,
        }
    }

    pub(super) fn expire(&self, synchronous: bool) -> Ns {
        self.fifo_expire[usize::from(synchronous)]
    }

    /// Least sectors of a turn.
    pub(super) fn min_budget(&self) -> u64 {
        self.max_budget / 32
    }
}
