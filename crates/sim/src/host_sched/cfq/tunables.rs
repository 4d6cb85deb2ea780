//! CFQ's tunables, with the names and defaults of Linux 2.6.32.

use super::super::tunables::{EXPIRE_MAX_MS, Tunable, TunableKind, TunableValues};
use planewise_model::Ns;

/// Of 0 (highest) to 7: all processes have the one that Linux gives those that ask for none.
const PRIORITY: u64 = 4;
/// Priorities of the best-effort class.
const PRIORITIES: u64 = 8;

/// A tunable that is a number: default, least and most.
pub(in super::super) const fn number(
    name: &'static str,
    unit: &'static str,
    [default, min, max]: [u64; 3],
    summary: &'static str,
) -> Tunable {
    Tunable { name, unit, summary, kind: TunableKind::Number { default, min, max } }
}

const MS: u64 = EXPIRE_MAX_MS;

/// Shared with BFQ, which descends from CFQ.
pub(in super::super) const FIFO_EXPIRE_SYNC: Tunable = number(
    "fifo_expire_sync",
    "ms",
    [125, 1, MS],
    "age at which a synchronous request goes before the order of addresses, once a turn",
);
/// Shared with BFQ, which descends from CFQ.
pub(in super::super) const FIFO_EXPIRE_ASYNC: Tunable =
    number("fifo_expire_async", "ms", [250, 1, MS], "the same of asynchronous requests");
/// Shared with BFQ, which descends from CFQ.
pub(in super::super) const BACK_SEEK_MAX: Tunable = number(
    "back_seek_max",
    "KiB",
    [16_384, 0, 1 << 40],
    "how far back the next request may lie; more shortens seeks and lets the far end wait",
);
/// Shared with BFQ, which descends from CFQ.
pub(in super::super) const BACK_SEEK_PENALTY: Tunable = number(
    "back_seek_penalty",
    "",
    [2, 1, 1_000_000],
    "a step back counts as this many times the step forward",
);
/// Shared with BFQ, which descends from CFQ.
pub(in super::super) const ROTATIONAL: Tunable = number(
    "rotational",
    "",
    [0, 0, 1],
    "what the disk says of itself (sysfs queue/rotational); 0 and command queueing together turn the waiting off",
);

pub(super) const TUNABLES: &[Tunable] = &[
    number(
        "quantum",
        "requests",
        [4, 1, 1_000_000],
        "requests of a queue at the device while others wait, four times as many when alone; more is throughput, fewer is fairness",
    ),
    FIFO_EXPIRE_SYNC,
    FIFO_EXPIRE_ASYNC,
    BACK_SEEK_MAX,
    BACK_SEEK_PENALTY,
    number(
        "slice_sync",
        "ms",
        [100, 1, MS],
        "slice of a process's synchronous queue; longer is throughput, shorter is latency of the others",
    ),
    number("slice_async", "ms", [40, 1, MS], "slice of the asynchronous queue"),
    number(
        "slice_async_rq",
        "requests",
        [2, 1, 1_000_000],
        "an eighth of the requests of an asynchronous slice (at the default priority); more is write-back throughput",
    ),
    number(
        "slice_idle",
        "ms",
        [8, 0, MS],
        "wait for the next request of a process that thinks no longer; 0 never waits, which suits devices that queue commands",
    ),
    number(
        "low_latency",
        "",
        [1, 0, 1],
        "1: asynchronous requests come back slowly after synchronous ones; 0: they have the whole quantum at once",
    ),
    ROTATIONAL,
];

pub(super) struct Settings {
    pub(super) quantum: u64,
    /// Asynchronous, synchronous.
    fifo_expire: [Ns; 2],
    /// Sectors.
    pub(super) back_seek_max: u64,
    pub(super) back_seek_penalty: u64,
    pub(super) slice_sync: Ns,
    slice_async: Ns,
    slice_async_rq: u64,
    pub(super) slice_idle: Ns,
    pub(super) low_latency: bool,
    pub(super) rotational: bool,
}

impl Settings {
    pub(super) fn new(values: &TunableValues) -> Settings {
        let ms = |name| Ns::from_millis(values.number(name));
        Settings {
            quantum: values.number("quantum"),
            fifo_expire: [ms("fifo_expire_async"), ms("fifo_expire_sync")],
            back_seek_max: values.number("back_seek_max") * 2,
            back_seek_penalty: values.number("back_seek_penalty"),
            slice_sync: ms("slice_sync"),
            slice_async: ms("slice_async"),
            slice_async_rq: values.number("slice_async_rq"),
            slice_idle: ms("slice_idle"),
            low_latency: values.number("low_latency") == 1,
            rotational: values.number("rotational") == 1,
        }
    }

    pub(super) fn expire(&self, synchronous: bool) -> Ns {
        self.fifo_expire[usize::from(synchronous)]
    }

    /// Length of a slice (`cfq_prio_slice`): at the default priority, as it stands.
    pub(super) fn slice(&self, synchronous: bool) -> Ns {
        if synchronous { self.slice_sync } else { self.slice_async }
    }

    /// How much later, ns, a queue is served for each other that is busy: what the longest slice there is (priority 0,
    /// synchronous) exceeds its own by (`cfq_slice_offset`).
    pub(super) fn offset(&self, synchronous: bool) -> i64 {
        let longest = self.slice_sync.0 + self.slice_sync.0 / 5 * PRIORITY;
        longest as i64 - self.slice(synchronous).0 as i64
    }

    /// Requests of an asynchronous slice (`cfq_prio_to_maxrq`).
    pub(super) fn async_requests(&self) -> u64 {
        2 * self.slice_async_rq * (PRIORITIES - PRIORITY)
    }
}
