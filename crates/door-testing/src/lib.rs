//! Parts of nodes in the tests of the listeners: a clock and randomness that a test determines, a
//! journal on a disk in memory, disks and executors that a test holds up, an allocator that counts,
//! and polling.
//!
//! Only tests depend on this crate. It does not know any listener.

#![expect(clippy::unwrap_used, reason = "a failure in a fixture ends the test")]

mod allocator;
mod clock;
mod counting;
mod fixture;
mod gate;
mod polling;

pub use allocator::{CountingAllocator, allocated};
pub use clock::ManualClock;
pub use counting::Counting;
pub use fixture::{SwitchedOffload, journal_options, ports, stepped_storage};
pub use gate::{Gate, Gated, ThreadPerWork};
pub use polling::{PATIENCE, until};
