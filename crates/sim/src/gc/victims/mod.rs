//! Victim selection: which block of a plane is collected.

pub(crate) mod greedy;
