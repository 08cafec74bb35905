//! Three nodes in one process, over a simulated network and simulated disks, with a clock that jumps
//! to the next event.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod agreement;
mod begin;
mod clients;
mod clocks;
mod copies;
mod disk;
mod faults;
mod history;
mod leaders;
mod links;
mod members;
mod world;
