//! Clocks of the machine and latency histograms, for benchmarks and for the node's own checks.

pub mod clock;
pub mod histogram;
