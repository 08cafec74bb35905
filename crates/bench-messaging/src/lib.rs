//! Benchmarks of messaging: [`agent`] measures messages between agents, also over SLIM, and [`rpc`]
//! measures calls.
//!
//! The crate knows clients and the processes of its cases. It computes no figure: every measurement
//! goes to the driver of the `bench` crate.

pub mod agent;
pub mod rpc;
