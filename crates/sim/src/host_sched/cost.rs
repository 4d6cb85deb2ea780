//! What a request costs the device: linear in its size, for reads and writes apart, through the times that requests of 4 KiB
//! and of 128 KiB took alone.

use super::tunables::{Tunable, TunableKind, TunableValues};
use planewise_model::{Ns, Request};

const SMALL: i128 = 4 << 10;
const LARGE: i128 = 128 << 10;

const fn calibrated(name: &'static str, default: u64, summary: &'static str) -> Tunable {
    Tunable { name, unit: "ns", summary, kind: TunableKind::Number { default, min: 1, max: 60_000_000_000 } }
}

/// By default as measured on the profile `piq-128g` (`crates/sim/tests/elevators.rs` measures again).
pub(super) const CALIBRATIONS: [Tunable; 4] = [
    calibrated(
        "read_4k_ns",
        70_960,
        "time of a read of 4 KiB alone on the device: what it is reckoned to cost",
    ),
    calibrated(
        "read_128k_ns",
        193_840,
        "the same of 128 KiB; in between and beyond, charges are linear in the size",
    ),
    calibrated("write_4k_ns", 640_960, "the same of a write of 4 KiB"),
    calibrated("write_128k_ns", 763_840, "the same of a write of 128 KiB"),
];

/// Calibrated times, ns, by direction: of a small request and of a large one.
pub(super) struct Cost([[u64; 2]; 2]);

impl Cost {
    pub(super) fn new(values: &TunableValues) -> Cost {
        Cost([
            [values.number("read_4k_ns"), values.number("read_128k_ns")],
            [values.number("write_4k_ns"), values.number("write_128k_ns")],
        ])
    }

    /// Time of a request alone on the device, at least 1 ns.
    pub(super) fn of(&self, request: &Request) -> Ns {
        let [small, large] = self.0[request.direction.index()].map(i128::from);
        let cost = small + (large - small) * (i128::from(request.bytes().0) - SMALL) / (LARGE - SMALL);
        Ns(cost.clamp(1, 1 << 50) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::Cost;
    use planewise_model::{Direction, Lsn, Ns, Request};

    #[test]
    fn costs_lie_on_the_line_through_both_calibrations_and_are_never_nothing() {
        let cost = Cost([[70, 194], [640, 640]]);
        let of = |sectors, direction| cost.of(&Request::new(Ns::ZERO, Lsn(0), sectors, direction)).0;
        assert_eq!([8, 256, 8 + 124, 504].map(|sectors| of(sectors, Direction::Read)), [70, 194, 132, 318]);
        assert_eq!([1, 8, 4096].map(|sectors| of(sectors, Direction::Write)), [640; 3]);
        assert_eq!(
            Cost([[1, 1_000_000], [1, 1]]).of(&Request::new(Ns::ZERO, Lsn(0), 1, Direction::Read)),
            Ns(1)
        );
    }
}
