//! The journal's promises, held against a disk that forgets, tears, errs and lies.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what goes wrong in a test ends it"
)]

mod crash;
mod crash_points;
mod damage;
mod erased;
mod faults;
mod model;
mod world;
