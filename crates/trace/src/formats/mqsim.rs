//! MQSim: the trace form of Tavakkol et al.'s simulator (FAST'18).
//!
//! ```text
//! 11413000 0 657728 16 1          time device address length operation
//! ```
//!
//! Column for column that of SSDsim ([`super::ssdsim`]): sectors, operation 0 writes and 1 reads. MQSim's own workload
//! files name the unit of time beside the trace (`Time_Unit`: picoseconds, nanoseconds or microseconds), so the trace
//! alone cannot tell and the user must name it.

use super::ssdsim::{self, SsdSim};
use super::{Format, lines};

/// MQSim ASCII.
pub static FORMAT: Format = Format {
    name: "mqsim",
    description: "MQSim ASCII: time (--time-unit) device address length (sectors) operation (0 write, 1 read)",
    time_unit_open: true,
    completions: false,
    commands: false,
    durability: false,
    detect: lines::detect::<SsdSim>,
    open: lines::open::<SsdSim>,
    create: Some(ssdsim::create),
};

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn shared_traces_have_the_known_counts() {
        for (name, expected, volumes) in [
            ("mqsim/wsrch-small.trace.zst", Expected::new(24_783, 0.0, 15.1, 8.0, 60.0), 6),
            ("mqsim/tpcc-small.trace.zst", Expected::new(6_999, 37.4, 8.1, 8.7, 0.136), 16),
        ] {
            if let Some(trace) = read_shared(&FORMAT, name, None) {
                expected.check(&trace, name);
                let seen: std::collections::BTreeSet<u32> = trace.requests.iter().map(|r| r.volume).collect();
                assert_eq!(seen.len(), volumes, "{name}");
            }
        }
    }
}
