//! What the Rust peers share: a runtime, a socket and the loop that keeps requests in flight.
//!
//! It knows neither library. The invariant is the contract's: every reply is counted once, its
//! length checked, and any failure fails the run.

mod drive;
mod peer;
mod stream;

pub use drive::{Caller, Gate, check_size, drive, lost, phases};
pub use peer::{run, runtime};
pub use stream::{Listener, tcp, undelayed, unix};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
