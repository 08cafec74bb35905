//! Three nodes in one process, over a simulated network and simulated disks, with a clock that jumps
//! to the next event.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod agreement;
mod clocks;
mod copies;
mod members;
mod network;
mod world;
