//! Proofs of the journal's guarantees, on a disk that loses, tears, fails and lies.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

mod crash;
mod crash_points;
mod damage;
mod erasure;
mod faults;
mod model;
mod replication;
mod world;
