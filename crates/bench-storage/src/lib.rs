//! Benchmarks of durable appends: [`journal`] measures records, [`store`] measures messages in
//! conversations.
//!
//! The crate knows clients, rival servers and the processes of its cases. It computes no figure:
//! every measurement goes to the driver of the `bench` crate.

pub mod journal;
pub mod store;
